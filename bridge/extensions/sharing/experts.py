# SPDX-License-Identifier: Apache-2.0
"""Experts: small decision trees, written in YAML, that map a host to a distribution over quotas.

    experts:
      - name: idle CPUs
        tree:
          if: cpu_percent < 50
          then: {25: 0.3, 50: 0.5, 75: 0.2}
          else: {0: 0.8, 10: 0.2}

A condition compares a feature (`observation.py`) with a number by <, <=, > or >=. A leaf gives the
probability of each quota of the guest, in percent of the CPUs; quotas left out have none.

Source: as of `observation.py`; the trees of the paper's Fig. 2 are not published as text. Those in
`experts.yaml` are ours.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.extensions.sharing.observation import FEATURES, Observation
from bridge.yaml_text import NoYaml, load

QUOTAS_PERCENT: Final = (0, 10, 25, 50, 75)
"""The actions: the guest's share of the CPUs; 0: no guest. The host has the rest."""
MAX_EXPERTS, MAX_NODES, MAX_DEPTH = 100, 1_000, 16

_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_CONDITION: Final = re.compile(r"\s*(\w+)\s*(<=|>=|<|>)\s*(-?\d+(?:\.\d+)?)\s*")
_SUM_TOLERANCE: Final = 1e-6
_NAMES: Final = tuple(FEATURES)


@dataclass(frozen=True)
class Leaf:
    """A distribution over `QUOTAS_PERCENT`, (n_quotas,) float64, sum 1."""

    probability: NDArray[np.float64]


@dataclass(frozen=True)
class Branch:
    """A comparison of one feature with a number."""

    feature: int
    compare: Callable[[float, float], bool]
    value: float
    then: "Tree"
    otherwise: "Tree"


Tree = Leaf | Branch


@dataclass(frozen=True)
class Expert:
    """A named decision tree."""

    name: str
    tree: Tree

    def advise(self, host: Observation) -> NDArray[np.float64]:
        """Returns its distribution over `QUOTAS_PERCENT` for this host; O(depth)."""
        values = host.vector()
        tree = self.tree
        while isinstance(tree, Branch):
            met = tree.compare(values[tree.feature], tree.value)
            tree = tree.then if met else tree.otherwise
        return tree.probability


@cache
def default_experts() -> Sequence[Expert]:
    """Returns the experts of `experts.yaml`."""
    return read_experts((files(__package__) / "experts.yaml").read_text())


def read_experts(text: str) -> Sequence[Expert]:
    """Reads experts from YAML.

    Raises:
        ConfigError: with the place of what is wrong.
    """
    try:
        found = load(text)
    except NoYaml as error:
        raise ConfigError("experts", str(error)) from error
    listed = found.get("experts") if isinstance(found, dict) and len(found) == 1 else None
    if not isinstance(listed, list) or not 0 < len(listed) <= MAX_EXPERTS:
        raise ConfigError("experts", f"must be a list of 1 to {MAX_EXPERTS} experts")
    experts = [_expert(each, f"experts[{number}]") for number, each in enumerate(listed)]
    names = [expert.name for expert in experts]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError("experts", f"the name '{name}' is used twice")
    return experts


def _expert(value: Any, key: str) -> Expert:
    if not isinstance(value, dict) or set(value) != {"name", "tree"}:
        raise ConfigError(key, "must have name and tree, and nothing else")
    name = value["name"]
    if not isinstance(name, str) or not 0 < len(name) <= 100 or not name.isprintable():
        raise ConfigError(f"{key}.name", "must be a text of 1 to 100 printable characters")
    return Expert(name, _Reader().tree(value["tree"], f"{key}.tree", MAX_DEPTH))


class _Reader:
    """Reads one tree, and counts its nodes."""

    def __init__(self) -> None:
        self.nodes = 0

    def tree(self, value: Any, key: str, depth: int) -> Tree:
        """A leaf or a branch."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise ConfigError(key, f"more than {MAX_NODES} nodes")
        if depth == 0:
            raise ConfigError(key, f"deeper than {MAX_DEPTH} conditions")
        if not isinstance(value, dict):
            raise ConfigError(key, "must be a condition (if, then, else) or quotas in percent")
        if not set(value) & {"if", "then", "else"}:
            return Leaf(_distribution(value, key))
        if set(value) != {"if", "then", "else"}:
            raise ConfigError(key, "a condition has if, then and else")
        feature, compare, limit = _condition(value["if"], f"{key}.if")
        return Branch(
            feature,
            compare,
            limit,
            self.tree(value["then"], f"{key}.then", depth - 1),
            self.tree(value["else"], f"{key}.else", depth - 1),
        )


def _condition(value: Any, key: str) -> tuple[int, Callable[[float, float], bool], float]:
    match = _CONDITION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ConfigError(key, "must compare a feature with a number, such as 'cpu_percent < 50'")
    name, sign, number = match.groups()
    if name not in FEATURES:
        raise ConfigError(key, f"unknown feature '{name}'; there are {', '.join(FEATURES)}")
    minimum, maximum = FEATURES[name]
    if not minimum <= float(number) <= maximum:
        raise ConfigError(key, f"{name} lies between {minimum:g} and {maximum:g}")
    return _NAMES.index(name), _COMPARE[sign], float(number)


def _distribution(value: Mapping[Any, Any], key: str) -> NDArray[np.float64]:
    found = np.zeros(len(QUOTAS_PERCENT))
    for quota, probability in value.items():
        if isinstance(quota, bool) or quota not in QUOTAS_PERCENT:
            allowed = ", ".join(map(str, QUOTAS_PERCENT))
            raise ConfigError(key, f"quota '{quota}' is none of {allowed} (percent)")
        number = isinstance(probability, int | float) and not isinstance(probability, bool)
        if not number or not 0 <= probability <= 1:
            raise ConfigError(f"{key}.{quota}", "must be a probability from 0 to 1")
        found[QUOTAS_PERCENT.index(quota)] = probability
    if abs(found.sum() - 1) > _SUM_TOLERANCE:
        raise ConfigError(key, f"the probabilities sum to {found.sum():g} instead of 1")
    found /= found.sum()
    return found
