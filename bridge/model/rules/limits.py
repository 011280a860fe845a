# SPDX-License-Identifier: Apache-2.0
"""Limits and FreePools: what a consumer may use, and what is kept free for others, over time.

Terms
    consumer    a user, an account or a partition, whose jobs count together.
    limit       the maximum that a consumer may use: items at once, and time or area per job.
    FreePool    items kept free for jobs that meet one of its access conditions.
    validity    when a rule is in force.
    resource    a column of the nodes ("cpus", "mem_mib", "gpu"), a licence, "jobs" or "arrayjobs".

Source: Keller, JSSPP 2017, section 3 (OpenCCS).
"""

from dataclasses import dataclass
from enum import StrEnum

from bridge.model.rules.node_set import NodeSet
from bridge.units import NEVER

EACH = "*"
"""As a consumer's name: each consumer of that kind without a limit of its own. As a resource: every
requested resource without a limit of its own for this consumer."""

JOBS, ARRAY_JOBS, TIME = "jobs", "arrayjobs", "time"
COUNTED = (JOBS, ARRAY_JOBS)
"""Resources that are neither of nodes nor licences: the jobs themselves."""
MEMORY = ("mem", "mem_mib", "vmem")
"""Names of memory, MiB."""
_UNITS = ((86_400, NEVER, "d"), (3600, 24, "h"), (60, 60, "m"), (1, 60, "s"))


class ConsumerKind(StrEnum):
    USER = "user"
    ACCOUNT = "account"
    PARTITION = "partition"


@dataclass(frozen=True, slots=True)
class Items:
    """A number of items: the larger of a number and a percentage of the available items.

    Attributes:
        minimum: a number of items; None: not stated.
        percent: percent of the available items; None: not stated.
    """

    minimum: int | None = None
    percent: float | None = None

    def of(self, available: int, *, round_up: bool = False) -> int:
        """Returns the number of items; fractions are rounded down, or up on request."""
        share = 0
        if self.percent is not None:
            scaled = round(self.percent * 1_000_000) * available
            share = -(-scaled // 100_000_000) if round_up else scaled // 100_000_000
        return max(self.minimum or 0, share)

    def __str__(self) -> str:
        minimum = "" if self.minimum is None else str(self.minimum)
        percent = "" if self.percent is None else f"{self.percent:g}%"
        return "/".join(part for part in (minimum, percent) if part)


@dataclass(frozen=True, slots=True)
class Validity:
    """When a rule is in force: in [start_s, end_s), restricted to the openings of `cron`.

    Attributes:
        cron: five fields, in local time; empty: all the time.
        length_s: duration of each opening, in local time.
    """

    start_s: int = 0
    end_s: int = NEVER
    cron: str = ""
    length_s: int = 0


ALWAYS = Validity()


@dataclass(frozen=True, slots=True)
class Limit:
    """What a consumer may use of a resource.

    Attributes:
        name: the name of the consumer; `EACH`: every consumer without a limit of its own,
            separately.
        resource: its name, or `EACH`.
        items: at once, over all jobs of the consumer; None: unlimited.
        duration_s: the longest time limit of a job that uses the resource; None: any.
        area: maximum product of items and seconds of one job; None: any.
    """

    kind: ConsumerKind
    name: str
    resource: str = EACH
    items: Items | None = None
    duration_s: int | None = None
    area: int | None = None
    validity: Validity = ALWAYS


@dataclass(frozen=True, slots=True)
class Bound:
    """Bounds on a requested amount.

    Attributes:
        what: a resource, or `TIME` (s).
        minimum, maximum: both included; `NEVER`: any amount.
    """

    what: str
    minimum: int = 0
    maximum: int = NEVER

    def __str__(self) -> str:
        if self.minimum == self.maximum:
            return f"{self.what} = {self._shown(self.minimum)}"
        parts = []
        if self.minimum > 0 or self.maximum == NEVER:
            parts.append(f">= {self._shown(self.minimum)}")
        if self.maximum < NEVER:
            parts.append(f"<= {self._shown(self.maximum)}")
        return f"{self.what} {', '.join(parts)}"

    def _shown(self, amount: int) -> str:
        if self.what == TIME:
            return _duration(amount)
        if self.what not in MEMORY:
            return str(amount)
        return f"{amount // 1024}g" if amount and amount % 1024 == 0 else f"{amount}m"


def _duration(seconds: int) -> str:
    """Writes a duration as in the configuration: `12h`, `1h30m`."""
    parts = [(seconds // size % maximum, unit) for size, maximum, unit in _UNITS]
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"


@dataclass(frozen=True, slots=True)
class Access:
    """An access condition of a FreePool: a job has access if it meets everything stated here.

    Attributes:
        users, accounts, partitions: the job's must be one of these; None: any.
        bounds: on the request of the whole job, and on its time limit.
        chunk: on the request of one chunk; the chunks that meet all of them have access.
    """

    users: frozenset[str] | None = None
    accounts: frozenset[str] | None = None
    partitions: frozenset[str] | None = None
    bounds: tuple[Bound, ...] = ()
    chunk: tuple[Bound, ...] = ()

    def __str__(self) -> str:
        parts = [
            f"{kind} {' or '.join(sorted(names))}"
            for kind, names in (
                (ConsumerKind.USER, self.users),
                (ConsumerKind.ACCOUNT, self.accounts),
                (ConsumerKind.PARTITION, self.partitions),
            )
            if names is not None
        ]
        parts += [str(bound) for bound in self.bounds]
        parts += [f"{bound} in one chunk" for bound in self.chunk]
        return " and ".join(parts)


@dataclass(frozen=True, slots=True)
class FreePool:
    """Keeps items of a resource, or whole nodes, free for jobs with access.

    Attributes:
        name: for display.
        resource: what is kept; empty for nodes.
        keep: how many items; for nodes all of them.
        access: a job needs one of these; empty: no job has access.
        nodes: whole nodes that are kept, instead of a resource.
    """

    name: str
    resource: str = ""
    keep: Items = Items(percent=100.0)
    access: tuple[Access, ...] = ()
    validity: Validity = ALWAYS
    nodes: NodeSet | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """All limits and FreePools of a site.

    Attributes:
        timezone: IANA name; local time of `Validity.cron`.
    """

    limits: tuple[Limit, ...] = ()
    free_pools: tuple[FreePool, ...] = ()
    timezone: str = "UTC"
