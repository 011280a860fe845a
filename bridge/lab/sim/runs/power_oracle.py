# SPDX-License-Identifier: Apache-2.0
"""Decides after a run, with full knowledge, whether violations of the corridor were avoidable.

Rules
    1. A configuration is a number of nodes for each job that runs or waits at an instant, in total
       at most all nodes in service. It keeps the corridor if system power, by the jobs' true draws,
       lies within.
    2. A malleable running job has any width that it allows, a rigid one its own. A waiting job may
       stay in the queue, or run: a malleable one on any width that it allows, a rigid one on what
       it asks for.
    3. A running job could also have been delayed if it started when the present step of the
       corridor was known: after it, or at any time if the step was announced.
    4. The answer is exact: all sums of nodes and watts that configurations reach, job by job.

Costs O(jobs * widths * nodes) operations on bit sets of as many bits as there are watts. Only
machines on which jobs hold whole nodes are judged.
"""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bridge.lab.sim.corridor.power import PowerLog
from bridge.lab.sim.runs.simulation_result import SimulationResult
from bridge.lab.sim.workloads.workload import Workload
from bridge.model.job import WidthRule


class Configurations:
    """The configurations that existed in a run."""

    def __init__(
        self,
        workload: Workload,
        log: PowerLog,
        nodes: int,
        cancelled: NDArray[np.bool_] | None = None,
    ) -> None:
        """Prepares the queries.

        Args:
            workload: its jobs, which hold whole nodes.
            log: their nodes over time, and system power.
            cancelled: (n_jobs,) those that were; None: none.
        """
        self._workload, self._log, self._nodes = workload, log, nodes
        self._steps = log.setting.corridor
        ends = np.full(len(self._workload), np.iinfo(np.int64).max)
        for job, entries in log.held.items():
            if not entries[-1].nodes:
                ends[job] = entries[-1].at_s
        if cancelled is not None:
            held = np.isin(np.arange(len(ends)), list(log.held))
            ends = np.where(cancelled & ~held, 0, ends)
        self._end_s = ends
        self._at_s = {job: [each.at_s for each in one] for job, one in log.held.items()}

    @classmethod
    def of(cls, result: SimulationResult, log: PowerLog) -> "Configurations":
        """Those of a simulation of a machine that is judged (`judges`)."""
        nodes = int(result.system.nodes.usable.sum())
        return cls(result.workload, log, nodes, result.cancelled)

    def exists(self, at_s: int, lower_w: int, upper_w: int) -> bool:
        """Whether a configuration kept these bounds at an instant."""
        node = self._log.setting.node
        fixed_w = self._log.setting.base_w + node.idle_w * self._nodes
        there = (self._workload.submit_s <= at_s) & (self._end_s > at_s)
        known_s = self._known_s(at_s)
        options = [self._options(job, at_s, known_s) for job in np.flatnonzero(there).tolist()]
        return reachable(options, self._nodes, lower_w - fixed_w, upper_w - fixed_w)

    def _known_s(self, at_s: int) -> int:
        """The instant from which the present step of the corridor was known."""
        if self._steps is None:
            return self._log.origin_s
        begun = [step for step in self._steps.steps if self._log.origin_s + step.at_s <= at_s]
        if not begun or begun[-1].announced:
            return self._log.origin_s
        return self._log.origin_s + begun[-1].at_s

    def _options(self, job: int, at_s: int, known_s: int) -> list[tuple[int, int]]:
        """The widths that a job may have, with the watts beyond idle of each."""
        beyond_w = int(self._log.setting.jobs.draw_w[job]) - self._log.setting.node.idle_w
        held = self._log.held.get(job, [])
        at = bisect_right(self._at_s.get(job, []), at_s) - 1
        runs = at >= 0 and held[at].nodes > 0
        start = at
        while start > 0 and held[start - 1].nodes:
            start -= 1
        widths = {0} if not runs or held[start].at_s >= known_s else set[int]()
        own = held[at].nodes if runs else int(self._workload.processors[job])
        widths |= set(allowed_widths(self._workload, job)) or {own}
        return [(width, width * beyond_w) for width in sorted(widths)]


def judges(result: SimulationResult) -> bool:
    """Whether the machine of a run is one that is judged."""
    return result.system.pool and result.workload.requests is None


def allowed_widths(workload: Workload, job: int) -> list[int]:
    """The widths of a malleable job; none of a rigid one."""
    widths = workload.malleable
    if widths is None or not widths.max_nodes[job]:
        return []
    rule = WidthRule(int(widths.width_rule[job]))
    between = range(int(widths.min_nodes[job]), int(widths.max_nodes[job]) + 1)
    return [width for width in between if rule.allows(width)]


def reachable(
    options: Sequence[Sequence[tuple[int, int]]], nodes: int, min_w: int, max_w: int
) -> bool:
    """Whether one option for each job exists with at most these nodes and watts within the bounds.

    Args:
        options: for each job pairs (nodes, W), both 0 or more.
        min_w: what the sum must reach.
    """
    if max_w < 0:
        return False
    max_w = min(max_w, sum(max(watts for _, watts in each) for each in options))
    mask = (1 << (max_w + 1)) - 1
    sums = [1] + [0] * nodes  # bit w of entry n: n nodes with w watts can be reached
    for each in options:
        longer = [0] * (nodes + 1)
        for width, watts in each:
            for held in range(width, nodes + 1):
                longer[held] |= (sums[held - width] << watts) & mask
        sums = longer
    return any(each >> max(min_w, 0) for each in sums)
