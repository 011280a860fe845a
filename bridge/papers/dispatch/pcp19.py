# SPDX-License-Identifier: Apache-2.0
"""PCP'19: every job's units as optional intervals on every node: the baseline that PCP'20 replaces.

The model of a window of jobs Q on nodes N and resources R:

    variables       starts s_i: |Q|; presences x_ing of copy g of job i's unit on node n:
                    p_in = min(rn_i, units of the job that fit on the node when it is empty) each,
                    so sum over i and n of p_in. It grows with the system.
    number          as many of a job's copies are present as it has units.
    nodes           the use of a resource never exceeds that of its node: a cumulative for each
                    node and resource, of optional intervals that start when their job does.
    objective       the sum of the jobs' weights times their starts, as in PCP'20.

Source: Galleguillos, Kiziltan, Sîrbu, Babaoglu: Constraint Programming-Based Job Dispatching for
Modern HPC Applications, CP 2019, as described in section 2.2 of the PCP'20 paper.
Deviates
    1. CP-SAT has no alternative constraint: the copies share their job's start variable, and their
       number is a linear constraint.
    2. The resources of all nodes together, used by what runs and by all jobs, are a cumulative as
       well: the paper's scheduling model.
    3. Units of several kinds (several groups) have separate copies; the paper has one kind.
       If the number of units on a node is bounded, so is the number of copies.
    4. The search is CP-SAT's, with the jobs' static priorities as strategy for the starts.
"""

from dataclasses import dataclass

from ortools.sat.python import cp_model
from ortools.sat.python.cp_model import CpModel, IntervalVar, IntVar

from bridge.model.decisions.answer import Answer
from bridge.papers.dispatch.cp_dispatch import AskFor, CpDispatcher, Reach, WindowSchedule
from bridge.papers.dispatch.instance import Instance, WindowJob
from bridge.papers.dispatch.window_model import Started, pool, started, taken

SEARCH = (
    "max_presolve_iterations: 1 cp_model_probing_level: 0 symmetry_level: 0 linearization_level: 0"
)


@dataclass(frozen=True)
class Copies:
    """The model of one instance.

    Attributes:
        start: (J,) variables.
        copies: for each job its copies: the group, the node, the presence.
    """

    model: CpModel
    start: list[IntVar]
    copies: list[list[tuple[int, int, IntVar]]]


def build(instance: Instance, weights: list[int]) -> Copies:
    """Makes the model."""
    made = started(instance, weights)
    on_node: list[list[tuple[IntervalVar, tuple[int, ...]]]] = [[] for _ in instance.used]
    copies = [_copies(made, instance, i, job, on_node) for i, job in enumerate(instance.jobs)]
    for n, (used, there) in enumerate(zip(instance.used, on_node, strict=True)):
        for r, maximum in enumerate(instance.capacity[n].tolist()):
            wanting = [(interval, want[r]) for interval, want in there if want[r]]
            if wanting:
                intervals, demands = taken(made, used, r)
                intervals += [interval for interval, _ in wanting]
                demands += [want for _, want in wanting]
                made.model.add_cumulative(intervals, demands, maximum)
    pool(made, instance)
    order = sorted(range(len(instance.jobs)), key=lambda i: -instance.jobs[i].slowdown_now)
    made.model.add_decision_strategy(
        [made.start[i] for i in order], cp_model.CHOOSE_FIRST, cp_model.SELECT_MIN_VALUE
    )
    return Copies(made.model, made.start, copies)


def _copies(
    made: Started,
    instance: Instance,
    i: int,
    job: WindowJob,
    on_node: list[list[tuple[IntervalVar, tuple[int, ...]]]],
) -> list[tuple[int, int, IntVar]]:
    """One job's copies; adds their intervals to those of the other jobs."""
    model = made.model
    found: list[tuple[int, int, IntVar]] = []
    groups: dict[int, list[int]] = {}
    for j, unit in enumerate(job.units):
        groups.setdefault(unit.group, []).append(j)
    for group, members in groups.items():
        unit = job.units[members[0]]
        maximum = 1 if job.scatter else job.max_per_node[group] or len(members)
        present: list[IntVar] = []
        for n in unit.nodes:
            fit = min(
                (
                    int(has) // want
                    for has, want in zip(instance.capacity[n], unit.want, strict=True)
                    if want
                ),
                default=len(members),
            )
            here = sum(job.place[j] == n for j in members)
            previous: IntVar | None = None
            for copy in range(min(fit, maximum, len(members))):
                x = model.new_bool_var(f"x{i}_{n}_{group}_{copy}")
                model.add_hint(x, copy < here)
                interval = model.new_optional_fixed_size_interval_var(
                    made.start[i], job.length_s, x, ""
                )
                on_node[n].append((interval, unit.want))
                if previous is not None:
                    model.add_implication(x, previous)
                previous = x
                present.append(x)
                found.append((group, n, x))
        model.add(sum(present) == len(members))
    if job.scatter and len(groups) > 1:
        by_node: dict[int, list[IntVar]] = {}
        for _, n, x in found:
            by_node.setdefault(n, []).append(x)
        for several in by_node.values():
            if len(several) > 1:
                model.add_at_most_one(several)
    return found


@dataclass(frozen=True)
class Pcp19(CpDispatcher):
    """Plans the first jobs of the order by PCP'19, the others around them; see the module."""

    name = "pcp19"
    reach = Reach(jobs=14, units=70, nodes=1e9, power=0.5)
    bounds = True

    def solve(
        self, instance: Instance, weights: list[int], ask: AskFor, solving_s: float = 1.0
    ) -> tuple[WindowSchedule | None, Answer]:
        """See `CpDispatcher`."""
        del solving_s
        built = build(instance, weights)
        answer = ask(built.model, 1.0, SEARCH)
        if answer.values is None:
            return None, answer
        values = answer.values
        nodes = []
        for job, copies in zip(instance.jobs, built.copies, strict=True):
            there = [(group, n) for group, n, x in copies if values[x.index]]
            own = iter(sorted(there))
            nodes.append([next(own)[1] for _ in job.units])
        return WindowSchedule([int(values[s.index]) for s in built.start], nodes), answer
