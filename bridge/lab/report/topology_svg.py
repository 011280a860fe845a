# SPDX-License-Identifier: Apache-2.0
"""A tree of switches with its jobs, as one self-contained SVG file.

Rules
    1. A switch is a frame around everything below it; a leaf switch is a row of cells, one per
       node. Frames are placed side by side so that the picture is about as wide as a screen.
    2. Idle cells are hollow, cells of nodes that are down are crossed, all others have the colour
       of their job; a node of several jobs has a stripe for each. The same job has the same colour
       everywhere, and its number in the cell if it fits. Jobs beyond the palette share colours; the
       tooltip of every cell names its job.
    3. The larger the tree, the smaller the cells: ten thousand nodes still fit a screen.
"""

import colorsys
from collections.abc import Callable
from dataclasses import dataclass, field
from math import isinf
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from bridge.lab.report.occupancy import Compactness, TreeOccupancy, hops_text

_SIZES: Final = ((150, 26.0), (600, 16.0), (3000, 11.0), (1 << 62, 7.0))
"""Trees with fewer nodes than this get cells of this size."""
_MAX_IN_ROW: Final = 48
_GAP, _PAD, _LINE = 12.0, 9.0, 15.0
_LEGEND: Final = 24
_COLUMN: Final = 450
"""Jobs in the legend, and the width of each of its two columns."""
_STRIPES: Final = 6
_STYLE: Final = """
text { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #24292f; }
.title { font-size: 17px; font-weight: 600; }
.quiet { fill: #6b7480; font-size: 11px; }
.name { font-weight: 600; }
.leaf { font-size: 10.5px; fill: #57606a; }
.in { font-size: 9px; text-anchor: middle; fill: #1b1f24; }
.f0 { fill: #ffffff; stroke: #c3cad3; }
.f1 { fill: #f4f6f8; stroke: #d7dde3; }
.i { fill: #ffffff; stroke: #c3cad3; }
.d { fill: #fdecea; stroke: #b3261e; }
.x { stroke: #b3261e; stroke-width: 1.2; }
.j { stroke: #3d444d; stroke-opacity: .35; }
.j:hover, .i:hover, .d:hover { stroke: #000000; stroke-opacity: 1; stroke-width: 2; }
"""


@dataclass(frozen=True)
class _Box:
    """A drawable with a size, as wide as the space allows."""

    width: float
    height: float
    draw: Callable[[float, float, float], None]


@dataclass
class _Sheet:
    occupancy: TreeOccupancy
    cell: float
    label: float
    out: list[str] = field(default_factory=list)

    # ------------------------------------------------------------ cells

    def node(self, node: int, x: float, y: float) -> None:
        occupancy, side = self.occupancy, self.cell - (2 if self.cell > 9 else 1)
        jobs = occupancy.on_node[node]
        words = occupancy.words[node] or occupancy.state(node)
        lines = [f"{occupancy.names[node]}: {words}"]
        for at in jobs:
            job, how = occupancy.jobs[at], occupancy.compactness[at]
            what = "" if job.running else ", starts now"
            lines.append(
                f"job {job.id} ({job.name}) of {job.user}{what}: {_spread(len(job.nodes), how)}"
            )
        tip = f"<title>{_text(chr(10).join(lines))}</title>"
        place = f'x="{x:g}" y="{y:g}" width="{side:g}" height="{side:g}" rx="{side / 7:.1f}"'
        if not jobs:
            kind = "d" if occupancy.down[node] else "i"
            self.out.append(f'<rect class="{kind}" {place}>{tip}</rect>')
            if kind == "d":
                a, b = side * 0.25, side * 0.75
                self.out.append(
                    f'<path class="x" d="M{x + a:g} {y + a:g}L{x + b:g} {y + b:g}'
                    f'M{x + b:g} {y + a:g}L{x + a:g} {y + b:g}" pointer-events="none"/>'
                )
            return
        self.out.append(f'<rect class="j" fill="{colour(jobs[0])}" {place}>{tip}</rect>')
        shown = jobs[:_STRIPES]
        for i, at in enumerate(shown[1:], 1):
            left = x + side * i / len(shown)
            self.out.append(
                f'<rect x="{left:g}" y="{y:g}" width="{side / len(shown):.2f}" height="{side:g}" '
                f'fill="{colour(at)}" pointer-events="none"/>'
            )
        name = occupancy.jobs[jobs[0]].id
        if len(jobs) == 1 and len(name) * 5.4 < side:
            self.out.append(
                f'<text class="in" x="{x + side / 2:g}" y="{y + side / 2 + 3:g}" '
                f'pointer-events="none">{_text(name)}</text>'
            )

    def leaf(self, name: str, nodes: list[int]) -> _Box:
        row = max(1, min(_MAX_IN_ROW, len(nodes)))
        height = max(self.cell * -(-max(len(nodes), 1) // row), 12.0)

        def draw(x: float, y: float, wide: float) -> None:
            del wide
            self.out.append(
                f'<text class="leaf" x="{x:g}" y="{y + min(self.cell, 14) / 2 + 3:g}">'
                f"{_text(_short(name, 14))}"
                f"<title>{_text(f'{name}: {self.occupancy.count(nodes).text}')}</title></text>"
            )
            for i, node in enumerate(nodes):
                self.node(node, x + self.label + i % row * self.cell, y + i // row * self.cell)

        return _Box(self.label + row * self.cell, height, draw)

    # ------------------------------------------------------------ frames

    def box(self, switch: int, depth: int, wide: float) -> _Box:
        occupancy, name = self.occupancy, self.occupancy.topology.names[switch]
        below = occupancy.below.get(switch)
        if below is None:
            return self.leaf(name, occupancy.nodes_of_leaf.get(switch, []))
        inside = _flow([self.box(at, depth + 1, wide - 2 * _PAD) for at in below], wide - 2 * _PAD)
        return self.frame(name, occupancy.counts[switch].text, inside, depth)

    def frame(self, name: str, words: str, inside: _Box, depth: int) -> _Box:
        needed = 7.2 * len(_short(name, 30)) + 5.8 * len(words) + 14
        width = max(inside.width, needed) + 2 * _PAD

        def draw(x: float, y: float, wide: float) -> None:
            self.out.append(
                f'<rect class="f{depth % 2}" x="{x:g}" y="{y:g}" width="{max(width, wide):g}" '
                f'height="{inside.height + _LINE + 2.5 * _PAD:g}" rx="6"/>'
                f'<text x="{x + _PAD:g}" y="{y + _PAD + 10:g}">'
                f'<tspan class="name">{_text(_short(name, 30))}</tspan>'
                f'<tspan class="quiet" dx="8">{_text(words)}</tspan></text>'
            )
            inside.draw(x + _PAD, y + _LINE + 1.5 * _PAD, 0.0)

        return _Box(width, inside.height + _LINE + 2.5 * _PAD, draw)


def _flow(boxes: list[_Box], wide: float) -> _Box:
    """Arranges boxes in columns of similar height.

    Leaf switches of one parent make one column unless there are very many.
    """
    total = sum(box.height + 4 for box in boxes)
    widest = max((box.width for box in boxes), default=0.0)
    frames = any(box.height > 60 for box in boxes)
    gap = _GAP if frames else 3.0
    columns = 1
    if frames:
        columns = max(1, int((wide + _GAP) // (widest + _GAP)))
    elif total > 700:
        columns = min(int(-(-total // 700)), max(1, int(wide // (widest + _GAP))))
    rows = -(-len(boxes) // columns)
    columns = -(-len(boxes) // rows) if boxes else 1
    places: list[tuple[float, float, _Box]] = []
    x = y = bottom = 0.0
    if frames:  # row by row, as one reads
        for first in range(0, len(boxes), columns):
            row = boxes[first : first + columns]
            for i, box in enumerate(row):
                places.append((i * (widest + gap), y, box))
            y += max(box.height for box in row) + gap
        bottom = y - gap
    else:  # column by column, as leaf switches are counted
        for first in range(0, len(boxes), rows):
            y = 0.0
            for box in boxes[first : first + rows]:
                places.append((x, y, box))
                y += box.height + gap
            bottom = max(bottom, y - gap)
            x += widest + _GAP
    width = columns * (widest + _GAP) - _GAP

    def draw(x: float, y: float, wide: float) -> None:
        del wide
        for dx, dy, box in places:
            box.draw(x + dx, y + dy, widest)

    return _Box(max(width, 0.0), max(bottom, 0.0), draw)


def colour(job: int) -> str:
    """A job's colour by its position: neighbours in the list differ most."""
    hue = (0.55 + job * 0.61803398875) % 1.0
    light = (0.72, 0.62, 0.80)[job % 3]
    strong = (0.62, 0.55, 0.75)[job // 3 % 3]
    parts = colorsys.hls_to_rgb(hue, light, strong)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def topology_svg(occupancy: TreeOccupancy, title: str) -> str:
    count = len(occupancy.names)
    cell = next(side for maximum, side in _SIZES if count <= maximum)
    leaves = {leaf for leaf in occupancy.nodes_of_leaf if leaf >= 0}
    longest = max((len(_short(occupancy.topology.names[leaf], 14)) for leaf in leaves), default=0)
    sheet = _Sheet(occupancy, cell, 6.0 * longest + 8)
    row = max(min(_MAX_IN_ROW, len(occupancy.nodes_of_leaf[leaf])) for leaf in leaves or {-1})
    # A screen is wider than high.
    area = 1.6 * count * cell * (cell + 4) * (1 + sheet.label / (row * cell))
    wide = max(1200.0, (3.0 * area) ** 0.5)
    roots = occupancy.below.get(-1, [])
    boxes = [sheet.box(root, 0, wide) for root in roots]
    if stray := occupancy.nodes_of_leaf.get(-1):
        inside = sheet.leaf("", stray)
        boxes.append(sheet.frame("on no switch", occupancy.count(stray).text, inside, 0))
    tree = _flow(boxes, wide)
    legend = _legend(occupancy)
    width = max(tree.width, 2.0 * _COLUMN if legend[1] else _COLUMN) + 2 * _GAP
    tree.draw(_GAP, 64, 0.0)
    top = 64 + tree.height + 24
    height = top + legend[0] + _GAP
    all_nodes = occupancy.count(range(count))
    words = f"{count:,} nodes: {all_nodes.text}; {len(occupancy.jobs):,} jobs; "
    words += f"{len(occupancy.topology):,} switches in {occupancy.levels} "
    words += "levels" if occupancy.levels > 1 else "level"
    words += f", {len(roots)} fabrics" if len(roots) > 1 else ""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
            f'width="{width:g}" height="{height:g}" role="img" '
            f"aria-label={quoteattr(_clean(title))}>",
            f"<style>{_STYLE}</style>",
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            f'<text class="title" x="{_GAP:g}" y="28">{_text(title)}</text>',
            f'<text class="quiet" x="{_GAP:g}" y="48">{_text(words)}</text>',
            *sheet.out,
            f'<g transform="translate({_GAP:g} {top:g})">{legend[1]}</g>',
            "</svg>",
            "",
        ]
    )


def _legend(occupancy: TreeOccupancy) -> tuple[float, str]:
    """Height and text of the list of the largest jobs, in two columns."""
    jobs = occupancy.jobs[:_LEGEND]
    if not jobs:
        return 0.0, ""
    rows = -(-len(jobs) // 2)
    out = ['<text class="name" x="0" y="0">Jobs, the largest first</text>']
    for at, job in enumerate(jobs):
        how, x, y = occupancy.compactness[at], at // rows * _COLUMN, 12 + at % rows * 18
        text = f"{job.id} {_short(job.name, 16)} of {_short(job.user, 12)}"
        more = _spread(len(job.nodes), how) + ("" if job.running else ", starts now")
        out.append(
            f'<rect class="j" fill="{colour(at)}" x="{x}" y="{y}" width="12" height="12" rx="2"/>'
            f'<text x="{x + 18}" y="{y + 10}">{_text(text)}'
            f'<tspan class="quiet" dx="8">{_text(more)}</tspan></text>'
        )
    height = 12.0 + rows * 18
    if len(occupancy.jobs) > len(jobs):
        out.append(
            f'<text class="quiet" x="0" y="{height + 8:g}">and {len(occupancy.jobs) - len(jobs):,} '
            "smaller ones</text>"
        )
        height += 12
    return height, "".join(out)


def _spread(nodes: int, how: Compactness) -> str:
    if nodes == 1:
        return "1 node"
    switches = "1 leaf switch" if how.leaf_switches == 1 else f"{how.leaf_switches} leaf switches"
    apart = how.hops is not None and isinf(how.hops)
    far = ", across fabrics" if apart else f", {hops_text(how)} hops" if how.hops else ""
    return f"{nodes:,} nodes, {switches}{far}"


def _short(name: str, maximum: int) -> str:
    return name if len(name) <= maximum else name[: maximum - 1] + "…"


def _clean(text: str) -> str:
    """Removes characters that XML cannot represent."""
    return "".join(c if c == "\n" or c.isprintable() else "?" for c in text)


def _text(text: str) -> str:
    return escape(_clean(text))
