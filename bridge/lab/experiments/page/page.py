# SPDX-License-Identifier: Apache-2.0
"""The page of an experiment: verdict first, then distributions, who pays, classes, what was run.

One file without scripts: readable on a phone, in print, and without a network.
"""

import json
from collections import Counter
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from bridge.files import naming
from bridge.lab.experiments.page.busiest import busiest_stretch, gantt, key
from bridge.lab.experiments.page.charts import distribution, line_of
from bridge.lab.experiments.page.heat import heat_map
from bridge.lab.experiments.page.tables import (
    classes_part,
    fairness_part,
    measures_part,
    verdict_part,
)
from bridge.lab.experiments.statistics.compare import Findings
from bridge.lab.experiments.statistics.fairness import WORDS
from bridge.lab.experiments.statistics.reading import Bench, Contestant, Scenario, StoredResult
from bridge.lab.report.templates import page_of

_POOLED = 5
"""Most runs whose waits make up one line."""
_HEAT = ("wait_mean", "wait_p99", "bounded_slowdown")
_MAX_NAMED = 3


def write_page(path: Path, title: str, bench: Bench, findings: Findings, quantity: str) -> None:
    """Writes the page.

    Args:
        title: its heading, plain text.
        findings: the comparisons over them.
        quantity: name of the measure of the verdict.

    Raises:
        OSError: the file cannot be written.
        ResultError: the jobs of a run cannot be read.
    """
    runs = sum(len(seeds) for one in bench.cells.values() for seeds in one.values())
    lead = (
        f"{runs} simulations: {len(bench.contestants)} policies (with their predictors) in"
        f" {len(bench.cells)} scenarios. All are compared with {findings.baseline.name}, on the"
        " same jobs."
    )
    heats = dict.fromkeys((quantity, *_HEAT))
    page = page_of(
        "bridge.lab.experiments.page",
        title=title,
        lead=lead,
        baseline=findings.baseline.name,
        tolerance=WORDS,
        pooled=_POOLED,
        verdict=verdict_part(findings, quantity),
        heats=[heat_map(findings, name) for name in heats],
        distributions=_distributions(bench, findings),
        fairness=fairness_part(findings),
        classes=classes_part(findings),
        measures=measures_part(findings),
        busiest=_busiest(bench, findings, quantity),
        facts=_facts(bench),
        policies=_policies(bench),
    )
    with naming(path):
        path.write_text(page, encoding="utf-8")


def _distributions(bench: Bench, findings: Findings) -> list[tuple[str, str]]:
    """Name of each scenario, and its charts."""
    parts = []
    for scenario in dict.fromkeys(one.scenario for one in findings.faced):
        runs = bench.cells[scenario]
        names = [findings.baseline, *(one for one in runs if one != findings.baseline)]
        lines = []
        for contestant in names:
            waits = []
            for kept in list(runs.get(contestant, {}).values())[:_POOLED]:
                jobs = kept.jobs()
                waits.append(jobs.wait_s[findings.trim.judged(jobs.submit_s)])
            if pooled := [one for one in waits if len(one)]:
                lines.append(line_of(contestant.name, np.concatenate(pooled)))
        if lines:
            parts.append((scenario.name, distribution(lines)))
    return parts


def _busiest(bench: Bench, findings: Findings, quantity: str) -> str:
    """Baseline and the best contestant, in the scenario in which jobs wait longest."""
    table = findings.of(quantity)
    worst = max(table, key=lambda one: one.estimate.base)
    rivals = [one for one in table if one.scenario == worst.scenario]
    best = max(rivals, key=lambda one: one.quantity.better * one.estimate.other)
    faced = next(
        one
        for one in findings.faced
        if (one.scenario, one.contestant) == (best.scenario, best.contestant)
    )
    seed, runs = faced.seeds[0], bench.cells[best.scenario]
    base = runs[findings.baseline][seed].jobs()
    stretch = busiest_stretch(base)
    return (
        f'<p class="soft">{escape(best.scenario.name)}, seed {seed}: the time in which jobs waited'
        f" most under {escape(findings.baseline.name)}, under it and under"
        f" {escape(best.contestant.name)}. Height: CPUs; point at a job for its figures.</p>{key()}"
        + gantt(base, stretch, findings.baseline.name)
        + gantt(runs[best.contestant][seed].jobs(), stretch, best.contestant.name)
    )


def _all(bench: Bench) -> Iterable[tuple[Scenario, Contestant, StoredResult]]:
    for scenario, contestants in bench.cells.items():
        for contestant, seeds in contestants.items():
            for kept in seeds.values():
                yield scenario, contestant, kept


def _counted(values: Iterable[Any]) -> str:
    """Different values, the most frequent first; a few of them are named."""
    found = Counter(str(value) for value in values if value not in (None, ""))
    named = [f"{text} ({count} runs)" for text, count in found.most_common(_MAX_NAMED)]
    more = len(found) - len(named)
    return "; ".join(named) + (f"; and {more} others" if more > 0 else "") or "unknown"


def _facts(bench: Bench) -> dict[str, str]:
    kept = [one.result for _, _, one in _all(bench)]
    made = [one.provenance for one in kept]
    dates = sorted(str(one["date"]) for one in made if one.get("date"))
    machines = (
        ", ".join(str(value) for value in (machine.get("processor"), machine.get("cpus")) if value)
        + " CPUs"
        for machine in (one.get("machine") or {} for one in made)
        if machine
    )
    loads = [one["load_average"][0] for one in made if one.get("load_average")]
    traces = dict.fromkeys((one.cell.trace, one.cell.trace_sha256) for one in kept)
    return {
        "traces": "; ".join(f"{name}, SHA-256 {digest}" for name, digest in traces),
        "perturbations": "; ".join(
            dict.fromkeys(f"{s.perturbation} {s.parameters}" for s, _, _ in _all(bench))
        ),
        "seeds": ", ".join(str(seed) for seed in sorted({one.cell.seed for one in kept})),
        "simulated machines": _counted(one.machine.get("name") for one in kept),
        "version": _counted(one.cell.version for one in kept),
        "commit": _counted(one.cell.commit for one in kept),
        "engine": _counted(one.results.get("engine") or one.cell.engine for one in kept),
        "command": _counted(one.get("command") for one in made),
        "computed": f"{dates[0]} to {dates[-1]}" if dates else "unknown",
        "on": _counted(machines),
        "load": f"{min(loads):g} to {max(loads):g} (one minute)" if loads else "unknown",
        "CPU time": f"{sum(one.cpu_s for one in kept):,.0f} s in all",
    }


def _policies(bench: Bench) -> list[tuple[str, str]]:
    """Name and text of each policy."""
    texts = {contestant: kept.result.cell.policy_text for _, contestant, kept in _all(bench)}
    return [(contestant.name, _indented(text)) for contestant, text in sorted(texts.items())]


def _indented(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=1)
    except ValueError:
        return text
