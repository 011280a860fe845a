# SPDX-License-Identifier: Apache-2.0
"""Slurm's topology.conf, of the plugins topology/tree and topology/block.

    SwitchName=leaf1 Nodes=n[01-16]                 topology/tree
    SwitchName=pod1  Switches=leaf[1-4]
    BlockName=b1 Nodes=n[01-16]                     topology/block
    BlockSizes=16,32

Rules
    1. A line consists of words `Key=Value`, keys in any case; `#` begins a comment; a backslash at
       the end continues it on the next line. LinkSpeed is ignored, as in Slurm.
    2. A switch has nodes or switches below it, not both, and is below only one switch. A node is on
       only one leaf switch. Nodes that the file does not name are on none; nodes that the cluster
       does not have are left out.
    3. Blocks are leaf switches. BlockSizes determines how many of them form the next larger block:
       sizes 16,64 put four blocks of 16 below one switch, in the order of the file; all are below
       one.
    4. Bad input is refused with file, line and reason.

Source: topology.conf(5) of Slurm 24.11.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bridge import files
from bridge.errors import ConfigError
from bridge.model import hostlist
from bridge.model.topology import Topology

MAX_BYTES = 16 << 20
MAX_NAMES = 1_000_000
"""Number of nodes and switches that all lines name."""

_KEYS = {
    "switchname": {"switchname", "nodes", "switches", "linkspeed"},
    "blockname": {"blockname", "nodes"},
    "blocksizes": {"blocksizes"},
}


@dataclass
class _Switch:
    name: str
    line: int
    nodes: list[str] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)


class _Reader:
    def __init__(self, file: str, text: str) -> None:
        self.file, self.text = file, text
        self.switches: list[_Switch] = []
        self.described: set[str] = set()
        self.sizes: list[int] = []
        self.blocks = False
        self.names = 0

    def refuse(self, line: int, problem: str) -> ConfigError:
        return ConfigError(f"line {line}", problem, file=self.file)

    def lines(self) -> Iterator[tuple[int, list[tuple[str, str]]]]:
        begun, at = "", 0
        for number, raw in enumerate([*self.text.splitlines(), ""], 1):  # the end ends a line, too
            line = raw.split("#", 1)[0].rstrip()
            at = at or number
            if line.endswith("\\"):
                begun += line[:-1] + " "
                continue
            words, begun, first = (begun + line).split(), "", at
            at = 0
            pairs = []
            for word in words:
                key, equals, value = word.partition("=")
                if not equals or not value:
                    raise self.refuse(first, f"'{word:.60}' is not Key=Value")
                pairs.append((key.lower(), value))
            if pairs:
                yield first, pairs

    def expand(self, line: int, text: str) -> list[str]:
        try:
            found = hostlist.expand(text)
        except ValueError as error:
            raise self.refuse(line, f"'{text:.60}' is not a list of names: {error}") from None
        self.names += len(found)
        if self.names > MAX_NAMES:
            raise self.refuse(line, f"with this line more than {MAX_NAMES} names")
        return found

    def read(self) -> None:
        for line, pairs in self.lines():
            kind, values = pairs[0][0], dict(pairs)
            if kind not in _KEYS:
                raise self.refuse(
                    line,
                    f"a line begins with SwitchName, BlockName or BlockSizes, not '{kind:.60}'",
                )
            for key, _ in pairs:
                if key not in _KEYS[kind]:
                    raise self.refuse(line, f"a line of {kind} has no '{key:.60}'")
            if len(values) < len(pairs):
                raise self.refuse(line, "a key is given twice")
            if kind == "blocksizes":
                self.sizes = self._sizes(line, values["blocksizes"])
            else:
                self._switch(line, kind, values)

    def _sizes(self, line: int, text: str) -> list[int]:
        sizes: list[int] = []
        for word in text.split(","):
            if not word.isdecimal() or int(word) < 1:
                raise self.refuse(line, f"'{word}' is not a number of nodes")
            if sizes and (int(word) % sizes[-1] or int(word) <= sizes[-1]):
                raise self.refuse(line, f"block size {word} is not a multiple of {sizes[-1]}")
            sizes.append(int(word))
        return sizes

    def _switch(self, line: int, kind: str, values: dict[str, str]) -> None:
        blocks = kind == "blockname"
        if self.switches and blocks != self.blocks:
            raise self.refuse(line, "switches and blocks in one file")
        self.blocks = blocks
        names = [values[kind]] if blocks else self.expand(line, values[kind])
        if ("nodes" in values) == ("switches" in values):
            raise self.refuse(line, f"{values[kind]} needs either Nodes or Switches")
        for name in names:
            if name in self.described:
                raise self.refuse(line, f"{name} is described twice")
            self.described.add(name)
            switch = _Switch(name, line)
            if "nodes" in values:
                switch.nodes = self.expand(line, values["nodes"])
            else:
                switch.switches = self.expand(line, values["switches"])
            self.switches.append(switch)


def parse_topology(text: str, nodes: Sequence[str], *, file: str = "topology.conf") -> Topology:
    """Reads a topology.conf.

    Args:
        text: the file's.
        nodes: names of the cluster's nodes, in their order.
        file: its name, for messages.

    Raises:
        ConfigError: it is invalid; with the line.
    """
    reader = _Reader(file, text)
    reader.read()
    if not reader.switches:
        raise ConfigError("topology", "describes neither switches nor blocks", file=file)
    if reader.blocks:
        _join_blocks(reader)
    index = {switch.name: i for i, switch in enumerate(reader.switches)}
    node_index = {name: i for i, name in enumerate(nodes)}
    parent = np.full(len(index), -1, dtype=np.int32)
    leaf_of_node = np.full(len(nodes), -1, dtype=np.int32)
    for i, switch in enumerate(reader.switches):
        for below in switch.switches:
            if below not in index:
                raise reader.refuse(switch.line, f"{switch.name}: there is no switch {below}")
            if parent[index[below]] >= 0:
                other = reader.switches[parent[index[below]]].name
                raise reader.refuse(switch.line, f"{switch.name}: {below} is already below {other}")
            parent[index[below]] = i
        for name in switch.nodes:
            if name not in node_index:
                continue
            if leaf_of_node[node_index[name]] >= 0:
                other = reader.switches[leaf_of_node[node_index[name]]].name
                raise reader.refuse(switch.line, f"{switch.name}: {name} is already on {other}")
            leaf_of_node[node_index[name]] = i
    for i, switch in enumerate(reader.switches):
        above, steps = i, 0
        while parent[above] >= 0:
            above, steps = parent[above], steps + 1
            if steps > len(index):
                raise reader.refuse(switch.line, f"{switch.name} is below itself")
    return Topology(tuple(index), parent, leaf_of_node)


def _join_blocks(reader: _Reader) -> None:
    """Puts switches over blocks by BlockSizes, and one over all."""
    level, sizes = list(reader.switches), reader.sizes
    for smaller, larger in itertools.pairwise(sizes):
        count = larger // smaller
        joined = []
        for i in range(0, len(level), count):
            parts = level[i : i + count]
            name = f"{parts[0].name}+{len(parts) - 1}" if len(parts) > 1 else f"{parts[0].name}+"
            joined.append(_Switch(name, parts[0].line, switches=[p.name for p in parts]))
        reader.switches += joined
        level = joined
    if len(level) > 1:
        names = [switch.name for switch in level]
        reader.switches.append(_Switch("all blocks", level[0].line, switches=names))


def read_topology(path: Path, nodes: Sequence[str] | None = None) -> Topology:
    """Reads a topology.conf file; see `parse_topology`.

    Args:
        nodes: names of the cluster's nodes; None: those of the file, in its order.

    Raises:
        ConfigError: the file cannot be read, or is invalid.
    """
    text = _text(path)
    named = _named(str(path), text) if nodes is None else nodes
    return parse_topology(text, named, file=str(path))


def named_nodes(path: Path) -> list[str]:
    """The nodes that a topology.conf file names, in its order.

    Raises:
        ConfigError: the file cannot be read, or is not a topology.conf.
    """
    return _named(str(path), _text(path))


def _named(file: str, text: str) -> list[str]:
    reader = _Reader(file, text)
    reader.read()
    return list(dict.fromkeys(name for switch in reader.switches for name in switch.nodes))


def _text(path: Path) -> str:
    try:
        return files.read_text(path, MAX_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("topology", f"cannot be read: {error}", file=str(path)) from None
