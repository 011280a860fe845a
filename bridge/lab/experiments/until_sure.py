# SPDX-License-Identifier: Apache-2.0
"""How many more seeds an experiment needs until its intervals are narrow enough.

After each batch of cells, `until_sure` looks at the intervals of one measure over all jobs. An
interval is narrow enough if its ends are at most `width` of the baseline's value apart. The widths
shrink with the square root of the number of runs: n runs with width w need n * (w / width)^2. The
estimate is rough for few runs, so a batch at most doubles the runs. It stops when all intervals
are narrow enough, at the cap, or where seeds cannot help: all of them gave the same schedules.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from bridge.errors import ConfigError, ResultError
from bridge.lab.experiments.cell import Cell
from bridge.lab.experiments.statistics.bootstrap import FEWEST_RUNS
from bridge.lab.experiments.statistics.compare import ComparisonRow, Over, compare
from bridge.lab.experiments.statistics.jobs import AS_USUAL, Trim
from bridge.lab.experiments.statistics.quantities import BY_NAME, MEAN_WAIT
from bridge.lab.experiments.statistics.reading import Contestant, Scenario, read_bench

MAX_SEEDS = 100


@dataclass(frozen=True)
class Wide:
    """A comparison whose interval is too wide.

    Attributes:
        width: the width of its interval, as a share of the baseline's value; None: there is none
            yet.
        more: that it needs, by estimate; 0: seeds cannot help.
    """

    scenario: Scenario
    contestant: Contestant
    width: float | None
    seeds: int
    more: int


@dataclass(frozen=True)
class NextStep:
    """What to do after a batch.

    Attributes:
        more_seeds: how many seeds to add to every scenario; 0: stop.
        sure: whether all intervals are narrow enough.
        wide: those that are not.
        words: what was found and what follows, in one line.
    """

    more_seeds: int
    sure: bool
    wide: tuple[Wide, ...]
    words: str


def until_sure(
    folder: Path,
    width: float,
    *,
    baseline: str | None = None,
    measure: str = MEAN_WAIT.name,
    trim: Trim = AS_USUAL,
    max_seeds: int = MAX_SEEDS,
    wanted: Callable[[Cell], bool] = lambda _: True,
) -> NextStep:
    """Decides whether an experiment goes on.

    Args:
        width: the width of the intervals to be reached, a share: 0.05 for 5 % of the baseline's
            value.
        baseline: its name; None: as `Bench.baseline` chooses it.
        measure: by name, see `statistics/quantities.py`.
        trim: which jobs are judged.
        max_seeds: the cap on the seeds of a scenario.
        wanted: which cells of the folder belong to the experiment.

    Raises:
        ConfigError: the width or the measure makes no sense.
        ResultError: there is nothing to compare.
    """
    if not 0 < width < 100:
        problem = f"{width:g} is not a share such as 0.05 for 5 %"
        raise ConfigError("until-sure", problem)
    if measure not in BY_NAME:
        raise ConfigError("measure", f"'{measure}' is unknown; there are {', '.join(BY_NAME)}")
    bench = read_bench(folder, wanted=wanted)
    findings = compare(bench, bench.baseline(baseline), trim=trim, over=Over.RUNS)
    seeds = {(one.scenario, one.contestant): one for one in findings.faced}
    judged = findings.of(measure)
    if not judged:
        raise ResultError("until-sure", f"no result has the measure '{measure}'")
    wide = []
    for one in judged:
        faced = seeds[one.scenario, one.contestant]
        now = _width(one)
        if now is None or now > width:
            more = _more(now, width, len(faced.seeds), faced.distinct)
            wide.append(Wide(one.scenario, one.contestant, now, len(faced.seeds), more))
    return _progress(tuple(wide), len(judged), width, max_seeds)


def _width(one: ComparisonRow) -> float | None:
    """The interval's width as a share of the baseline's value; None without one."""
    found = one.estimate
    if found.low == found.high == 0:
        return 0.0
    return found.high - found.low if found.has_interval and found.relative else None


def _more(width: float | None, wanted: float, seeds: int, distinct: int) -> int:
    """Seeds to add: as estimated, at most as many as there are, at least to the first interval."""
    if seeds >= FEWEST_RUNS and distinct == 1:
        return 0
    if width is None:
        return max(FEWEST_RUNS - seeds, 1)
    return min(max(ceil(seeds * (width / wanted) ** 2) - seeds, 1), seeds)


def _progress(wide: tuple[Wide, ...], judged: int, width: float, max_seeds: int) -> NextStep:
    if not wide:
        words = f"sure: the intervals of all {judged} comparisons are at most {_share(width)} wide"
        return NextStep(0, sure=True, wide=wide, words=words)
    widest = max(wide, key=lambda one: float("inf") if one.width is None else one.width)
    named = f"{widest.contestant.name} on {widest.scenario.name}"
    state = "has no interval yet" if widest.width is None else f"is {_share(widest.width)} wide"
    found = f"{len(wide)} of {judged} intervals are not narrow enough; {named} {state}"
    more = max(one.more for one in wide)
    if not more:
        return NextStep(
            0, sure=False, wide=wide,
            words=f"{found}; further seeds change nothing there: add a perturbation, such as ties",
        )  # fmt: skip
    room = max_seeds - max(one.seeds for one in wide if one.more)
    more = min(more, room)
    if more <= 0:
        words = f"{found}; the cap of {max_seeds} seeds is reached"
        return NextStep(0, sure=False, wide=wide, words=words)
    return NextStep(more, sure=False, wide=wide, words=f"{found}; {more} more seeds follow")


def _share(value: float) -> str:
    return f"{100 * value:.2g} %"
