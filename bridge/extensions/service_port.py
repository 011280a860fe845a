# SPDX-License-Identifier: Apache-2.0
"""What an extension may add to the service beside the cycle: the second page of the port.

    section     of `planning:`, from which its part of the site's rules is read
    reader      of what agents on the nodes report; and orders for them
    memory      what it learns over the controller's reports; kept in the memory file
    gauges      on the page of metrics
    meter       what it counts over cycles, on the page of metrics
    operators   requests of operators, by the commands of the extension
    service     what it runs in the service's process: state that operators read and change
    methods     how methods of the operators' service are answered, in the operators' process

Each is optional (`bridge.extensions.port.Extension`), and one that fails stops no other. Readers
and memories are derived from the classes here, which do nothing.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol
from zoneinfo import ZoneInfo

from bridge.model.plan import Plan
from bridge.model.rules.site import Site, SitePart
from bridge.model.snapshot import Snapshot
from bridge.ports import State

RENEW_S: Final = 2.0
"""How often `AgentReader.renew` is called."""


class SiteSection(Protocol):
    """What an extension's section of `planning:` can do, beside being a pydantic model."""

    def check(self, zone: ZoneInfo) -> None:
        """Raises ValueError if two entries exclude each other, or a time is never in force."""

    def repeated(self) -> set[tuple[str | None, str | None]]:
        """Cron and length of its times that repeat."""

    def openings(self) -> int:
        """The maximum number of times per day at which these come into force."""

    def part(self) -> SitePart | None:
        """The extension's part of a `Site`; None: there are no rules."""


class SiteRules(Protocol):
    """How an extension's rules are written in the configuration.

    Attributes:
        key: the name of its section in `planning:`.
        section: the class of its section, a pydantic model and `SiteSection`.
        default: a section that is not written, or null; None: no section.
    """

    key: str
    section: Any
    default: Any
    description: str


class AgentReader:
    """Reads what agents report, and orders; methods are called by any thread, and never wait."""

    def arrived(self, agent: Any) -> None:
        """An agent has opened its stream, a `bridge.rpc.agents.launcher_table.AgentStream`."""

    def left(self, agent: Any, lost: Collection[str]) -> None:
        """Its stream has ended; `lost`: nodes that have no agent any more."""

    def took(self, agent: str, mine: Collection[str], uses: Any) -> None:
        """An agent has reported use.

        Args:
            agent: its node.
            mine: the nodes of which it is the newest agent.
            uses: a `bridge.rpc.pb.agent_pb2.Uses`.
        """

    def kept(self, mine: Collection[str], shares: Any) -> None:
        """An agent has reported how it keeps CPU shares.

        Args:
            mine: as in `took`.
            shares: a `bridge.rpc.pb.agent_pb2.SharesInForce`.
        """

    def planned(self, snapshot: Snapshot, plan: Plan) -> None:
        """A report has been answered with a plan."""

    def renew(self) -> None:
        """Called every `RENEW_S`: orders that hold for a time may be repeated."""


class AgentReaders(Protocol):
    """Makes the reader of one service."""

    def reader(self, clock: Callable[[], float]) -> AgentReader:
        """A reader without reports; `clock`: monotonic, s."""


class Memory:
    """What an extension learns over reports; the memory file keeps it beside that of predictors."""

    def take(self, state: State) -> State:
        """Merges its part of a stored state; returns the state without it."""
        return state

    def put(self, state: State) -> State:
        """A state for the store, with its part; the same object if it has none."""
        return state

    def overlay(self, snapshot: Snapshot) -> Snapshot:
        """A report with what it knows of its jobs; learns from the report."""
        return snapshot


class Memories(Protocol):
    """Makes the memory of one service."""

    def memory(self, hub: Any, site: Callable[[], Site]) -> Memory:
        """An empty memory.

        Args:
            hub: a `bridge.rpc.agents.hub.Hub`; None: the service has no agents.
            site: the rules in force.
        """


class Gauges(Protocol):
    """Present values on the service's page of metrics.

    Attributes:
        texts: name of each, without the prefix `schedbridge_`, and what it is.
    """

    texts: Mapping[str, str]

    def value(self, name: str, snapshot: Snapshot | None, site: Site) -> float:
        """A value by the last snapshot, or before the first; and by the rules in force."""


class Meter(Protocol):
    """Counts over cycles."""

    def planned(self, snapshot: Snapshot, plan: Plan) -> None:
        """A report has been answered with a plan."""


class Meters(Protocol):
    """Makes the meter of one service."""

    def meter(self, metrics: Any, site: Callable[[], Site], state: Callable[[], State]) -> Meter:
        """A meter that has counted nothing; adds its metrics to the page.

        Args:
            metrics: a `bridge.service.telemetry.Metrics`.
            site: the rules in force.
            state: what was learnt up to the last cycle.
        """


class Operators(Protocol):
    """Makes the handler of operators' requests of one service."""

    def handler(self, cycles: Any, decider: Any, switch: Any) -> Callable[[bytes, str], bytes]:
        """A handler: takes a message and the user's name, and returns a message.

        The name is empty for an administrator. A ConfigError of the handler is shown to the user.

        Args:
            cycles: a `bridge.rpc.controller.cycles.Cycles`.
            decider: a `bridge.safe_cycle.decider.Decider`.
            switch: a `bridge.rpc.controller.policy_switch.PolicySwitch`.
        """


class ServicePart(Protocol):
    """What an extension runs in the service's process; methods but `before_cycle` by any thread.

    Attributes:
        reads: by method of `OperatorMethods.reads`: message to the parts of an answer; these
            change nothing.
        changes: by method of `OperatorMethods.changes` and of its page: a message, and a
            `bridge.rpc.operators.changes.Requester`, to the parts of an answer.
    """

    reads: Mapping[str, Callable[[bytes], Sequence[Any]]]
    changes: Mapping[str, Callable[[bytes, Any], Sequence[Any]]]

    def start(self, admins: frozenset[int]) -> None:
        """The service begins to serve; `admins`: user ids."""

    def before_cycle(self, now_s: int) -> None:
        """Puts its part of the site's rules in force; under the lock of the cycle."""

    def reload(self, planning: Any) -> None:
        """Takes a `PlanningSection` that is about to come into force."""

    def in_force(self) -> object:
        """What orders of administrators change, for answers from a view: an immutable value.

        Each change of it counts in `PolicySwitch.changes`.
        """

    def status(self, reply: Any) -> Sequence[str]:
        """Writes its fields of a `StatusReply`; returns its problems, for answers from a view."""

    def stop(self) -> None:
        """The service ends; the store is still open."""


@dataclass(frozen=True)
class ListeningPage:
    """A page over HTTP, on which other programs call.

    Attributes:
        address: HOST:PORT to listen at.
        key: where the configuration names it.
        settings: for `OperatorMethods.page`; plain values.
    """

    address: str
    key: str
    settings: Mapping[str, Any]


class ServiceParts(Protocol):
    """Makes the part of one service; both methods may raise ConfigError, which ends the start."""

    def page(self, config: Any) -> ListeningPage | None:
        """The page that a `bridge.service.config.ServiceConfig` asks for."""

    def part(self, context: Any) -> ServicePart:
        """The part; `context`: a `bridge.service.extension_parts.ServiceContext`."""


class OperatorMethods(Protocol):
    """Methods of `schedbridge.v1.Operator`, in the operators' process, which answers from views.

    Attributes:
        reads: by method: a `bridge.rpc.operators.queries.Read`.
        changes: by method: a `bridge.rpc.operators.extension_methods.ServedChange`.
    """

    reads: Mapping[str, Any]
    changes: Mapping[str, Any]

    def lines(self, published: Any, row: int) -> Iterator[str]:
        """What it knows of a running job; `published`: the last cycle."""

    def page(self, settings: Mapping[str, Any], change: Any) -> Any:
        """The `HttpPages` for `ListeningPage.settings`.

        `change` is a `bridge.rpc.operators.extension_methods.PageChange`, the only way to the
        service's process; it logs.
        """
