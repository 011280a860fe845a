# SPDX-License-Identifier: Apache-2.0
"""Reads and builds policies from the names of algorithms and presets.

`bridge/policies/catalogue.py` has the names that come with schedbridge, one line for an algorithm;
`policy_packages.py` finds those of other packages.

A policy is written as the name of a preset, or as a mapping:

    preset: slurm-like          # optional start
    order: fcfs                 # a stage's algorithm by name ...
    plan: {name: easy, depth: 4}    # ... or with parameters
    place: best-fit
    predict: last-two
"""

import dataclasses
import importlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from bridge.entry_points import mending
from bridge.errors import ConfigError
from bridge.extension_packages import installed
from bridge.model.policy import STAGES, PolicySpec, StageSpec
from bridge.policies.catalogue import DEFAULT
from bridge.policy_packages import known
from bridge.ports import Policy

_MAX: Final = 2**31 - 1
_LONGEST_NAME: Final = 200
_LONGEST_WAIT_MS: Final = 3600 * 1000
"""The largest bridge_silence_s of the plugin."""
_NAMING: Final = ("order", "plan", "place")
"""Stages that name a policy; of the others only what differs from the preset is named."""
_SHARES: Final[Mapping[str, float]] = {"plan": 0.6, "place": 0.2}
"""The share of the controller's waiting time that a stage may take."""


class _Presets(Mapping[str, PolicySpec]):
    """The presets of all packages; these are looked for when one is first asked for."""

    def __getitem__(self, name: str) -> PolicySpec:
        return known().presets[name]

    def __iter__(self) -> Iterator[str]:
        return iter(known().presets)

    def __len__(self) -> int:
        return len(known().presets)


PRESETS: Final[Mapping[str, PolicySpec]] = _Presets()
"""What can be run by one name."""

SITE_RULES: Final[Mapping[str, str]] = {
    "rules": "limits and FreePools are no longer a policy's: they belong in the section 'planning'"
    " of the configuration (outside of a service: in the file of --site)",
    "protect": "protections are no longer a policy's: they belong in the section 'planning' of the"
    " configuration, as 'protect' (outside of a service: in the file of --site)",
}
"""Former parameters of plan policies that the site states now, and the message for each."""

SIMULATION_ONLY: Final = frozenset({"oracle"})
"""Predictors for simulations only."""


def summaries() -> Mapping[str, str]:
    """A line for each preset that a site may choose in production, by its name."""
    return known().summaries


def choices() -> dict[str, list[str]]:
    """Names of all presets, and of the algorithms of each stage."""
    return {"preset": list(PRESETS)} | {
        stage: list(names) for stage, names in known().algorithms.items()
    }


def parse_policy(value: str | Mapping[str, object]) -> PolicySpec:
    """Reads a policy as written in a configuration.

    Args:
        value: the name of a preset, or a mapping of stages, `preset` and `name`.

    Raises:
        ConfigError: an unknown name, stage or parameter, or a parameter of the wrong kind.
    """
    if isinstance(value, str):
        if value not in PRESETS:
            raise ConfigError(
                "policy", f"no preset '{value:.60}'; there are {', '.join(PRESETS)}{_hint()}"
            )
        return PRESETS[value]
    if not isinstance(value, Mapping):
        raise ConfigError("policy", f"must be a preset's name or a mapping, not {value!r:.60}")
    keys = {"name", "preset", *STAGES}
    for key in value:
        if key not in keys:
            raise ConfigError(
                f"policy.{key!s:.60}", f"unknown key; there are {', '.join(sorted(keys))}"
            )
    preset = value.get("preset", DEFAULT)
    if not isinstance(preset, str) or preset not in PRESETS:
        raise ConfigError(
            "policy.preset",
            f"no preset {preset!r:.60}; there are {', '.join(PRESETS)}{_hint()}",
        )
    base = PRESETS[preset]
    stages = {
        stage: _parse_stage(
            stage, value[stage], getattr(base, stage) if "preset" in value else None
        )
        if stage in value
        else getattr(base, stage)
        for stage in STAGES
    }
    same = all(stages[stage] == getattr(base, stage) for stage in _NAMING)
    default_name = base.name if same else "+".join(stages[stage].name for stage in _NAMING)
    for stage in STAGES:
        if stage not in _NAMING and stages[stage] != getattr(base, stage):
            default_name += "+" + stages[stage].name
    name = str(value.get("name", default_name))
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise ConfigError(
            "policy.name", f"must be at most {_LONGEST_NAME} characters that can be printed"
        )
    spec = PolicySpec(name, **stages)
    if spec.reshape.name != "none" and spec.plan.name == "openccs":
        raise ConfigError(
            "policy.reshape",
            f"'{spec.reshape.name}' needs a plan that is made again in every cycle: use in-order,"
            " easy or conservative",
        )
    build(spec)
    return spec


def _parse_stage(stage: str, value: object, usual: StageSpec | None = None) -> StageSpec:
    """One stage; parameters without a name are those of the `usual` algorithm, the preset's."""
    if usual is not None and isinstance(value, Mapping) and "name" not in value:
        value = {"name": usual.name, **usual.parameters, **value}
    if isinstance(value, str):
        spec = StageSpec(value)
    elif isinstance(value, Mapping) and isinstance(value.get("name"), str):
        spec = StageSpec(str(value["name"]), {k: v for k, v in value.items() if k != "name"})
    else:
        raise ConfigError(
            f"policy.{stage}",
            "must be a name, or a mapping with a name (or beside a preset, without)",
        )
    _check_known(stage, spec)
    return spec


def _check_known(stage: str, spec: StageSpec) -> None:
    if spec.name not in known().algorithms[stage]:
        names = ", ".join(known().algorithms[stage])
        raise ConfigError(
            f"policy.{stage}", f"no algorithm '{spec.name:.60}'; there are {names}{_hint()}"
        )


def describe(spec: PolicySpec) -> dict[str, object]:
    """The policy as a mapping that `parse_policy` reads back."""
    stages = {
        stage: {"name": chosen.name, **chosen.parameters} if chosen.parameters else chosen.name
        for stage in STAGES
        for chosen in [getattr(spec, stage)]
    }
    return {"name": spec.name, **stages}


def build(spec: PolicySpec) -> Policy:
    """Makes the policy's algorithms; only their own modules are imported.

    Raises:
        ConfigError: an unknown parameter or an impossible value.
    """
    return Policy(
        spec.name,
        order=_build_stage("order", spec.order),
        plan=_build_stage("plan", spec.plan),
        place=_build_stage("place", spec.place),
        predict=_build_stage("predict", spec.predict),
        reshape=_build_stage("reshape", spec.reshape),
        share=_build_stage("share", spec.share),
    )


def budgets_ms(spec: PolicySpec) -> dict[str, float]:
    """The wall-clock budget of each stage that has one."""
    found = {}
    for stage in _SHARES:
        chosen: StageSpec = getattr(spec, stage)
        defaults = {each.name: each.default for each in dataclasses.fields(_load(stage, chosen))}  # type: ignore[arg-type]
        if "budget_ms" in defaults:
            given = {**known().algorithms[stage][chosen.name].parameters, **chosen.parameters}
            found[stage] = float(given.get("budget_ms", defaults["budget_ms"]))  # type: ignore[arg-type]
    return found


def within(spec: PolicySpec, patience_s: float) -> tuple[PolicySpec, list[str]]:
    """The policy with budgets that a controller can wait for, and a message for each change.

    Args:
        patience_s: how long the controller waits for an answer.
    """
    sentences = []
    for stage, budget_ms in budgets_ms(spec).items():
        max_ms = max(int(patience_s * 1000 * _SHARES[stage]), 1)
        if budget_ms <= max_ms:
            continue
        sentences.append(
            f"{stage}.budget_ms is {budget_ms:g}, but the controller waits for {patience_s:.1f} s "
            f"(bridge_silence_s): {max_ms} is used"
        )
        chosen: StageSpec = getattr(spec, stage)
        shorter = StageSpec(chosen.name, {**chosen.parameters, "budget_ms": max_ms})
        spec = dataclasses.replace(spec, **{stage: shorter})  # type: ignore[arg-type]
    return spec, sentences


def for_live(spec: PolicySpec) -> PolicySpec:
    """The policy, if it can decide for a real cluster.

    Raises:
        ConfigError: one of its algorithms works in simulations only, or needs more time than
            any controller waits.
    """
    for stage, budget_ms in budgets_ms(spec).items():
        if budget_ms > _SHARES[stage] * _LONGEST_WAIT_MS:
            raise ConfigError(
                f"policy.{stage}.budget_ms",
                f"no controller waits that long: must be at most "
                f"{int(_SHARES[stage] * _LONGEST_WAIT_MS)}, and well below bridge_silence_s",
            )
    if spec.predict.name in SIMULATION_ONLY:
        raise ConfigError(
            "policy.predict",
            f"'{spec.predict.name}' knows the future: it is for simulations; a service can predict "
            + ", ".join(
                name for name in known().algorithms["predict"] if name not in SIMULATION_ONLY
            ),
        )
    return spec


def predicting(spec: PolicySpec, predictor: str) -> PolicySpec:
    """The policy with another predictor, and a name that says so.

    Raises:
        ConfigError: there is no such predictor.
    """
    chosen = _parse_stage("predict", predictor)
    name = spec.name if chosen == spec.predict else f"{spec.name}+{predictor}"
    return dataclasses.replace(spec, name=name, predict=chosen)


def _parameters(stage: str, spec: StageSpec) -> dict[str, object]:
    """Name and type of each parameter of an algorithm."""
    made = _load(stage, spec)
    return {field.name: field.type for field in dataclasses.fields(made) if field.init}  # type: ignore[arg-type]


def _load(stage: str, spec: StageSpec) -> Callable[..., Any]:
    """The class of an algorithm, which must be a dataclass.

    Raises:
        ConfigError: its package is broken.
    """
    path = known().algorithms[stage][spec.name].path
    module, class_name = path.split(":")
    try:
        made: Callable[..., Any] = getattr(importlib.import_module(module), class_name)
    except Exception as error:  # whatever a stranger's module raises when it is imported
        problem = f"{type(error).__name__}: {str(error)!r:.200}"
        raise ConfigError(
            f"policy.{stage}",
            f"'{spec.name}'{mending([f'{path} cannot be loaded: {problem}'])}",
        ) from error
    if not dataclasses.is_dataclass(made):
        raise ConfigError(f"policy.{stage}", f"'{spec.name}': {path} is no dataclass")
    return made


def left_out() -> list[str]:
    """A sentence for each package, of policies or an extension, that is left out."""
    return [*known().problems, *installed().problems]


def _hint() -> str:
    """The end of a message about an unknown name: it may be that of a broken package."""
    return mending(known().problems)


def _build_stage(stage: str, spec: StageSpec) -> Any:
    _check_known(stage, spec)
    implied = known().algorithms[stage][spec.name].parameters
    made, allowed = _load(stage, spec), _parameters(stage, spec)
    for key, value in spec.parameters.items():
        where = f"policy.{stage}.{key!s:.60}"
        if stage == "plan" and key in SITE_RULES:
            raise ConfigError(where, SITE_RULES[key])
        if key not in allowed:
            names = ", ".join(allowed) or "none"
            raise ConfigError(where, f"{spec.name} has no such parameter; it has {names}")
        _check_kind(where, value, str(allowed[key]))
    try:
        return made(**(dict(implied) | dict(spec.parameters)))
    except ConfigError as error:
        raise ConfigError(f"policy.{stage}.{error.key}", error.problem) from error
    except Exception as error:  # a stranger's class
        problem = f"{type(error).__name__}: {str(error)!r:.200}"
        raise ConfigError(f"policy.{stage}", f"'{spec.name}' cannot be made: {problem}") from error


def _check_kind(where: str, value: object, annotation: str) -> None:
    """Checks a YAML value against a parameter's annotation, e.g. 'int | None'."""
    kinds: dict[str, Any] = {
        "int": int,
        "float": (int, float),
        "bool": bool,
        "str": str,
        "None": type(None),
    }
    wanted = [part.strip().removeprefix("<class '").removesuffix("'>") for part in
              annotation.split("|")]  # fmt: skip
    fits = any(
        isinstance(value, kinds[kind]) and (kind == "bool" or not isinstance(value, bool))
        for kind in wanted
        if kind in kinds
    )
    if not fits:
        raise ConfigError(where, f"must be {' or '.join(wanted)}, not {value!r:.60}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(where, "must be a finite number")
    if isinstance(value, int) and not -_MAX <= value <= _MAX:  # the range of the core's numbers
        raise ConfigError(where, f"must lie between -{_MAX} and {_MAX}")
