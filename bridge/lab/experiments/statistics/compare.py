# SPDX-License-Identifier: Apache-2.0
"""Compares every contestant of an experiment with the baseline, scenario by scenario.

1. Pairs: the runs of a scenario with the same seed, under the contestant and under the baseline.
   Within a pair, jobs are joined by their ids and trimmed (`jobs.py`).
2. Estimates: each measure for all jobs and for each class of jobs; the difference as a share of the
   baseline's value. Blocks of jobs are resampled: weeks, or users if the trace is short; with
   `FEWEST_RUNS` runs, runs are as well, and only runs if the perturbation itself draws weeks or
   users (`bootstrap.py` says what an interval covers). Runs whose schedules are all the same are
   one run, since their seeds repeat nothing.
3. Verdicts: one table holds one measure for one kind of class, over all scenarios and contestants.
   Holm's correction counts the comparisons of a table (`verdict.py`).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ResultError
from bridge.lab.experiments.statistics.bootstrap import (
    FEWEST_BLOCKS,
    FEWEST_RUNS,
    Blocks,
    Estimate,
    mean_interval,
    over_blocks,
    over_both,
    over_runs,
    plain,
    share_interval,
    weeks_of,
)
from bridge.lab.experiments.statistics.classes import ALL, JobClass, classes_of
from bridge.lab.experiments.statistics.fairness import Harm, harm_of, worse_off
from bridge.lab.experiments.statistics.jobs import AS_USUAL, Jobs, RunPair, Trim, joined, pair_of
from bridge.lab.experiments.statistics.quantities import BY_NAME, OF_JOBS, Quantity, of_run
from bridge.lab.experiments.statistics.reading import Bench, Contestant, Scenario, StoredResult
from bridge.lab.experiments.statistics.verdict import Verdict, verdicts

_RUN_ALIKE = 0.005
"""Difference of run times that is not worth a note."""
_MAX_TOGETHER = 4
"""Most runs whose jobs are resampled by blocks together."""

Values = dict[tuple[JobClass, str], tuple[float, float]]
"""Of one pair, by class and measure: the value under the baseline and under the contestant."""


class Over(StrEnum):
    """What is resampled."""

    AUTO = "auto"
    RUNS = "runs"
    WEEKS = "weeks"
    USERS = "users"


@dataclass(frozen=True)
class ComparisonRow:
    """One line of a table.

    Attributes:
        jobs: judged jobs of the class, mean over the runs.
    """

    scenario: Scenario
    contestant: Contestant
    job_class: JobClass
    quantity: Quantity
    estimate: Estimate
    verdict: Verdict
    jobs: int


@dataclass(frozen=True)
class Faced:
    """A contestant in a scenario, apart from the estimates.

    Attributes:
        seeds: seeds of the pairs, ascending.
        distinct: how many of the pairs differ from all others.
        harm: who is worse off.
        over: what was resampled, as in `Estimate`; "": nothing.
        units: how many blocks, or runs if only these.
        unpaired: jobs that ended in one run of a pair only, over all pairs.
        judged: jobs, over all pairs.
        longer: by which share their run times together exceed those under the baseline.
    """

    scenario: Scenario
    contestant: Contestant
    seeds: tuple[int, ...]
    distinct: int
    harm: Harm
    over: str
    units: int
    unpaired: int
    judged: int
    longer: float


@dataclass(frozen=True)
class Findings:
    """Everything that was found.

    Attributes:
        baseline: the contestant that the others are compared with.
        trim: which jobs were judged.
        comparisons: in order of scenario, contestant, class and measure.
        notes: what a reader has to know, in words.
    """

    baseline: Contestant
    trim: Trim
    comparisons: Sequence[ComparisonRow]
    faced: Sequence[Faced]
    notes: Sequence[str]

    def of(self, quantity: str, kind: str = "all") -> list[ComparisonRow]:
        """One table: a measure for one kind of class."""
        return [
            one
            for one in self.comparisons
            if one.quantity.name == quantity and one.job_class.kind == kind
        ]


def compare(
    bench: Bench, baseline: Contestant, *, trim: Trim = AS_USUAL, over: Over = Over.AUTO
) -> Findings:  # fmt: skip
    """Compares all contestants with the baseline.

    Args:
        bench: the results; columns of jobs are read as they are needed.
        trim: which jobs are judged.
        over: what is resampled; AUTO: as the module describes.

    Raises:
        ResultError: results contradict each other, or nothing can be compared.
    """
    rows: list[tuple[Scenario, Contestant, JobClass, Quantity, Estimate, int]] = []
    faced: list[Faced] = []
    notes: list[str] = []
    for scenario, runs in bench.cells.items():
        for contestant, seeds in runs.items():
            if contestant == baseline:
                continue
            common = sorted(seeds.keys() & runs.get(baseline, {}).keys())
            if len(common) < len(seeds):
                notes.append(
                    f"{scenario.name}: {len(seeds) - len(common)} of {len(seeds)} runs of"
                    f" {contestant.name} have no run of {baseline.name} with the same seed"
                )
            if common:
                pairs = _Pairs(scenario, contestant, runs[baseline], seeds, tuple(common), trim)
                found, facts = pairs.judged(over)
                rows += [(scenario, contestant, *each) for each in found]
                faced.append(facts)
    if not faced:
        raise ResultError(
            "results",
            f"there is nothing to compare with {baseline.name}: no other policy or predictor has"
            " a result on the same trace with the same seed",
        )
    notes += _notes(bench, faced)
    return Findings(baseline, trim, _with_verdicts(rows), faced, notes)


@dataclass(frozen=True)
class _Pairs:
    """The pairs of a contestant in a scenario; at most one is in memory unless blocks are drawn."""

    scenario: Scenario
    contestant: Contestant
    base: dict[int, StoredResult]
    other: dict[int, StoredResult]
    seeds: tuple[int, ...]
    trim: Trim

    def pair(self, seed: int) -> RunPair:
        name = f"{self.scenario.name}, seed {seed}, {self.contestant.name}"
        return pair_of(self.base[seed].jobs(), self.other[seed].jobs(), self.trim, name)

    def judged(self, over: Over) -> tuple[list[tuple[JobClass, Quantity, Estimate, int]], Faced]:
        values: list[Values] = []
        harms: list[Harm] = []
        sizes: dict[JobClass, list[int]] = {}
        different: dict[bytes, int] = {}
        unpaired = judged = 0
        run_s = np.zeros(2)
        for seed in self.seeds:
            pair = self.pair(seed)
            base, other = pair.base[pair.judged], pair.other[pair.judged]
            different.setdefault(_print(base, other), seed)
            unpaired, judged = unpaired + pair.unpaired, judged + len(base)
            run_s += base.run_s.sum(), other.run_s.sum()
            harms.append(harm_of(base, other))
            values.append(dict(_values(pair, base, other)))
            for job_class, rows in classes_of(base):
                sizes.setdefault(job_class, []).append(int(rows.sum()))
        enough = len(self.seeds) >= FEWEST_RUNS and len(different) > 1
        if over is Over.RUNS or (over is Over.AUTO and enough and self.scenario.redrawn):
            estimates = self._over_runs(values, enough=enough)
            harm, units = self._harm(harms), len(self.seeds)
            name = "runs" if enough else ""
        else:
            seeds = list(different.values())[:_MAX_TOGETHER]
            both = enough and over is Over.AUTO
            estimates, harm, name, units = self._over_blocks(values, harms, seeds, over, both=both)
        found = [
            (job_class, BY_NAME[key], estimates[job_class, key], int(np.mean(sizes[job_class])))
            for job_class, key in estimates
        ]
        facts = Faced(
            self.scenario, self.contestant, self.seeds, len(different), harm, name, units,
            unpaired, judged, float(run_s[1] / run_s[0] - 1) if run_s[0] else 0.0,
        )  # fmt: skip
        return found, facts

    def _rng(self) -> np.random.Generator:
        """The same for the same names, whatever else is compared."""
        text = repr((self.scenario, self.contestant))
        return np.random.default_rng(list(sha256(text.encode()).digest()))

    def _harm(self, harms: list[Harm]) -> Harm:
        """Means over the runs, with the interval."""
        means = {
            name: float(np.mean([getattr(one, name) for one in harms]))
            for name in ("jobs_worse", "jobs_better", "users_worse", "users_better", "worst_user")
        }
        worse = np.array([one.jobs_worse for one in harms])
        low, high = mean_interval(worse, self._rng())
        return Harm(**means, low=low, high=high)

    def _over_runs(
        self, values: list[Values], *, enough: bool
    ) -> dict[tuple[JobClass, str], Estimate]:
        rng, found = self._rng(), {}
        for key in values[0]:
            sides = np.array([one[key] for one in values if key in one])
            if enough:
                found[key] = over_runs(sides[:, 0], sides[:, 1], rng)
            else:
                found[key] = _without_interval(sides)
        return found

    def _over_blocks(
        self, values: list[Values], harms: list[Harm], seeds: list[int], over: Over, *, both: bool
    ) -> tuple[dict[tuple[JobClass, str], Estimate], Harm, str, int]:
        pairs = [self.pair(seed) for seed in seeds]
        base = joined([pair.base[pair.judged] for pair in pairs])
        other = joined([pair.other[pair.judged] for pair in pairs])
        blocks, rng = self._blocks(base, over), self._rng()
        few = blocks.number < FEWEST_BLOCKS
        if few and both:
            found = self._over_runs(values, enough=True)
            return found, self._harm(harms), "runs", len(self.seeds)
        found = {}
        for job_class, rows in _classes(pairs).items():
            jobs, drawn = (base[rows], other[rows]), blocks[rows]
            for quantity in OF_JOBS:
                key = job_class, quantity.name
                if both and (runs := _sides(values, key)) is not None:
                    found[key] = over_both(runs, jobs, drawn, quantity, rng=rng)
                else:
                    found[key] = over_blocks(*jobs, drawn, quantity)
        for key in [key for key in values[0] if key not in found]:
            sides = np.array([one[key] for one in values if key in one])
            found[key] = (
                over_runs(sides[:, 0], sides[:, 1], rng) if both else _without_interval(sides)
            )
        low, high = share_interval(worse_off(base, other), blocks)
        harm = replace(self._harm(harms), low=low, high=high)
        name = "" if few else f"runs and {blocks.name}" if both else blocks.name
        return found, harm, name, blocks.number

    def _blocks(self, base: Jobs, over: Over) -> Blocks:
        weeks = weeks_of(base.submit_s)
        few = len(np.unique(weeks)) < FEWEST_BLOCKS
        if over is Over.USERS or (over is Over.AUTO and few):
            return Blocks.drawn("users", base.user, self._rng())
        return Blocks.drawn("weeks", weeks, self._rng())


def _classes(pairs: list[RunPair]) -> dict[JobClass, NDArray[np.bool_]]:
    """Each class with its judged jobs, all pairs one behind the other; classes are of one run."""
    of_pairs = [dict(classes_of(pair.base[pair.judged])) for pair in pairs]
    empty = [np.zeros(int(pair.judged.sum()), dtype=bool) for pair in pairs]
    return {
        job_class: np.concatenate(
            [classes.get(job_class, none) for classes, none in zip(of_pairs, empty, strict=True)]
        )
        for job_class in dict.fromkeys(one for classes in of_pairs for one in classes)
    }


def _sides(
    values: list[Values], key: tuple[JobClass, str]
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """The measure of each run under baseline and contestant; None unless all runs have it."""
    if not all(key in one for one in values):
        return None
    sides = np.array([one[key] for one in values])
    return sides[:, 0], sides[:, 1]


def _without_interval(sides: NDArray[np.float64]) -> Estimate:
    """Means over the runs; sides: (n_runs, 2)."""
    base, other = sides.mean(axis=0)
    return plain(float(base), float(other), len(sides))


def _print(base: Jobs, other: Jobs) -> bytes:
    """The same for pairs with the same schedules: a seed that changed nothing is no repetition."""
    found = sha256(base.submit_s.tobytes())
    for jobs in (base, other):
        found.update(jobs.start_s.tobytes())
        found.update(jobs.end_s.tobytes())
    return found.digest()


def _values(
    pair: RunPair, base: Jobs, other: Jobs
) -> Iterator[tuple[tuple[JobClass, str], tuple[float, float]]]:
    for job_class, rows in classes_of(base):
        inside, outside = base[rows], other[rows]
        for quantity in OF_JOBS:
            yield (job_class, quantity.name), (quantity.of(inside), quantity.of(outside))
    for name, sides in of_run(pair).items():
        yield (ALL, name), sides


def _with_verdicts(
    rows: list[tuple[Scenario, Contestant, JobClass, Quantity, Estimate, int]],
) -> list[ComparisonRow]:
    tables: dict[tuple[str, str], list[int]] = {}
    for index, (_, _, job_class, quantity, _, _) in enumerate(rows):
        tables.setdefault((quantity.name, job_class.kind), []).append(index)
    found: dict[int, Verdict] = {}
    for table in tables.values():
        judged = verdicts([(rows[index][3], rows[index][4]) for index in table])
        found |= dict(zip(table, judged, strict=True))
    return [
        ComparisonRow(*row[:5], verdict=found[index], jobs=row[5]) for index, row in enumerate(rows)
    ]


def _notes(bench: Bench, faced: Sequence[Faced]) -> Iterator[str]:
    if bench.failed:
        yield f"{len(bench.failed)} cells failed and are left out"
    if bench.superseded:
        yield (
            f"{bench.superseded} results of an earlier version or an earlier text of the policy are"
            " left out"
        )
    for name, number in Counter((one.trace, one.perturbation) for one in bench.cells).items():
        if number > 1:
            yield (
                f"{number} scenarios of trace '{name[0]}', perturbation '{name[1]}' differ as their"
                " names state, because the trace or its settings were changed: give the"
                " experiment's YAML file to compare those of today alone"
            )
    for scenario, runs in bench.cells.items():
        for contestant, seeds in runs.items():
            doubted = [kept.result.doubts for kept in seeds.values() if kept.result.doubts]
            if doubted:
                yield (
                    f"{scenario.name}: {len(doubted)} of {len(seeds)} runs of {contestant.name} are"
                    f" doubtful; the first: {', '.join(doubted[0])}"
                )
    for one in faced:
        if one.unpaired:
            yield (
                f"{one.scenario.name}: {one.unpaired} jobs ended under only one of"
                f" {one.contestant.name} and the baseline, and are not compared"
            )
        if abs(one.longer) > _RUN_ALIKE:
            yield (
                f"{one.scenario.name}: jobs run {100 * abs(one.longer):.1f} %"
                f" {'longer' if one.longer > 0 else 'shorter'} under {one.contestant.name} than"
                " under the baseline, which waits and slowdowns do not show: see the mean response"
            )
        if len(one.seeds) > 1 and one.distinct == 1:
            yield (
                f"{one.scenario.name}: the {len(one.seeds)} seeds of {one.contestant.name} gave the"
                " same schedules: they count as one run"
            )
    for scenario in dict.fromkeys(one.scenario for one in faced if one.over in ("weeks", "users")):
        yield (
            f"{scenario.name}: the intervals leave out chance in the schedules, such as the order"
            " of jobs submitted in the same second: a difference may be due to it; ties and"
            f" {FEWEST_RUNS} seeds show that"
        )
