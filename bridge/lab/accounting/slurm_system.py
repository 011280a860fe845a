# SPDX-License-Identifier: Apache-2.0
"""Makes a system description (`system.yaml`) of `scontrol show nodes` and `show partitions`.

Rules
    1. Both are read as JSON (`--json`) or as text (`--oneliner` or in blocks).
    2. Nodes with equal CPUs, memory, generic resources, features and weight are one group. Types of
       a generic resource (`gpu:a100:4`) are added up, with the type as a feature.
    3. Partitions that share no nodes with others (`ExclusiveUser`, `OverSubscribe=EXCLUSIVE`) are
       exclusive. Limits of time and nodes are kept; states, access and QOS of partitions are not.
    4. A node or partition that cannot be read, or is there before, is counted, named and left out.
"""

import io
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import yaml

from bridge import json_text
from bridge.core import HostlistFolder
from bridge.files import MemoryBudget, held_bytes
from bridge.lab.accounting.found import AccountingRecords
from bridge.lab.accounting.slurm_words import duration_s, is_unknown, whole
from bridge.model import hostlist

_PAIR = re.compile(r"(\w+)=(\S*)")
_NODE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,255}")
_MAX: Final = (1 << 31) - 1
"""The largest number in a description."""
_TYPE = re.compile(r"[A-Za-z][\w.-]*")


def system_yaml(nodes: bytes, partitions: bytes, name: str, found: AccountingRecords) -> str:
    """The description as YAML.

    Args:
        nodes: what `scontrol show nodes` prints.
        partitions: what `scontrol show partitions` prints.
        found: counts and names what cannot be read.

    Raises:
        ValueError: they are something else, or no node can be read.
    """
    kinds: dict[str, tuple[Any, ...]] = {}

    def add_node(node: tuple[str, tuple[Any, ...]]) -> None:
        kinds[node[0]] = node[1]

    for entry in _entries(nodes, "nodes", "NodeName", found.budget):
        found.take(f"node {_name(entry):.60}", add_node, _named_node, entry, kinds)
    if not kinds:
        raise ValueError("there is no node in it that can be read")
    groups: dict[tuple[Any, ...], list[str]] = {}
    for node, kind in kinds.items():
        groups.setdefault(kind, []).append(node)
    described = [_group(kind, names) for kind, names in groups.items()]
    parts: dict[str, dict[str, Any]] = {}

    def add_part(part: dict[str, Any] | None) -> None:
        if part is not None:
            parts[part["name"]] = part

    for entry in _entries(partitions, "partitions", "Partition", found.budget):
        found.take(f"partition {_name(entry):.60}", add_part, _partition, entry, kinds, parts)
    text = {"name": name, "nodes": described, "use_memory": True}
    if parts:
        text["partitions"] = list(parts.values())
    return yaml.safe_dump(text, sort_keys=False, default_flow_style=None, width=100)


def _entries(text: bytes, key: str, first: str, budget: MemoryBudget) -> list[Any]:
    try:
        if text.lstrip()[:1] != b"{":
            return list(_of_text(text, first, budget))
        entries = json_text.load(text)[key]
    except OSError as error:
        raise ValueError(str(error.strerror).lower()) from None
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"is not what scontrol show {key} --json prints") from None
    if not isinstance(entries, list):
        raise ValueError(f"has no list '{key}'")
    return entries


def _of_text(text: bytes, first: str, budget: MemoryBudget) -> Iterator[dict[str, str]]:
    entry: dict[str, str] | None = None
    for line in io.BytesIO(text):
        for pair in _PAIR.finditer(line.decode("utf-8", "replace")):
            word, value = pair.groups()
            if word.startswith(first) and word in ("NodeName", "PartitionName"):
                if entry is not None:
                    yield entry
                budget.take(held_bytes({}))
                entry = {}
            if entry is not None and word not in entry:
                budget.take(held_bytes({word: value}))
                entry[word] = value
    if entry is not None:
        yield entry


def _name(entry: Any) -> str:
    """The name of an entry, or what it is instead of one."""
    if not isinstance(entry, dict):
        return str(entry)
    return str(entry.get("name") or entry.get("NodeName") or entry.get("PartitionName") or "")


def _named_node(entry: Any, known: Container[str]) -> tuple[str, tuple[Any, ...]]:
    name = _name(entry)
    if not _NODE_NAME.fullmatch(name):
        raise ValueError("has no name that a node may have")
    if name in known:
        raise ValueError("is listed twice")
    return name, _node(entry)


def _node(node: Mapping[str, Any]) -> tuple[Any, ...]:
    """What tells groups apart: CPUs, memory, generic resources, features, weight."""
    if "name" in node:
        features = node.get("features") or []
        features = features.split(",") if isinstance(features, str) else features
        gres, cpus = str(node.get("gres") or ""), node.get("effective_cpus") or node.get("cpus")
        memory = whole(node.get("real_memory")) - whole(node.get("specialized_memory"))
        weight = whole(node.get("weight"))
    else:
        text = str(node.get("AvailableFeatures", ""))
        features = [] if is_unknown(text) else text.split(",")
        gres, cpus = str(node.get("Gres", "")), node.get("CPUEfctv") or node.get("CPUTot")
        memory = int(node.get("RealMemory") or 1) - int(node.get("MemSpecLimit") or 0)
        weight = int(node.get("Weight") or 1)
    amounts, types = _gres(gres)
    named = sorted({str(each) for each in features if each} | types)
    count = int(str(cpus or 0)) if str(cpus or 0).isdigit() else 0
    if not (0 < count <= _MAX and 0 < memory <= _MAX):
        raise ValueError(f"a node has {count} CPUs and {memory} MiB")
    if not all(word.isprintable() for word in (*named, *amounts)):
        raise ValueError("has a feature or a generic resource whose name is not printable")
    if any(amount > _MAX for amount in amounts.values()):
        raise ValueError(f"a node has {max(amounts.values())} of a generic resource")
    return count, memory, tuple(sorted(amounts.items())), tuple(named), min(max(weight, 0), _MAX)


def _gres(text: str) -> tuple[dict[str, int], set[str]]:
    """Reads `gpu:a100:4(S:0-1),shard:8`: sums by name, and types."""
    amounts: dict[str, int] = {}
    types: set[str] = set()
    for part in "" if is_unknown(text) else re.sub(r"\([^)]*\)", "", text).split(","):
        names = part.split(":")
        if len(names) > 1 and names[-1].isdecimal() and 0 < int(names[-1][:20]) <= _MAX:
            amounts[names[0]] = amounts.get(names[0], 0) + int(names[-1])
            types |= {each for each in names[1:-1] if _TYPE.fullmatch(each)}
    return amounts, types


def _group(key: tuple[Any, ...], names: list[str]) -> dict[str, Any]:
    cpus, memory, gres, features, weight = key
    found: dict[str, Any] = {"names": _folded(names), "cpus": cpus, "memory_mib": memory}
    if gres:
        found["gres"] = dict(gres)
    if features:
        found["features"] = list(features)
    if weight != 1:
        found["weight"] = weight
    return found


def _folded(names: Iterable[str]) -> str:
    ordered = tuple(sorted(set(names)))
    return HostlistFolder(ordered).fold(np.arange(len(ordered), dtype=np.int32))


def _partition(entry: Any, known: Container[str], before: Container[str]) -> dict[str, Any] | None:
    if _name(entry) in before:
        raise ValueError("is listed twice")
    if not _name(entry).isprintable():
        raise ValueError("has a name that is not printable")
    if "name" in entry:
        name = str(entry["name"])
        nodes = str((entry.get("nodes") or {}).get("configured") or "")
        maximum = entry.get("maximums") or {}
        limit_s, width = whole(maximum.get("time")) * 60, whole(maximum.get("nodes"))
        shares = whole(maximum.get("shares"))
        flags = [str(each) for each in (maximum.get("oversubscribe") or {}).get("flags") or []]
        exclusive = shares == 0 and "shares" in maximum and "force" not in map(str.lower, flags)
        tier = whole((entry.get("priority") or {}).get("tier"))
    else:
        name, nodes = str(entry.get("PartitionName", "")), str(entry.get("Nodes", ""))
        limit_s = duration_s(str(entry.get("MaxTime", "")))
        text = str(entry.get("MaxNodes", ""))
        width = int(text) if text.isdigit() else 0
        exclusive = str(entry.get("OverSubscribe", "")) == "EXCLUSIVE"
        tier = int(entry.get("PriorityTier") or 1)
    members = [
        each for each in ([] if is_unknown(nodes) else hostlist.expand(nodes)) if each in known
    ]
    if not members or not name:
        return None
    if max(limit_s, width, tier) > _MAX or tier < 0:
        raise ValueError(f"limits of {limit_s} s and {width} nodes, or tier {tier}")
    found: dict[str, Any] = {"name": name, "nodes": _folded(members)}
    for key, value, usual in (
        ("max_time_s", limit_s, 0),
        ("max_nodes", width, 0),
        ("exclusive", exclusive, False),
        ("priority_tier", tier, 1),
    ):
        if value != usual:
            found[key] = value
    return found
