# SPDX-License-Identifier: Apache-2.0
"""A tree of switches with its jobs, for a terminal.

    top  4 idle, 59 busy, 1 down
     pod1  16 busy
      leaf1  AAAA
      leaf2  AABB
      leaf3..leaf4  2 x CCCC

Rules
    1. A line for each leaf switch, a cell for each node: the letter of its job, in its own colour;
       the largest jobs have letters, all others are `+`. Switches above are headings.
    2. A line that is too long continues below its first cell.
    3. In a tree of many leaf switches, successive ones below one switch with the same content are
       combined in one line, if all their nodes are idle, down, or of one job.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from string import ascii_letters
from typing import Final

from rich.table import Table
from rich.text import Text

from bridge.lab.report.occupancy import TreeOccupancy, hops_text

LETTERS: Final = ascii_letters[26:] + ascii_letters[:26]
IDLE, DOWN, SEVERAL, OTHER = ".", "!", "&", "+"
KEY: Final = f"{IDLE} idle   {DOWN} down   {SEVERAL} several jobs   {OTHER} a job without a letter"
FOLD_FROM: Final = 32
"""Fewer leaf switches all get a line."""

_COLOURS: Final = (
    "#8dd3c7", "#fdb462", "#bebada", "#b3de69", "#80b1d3", "#fb8072", "#fccde5", "#ffed6f",
    "#bc80bd", "#ccebc5", "#a6cee3", "#e5c494",
)  # fmt: skip
_MAX_LABEL = 24

Cells = tuple[tuple[str, int], ...]
"""The character for each node, and its job's position; -1: none, or several."""


def letter(job: int) -> str:
    """The character of a job, by its position."""
    return LETTERS[job] if job < len(LETTERS) else OTHER


def tree_text(occupancy: TreeOccupancy, *, width: int = 80, fold: bool = True) -> Text:
    """Draws the tree.

    Args:
        width: the width of a line, in characters.
        fold: combine leaf switches with the same content, in trees of many.
    """
    joined = fold and sum(leaf >= 0 for leaf in occupancy.nodes_of_leaf) >= FOLD_FROM
    page = _Page(occupancy, width, joined)
    for root in occupancy.below.get(-1, []):
        page.switches([root], 0)
    if stray := occupancy.nodes_of_leaf.get(-1):
        page.lines.append(Text(f"on no switch  {occupancy.count(stray).text}", style="bold"))
        page.lines += _rows("", _cells(occupancy, stray), 0, width)
    return Text("\n").join(page.lines)


@dataclass
class _Page:
    occupancy: TreeOccupancy
    width: int
    joined: bool
    lines: list[Text] = field(default_factory=list)

    def switches(self, switches: list[int], depth: int) -> None:
        """Draws the switches below one, and everything below them."""
        occupancy = self.occupancy
        for inner, run in itertools.groupby(switches, lambda at: at in occupancy.below):
            if not inner:
                rows = list(_leaves(occupancy, list(run), self.joined))
                label = max(len(name) for name, _, _ in rows)
                for name, times, cells in rows:
                    self.lines += _rows(name.ljust(label), cells, depth, self.width, times)
                continue
            for switch in run:
                heading = Text(" " * depth)
                heading.append(_label(occupancy.topology.names[switch]), style="bold")
                heading.append(f"  {occupancy.counts[switch].text}", style="dim")
                self.lines.append(heading)
                self.switches(occupancy.below[switch], depth + 1)


def _leaves(
    occupancy: TreeOccupancy, leaves: list[int], joined: bool
) -> Iterator[tuple[str, int, Cells]]:
    """Label and cells of each leaf switch, or of several with the same content."""
    names = occupancy.topology.names
    drawn = [_cells(occupancy, occupancy.nodes_of_leaf.get(leaf, [])) for leaf in leaves]

    def kind(at: int) -> tuple[int, Cells]:
        same = joined and len(set(drawn[at])) == 1 and drawn[at][0][0] not in (SEVERAL, OTHER)
        return (-1 if same else at, drawn[at])

    for (_, cells), run in itertools.groupby(range(len(leaves)), kind):
        held = list(run)
        name = _label(names[leaves[held[0]]])
        if len(held) > 1:
            name += f"..{_label(names[leaves[held[-1]]])}"
        yield name, len(held), cells


def _label(name: str) -> str:
    shown = "".join(c if c.isprintable() else "?" for c in name)
    return shown if len(shown) <= _MAX_LABEL else shown[: _MAX_LABEL - 1] + "…"


def _cells(occupancy: TreeOccupancy, nodes: list[int]) -> Cells:
    found = []
    for node in nodes:
        jobs = occupancy.on_node[node]
        if len(jobs) > 1:
            found.append((SEVERAL, -1))
        elif jobs:
            found.append((letter(jobs[0]), jobs[0]))
        else:
            found.append((DOWN if occupancy.down[node] else IDLE, -1))
    return tuple(found)


def _rows(label: str, cells: Cells, depth: int, width: int, times: int = 1) -> list[Text]:
    lead = f"{' ' * depth}{label}  " + (f"{times} x " if times > 1 else "")
    room = max(width - len(lead), 8)
    rows = []
    for first in range(0, max(len(cells), 1), room):
        row = Text(lead if not first else " " * len(lead))
        for run in cells[first : first + room]:
            row.append(*_styled(run))
        rows.append(row)
    return rows


def _styled(cell: tuple[str, int]) -> tuple[str, str]:
    shown, job = cell
    if job >= 0:
        return shown, f"black on {_COLOURS[job % len(_COLOURS)]}"
    return shown, {DOWN: "bold red", SEVERAL: "reverse"}.get(shown, "dim")


def jobs_table(occupancy: TreeOccupancy, maximum: int) -> Table:
    """The largest jobs: letter, nodes, leaf switches, hops.

    Args:
        maximum: maximum number of jobs in the table.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    table.add_column("job")
    table.add_column("user", max_width=12, overflow="ellipsis", no_wrap=True)
    table.add_column("name", max_width=16, overflow="ellipsis", no_wrap=True)
    for name in ("nodes", "leaf switches", "hops per pair"):
        table.add_column(name, justify="right")
    table.add_column("")
    for at, job in enumerate(occupancy.jobs[:maximum]):
        how = occupancy.compactness[at]
        mark = Text(*_styled((letter(at), at)))
        words = (_label(job.id), _label(job.user), _label(job.name), f"{len(job.nodes):,}")
        figures = (f"{how.leaf_switches:,}", hops_text(how))
        table.add_row(mark, *map(Text, words), *figures, "" if job.running else "starts now")
    return table
