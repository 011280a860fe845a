# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.documents [--not-run]`: counts the blocks; writes the page of those not run."""

import argparse
from collections import Counter

from tests.documents import inline
from tests.documents.marks import Drawing, Load, NotRun, Output, Run
from tests.documents.pages import PAGES, ROOT, Block, read

NOT_RUN = "docs/results/documents.md"
COMMAND = "python -m tests.documents --not-run"
IN_SENTENCES = (
    ("Commands of schedbridge in sentences",
     "No block runs these as they stand in a sentence or a table. A test finds the command, its\n"
     "options, and the values of options that take one of a few, in the program itself.",
     inline.commands_in),
    ("Commands of other programs in sentences",
     "No block runs these as they stand, and no test reads them.", inline.commands_of_others),
)  # fmt: skip

KINDS = (
    "run on this machine", "run on a cluster or in a container", "loaded", "compared as output",
    "not run", "drawing or pattern", "without a mark", "run on a real OpenPBS server",
)  # fmt: skip


def kind_of(block: Block) -> str:
    """What happens to a block."""
    match block.mark:
        case Run(run="pbs"):
            return KINDS[7]
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


def not_run() -> str:
    """The page that says which commands of the pages are not run as written, and why."""
    pages = [read(path) for path in PAGES]
    lines = [
        "# Commands of the pages that are not run", "",
        f"`{COMMAND}` writes this page. All other blocks of the pages are run, loaded or",
        "compared, as [the tests of the pages](../../tests/documents/README.md) say.", "",
        "## Blocks", "", "| page | commands | why not |", "|---|---|---|",
    ]  # fmt: skip
    for block in (block for page in pages for block in page.blocks):
        if isinstance(block.mark, NotRun):
            commands = "<br>".join(f"`{line}`" for line in block.text.splitlines() if line.strip())
            lines.append(f"| {block.page} | {_cell(commands)} | {_cell(block.mark.reason)} |")
    for title, why, spans_of in IN_SENTENCES:
        lines += ["", f"## {title}", "", why, "", "| page | command |", "|---|---|"]
        for page in pages:
            spans = inline.not_in_blocks(spans_of(page))
            lines += [f"| {page.path} | {_cell(f'`{span.text}`')} |" for span in spans]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    """Prints what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.documents", description=__doc__)
    parser.add_argument("--not-run", action="store_true", help="write the page of what is not run")
    given = parser.parse_args()
    if given.not_run:
        (ROOT / NOT_RUN).write_text(not_run(), encoding="utf-8")
        return
    blocks = [block for page in PAGES for block in read(page).blocks]
    counts = Counter(kind_of(block) for block in blocks)
    for kind in KINDS:
        print(f"{counts[kind]:4} {kind}")
    print(f"{len(blocks):4} blocks in {len(PAGES)} pages")


if __name__ == "__main__":
    main()
