# SPDX-License-Identifier: Apache-2.0
"""The nodes a job asked for, as PBS and Torque write them: `2:ppn=8:x86_64:^node7#excl`.

Words
    part        nodes that are asked for alike; parts are joined by `+`.
    property    a word that a node must have: its name, or one of its features.

Rules
    1. A part begins with its number of nodes, 1 if it is left out. `ppn` is how many processors on
       each of them, 1 if left out; a fraction counts as the whole number below it, at least 1.
    2. `^property` keeps the job off the nodes that have it. `host=NAME` is the property NAME. What
       follows the first dot of a property is a domain and is left away.
    3. `#excl` behind all parts: whole nodes. Other words there are refused.
    4. Other settings (`mem=2gb`) are left away: the trace has a column of its own for them.

Several parts are asked for as one: as many nodes as all parts have, no more processors on any of
them than the largest part has, every property on all of them. Whoever asked for one processor on
one node and two on each of three may so get them spread otherwise.
"""

from dataclasses import dataclass

from bridge.errors import RequestError

_MOST = 1 << 31


@dataclass(frozen=True)
class NodesAsked:
    """What a job asked for by nodes.

    Attributes:
        nodes: how many, >= 1.
        processors: on all of them together, >= nodes.
        most_per_node: processors on one node at most.
        having, without: properties of all its nodes, and of none of them.
        exclusive: whole nodes.
    """

    nodes: int
    processors: int
    most_per_node: int
    having: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    exclusive: bool = False


def parse_nodes_asked(text: str) -> NodesAsked:
    """Reads a node specification.

    Raises:
        RequestError: it is none; says where.
    """
    body, hash_, flags = text.partition("#")
    if hash_ and flags != "excl":
        raise RequestError(text, len(body) + 1, f"'{flags}' is not known here; there is #excl")
    nodes = processors = most = at = 0
    having: dict[str, None] = {}
    without: dict[str, None] = {}
    for part in body.split("+"):
        count, each = 1, 1
        for word in part.split(":"):
            key, equals, value = word.partition("=")
            if key == "ppn":
                each = max(_number(text, at + 4, value), 1)
            elif not equals and word.isdecimal():
                count = _number(text, at, word)
            elif not word or word == "^" or (key == "host" and not value):
                raise RequestError(text, at, "a property is missing here")
            elif word.startswith("^"):
                without[word[1:].split(".")[0]] = None
            elif not equals or key == "host":
                having[(value or word).split(".")[0]] = None
            at += len(word) + 1
        nodes, processors, most = nodes + count, processors + count * each, max(most, each)
    if nodes < 1:
        raise RequestError(text, 0, "asks for no node")
    return NodesAsked(nodes, processors, most, tuple(having), tuple(without), bool(hash_))


def _number(text: str, position: int, word: str) -> int:
    """A whole number, or the one below a fraction."""
    whole, _, fraction = word.partition(".")
    if not whole.isdecimal() or not (fraction or "0").isdecimal() or int(whole) > _MOST:
        raise RequestError(text, position, f"'{word}' is not a number of nodes or processors")
    return int(whole)
