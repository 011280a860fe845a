# SPDX-License-Identifier: Apache-2.0
"""Commands and options within sentences and tables, and which of them no block runs."""

import functools
import re
from collections.abc import Iterator

from tests.documents.following import commands_of
from tests.documents.marks import Run
from tests.documents.pages import PAGES, ROOT, Inline, Page, read

TABLES = {
    "docs/EXPERIMENTS.md": ("lab experiment", "lab experiment-report"),
    "docs/GENERATE.md": ("lab generate",),
    "docs/IMPORT.md": ("lab import",),
    "docs/SIMULATOR.md": ("lab simulate",),
}
"""Pages whose tables of options (in their first column) are those of these commands."""

OURS = ("schedbridge", "scripts/[a-z-]+")
OTHERS = (
    "sbatch", "srun", "salloc", "scancel", "scontrol", "squeue", "sinfo", "sacct", "sacctmgr",
    "qsub", "qmgr", "qstat", "qrun", "qdel", "systemctl", "pip", "apt-get", "openssl", "make",
    "kill", "docker", "mpirun",
)  # fmt: skip
"""Programs whose commands the pages name."""
_COMMAND = re.compile(rf"(?:{'|'.join((*OURS, *OTHERS))}) \S|scripts/[a-z-]+$")


def commands_in(page: Page) -> Iterator[Inline]:
    """The spans that are commands: a program's name, and a word after it."""
    return (span for span in page.inlines if _COMMAND.match(span.text))


def program_of(span: Inline) -> str:
    """The first word of a command."""
    return span.text.split(maxsplit=1)[0]


def run_in(span: Inline) -> str:
    """The page with a block that runs this command, perhaps with more words; empty: none."""
    for path, line in _lines_run():
        if re.match(rf"{re.escape(span.text)}(?:$|[ ;|])", line):
            return path
    return ""


@functools.cache
def _lines_run() -> tuple[tuple[str, str], ...]:
    return tuple(
        (path, " ".join(line.split()))
        for path in PAGES
        for block in read(path).blocks
        if isinstance(block.mark, Run) and not block.mark.lines
        for line in commands_of(block.text).splitlines()
    )


def listed_options(text: str) -> Iterator[tuple[int, str]]:
    """The options in the first columns of a page's tables, with their lines."""
    for number, line in enumerate(text.splitlines(), 1):
        first = line.split(" | ")[0]
        if re.match(r"\| `--", first):
            for span in re.findall(r"`(--[^`]*)`", first):
                yield number, _option(span)


def options_in(page: Page, heading: str = "") -> Iterator[tuple[int, str]]:
    """The options that a page names, from a heading on, with their lines."""
    lines = (ROOT / page.path).read_text().splitlines()
    start = lines.index(heading) + 1 if heading else 0
    for span in page.inlines:
        if span.line > start and span.text.startswith("--"):
            yield span.line, _option(span.text)


def _option(text: str) -> str:
    return text.split(maxsplit=1)[0].split("=", maxsplit=1)[0]
