# SPDX-License-Identifier: Apache-2.0
"""What runs of power in the service's process: the corridor, the signal file, the agents' reports.

Rules
    1. The corridor is put in force before each cycle, so a change counts from the next one on.
    2. The signal file is followed from the start of the service to its end. Entries are in the
       store before that is closed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bridge.extensions.operators_port import ListeningPage, ServicePart, ServiceParts
from bridge.extensions.power.calibration import NodeReports
from bridge.extensions.power.columns import NAME
from bridge.extensions.power.corridor.corridor_switch import CorridorSwitch, EntryStore, clock_of
from bridge.extensions.power.corridor.resolve import Entries
from bridge.extensions.power.corridor.signal_changes import SignalChanges
from bridge.extensions.power.corridor.signal_file import SignalFile
from bridge.extensions.power.corridor.sites import calendar_of
from bridge.extensions.power.operators.method_names import CORRIDOR, CURVES, EVENTS
from bridge.extensions.power.operators.power_changes import change_corridor, take_event
from bridge.extensions.power.power_use import PowerUse
from bridge.planning.site_rules.rules_text import PlanningSection
from bridge.rpc.operators.requester import Requester
from bridge.rpc.operators.view import pack
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.transport.private_channel import Part
from bridge.service.config import ServiceConfig
from bridge.service.extension_parts import ServiceContext
from bridge.service.telemetry import Metrics
from bridge.state.store import Store


class PowerPart(ServicePart):
    """See `bridge.extensions.operators_port.ServicePart`.

    Attributes:
        corridor: bounds of system power, over time.
        signal: the signal file that is followed; None: none is configured.
    """

    def __init__(self, context: ServiceContext) -> None:
        """Starts with the stored entries."""
        self._context = context
        config, store = context.config, context.store
        self.corridor = CorridorSwitch(
            context.switch,
            EntryStore(store.corridor, store.keep_corridor, lambda: _unkept(store)),
            calendar=calendar_of(config.planning),
            now_s=clock_of(context.cycles),
        )
        self.signal: SignalFile | None = None
        hub = context.hub
        self._reports: PowerUse | None = None if hub is None else hub.extensions.get(NAME)
        if self._reports is not None:
            self._reports.stale_s = config.power.stale_s
            _count(context.metrics, self._reports)
        self.reads: Mapping[str, Callable[[bytes], Sequence[Part]]] = {CURVES: self._curves}
        self.changes: Mapping[str, Callable[[bytes, Requester], Sequence[Part]]] = {
            CORRIDOR: self._change,
            EVENTS: self._take_event,
        }

    def start(self, admins: frozenset[int]) -> None:
        """Follows the signal file, if one is configured."""
        path, decider = self._context.config.power.signal_file, self._context.decider
        if path is not None:
            self.signal = SignalFile(
                path,
                self.corridor,
                owners=admins,
                timezone=lambda: decider.site.rules.timezone,
                changes=SignalChanges(self._context.log_change),
            )
            self.signal.start()
        signal = self.signal
        self._context.metrics.watch(
            "power_signal_up", lambda: float(signal is None or not signal.problem)
        )

    def before_cycle(self, now_s: int) -> None:
        """Puts the corridor of an instant in force."""
        self.corridor.bear(now_s)

    def reload(self, planning: PlanningSection) -> None:
        """Takes the calendar."""
        self.corridor.plan_with(calendar_of(planning))

    def in_force(self) -> Entries:
        """The sources of the corridor."""
        return self.corridor.entries()

    def status(self, reply: pb.StatusReply) -> Sequence[str]:
        """Writes whose power is not measured any more; adds problems with entries."""
        losses = () if self._reports is None else tuple(self._reports.losses())
        reply.power_losses.extend(losses)
        return (*self.corridor.problems(), *losses)

    def stop(self) -> None:
        """Ends to follow the signal file, and stores the entries."""
        if self.signal is not None:
            self.signal.stop()
        self.corridor.settle()

    def _change(self, question: bytes, who: Requester) -> Sequence[Part]:
        request = pb.CorridorRequest.FromString(question)
        return [change_corridor(self.corridor, request, who).SerializeToString()]

    def _take_event(self, question: bytes, _: Requester) -> Sequence[Part]:
        return [str(take_event(self.corridor, question)).encode()]

    def _curves(self, _: bytes) -> Sequence[Part]:
        curves: dict[str, NodeReports] = {} if self._reports is None else self._reports.curves()
        return pack(curves)


class PowerParts(ServiceParts):
    """See `bridge.extensions.operators_port.ServiceParts`."""

    def page(self, config: ServiceConfig) -> ListeningPage | None:
        """The page of events of demand response."""
        events = config.power.events
        if events is None:
            return None
        settings: dict[str, Any] = {"token_file": str(events.token_file)}
        return ListeningPage(events.address, "power.events.address", settings)

    def part(self, context: ServiceContext) -> PowerPart:
        """See `PowerPart`."""
        return PowerPart(context)


def _unkept(store: Store) -> str:
    return store.problem if store.path is not None else "memory.path is null"


def _count(metrics: Metrics, power: PowerUse) -> None:
    """Counts what agents report of power."""
    power.tell = metrics.power_refused
    power.switched = metrics.power_switched
    metrics.watch("power_nodes", lambda: float(power.counts()[0]))
    metrics.watch("power_nodes_stale", lambda: float(power.counts()[1]))
    metrics.watch("power_nodes_modelled", lambda: float(power.sensors()["modelled"]))
    metrics.watch("power_nodes_lost", lambda: float(power.sensors()["lost"]))
