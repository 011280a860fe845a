# SPDX-License-Identifier: Apache-2.0
"""What the service tells the outside of itself: structured logs and Prometheus metrics.

| metric | type | meaning |
|---|---|---|
| schedbridge_build_info{version, policy} | gauge | 1 |
| schedbridge_cycle_seconds | histogram | report received to reply written |
| schedbridge_plan_seconds | histogram | of it, planning |
| schedbridge_jobs_pending, _jobs_running | gauge | jobs in the last snapshot |
| schedbridge_nodes, _nodes_usable | gauge | nodes in the last snapshot |
| schedbridge_decisions_total{kind} | counter | decisions sent: start, planned_start, pending |
| schedbridge_fates_total{outcome, code} | counter | what became of them |
| schedbridge_policy_failures_total | counter | cycles that fell back to the conservative plan |
| schedbridge_need_full_total | counter | times everything was asked for |
| schedbridge_start_error_seconds{partition} | histogram | actual - last announced start |
| schedbridge_announcements_changed_total{direction} | counter | announced starts that moved |
| schedbridge_run_times_judged_total{predictor} | counter | ended jobs that had been predicted |
| schedbridge_run_times_underestimated_total{predictor} | counter | those that ran for longer |
| schedbridge_run_time_error_seconds_total{predictor} | counter | sum of abs(predicted - actual) |
| schedbridge_run_time_accuracy_total{predictor} | counter | sum of smaller / larger of the two |
| schedbridge_hops_total{when} | counter | hop cost of started jobs, before and after arranging |
| schedbridge_solver_gap | gauge | of the last dispatch: (found - bound) / found over its window |
| schedbridge_solver_window_jobs | gauge | jobs in that window |
| schedbridge_solver_saved_ratio | gauge | (greedy - found) / greedy of its objective |
| schedbridge_solver_plans_total | counter | cycles in which the solver's plan served |
| schedbridge_solver_fallbacks_total{reason} | counter | cycles in which the greedy plan served |
| schedbridge_solver_killed_total | counter | solvers ended because they overran |
| schedbridge_gate_refusals_total{socket, reason} | counter | connections turned away |
| schedbridge_controller_up | gauge | 1 while the controller called within the last minute |
| schedbridge_controller_fallbacks, _controller_fallback_seconds | gauge | Slurm on its own |
| schedbridge_controller_lock_ms | gauge | longest lock of the plugin since its last call |
| schedbridge_controller_round_trip_ms | gauge | the last call, seen by the controller |
"""

import json
import logging
import sys
import threading
import time
from typing import Any
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from bridge.errors import ConfigError
from bridge.model.answer import Dispatched

_BUCKETS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_ERROR_BUCKETS_S = (
    -14_400, -3600, -600, -60, -10, -1, 0, 1, 10, 60, 600, 3600, 14_400, 86_400
)  # fmt: skip
_UP_S = 60


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the exception if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Writes one record."""
        entry: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False)


def start_logging(level: str, form: str) -> None:
    """Sends the package's log to standard error.

    Args:
        level: "debug", "info", "warning" or "error".
        form: "text" or "json".
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonFormatter()
        if form == "json"
        else logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("bridge").setLevel(level.upper())


class Metrics:
    """The service's metrics, in a registry of its own."""

    def __init__(self, version: str, policy: str) -> None:
        self.registry = CollectorRegistry()
        self._server: WSGIServer | None = None
        self._thread: threading.Thread | None = None
        self._last_call = float("-inf")
        registry = self.registry
        self._build = Gauge("schedbridge_build_info", "1", ["version", "policy"], registry=registry)
        self._version = version
        self.policy(policy)
        self._cycle = Histogram(
            "schedbridge_cycle_seconds",
            "Report received to reply written",
            buckets=_BUCKETS_S,
            registry=registry,
        )
        self._plan = Histogram(
            "schedbridge_plan_seconds",
            "Planning within a cycle",
            buckets=_BUCKETS_S,
            registry=registry,
        )
        self._gauges = {
            name: Gauge(f"schedbridge_{name}", text, registry=registry)
            for name, text in (
                ("jobs_pending", "Waiting jobs in the last snapshot"),
                ("jobs_running", "Jobs that hold nodes in the last snapshot"),
                ("nodes", "Nodes in the last snapshot"),
                ("nodes_usable", "Usable nodes in the last snapshot"),
                ("solver_gap", "(found - bound) / found over the last dispatch's window"),
                ("solver_window_jobs", "Jobs in the last dispatch's window"),
                ("solver_saved_ratio", "(greedy - found) / greedy of its objective"),
                ("controller_fallbacks", "Times the controller fell back to its own scheduler"),
                ("controller_fallback_seconds", "Seconds it spent there"),
                ("controller_lock_ms", "Longest lock of the plugin since its last call"),
                ("controller_round_trip_ms", "The last call, seen by the controller"),
            )
        }
        up = Gauge("schedbridge_controller_up", "1 while the controller calls", registry=registry)
        up.set_function(lambda: float(time.monotonic() - self._last_call < _UP_S))
        self._decisions = Counter(
            "schedbridge_decisions", "Decisions sent", ["kind"], registry=registry
        )
        self._fates = Counter(
            "schedbridge_fates", "What became of them", ["outcome", "code"], registry=registry
        )
        self._failures = Counter(
            "schedbridge_policy_failures",
            "Cycles that fell back to the conservative plan",
            registry=registry,
        )
        self._need_full = Counter(
            "schedbridge_need_full", "Times everything was asked for", registry=registry
        )
        self._gate = Counter(
            "schedbridge_gate_refusals",
            "Connections turned away",
            ["socket", "reason"],
            registry=registry,
        )
        self._solved = Counter(
            "schedbridge_solver_plans", "Cycles in which the solver's plan served",
            registry=registry,
        )  # fmt: skip
        self._unsolved = Counter(
            "schedbridge_solver_fallbacks",
            "Cycles in which the greedy plan served",
            ["reason"],
            registry=registry,
        )
        self._killed = Counter(
            "schedbridge_solver_killed", "Solvers ended because they overran", registry=registry
        )
        self._start_error = Histogram(
            "schedbridge_start_error_seconds",
            "Actual - last announced start",
            ["partition"],
            buckets=_ERROR_BUCKETS_S,
            registry=registry,
        )
        self._changed = Counter(
            "schedbridge_announcements_changed",
            "Announced starts that moved",
            ["direction"],
            registry=registry,
        )
        self._run_times = [
            Counter(f"schedbridge_{name}", text, ["predictor"], registry=registry)
            for name, text in (
                ("run_times_judged", "Ended jobs whose run time had been predicted"),
                ("run_times_underestimated", "Those of them that ran for longer"),
                ("run_time_error_seconds", "Sum of abs(predicted - actual run time)"),
                ("run_time_accuracy", "Sum of the smaller run time divided by the larger"),
            )
        ]
        self._hops = Counter(
            "schedbridge_hops",
            "Hop cost of jobs that started, where the plan stage put them and where they went",
            ["when"],
            registry=registry,
        )
        self._run_times_seen: dict[str, tuple[float, ...]] = {}
        self._failures_seen = 0

    def arranged(self, before: float, after: float) -> None:
        """Notes what the jobs that started together cost in hops."""
        self._hops.labels("before").inc(before)
        self._hops.labels("after").inc(after)

    def policy(self, name: str) -> None:
        """Notes which policy is in force."""
        self._build.clear()
        self._build.labels(self._version, name).set(1)

    def cycle(self, *, wall_s: float, plan_s: float, failures: int) -> None:
        """Notes a finished cycle."""
        self._last_call = time.monotonic()
        self._cycle.observe(wall_s)
        self._plan.observe(plan_s)
        self._failures.inc(failures - self._failures_seen)
        self._failures_seen = failures

    def dispatched(self, done: Dispatched) -> None:
        """Notes what a dispatcher did."""
        self.set("solver_window_jobs", done.jobs)
        self.set("solver_saved_ratio", 1 - done.found / done.greedy if done.greedy > 0 else 0.0)
        if done.gap is not None:
            self.set("solver_gap", done.gap)
        self._killed.inc(done.killed)
        if done.fallback:
            self._unsolved.labels(done.fallback).inc()
        else:
            self._solved.inc()

    def need_full(self) -> None:
        """Notes that everything was asked for."""
        self._last_call = time.monotonic()
        self._need_full.inc()

    def decided(self, kind: str, count: int) -> None:
        """Notes decisions sent."""
        self._decisions.labels(kind).inc(count)

    def fate(self, outcome: str, code: int, count: int = 1) -> None:
        """Notes what became of decisions."""
        self._fates.labels(outcome, str(code)).inc(count)

    def started(self, partition: str, error_s: int) -> None:
        """Notes a start that had been announced, and how far off it was."""
        self._start_error.labels(partition).observe(error_s)

    def announcements_changed(self, later: int, earlier: int) -> None:
        """Notes announced starts that moved."""
        self._changed.labels("later").inc(later)
        self._changed.labels("earlier").inc(earlier)

    def run_times(self, predictor: str, sums: tuple[float, ...]) -> None:
        """Notes how well run times were predicted.

        Args:
            predictor: whose.
            sums: since the start: jobs, underestimated ones, error s, accuracy.
        """
        seen = self._run_times_seen.get(predictor, (0.0,) * len(sums))
        for counter, now, before in zip(self._run_times, sums, seen, strict=True):
            counter.labels(predictor).inc(now - before)
        self._run_times_seen[predictor] = sums

    def gate_refused(self, socket: str, reason: str) -> None:
        """Notes a connection turned away."""
        self._gate.labels(socket, reason).inc()

    def set(self, name: str, value: float) -> None:
        """Sets one of the plain gauges."""
        self._gauges[name].set(value)

    def serve(self, address: str) -> None:
        """Serves /metrics.

        Raises:
            ConfigError: the address cannot be listened at.
        """
        host, _, port = address.rpartition(":")
        try:
            self._server, self._thread = start_http_server(
                int(port), host.strip("[]"), registry=self.registry
            )
        except OSError as error:
            reason = error.strerror or str(error)
            raise ConfigError("metrics.address", f"cannot listen at {address}: {reason}") from error

    def stop(self) -> None:
        """Stops serving."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join(timeout=5)
