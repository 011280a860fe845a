# SPDX-License-Identifier: Apache-2.0
"""Problems of the reference planner as `plan_nodes` reads them, and its results to compare."""

import numpy as np

from bridge.core import NEVER, UNPLANNED, NodeProblem, pack_nodes, plan_nodes
from schedbridge_contracts.reference_problem import Problem, Result


def masks(sets: list[set[int]], n_nodes: int) -> np.ndarray:
    member = np.zeros((len(sets), n_nodes), dtype=bool)
    for row, nodes in enumerate(sets):
        member[row, sorted(nodes)] = True
    return pack_nodes(member)


def table_of(case: Problem) -> NodeProblem:
    """The problem as the kernels read it."""
    n_res = len(case.capacity[0])
    n_counters = len(case.counters)

    def ints(values, dtype=np.int64, columns=None):
        array = np.array(values, dtype=dtype)
        return array if columns is None else array.reshape(-1, columns)

    def absolute(time):
        return NEVER if time == NEVER else case.now + time

    alternatives = [a for job in case.jobs for a in job.alternatives]
    n_nodes = len(case.capacity)
    return NodeProblem(
        now=case.now,
        depth=case.depth,
        select=case.select,
        capacity=ints(case.capacity, columns=n_res),
        node_rank=ints(case.rank, np.int32),
        run_indptr=np.cumsum([0, *(len(run.uses) for run in case.running)], dtype=np.int64),
        run_nodes=ints([node for run in case.running for node in run.uses], np.int32),
        run_use=ints([use for run in case.running for use in run.uses.values()], columns=n_res),
        run_end=ints([absolute(run.end) for run in case.running]),
        run_exclusive=ints([run.exclusive for run in case.running], bool),
        run_counter=np.array([run.counters for run in case.running], dtype=np.int64).reshape(
            len(case.running), n_counters
        ),
        class_nodes=masks(case.classes, n_nodes),
        blackout_class=ints([b[0] for b in case.blackouts], np.int32),
        blackout_start=ints([absolute(b[1]) for b in case.blackouts]),
        blackout_end=ints([absolute(b[2]) for b in case.blackouts]),
        blackout_nodes=masks([b[3] for b in case.blackouts], n_nodes),
        counter_capacity=ints(case.counters),
        job_counter=np.array([job.counters for job in case.jobs], dtype=np.int64).reshape(
            len(case.jobs), n_counters
        ),
        alt_indptr=np.cumsum([0, *(len(job.alternatives) for job in case.jobs)], dtype=np.int64),
        alt_class=ints([a.node_class for a in alternatives], np.int32),
        alt_time_limit_s=ints([a.time_limit for a in alternatives]),
        alt_min_nodes=ints([a.min_nodes for a in alternatives], np.int32),
        alt_max_nodes=ints([a.max_nodes for a in alternatives], np.int32),
        per_node=ints([job.per_node for job in case.jobs], columns=n_res),
        tasks=ints([job.tasks for job in case.jobs], np.int32),
        per_task=ints([job.per_task for job in case.jobs], columns=n_res),
        max_tasks_per_node=ints([job.max_tasks for job in case.jobs], np.int32),
        exclusive=ints([job.exclusive for job in case.jobs], bool),
        not_before=ints([case.now + job.not_before for job in case.jobs]),
        width_rule=ints([job.width_rule for job in case.jobs], np.int8),
        required=ints([job.required for job in case.jobs], np.int32),
        required_nodes=masks(case.required, n_nodes),
        alt_latest=ints([absolute(a.latest) for a in alternatives]),
        beside_depth=ints([job.beside_depth for job in case.jobs], bool),
    )


def kernel(case: Problem) -> list[Result]:
    plan = plan_nodes(table_of(case))
    answers = []
    for j in range(len(case.jobs)):
        mine = slice(plan.indptr[j], plan.indptr[j + 1])
        assert plan.nodes[mine].tolist() == sorted(plan.nodes[mine].tolist())
        start, missed = int(plan.start[j]), int(plan.missed_start[j])
        answers.append(
            Result(
                start if start in (UNPLANNED, NEVER) else start - case.now,
                int(plan.alternative[j]),
                dict(zip(plan.nodes[mine].tolist(), plan.tasks[mine].tolist(), strict=True)),
                int(plan.blocked_by[j]),
                int(plan.blocked_counter[j]),
                int(plan.fit_now[j]),
                missed if missed == NEVER else missed - case.now,
            )
        )
    return answers
