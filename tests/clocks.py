# SPDX-License-Identifier: Apache-2.0
"""Which files of tests may read a clock or wait for one, and why: the one list of them.

`tests/unit/test_clocks.py` refuses all others. A test of these files that fails is run once more,
and the end of the run names it: what real processes, sockets and threads do takes as long as it
takes. All other tests must pass at once.
"""

DAEMONS = "real services, agents and clients"
THREADS = "real threads: a wait of minutes that fails is one that never ends"
SOCKETS = "real sockets: what never answers fails"
PROGRAMS = "real programs: one that never ends is stopped, and fails"
CGROUPS = "real processes, in real cgroups"

MAY_READ = {
    "tests/conftest.py": "ends a test that hangs",
    "tests/documents/cluster.py": PROGRAMS,
    "tests/documents/container.py": PROGRAMS,
    "tests/documents/host.py": PROGRAMS,
    "tests/documents/slurm_parsers.py": PROGRAMS,
    "tests/documents/test_cluster_pages.py": DAEMONS,
    "tests/documents/test_pages.py": PROGRAMS,
    "tests/durations.py": "measures the CPU time of tests",
    "tests/in_turn.py": PROGRAMS,
    "tests/long_run.py": "says how long a run will take",
    "tests/memory_files.py": DAEMONS,
    "tests/ran.py": "the day on which something was run",
    "tests/simulation/attackers.py": "programs of users who attack a real service",
    "tests/simulation/metered.py": DAEMONS,
    "tests/simulation/services.py": DAEMONS,
    "tests/simulation/test_agents.py": DAEMONS,
    "tests/simulation/test_broken_packages.py": DAEMONS,
    "tests/simulation/test_power_faults.py": DAEMONS,
    "tests/simulation/test_service_accuracy.py": DAEMONS,
    "tests/simulation/test_service_attacks.py": DAEMONS,
    "tests/simulation/test_service_changes.py": DAEMONS,
    "tests/simulation/test_service_coscheduling.py": DAEMONS,
    "tests/simulation/test_service_dispatch.py": DAEMONS,
    "tests/simulation/test_service_ending.py": DAEMONS,
    "tests/simulation/test_service_events.py": DAEMONS,
    "tests/simulation/test_service_operators.py": DAEMONS,
    "tests/simulation/test_service_power.py": DAEMONS,
    "tests/simulation/test_service_process.py": DAEMONS,
    "tests/simulation/test_service_record.py": DAEMONS,
    "tests/simulation/test_service_replay.py": DAEMONS,
    "tests/simulation/test_service_reservations.py": DAEMONS,
    "tests/simulation/test_service_restart.py": DAEMONS,
    "tests/simulation/test_service_tls.py": DAEMONS,
    "tests/simulation/whole/__main__.py": "measures the CPU time of a history",
    "tests/unit/agent/conftest.py": CGROUPS,
    "tests/unit/agent/test_launcher_socket.py": "real sockets; that nothing else is sent",
    "tests/unit/agent/test_lone_guests.py": CGROUPS,
    "tests/unit/agent/test_share_methods.py": PROGRAMS,
    "tests/unit/agent/test_shares.py": CGROUPS,
    "tests/unit/agent/test_started_inside.py": CGROUPS,
    "tests/unit/agent/trees.py": CGROUPS,
    "tests/unit/cli/test_wrong_input.py": PROGRAMS,
    "tests/unit/extensions/elastic/test_elastic_bench.py": "real launchers and their programs",
    "tests/unit/extensions/elastic/test_run.py": "real launchers and their programs",
    "tests/unit/examples/test_workloads.py": PROGRAMS,
    "tests/unit/lab/experiments/computing.py": "a worker that waits for a file",
    "tests/unit/lab/experiments/test_run.py": "real workers",
    "tests/unit/rpc/test_agent_server.py": SOCKETS,
    "tests/unit/rpc/test_cycles.py": THREADS,
    "tests/unit/rpc/test_gate.py": SOCKETS,
    "tests/unit/rpc/test_introductions.py": SOCKETS,
    "tests/unit/rpc/test_newcomers.py": SOCKETS,
    "tests/unit/rpc/test_orders.py": THREADS,
    "tests/unit/rpc/test_private_channel.py": THREADS,
    "tests/unit/rpc/test_revoked.py": SOCKETS,
    "tests/unit/service/test_gates.py": SOCKETS,
    "tests/unit/service/test_poisonous_settings.py": PROGRAMS,
    "tests/unit/state/test_change_log.py": THREADS,
    "tests/unit/state/test_memory_file.py": DAEMONS,
    "tests/unit/state/test_memory_file_later.py": THREADS,
    "tests/unit/state/test_store.py": "a real writer, which is a thread",
    "tests/unit/test_benchmark_programs.py": PROGRAMS,
    "tests/unit/test_durations.py": "tests of known CPU time",
    "tests/unit/test_interpreters.py": "real interpreters and solvers",
    "tests/unit/test_result_tables.py": PROGRAMS,
    "tests/unit/test_solving.py": "a real solver, in a process of its own",
}
"""Files, and why."""
