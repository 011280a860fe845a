# SPDX-License-Identifier: Apache-2.0
"""Makes a system description (`system.yaml`) of `scontrol show nodes` and `show partitions`.

Rules
    1. Both are read as JSON (`--json`) or as text (`--oneliner` or in blocks).
    2. Nodes with equal CPUs, memory, generic resources, features and weight are one group. Types of
       a generic resource (`gpu:a100:4`) are added up, with the type as a feature.
    3. Partitions that share no nodes with others (`ExclusiveUser`, `OverSubscribe=EXCLUSIVE`) are
       exclusive. Limits of time and nodes are kept; states, access and QOS of partitions are not.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import yaml

from bridge import json_text
from bridge.accounting.slurm_words import duration_s, is_unknown, whole
from bridge.core import HostlistFolder
from bridge.model import hostlist

_PAIR = re.compile(r"(\w+)=(\S*)")
_TYPE = re.compile(r"[A-Za-z][\w.-]*")


def system_yaml(nodes: bytes, partitions: bytes, name: str) -> str:
    """The description as YAML.

    Args:
        nodes: what `scontrol show nodes` prints.
        partitions: what `scontrol show partitions` prints.
        name: of the cluster.

    Raises:
        ValueError: something in them is not understood.
    """
    groups: dict[tuple[Any, ...], list[str]] = {}
    for node in _entries(nodes, "nodes", "NodeName"):
        key = _node(node)
        groups.setdefault(key, []).append(str(node.get("name") or node.get("NodeName")))
    if not groups:
        raise ValueError("there is no node in it")
    described = [_group(key, names) for key, names in groups.items()]
    known = {each for names in groups.values() for each in names}
    parts = [_partition(entry, known) for entry in _entries(partitions, "partitions", "Partition")]
    text = {"name": name, "nodes": described, "use_memory": True}
    if kept := [part for part in parts if part is not None]:
        text["partitions"] = kept
    return yaml.safe_dump(text, sort_keys=False, default_flow_style=None, width=100)


def _entries(text: bytes, key: str, first: str) -> list[dict[str, Any]]:
    """The entries of JSON or of text."""
    if text.lstrip()[:1] == b"{":
        try:
            entries = json_text.load(text)[key]
        except OSError as error:
            raise ValueError(str(error.strerror).lower()) from None
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"is not what scontrol show {key} --json prints") from None
        if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
            raise ValueError(f"has no list '{key}'")
        return entries
    found: list[dict[str, Any]] = []
    for line in text.decode("utf-8", "replace").splitlines():
        for word, value in _PAIR.findall(line):
            if word.startswith(first) and word in ("NodeName", "PartitionName"):
                found.append({})
            if found:
                found[-1].setdefault(word, value)
    return found


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
    if not 0 < count < 1 << 31 or not 0 < memory < 1 << 31:
        raise ValueError(f"a node has {count} CPUs and {memory} MiB")
    return count, memory, tuple(sorted(amounts.items())), tuple(named), min(weight, (1 << 31) - 1)


def _gres(text: str) -> tuple[dict[str, int], set[str]]:
    """Reads `gpu:a100:4(S:0-1),shard:8`: sums by name, and types."""
    amounts: dict[str, int] = {}
    types: set[str] = set()
    for part in "" if is_unknown(text) else re.sub(r"\([^)]*\)", "", text).split(","):
        names = part.split(":")
        if len(names) > 1 and names[-1].isdigit() and 0 < int(names[-1]) < 1 << 31:
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


def _partition(entry: Mapping[str, Any], known: set[str]) -> dict[str, Any] | None:
    if "name" in entry:
        name = str(entry["name"])
        nodes = str((entry.get("nodes") or {}).get("configured") or "")
        most = entry.get("maximums") or {}
        limit_s, width = whole(most.get("time")) * 60, whole(most.get("nodes"))
        shares = whole(most.get("shares"))
        flags = [str(each) for each in (most.get("oversubscribe") or {}).get("flags") or []]
        exclusive = shares == 0 and "shares" in most and "force" not in map(str.lower, flags)
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
