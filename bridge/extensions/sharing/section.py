# SPDX-License-Identifier: Apache-2.0
"""Who may share nodes, in YAML: the section `planning.coscheduling`.

- {partition: batch, scope: account, consent: host, max_slowdown: 0.1}
- {partition: "*", consent: both, max_mean_harm: 0.05}
"""

from collections import Counter
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import Field, RootModel

from bridge.extensions.sharing.rules import Coschedule, CoschedulingRules, Scope, SharingRules
from bridge.planning.site_rules.values_text import Section

MAX_SHARING = 1000
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class CoschedulingSection(Section):
    """Rules for two jobs on a node, in one partition."""

    partition: str = Field(
        min_length=1,
        max_length=255,
        description="Partition in which jobs may share nodes; '*': each one not named elsewhere.",
    )
    scope: Literal["user", "account", "all"] = Field(
        default="user", description="Whose jobs share a node: of one user, of one account, or all."
    )
    consent: Literal["host", "guest", "both", "never"] = Field(
        default="never", description="Consent of jobs without `--coschedule`."
    )
    max_slowdown: Share = Field(
        default=0.10,
        description="By how much a host may be slowed down at most, unless it states "
        "`--max-slowdown`: 0.1 is 10 % of its run time alone.",
    )
    memory_margin: Share = Field(
        default=0.05, description="Share of a node's memory that host and guest leave free."
    )
    max_mean_harm: Share = Field(
        default=0.05,
        description="Mean slowdown of hosts at which `pairs` ends sharing, for a user or on the "
        "whole site, until `schedbridge coschedule on`.",
    )

    def rules(self) -> CoschedulingRules:
        """The same as a noun."""
        return CoschedulingRules(
            partition=self.partition,
            scope=Scope(self.scope),
            consent=Coschedule[self.consent.upper()],
            max_slowdown=self.max_slowdown,
            memory_margin=self.memory_margin,
            max_mean_harm=self.max_mean_harm,
        )


class CoschedulingList(
    RootModel[Annotated[tuple[CoschedulingSection, ...], Field(max_length=MAX_SHARING)]]
):
    """The partitions in which jobs share nodes."""

    def check(self, zone: ZoneInfo) -> None:
        """Raises ValueError if two entries are of one partition."""
        del zone
        for name, count in Counter(each.partition for each in self.root).items():
            if count > 1:
                raise ValueError(f"two entries of coscheduling are of partition '{name:.60}'")

    def repeated(self) -> set[tuple[str | None, str | None]]:
        """No entry repeats."""
        return set()

    def openings(self) -> int:
        """No entry comes into force at a time."""
        return 0

    def part(self) -> SharingRules | None:
        """The same as nouns."""
        return SharingRules(tuple(each.rules() for each in self.root)) if self.root else None


class SharingSiteRules:
    """Reads the section; see `bridge.extensions.service_port.SiteRules`."""

    key = "coscheduling"
    section = CoschedulingList
    default = CoschedulingList(())
    description = "In which partitions jobs may share nodes; by default in none."
