# SPDX-License-Identifier: Apache-2.0
"""The service's Prometheus metrics.

| metric | type | meaning |
|---|---|---|
| schedbridge_build_info{version, policy} | gauge | 1 |
| schedbridge_cycle_seconds | histogram | report received to reply written |
| schedbridge_plan_seconds | histogram | of it, planning |
| schedbridge_jobs_pending, _jobs_running | gauge | jobs in the last snapshot |
| schedbridge_jobs_malleable | gauge | running ones that can change their width |
| schedbridge_jobs_set_aside | gauge | waiting jobs left out, because planning fails with them |
| schedbridge_nodes, _nodes_usable | gauge | nodes in the last snapshot |
| schedbridge_decisions_total{kind} | counter | decisions sent: start, planned_start, pending |
| schedbridge_decision_results_total{outcome, code} | counter | their results |
| schedbridge_policy_failures_total | counter | cycles that fell back to the conservative plan |
| schedbridge_need_full_total | counter | times everything was asked for |
| schedbridge_start_error_seconds{partition} | histogram | actual - last announced start |
| schedbridge_announcements_changed_total{direction} | counter | announced starts that moved |
| schedbridge_run_times_judged_total{predictor} | counter | ended jobs that had been predicted |
| schedbridge_run_times_underestimated_total{predictor} | counter | those that ran for longer |
| schedbridge_run_time_error_seconds_total{predictor} | counter | sum of abs(predicted - actual) |
| schedbridge_run_time_accuracy_total{predictor} | counter | sum of smaller / larger of the two |
| schedbridge_hops_total{when} | counter | hop cost of started jobs, before and after improvement |
| schedbridge_solver_gap | gauge | (found - bound) / found over the last window; NaN: unknown |
| schedbridge_solver_window_jobs | gauge | jobs in that window |
| schedbridge_solver_saved_ratio | gauge | (greedy - found) / greedy of its objective |
| schedbridge_solver_plans_total | counter | cycles in which the solver's plan was used |
| schedbridge_solver_fallbacks_total{reason} | counter | cycles in which the greedy plan was used |
| schedbridge_solver_killed_total | counter | solvers ended because they overran |
| schedbridge_resizes_total{direction, outcome} | counter | requests and their results |
| schedbridge_adaptation_seconds{direction} | histogram | decision to completion of a resize |
| schedbridge_jobs_adapting | gauge | jobs that are changing their width |
| schedbridge_launchers, _agents | gauge | jobs whose launcher is connected; nodes with an agent |
| schedbridge_power_nodes, _power_nodes_stale | gauge | nodes whose power is known, or was |
| schedbridge_power_nodes_modelled | gauge | those of them whose power is modelled by their load |
| schedbridge_power_nodes_lost | gauge | nodes whose measurement is lost |
| schedbridge_power_switches_total{before, after} | counter | changes of a node's source |
| schedbridge_power_refusals_total{agent, reason} | counter | impossible values of agents |
| schedbridge_report_refusals_total{node, reason} | counter | reports on jobs placed elsewhere |
| schedbridge_power_signal_up | gauge | 1 while power.signal_file is read, or none is configured |
| schedbridge_gate_refusals_total{socket, reason} | counter | connections turned away |
| schedbridge_controller_up | gauge | 1 while the controller called within the last minute |
| schedbridge_memory_up | gauge | 1 while the memory's file is in use, or none is configured |
| schedbridge_controller_fallbacks, _controller_fallback_seconds | gauge | fallback to Slurm |
| schedbridge_controller_lock_ms | gauge | longest lock of the plugin since its last call |
| schedbridge_controller_round_trip_ms | gauge | the last call, seen by the controller |

Further ones are those of extensions (`bridge.extensions.service_port`: `Gauges` and `Meters`).
"""

import time
from collections.abc import Callable, Sequence
from math import nan
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from bridge.line_text import on_one_line
from bridge.model.decisions.answer import Dispatched

MAX_LABEL = 200
_BUCKETS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_ERROR_BUCKETS_S = (
    -14_400, -3600, -600, -60, -10, -1, 0, 1, 10, 60, 600, 3600, 14_400, 86_400
)  # fmt: skip
_ADAPTATION_BUCKETS_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
_UP_S = 60


_GAUGES: Final = (
    ("jobs_pending", "Waiting jobs in the last snapshot"),
    ("jobs_running", "Jobs that hold nodes in the last snapshot"),
    ("jobs_malleable", "Running jobs that can change their width"),
    ("jobs_set_aside", "Waiting jobs left out, because planning fails with them"),
    ("jobs_adapting", "Jobs that are changing their width"),
    ("launchers", "Jobs whose launcher is connected"),
    ("agents", "Nodes that have an agent"),
    ("power_nodes", "Nodes with a current power, measured or modelled"),
    ("power_nodes_stale", "Nodes whose last power is too old to be used"),
    ("power_nodes_modelled", "Nodes whose power is modelled by their load"),
    ("power_nodes_lost", "Nodes whose power is not measured any more"),
    ("nodes", "Nodes in the last snapshot"),
    ("nodes_usable", "Usable nodes in the last snapshot"),
    ("solver_gap", "(found - bound) / found over the last dispatch's window"),
    ("solver_window_jobs", "Jobs in the last dispatch's window"),
    ("solver_saved_ratio", "(greedy - found) / greedy of its objective"),
    ("power_signal_up", "1 while power.signal_file is read, or none is configured"),
    ("memory_up", "1 while the file memory.path is in use, or none is configured"),
    ("controller_fallbacks", "Times the controller fell back to its own scheduler"),
    ("controller_fallback_seconds", "Seconds it spent there"),
    ("controller_lock_ms", "Longest lock of the plugin since its last call"),
    ("controller_round_trip_ms", "The last call, seen by the controller"),
)
"""Name and text of each gauge that is set to the present value."""

_RUN_TIMES: Final = (
    ("run_times_judged", "Ended jobs whose run time had been predicted"),
    ("run_times_underestimated", "Those of them that ran for longer"),
    ("run_time_error_seconds", "Sum of abs(predicted - actual run time)"),
    ("run_time_accuracy", "Sum of the smaller run time divided by the larger"),
)
"""Name and text of each counter by predictor."""


class Metrics:
    """The service's metrics, in a separate registry."""

    def __init__(self, version: str, policy: str) -> None:
        self.registry = CollectorRegistry()
        self._version = version
        self._last_call = float("-inf")
        self._build = Gauge(
            "schedbridge_build_info", "1", ["version", "policy"], registry=self.registry
        )
        self.policy(policy)
        self._gauges = {name: self.gauge(name, text) for name, text in _GAUGES}
        up = Gauge(
            "schedbridge_controller_up", "1 while the controller calls", registry=self.registry
        )
        up.set_function(lambda: float(time.monotonic() - self._last_call < _UP_S))
        counter, seconds = self.counter, self.histogram
        self._cycle = seconds("cycle_seconds", "Report received to reply written")
        self._plan = seconds("plan_seconds", "Planning within a cycle")
        self._decisions = counter("decisions", "Decisions sent", "kind")
        self._decision_results = counter(
            "decision_results", "Outcomes of decisions", "outcome", "code"
        )
        self._failures = counter(
            "policy_failures", "Cycles that fell back to the conservative plan"
        )
        self._need_full = counter("need_full", "Full reports requested")
        self._gate = counter("gate_refusals", "Connections turned away", "socket", "reason")
        self._power = counter("power_refusals", "Impossible values of agents", "agent", "reason")
        self._reports = counter(
            "report_refusals",
            "Reports of nodes on jobs placed elsewhere",
            "node",
            "reason",
        )
        self._power_switches = counter(
            "power_switches", "Changes of the source of a node's power", "before", "after"
        )
        self._solved = counter("solver_plans", "Cycles in which the solver's plan was used")
        self._unsolved = counter(
            "solver_fallbacks", "Cycles in which the greedy plan was used", "reason"
        )
        self._killed = counter("solver_killed", "Solvers killed because they exceeded their time")
        self._start_error = seconds(
            "start_error_seconds", "Actual - last announced start", "partition",
            buckets=_ERROR_BUCKETS_S,
        )  # fmt: skip
        self._changed = counter("announcements_changed", "Announced starts that moved", "direction")
        self._run_times = [counter(name, text, "predictor") for name, text in _RUN_TIMES]
        self._resizes = counter(
            "resizes", "Resizes of running jobs: requested, completed, withdrawn, failed, ended",
            "direction", "outcome",
        )  # fmt: skip
        self._adaptation = seconds(
            "adaptation_seconds", "Decision to completion of a resize", "direction",
            buckets=_ADAPTATION_BUCKETS_S,
        )  # fmt: skip
        self._hops = counter(
            "hops",
            "Hop cost of jobs that started, where the plan stage put them and where they went",
            "when",
        )
        self._run_times_seen: dict[str, tuple[float, ...]] = {}
        self._failures_seen = 0

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        """Adds a counter.

        Raises:
            ValueError: there is such a metric, or the name is not one.
        """
        return Counter(f"schedbridge_{name}", text, labels, registry=self.registry)

    def histogram(
        self, name: str, text: str, *labels: str, buckets: Sequence[float] = _BUCKETS_S
    ) -> Histogram:
        """Adds a histogram, by default of durations in s; raises as `counter` does."""
        return Histogram(
            f"schedbridge_{name}", text, labels, buckets=buckets, registry=self.registry
        )

    def placement_improved(self, before: float, after: float) -> None:
        """Counts the hops of the jobs that started together."""
        self._hops.labels("before").inc(before)
        self._hops.labels("after").inc(after)

    def resized(self, direction: str, result: str, lasted_s: int | None) -> None:
        """Counts a resize that began or ended.

        Args:
            direction: grow or shrink.
            result: see `bridge.extensions.elastic.resizing.journal`.
            lasted_s: from its decision to its end; None: not known.
        """
        self._resizes.labels(direction, result).inc()
        if result == "completed" and lasted_s is not None:
            self._adaptation.labels(direction).observe(lasted_s)

    def policy(self, name: str) -> None:
        """Sets the policy in force."""
        self._build.clear()
        self._build.labels(self._version, name).set(1)

    def cycle(self, *, wall_s: float, plan_s: float, failures: int) -> None:
        self._last_call = time.monotonic()
        self._cycle.observe(wall_s)
        self._plan.observe(plan_s)
        self._failures.inc(failures - self._failures_seen)
        self._failures_seen = failures

    def dispatched(self, done: Dispatched) -> None:
        """Counts the result of a dispatcher."""
        self.set("solver_window_jobs", done.jobs)
        self.set("solver_saved_ratio", 1 - done.found / done.greedy if done.greedy > 0 else 0.0)
        self.set("solver_gap", nan if done.gap is None else done.gap)
        self._killed.inc(done.killed)
        if done.fallback:
            self._unsolved.labels(done.fallback).inc()
        else:
            self._solved.inc()

    def need_full(self) -> None:
        """Counts a request for a full report."""
        self._last_call = time.monotonic()
        self._need_full.inc()

    def decided(self, kind: str, count: int) -> None:
        """Counts sent decisions."""
        self._decisions.labels(kind).inc(count)

    def decision_result(self, result: str, code: int, count: int = 1) -> None:
        self._decision_results.labels(result, str(code)).inc(count)

    def started(self, partition: str, error_s: int) -> None:
        """Counts an announced start, with its error."""
        self._start_error.labels(_label(partition)).observe(error_s)

    def announcements_changed(self, later: int, earlier: int) -> None:
        """Counts announced starts that moved."""
        self._changed.labels("later").inc(later)
        self._changed.labels("earlier").inc(earlier)

    def run_times(self, predictor: str, sums: tuple[float, ...]) -> None:
        """Sets the accuracy of predicted run times.

        Args:
            sums: since the start: jobs, underestimated ones, error s, accuracy.
        """
        seen = self._run_times_seen.get(predictor, (0.0,) * len(sums))
        for counter, now, before in zip(self._run_times, sums, seen, strict=True):
            counter.labels(predictor).inc(now - before)
        self._run_times_seen[predictor] = sums

    def gate_refused(self, socket: str, reason: str, count: int = 1) -> None:
        """Counts rejected connections."""
        self._gate.labels(socket, reason).inc(count)

    def power_refused(self, agent: str, reason: str) -> None:
        """Counts a refused value of an agent."""
        self._power.labels(_label(agent), reason).inc()

    def report_refused(self, node: str, reason: str) -> None:
        """Counts a report of a node on a job that is not placed there."""
        self._reports.labels(_label(node), reason).inc()

    def power_switched(self, before: str, after: str) -> None:
        """Counts a change of the source of a node's power."""
        self._power_switches.labels(before, after).inc()

    def set(self, name: str, value: float) -> None:
        """Sets one of the plain gauges."""
        self._gauges[name].set(value)

    def watch(self, name: str, value: Callable[[], float]) -> None:
        """Computes one of the plain gauges when the page is read."""
        self._gauges[name].set_function(value)

    def gauge(self, name: str, text: str) -> Gauge:
        """Adds a gauge, which is 0; raises as `counter` does."""
        return Gauge(f"schedbridge_{name}", text, registry=self.registry)

    def add(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Adds a gauge that is computed when the page is read; raises as `counter` does."""
        self.gauge(name, text).set_function(value)

    def page(self) -> bytes:
        """The page /metrics."""
        return generate_latest(self.registry)


def _label(name: str) -> str:
    """A name of others as a label: short, on one line, and text in UTF-8; else no page is made."""
    return on_one_line(name[:MAX_LABEL].encode("utf-8", "replace").decode())
