# SPDX-License-Identifier: Apache-2.0
"""A model fitted to given jobs: sessions of users, at a rate by hour of the week.

Terms
    session     jobs of one user, each submitted at most 20 min after the one before it.
    rate        sessions that begin in an hour of the week, per week of the record.

Rules
    1. Sessions begin as a Poisson process with the rate of each of the 168 hours of a week.
    2. A session that begins is one of the recorded ones: of the same hour of the week if at least
       `_ENOUGH` began in it, else of the same hour of any day, else of any. All its jobs are
       taken, with their gaps, sizes, run times, limits, memory and all else.
    3. Dependencies within a session are kept; others are dropped. Job numbers are new.
    4. `load` multiplies the rate. The weeks begin where the record began.
    5. With `whole_days` rules 1 and 2 give way to: a day has all sessions that began on a recorded
       day of the same weekday, at their times. `load` draws further days, or leaves out sessions.

Kept: how jobs of a session depend on each other, and size, run time and limit of a job on each
other; cycles of day and week; users' habits. Lost: trends, holidays, bursts over days, users who
come and go, and users' reactions to their waits (gaps within sessions are the recorded ones). Whole
days also keep how the sessions of a day depend on each other; extreme days may come in a row.

Source: sessions of 20 min: N. Zakay, D. G. Feitelson, On Identifying User Session Boundaries in
Parallel Workload Logs, JSSPP 2012; resampling of users' activity: the same, Workload Resampling for
Performance Evaluation of Parallel Job Schedulers, Concurrency and Computation 26(12), 2014.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from bridge.errors import ConfigError
from bridge.sim.workloads.records.as_swf import by_submission
from bridge.sim.workloads.records.job_record import JobRecord

GAP_S: Final = 1200
HOUR_S: Final = 3600
DAY_S: Final = 24 * HOUR_S
WEEK_S: Final = 168 * HOUR_S
_ENOUGH: Final = 5
MOST_JOBS: Final = 10_000_000


@dataclass(frozen=True)
class Fitted:
    """The model.

    Attributes:
        origin_s: when the record began, Unix seconds.
        weeks: of the record.
        sessions: jobs of each session, in order of submission.
        of_hour: for each hour of the week the sessions that began in it.
        rate: (168,) sessions per hour of the week.
    """

    origin_s: int
    weeks: float
    sessions: Sequence[Sequence[JobRecord]]
    of_hour: Sequence[Sequence[int]]
    rate: np.ndarray[tuple[int], np.dtype[np.float64]]

    def draw(
        self, weeks: float, seed: int, load: float = 1.0, *, whole_days: bool = False
    ) -> list[JobRecord]:
        """Draws jobs.

        Args:
            weeks: how many, at least a part of one.
            seed: same seed, same jobs.
            load: factor of the rate.
            whole_days: rule 5.

        Returns:
            The jobs, in order of submission.

        Raises:
            ConfigError: they would be too many, or there would be none.
        """
        dice = np.random.default_rng(seed)
        expected = self.rate.sum() * load * weeks * np.mean([len(each) for each in self.sessions])
        if expected > MOST_JOBS:
            raise ConfigError("weeks", f"some {expected:,.0f} jobs are more than {MOST_JOBS:,}")
        drawn = self._days(weeks, load, dice) if whole_days else self._singly(weeks, load, dice)
        jobs: list[JobRecord] = []
        for number, begin_s in drawn:
            jobs += _moved(self.sessions[number], begin_s, len(jobs))
        if not jobs:
            raise ConfigError("weeks", "no job was drawn: give more weeks")
        return by_submission(jobs)

    def _singly(
        self, weeks: float, load: float, dice: np.random.Generator
    ) -> Iterator[tuple[int, int]]:
        """Sessions and when they begin, Unix seconds, by rules 1 and 2."""
        for hour in range(int(np.ceil(weeks * 168))):
            known = self._choice(hour % 168)
            for _ in range(int(dice.poisson(self.rate[hour % 168] * load))):
                begin_s = self.origin_s + hour * HOUR_S + int(dice.integers(HOUR_S))
                yield known[int(dice.integers(len(known)))], begin_s

    def _days(
        self, weeks: float, load: float, dice: np.random.Generator
    ) -> Iterator[tuple[int, int]]:
        """The same by rule 5."""
        begins = np.array([session[0].submit_s - self.origin_s for session in self.sessions])
        recorded = max(int(self.weeks * 7), 1)  # the last day may be cut off
        of_day = np.searchsorted(begins, np.arange(recorded + 1) * DAY_S)
        for day in range(int(np.ceil(weeks * 7))):
            known = np.arange(day % 7, recorded, 7) if recorded >= 7 else np.arange(recorded)
            left = load
            while left > 0:
                other = int(dice.choice(known))
                for number in range(of_day[other], of_day[other + 1]):
                    at_s = int(begins[number]) + (day - other) * DAY_S
                    if dice.random() < left and at_s < weeks * WEEK_S:
                        yield number, self.origin_s + at_s
                left -= 1

    def _choice(self, hour: int) -> Sequence[int]:
        """The sessions from which one that begins in an hour of the week is drawn (rule 2)."""
        if len(self.of_hour[hour]) >= _ENOUGH:
            return self.of_hour[hour]
        same = [each for day in range(7) for each in self.of_hour[day * 24 + hour % 24]]
        return same if len(same) >= _ENOUGH else range(len(self.sessions))


def fit(jobs: Sequence[JobRecord]) -> Fitted:
    """Fits the model to jobs; those that never ran count, too.

    Raises:
        ConfigError: there are none.
    """
    if not jobs:
        raise ConfigError("trace", "has no jobs")
    ordered = by_submission(jobs)
    origin_s = ordered[0].submit_s
    weeks = max((ordered[-1].submit_s - origin_s + 1) / WEEK_S, 1 / 168)
    sessions: list[list[JobRecord]] = []
    last: dict[str, int] = {}
    for position, job in enumerate(ordered):
        user = job.user or f"(job {position})"  # jobs of unknown users are sessions of their own
        at = last.get(user)
        if at is not None and job.submit_s - sessions[at][-1].submit_s <= GAP_S:
            sessions[at].append(job)
        else:
            last[user] = len(sessions)
            sessions.append([job])
    of_hour: list[list[int]] = [[] for _ in range(168)]
    for number, session in enumerate(sessions):
        of_hour[(session[0].submit_s - origin_s) // HOUR_S % 168].append(number)
    # How often each hour of the week is in the record; the last week may be cut off.
    hours = int(np.ceil(weeks * 168))
    times = np.bincount(np.arange(hours) % 168, minlength=168)
    rate = np.array([len(each) for each in of_hour]) / np.maximum(times, 1)
    return Fitted(origin_s, weeks, sessions, of_hour, rate)


def _moved(session: Sequence[JobRecord], begin_s: int, number: int) -> list[JobRecord]:
    """The jobs of a session at another time, with new numbers."""
    by = begin_s - session[0].submit_s
    names = {job.id: str(number + at) for at, job in enumerate(session, 1)}
    arrays = {job.array: names[job.id] for job in reversed(session) if job.array}
    found = []
    for job in session:
        after = tuple(
            (kind, names.get(other, arrays.get(other, "")))
            for kind, other in job.after
            if kind == "singleton" or other in names or other in arrays
        )
        array = arrays.get(job.array, "")
        found.append(
            replace(
                job,
                id=f"{array}_{names[job.id]}" if array else names[job.id],
                array=array,
                component="",
                after=after,
                submit_s=job.submit_s + by,
                eligible_s=job.eligible_s + by if job.eligible_s else 0,
                start_s=job.start_s + by if job.start_s else 0,
                end_s=job.end_s + by if job.end_s else 0,
                reservation="",
            )
        )
    whole = {names[job.id]: each.id for job, each in zip(session, found, strict=True)}
    return [
        replace(each, after=tuple((kind, whole.get(other, other)) for kind, other in each.after))
        for each in found
    ]
