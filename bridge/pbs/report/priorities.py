# SPDX-License-Identifier: Apache-2.0
"""Priorities of waiting jobs: `job_sort_formula`, and soft limits.

Rules
    1. Without a formula all priorities are equal: jobs are considered in the order of their queues'
       priority and of their arrival, as pbs_sched does without `job_sort_key`.
    2. The priority on the wire is the formula's value in thousandths, above `MIDDLE` if positive. A
       job for which it has no value is considered last.
    3. Jobs of an entity above its soft limit are considered after all others.
    4. A job below `job_sort_formula_threshold` does not start.
    5. eligible_time is taken as the server states it.

Source: OpenPBS 23.06, pbs_server_attributes(7), pbs_sched_attributes(7).
"""

from collections.abc import Mapping

from bridge.errors import BadRequest
from bridge.pbs.objects import values
from bridge.pbs.objects.definitions import Definition
from bridge.pbs.objects.formula import Formula, read_formula
from bridge.pbs.objects.parsed import Queue
from bridge.pbs.tables import Attributes, Tables, amounts, text

MIDDLE = 1 << 60
_MOST = (1 << 59) / 1000
_BELOW_SOFT = 1 << 61
_FAIRSHARE = frozenset(("fairshare_perc", "fairshare_tree_usage", "fairshare_factor"))


class Priorities:
    """The priorities under one server's settings.

    Attributes:
        problem: of the formula; empty: it is understood, or there is none.
    """

    def __init__(self, tables: Tables, definitions: Mapping[str, Definition]) -> None:
        self._definitions = definitions
        self._formula: Formula | None = None
        self._threshold: float | None = None
        self.problem = ""
        written = text(tables.sched, "job_sort_formula") or text(tables.server, "job_sort_formula")
        try:
            if written:
                formula = read_formula(written)
                known = {*definitions, "walltime", "cput", *_VARIABLES}
                if strange := sorted(formula.names & _FAIRSHARE):
                    raise BadRequest(f"job_sort_formula: {strange[0]} is not supported")
                if strange := sorted(formula.names - known):
                    raise BadRequest(f"job_sort_formula: '{strange[0][:40]}' is not a resource")
                self._formula = formula
            if limit := text(tables.sched, "job_sort_formula_threshold"):
                self._threshold = float(values.decimal(limit.lstrip("-"))) * (
                    -1 if limit.startswith("-") else 1
                )
        except BadRequest as error:
            self.problem = str(error)

    def of(
        self, attributes: Attributes, queue: Queue | None, *, above_soft: bool
    ) -> tuple[int, str]:
        """Returns the priority of a job, and why it may not start by it (rule 4)."""
        priority, why = MIDDLE, ""
        if self._formula is not None:
            try:
                value = self._formula.value(self._variables(attributes, queue))
                priority = MIDDLE + int(max(min(value, _MOST), -_MOST) * 1000)
                if self._threshold is not None and value <= self._threshold:
                    why = f"its job_sort_formula is {value:g}, not above {self._threshold:g}"
            except BadRequest:
                priority = 1
        return (priority if above_soft else priority + _BELOW_SOFT), why

    def _variables(self, attributes: Attributes, queue: Queue | None) -> dict[str, float]:
        listed = amounts(attributes, "Resource_List")
        found: dict[str, float] = {"queue_priority": float(queue.priority if queue else 0)}
        assert self._formula is not None
        for name in self._formula.names:
            if name == "job_priority":
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


def _amount(known: Definition, word: str) -> float:
    try:
        if known.kind is values.Kind.BOOLEAN:
            return float(values.boolean(word))
        return values.amount(known.kind, word) if known.kind.is_amount else 0.0
    except BadRequest:
        return 0.0
