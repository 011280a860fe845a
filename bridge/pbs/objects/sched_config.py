# SPDX-License-Identifier: Apache-2.0
"""Reads `sched_config`, the settings of pbs_sched.

Rules
    1. A line is `NAME: VALUE [prime|non_prime|all]`; `#` begins a comment. A later line replaces an
       earlier one, but sort keys add up.
    2. Of a file that does not exist the defaults below hold. Of one that does, a setting that is
       not stated is false, as for pbs_sched.
    3. What is not supported, or not understood, is one line each in `problems`.

Source: OpenPBS 23.06, the file that is installed as sched_priv/sched_config, and the
Administrator's Guide.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from bridge.errors import BadRequest
from bridge.pbs.objects import values
from bridge.pbs.objects.formula import Formula, read_formula

MAX_LINES = 10_000
ALWAYS_COMPARED = frozenset(("host", "vnode"))


@dataclass(frozen=True)
class SortKey:
    """One key by which jobs or vnodes are sorted.

    Attributes:
        of: "total", "assigned" or "unused"; of vnodes only.
    """

    name: str
    descending: bool
    of: str = "total"


PRIORITY_FIRST = (SortKey("sort_priority", descending=True),)


@dataclass(frozen=True)
class PrimeTimeSettings:
    """What may be set apart for prime and non-prime time.

    Attributes:
        by_queue: jobs of queues with higher priority first.
        preemptive: jobs of express queues first, whatever the order else.
        backfill_prime: no job runs on into the next period by more than `spill_s`.
    """

    by_queue: bool = True
    preemptive: bool = False
    fair_share: bool = False
    backfill_prime: bool = False
    spill_s: int = 0
    job_sort: tuple[SortKey, ...] = ()
    node_sort: tuple[SortKey, ...] = PRIORITY_FIRST


@dataclass(frozen=True)
class SchedConfig:
    """The settings.

    Attributes:
        exempt_anytime: `backfill_prime` does not apply to jobs of other queues than those of prime
            or non-prime time.
        dedicated, primetime, nonprimetime: how the names of queues begin whose jobs run in
            dedicated, prime or non-prime time only; empty: no queue's.
        dynamic: resources of the server whose amounts programs state (`server_dyn_res`).
        compared: the resources that are compared with those of vnodes; None: all.
        usage: the formula of what jobs use, for fair share.
        entity: whom it counts for: euser, egroup, egroup:euser, Account_Name or queue.
        decay_s: after this time `decay` remains of all usage; 0: it never decays.
        unknown_shares: unknown shares of all entities together that have none of their own.
        no_shares_no_run: jobs of entities without shares do not run.
        confirm_in_dedicated: reservations may lie in dedicated time.
        problems: one line for each setting that is not supported or understood.
    """

    prime: PrimeTimeSettings = field(default_factory=PrimeTimeSettings)
    non_prime: PrimeTimeSettings = field(default_factory=PrimeTimeSettings)
    exempt_anytime: bool = False
    dedicated: str = "ded"
    primetime: str = "p_"
    nonprimetime: str = "np_"
    dynamic: frozenset[str] = frozenset()
    compared: frozenset[str] | None = None
    usage: Formula = field(default_factory=lambda: read_formula("cput"))
    entity: str = "euser"
    decay_s: int = 86_400
    decay: float = 0.5
    unknown_shares: int = 0
    no_shares_no_run: bool = True
    confirm_in_dedicated: bool = False
    problems: tuple[str, ...] = ()

    def at(self, *, prime: bool) -> PrimeTimeSettings:
        """The settings of a time of day."""
        return self.prime if prime else self.non_prime

    def compares(self, name: str) -> bool:
        """Whether a resource is compared; booleans always are."""
        return self.compared is None or name in self.compared or name in ALWAYS_COMPARED


DEFAULTS = SchedConfig()
"""Without a file."""
_UNSTATED = SchedConfig(
    PrimeTimeSettings(by_queue=False, node_sort=()),
    PrimeTimeSettings(by_queue=False, node_sort=()),
    dedicated="", primetime="", nonprimetime="",
)  # fmt: skip
_LINE = re.compile(r'\s*([A-Za-z_]+)\s*:\s*("[^"]*"|\S+)\s*(\S*)\s*')
_WHEN = {"": (True, True), "all": (True, True), "prime": (True, False), "non_prime": (False, True),
         "none": (False, False)}  # fmt: skip
_ENTITIES = frozenset(("euser", "egroup", "egroup:euser", "Account_Name", "queue"))
_REFUSED: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "round_robin": (values.is_true, "queues of equal priority are not taken in turns"),
    "strict_ordering": (values.is_true, "the policy decides about backfilling"),
    "strict_fifo": (values.is_true, "the policy decides about backfilling"),
    "backfill": (lambda word: not values.is_true(word), "the policy decides about backfilling"),
    "help_starving_jobs": (values.is_true, "use eligible_time in job_sort_formula"),
    "max_starve": (lambda _: False, ""),
    "peer_queue": (bool, "there is no peer scheduling"),
    "peer_translation": (bool, "there is no peer scheduling"),
    "mom_resources": (bool, "the moms are not asked for resources"),
    "resource_unset_infinite": (bool, "a resource that a vnode does not state is 0 there"),
    "smp_cluster_dist": (lambda word: word != "pack", "the policy chooses the vnodes"),
    "load_balancing": (values.is_true, "the load of vnodes is not considered"),
    "load_balancing_rr": (values.is_true, "the load of vnodes is not considered"),
    "preempt_attempts": (lambda _: False, ""),
    "max_job_check": (lambda word: word.upper() != "ALL_JOBS", "all jobs are considered"),
    "provision_policy": (lambda word: word == "avoid_provision", "vnodes are not provisioned"),
    "allow_aoe_calendar": (lambda _: False, ""),
    "node_group_key": (bool, "set it with qmgr"),
}
"""Settings that are not supported: when that matters, and what holds instead."""
_SILENT = frozenset(("update_comments", "log_filter", "sort_queues", "preempt_queue_prio",
                     "preempt_prio", "preempt_order", "preempt_sort"))  # fmt: skip


@lru_cache(maxsize=8)
def read_sched_config(text: str | None) -> SchedConfig:
    """Reads the file; None: there is none."""
    if text is None:
        return DEFAULTS
    reader = _Reader()
    for number, line in enumerate(text.replace("\\\n", " ").splitlines()[:MAX_LINES], 1):
        if line.strip() and not line.lstrip().startswith("#"):
            reader.line(number, line)
    reader.problems += [
        f"sched_config: server_dyn_res: {name[:40]} is not supported: the programs of dynamic "
        "resources are not run, and jobs that ask for it are held"
        for name in sorted(reader.made.dynamic)
    ]
    return replace(
        reader.made, prime=reader.by_time[0], non_prime=reader.by_time[1],
        problems=tuple(dict.fromkeys(reader.problems)),
    )  # fmt: skip


class _Reader:
    def __init__(self) -> None:
        self.made = _UNSTATED
        self.by_time = [self.made.prime, self.made.non_prime]
        self.problems: list[str] = []

    def line(self, number: int, line: str) -> None:
        found = _LINE.match(line)
        if found is None:
            self.problems.append(f"sched_config: line {number} is not NAME: VALUE")
            return
        name, value, when = found.group(1), found.group(2).strip('"'), found.group(3).lower()
        try:
            if when.startswith("#"):
                when = ""
            if when not in _WHEN:
                raise BadRequest(f"'{when[:20]}' is not prime, non_prime or all")
            self._set(name, value, _WHEN[when])
        except BadRequest as error:
            self.problems.append(f"sched_config: {name}: {error}")

    def _set(self, name: str, value: str, when: tuple[bool, bool]) -> None:
        if name in _REFUSED:
            matters, instead = _REFUSED[name]
            if matters(value):
                self.problems.append(
                    f"sched_config: {name}: {value[:40]} is not supported: {instead}"
                )
        elif name in _BY_TIME:
            change = _BY_TIME[name](value)
            for at in (0, 1):
                if when[at]:
                    self.by_time[at] = change(self.by_time[at])
        elif name in _ONCE:
            self.made = _ONCE[name](self.made, value)
        elif name not in _SILENT:
            raise BadRequest("is not known, and ignored")


def _flag(name: str) -> Callable[[str], Callable[[PrimeTimeSettings], PrimeTimeSettings]]:
    def read(value: str) -> Callable[[PrimeTimeSettings], PrimeTimeSettings]:
        changed = {name: values.is_true(value)}
        return lambda settings: replace(settings, **changed)  # type: ignore[arg-type]

    return read


def _spill(value: str) -> Callable[[PrimeTimeSettings], PrimeTimeSettings]:
    spill_s = values.duration_s(value)
    return lambda settings: replace(settings, spill_s=spill_s)


def _job_key(value: str) -> Callable[[PrimeTimeSettings], PrimeTimeSettings]:
    key = _key(value, ("job_priority", "sort_priority", "fair_share_perc", "preempt_priority"))
    return lambda settings: replace(settings, job_sort=(*settings.job_sort, key))


def _node_key(value: str) -> Callable[[PrimeTimeSettings], PrimeTimeSettings]:
    key = _key(value, ("sort_priority",))
    return lambda settings: replace(settings, node_sort=(*settings.node_sort, key))


def _key(value: str, special: tuple[str, ...]) -> SortKey:
    name, *rest = value.split()
    if not rest or rest[0].lower() not in ("high", "low") or len(rest) > 2:
        raise BadRequest(f"'{value[:40]}' is not RESOURCE HIGH or RESOURCE LOW")
    of = rest[1] if len(rest) > 1 else "total"
    if of not in ("total", "assigned", "unused"):
        raise BadRequest(f"'{of[:20]}' is not total, assigned or unused")
    if name == "last_used_time" or (name == "preempt_priority" and name in special):
        raise BadRequest(f"{name} is not supported as a key")
    return SortKey(name, rest[0].lower() == "high", of)


_BY_TIME: Mapping[str, Callable[[str], Callable[[PrimeTimeSettings], PrimeTimeSettings]]] = {
    "by_queue": _flag("by_queue"), "preemptive_sched": _flag("preemptive"),
    "fair_share": _flag("fair_share"), "backfill_prime": _flag("backfill_prime"),
    "prime_spill": _spill, "job_sort_key": _job_key, "node_sort_key": _node_key,
}  # fmt: skip


def _resources(made: SchedConfig, value: str) -> SchedConfig:
    return replace(made, compared=frozenset(values.strings(value)))


def _dynamic(made: SchedConfig, value: str) -> SchedConfig:
    return replace(made, dynamic=made.dynamic | frozenset(value.split()[:1]))


def _entity(made: SchedConfig, value: str) -> SchedConfig:
    if value not in _ENTITIES:
        raise BadRequest(f"'{value[:40]}' is none of {', '.join(sorted(_ENTITIES))}")
    return replace(made, entity=value)


def _decay(made: SchedConfig, value: str) -> SchedConfig:
    factor = values.decimal(value)
    if not 0 < factor < 1:
        raise BadRequest(f"{value[:20]} is not between 0 and 1")
    return replace(made, decay=factor)


def _confirm(made: SchedConfig, value: str) -> SchedConfig:
    if value not in ("dedicated_time", "none"):
        raise BadRequest(f"'{value[:40]}' is neither dedicated_time nor none")
    return replace(made, confirm_in_dedicated=value == "dedicated_time")


_ONCE: Mapping[str, Callable[[SchedConfig, str], SchedConfig]] = {
    "prime_exempt_anytime_queues": lambda m, v: replace(m, exempt_anytime=values.is_true(v)),
    "dedicated_prefix": lambda m, v: replace(m, dedicated=v),
    "primetime_prefix": lambda m, v: replace(m, primetime=v),
    "nonprimetime_prefix": lambda m, v: replace(m, nonprimetime=v),
    "resources": _resources,
    "server_dyn_res": _dynamic,
    "fairshare_usage_res": lambda m, v: replace(m, usage=read_formula(v)),
    "fairshare_entity": _entity,
    "fairshare_decay_time": lambda m, v: replace(m, decay_s=values.duration_s(v)),
    "half_life": lambda m, v: replace(m, decay_s=values.duration_s(v)),
    "fairshare_decay_factor": _decay,
    "unknown_shares": lambda m, v: replace(m, unknown_shares=values.whole(v)),
    "fairshare_enforce_no_shares": lambda m, v: replace(m, no_shares_no_run=values.is_true(v)),
    "resv_confirm_ignore": _confirm,
}
