# SPDX-License-Identifier: Apache-2.0
"""Lists of names as Slurm writes them, `n[01-16,20],big1`, read from files and options.

Rules
    1. Names, commas, and brackets with numbers and ranges of them: what Slurm reads. Groups
       (`@all`), steps, set operators and wildcards are refused: they would mean what this
       machine's own ClusterShell files say, or nothing.
    2. A name that stands there twice counts once. Names come sorted, numbers as numbers.
    3. A list names at most `MOST_NAMES`: that is found out before any name is made.
"""

import re
from typing import Final

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

MOST_NAMES: Final = 1_000_000
_STRANGE: Final = re.compile(r"[^\w.,\[\]-]")
_BRACKET: Final = re.compile(r"\[([^\[\]]*)\]")
_RANGE: Final = re.compile(r"(\d+)-(\d+)", re.ASCII)
_COMMA: Final = re.compile(r",(?![^\[\]]*\])")


def expand(text: str) -> list[str]:
    """Reads a list of names.

    Raises:
        ValueError: it is something else, or names too many.
    """
    if strange := _STRANGE.search(text):
        raise ValueError(f"'{strange.group()}' has no place in it")
    if sum(map(_names, _COMMA.split(text))) > MOST_NAMES:
        raise ValueError(f"it has more than {MOST_NAMES:,} names")
    try:
        return [str(name) for name in NodeSet(text, resolver=RESOLVER_NOGROUP)]
    except NodeSetException as error:
        raise ValueError(str(error)) from None


def _names(term: str) -> int:
    """How many names a term without outer commas has at most."""
    product = 1
    for inner in _BRACKET.findall(term):
        count = 0
        for part in inner.split(","):
            ends = _RANGE.fullmatch(part)
            if ends and max(len(end) for end in ends.groups()) > 18:
                return MOST_NAMES + 1
            count += max(int(ends[2]) - int(ends[1]) + 1, 1) if ends else 1
        product *= count
    return product
