# SPDX-License-Identifier: Apache-2.0
"""A model fitted to given jobs: sessions of users, dealt to other weeks.

Terms
    session     jobs of one user, each submitted at most 20 min after the one before it.

Rules
    1. Sessions are dealt like cards: each recorded session is taken as often as every other one of
       its hour of the week, or once more. In as many weeks as were recorded, each is taken once.
    2. It begins in a week drawn at random, in its recorded hour of the week, at a second drawn at
       random. All its jobs are taken, with their gaps, sizes, run times, limits, memory and all
       else.
    3. Dependencies within a session are kept; others are dropped. Job numbers are new.
    4. `load` multiplies how often sessions are taken. The weeks begin where the record began.
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
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.lab.sim.workloads.records.as_swf import by_submission
from bridge.lab.sim.workloads.records.job_record import JobRecord

GAP_S: Final = 1200
HOUR_S: Final = 3600
DAY_S: Final = 24 * HOUR_S
WEEK_S: Final = 168 * HOUR_S
MAX_JOBS: Final = 10_000_000


@dataclass(frozen=True)
class Fitted:
    """The model.

    Attributes:
        origin_s: when the record began, Unix seconds.
        sessions: jobs of each session, in order of submission.
    """

    origin_s: int
    weeks: float
    sessions: Sequence[Sequence[JobRecord]]

    def draw(
        self, weeks: float, seed: int, load: float = 1.0, *, whole_days: bool = False
    ) -> list[JobRecord]:
        """Draws jobs.

        Args:
            weeks: how many, at least a part of one.
            seed: same seed, same jobs.
            load: how often sessions are taken, as a factor.
            whole_days: rule 5.

        Returns:
            The jobs, in order of submission.

        Raises:
            ConfigError: they would be too many, or there would be none.
        """
        dice = np.random.default_rng(seed)
        lengths = np.array([len(session) for session in self.sessions])
        share = load * weeks / self.weeks if whole_days else self._shares(weeks, load)
        expected = float(np.sum(share * lengths))
        if expected > MAX_JOBS:
            raise ConfigError("weeks", f"some {expected:,.0f} jobs are more than {MAX_JOBS:,}")
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
        hours = self._hours()
        times = _occurrences(weeks)
        dealt = np.lexsort((dice.random(len(hours)), hours))
        share = self._shares(weeks, load)[dealt]
        until = np.floor(np.cumsum(share) + dice.random()).astype(np.int64)
        for number in np.repeat(dealt, np.diff(until, prepend=0)).tolist():
            hour = int(hours[number])
            week = int(dice.integers(times[hour]))
            at_s = week * WEEK_S + hour * HOUR_S + int(dice.integers(HOUR_S))
            yield number, self.origin_s + at_s

    def _shares(self, weeks: float, load: float) -> NDArray[np.float64]:
        """(n_sessions,) how often each session is taken, on average."""
        hours = self._hours()
        recorded = np.maximum(_occurrences(self.weeks)[hours], 1)
        return np.asarray(load * _occurrences(weeks)[hours] / recorded)

    def _hours(self) -> NDArray[np.int64]:
        """(n_sessions,) the hour of the week in which each begins; 0: that of the first job."""
        return self._begins() // HOUR_S % 168

    def _begins(self) -> NDArray[np.int64]:
        """(n_sessions,) seconds since the record began."""
        return np.array([session[0].submit_s - self.origin_s for session in self.sessions])

    def _days(
        self, weeks: float, load: float, dice: np.random.Generator
    ) -> Iterator[tuple[int, int]]:
        """The same by rule 5."""
        begins = self._begins()
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
    return Fitted(origin_s, weeks, sessions)


def _occurrences(weeks: float) -> NDArray[np.int64]:
    """(168,) how often each hour of the week is in so many weeks; the last may be cut off."""
    full, more = divmod(int(min(np.ceil(weeks * 168), 2**53)), 168)
    return full + (np.arange(168) < more)


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
