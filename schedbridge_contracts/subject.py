# SPDX-License-Identifier: Apache-2.0
"""What the suite tries: everything that is installed, or the policy of `--schedbridge-policy`.

Of that policy the suite tries its own algorithms, those that come with another package than
schedbridge, with all others beside them; and in the other tests the policy as it is. A policy that
is made of schedbridge's algorithms alone has only own ones.
"""

from collections.abc import Mapping
from dataclasses import replace

from bridge.model.policy import STAGES, PolicySpec, StageSpec
from bridge.policy_packages import known
from bridge.registry import PRESETS, build, describe, parse_policy
from schedbridge_contracts.crosses import named

Written = str | dict[str, object]
"""A stage as in a configuration."""

BY_EFFORT: Mapping[tuple[str, str], Mapping[str, object]] = {
    ("plan", "search"): {"budget_ms": 0, "effort": 2000},
    ("place", "compact"): {"budget_ms": 0, "effort": 50},
    ("place", "search"): {"budget_ms": 0, "effort": 2000},
}
"""Bounds under which an algorithm that keeps a wall-clock budget decides the same anywhere."""

_chosen: list[PolicySpec] = []


def choose(name: str) -> None:
    """Makes the suite try this preset alone.

    Raises:
        ConfigError: there is no such preset, or it cannot be built.
    """
    spec = parse_policy(name)
    build(spec)
    _chosen[:] = [spec]


def _by_effort(stage: str, spec: StageSpec) -> StageSpec:
    return replace(spec, parameters={**spec.parameters, **BY_EFFORT.get((stage, spec.name), {})})


def _written(stage: str, spec: StageSpec) -> Written:
    spec = _by_effort(stage, spec)
    return {"name": spec.name, **spec.parameters} if spec.parameters else spec.name


def _all_of(stage: str) -> dict[str, Written]:
    return {name: _written(stage, StageSpec(name)) for name in known().algorithms[stage]}


def _only(stage: str) -> dict[str, Written]:
    (spec,) = _chosen
    chosen: StageSpec = getattr(spec, stage)
    return {chosen.name: _written(stage, chosen)}


def _own_stages(spec: PolicySpec) -> set[str]:
    def is_own(stage: str) -> bool:
        path = known().algorithms[stage][getattr(spec, stage).name].path
        return not path.startswith("bridge.")

    return {stage for stage in STAGES if is_own(stage)} or set(STAGES)


def crossed(*stages: str) -> dict[str, dict[str, Written]]:
    """The algorithms of some stages, for a test of each with each."""
    own = _own_stages(_chosen[0]) if _chosen else set()
    return {stage: _only(stage) if stage in own else _all_of(stage) for stage in stages}


def tried(stage: str) -> dict[str, Written]:
    """The algorithms of a stage, for a test of this stage."""
    return _only(stage) if _chosen else _all_of(stage)


def beside(**usual: str) -> dict[str, Written]:
    """The stages beside the one that is tested: these, or those of the chosen policy."""
    return (
        {stage: _written(stage, getattr(_chosen[0], stage)) for stage in usual}
        if _chosen
        else dict(usual)
    )


def presets() -> dict[str, dict[str, object]]:
    """The presets, each as in a configuration."""
    names = [spec.name for spec in _chosen] or list(PRESETS)
    return {
        name: describe(
            replace(spec, **{stage: _by_effort(stage, getattr(spec, stage)) for stage in STAGES})
        )
        for name in names
        for spec in [PRESETS[name]]
    }


def name_of(written: Written) -> str:
    """The name of an algorithm."""
    ((name, _),) = named([written if isinstance(written, str) else str(written["name"])])
    return name
