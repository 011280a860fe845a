# SPDX-License-Identifier: Apache-2.0
"""A policy as configured: a named choice per stage, with parameters."""

from collections.abc import Mapping
from dataclasses import dataclass, field


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
