# SPDX-License-Identifier: Apache-2.0
"""`node_sort_key` as weights of the wire's nodes: those of lower weight are used first.

Rules
    1. Nodes are sorted by the keys, the first one first: `sort_priority` is the vnode's Priority,
       any other name a resource, in all (`total`), in use (`assigned`) or free (`unused`).
    2. Nodes that are equal by all keys have the same weight. Then the policy chooses.
    3. What a wire node of several vnodes has is their sum; its priority that of the first.

Deviates: pbs_sched counts what reservations hold as assigned.

Source: OpenPBS 23.06, Administrator's Guide, Sorting Vnodes on a Key.
"""

from collections.abc import Mapping

from bridge.pbs.objects.parsed import Parsed
from bridge.pbs.objects.sched_config import SortKey


def node_weights(parsed: Parsed, nodes: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """Returns the weight of each node of the wire, from 1.

    Args:
        nodes: the nodes of the wire, with their vnodes.
    """
    keys = parsed.settings.node_sort
    used = _used(parsed) if any(key.of != "total" for key in keys) else {}
    found = {
        name: tuple(
            _value(key, members, parsed, used) * (-1 if key.descending else 1) for key in keys
        )
        for name, members in nodes.items()
    }
    places = {values: at for at, values in enumerate(sorted(set(found.values())), 1)}
    return {name: places[values] for name, values in found.items()}


def _used(parsed: Parsed) -> dict[str, dict[str, float]]:
    used: dict[str, dict[str, float]] = {}
    for job in parsed.jobs.values():
        if job.has_vnodes and not job.is_array:
            for vnode, taken in job.held.items():
                on_vnode = used.setdefault(vnode, {})
                for name, value in taken.items():
                    on_vnode[name] = on_vnode.get(name, 0.0) + value
    return used


def _value(
    key: SortKey, members: tuple[str, ...], parsed: Parsed, used: Mapping[str, Mapping[str, float]]
) -> float:
    if key.name == "sort_priority":
        return float(parsed.vnodes[members[0]].priority)
    total = sum(parsed.vnodes[each].amounts.get(key.name, 0.0) for each in members)
    if key.of == "total":
        return total
    assigned = sum(used.get(each, {}).get(key.name, 0.0) for each in members)
    return assigned if key.of == "assigned" else total - assigned
