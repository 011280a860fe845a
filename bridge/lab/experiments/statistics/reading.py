# SPDX-License-Identifier: Apache-2.0
"""Which of the kept results belong together: scenarios, contestants and their seeds.

Cells are compared if they differ in policy and predictor only. Seeds are the repetitions of a
scenario. A folder may hold results of earlier versions, or of policies and traces that were changed
since:

1. Of results with the same names and seed, the file written last counts.
2. Seeds of one contestant have one text of the policy: that of the file written last.
3. Scenarios of the same names that are not the same (another trace, other jobs of it, another
   machine) are told apart by a mark.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from bridge.errors import ResultError
from bridge.lab.experiments.cell import UNPERTURBED, Cell, canonical
from bridge.lab.experiments.results import CellResult, read_all, read_columns
from bridge.lab.experiments.statistics.jobs import Jobs

BY_LIMITS: Final = "time-limit"
"""The predictor that is none."""
_LONGEST: Final = 20
"""Characters of a value in a mark; longer ones are shown as a hash."""


@dataclass(frozen=True, order=True)
class Contestant:
    """What is compared: a policy with its predictor."""

    policy: str
    predictor: str

    @property
    def name(self) -> str:
        """The policy, and the predictor if jobs are not planned by their time limits."""
        if self.predictor == BY_LIMITS:
            return self.policy
        return f"{self.policy}/{self.predictor}"

    @property
    def whole_name(self) -> str:
        return f"{self.policy}/{self.predictor}"


@dataclass(frozen=True, order=True)
class Scenario:
    """Under what it is compared: everything of a cell but policy, predictor and seed.

    Attributes:
        parameters, setting: canonical JSON.
        mark: what tells it from others of the same names; empty: there are none.
    """

    trace: str
    perturbation: str
    parameters: str
    setting: str
    trace_sha256: str
    mark: str = field(default="", repr=False)

    @classmethod
    def of(cls, cell: Cell) -> "Scenario":
        return cls(
            cell.trace, cell.perturbation, canonical(dict(cell.parameters)),
            canonical(dict(cell.setting)), cell.trace_sha256,
        )  # fmt: skip

    @property
    def redrawn(self) -> bool:
        """Whether the perturbation draws weeks or users of the trace."""
        parameters = json.loads(self.parameters)
        return bool(parameters.get("weeks") or parameters.get("users"))

    @property
    def name(self) -> str:
        """Trace and perturbation, and the mark."""
        parts = [self.trace, "" if self.perturbation == UNPERTURBED else self.perturbation]
        return ", ".join(filter(None, (*parts, self.mark)))


@dataclass(frozen=True)
class StoredResult:
    result: CellResult
    path: Path

    def jobs(self) -> Jobs:
        """Reads its jobs.

        Raises:
            ResultError: they cannot be read.
        """
        processors = self.result.machine.get("processors")
        return Jobs.of(read_columns(self.path), int(processors) if processors else None)


@dataclass(frozen=True)
class Bench:
    """All results of an experiment.

    Attributes:
        cells: by scenario, contestant and seed; done ones only.
        superseded: how many older results were left out: of the same names and seed, or of another
            text of the policy.
    """

    cells: dict[Scenario, dict[Contestant, dict[int, StoredResult]]]
    failed: Sequence[StoredResult]
    superseded: int

    @property
    def contestants(self) -> list[Contestant]:
        """All of them, in order of their names."""
        return sorted({contestant for one in self.cells.values() for contestant in one})

    def baseline(self, name: str | None) -> Contestant:
        """The contestant of this name, `POLICY` or `POLICY/PREDICTOR`.

        Args:
            name: None: `easy` with the time limits, else with any predictor; else the first.

        Raises:
            ResultError: there is none, or several.
        """
        known = self.contestants
        if not known:
            raise ResultError("results", "no cell is done: there is nothing to compare")
        if name is None:
            by_default = [one for one in known if one.policy == "easy"]
            plain = [one for one in by_default if one.predictor == BY_LIMITS]
            return (plain or by_default or known)[0]
        found = [one for one in known if name in (one.policy, one.whole_name)]
        if len(found) > 1:
            found = [one for one in found if one.predictor == BY_LIMITS] or found
        if len(found) != 1:
            problem = "there are several" if found else "no result has it"
            raise ResultError(
                "baseline",
                f"'{name}': {problem}; give one of {', '.join(c.whole_name for c in known)}",
            )
        return found[0]


def read_bench(
    folder: Path,
    told: Callable[[ResultError], None] | None = None,
    wanted: Callable[[Cell], bool] = lambda _: True,
) -> Bench:
    """Reads the results of a folder and sorts them; columns of jobs are read later.

    Args:
        told: called with files that cannot be read, which are left out; None: they are errors.

    Raises:
        ResultError: there are no results.
    """
    newest: dict[tuple[Scenario, Contestant], dict[int, StoredResult]] = {}
    failed, done = [], 0
    found = [StoredResult(*each) for each in read_all(folder, told)]
    for kept in sorted(found, key=lambda one: (one.path.stat().st_mtime_ns, one.path.name)):
        cell = kept.result.cell
        if not wanted(cell):
            continue
        if not kept.result.done:
            failed.append(kept)
            continue
        done += 1
        key = Scenario.of(cell), Contestant(cell.policy, cell.predictor)
        seeds = newest.setdefault(key, {})
        others = [
            seed for seed, one in seeds.items()
            if one.result.cell.policy_text != cell.policy_text
        ]  # fmt: skip
        for seed in others:
            del seeds[seed]
        seeds[cell.seed] = kept
    marked = _marked({scenario for scenario, _ in newest})
    cells: dict[Scenario, dict[Contestant, dict[int, StoredResult]]] = {}
    for (scenario, contestant), seeds in sorted(newest.items(), key=lambda item: item[0]):
        cells.setdefault(marked[scenario], {})[contestant] = dict(sorted(seeds.items()))
    return Bench(cells, failed, done - sum(map(len, newest.values())))


def _marked(scenarios: Iterable[Scenario]) -> dict[Scenario, Scenario]:
    """Each scenario with its mark (rule 3)."""
    same: dict[str, list[Scenario]] = {}
    for scenario in sorted(scenarios):
        same.setdefault(scenario.name, []).append(scenario)
    return {
        one: replace(one, mark=_mark(one, group)) if len(group) > 1 else one
        for group in same.values()
        for one in group
    }


def _mark(one: Scenario, group: Sequence[Scenario]) -> str:
    """In which values it differs from others of the same names, in words."""
    words = []
    if len({each.trace_sha256 for each in group}) > 1:
        words.append(f"file {one.trace_sha256[:8]}")
    for texts in ([each.setting for each in group], [each.parameters for each in group]):
        values = [json.loads(text) for text in texts]
        mine = values[group.index(one)]
        for key in sorted({key for value in values for key in value}):
            if len({canonical(value.get(key)) for value in values}) > 1:
                text = canonical(mine[key]) if key in mine else "none"
                digest = hashlib.sha256(text.encode()).hexdigest()[:8]
                words.append(f"{key} {text if len(text) <= _LONGEST else digest}")
    return ", ".join(words)
