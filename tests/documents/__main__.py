# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.documents [--not-run]`: counts the blocks of the pages, lists those not run."""

import argparse
from collections import Counter

from tests.documents.marks import Drawing, Load, NotRun, Output, Run
from tests.documents.pages import PAGES, Block, read

KINDS = (
    "run on this machine", "run on a cluster or in a container", "loaded", "compared as output",
    "not run", "drawing or pattern", "without a mark",
)  # fmt: skip


def kind_of(block: Block) -> str:
    """What happens to a block."""
    match block.mark:
        case Run():
            return KINDS[1] if block.mark.on_cluster else KINDS[0]
        case Load():
            return KINDS[2]
        case Output():
            return KINDS[3]
        case NotRun():
            return KINDS[4]
        case Drawing():
            return KINDS[5]
    return KINDS[6]


def main() -> None:
    """Prints what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.documents", description=__doc__)
    parser.add_argument("--not-run", action="store_true", help="those that are not run, and why")
    given = parser.parse_args()
    blocks = [block for page in PAGES for block in read(page).blocks]
    if given.not_run:
        for block in blocks:
            if isinstance(block.mark, NotRun):
                print(f"{block.place}: {block.mark.reason}")
                print("".join(f"    {line}\n" for line in block.text.splitlines()), end="")
        return
    counts = Counter(kind_of(block) for block in blocks)
    for kind in KINDS:
        print(f"{counts[kind]:4} {kind}")
    print(f"{len(blocks):4} blocks in {len(PAGES)} pages")


if __name__ == "__main__":
    main()
