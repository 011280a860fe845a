# SPDX-License-Identifier: Apache-2.0
"""Nothing outside a dialect's folder knows a resource manager by its options and commands."""

import ast
import dataclasses
import re
from pathlib import Path

import pytest

from bridge import dialect
from bridge.errors import ConfigError, SnapshotError
from bridge.model.job import Hold
from bridge.planning.explain.what_if import what_if
from bridge.planning.requests.amounts import Amounts
from bridge.registry import PRESETS, build
from bridge.rpc.controller.cycles import Published
from bridge.rpc.controller.switches import Switches
from bridge.rpc.encode import Messages
from bridge.rpc.operators.explain import explain
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.rpc.reported.session import WIRE_VERSION, Session
from bridge.safe_cycle.decider import Decider
from bridge.words import words_named
from schedbridge_contracts.builders import (
    a_job,
    a_partition,
    a_reservation,
    a_running_job,
    a_snapshot,
)
from tests.other_dialect import ARRAY
from tests.unit.rpc import worlds

BRIDGE = Path(__file__).parents[2] / "bridge"
OWN = ("slurm/", "pbs/", "lab/accounting/", "shim/", "lab/sim/", "cli/", "rpc/pb/")
"""Folders that may know Slurm: its dialect and that of PBS, the readers of accounting, its plugin,
its simulation, and the command line."""
KNOWN = {
    "dialect.py": "names the folder",
    "words.py": "the same",
    "registry.py": "an example in its docstring",
    "policies/catalogue.py": "names of a preset and of Slurm's priority order",
    "service/config.py": "options of the plugins, in descriptions",
    "extensions/sharing/section.py": "options of jobs, in descriptions",
    "rpc/operators/reservations.py": "options of this package's commands",
    "extensions/elastic/operators/widths.py": "the same",
    "lab/experiments/workers.py": "starts workers as Slurm's jobs; options of a command",
    "lab/experiments/provenance.py": "options of Git",
    "lab/experiments/page/charts.py": "custom properties of CSS",
    "papers/placement/training/placement.py": "options of this package's commands",
    "agent/daemon.py": "the same",
    "agent/launchers.py": "the same",
    "agent/use/cgroups.py": "names of the cgroups in which Slurm puts jobs",
    "extensions/power/on_nodes/choice.py": "names Slurm's sensor",
    "extensions/power/on_nodes/slurm_energy.py": "reads what Slurm's plugins measure",
    "extensions/power/commands/power.py": "options of this package's commands",
    "extensions/power/commands/tables.py": "the same",
    "extensions/power/corridor/corridor_switch.py": "the same",
    "extensions/power/corridor/entry_log.py": "the same",
    "extensions/power/operators/power_messages.py": "the same",
    "extensions/power/power_use.py": "names Slurm's sensor",
    "extensions/elastic/launcher/boot.py": "runs in a job of Slurm: names an option of its steps",
    "extensions/elastic/launcher/steps.py": "the same: starts its steps",
}
"""Files with such words, and why."""
WORDS = re.compile(r"[Ss]lurm|sbatch|salloc|srun|scontrol|squeue|sinfo|(?<![\w-])--[a-z]{3,}")


def texts(path: Path) -> list[str]:
    """Texts in code that are no docstrings."""
    tree = ast.parse(path.read_text())
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
    ]


def test_only_these_files_have_words_of_slurm():
    found = {
        name
        for path in BRIDGE.rglob("*.py")
        for name in [path.relative_to(BRIDGE).as_posix()]
        if not name.startswith(OWN) and any(map(WORDS.search, texts(path)))
    }
    assert found == set(KNOWN)


def test_the_folder_of_a_dialect_is_reached_through_the_port_alone():
    found = {
        path.relative_to(BRIDGE).as_posix()
        for path in BRIDGE.rglob("*.py")
        if path.parent != BRIDGE / "slurm"
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [each.name for each in node.names] if isinstance(node, ast.Import)
            else [f"{node.module}.{each.name}" for each in node.names]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        if f"{name}.".startswith("bridge.slurm.")
    }  # fmt: skip
    assert not found


@pytest.fixture
def other(monkeypatch):
    monkeypatch.setitem(dialect.DIALECTS, "other", "tests.other_dialect:OTHER")
    yield "other"
    dialect.dialect_named.cache_clear()


def of(name, **settings):
    return dataclasses.replace(a_snapshot(**settings)(), dialect=name)


def test_a_dialect_that_nobody_knows_is_refused():
    with pytest.raises(ConfigError, match="'nqs' is not one of pbs, slurm"):
        dialect.dialect_named("nqs")
    hello = pb.HelloRequest(wire_version=WIRE_VERSION, epoch=1, dialect="nqs")
    with pytest.raises(SnapshotError, match="dialect"):
        Session().greet(hello)


def test_a_controller_that_names_no_dialect_speaks_slurms():
    assert dialect.dialect_named("") is dialect.dialect_named("slurm")


@pytest.mark.parametrize("name", dialect.DIALECTS)
def test_a_dialect_has_the_words_that_the_commands_print(name):
    assert words_named(name) is dialect.dialect_named(name).words


def test_tasks_of_an_array_are_known_by_the_dialect(other):
    ids = ["7[1].srv", "8.srv", "9_1"]
    running = [a_running_job((at,), 100, id=job) for at, job in enumerate(ids)]
    for name, tasks in ((other, [1, 0, 0]), ("slurm", [0, 0, 1])):
        snapshot = of(name, nodes=4, running=running)
        assert Amounts(snapshot).of_running()[:, -1].tolist() == tasks


def test_users_are_told_in_the_words_of_their_resource_manager(other):
    jobs = [a_job(id=f"7{ARRAY}", hold=Hold.HELD, array_tasks=2), a_job(5)]
    snapshot = of(other, nodes=4, jobs=jobs, partitions=[a_partition(nodes=range(4), up=False)])
    decided = Decider(build(PRESETS["slurm-like"])).decide(snapshot)
    published = Published(snapshot, decided, NodeIndex(snapshot.nodes.names))
    array = explain(published, "7[1].srv")
    assert array is not None
    assert any("release it with 'qrls'" in line for line in array.lines)
    assert explain(published, "8[1].srv") is None
    reasons = {str(snapshot.jobs.id[job]): reason for job, reason in
               zip(decided.job.tolist(), decided.reasons, strict=True)}  # fmt: skip
    assert reasons["2"].text == "queue batch is down"


def test_what_helps_is_told_as_options_of_the_resource_manager(other):
    snapshot = of(
        other,
        nodes=2,
        jobs=[a_job(limit_s=10_800)],
        running=[a_running_job(nodes=(0,), end_s=18_000)],
        reservations=[a_reservation([1], 7_205, 18_000)],
    )
    plan = Decider(build(PRESETS["openccs"])).decide(snapshot)
    (change,) = what_if(snapshot, plan, 0)
    assert change.options == "-l walltime=7205"


def decoded(name, switches=lambda *_: None, **request):
    """The snapshot of a session whose controller holds whole cores of two CPUs, and one job."""
    session = Session(switches=switches)
    session.greet(worlds.a_hello(dialect=name, whole_cores=True, memory_optional=False))
    nodes = worlds.some_nodes(threads_per_core=2)
    job = worlds.a_job(request=worlds.a_request(**request))
    assert session.apply(worlds.a_full([job], nodes))
    return session.snapshot()[0]


def demand(snapshot):
    jobs = snapshot.jobs
    return (
        int(jobs.tasks[0]), jobs.per_node[0].tolist(), jobs.per_task[0].tolist(),
        bool(jobs.exclusive[0]),
    )  # fmt: skip


def test_what_a_job_takes_of_a_node_is_decoded_by_the_rules_of_its_dialect(other):
    requested = {"tasks": 3, "cpus_per_task": 1, "memory_per_node_mib": 100}
    assert demand(decoded(other, **requested)) == (3, [0, 0], [1, 100], False)
    assert demand(decoded("slurm", **requested)) == (2, [0, 100], [2, 0], False)


def test_what_a_job_does_not_state_is_taken_by_the_rules_of_its_dialect(other):
    requested = {"tasks": 3, "cpus_per_task": 1}
    assert demand(decoded(other, **requested)) == (3, [0, 0], [1, 0], False)
    assert demand(decoded("slurm", **requested)) == (2, [0, 0], [2, 0], True)


def test_a_request_that_a_dialect_cannot_understand_holds_its_job(other):
    requested = {"tasks": 3, "memory_per_cpu_mib": 10}
    refused = decoded(other, **requested).jobs
    assert refused.hold[0] == Hold.BAD_REQUEST
    assert refused.hold_text[0] == "asks for memory per CPU, which this server does not know"
    assert decoded("slurm", **requested).jobs.hold[0] == Hold.NONE


def test_chunks_are_compared_with_what_the_controller_of_the_dialect_holds(other):
    chunks = pb.Chunks(chunks="3:ncpus=2:mem=10mb")
    requested = {"tasks": 3, "cpus_per_task": 1, "chunks": chunks}
    assert decoded(other, **requested).jobs.hold[0] == Hold.NONE
    assert decoded("slurm", **requested).jobs.hold_text[0].startswith("--chunks mean 6 CPUs, Slurm")
    named = decoded(other, required_nodes="n1", **requested).jobs
    assert named.hold_text[0] == "-l host beside -l select: give host= in the chunks"
    nonsense = decoded(other, tasks=3, chunks=pb.Chunks(chunks="ncpus=")).jobs
    assert nonsense.hold_text[0].startswith("-l select: ")


def test_what_a_simulated_controller_states_is_decoded_to_the_same(other):
    snapshot = decoded(other, tasks=3, cpus_per_task=1, memory_per_node_mib=100)
    stated = Messages(snapshot).pending(snapshot, 0).request
    fields = ("tasks", "cpus_per_task", "memory_per_node_mib", "memory_per_cpu_mib")
    again = decoded(other, **{name: getattr(stated, name) for name in fields})
    assert demand(again) == demand(snapshot)


def test_switches_are_read_by_the_dialect_of_the_controller(other, tmp_path, caplog):
    path = tmp_path / "switches"
    path.write_text("a n0 n1\nb n2 n3\n")
    switches = Switches(path)
    switches.warn()
    assert not caplog.records
    topology = decoded(other, switches.above).topology
    assert topology.leaf_of_node.tolist() == [0, 0, 1, 1]
    assert decoded("slurm", Switches(path).above).topology is None
    assert "is not Key=Value" in caplog.text


def test_a_job_of_pbs_is_explained_in_the_words_of_pbs():
    full = a_running_job(nodes=(0, 1), end_s=9000)
    jobs = [a_job(2, id="1.srv"), a_job(9, id="2.srv")]
    snapshot = of("pbs", nodes=2, jobs=jobs, running=[full])
    plan = Decider(build(PRESETS["slurm-like"])).decide(snapshot)
    published = Published(snapshot, plan, NodeIndex(snapshot.nodes.names))
    told = " ".join(
        line for job in ("1.srv", "2.srv") for line in explain(published, job, what_if_found).lines
    )
    for word in ("vnodes of", "in queue batch", "no shorter walltime", "another queue"):
        assert word in told
    assert not re.search(r"(?<!v)nodes?\b|partition|time limit", told)


def what_if_found(*_):
    return ()
