# SPDX-License-Identifier: Apache-2.0
"""Perturbations of a trace: other workloads that the same site could have had.

A perturbation is a mapping of steps, which are carried out in the order of this table. Each step
draws from its own stream of the seed: the same seed gives the same jobs for every policy.

| step | value | rule |
|---|---|---|
| `weeks` | true | Bootstrap of weeks: of the trace's W whole weeks, W are drawn with replacement and put one after the other; a job keeps its time within the week. What follows the last whole week is left out |
| `users` | true | Resampling of users: as many users as there are, drawn with replacement. The first copy of a user keeps its times; each further one is shifted by whole weeks, around the end of the trace, and is a user of its own. Jobs of unknown users stay |
| `load` | factor | Times between submissions are divided by the factor |
| `ties` | true | Jobs submitted in the same second are put into a random order |
| `malleable` | percent | So many of the jobs can grow and shrink (`bridge.lab.sim.workloads.malleable_jobs`) |
| `consent` | percent | So many of the jobs consent to share nodes; of `bridge.cli.simulation.sharing`, not here |

Source: bootstrap of blocks of a series, H. R. Künsch, Annals of Statistics 17(3), 1989; resampling of
users, N. Zakay and D. G. Feitelson, Workload Resampling for Performance Evaluation of Parallel Job
Schedulers, Concurrency and Computation: Practice and Experience 26(12), 2014.
Deviates: of users, all jobs are drawn together, not short- and long-term users apart.
"""  # noqa: E501 - a table

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.lab.sim.workloads.malleable_jobs import with_malleable
from bridge.lab.sim.workloads.workload import Workload
from bridge.units import DAY_S

WEEK_S: Final = 7 * DAY_S
MIN_LOAD, MAX_LOAD = 0.01, 100.0

CHANCE: Final = frozenset({"weeks", "users", "ties", "malleable", "consent"})
"""Steps in which something is drawn: without one, all seeds give the same jobs."""
MOVING: Final = frozenset({"weeks", "users", "load"})
"""Steps after which jobs are submitted at other times: recorded outages of nodes are left out."""
STEPS: Final = ("weeks", "users", "load", "ties", "malleable", "consent")


def perturbed(workload: Workload, parameters: Mapping[str, Any], seed: int) -> Workload:
    """The workload after all steps but `consent`.

    Args:
        workload: jobs of a trace.

    Raises:
        ConfigError: there is no such step, or the trace does not allow it.
    """
    for name in parameters:
        if name not in STEPS:
            raise ConfigError(
                f"perturbations.{name}", f"there is no such step; there are {', '.join(STEPS)}"
            )
    for number, (name, step) in enumerate(_STEPS.items()):
        if name in parameters and parameters[name] is not False:
            workload = step(workload, parameters[name], np.random.default_rng((number, seed)))
    if "malleable" in parameters:
        workload = with_malleable(workload, parameters["malleable"], seed=seed)
    return workload


def taken(workload: Workload, rows: NDArray[np.int64], **columns: NDArray[Any]) -> Workload:
    """Jobs of a workload, also several times, sorted by submission.

    Args:
        rows: (n,) which jobs.
        columns: (n,) in place of theirs: `submit_s`, `user`.

    Returns:
        The jobs. Further copies of a job have new ids: numbers above all others.

    Raises:
        ConfigError: jobs of this kind cannot be taken apart.
    """
    if workload.malleable is not None or workload.power or workload.sharing:
        raise ConfigError("perturbations", "only the jobs of a trace can be drawn or moved")
    submit_s = columns.get("submit_s", workload.submit_s[rows])
    order = np.argsort(submit_s, kind="stable")
    rows = rows[order]
    found: dict[str, Any] = {
        field.name: value[rows]
        for field in fields(workload)
        if isinstance(value := getattr(workload, field.name), np.ndarray)
    }
    found |= {name: column[order] for name, column in columns.items()}
    found["id"] = _ids(found["id"])
    if workload.requests is not None:
        table = workload.requests.rows(rows)
        moved = found["user"] != workload.user[rows]
        names = [f"user{user}" for user in found["user"].tolist()]
        found["requests"] = replace(
            table,
            user=np.where(moved, np.array(names, dtype=object), table.user),
            id=found["id"],
            submit_s=found["submit_s"],
            eligible_s=np.maximum(table.eligible_s, found["submit_s"]),
            priority=np.arange(len(rows), 0, -1, dtype=np.int64),
        )
    return replace(workload, **found)


def numbers_of(workload: Workload) -> NDArray[np.int64]:
    """The jobs' ids as unique numbers: those of the trace; of other ids, numbers above them."""
    found = np.full(len(workload), -1, dtype=np.int64)
    seen: set[int] = set()
    for row, text in enumerate(workload.id.tolist()):
        if text.isdecimal() and len(text) < 18 and int(text) not in seen:
            found[row] = int(text)
            seen.add(int(text))
    others = np.flatnonzero(found < 0)
    found[others] = max(seen, default=0) + 1 + np.arange(len(others))
    return found


def whole_weeks(workload: Workload) -> int:
    """Whole weeks from the first submission to the last."""
    return int(workload.submit_s[-1] - workload.submit_s[0]) // WEEK_S


def _ids(ids: NDArray[np.object_]) -> NDArray[np.object_]:
    _, first = np.unique(ids.astype(str), return_index=True)
    if len(first) == len(ids):
        return ids
    made = ids.copy()
    again = np.ones(len(ids), dtype=bool)
    again[first] = False
    highest = max((int(text) for text in ids.tolist() if text.isdecimal()), default=0)
    for number, row in enumerate(np.flatnonzero(again).tolist(), highest + 1):
        made[row] = str(number)
    return made


def _weeks(workload: Workload, _: Any, dice: np.random.Generator) -> Workload:
    origin_s, weeks = int(workload.submit_s[0]), whole_weeks(workload)
    if weeks < 2:
        raise ConfigError(
            "perturbations.weeks",
            f"{workload.name} has {weeks} whole weeks: a bootstrap needs two or more; take another"
            " trace, or more of its jobs",
        )
    week = (workload.submit_s - origin_s) // WEEK_S
    begins = np.searchsorted(week, np.arange(weeks + 1))
    drawn = dice.integers(0, weeks, weeks)
    rows = [np.arange(begins[each], begins[each + 1]) for each in drawn.tolist()]
    moved_s = np.repeat((np.arange(weeks) - drawn) * WEEK_S, [len(part) for part in rows])
    chosen = np.concatenate(rows).astype(np.int64)
    if not len(chosen):
        raise ConfigError("perturbations.weeks", f"{workload.name}: no job in the drawn weeks")
    return taken(workload, chosen, submit_s=workload.submit_s[chosen] + moved_s)


def _users(workload: Workload, _: Any, dice: np.random.Generator) -> Workload:
    users = np.unique(workload.user[workload.user >= 0])
    if len(users) < 2:
        raise ConfigError(
            "perturbations.users", f"{workload.name} names {len(users)} users: nothing to draw from"
        )
    origin_s, weeks = int(workload.submit_s[0]), max(whole_weeks(workload), 1)
    span_s = weeks * WEEK_S if weeks > 1 else int(workload.submit_s[-1]) - origin_s + 1
    unknown = np.flatnonzero(workload.user < 0)
    rows, submit_s, names = [unknown], [workload.submit_s[unknown]], [workload.user[unknown]]
    fresh, times = int(users.max()) + 1, dict.fromkeys(users.tolist(), 0)
    for user in dice.choice(users, len(users)).tolist():
        own = np.flatnonzero(workload.user == user)
        at_s, name = workload.submit_s[own], user
        if times[user]:
            shift_s = int(dice.integers(1, max(weeks, 2))) * WEEK_S
            at_s = origin_s + (at_s - origin_s + shift_s) % span_s
            name, fresh = fresh, fresh + 1
        times[user] += 1
        rows.append(own)
        submit_s.append(at_s)
        names.append(np.full(len(own), name, dtype=np.int64))
    return taken(
        workload,
        np.concatenate(rows),
        submit_s=np.concatenate(submit_s),
        user=np.concatenate(names),
    )


def _load(workload: Workload, factor: Any, _: np.random.Generator) -> Workload:
    if not MIN_LOAD <= factor <= MAX_LOAD:
        raise ConfigError(
            "perturbations.load", f"must be {MIN_LOAD:g} to {MAX_LOAD:g}, not {factor:g}"
        )
    origin_s = int(workload.submit_s[0])
    submit_s = origin_s + np.floor((workload.submit_s - origin_s) / factor).astype(np.int64)
    return taken(workload, np.arange(len(workload)), submit_s=submit_s)


def _ties(workload: Workload, _: Any, dice: np.random.Generator) -> Workload:
    order = np.lexsort((dice.random(len(workload)), workload.submit_s))
    return taken(workload, order.astype(np.int64))


_STEPS: Final[Mapping[str, Callable[[Workload, Any, np.random.Generator], Workload]]] = {
    "weeks": _weeks,
    "users": _users,
    "load": _load,
    "ties": _ties,
}
