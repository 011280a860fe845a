# SPDX-License-Identifier: Apache-2.0
"""Requests that the service does not model, for the nodes of `pooled_nodes`, and what each states.

The plugin has a table of their kinds; here each has requests, under the name that it has there.
What a request states is judged by Slurm's own record of the job and of its nodes.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random

from tests.integration.pooled_nodes import USABLE
from tests.integration.slurm import ROOT

_TABLE = ROOT / "bridge/shim/rules/unmodelled.c"


def kinds() -> list[str]:
    """The names of the kinds in the plugin's table."""
    return re.findall(r'^    \{"([^"]+)", \.is_of_\w+ = \w+\},$', _TABLE.read_text(), re.MULTILINE)


@dataclass(frozen=True)
class Node:
    """What Slurm shows of a node; `number` is its place in Slurm's table."""

    number: int
    sockets: int
    features: frozenset[str]
    tmp_disk_mib: int

    def sockets_of(self, cpus: tuple[int, ...]) -> list[int]:
        """The socket of each of these CPUs: there are four, one for each core."""
        return [cpu * self.sockets // 4 for cpu in cpus]


@dataclass(frozen=True)
class Held:
    """What a job has.

    Attributes:
        width: the number that its request was made with.
        nodes: in the order of Slurm's table.
        names: theirs.
        cpus: the numbers of its CPUs on each.
        named: the nodes that its request names.
    """

    width: int
    nodes: tuple[Node, ...]
    names: tuple[str, ...]
    cpus: tuple[tuple[int, ...], ...]
    named: tuple[str, ...]

    def counts(self) -> list[int]:
        """CPUs on each node."""
        return [len(cpus) for cpus in self.cpus]

    def all_have(self, feature: str) -> bool:
        return all(feature in node.features for node in self.nodes)


@dataclass(frozen=True)
class Request:
    """One request.

    Attributes:
        options: of sbatch; `{w}` is a number of nodes, `{2w}` and `{4w}` are multiples of it, and
            `{names}` are nodes, one more than `{w}`.
        is_kept: whether what a job got is what the request states.
        may_stay: under limits and FreePools such a job does not start, or only where Slurm takes as
            many nodes as are planned (docs/ADMIN.md).
        max_width: the largest number to be drawn.
    """

    options: str
    is_kept: Callable[[Held], bool]
    may_stay: bool = False
    max_width: int = 3

    def drawn(self, dice: Random) -> tuple[tuple[str, ...], int, tuple[str, ...]]:
        """The options with numbers, the width, and the nodes that are named."""
        width = dice.randint(1, self.max_width)
        names = tuple(sorted(dice.sample(USABLE, width + 1)))
        text = self.options.replace("{w}", str(width)).replace("{names}", ",".join(names))
        text = text.replace("{2w}", str(2 * width)).replace("{4w}", str(4 * width))
        return tuple(text.split()), width, names if "{names}" in self.options else ()


def _has_width(held: Held) -> bool:
    return len(held.nodes) == held.width


def _is_contiguous(held: Held) -> bool:
    numbers = [node.number for node in held.nodes]
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _is_in_one_rack(held: Held) -> bool:
    return _has_width(held) and (held.all_have("rack1") or held.all_have("rack2"))


def _has_two_sockets(held: Held) -> bool:
    return _has_width(held) and all(node.sockets == 2 for node in held.nodes)


def _uses_two_sockets(held: Held) -> bool:
    each = zip(held.nodes, held.cpus, strict=True)
    return _has_two_sockets(held) and all(len(set(n.sockets_of(cpus))) == 2 for n, cpus in each)


def _keeps_the_sockets_limit(held: Held) -> bool:
    each = [node.sockets_of(cpus) for node, cpus in zip(held.nodes, held.cpus, strict=True)]
    return all(len(set(sockets)) == len(sockets) for sockets in each)


REQUESTS: Mapping[str, tuple[Request, ...]] = {
    "--contiguous": (
        Request("--contiguous --exclusive -N{w}", lambda h: _has_width(h) and _is_contiguous(h)),
        Request("--contiguous -N{w} -n{2w}", lambda h: _has_width(h) and _is_contiguous(h)),
        Request("--contiguous -n{4w} -c1", _is_contiguous),
    ),
    "--constraint=[a*1&b*2]": (
        Request("-C [rack1*1&rack2*2] --exclusive -N3", lambda _: False, may_stay=True),
        Request("-C [rack1|rack2] --exclusive -N{w}", _is_in_one_rack),
    ),
    "--nodes=1,3": (
        Request("-N2,4 --exclusive", lambda h: len(h.nodes) in (2, 4)),
        Request("-N1,3 -n3 -c2", lambda h: len(h.nodes) in (1, 3) and sum(h.counts()) >= 6,
                may_stay=True),
    ),
    "--overcommit": (
        Request("-O -N{w} -n{4w}", _has_width),
        Request("-O -N{w} -n{4w} --contiguous", lambda h: _has_width(h) and _is_contiguous(h)),
    ),
    "--extra-node-info": (
        Request("--sockets-per-node=2 --exclusive -N{w}", _has_two_sockets),
        Request("--cores-per-socket=4 --exclusive -N{w}",
                lambda h: _has_width(h) and all(n.sockets == 1 for n in h.nodes)),
        Request("--ntasks-per-socket=1 -N{w} -n{2w}", _uses_two_sockets),
        Request("-B 2:2 --exclusive -N{w}", _has_two_sockets),
        Request("--ntasks-per-core=1 -N{w} -n{2w}",
                lambda h: _has_width(h) and sum(h.counts()) >= 2 * h.width),
    ),
    "--prefer": (
        Request("--prefer=fast -C rack1 --exclusive -N{w}",
                lambda h: _has_width(h) and h.all_have("rack1")),
    ),
    "--nodes=1-3 --ntasks=6": (
        Request("-N1-3 -n6", lambda h: len(h.nodes) <= 3 and sum(h.counts()) >= 6),
        Request("-N2-4 -n3 -c2", lambda h: 2 <= len(h.nodes) <= 4 and sum(h.counts()) >= 6),
    ),
    "--tmp": (
        Request("--tmp=5000 --exclusive -N{w}",
                lambda h: _has_width(h) and all(n.tmp_disk_mib >= 5000 for n in h.nodes)),
    ),
    "--core-spec": (Request("--core-spec=1 --exclusive -N{w}", _has_width),),
    "--spread-job": (
        Request("--spread-job -n{2w}", lambda h: sum(h.counts()) >= 2 * h.width >= len(h.nodes)),
    ),
    "--use-min-nodes": (Request("--use-min-nodes --exclusive -N1-4 -n{4w}", _has_width),),
    "--gpus-per-socket": (
        Request("--gpus-per-socket=1 --sockets-per-node=2 -N{w} -n{2w}", _has_two_sockets),
    ),
    "--reservation=a,b": (
        Request("--reservation=a,b -N1 --exclusive", lambda _: False, may_stay=True),
    ),
    "--nodelist=n1,n2 --nodes=1": (
        Request("-w {names} --exclusive -N1-{w}",
                lambda h: len(h.nodes) <= h.width and set(h.names) <= set(h.named)),
    ),
    "LLN=YES": (Request("-p lln -n{2w}", lambda h: sum(h.counts()) >= 2 * h.width),),
    "ExclusiveUser=YES": (
        Request("-p peruser -N{w} -n{2w}", lambda h: sum(h.counts()) >= 2 * h.width),
        Request("-p peruser -n{2w}", lambda h: sum(h.counts()) >= 2 * h.width, may_stay=True),
    ),
    "OverSubscribe=FORCE": (Request("-p force -N{w} -n{4w}", _has_width),),
    "MaxCPUsPerNode": (
        Request("-p capped -N{w} -n{2w}", lambda h: max(h.counts()) <= 2),
        Request("-p capped -n{2w}", lambda h: max(h.counts()) <= 2, may_stay=True),
    ),
    "MaxCPUsPerSocket": (
        Request("-p cappedsocket -N{w} -n{2w}", _uses_two_sockets),
        Request("-p cappedsocket -n{w}", _keeps_the_sockets_limit, may_stay=True),
    ),
}  # fmt: skip
"""By the name of the kind. Slurm 24.11 itself gives `--contiguous -N2-3` nodes that are not."""

BESIDE = (
    Request("--ntasks-per-node=2 -N{w}", lambda h: _has_width(h) and min(h.counts()) >= 2),
    Request("-m plane=2 -N{w} -n{4w}", _has_width),
    Request("-m cyclic:cyclic -N{w} -n{2w}", _has_width),
    Request("-w n1 -x n2,n3,n4 -N{w} --exclusive",
            lambda h: "n1" in h.names and not {"n2", "n3", "n4"} & set(h.names)),
    Request("-C fast&rack1|rack2 --exclusive -N{w}",
            lambda h: all({"fast", "rack1"} <= n.features or "rack2" in n.features
                          for n in h.nodes)),
    Request("--gres=gpu:2 --gres-flags=enforce-binding -N{w} -n{2w}", _has_width),
    Request("--gpus-per-task=1 -n{2w}", lambda h: len(h.nodes) >= h.width),
    Request("--switches=1 --exclusive -N{w}", _has_width),
    Request("--exclusive=user -n{2w}", lambda h: sum(h.counts()) >= 2 * h.width),
)  # fmt: skip
"""Requests that are, or could be, none of the plugin's kinds, and have conditions on nodes, too."""


def dealt(dice: Random, each: int) -> Iterator[list[Request]]:
    """All requests, so many at a time; those that need reservations are left out."""
    deck = [*BESIDE, *(request for found in REQUESTS.values() for request in found)]
    deck = [request for request in deck if "--reservation" not in request.options]
    dice.shuffle(deck)
    for first in range(0, len(deck), each):
        yield deck[first : first + each]
