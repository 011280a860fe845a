# SPDX-License-Identifier: Apache-2.0
"""A job in select and place gets the same plan from qsub, from sbatch --chunks and from a table."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bridge.errors import RequestError
from bridge.pbs.report.translation import HELLO_FIELDS, Translation
from bridge.registry import PRESETS, build
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.session import Session
from schedbridge_contracts import builders
from schedbridge_contracts.cycles import Memory, run
from tests.pbs_tables import NOW_S, a_job, a_vnode, running, some_tables
from tests.unit.rpc.test_encode import through_the_wire
from tests.unit.rpc.worlds import a_hello

NODES, CPUS, MEM_MIB = 4, 4, 4096
PLACES = ("free", "pack", "scatter", "free:excl", "pack:excl", "scatter:excl")


def a_request(kinds, mib_per_cpu, place, limit_s):
    """Chunks of kinds (count, CPUs).

    Slurm holds one amount of memory for a job: per node for `scatter`, else per CPU.
    """
    maximum = max(cpus for _, cpus in kinds)
    mem_mib = [
        (maximum if place.startswith("scatter") else cpus) * mib_per_cpu for _, cpus in kinds
    ]
    select = "+".join(
        f"{n}:ncpus={cpus}" + (f":mem={mib}mb" if mib else "")
        for (n, cpus), mib in zip(kinds, mem_mib, strict=True)
    )
    return select, place, limit_s


kinds = st.tuples(st.integers(1, 3), st.integers(1, CPUS))
requests = st.builds(
    a_request,
    st.lists(kinds, min_size=1, max_size=2),
    st.sampled_from((0, 128, 512, 1000)),
    st.sampled_from(PLACES),
    st.integers(1, 10).map(lambda n: 60 * n),
)
queues = st.lists(requests, min_size=1, max_size=5)
busy = st.lists(st.tuples(st.integers(1, NODES), st.integers(1, 2)), max_size=2, unique_by=lambda e: e[0])  # fmt: skip # noqa: E501


def by_qsub(jobs, held):
    """As the link to PBS reports them."""
    tables = {
        f"{at}": a_job(
            select, place, qtime=str(NOW_S - 100 + at),
            listed={"walltime": f"00:{limit_s // 60:02}:00"},
        )
        for at, (select, place, limit_s) in enumerate(jobs)
    }  # fmt: skip
    tables |= {f"9{node}": running(f"(n{node}:ncpus={cpus})", stime=str(NOW_S))
               for node, cpus in held}  # fmt: skip
    vnodes = {f"n{at}": a_vnode(f"n{at}", mem=f"{MEM_MIB}mb") for at in range(1, NODES + 1)}
    report = Translation().report(some_tables(tables, vnodes))
    session = Session()
    session.greet(a_hello(**HELLO_FIELDS))
    assert session.apply(
        pb.CycleRequest(
            epoch=1, generation=1, now_s=NOW_S, jobs=report.jobs.values(),
            nodes=report.nodes.values(), partitions=report.partitions,
            reservations=report.reservations, licences=report.licences,
        )
    )  # fmt: skip
    return session.snapshot()[0]


def by_table(jobs, held):
    """As a trace or another program builds the tables."""
    return builders.a_snapshot(
        nodes=[builders.a_node(cpus=CPUS, mem_mib=MEM_MIB)] * NODES,
        jobs=[
            builders.a_job(id=str(at), chunks=f"{select},place={place}", limit_s=limit_s,
                           submit_s=NOW_S - 100 + at)
            for at, (select, place, limit_s) in enumerate(jobs)
        ],
        running=[
            builders.a_running_job(nodes=(node - 1,), cpus=cpus, shared=True, start_s=NOW_S,
                                   end_s=NOW_S + 600, id=f"9{node}")
            for node, cpus in held
        ],
        now_s=NOW_S,
    )()  # fmt: skip


def planned(snapshot, preset):
    """For each job when and where it starts, with its chunks of each kind on each node."""
    plan = run(snapshot, Memory(), build(PRESETS[preset]))
    found = {}
    for row, job in enumerate(plan.job.tolist()):
        span = slice(int(plan.indptr[row]), int(plan.indptr[row + 1]))
        names = [snapshot.nodes.names[node] for node in plan.nodes[span].tolist()]
        groups = plan.groups[span] if plan.groups is not None else np.zeros((len(names), 0))
        used = [tuple(filter(None, each)) for each in groups.astype(int).tolist()]
        found[snapshot.jobs.id[job]] = (
            int(plan.start_s[row]), dict(zip(names, used, strict=True)),
            plan.tasks[span].tolist() if not any(used) else [],
        )  # fmt: skip
    return found


@pytest.mark.parametrize("preset", ["slurm-like", "openccs", "pbs"])
@settings(max_examples=25, deadline=None)
@given(queues, busy)
def test_the_same_plan_by_every_way(preset, jobs, held):
    try:
        table = by_table(jobs, held)
        slurm = through_the_wire(table)
    except RequestError:
        assume(False)  # Slurm cannot hold such a request
    plans = [planned(each, preset) for each in (by_qsub(jobs, held), slurm, table)]
    assert plans[0] == plans[1] == plans[2]
    assert len(plans[0]) == len(jobs)
