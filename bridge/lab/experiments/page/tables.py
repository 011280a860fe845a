# SPDX-License-Identifier: Apache-2.0
"""The tables of the page: verdicts with their intervals, who pays, classes, all measures."""

from collections.abc import Sequence
from html import escape
from math import isnan

from bridge.lab.experiments.page.charts import interval_bar, reach
from bridge.lab.experiments.statistics.bootstrap import FEWEST_BLOCKS, FEWEST_RUNS
from bridge.lab.experiments.statistics.compare import ComparisonRow, Faced, Findings
from bridge.lab.experiments.statistics.quantities import LONGEST
from bridge.lab.experiments.statistics.reading import Scenario
from bridge.lab.experiments.statistics.verdict import Finding, amount, interval, percent, signed

_MARK = {Finding.BETTER: "better", Finding.WORSE: "worse"}
_TILES = 6
_KINDS = (("size", "size"), ("length", "length"), ("user", "jobs of the user"))


def verdict_part(findings: Findings, quantity: str) -> str:
    """The first screen: tiles for a few comparisons, and all of them with their intervals."""
    table = findings.of(quantity)
    tiles = "".join(map(_tile, table)) if len(table) <= _TILES else ""
    shown = f'<div class="tiles">{tiles}</div>' if tiles else ""
    scale = reach([one.estimate for one in table])
    rows = "".join(
        f'<tr><td class="words">{escape(one.contestant.name)}<span class="of">'
        f"{escape(one.scenario.name)}</span></td>"
        f"<td>{_from_to(one)}</td>"
        f'<td class="bar">{interval_bar(one.estimate, _kind(one), scale)}</td>'
        f'<td class="words {_kind(one)}">{escape(one.verdict.words)}</td></tr>'
        for one in table
    )
    title = table[0].quantity.title
    return (
        f'{shown}<h2>Verdict: {escape(title)}</h2><div class="wide"><table><tr><th></th>'
        f"<th>{escape(findings.baseline.name)} → policy</th>"
        f"<th>−{percent(scale, 0)} … +{percent(scale, 0)}</th>"
        f'<th class="words">verdict</th></tr>{rows}</table></div>{explained(findings, quantity)}'
    )


def explained(findings: Findings, quantity: str) -> str:
    """What the intervals of the first table cover, in words."""
    lines = dict.fromkeys(map(covers, findings.faced))
    family = max((one.verdict.family for one in findings.of(quantity)), default=0)
    items = [f"{line}." for line in lines]
    items.append(f"Judged: {findings.trim.words}.")
    if family > 1:
        items.append(
            f"Holm's correction for the {family} comparisons of this table: a difference counts as"
            " shown if it remains at 5 %."
        )
    items += [f"{note[0].upper()}{note[1:]}." for note in findings.notes]
    return f'<ul class="notes soft">{"".join(f"<li>{escape(item)}</li>" for item in items)}</ul>'


def covers(one: Faced) -> str:
    """The variation that the intervals of a contestant in a scenario cover."""
    place = one.scenario.name
    if one.over == "runs":
        return (
            f"{place}: intervals (95 %) over {one.units} runs: they cover what seeds and the"
            " perturbation change, for these jobs"
        )
    if one.over.startswith("runs and "):
        blocks = one.over.removeprefix("runs and ")
        return (
            f"{place}: intervals (95 %) over {len(one.seeds)} runs and the {one.units} {blocks} of"
            f" the trace: they cover seeds and the variation between its {blocks} (longest wait,"
            " utilisation, makespan: seeds alone)"
        )
    if one.over:
        return (
            f"{place}: intervals (95 %) over the {one.units} {one.over} of the trace: they cover"
            f" the variation between its {one.over}; runs that differ: {one.distinct}"
        )
    return (
        f"{place}: no intervals: they need {FEWEST_RUNS} runs, not all alike (here"
        f" {len(one.seeds)}, {one.distinct} of them different), or a trace of {FEWEST_BLOCKS} weeks"
        f" or {FEWEST_BLOCKS} users"
    )


def _kind(one: ComparisonRow) -> str:
    return _MARK.get(one.verdict.outcome, "open")


def _from_to(one: ComparisonRow) -> str:
    base, other = (
        escape(amount(one.quantity, value)) for value in (one.estimate.base, one.estimate.other)
    )
    return f'<span class="one">{base} →</span> <span class="one">{other}</span>'


def _tile(one: ComparisonRow) -> str:
    kind = {"better": "gain", "worse": "cost"}.get(_kind(one), "same")
    return (
        f'<div class="tile {kind}"><span>{escape(one.contestant.name)}, {escape(one.scenario.name)}'
        f"</span><b>{escape(amount(one.quantity, one.estimate.other))}</b>"
        f"<em>{escape(one.verdict.words)}</em>"
        f"<span>baseline: {escape(amount(one.quantity, one.estimate.base))}</span></div>"
    )


def fairness_part(findings: Findings) -> str:
    """Who pays: longest wait, jobs and users worse off."""
    longest = {(one.scenario, one.contestant): one for one in findings.of(LONGEST.name)}
    rows = []
    for one in findings.faced:
        wait, harm = longest[one.scenario, one.contestant], one.harm
        ends = (
            ""
            if isnan(harm.low)
            else f' <span class="of">({percent(harm.low)} to {percent(harm.high)})'
        )
        rows.append(
            f'<tr><td class="words">{escape(one.contestant.name)}<span class="of">'
            f"{escape(one.scenario.name)}</span></td>"
            f'<td>{_from_to(wait)}<span class="of {_kind(wait)}">'
            f"{escape(signed(wait.quantity, wait.estimate))}</span></td>"
            f"<td>{percent(harm.jobs_worse)}{ends}{'</span>' if ends else ''}</td>"
            f"<td>{percent(harm.jobs_better)}</td><td>{percent(harm.users_worse, 0)}</td>"
            f"<td>{percent(harm.users_better, 0)}</td><td>{harm.worst_user:,.1f} times</td></tr>"
        )
    return (
        "<table><tr><th></th><th>longest wait</th><th>jobs worse off</th><th>jobs better off</th>"
        "<th>users worse off</th><th>users better off</th><th>slowdown of the user worst off</th>"
        f"</tr>{''.join(rows)}</table>"
    )


def classes_part(findings: Findings) -> str:
    """For each scenario a table of classes and contestants, folded unless it is the only one."""
    scenarios = list(dict.fromkeys(one.scenario for one in findings.faced))
    opened = " open" if len(scenarios) == 1 else ""
    return "".join(
        f"<details{opened}><summary>{escape(scenario.name)}</summary>"
        f'<div class="wide">{_classes(findings, scenario)}</div></details>'
        for scenario in scenarios
    )


def _classes(findings: Findings, scenario: Scenario) -> str:
    contestants = [one.contestant for one in findings.faced if one.scenario == scenario]
    head = "".join(f"<th>{escape(one.name)}</th>" for one in contestants)
    found = {
        (one.job_class, one.quantity.name, one.contestant): one
        for one in findings.comparisons
        if one.scenario == scenario
    }
    rows = []
    for kind, title in _KINDS:
        classes = {key[0]: one.jobs for key, one in found.items() if key[0].kind == kind}
        if classes:
            rows.append(f'<tr><th colspan="{len(contestants) + 1}">by {title}</th></tr>')
        for job_class, jobs in classes.items():
            cells = "".join(
                _class_cell([found.get((job_class, name, c)) for name in _SHOWN])
                for c in contestants
            )
            rows.append(
                f'<tr><td class="words">{escape(job_class.name)}<span class="of">{jobs:,} jobs'
                f"</span></td>{cells}</tr>"
            )
    return f"<table><tr><th></th>{head}</tr>{''.join(rows)}</table>"


_SHOWN = ("wait_mean", "wait_p95", "wait_p99")


def _class_cell(three: Sequence[ComparisonRow | None]) -> str:
    mean, p95, p99 = three
    if mean is None or p95 is None or p99 is None:
        return "<td></td>"
    tails = "; ".join(
        f"{name} {escape(amount(one.quantity, one.estimate.other))}"
        f" ({escape(signed(one.quantity, one.estimate))})"
        for name, one in (("95 %", p95), ("99 %", p99))
    )
    ends = f" ({interval(mean.quantity, mean.estimate)})" if mean.estimate.has_interval else ""
    return (
        f'<td title="{escape(mean.verdict.words)}"><span class="{_kind(mean)}">'
        f"{escape(signed(mean.quantity, mean.estimate))}</span>{escape(ends)}"
        f'<span class="of">{tails}</span></td>'
    )


def measures_part(findings: Findings) -> str:
    """For each scenario a table of measures and contestants."""
    parts = []
    scenarios = list(dict.fromkeys(one.scenario for one in findings.faced))
    for scenario in scenarios:
        inside = [
            one
            for one in findings.comparisons
            if one.scenario == scenario and one.job_class.kind == "all"
        ]
        contestants = list(dict.fromkeys(one.contestant for one in inside))
        head = "".join(f"<th>{escape(one.name)}</th>" for one in contestants)
        rows = ""
        for quantity in dict.fromkeys(one.quantity for one in inside):
            of = {one.contestant: one for one in inside if one.quantity == quantity}
            first = next(iter(of.values()))
            cells = "".join(_measure_cell(of.get(one)) for one in contestants)
            base = escape(amount(quantity, first.estimate.base))
            rows += (
                f'<tr><td class="words">{escape(quantity.title)}</td><td>{base}</td>{cells}</tr>'
            )
        opened = " open" if len(scenarios) == 1 else ""
        parts.append(
            f"<details{opened}><summary>{escape(scenario.name)}</summary>"
            f'<div class="wide"><table><tr><th></th><th>{escape(findings.baseline.name)}</th>{head}'
            f"</tr>{rows}</table></div></details>"
        )
    return "".join(parts)


def _measure_cell(one: ComparisonRow | None) -> str:
    if one is None:
        return "<td></td>"
    ends = interval(one.quantity, one.estimate) if one.estimate.has_interval else "no interval"
    value = escape(amount(one.quantity, one.estimate.other))
    return (
        f'<td title="{escape(one.verdict.words)}">{value}'
        f'<span class="of"><span class="{_kind(one)}">{escape(signed(one.quantity, one.estimate))}'
        f"</span> ({escape(ends)})</span></td>"
    )
