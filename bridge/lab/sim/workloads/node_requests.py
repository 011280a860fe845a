# SPDX-License-Identifier: Apache-2.0
"""Node specifications of PBS and Torque: `2:ppn=8:x86_64:^node7#excl`.

Terms
    part        nodes with equal requests; parts are joined by `+`.
    property    a word that a node must have: its name, or one of its features.

Rules
    1. A part begins with its number of nodes, 1 by default. `ppn` is the number of processors on
       each of them, 1 by default; a fraction is rounded down, to at least 1.
    2. `^property` excludes the nodes that have it. `host=NAME` is the property NAME. A property is
       cut at its first dot, where a domain begins.
    3. `#excl` after all parts: whole nodes. Other flags are refused.
    4. Other settings (`mem=2gb`) are ignored: the trace has columns of its own for them.

Several parts are merged into one: the sum of their nodes, the largest number of processors per
node, and all properties on all nodes. A request for one processor on one node and two on each of
three may therefore be distributed differently.
"""

from dataclasses import dataclass

from bridge.errors import RequestError

_MAX = 1 << 31


@dataclass(frozen=True)
class NodeRequest:
    """A job's node request.

    Attributes:
        nodes: number, >= 1.
        processors: total, >= nodes.
        max_per_node: most processors on one node.
        having, without: properties that all its nodes have, and that none has.
    """

    nodes: int
    processors: int
    max_per_node: int
    having: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    exclusive: bool = False


def parse_node_request(text: str) -> NodeRequest:
    """Reads a node specification.

    Raises:
        RequestError: it is invalid; the message says where.
    """
    body, hash_, flags = text.partition("#")
    if hash_ and flags != "excl":
        raise RequestError(text, len(body) + 1, f"'{flags}' is not known here; there is #excl")
    nodes = processors = maximum = at = 0
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
        nodes, processors, maximum = nodes + count, processors + count * each, max(maximum, each)
    if nodes < 1:
        raise RequestError(text, 0, "asks for no node")
    return NodeRequest(nodes, processors, maximum, tuple(having), tuple(without), bool(hash_))


def _number(text: str, position: int, word: str) -> int:
    """An integer; fractions are rounded down."""
    whole, _, fraction = word.partition(".")
    if not whole.isdecimal() or not (fraction or "0").isdecimal() or int(whole) > _MAX:
        raise RequestError(text, position, f"'{word}' is not a number of nodes or processors")
    return int(whole)
