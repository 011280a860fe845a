# SPDX-License-Identifier: Apache-2.0
"""The YAML file of an experiment, and the errors in it.

    results: results/kth            # the folder of results
    policies: [easy, conservative, mine.yaml, {name: mine, preset: easy, order: shortest}]
    predictors: [own, last-two]     # own: the policy's
    baseline: easy                  # what the others are compared with; default: the first policy
    traces:
      - KTH-SP2-1996-2.1-cln.swf.gz
      - {file: CTC.swf.gz, name: ctc, weeks: {first: 10, count: 4}, system: ctc.yaml}
      - esp:50                      # the ESP workload, half of its jobs malleable
    seeds: 10                       # 0 to 9; or a list
    perturbations: [none, ties, {name: busier, load: 1.1, ties: true}]

Files are relative to the YAML file. Every problem is one line of file, key and reason; all of them
are shown at once.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from bridge import files, yaml_text
from bridge.errors import ConfigError
from bridge.input_problems import ConfigProblems, problems_of
from bridge.lab.experiments.cell import UNPERTURBED
from bridge.lab.experiments.perturb import MAX_LOAD, MIN_LOAD, STEPS

MAX_SEEDS: Final = 100_000
_SHORT: Final = ("ties", "weeks", "users")
"""Perturbations that need no value: their name alone is enough."""
ESP: Final = "esp:"
OWN: Final = "own"


class _Section(BaseModel):
    """Numbers are strict: `load: true` is no load of 1."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _as_trace(value: object) -> object:
    return {"file": value} if isinstance(value, str) else value


def _as_perturbation(value: object) -> object:
    if isinstance(value, str):
        if value == UNPERTURBED:
            return {"name": value}
        if value in _SHORT:
            return {"name": value, value: True}
        raise ValueError(
            f"there is no perturbation '{value:.40}'; names alone are"
            f" {', '.join((UNPERTURBED, *_SHORT))}; others are mappings such as {{load: 1.1}}"
        )
    return value


_Percent = Annotated[float, Field(ge=0, le=100, strict=True)]
_Count = Annotated[int, Field(ge=1, strict=True)]
_Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]


class Weeks(_Section):
    """Some weeks of a trace, counted from its first submission."""

    first: int = Field(default=0, ge=0, strict=True, description="The first of them, from 0.")
    count: _Count = Field(description="How many.")


class TraceSection(_Section):
    """A trace and the machine on which it is replayed."""

    file: str = Field(
        min_length=1,
        description="Trace, .swf[.gz], or workload of a site; or `esp:SHARE`, the ESP workload.",
    )
    name: _Name | None = Field(default=None, description="In tables. Default: of the file.")
    procs: _Count | None = Field(
        default=None, description="Processors of the machine. Default: of the header."
    )
    system: Path | None = Field(default=None, description="YAML description of nodes, partitions.")
    site: Path | None = Field(default=None, description="Rules of the site, YAML.")
    interference: Path | None = Field(
        default=None, description="How jobs that share nodes slow each other down."
    )
    jobs: _Count | None = Field(default=None, description="Only the first of them.")
    weeks: Weeks | None = Field(default=None, description="Only these weeks.")
    lenient: bool = Field(default=False, description="Drop malformed lines.")

    @property
    def label(self) -> str:
        if self.name:
            return self.name
        if self.file.startswith(ESP):
            return self.file
        name = Path(self.file).name
        for suffix in (".gz", ".xz", ".bz2", ".swf", ".jsonl", ".workload"):
            name = name.removesuffix(suffix)
        return name or self.file

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.system is not None and self.procs is not None:
            raise ValueError("'system' states the processors: leave 'procs' out")
        if self.file.startswith(ESP):
            share = self.file.removeprefix(ESP)
            if not share.replace(".", "", 1).isdecimal() or float(share) > 100:
                raise ValueError(f"'{self.file:.40}' needs a share of 0 to 100, as in esp:50")
            if self.system or self.site or self.interference or self.weeks:
                raise ValueError("esp has neither system, site, interference nor weeks")
        return self


class Perturbation(_Section):
    """Steps that make another workload of a trace (`bridge.lab.experiments.perturb`)."""

    name: _Name
    weeks: bool = Field(default=False, description="Bootstrap of weeks.")
    users: bool = Field(default=False, description="Resampling of users.")
    load: float | None = Field(default=None, ge=MIN_LOAD, le=MAX_LOAD, strict=True)
    ties: bool = Field(default=False, description="Random order within a second.")
    malleable: _Percent | None = None
    consent: _Percent | None = None

    @model_validator(mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        if isinstance(value, dict) and "name" not in value and value:
            steps = [
                key if given is True else f"{key}-{given}"
                for key, given in value.items()
                if given is not None and given is not False
            ]
            return {**value, "name": ", ".join(steps)[:100] or UNPERTURBED}
        return value

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.load is not None and not math.isfinite(self.load):
            raise ValueError("load must be a finite number")
        if self.malleable is not None and self.consent is not None:
            raise ValueError("jobs cannot be malleable and share nodes in one simulation")
        if self.name != UNPERTURBED and not self.parameters:
            raise ValueError(f"'{self.name}' does nothing: give a step ({', '.join(STEPS)})")
        if self.name == UNPERTURBED and self.parameters:
            raise ValueError(f"'{UNPERTURBED}' is the name of the trace as it is")
        return self

    @property
    def parameters(self) -> dict[str, Any]:
        given = {step: getattr(self, step) for step in STEPS}
        return {
            step: value
            for step, value in given.items()
            if value is not None and value is not False  # 0 % is a step
        }


class Baseline(_Section):
    """What the other policies are compared with."""

    policy: str
    predictor: str | None = Field(default=None, description="Default: the first.")


class ExperimentDefinition(_Section):
    """The file of an experiment: what is simulated under which policies."""

    name: _Name | None = Field(default=None, description="A title. Default: the file's name.")
    results: Path = Field(description="The folder of results.")
    policies: tuple[str | dict[str, Any], ...] = Field(
        min_length=1, description="Presets, YAML files with a policy, or policies."
    )
    predictors: tuple[str, ...] = Field(
        default=(OWN,), min_length=1, description=f"Of run times; `{OWN}`: the policy's."
    )
    traces: tuple[Annotated[TraceSection, BeforeValidator(_as_trace)], ...] = Field(min_length=1)
    seeds: tuple[Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)], ...] = Field(
        default=(0,), min_length=1
    )
    perturbations: tuple[Annotated[Perturbation, BeforeValidator(_as_perturbation)], ...] = Field(
        default=(Perturbation(name=UNPERTURBED),), min_length=1
    )
    baseline: Baseline | None = Field(default=None, description="Default: the first policy.")
    engine: Literal["auto", "cycle", "fast"] = "auto"
    retries: int = Field(
        default=2,
        ge=0,
        le=100,
        strict=True,
        description="How often a cell that crashed is tried again.",
    )

    @field_validator("results", mode="after")
    @classmethod
    def _a_folder(cls, value: Path) -> Path:
        if value == Path():
            raise ValueError("must name a folder of its own")
        return value

    @field_validator("seeds", mode="before")
    @classmethod
    def _counted(cls, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            if not 1 <= value <= MAX_SEEDS:
                raise ValueError(f"must be 1 to {MAX_SEEDS} seeds, or a list of them")
            return tuple(range(value))
        if not isinstance(value, list | tuple):
            raise ValueError(f"must be 1 to {MAX_SEEDS} seeds, or a list of them")
        return value

    @field_validator("baseline", mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        return {"policy": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _different(self) -> Self:
        for key, names in (
            ("predictors", self.predictors),
            ("seeds", self.seeds),
            ("traces", [trace.label for trace in self.traces]),
            ("perturbations", [each.name for each in self.perturbations]),
        ):
            twice = [name for at, name in enumerate(names) if name in names[:at]]
            if twice:
                raise ValueError(f"{key}: '{twice[0]}' is there twice; give it another name")
        if any(each.consent is not None for each in self.perturbations):
            without = [trace.label for trace in self.traces if trace.interference is None]
            if without:
                raise ValueError(
                    f"perturbations: 'consent' needs 'interference' of trace {without[0]}: how jobs"
                    " that share nodes slow each other down"
                )
        return self


def read_definition(path: Path) -> ExperimentDefinition:
    """Reads the file of an experiment.

    Raises:
        ConfigError: it cannot be read, or is invalid; one line for each problem.
    """
    shown = str(path)
    try:
        value = yaml_text.load(files.read_text(path))
    except OSError as error:
        raise ConfigError("", f"cannot be read: {error.strerror}", file=shown) from None
    except (yaml_text.NoYaml, UnicodeDecodeError) as error:
        raise ConfigError("", f"is not YAML: {error}", file=shown) from None
    if not isinstance(value, Mapping):
        raise ConfigError("", "must be a mapping with results, policies and traces", file=shown)
    try:
        return ExperimentDefinition.model_validate(value)
    except ValidationError as error:
        found = problems_of(error, ExperimentDefinition, file=shown)
        raise ConfigProblems(_listed(found)) from None


def _listed(problems: Sequence[ConfigError]) -> list[ConfigError]:
    """Without those that follow from others: of each policy one; no list is called empty, too."""
    found: dict[str, ConfigError] = {}
    inner = {problem.key.split(".")[0] for problem in problems if "." in problem.key}
    for problem in problems:
        parts, text = problem.key.split("."), problem.problem
        if parts[0] == "policies" and len(parts) > 2:  # of a choice of types
            parts, text = parts[:2], "must be a preset, a file or a mapping of stages"
        if not text.startswith("has fewer") or problem.key not in inner:
            key = ".".join(parts)
            found.setdefault(key + text, ConfigError(key, text, file=problem.file))
    return list(found.values())
