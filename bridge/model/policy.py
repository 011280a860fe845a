# SPDX-License-Identifier: Apache-2.0
"""A policy as configured: a named choice per stage, with parameters; and packages of policies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

STAGES: Final = ("order", "plan", "place", "predict", "reshape", "share")
"""The stages of a policy, as in `PolicySpec`; `bridge/ports.py` has what each must implement."""


@dataclass(frozen=True)
class StageSpec:
    """One stage's algorithm by its registered name, and its parameters."""

    name: str
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class PolicySpec:
    """A whole policy; `bridge.registry` builds it."""

    name: str
    order: StageSpec
    plan: StageSpec
    place: StageSpec
    predict: StageSpec = StageSpec("time-limit")
    reshape: StageSpec = StageSpec("none")
    share: StageSpec = StageSpec("none")


@dataclass(frozen=True)
class Algorithm:
    """An algorithm of one stage.

    Attributes:
        path: "package.module:Class" of a frozen dataclass that implements the stage. The module
            is imported when a policy that uses the algorithm is built.
        parameters: what the name stands for, as arguments of the class.
    """

    path: str
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class PolicyPackage:
    """What a package offers at its entry point of the group `schedbridge.policies`.

    Attributes:
        algorithms: from a stage to names and algorithms.
        presets: policies that can be run by one name; made of the package's own algorithms and
            of those that come with schedbridge.
        summaries: a line for each preset that a site may choose in production, by its name; the
            others are listed by `schedbridge policy show --all`.
    """

    algorithms: Mapping[str, Mapping[str, Algorithm]] = field(default_factory=dict)
    presets: tuple[PolicySpec, ...] = ()
    summaries: Mapping[str, str] = field(default_factory=dict)


def preset(
    name: str,
    order: str,
    plan: str,
    place: str,
    predict: str = "time-limit",
    *,
    reshape: str = "none",
    share: str = "none",
    **parameters: object,
) -> PolicySpec:
    """Returns a preset: an algorithm for each stage; `parameters` are those of the plan stage."""
    others = (StageSpec(stage) for stage in (place, predict, reshape, share))
    return PolicySpec(name, StageSpec(order), StageSpec(plan, parameters), *others)
