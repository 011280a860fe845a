# SPDX-License-Identifier: Apache-2.0
import itertools

import numpy as np
import pytest

from bridge.errors import ConfigError
from bridge.extensions.sharing.experts import QUOTAS_PERCENT, default_experts, read_experts
from bridge.extensions.sharing.observation import FEATURES, Observation

TREE = """
experts:
  - name: idle
    tree:
      if: cpu_percent < 50
      then: {25: 0.5, 75: 0.5}
      else:
        if: happiness >= 1
        then: {10: 1}
        else: {0: 1.0}
"""


def host(**known):
    values = dict.fromkeys(FEATURES, 0.0) | known
    return Observation(**values)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"cpu_percent": 49.9}, [0, 0, 0.5, 0, 0.5]),
        ({"cpu_percent": 50, "happiness": 1}, [0, 1, 0, 0, 0]),
        ({"cpu_percent": 50, "happiness": 0.9}, [1, 0, 0, 0, 0]),
    ],
)
def test_a_tree_is_followed(known, expected):
    (expert,) = read_experts(TREE)
    assert expert.advise(host(**known)).tolist() == expected


def test_the_experts_of_the_package_give_distributions_everywhere():
    grid = [np.linspace(minimum, maximum, 5) for minimum, maximum in FEATURES.values()]
    for values in itertools.product(*grid):
        for expert in default_experts():
            found = expert.advise(Observation(*values))
            assert found.shape == (len(QUOTAS_PERCENT),)
            assert (found >= 0).all()
            assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("experts: []", "experts", "a list of 1 to 100"),
        ("trees: []", "experts", "a list of 1 to 100"),
        ("experts: [{name: a}]", "experts[0]", "name and tree"),
        ("experts: [{name: '', tree: {0: 1}}]", "experts[0].name", "1 to 100 printable"),
        ("experts: [{name: a, tree: {0: 1}}, {name: a, tree: {0: 1}}]", "experts", "used twice"),
        ("experts: [{name: a, tree: {0: 0.5}}]", "experts[0].tree", "sum to 0.5"),
        ("experts: [{name: a, tree: {0: 2, 10: -1}}]", "experts[0].tree.0", "from 0 to 1"),
        ("experts: [{name: a, tree: {0: .nan}}]", "experts[0].tree.0", "from 0 to 1"),
        ("experts: [{name: a, tree: {30: 1}}]", "experts[0].tree", "quota '30'"),
        ("experts: [{name: a, tree: {[1]: 1}}]", "experts", "unhashable|hashable"),
        ("experts: [{name: a, tree: 5}]", "experts[0].tree", "must be a condition"),
        ("experts: [{name: a, tree: {if: happiness < 1, then: {0: 1}}}]", "experts[0].tree",
         "if, then and else"),
        ("experts: [{name: a, tree: {if: luck < 1, then: {0: 1}, else: {0: 1}}}]",
         "experts[0].tree.if", "unknown feature 'luck'"),
        ("experts: [{name: a, tree: {if: happiness < 11, then: {0: 1}, else: {0: 1}}}]",
         "experts[0].tree.if", "between 0 and 10"),
        ("experts: [{name: a, tree: {if: happy, then: {0: 1}, else: {0: 1}}}]",
         "experts[0].tree.if", "compare a feature"),
        ("experts: [", "experts", "line 2"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(text, where, what):
    with pytest.raises(ConfigError, match=what) as caught:
        read_experts(text)
    assert caught.value.key == where


def test_a_tree_has_bounds():
    deep = "{0: 1}"
    for _ in range(17):
        deep = f"{{if: happiness < 1, then: {{0: 1}}, else: {deep}}}"
    with pytest.raises(ConfigError, match="deeper than 16"):
        read_experts(f"experts: [{{name: a, tree: {deep}}}]")
