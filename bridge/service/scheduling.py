# SPDX-License-Identifier: Apache-2.0
"""Assembles the planning part: the decider, the policy in force, recordings and cycles."""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from bridge.extensions.elastic.resizing.launchers import Launchers
from bridge.extensions.elastic.resizing.resize_memory import ResizeMemory
from bridge.extensions.elastic.resizing.states import Deadlines
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.ports import Environment, Solver
from bridge.recording.recorder import Recorder, Tap
from bridge.recording.recordings import encode
from bridge.registry import build
from bridge.rpc.agents.hub import Hub
from bridge.rpc.controller.announcements import Announcements
from bridge.rpc.controller.cycles import Cycles
from bridge.rpc.controller.policy_switch import PolicySwitch
from bridge.rpc.controller.switches import Switches
from bridge.rpc.reported.session import Session
from bridge.safe_cycle.decider import Decider
from bridge.safe_cycle.watchdog import Watchdog
from bridge.service.config import ServiceConfig
from bridge.service.extension_memories import ExtensionMemories
from bridge.service.extension_parts import ServiceContext, service_parts
from bridge.service.observers import (
    CycleMeter,
    ExtensionGauges,
    ExtensionMeters,
    StartRecorder,
    UnknownResourceLog,
)
from bridge.service.telemetry import Metrics
from bridge.state.change_log import ChangeLog
from bridge.state.store import Store

_log = logging.getLogger(__name__)

OVERTIME_S = 60.0
"""A policy that plans for longer is interrupted, s; the controller has fallen back by then."""


class Scheduling:
    """The planning part of a service.

    Attributes:
        cycles: answers the controller.
        decider: makes the plans.
        switch: the policy in force.
        parts: what extensions run in the service, by their names.
        tap: hands cycles to clients that record them.
    """

    def __init__(
        self,
        config: ServiceConfig,
        service: str,
        *,
        store: Store,
        solver: Solver,
        metrics: Metrics,
        launchers: Launchers,
        hub: Hub | None,
        changes: ChangeLog,
        policy_changed: Callable[[str], None],
    ) -> None:
        """Connects the parts.

        Args:
            store: closed by the caller, as `solver` is.
            hub: the hub of agents; None: there are none.
            changes: the log of operators' changes; closed by the caller.
            policy_changed: called with the name of every new policy.

        Raises:
            ConfigError: something the configuration names is missing or wrong.
        """
        self._service = service
        self.tap = Tap()
        resizes = ResizeMemory(store.state())
        memories = ExtensionMemories(hub, lambda: self.decider.site)
        self.decider = Decider(
            build(config.policy_spec),
            memories.take(resizes.others),
            site=config.planning.site(),
            environment=Environment(solver=solver),
            clock=time.monotonic,
            guard=Watchdog(OVERTIME_S),
        )
        store.watch(lambda: memories.put(resizes.put(self.decider.state)))
        self.switch = PolicySwitch(
            config.policy_spec,
            self.decider,
            changed=policy_changed,
            planning=config.planning.plain(),
        )
        self.parts = service_parts(
            ServiceContext(
                config,
                lambda: self.cycles,
                self.decider,
                self.switch,
                store,
                metrics,
                hub,
                log_change=partial(changes.add, admin=False),
            )
        )
        self._reader = UnknownResourceLog(self.switch)
        recorder = Recorder(
            self.decider,
            lambda: (self.switch.spec, self.switch.recorded()),
            wanted=self.tap.wanted,
            keep=self.tap.keep,
        )
        metrics.watch("memory_up", lambda: float(not store.problem))

        def decide(snapshot: Snapshot) -> Plan:
            self.switch.bear(self.cycles.patience_s)
            for part in self.parts.values():
                part.before_cycle(snapshot.now_s)
            self.decider.state = memories.take(resizes.take(store.catch_up(self.decider.state)))
            return recorder.decide(snapshot)

        self.cycles = Cycles(
            decide,
            session=_session(config),
            announcements=Announcements(config.limits.decisions),
            service=service,
            policy=self.switch.name,
            site=lambda: self.decider.site,
            places_by_size=self.switch.places_by_size,
            telemetry=lambda: self.decider.telemetry,
            observers=(
                CycleMeter(metrics, self.decider),
                ExtensionGauges(metrics, lambda: self.decider.site),
                ExtensionMeters(metrics, lambda: self.decider.site, lambda: self.decider.state),
                StartRecorder(store),
                self._reader,
                *(() if hub is None else (hub.extensions,)),
            ),
            launchers=launchers,
            deadlines=Deadlines(**config.resizing.model_dump(exclude={"trust_launchers"})),
            reported=None if hub is None else hub.reported,
            overlay=memories.overlay,
        )
        resizing = self.cycles.resizing
        resizes.of(resizing.resize_times)
        metrics.watch("jobs_adapting", lambda: float(len(resizing.changes)))
        if hub is not None:
            hub.reports.tell = metrics.report_refused

    def record(self, min_queue: int, wait_s: float) -> tuple[bytes, int] | None:
        """Records the next cycle with such a queue; encodes it in the caller's thread."""
        found = self.tap.next(min_queue, wait_s)
        if found is None:
            return None
        cluster = self.cycles.session.hello.cluster
        origin = {"cluster": cluster, "service": self._service, "policy": found.policy.name}
        return encode(replace(found, origin=origin)), found.snapshot.generation

    def reload(self, config: ServiceConfig) -> None:
        """Puts the section `planning` of a configuration in force.

        Raises:
            ConfigError: it is wrong; nothing has changed.
        """
        for part in self.parts.values():
            part.reload(config.planning)
        sentences = self.switch.obey(config.planning, self.cycles)
        for sentence in sentences:
            _log.warning("no longer valid under the new rules, planned again: %s", sentence)
        dropped = len(sentences)
        _log.info("limits and FreePools reloaded; %d planned starts no longer valid", dropped)
        if self.cycles.published is not None:
            self._reader.read(self.cycles.published.snapshot)


def _session(config: ServiceConfig) -> Session:
    known = config.topology
    if known.file is None:
        return Session(config.controller.retry_s)
    switches = Switches(known.file)
    switches.warn()
    return Session(config.controller.retry_s, switches.above, switches_wait_s=known.wait_s)
