# SPDX-License-Identifier: Apache-2.0
"""What a site demands of every plan, as it is written in YAML: the section `planning`.

    timezone: Europe/Berlin
    limits:
      - {user: alice, resource: cpus, items: 640, duration: 4d3h,
         valid: {from: 2017-08-01, until: 2017-08-31}}
    free_pools:
      - {name: small, resource: cpus, keep: 10/20%, access: [{cpus: "< 4", time: "< 1h"}]}
    protect: {gpu: {cpus: 2}}

`PlanningSection.model_validate(mapping).site()` gives the site; `parse_site` does both and raises
a ConfigError that names the key. docs/LIMITS.md tells administrators what can be said.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Self
from zoneinfo import ZoneInfo

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from bridge.errors import ConfigError, RequestError
from bridge.model import hostlist
from bridge.model.limits import (
    ALWAYS,
    COUNTED,
    EACH,
    MEMORY,
    TIME,
    Access,
    Bound,
    ConsumerKind,
    FreePool,
    Items,
    Limit,
    NodeSet,
    Rules,
    Validity,
)
from bridge.model.site import CRON_HORIZON_S, Site
from bridge.planning.requests.features import parse_features
from bridge.planning.site_rules.validity import check_cron, openings_a_day
from bridge.units import DAY_S, NEVER

_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_ITEMS = re.compile(r"(?:(\d+)([kmgt]?)b?)?(?:(?:^|/)(\d+(?:\.\d+)?)%)?", re.IGNORECASE)
_BOUND = re.compile(r"(<=|>=|<|>|=)?\s*([^\s<>=]+)")
_KIB = {"k": 1, "m": 1024, "g": 1024**2, "t": 1024**3}
_MOST = 2**40
MOST_NODES = 100_000
"""Most nodes that all FreePools name."""
MOST_LIMITS = 1000
MOST_POOLS = 200
MOST_ACCESS = 100
MOST_NAMES = 1000
"""Users, accounts or partitions in one list."""
MOST_CRONS = 100
"""Different times that repeat: each is expanded in every cycle."""
MOST_OPENINGS = 100_000
"""Times that all rules which repeat come into force within `cron_days`: each is a step in time."""
MOST_RESOURCES = 50
"""Resources that one access bounds."""


def duration(text: object) -> int:
    """Reads `4d3h`, `90m`, `1h30m`, `45s` as seconds.

    Raises:
        ValueError: it is something else.
    """
    found = _DURATION.fullmatch(text.replace(" ", "")) if isinstance(text, str) else None
    if found is None or not any(found.groups()):
        raise ValueError("must be a duration as 7d, 4d3h, 1h30m or 45s")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    if not 0 < total < _MOST:
        raise ValueError("must be longer than nothing and shorter than for ever")
    return total


def _duration_text(value: object) -> object:
    """The text stays as it was written: what is shown can be read again."""
    if value in (None, "none"):
        return None
    duration(value)
    return value


def _seconds(text: str | None) -> int | None:
    return None if text is None else duration(text)


def _plain(value: object) -> object:
    """Numbers may be written without quotes."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Name = Annotated[str, Field(max_length=255)]
Duration = Annotated[Name | None, BeforeValidator(_duration_text)]
Count = Annotated[Name, BeforeValidator(_plain)]
KeptAmount = Annotated[int, Field(ge=0, lt=_MOST, strict=True)]


def _size(number: str, suffix: str, resource: str) -> int:
    """A number of items; of memory with a suffix, in MiB without one."""
    if suffix and resource not in MEMORY:
        raise ValueError(f"has a size of memory ('{number}{suffix}') for {resource}")
    count = -(-int(number) * _KIB[suffix.lower()] // 1024) if suffix else int(number)
    if count > _MOST:
        raise ValueError(f"is more than {_MOST}")
    return count


def items(value: str, resource: str) -> Items | None:
    """Reads `640`, `45%`, `30/45%`, `64g` (memory), `all`, or `unlimited` (None).

    Raises:
        ValueError: it is something else.
    """
    text = value.replace(" ", "")
    if text == "unlimited":
        return None
    if text == "all":
        return Items(percent=100.0)
    found = _ITEMS.fullmatch(text)
    if found is None or not any(found.groups()):
        raise ValueError("must be a number, a percentage, or both: 640, 45%, 30/45%")
    number, suffix, percent = found.groups()
    if percent is not None and float(percent) > 100:
        raise ValueError("is more than 100%")
    if percent is not None and resource in COUNTED:
        raise ValueError(f"must be a number: there is no percentage of {resource}")
    least = None if number is None else _size(number, suffix or "", resource)
    return Items(least, None if percent is None else float(percent))


def hostnames(texts: Sequence[str]) -> tuple[str, ...]:
    """Reads node names and hostlists: `n[1-8],big1`.

    Raises:
        ValueError: it is something else, or names too many nodes.
    """
    found: list[str] = []
    for text in texts:
        try:
            nodes = hostlist.expand(text)
        except ValueError as error:
            raise ValueError(
                f"'{text:.60}' is no hostlist: {error}; write one as n[1-8],big1"
            ) from None
        if len(nodes) + len(found) > MOST_NODES:
            raise ValueError(f"names more than {MOST_NODES} nodes")
        found.extend(nodes)
    return tuple(found)


def bounds(value: object, what: str) -> Bound:
    """Reads `< 4`, `>= 80g`, `> 2h, <= 12h`, or `4` (the same as `<= 4`).

    Raises:
        ValueError: it is something else, or nothing meets it.
    """
    least, most = 0, NEVER
    for part in str(value).split(","):
        found = _BOUND.fullmatch(part.strip())
        if found is None:
            raise ValueError(f"must be a bound as '< 4', '>= 4' or '>= 4, <= 8', not {value!r:.60}")
        sign, text = found.groups()
        amount = _amount(text, what, value)
        if sign in (">", ">=", "="):
            least = max(least, amount + (sign == ">"))
        if sign not in (">", ">="):
            most = min(most, amount - (sign == "<"))
    if least > most:
        raise ValueError(f"'{value!s:.60}' is met by nothing")
    return Bound(what, least, most)


def _amount(text: str, what: str, value: object) -> int:
    if what == TIME:
        return duration(text)
    number = re.fullmatch(r"(\d+)([kmgt]?)b?", text, re.IGNORECASE)
    if number is None:
        raise ValueError(f"must be a bound as '< 4', '>= 4' or '>= 4, <= 8', not {value!r:.60}")
    return _size(number[1], number[2], what)


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class ValidSection(_Section):
    """When a rule is in force; dates and cron are in the timezone of the section."""

    from_: date | datetime | None = Field(
        default=None, alias="from", description="First day, or first instant."
    )
    until: date | datetime | None = Field(
        default=None, description="Last day (inclusive), or the instant at which it ends."
    )
    cron: str | None = Field(
        default=None,
        max_length=200,
        description="Five fields: minute, hour, day, month, day of week.",
    )
    length: Duration = Field(
        default=None, description="How long it is in force, from each time that cron names."
    )

    @field_validator("from_", "until", mode="before")
    @classmethod
    def _instant(cls, value: object) -> object:
        if value is None or isinstance(value, date):  # YAML reads dates; a datetime is one
            return value
        try:
            text = str(value)
            return date.fromisoformat(text) if len(text) <= 10 else datetime.fromisoformat(text)
        except ValueError as error:
            raise ValueError("must be a date as 2017-08-31, or 2017-08-31 18:00") from error

    @field_validator("cron")
    @classmethod
    def _known_cron(cls, value: str | None) -> str | None:
        if value is not None:
            check_cron(value)
        return value

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.cron is None) != (self.length is None):
            raise ValueError("cron and length belong together")
        if self.cron is None and self.from_ is None and self.until is None:
            raise ValueError("must say from, until, or cron and length; or leave it out: always")
        aware = [
            isinstance(at, datetime) and at.tzinfo is not None for at in (self.from_, self.until)
        ]
        if self.from_ is not None and self.until is not None and aware[0] == aware[1]:
            stated = self.validity(ZoneInfo("UTC"))
            if stated.start_s >= stated.end_s:
                raise ValueError(f"ends ({self.until}) before it begins ({self.from_})")
        return self

    def validity(self, zone: ZoneInfo) -> Validity:
        """The same, in Unix seconds."""
        return Validity(
            start_s=0 if self.from_ is None else _instant_s(self.from_, zone),
            end_s=NEVER if self.until is None else _instant_s(self.until, zone, whole_day=True),
            cron=" ".join((self.cron or "").split()),
            length_s=_seconds(self.length) or 0,
        )


def _instant_s(at: date | datetime, zone: ZoneInfo, *, whole_day: bool = False) -> int:
    try:
        if not isinstance(at, datetime):
            at = datetime.combine(at + timedelta(days=whole_day), datetime.min.time())
        return max(int((at if at.tzinfo else at.replace(tzinfo=zone)).timestamp()), 0)
    except OverflowError:  # the first or the last day of the calendar
        return 0 if at.year == 1 else NEVER


def _always(value: object) -> object:
    return None if value == "always" else value


Valid = Annotated[ValidSection | None, BeforeValidator(_always)]


class LimitSection(_Section):
    """What a user, an account or a partition may use."""

    user: Name | None = Field(
        default=None, description="User it applies to; '*': each user not named elsewhere."
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
        description="At the same time: 640, 45%, 30/45% (the larger), or unlimited.",
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
        bound = items(self.items, self.resource)
        if bound is None and self.duration is None and self.area is None:
            return self  # it lifts what '*' says
        if self.resource == EACH and bound is not None and bound.least is not None:
            raise ValueError("items of resource '*' must be a percentage or unlimited")
        return self

    def limit(self, zone: ZoneInfo) -> Limit:
        """The same as a noun."""
        kind = next(kind for kind in ConsumerKind if getattr(self, kind.value) is not None)
        return Limit(
            kind=kind,
            name=getattr(self, kind.value),
            resource=self.resource,
            items=items(self.items, self.resource),
            duration_s=_seconds(self.duration),
            area=_seconds(self.area),
            validity=ALWAYS if self.valid is None else self.valid.validity(zone),
        )


def _bounds(stated: Mapping[str, object]) -> tuple[Bound, ...]:
    """Reads bounds, each under the name of what it bounds.

    Raises:
        ValueError: one is wrong; it is named.
    """
    if len(stated) > MOST_RESOURCES:
        raise ValueError(f"bounds more than {MOST_RESOURCES} resources")
    found = []
    for what, value in sorted(stated.items()):
        if len(what) > 255:
            raise ValueError(f"'{what:.60}...' is no resource's name")
        try:
            found.append(bounds(value, what))
        except ValueError as error:
            raise ValueError(f"{what}: {error}") from error
    return tuple(found)


class ChunkSection(BaseModel):
    """What one chunk must ask for; every key is a resource of nodes and its bound."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        stated = self.model_extra or {}
        for what in (TIME, *COUNTED):
            if what in stated:
                raise ValueError(f"{what} is of the whole job: say it beside chunk")
        if not _bounds(stated):
            raise ValueError("must state a resource and its bound")
        return self

    def bounds(self) -> tuple[Bound, ...]:
        """The same as nouns."""
        return _bounds(self.model_extra or {})


class AccessSection(BaseModel):
    """Lets jobs in that meet all of it; any other key is a resource and its bound."""

    model_config = ConfigDict(extra="allow", frozen=True)

    users: tuple[Name, ...] | None = Field(
        default=None, min_length=1, max_length=MOST_NAMES, description="Any of these."
    )
    accounts: tuple[Name, ...] | None = Field(
        default=None, min_length=1, max_length=MOST_NAMES, description="Any of these."
    )
    partitions: tuple[Name, ...] | None = Field(
        default=None, min_length=1, max_length=MOST_NAMES, description="Any of these."
    )
    time: Name | None = Field(
        default=None, description="Bound on the time limit: '< 1h', '<= 2h', '> 12h'."
    )
    chunk: ChunkSection | None = Field(
        default=None,
        description="Bounds on what one chunk requests: {mem: '>= 66g'}; for pools of nodes.",
    )

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        for what in self.model_extra or {}:
            if what in ("user", "account", "partition"):
                raise ValueError(f"knows {what}s (a list), not {what}")
        if self.access() == Access():
            raise ValueError("must state something")
        return self

    def access(self) -> Access:
        """The same as a noun."""
        stated = dict(self.model_extra or {})
        if self.time is not None:
            stated[TIME] = self.time
        return Access(
            users=None if self.users is None else frozenset(self.users),
            accounts=None if self.accounts is None else frozenset(self.accounts),
            partitions=None if self.partitions is None else frozenset(self.partitions),
            bounds=_bounds(stated),
            chunk=() if self.chunk is None else self.chunk.bounds(),
        )


class NodesSection(_Section):
    """Nodes, by what they are; all that is stated must hold."""

    names: tuple[str, ...] = Field(
        default=(), max_length=MOST_NODES, description="Node names or hostlists."
    )
    features: str = Field(default="", max_length=1000, description="Feature expression: fast&ib.")
    having: Name = Field(default="", description="Resource that the nodes have: gpu.")

    @field_validator("names", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("names")
    @classmethod
    def _readable(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        hostnames(value)
        return value

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if not (self.names or self.features or self.having):
            raise ValueError("must say names, features or having")
        if self.features:
            try:
                parse_features(self.features)
            except RequestError as error:
                raise ValueError(
                    f"features: {error.problem} at character {error.position + 1}"
                ) from error
        return self


class FreePoolSection(_Section):
    """What is kept free for some jobs."""

    name: str = Field(min_length=1, max_length=255, description="Name shown to users.")
    resource: str | None = Field(
        default=None,
        min_length=1,
        max_length=255,
        description="Resource that is kept free: cpus, mem, gpu, a licence.",
    )
    nodes: NodesSection | None = Field(
        default=None, description="Whole nodes that are kept free, instead of a resource."
    )
    keep: Count = Field(default="all", description="How many: all, 10, 20%, 10/20% (the larger).")
    access: tuple[AccessSection, ...] = Field(
        default=(),
        max_length=MOST_ACCESS,
        description="Which jobs may use it: those that match one item; default: none.",
    )
    valid: Valid = Field(default=None, description="When it is in force; default: always.")

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if (self.resource is None) == (self.nodes is None):
            raise ValueError("must name either resource or nodes")
        if self.resource in (EACH, *COUNTED):
            raise ValueError(f"resource: nothing can be kept of '{self.resource}'")
        if items(self.keep, self.resource or "") is None:
            raise ValueError("keep: must be a number, a percentage, or all")
        if self.nodes is not None and self.keep != "all":
            raise ValueError("keep: of nodes all are kept; name fewer of them to keep fewer")
        if self.nodes is None and any(access.chunk is not None for access in self.access):
            raise ValueError("access: chunk is for pools of nodes; a resource is kept from jobs")
        return self

    def pool(self, zone: ZoneInfo) -> FreePool:
        """The same as a noun."""
        nodes = self.nodes
        return FreePool(
            name=self.name,
            resource=self.resource or "",
            keep=items(self.keep, self.resource or "") or Items(),
            access=tuple(access.access() for access in self.access),
            validity=ALWAYS if self.valid is None else self.valid.validity(zone),
            nodes=NodeSet(hostnames(nodes.names), nodes.features, nodes.having) if nodes else None,
        )


class PlanningSection(_Section):
    """Limits and FreePools, in force under every policy; see docs/LIMITS.md."""

    timezone: str = Field(default="UTC", description="IANA time zone of dates and cron.")
    limits: tuple[LimitSection, ...] = Field(
        default=(),
        max_length=MOST_LIMITS,
        description="What users, accounts and partitions may use, over time.",
    )
    free_pools: tuple[FreePoolSection, ...] = Field(
        default=(),
        max_length=MOST_POOLS,
        description="What is kept free for certain jobs, over time.",
    )
    protect: dict[Name, Annotated[dict[Name, KeptAmount], Field(max_length=MOST_RESOURCES)]] = (
        Field(
            default_factory=dict,
            max_length=MOST_RESOURCES,
            description="What nodes keep for jobs that request one of their resources: "
            "{gpu: {cpus: 2}}.",
        )
    )
    cron_days: int = Field(
        default=CRON_HORIZON_S // DAY_S,
        ge=1,
        le=3650,
        description="Days ahead for which recurring validities (cron) are evaluated.",
    )

    @field_validator("limits", "free_pools", mode="before")
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
            raise ValueError(f"'{value:.60}' is no timezone; say one as Europe/Berlin") from error
        return value

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [pool.name for pool in self.free_pools]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two free_pools are called '{name:.60}'")
        nodes = sum(
            len(hostnames(pool.nodes.names)) for pool in self.free_pools if pool.nodes is not None
        )
        if nodes > MOST_NODES:
            raise ValueError(f"free_pools: together name more than {MOST_NODES} nodes")
        stated = [limit.valid for limit in self.limits] + [pool.valid for pool in self.free_pools]
        zone = ZoneInfo(self.timezone)
        for each in stated:  # one of the two may have a timezone of its own, the other this one
            if each is not None and (when := each.validity(zone)).start_s >= when.end_s:
                raise ValueError(f"valid ends ({each.until}) before it begins ({each.from_})")
        if len({(each.cron, each.length) for each in stated if each is not None}) > MOST_CRONS:
            raise ValueError(f"has more than {MOST_CRONS} different times that repeat (cron)")
        crons = Counter(each.cron for each in stated if each is not None and each.cron is not None)
        openings = sum(count * openings_a_day(cron) for cron, count in crons.items())
        if openings * self.cron_days > MOST_OPENINGS:
            raise ValueError(
                f"rules that repeat (cron) may come into force {openings * self.cron_days} times in"
                f" {self.cron_days} days, more than {MOST_OPENINGS}: say a smaller cron_days"
            )
        return self

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
        return Site(self.rules(), dict(self.protect), self.cron_days * DAY_S)


def parse_site(value: Mapping[str, Any] | None, key: str = "planning") -> Site:
    """Reads what a site demands from plain values, as YAML gives them.

    Args:
        value: a mapping as the section `planning`; None: nothing.
        key: what the mapping is called in messages.

    Raises:
        ConfigError: the first thing that is wrong, with its key.
    """
    try:
        return PlanningSection.model_validate({} if value is None else value).site()
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join([key, *(str(part) for part in first["loc"])])
        problem = str(first["msg"]).removeprefix("Value error, ")
        raise ConfigError(where, f"{problem[:1].lower()}{problem[1:]}") from error
