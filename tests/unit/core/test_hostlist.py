# SPDX-License-Identifier: Apache-2.0
"""HostlistFolder writes what Slurm and ClusterShell read back as the same set of names."""

import random

import numpy as np
import pytest
from ClusterShell.NodeSet import NodeSet

from bridge.core import HostlistFolder
from schedbridge_contracts.crosses import each


def fold(names: list[str], *nodes: int) -> str:
    return HostlistFolder(names).fold(np.array(nodes, dtype=np.int32))


PADDED = [f"n{i:03}" for i in range(1, 101)]


@pytest.mark.parametrize(
    ("names", "nodes", "expected"),
    [
        (PADDED, [], ""),
        (PADDED, [0], "n001"),
        (PADDED, [*range(64), 69], "n[001-064,070]"),
        (PADDED, [99, 98, 97], "n[098-100]"),
        (PADDED, [5, 5, 6], "n[006-007]"),
        ([*PADDED, "big1"], [0, 1, 100], "n[001-002],big1"),
        ([f"n{i}" for i in range(12)], list(range(12)), "n[0-11]"),
        (["n8", "n9", "n10"], [2, 0, 1], "n[8-10]"),
        (["n08", "n9", "n10", "n09"], [0, 1, 2, 3], "n[08-10],n9"),
        (["n1", "n01", "n001"], [0, 1, 2], "n1,n01,n001"),
        (["login", "gpu-a-1", "gpu-a-2", "gpu-b"], [0, 1, 2, 3], "login,gpu-a-[1-2],gpu-b"),
        (["7", "8", "10"], [0, 1, 2], "[7-8,10]"),
        (["rack1-n2", "rack1-n3", "rack2-n2"], [0, 1, 2], "rack1-n[2-3],rack2-n2"),
        (["x" + "9" * 30, "x" + "9" * 29 + "8"], [0, 1], "x" + "9" * 30 + ",x" + "9" * 29 + "8"),
    ],
)
def test_folds(names: list[str], nodes: list[int], expected: str) -> None:
    assert fold(names, *nodes) == expected


@each(seed=range(20))
def test_clustershell_reads_the_same_names(seed: int) -> None:
    rng = random.Random(seed)
    names: set[str] = set()
    for _ in range(rng.randint(1, 5)):
        prefix = rng.choice(["n", "node-", "gpu", "r1-", "r2-"])
        width = rng.choice([0, 0, 3])  # one padding per prefix and length, as sites have it
        first = rng.randint(0, 120)
        names |= {f"{prefix}{i:0{width}}" for i in range(first, first + rng.randint(1, 40))}
    names |= set(rng.sample(["login", "admin", "big1"], 2))
    ordered = rng.sample(sorted(names), len(names))
    folder = HostlistFolder(ordered)
    for _ in range(50):
        nodes = rng.sample(range(len(ordered)), rng.randint(1, len(ordered)))
        folded = folder.fold(np.array(nodes, dtype=np.int32))
        assert set(NodeSet(folded)) == {ordered[node] for node in nodes}, folded


def test_fold_many_folds_each_set() -> None:
    folder = HostlistFolder(PADDED)
    indptr = np.array([0, 2, 2, 3], dtype=np.int64)
    nodes = np.array([0, 1, 9], dtype=np.int32)
    assert folder.fold_many(indptr, nodes) == ["n[001-002]", "", "n010"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b", "a"], "names: 'a' occurs twice"),
        (["a", ""], "names: '' is not a node name"),
        (["n[1-2]"], r"names: 'n\[1-2\]' is not a node name"),
        (["a,b"], "names: 'a,b' is not a node name"),
    ],
)
def test_refuses_names_it_could_not_write(names: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HostlistFolder(names)


def test_refuses_nodes_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="nodes: 2 at position 1 is more than 1"):
        fold(["a", "b"], 0, 2)
    with pytest.raises(ValueError, match="nodes: -1 at position 0 is less than 0"):
        fold(["a", "b"], -1)
    with pytest.raises(ValueError, match="indptr: the last offset is 1, but nodes has 2 rows"):
        HostlistFolder(["a", "b"]).fold_many(
            np.array([0, 1], dtype=np.int64), np.array([0, 1], dtype=np.int32)
        )
