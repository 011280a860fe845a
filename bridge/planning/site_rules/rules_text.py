# SPDX-License-Identifier: Apache-2.0
"""The rules of a site in YAML: the section `planning` of the configuration.

    timezone: Europe/Berlin
    limits:
      - {user: alice, resource: cpus, items: 640, duration: 4d3h,
         valid: {from: 2017-08-01, until: 2017-08-31}}
    free_pools:
      - {name: small, resource: cpus, keep: 10/20%, access: [{cpus: "< 4", time: "< 1h"}]}
    protect: {gpu: {cpus: 2}}
    resizes:
      - {user: "*", apart: 10m, per_hour: 12, extra_nodes: 8}
      - {partition: debug, never: true}
    coscheduling:
      - {partition: batch, consent: both}     (of bridge/extensions/sharing/section.py)
    power: {nodes: [...], corridor: [...]}    (of bridge/extensions/power/section.py)

`PlanningSection.model_validate(mapping).site()` gives the site; `parse_site` does both and raises
a ConfigError that names the key. docs/LIMITS.md describes the section for administrators.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, TypeVar
from zoneinfo import ZoneInfo

from pydantic import (
    Field,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from bridge.extension_packages import require, site_rules
from bridge.extensions.service_port import SiteSection
from bridge.input_problems import problems_of
from bridge.model.rules.limits import (
    ALWAYS,
    EACH,
    ConsumerKind,
    Items,
    Limit,
    Rules,
)
from bridge.model.rules.resize_limits import ResizeLimit
from bridge.model.rules.site import CRON_HORIZON_S, Site
from bridge.planning.site_rules.pools_text import FreePoolSection
from bridge.planning.site_rules.validity import openings_a_day
from bridge.planning.site_rules.validity_text import Valid, ValidSection
from bridge.planning.site_rules.values_text import (
    MAX_NODES,
    MAX_RESOURCES,
    Count,
    Duration,
    KeptAmount,
    Name,
    Section,
    items,
    seconds,
)
from bridge.units import DAY_S

MAX_LIMITS = 1000
MAX_POOLS = 200
MAX_PER_HOUR = 1_000_000
MAX_CRONS = 100
"""Different times that repeat: each is expanded in every cycle."""
MAX_OPENINGS = 100_000
"""Times that all rules which repeat come into force within `cron_days`: each is a step in time."""


_Name = TypeVar("_Name", bound=Hashable)


def _repeated(names: Iterable[_Name]) -> Iterator[_Name]:
    """The names that occur more than once."""
    return (name for name, count in Counter(names).items() if count > 1)


class LimitSection(Section):
    """What a user, an account or a partition may use."""

    user: Name | None = Field(
        default=None, description="User that it applies to; '*': each user not named elsewhere."
    )
    account: Name | None = Field(default=None, description="As `user`.")
    partition: Name | None = Field(default=None, description="As `user`.")
    resource: str = Field(
        default=EACH,
        min_length=1,
        max_length=255,
        description="cpus, mem, a generic resource, a licence, jobs, arrayjobs; '*': each one that "
        "no other limit names.",
    )
    items: Count = Field(
        default="unlimited",
        description="Maximum at the same time: 640, 45%, 30/45% (the larger), or unlimited.",
    )
    duration: Duration = Field(
        default=None, description="Longest time limit of a job that uses the resource: 7d, 4d3h."
    )
    area: Duration = Field(
        default=None, description="Largest product of items and time of one job: 1024h."
    )
    valid: Valid = Field(default=None, description="When it is in force; default: always.")

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        given = [kind for kind in ConsumerKind if getattr(self, kind.value) is not None]
        if len(given) != 1:
            raise ValueError("must name one of user, account, partition")
        if not getattr(self, given[0].value):
            raise ValueError(f"{given[0].value} must not be empty")
        bound = self.bound
        if bound is None and self.duration is None and self.area is None:
            return self  # it lifts what '*' says
        if self.resource == EACH and bound is not None and bound.minimum is not None:
            raise ValueError("items of resource '*' must be a percentage or unlimited")
        return self

    @cached_property
    def bound(self) -> Items | None:
        """`items`, read; None: unlimited."""
        return items(self.items, self.resource)

    def limit(self, zone: ZoneInfo) -> Limit:
        """The same as a noun."""
        kind = next(kind for kind in ConsumerKind if getattr(self, kind.value) is not None)
        return Limit(
            kind=kind,
            name=getattr(self, kind.value),
            resource=self.resource,
            items=self.bound,
            duration_s=seconds(self.duration),
            area=seconds(self.area),
            validity=ALWAYS if self.valid is None else self.valid.validity(zone),
        )


class ResizeSection(Section):
    """How often, and how far, running jobs of a user or a partition are resized."""

    user: Name | None = Field(
        default=None, description="User that it applies to; '*': each user not named elsewhere."
    )
    partition: Name | None = Field(default=None, description="As `user`.")
    never: bool = Field(default=False, description="Their jobs keep their nodes.")
    apart: Duration = Field(
        default=None,
        description="Minimum time between a change of a job's width and its next growth: 10m.",
    )
    per_hour: Annotated[int, Field(ge=0, le=MAX_PER_HOUR)] | None = Field(
        default=None,
        description="Number of changes of width of the user's jobs within an hour after which none "
        "of them grows.",
    )
    extra_nodes: Annotated[int, Field(ge=0, le=MAX_NODES)] | None = Field(
        default=None, description="Maximum number of nodes of a job beyond its request."
    )

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if (self.user is None) == (self.partition is None):
            raise ValueError("must name one of user, partition")
        if not (self.user or self.partition):
            raise ValueError("user or partition must not be empty")
        if self.partition is not None and self.per_hour is not None:
            raise ValueError("per_hour is for users")
        return self

    def limit(self) -> ResizeLimit:
        """The same as a noun."""
        return ResizeLimit(
            kind=ConsumerKind.PARTITION if self.user is None else ConsumerKind.USER,
            name=self.user or self.partition or "",
            never=self.never,
            apart_s=seconds(self.apart) or 0,
            per_hour=self.per_hour,
            extra_nodes=self.extra_nodes,
        )


class PlanningFields(Section):
    """Limits and FreePools, in force under every policy; see docs/LIMITS.md."""

    timezone: str = Field(default="UTC", description="IANA time zone of dates and cron.")
    limits: tuple[LimitSection, ...] = Field(
        default=(),
        max_length=MAX_LIMITS,
        description="What users, accounts and partitions may use, over time.",
    )
    free_pools: tuple[FreePoolSection, ...] = Field(
        default=(),
        max_length=MAX_POOLS,
        description="What is kept free for certain jobs, over time.",
    )
    protect: dict[Name, Annotated[dict[Name, KeptAmount], Field(max_length=MAX_RESOURCES)]] = Field(
        default_factory=dict,
        max_length=MAX_RESOURCES,
        description="What nodes keep for jobs that request one of their resources: "
        "{gpu: {cpus: 2}}.",
    )
    resizes: tuple[ResizeSection, ...] = Field(
        default=(),
        max_length=MAX_LIMITS,
        description="How often, and how far, running jobs are resized.",
    )
    cron_days: int = Field(
        default=CRON_HORIZON_S // DAY_S,
        ge=1,
        le=3650,
        description="Days ahead for which recurring validities (cron) are evaluated.",
    )

    @field_validator("limits", "free_pools", "resizes", mode="before")
    @classmethod
    def _empty(cls, value: object) -> object:
        return () if value is None else value

    @field_validator("protect", mode="before")
    @classmethod
    def _nothing(cls, value: object) -> object:
        return {} if value is None else value

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (KeyError, ValueError, OSError) as error:
            raise ValueError(
                f"'{value:.60}' is not a time zone; give one as Europe/Berlin"
            ) from error
        return value

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        for name in _repeated(pool.name for pool in self.free_pools):
            raise ValueError(f"two free_pools are called '{name:.60}'")
        for user, partition in _repeated((each.user, each.partition) for each in self.resizes):
            raise ValueError(f"two resizes are of '{user or partition or '':.60}'")
        return self

    @model_validator(mode="after")
    def _nodes_are_few(self) -> Self:
        nodes = sum(len(pool.nodes.hostnames) for pool in self.free_pools if pool.nodes is not None)
        if nodes > MAX_NODES:
            raise ValueError(f"free_pools: together name more than {MAX_NODES} nodes")
        return self

    @model_validator(mode="after")
    def _validities_last(self) -> Self:
        zone = ZoneInfo(self.timezone)
        for _, section in self._of_extensions():
            section.check(zone)
        for each in self._valid():  # one of the two may have a timezone of its own, the other this
            if (when := each.validity(zone)).start_s >= when.end_s:
                raise ValueError(f"valid ends ({each.until}) before it begins ({each.from_})")
        return self

    @model_validator(mode="after")
    def _repetitions_are_few(self) -> Self:
        repeat = {(each.cron, each.length) for each in self._valid()}
        for _, section in self._of_extensions():
            repeat |= section.repeated()
        if len(repeat) > MAX_CRONS:
            raise ValueError(f"has more than {MAX_CRONS} different times that repeat (cron)")
        crons = Counter(each.cron for each in self._valid() if each.cron is not None)
        openings = sum(count * openings_a_day(cron) for cron, count in crons.items())
        openings += sum(section.openings() for _, section in self._of_extensions())
        if openings * self.cron_days > MAX_OPENINGS:
            raise ValueError(
                f"rules that repeat (cron) may come into force {openings * self.cron_days} times in"
                f" {self.cron_days} days, more than {MAX_OPENINGS}: give a smaller cron_days"
            )
        return self

    def section(self, name: str) -> Any:
        """The section of an extension; None: there is none, or it is null."""
        return getattr(self, _OF_EXTENSIONS[name].key) if name in _OF_EXTENSIONS else None

    def _of_extensions(self) -> list[tuple[str, SiteSection]]:
        found = ((name, self.section(name)) for name in _OF_EXTENSIONS)
        return [(name, section) for name, section in found if section is not None]

    def _valid(self) -> list[ValidSection]:
        """The stated validities of limits and FreePools."""
        stated = [limit.valid for limit in self.limits] + [pool.valid for pool in self.free_pools]
        return [each for each in stated if each is not None]

    def plain(self) -> dict[str, Any]:
        """The same as plain values that `parse_site` takes; empty if nothing is stated."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)

    def rules(self) -> Rules:
        """The same as nouns."""
        zone = ZoneInfo(self.timezone)
        return Rules(
            limits=tuple(limit.limit(zone) for limit in self.limits),
            free_pools=tuple(pool.pool(zone) for pool in self.free_pools),
            timezone=self.timezone,
        )

    def site(self) -> Site:
        """The same as nouns, protections and all."""
        resizes = tuple(each.limit() for each in self.resizes)
        site = Site(self.rules(), dict(self.protect), self.cron_days * DAY_S, resizes)
        for name, section in self._of_extensions():
            site = site.having(name, section.part())
        return site


def _usable(value: object, field: ValidationInfo) -> object:
    """A section of an extension, if the extension can be used."""
    name, rules = next(each for each in _OF_EXTENSIONS.items() if each[1].key == field.field_name)
    if value is None:
        return rules.default
    require(name)
    return value


# A section is a field for each extension that is installed when this module is imported.
_OF_EXTENSIONS: Final = site_rules(taken={*PlanningFields.model_fields, *dir(PlanningFields)})
if TYPE_CHECKING:
    PlanningSection = PlanningFields
else:
    PlanningSection = create_model(
        "PlanningSection",
        __base__=PlanningFields,
        __doc__=PlanningFields.__doc__,
        __validators__={
            f"_usable_{name}": field_validator(rules.key, mode="before")(_usable)
            for name, rules in _OF_EXTENSIONS.items()
        },
        **{
            rules.key: (
                rules.section | None,
                Field(default=rules.default, description=rules.description),
            )
            for rules in _OF_EXTENSIONS.values()
        },
    )


def parse_site(value: Mapping[str, Any] | None, key: str = "planning") -> Site:
    """Reads the rules of a site from plain values, as YAML gives them.

    Args:
        value: a mapping as the section `planning`; None: nothing.
        key: what the mapping is called in messages.

    Raises:
        ConfigError: the first error, with its key.
    """
    try:
        return PlanningSection.model_validate({} if value is None else value).site()
    except ValidationError as error:
        raise problems_of(error, PlanningSection, key=key)[0] from error
