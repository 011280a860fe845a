# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.documents [--list]`: counts what becomes of the blocks; writes their list."""

import argparse
from collections import Counter

from tests.documents import listing
from tests.documents.pages import PAGES, read


def main() -> None:
    """Prints what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.documents", description=__doc__)
    parser.add_argument("--list", action="store_true", help=f"write {listing.PATH.name} anew")
    if parser.parse_args().list:
        listing.PATH.write_text(listing.page(), encoding="utf-8")
        return
    blocks = [block for page in PAGES for block in read(page).blocks]
    counts = Counter(listing.done_with(block) for block in blocks)
    for kind in sorted(counts):
        print(f"{counts[kind]:4} {kind}")
    print(f"{len(blocks):4} blocks in {len(PAGES)} pages")


if __name__ == "__main__":
    main()
