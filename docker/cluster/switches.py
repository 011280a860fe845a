# SPDX-License-Identifier: Apache-2.0
"""The switches above a cluster's nodes: a topology.conf, and who reads it.

`tree` is the fat tree of the literature with its pods pruned to the number of nodes: switches of
k ports (k = 8, or the least even number that carries the nodes), k/2 nodes on a leaf switch, k/2
leaf switches in a pod, all pods under one top switch. 64 nodes: 4 pods of 4 leaf switches of 4.
"""

import re
from pathlib import Path

from cluster.engine import Trouble

TREE = "tree"
READERS = ("all", "bridge")
FILE = "topology.conf"
"""In /etc/slurm, where Slurm looks for it."""
ASIDE = f"schedbridge/{FILE}"
"""In /etc/slurm, where only the service looks for it."""


def topology_text(given: str, nodes: int) -> str:
    """The topology.conf that was asked for: `tree`, or a file's.

    Raises:
        Trouble: there is no such file.
    """
    if given == TREE:
        return fat_tree(nodes)
    try:
        return Path(given).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Trouble(f"--topology: 'tree' or a file; {given}: {error}") from None


def plugin_of(text: str) -> str:
    """Slurm's plugin that reads such a file."""
    blocks = re.search(r"^\s*Block(Name|Sizes)=", text, re.MULTILINE | re.IGNORECASE)
    return "topology/block" if blocks else "topology/tree"


def fat_tree(nodes: int) -> str:
    """A pruned fat tree over n1 to n`nodes`."""
    ports = 8
    while ports**3 // 4 < nodes:
        ports += 2
    half = ports // 2
    leaves = -(-nodes // half)
    pods = -(-leaves // half)
    lines = [
        f"SwitchName=leaf{leaf + 1} Nodes={_span('n', leaf * half, min(nodes, (leaf + 1) * half))}"
        for leaf in range(leaves)
    ]
    lines += [
        f"SwitchName=pod{pod + 1} "
        f"Switches={_span('leaf', pod * half, min(leaves, (pod + 1) * half))}"
        for pod in range(pods)
    ]
    if pods > 1:
        lines.append(f"SwitchName=top Switches={_span('pod', 0, pods)}")
    return "\n".join(lines) + "\n"


def _span(stem: str, low: int, stop: int) -> str:
    return f"{stem}{stop}" if stop - low == 1 else f"{stem}[{low + 1}-{stop}]"
