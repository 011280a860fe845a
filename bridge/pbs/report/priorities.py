# SPDX-License-Identifier: Apache-2.0
"""Priorities of waiting jobs: `job_sort_formula`, and soft limits.

Rules
    1. Without a formula and without `job_sort_key` all priorities are equal: jobs are considered in
       the order of their queues' priority and of their arrival.
    2. The priority on the wire is the formula's value in thousandths, above `MIDDLE` if positive.
       Where it has no value, that is 0. With one `job_sort_key` it is that key's value; with
       several, the place of the job's values among all that there are.
    3. Jobs of an entity above its soft limit are considered after all others.
    4. A job below `job_sort_formula_threshold` does not start.
    5. eligible_time is taken as the server states it.
    6. With fair share a job's message states its entity's share and usage, rounded to three digits
       so that it seldom changes; order policies such as `pbs` make use of it. Jobs of entities
       without shares do not start, unless fairshare_enforce_no_shares is False.

Source: OpenPBS 23.06, pbs_server_attributes(7), pbs_sched_attributes(7).
"""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass

from bridge.errors import BadRequest
from bridge.pbs.objects import values
from bridge.pbs.objects.definitions import ResourceDefinition
from bridge.pbs.objects.fair_share import FairShare, Standing, entity_of, usage_of
from bridge.pbs.objects.formula import Formula, read_formula
from bridge.pbs.objects.jobs import PbsJob
from bridge.pbs.objects.parsed import Parsed, PbsQueue
from bridge.pbs.tables import Attributes, amounts, text

MIDDLE = 1 << 60
_MAX = (1 << 59) / 1000
_BELOW_SOFT = 1 << 61
_FAIRSHARE = frozenset(("fair_share_perc", "fairshare_perc", "fairshare_tree_usage",
                        "fairshare_factor"))  # fmt: skip
_PPM = 1_000_000


@dataclass(frozen=True)
class Shares:
    """What a job's message says of fair share."""

    of: str = ""
    ppm: int = 0
    usage: int = 0
    cost: int = 0


NO_SHARES = Shares()


class Priorities:
    """The priorities under one server's settings.

    Attributes:
        problem: the problem of the formula; empty: it is understood, or there is none.
    """

    def __init__(self, parsed: Parsed, usage: FairShare) -> None:
        """Reads the settings."""
        tables, definitions = parsed.tables, parsed.definitions
        self._config, settings = parsed.files.config, parsed.settings
        self._definitions = definitions
        self._formula: Formula | None = None
        self._threshold: float | None = None
        self.problem = ""
        written = text(tables.sched, "job_sort_formula") or text(tables.server, "job_sort_formula")
        try:
            if written:
                formula = read_formula(written)
                known = {*definitions, "walltime", "cput", *_VARIABLES}
                if strange := sorted(formula.names - known):
                    raise BadRequest(f"job_sort_formula: '{strange[0][:40]}' is not a resource")
                self._formula = formula
            if limit := text(tables.sched, "job_sort_formula_threshold"):
                self._threshold = float(values.decimal(limit.lstrip("-"))) * (
                    -1 if limit.startswith("-") else 1
                )
        except BadRequest as error:
            self.problem = str(error)
        self._written = written
        self._keys = () if written else settings.job_sort
        self._fair = settings.fair_share
        self._standings: dict[str, Standing] = {}
        named = self._formula.names if self._formula else {key.name for key in self._keys}
        if self._fair or named & _FAIRSHARE:
            if self._fair and self._keys:
                self.problem = "job_sort_key is not used beside fair_share: arrival decides"
                self._keys = ()
            self._standings = usage.standings(
                parsed.files.members,
                {
                    entity_of(job, tables.jobs[job.id], self._config)
                    for job in parsed.jobs.values()
                    if job.is_waiting
                },
                self._config,
            )
        self._places = self._ranked(parsed) if len(self._keys) > 1 else {}

    @property
    def depend_on(self) -> object:
        """Everything but the job; equal to an earlier one if jobs have the same priorities."""
        return (
            self._written, self._threshold, self.problem, self._keys, self._fair, self._standings,
            self._places,
        )  # fmt: skip

    def _ranked(self, parsed: Parsed) -> dict[tuple[float, ...], int]:
        """The values of several sort keys to their places, the first job's highest."""
        found = {
            self._key_values(job, parsed.tables.jobs[job.id])
            for job in parsed.jobs.values()
            if job.is_waiting
        }
        return {key: at for at, key in enumerate(sorted(found))}

    def _key_values(self, job: PbsJob, attributes: Attributes) -> tuple[float, ...]:
        names = [key.name for key in self._keys]
        found = self._variables(job, attributes, None, names)
        return tuple(found.get(key.name, 0.0) * (1 if key.descending else -1) for key in self._keys)

    def of(
        self, job: PbsJob, attributes: Attributes, queue: PbsQueue | None, *, above_soft: bool
    ) -> tuple[int, str]:
        """Returns the priority of a job, and why it may not start by it (rules 4 and 6)."""
        priority, why = MIDDLE, ""
        if self._formula is not None:
            value = 0.0
            with contextlib.suppress(BadRequest):
                value = self._formula.value(
                    self._variables(job, attributes, queue, self._formula.names)
                )
            priority += _scaled(value)
            if self._threshold is not None and value <= self._threshold:
                why = f"its job_sort_formula is {value:g}, not above {self._threshold:g}"
        elif self._keys:
            key = self._key_values(job, attributes)
            priority += self._places.get(key, 0) if self._places else _scaled(key[0])
        if self._fair and self._config.no_shares_no_run:
            entity = entity_of(job, attributes, self._config)
            if not self._standings[entity].share:
                why = f"{entity} has no shares (fairshare_enforce_no_shares)"
        return (priority if above_soft else priority + _BELOW_SOFT), why

    def shares(self, job: PbsJob, attributes: Attributes) -> Shares:
        """Returns what the message of a waiting job says of fair share (rule 6)."""
        if not self._fair:
            return NO_SHARES
        entity = entity_of(job, attributes, self._config)
        standing = self._standings[entity]
        cost = usage_of(self._config.usage, job, float(job.walltime_s))
        return Shares(
            entity, round(standing.share * _PPM), _rounded(standing.usage), _rounded(cost)
        )

    def _variables(
        self, job: PbsJob, attributes: Attributes, queue: PbsQueue | None, names: Iterable[str]
    ) -> dict[str, float]:
        listed = amounts(attributes, "Resource_List")
        found: dict[str, float] = {"queue_priority": float(queue.priority if queue else 0)}
        standing = self._standings.get(entity_of(job, attributes, self._config), _NOBODY)
        for name in names:
            if name in _FAIRSHARE:
                found[name] = _of_share(name, standing)
            elif name in ("job_priority", "sort_priority"):
                found[name] = _number(text(attributes, "Priority"))
            elif name == "eligible_time":
                found[name] = _duration(text(attributes, "eligible_time"))
            elif name == "accrue_type":
                found[name] = _number(text(attributes, "accrue_type"))
            elif name in ("walltime", "cput"):
                found[name] = _duration(listed.get(name, ""))
            elif name in listed and name in self._definitions:
                found[name] = _amount(self._definitions[name], listed[name])
        return found


_VARIABLES = frozenset(
    ("queue_priority", "job_priority", "eligible_time", "accrue_type", *_FAIRSHARE)
)


_NOBODY = Standing(0.0, 0.0, 0.0)


def _of_share(name: str, standing: Standing) -> float:
    if name == "fairshare_tree_usage":
        return standing.tree_usage
    return standing.factor if name == "fairshare_factor" else standing.share


def _scaled(value: float) -> int:
    return int(max(min(value, _MAX), -_MAX) * 1000)


def _rounded(value: float) -> int:
    """Three digits are enough to compare, and change seldom."""
    return int(float(f"{min(max(value, 0.0), 1e15):.3g}"))


def _number(word: str) -> float:
    try:
        return float(values.whole(word)) if word else 0.0
    except BadRequest:
        return 0.0


def _duration(word: str) -> float:
    try:
        return float(values.duration_s(word)) if word else 0.0
    except BadRequest:
        return 0.0


def _amount(known: ResourceDefinition, word: str) -> float:
    try:
        if known.kind is values.Kind.BOOLEAN:
            return float(values.boolean(word))
        return values.amount(known.kind, word) if known.kind.is_amount else 0.0
    except BadRequest:
        return 0.0
