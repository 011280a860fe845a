# SPDX-License-Identifier: Apache-2.0
"""What an extension may add to the service beside the cycle: the second page of the port.

    section     of `planning:`, from which its part of the site's rules is read
    reader      of what agents on the nodes report; and orders for them
    memory      what it learns over the controller's reports; kept in the memory file
    gauges      on the page of metrics
    meter       what it counts over cycles, on the page of metrics

Each is optional (`bridge.extensions.port.Extension`), and one that fails stops no other. Readers
and memories are derived from the classes here, which do nothing. For operators see
`operators_port.py`.
"""

from collections.abc import Callable, Collection, Mapping
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
