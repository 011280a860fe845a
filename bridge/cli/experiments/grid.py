# SPDX-License-Identifier: Apache-2.0
"""The cells of an experiment: each policy with each predictor, trace, seed and perturbation.

Whatever determines a result is read here, once, and put into the cells as text: workers need the
traces, and no other file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from bridge import files, yaml_text
from bridge.cli.bundled import bundled
from bridge.cli.simulation.policies import read_planning, read_policy
from bridge.errors import BridgeError, ConfigError
from bridge.lab.experiments.cell import Cell, canonical
from bridge.lab.experiments.definition import ESP, OWN, Baseline, ExperimentDefinition, TraceSection
from bridge.lab.experiments.perturb import CHANCE
from bridge.lab.experiments.provenance import commit, sha256_of, version
from bridge.lab.sim.sharing.interference import read_interference
from bridge.lab.sim.workloads.system import read_system
from bridge.model.policy import PolicySpec
from bridge.registry import PRESETS, describe, parse_policy, predicting


@dataclass(frozen=True)
class Grid:
    """An experiment that is ready to run.

    Attributes:
        cells: in the order in which they are computed: all policies of a seed together.
        baseline: policy and predictor, as in cells.
    """

    path: Path
    definition: ExperimentDefinition
    folder: Path
    cells: tuple[Cell, ...]
    baseline: tuple[str, str]

    def with_more_seeds(self, count: int) -> "Grid":
        """The same experiment with so many further seeds, the next numbers.

        Raises:
            ConfigError: a file was changed meanwhile and is invalid.
        """
        seeds = self.definition.seeds
        more = range(max(seeds) + 1, max(seeds) + 1 + count)
        longer = self.definition.model_copy(update={"seeds": (*seeds, *more)})
        return grid_of(longer, self.path)

    def wanted(self, cell: Cell) -> bool:
        """Whether a kept cell belongs to it, whatever its seed and whoever computed it."""
        return _unmarked(cell) in self._unmarked_cells

    @cached_property
    def _unmarked_cells(self) -> frozenset[str]:
        return frozenset(map(_unmarked, self.cells))

    @property
    def notes(self) -> list[str]:
        """What a user may not have meant."""
        fixed = [
            each.name for each in self.definition.perturbations if not CHANCE & set(each.parameters)
        ]
        if len(self.definition.seeds) < 2 or not fixed:
            return []
        return [
            f"perturbation {', '.join(fixed)}: nothing is drawn, so policies without chance give"
            " the same result with every seed (ties: true puts jobs of one second into a random"
            " order)"
        ]


def _unmarked(cell: Cell) -> str:
    return replace(cell, seed=0, version="", commit="").key


def grid_of(definition: ExperimentDefinition, path: Path) -> Grid:
    """The cells of an experiment.

    Args:
        path: the path of the file; the files in it are relative to it.

    Raises:
        ConfigError: a file that it names cannot be read, or a name is wrong.
    """
    base = path.parent
    folder = base / definition.results
    if folder.exists() and not folder.is_dir():
        raise ConfigError("results", f"{definition.results} is not a directory", file=str(path))
    policies = _policies(definition, base, str(path))
    traces = [
        _trace(trace, base, f"traces.{number}", str(path))
        for number, trace in enumerate(definition.traces)
    ]
    made_by: dict[str, Any] = {"version": version(), "commit": commit()}
    cells = [
        Cell(
            policy=name,
            policy_text=canonical(describe(spec)),
            predictor=spec.predict.name,
            seed=seed,
            perturbation=perturbation.name,
            parameters=perturbation.parameters,
            engine=definition.engine,
            **made_by,
            **trace,
        )
        for seed in definition.seeds
        for perturbation in definition.perturbations
        for trace in traces
        for name, spec in policies
    ]
    pairs = [(name, spec.predict.name) for name, spec in policies]
    baseline = _baseline(definition.baseline, pairs, str(path))
    return Grid(path, definition, folder, tuple(cells), baseline)


def _policies(
    definition: ExperimentDefinition, base: Path, shown: str
) -> list[tuple[str, PolicySpec]]:
    """Name and policy, with each predictor.

    Raises:
        ConfigError: one is invalid, or two have the same name.
    """
    found: dict[tuple[str, str], PolicySpec] = {}
    for number, value in enumerate(definition.policies):
        key = f"policies.{number}"
        try:
            spec = _policy(value, base)
            made = [
                spec if predictor == OWN else predicting(spec, predictor)
                for predictor in definition.predictors
            ]
        except ConfigError as error:
            raise ConfigError(key, str(error), file=shown) from None
        for each in made:
            named = replace(each, name=spec.name)
            pair = spec.name, each.predict.name
            if pair in found and (found[pair] != named or OWN not in definition.predictors):
                problem = f"two policies are named '{spec.name}': change the 'name' of one"
                raise ConfigError(key, problem, file=shown)
            found[pair] = named
    return [(name, spec) for (name, _), spec in found.items()]


def _policy(value: str | Mapping[str, Any], base: Path) -> PolicySpec:
    if isinstance(value, str) and value not in PRESETS:
        return read_policy(str(base / value) if (base / value).is_file() else value)
    return parse_policy(value)


def _baseline(wished: Baseline | None, pairs: list[tuple[str, str]], shown: str) -> tuple[str, str]:
    if wished is None:
        return pairs[0]
    for name, predictor in pairs:
        if name == wished.policy and wished.predictor in (None, predictor):
            return name, predictor
    raise ConfigError(
        "baseline",
        f"is not one of the policies: {', '.join(f'{name} ({by})' for name, by in pairs)}",
        file=shown,
    )


def _trace(trace: TraceSection, base: Path, key: str, shown: str) -> dict[str, Any]:
    """The attributes of cells that a trace determines.

    Raises:
        ConfigError: a file of it cannot be read, or is invalid.
    """
    setting: dict[str, Any] = {}
    for name in ("procs", "jobs"):
        if (value := getattr(trace, name)) is not None:
            setting[name] = value
    if trace.weeks is not None:
        setting["weeks"] = [trace.weeks.first, trace.weeks.count]
    if trace.lenient:
        setting["lenient"] = True
    try:
        if trace.system is not None:
            setting["system"] = _system(base / trace.system)
        if trace.site is not None:
            setting["planning"] = read_planning(base / trace.site)
        if trace.interference is not None:
            model = bundled(Path(trace.interference), base)
            read_interference(model)
            setting["interference"] = files.read_text(model)
    except BridgeError as error:
        raise ConfigError(key, str(error), file=shown) from None
    if trace.file.startswith(ESP):
        return {
            "trace": trace.label,
            "trace_sha256": "",
            "trace_path": trace.file,
            "setting": {**setting, "workload": trace.file},
        }
    path = bundled(Path(trace.file), base).absolute()
    try:
        digest = sha256_of(path)
    except OSError as error:
        raise ConfigError(
            f"{key}.file", f"{trace.file} cannot be read: {error.strerror}", file=shown
        ) from None
    return {
        "trace": trace.label,
        "trace_sha256": digest,
        "trace_path": str(path),
        "setting": setting,
    }


def _system(path: Path) -> dict[str, Any]:
    """A description of nodes as values, with the text of its switches."""
    read_system(path)
    value = yaml_text.load(files.read_text(path))
    above = value.get("topology")
    if above is None:
        return {"description": value}
    name = above if isinstance(above, str) else above["file"]
    wait = {} if isinstance(above, str) else {"wait_s": above.get("wait_s", 0)}
    inside = {"file": "topology.conf", **wait}
    return {
        "description": {**value, "topology": inside},
        "topology": files.read_text(path.parent / name),
    }
