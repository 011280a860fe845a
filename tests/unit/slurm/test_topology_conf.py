# SPDX-License-Identifier: Apache-2.0
"""topology.conf as it is written, and as it should not be."""

from pathlib import Path

import pytest

from bridge.errors import ConfigError
from bridge.slurm.topology_conf import parse_topology, read_topology

NODES = [f"n{i}" for i in range(1, 7)]


def names(text: str) -> dict[str, str | None]:
    """Each switch with the switch above it."""
    found = parse_topology(text, NODES)
    return {
        name: found.names[above] if above >= 0 else None
        for name, above in zip(found.names, found.parent.tolist(), strict=True)
    }


def leaves(text: str) -> list[str | None]:
    found = parse_topology(text, NODES)
    return [found.names[leaf] if leaf >= 0 else None for leaf in found.leaf_of_node.tolist()]


TREE = """
# two racks
SwitchName=s1 Nodes=n[1-2] LinkSpeed=100
switchname=s2 \\
    Nodes=n[3-4]   # the second
SwitchName=top Switches=s[1-2]
"""


def test_a_tree() -> None:
    assert names(TREE) == {"s1": "top", "s2": "top", "top": None}
    assert leaves(TREE) == ["s1", "s1", "s2", "s2", None, None]


def test_a_line_that_goes_on_behind_the_last_is_read() -> None:
    assert leaves("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2 \\")[:2] == ["a", "b"]


def test_nodes_of_other_clusters_are_left_out() -> None:
    assert leaves("SwitchName=s Nodes=x[1-9],n3") == [None, None, "s", None, None, None]


def test_two_fabrics() -> None:
    assert names("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2") == {"a": None, "b": None}


def test_blocks() -> None:
    text = "BlockName=a Nodes=n[1-2]\nBlockName=b Nodes=n[3-4]\nBlockName=c Nodes=n[5-6]\n"
    assert names(text) == {
        "a": "all blocks",
        "b": "all blocks",
        "c": "all blocks",
        "all blocks": None,
    }
    above = names(text + "BlockSizes=2,4")
    assert above["a"] == above["b"] != above["c"]
    assert set(above.values()) == {above["a"], above["c"], "all blocks", None}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "describes neither switches"),
        ("SwitchName=a", "line 1: a needs either Nodes or Switches"),
        ("SwitchName=a Nodes=n1 Switches=b", "line 1: a needs either Nodes or Switches"),
        ("\nSwitchName=a Nodes=n1 Colour=red", "line 2: a line of switchname has no 'colour'"),
        ("SwitchName=a Nodes=n1 Nodes=n2", "line 1: a key is given twice"),
        ("Nodes=n1", "line 1: a line begins with SwitchName, BlockName or BlockSizes"),
        ("SwitchName=a Nodes", "line 1: 'Nodes' is not Key=Value"),
        ("SwitchName=a Nodes=n[1-", "line 1: 'n[1-' is not a list of names"),
        ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2", "line 2: a is described twice"),
        ("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n1", "line 2: b: n1 is already on a"),
        ("BlockName=a Nodes=n1\nBlockSizes=\u00b2", "line 2: '\u00b2' is not a number of nodes"),
        ("SwitchName=t Switches=a", "line 1: t: there is no switch a"),
        (
            "SwitchName=a Nodes=n1\nSwitchName=t Switches=a\nSwitchName=u Switches=a",
            "line 3: u: a is already below t",
        ),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a", "line 1: a is below itself"),
        ("SwitchName=a Nodes=n1\nBlockName=b Nodes=n2", "line 2: switches and blocks in one file"),
        ("BlockName=b Nodes=n1\nBlockSizes=4,6", "line 2: block size 6 is not a multiple of 4"),
        ("BlockName=b Nodes=n1\nBlockSizes=none", "line 2: 'none' is not a number of nodes"),
    ],
)
def test_what_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_topology(text, NODES)
    assert problem in str(refused.value)


def test_a_file_names_itself_and_its_nodes(tmp_path: Path) -> None:
    path = tmp_path / "topology.conf"
    path.write_text("SwitchName=a Nodes=b[2-3]")
    assert len(read_topology(path).leaf_of_node) == 2
    with pytest.raises(ConfigError, match=str(tmp_path / "none")):
        read_topology(tmp_path / "none")
