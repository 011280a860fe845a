# SPDX-License-Identifier: Apache-2.0
"""Reads the how-to pages: their fenced blocks with the marks before them, and inline commands."""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.documents.marks import BadMark, Mark, NotRun, Output, PageCluster, Run, parse

ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md", "docs/ADMIN.md", "docs/CONFIG.md", "docs/CHUNKS.md", "docs/TIMES.md",
    "docs/ELASTIC.md", "docs/POWER.md", "docs/COSCHEDULING.md", "docs/PLACEMENT.md",
    "docs/EXPERIMENTS.md", "docs/IMPORT.md", "docs/GENERATE.md", "docs/SIMULATOR.md", "docs/PBS.md",
)  # fmt: skip
_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
_FENCE = re.compile(r"^([ ]*)```(\w*)[ ]*\n(.*?)^[ ]*```[ ]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        page: path of the page in the checkout.
        line: number of the fence's line.
        language: after the fence.
        text: without the indentation of the list that it is in.
        mark: what is said of it; None: nothing.
    """

    page: str
    line: int
    language: str
    text: str
    mark: Mark | None

    @property
    def place(self) -> str:
        """Where to find it."""
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Inline:
    """A code span within a sentence or a table."""

    page: str
    line: int
    text: str


@dataclass(frozen=True)
class Page:
    """A page as it was read.

    Attributes:
        path: in the checkout.
        blocks: in their order.
        inlines: code spans outside of blocks.
        cluster: that its blocks need, if it says so.
        faults: marks that say nothing, or that stand before no block.
    """

    path: str
    blocks: tuple[Block, ...]
    inlines: tuple[Inline, ...]
    cluster: PageCluster | None = None
    faults: tuple[str, ...] = field(default=())


def read(path: str, text: str | None = None) -> Page:
    """Reads a page; `text`: instead of the file's."""
    text = (ROOT / path).read_text() if text is None else text
    faults: list[str] = []
    clusters: list[PageCluster] = []
    pending: dict[int, Mark] = {}  # by the offset at which the next block must begin
    fences = list(_FENCE.finditer(text))
    for comment in _COMMENT.finditer(_blanked(text, fences)):
        where = f"{path}:{_line(text, comment.start())}"
        try:
            mark = parse(textwrap.dedent(comment[1]))
        except BadMark as bad:
            faults.append(f"{where}: {bad}")
            continue
        if isinstance(mark, PageCluster):
            clusters.append(mark)
        elif mark is not None:
            pending[_next(text, comment.end())] = mark
    blocks = []
    for fence in fences:
        mark = pending.pop(fence.start(1), None)
        body = textwrap.dedent(fence[3])
        blocks.append(Block(path, _line(text, fence.start()), fence[2], body, mark))
    faults += [f"{path}:{_line(text, at)}: a mark that stands before no block" for at in pending]
    faults += _orphans(blocks)
    faults += [f"{path}: more than one cluster"] * (len(clusters) > 1)
    return Page(
        path,
        tuple(blocks),
        tuple(_inlines(path, text, fences)),
        *clusters[:1],
        faults=tuple(faults),
    )


def _orphans(blocks: list[Block]) -> Iterator[str]:
    """Output that nothing prints."""
    printing = False
    for block in blocks:
        if isinstance(block.mark, Output) and not printing:
            yield f"{block.place}: the output of no command"
        if isinstance(block.mark, Run | NotRun):
            printing = isinstance(block.mark, Run) and not block.mark.lines


def _blanked(text: str, fences: list[re.Match[str]]) -> str:
    """The text with its blocks blanked out, and everything else where it was."""
    for fence in fences:
        blank = re.sub(r"[^\n]", " ", fence[0])
        text = text[: fence.start()] + blank + text[fence.end() :]
    return text


def _next(text: str, offset: int) -> int:
    """The beginning of the next line that is not blank."""
    found = re.compile(r"[ ]*\n(?:[ ]*\n)*").match(text, offset)
    return found.end() if found else offset


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _inlines(path: str, text: str, fences: list[re.Match[str]]) -> Iterator[Inline]:
    shown = _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), _blanked(text, fences))
    for span in re.finditer(r"`([^`]+)`", shown):
        words = " ".join(span[1].replace("\\|", "|").split())
        yield Inline(path, _line(text, span.start()), words)
