# SPDX-License-Identifier: Apache-2.0
"""The observers of cycles: metrics, promises and starts, unknown resources."""

import logging
from collections.abc import Callable
from functools import partial
from math import nan
from typing import Final

from bridge.extension_packages import installed
from bridge.extensions.service_port import Gauges, Meter
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.observing import NAME as SPEED_UPS
from bridge.planning.scheduler.kept_plan import KeptPlan
from bridge.ports import State
from bridge.rpc.controller.cycles import CycleReport
from bridge.rpc.controller.policy_switch import PolicySwitch
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.safe_cycle.decider import Decider
from bridge.service.telemetry import Metrics
from bridge.state.accuracy import RecordChanges
from bridge.state.store import Store

_log = logging.getLogger(__name__)


_OF_SNAPSHOT: Final[dict[str, Callable[[Snapshot], float]]] = {
    "jobs_pending": lambda snapshot: len(snapshot.jobs),
    "jobs_running": lambda snapshot: len(snapshot.running),
    "jobs_malleable": lambda snapshot: int(snapshot.running.malleable.sum()),
    "nodes": lambda snapshot: len(snapshot.nodes),
    "nodes_usable": lambda snapshot: int(snapshot.nodes.usable.sum()),
}

_OF_STATUS: Final[dict[str, Callable[[pb.ControllerStatus], float]]] = {
    "controller_fallbacks": lambda status: status.fallbacks,
    "controller_fallback_seconds": lambda status: status.fallback_s,
    "controller_lock_ms": lambda status: status.lock_ms_max,
    "controller_round_trip_ms": lambda status: status.round_trip_ms,
}


class CycleMeter:
    """Counts cycles in the metrics."""

    def __init__(self, metrics: Metrics, decider: Decider) -> None:
        self._metrics = metrics
        self._decider = decider
        self._snapshot: Snapshot | None = None
        self._status: pb.ControllerStatus | None = None
        # Computed when the page is read, not in every cycle.
        for name, of_snapshot in _OF_SNAPSHOT.items():
            metrics.watch(name, partial(self._of_snapshot, of_snapshot))
        for name, of_status in _OF_STATUS.items():
            metrics.watch(name, partial(self._of_status, of_status))

    def _of_snapshot(self, value: Callable[[Snapshot], float]) -> float:
        return 0.0 if self._snapshot is None else float(value(self._snapshot))

    def _of_status(self, value: Callable[[pb.ControllerStatus], float]) -> float:
        return 0.0 if self._status is None else float(value(self._status))

    def cycle(self, report: CycleReport) -> None:
        metrics = self._metrics
        for (result, code), count in report.results.items():
            metrics.decision_result(result, code, count)
        if report.status is not None:
            self._status = report.status
        for entry in report.resizes:
            metrics.resized(entry.direction, entry.result, entry.lasted_s)
        if report.published is None or report.decisions is None:
            metrics.need_full()
            return
        metrics.cycle(wall_s=report.wall_s, plan_s=report.plan_s, failures=self._decider.failures)
        for kind, count in report.decisions.by_kind.items():
            metrics.decided(kind, count)
        self._snapshot = report.published.snapshot
        metrics.set("jobs_set_aside", report.telemetry.set_aside)
        if (dispatched := report.telemetry.dispatched) is not None:
            metrics.dispatched(dispatched)
        if (savings := report.telemetry.placement) is not None:
            metrics.placement_improved(savings.before, savings.after)
        for predictor, learnt in self._decider.state.learnt.items():
            if predictor == SPEED_UPS:  # no prediction has been judged yet
                continue
            metrics.run_times(
                predictor, (learnt.judged, learnt.under, learnt.off_s, learnt.accuracy)
            )


def count_starts(metrics: Metrics, changes: RecordChanges) -> None:
    """Counts changed promises and starts in the metrics; called in the store's thread."""
    metrics.announcements_changed(changes.later, changes.earlier)
    for record in changes.started:
        if record.promise is not None:
            metrics.started(record.partition, record.at_s - record.promise.last_start_s)


class ExtensionGauges:
    """Shows the gauges of extensions; each is computed when the page of metrics is read."""

    def __init__(self, metrics: Metrics, site: Callable[[], Site]) -> None:
        self._site = site
        self._snapshot: Snapshot | None = None
        self._failed: set[str] = set()
        for extension in installed().by_name.values():
            if extension.gauges is None:
                continue
            try:
                gauges = extension.gauges.made()
                for name, text in gauges.texts.items():
                    metrics.add(name, text, partial(self._value, gauges, name))
            except Exception:  # a stranger's code
                _log.exception("gauges of the extension %s are missing", extension.name)

    def _value(self, gauges: Gauges, name: str) -> float:
        try:
            return gauges.value(name, self._snapshot, self._site())
        except Exception:  # a stranger's code; the others are shown
            if name not in self._failed:
                self._failed.add(name)
                _log.exception("the gauge %s cannot be computed", name)
            return nan

    def cycle(self, report: CycleReport) -> None:
        if report.published is not None:
            self._snapshot = report.published.snapshot


class ExtensionMeters:
    """Has extensions count over cycles; one that fails stops no other."""

    def __init__(
        self, metrics: Metrics, site: Callable[[], Site], state: Callable[[], State]
    ) -> None:
        self._meters: dict[str, Meter] = {}
        self._failed: set[str] = set()
        for name, extension in installed().by_name.items():
            if extension.meter is None:
                continue
            try:
                self._meters[name] = extension.meter.made().meter(metrics, site, state)
            except Exception:  # a stranger's code
                _log.exception("metrics of the extension %s are missing", name)

    def cycle(self, report: CycleReport) -> None:
        if report.published is None:
            return
        for name, meter in self._meters.items():
            try:
                meter.planned(report.published.snapshot, report.published.plan)
            except Exception:  # a stranger's code
                if name not in self._failed:
                    self._failed.add(name)
                    _log.exception("the extension %s does not count a cycle", name)


class StartRecorder:
    """Puts promises and starts into the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        saved = store.state().promises.kept_plan
        self._saved = saved if isinstance(saved, KeptPlan) else None

    def cycle(self, report: CycleReport) -> None:
        if self._saved is not None and report.published is not None:
            if self._saved.names != report.published.snapshot.nodes.names:
                _log.warning(
                    "the saved plan is not used: it is for other nodes; announced starts are kept"
                )
            self._saved = None
        if report.happened is not None:
            self._store.took(report.happened)


class UnknownResourceLog:
    """Logs resources in limits and FreePools that the cluster does not have, once per change."""

    def __init__(self, switch: PolicySwitch) -> None:
        self._switch = switch
        self._told: tuple[str, ...] = ()
        self._read: tuple[object, ...] | None = None

    def cycle(self, report: CycleReport) -> None:
        if report.published is None:
            return
        snapshot = report.published.snapshot
        now = (self._switch.changes, snapshot.resources, snapshot.licences)
        if now != self._read:
            self._read = now
            self.read(snapshot)

    def read(self, snapshot: Snapshot) -> None:
        """Compares the rules in force with the resources of the cluster."""
        unknown = self._switch.unknown(snapshot)
        if unknown == self._told:
            return
        self._told = unknown
        if unknown:
            names = ", ".join(unknown)
            _log.warning("limits and FreePools name resources the cluster does not have: %s", names)
        else:
            _log.info("limits and FreePools name only resources the cluster has")
