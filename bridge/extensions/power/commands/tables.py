# SPDX-License-Identifier: Apache-2.0
"""Prints bounds and estimates of system power: a plot in text, and tables."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from rich.console import Console
from rich.table import Table

from bridge.cli.operators.asking import shown, when
from bridge.extensions.power.corridor.sentences import bounds_text, span_text
from bridge.extensions.power.corridor.watts_text import shown_watts
from bridge.extensions.power.rules import NO_UPPER_W
from bridge.rpc.pb import operator_pb2 as pb
from bridge.units import NEVER, format_duration, format_instant

WIDTH, HEIGHT = 72, 9
_NO_BOUND = -1
_SHOWN_STEPS = 40

_KINDS = {
    pb.CORRIDOR_EFFECT_KIND_SHRUNK: "shrunk",
    pb.CORRIDOR_EFFECT_KIND_GROWN: "grown",
    pb.CORRIDOR_EFFECT_KIND_HELD: "held",
    pb.CORRIDOR_EFFECT_KIND_DELAYED: "delayed",
    pb.CORRIDOR_EFFECT_KIND_EARLIER: "earlier",
    pb.CORRIDOR_EFFECT_KIND_PLANNED: "planned",
}


def print_power(screen: Console, reply: pb.PowerReply) -> None:
    """All of `power show`."""
    for problem in reply.problems:
        screen.print(f"! {shown(problem)}")
    if not reply.bounded:
        screen.print("power is not bounded: planning.power is not configured")
        return
    now = reply.steps[0]
    parts = [("base", reply.base_w), ("idle nodes", reply.idle_w), ("jobs", reply.jobs_w)]
    made_of = ", ".join(f"{name} {_text(amount)}" for name, amount in parts)
    lines = [
        ("bounds", f"{_bounds(now)}{_sources(now)}"),
        ("system", f"{_text(reply.estimate_w)} by estimate ({made_of}){_judged(reply)}"),
        ("at least", f"{_text(reply.lower_estimate_w)} by the lower estimate"),
    ]
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    for line in lines:
        table.add_row(*line)
    screen.print(table)
    screen.print()
    for text in plot(reply):
        screen.print(text)
    screen.print()
    screen.print(_steps(reply.steps))
    if reply.jobs:
        screen.print()
        screen.print(_jobs(reply))
    standing = [entry for entry in reply.entries if entry.state in ("in force", "later")]
    if standing:
        screen.print()
        screen.print(_entries(standing))


def print_entries(screen: Console, reply: pb.PowerReply) -> None:
    """All of `power corridor --list`."""
    for problem in reply.problems:
        screen.print(f"! {shown(problem)}")
    if reply.steps:
        screen.print(f"now: {_bounds(reply.steps[0])}{_sources(reply.steps[0])}")
    if not reply.entries:
        screen.print("nothing was entered; the calendar counts (planning.power.corridor)")
        return
    screen.print(_entries(reply.entries))


def print_change(screen: Console, request: pb.CorridorRequest, reply: pb.CorridorReply) -> None:
    """The result of `power corridor`, or of its dry run."""
    for warning in reply.warnings:
        screen.print(f"! {shown(warning)}")
    entry, would = reply.entry, "would be" if request.dry_run else "is"
    what = "removed" if request.HasField("undo") else "in force again"
    if not (request.HasField("undo") or request.HasField("restore")):
        what = "entered"
    name = "the entry" if request.dry_run and what == "entered" else f"entry {entry.id}"
    screen.print(f"{name} {would} {what}: {_entry_bounds(entry)}, {_entry_span(entry)}")
    if reply.steps:
        then = "the bounds would then be" if request.dry_run else "the bounds are now"
        screen.print(f"{then} {_bounds(reply.steps[0])}{_sources(reply.steps[0])}")
    if request.dry_run:
        _print_effects(screen, reply)
    elif what == "removed":
        screen.print(f"undo this with 'schedbridge power corridor --restore {entry.id}'")
    else:
        screen.print(f"undo this with 'schedbridge power corridor --undo {entry.id}'")


def _print_effects(screen: Console, reply: pb.CorridorReply) -> None:
    if not reply.effects_total:
        screen.print("no job would start at another time or have other nodes")
        return
    table = Table(title="What would change", title_justify="left", box=None, pad_edge=False)
    for title in ("JOB", "USER", "WHAT", "NOW", "THEN", "BY", "WHY"):
        table.add_column(title)
    for effect in reply.effects:
        job = effect.job
        table.add_row(
            shown(job.job_id), shown(job.user), _KINDS.get(effect.kind, "?"),
            *_before_and_after(effect), shown(effect.reason),
        )  # fmt: skip
    screen.print(table)
    if (more := reply.effects_total - len(reply.effects)) > 0:
        screen.print(f"and {more} more jobs")


def _before_and_after(effect: pb.CorridorEffect) -> tuple[str, str, str]:
    job = effect.job
    if effect.kind in (pb.CORRIDOR_EFFECT_KIND_SHRUNK, pb.CORRIDOR_EFFECT_KIND_GROWN):
        change = effect.node_count - job.node_count
        return f"{job.node_count} nodes", f"{effect.node_count} nodes", f"{change:+d} nodes"
    before, after = when(job.start_s) or "no start", when(effect.start_s) or "no start"
    if not (job.start_s and effect.start_s):
        return before, after, ""
    shift = effect.start_s - job.start_s
    return before, after, f"{'+' if shift > 0 else '-'}{format_duration(abs(shift))}"


def plot(reply: pb.PowerReply) -> Iterable[str]:
    """A small plot: `#` planned power, `=` the upper bound, `-` the lower one.

    Each column is an equal share of the span. It shows the maximum power, the least upper bound and
    the largest lower bound within it.
    """
    begin, end = reply.steps[0].from_s, reply.steps[-1].until_s
    edges = [begin + (end - begin) * at // WIDTH for at in range(WIDTH + 1)]
    columns = list(pairwise(edges))
    drawn = [_maximum(reply.planned, column) for column in columns]
    upper = [_min_upper(reply.steps, column) for column in columns]
    lower = [
        max((step.lower_w for step in reply.steps if _meets(step, column)), default=0)
        for column in columns
    ]
    bounds = [amount for amount in upper if amount is not None]
    top = max([*drawn, *bounds, *lower, 1])
    for row in range(HEIGHT, 0, -1):
        cells = "".join(
            _cell(row, top, drawn[at], upper[at], lower[at]) for at in range(len(columns))
        )
        label = _text(_round(top * row / HEIGHT)) if row in (HEIGHT, 1, (HEIGHT + 1) // 2) else ""
        yield f"{label:>11} |{cells}"
    marks = f"{_clock(begin):<{WIDTH // 2}}{_clock((begin + end) // 2)}"
    yield f"{'':>11} +{'-' * WIDTH}"
    yield f"{'':>13}{marks:<{WIDTH - 5}}{_clock(end)}"
    yield f"{'':>13}# planned   = upper bound   - lower bound"


def _cell(row: int, top: int, drawn: int, upper: int | None, lower: int) -> str:
    def level(amount: int) -> int:
        return -(-amount * HEIGHT // top)

    if upper is not None and level(upper) == row:
        return "="
    if lower and level(lower) == row:
        return "-"
    return "#" if level(drawn) >= row else " "


def _maximum(planned: Iterable[pb.PowerStep], span: tuple[int, int]) -> int:
    return max((step.estimate_w for step in planned if _meets(step, span)), default=0)


def _min_upper(found: Iterable[pb.CorridorStep], span: tuple[int, int]) -> int | None:
    return min(
        (step.upper_w for step in found if step.upper_w != _NO_BOUND and _meets(step, span)),
        default=None,
    )


def _meets(step: pb.PowerStep | pb.CorridorStep, span: tuple[int, int]) -> bool:
    return step.from_s < max(span[1], span[0] + 1) and step.until_s > span[0]


def _round(amount: float) -> int:
    """Three digits are enough for a label."""
    size = 10 ** max(len(str(int(amount))) - 3, 0)
    return int(round(amount / size) * size)


def _clock(at_s: int) -> str:
    return format_instant(at_s, "%H:%M")


def _steps(found: Sequence[pb.CorridorStep]) -> Table:
    table = Table(title="Bounds", title_justify="left", box=None, pad_edge=False)
    for title in ("FROM", "UNTIL", "LOWER", "UPPER", "BY"):
        table.add_column(title, justify="right" if title in ("LOWER", "UPPER") else "left")
    for step in found[:_SHOWN_STEPS]:
        table.add_row(
            when(step.from_s), when(step.until_s), _lower(step.lower_w), _upper(step.upper_w),
            _by(step),
        )  # fmt: skip
    if (more := len(found) - _SHOWN_STEPS) > 0:
        table.add_row(f"and {more} more")
    return table


def _jobs(reply: pb.PowerReply) -> Table:
    title = f"Who draws what: {len(reply.jobs)} of {reply.jobs_running} running jobs"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in ("JOB", "USER", "NODES", "POWER", "PER NODE", "KNOWN"):
        right = name in ("NODES", "POWER", "PER NODE")
        table.add_column(name, justify="right" if right else "left")
    for each in reply.jobs:
        nodes = max(each.job.node_count, 1)
        table.add_row(
            shown(each.job.job_id), shown(each.job.user), str(each.job.node_count),
            _text(each.estimate_w), _text(_round(each.estimate_w / nodes)), shown(each.source),
        )  # fmt: skip
    return table


def _entries(found: Iterable[pb.CorridorEntry]) -> Table:
    table = Table(title="Entries", title_justify="left", box=None, pad_edge=False)
    for title in ("ID", "STATE", "BOUNDS", "WHEN", "BY", "REASON"):
        table.add_column(title, overflow="fold")
    for entry in found:
        by = f"{shown(entry.author)}, {shown(entry.origin)}, {when(entry.entered_s)}"
        if entry.removed_s:
            by += f"; removed by {shown(entry.removed_by)}, {when(entry.removed_s)}"
        table.add_row(
            str(entry.id), entry.state, _entry_bounds(entry), _entry_span(entry), by,
            shown(entry.reason),
        )  # fmt: skip
    return table


def _entry_bounds(entry: pb.CorridorEntry) -> str:
    lower = entry.lower_w if entry.HasField("lower_w") else None
    upper = entry.upper_w if entry.HasField("upper_w") else None
    return bounds_text(lower, NO_UPPER_W if upper == _NO_BOUND else upper)


def _entry_span(entry: pb.CorridorEntry) -> str:
    return span_text(entry.from_s, entry.until_s or NEVER)


def _bounds(step: pb.CorridorStep) -> str:
    return f"{_lower(step.lower_w)} to {_upper(step.upper_w)}"


def _sources(step: pb.CorridorStep) -> str:
    return f" ({_by(step)})" if _by(step) else ""


def _by(step: pb.CorridorStep) -> str:
    if step.lower_by == step.upper_by:
        return shown(step.lower_by)
    parts = (("lower", step.lower_by), ("upper", step.upper_by))
    return ", ".join(f"{name}: {shown(by)}" for name, by in parts if by)


def _judged(reply: pb.PowerReply) -> str:
    now, estimate = reply.steps[0], reply.estimate_w
    if now.upper_w != _NO_BOUND and estimate > now.upper_w:
        return f": {_text(estimate - now.upper_w)} above the upper bound"
    if estimate < now.lower_w:
        return f": {_text(now.lower_w - estimate)} below the lower bound"
    return ""


def _text(amount_w: int) -> str:
    return shown_watts(amount_w)


def _lower(amount_w: int) -> str:
    return _text(amount_w) if amount_w else "no lower bound"


def _upper(amount_w: int) -> str:
    return "no upper bound" if amount_w == _NO_BOUND else _text(amount_w)
