# SPDX-License-Identifier: Apache-2.0
"""The results of the paper's experiment, as tables and a plot with the paper's figures.

The paper's means are those of its tables III and IV, which use the metric `code`. Its figure 6 is
only a plot: the means here are computed from the result files in its public code.
"""

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from window_lengths import PERIODS_S

PAPER_TABLE3 = {
    "sequential": (105023.5, None),
    "sa-500-published": (91813.2, 0.76),
    "sa-1000-published": (90809.7, 1.55),
    "nsa-500": (89588.7, 1.54),
}
PAPER_TABLE4 = {
    "scip": (83092.3, 18.96, None),
    "scip-limited": (82114.8, 8.17, 0.02),
    "nsa-500": (89588.7, 1.56, None),
}
PAPER_LENGTHS = {
    "fcfs": (34902.4, 165.4),
    "easy": (34892.5, 163.3),
    "10 s, as the public code": (31351.9, 185.6),
    "20 s, as the public code": (31255.5, 198.1),
    "30 s, as the public code": (31011.1, 211.7),
    "40 s, as the public code": (30845.6, 225.6),
    "50 s, as the public code": (30679.9, 244.7),
    "60 s, as the public code": (30598.5, 259.2),
}
SERIES = ("as the public code", "annealing", "neural", "compact")
COLOURS = ("#0072B2", "#D55E00", "#CC79A7", "#009E73")


def markdown(result: dict[str, Any]) -> str:
    """All tables, as Markdown."""
    parts: list[str] = []
    for metric, own in result.items():
        if "tables" in own:
            parts += [_table3(metric, own["tables"])]
            if own["tables"]["table4"]:
                parts += [_table4(metric, own["tables"])]
        if "lengths" in own:
            parts += [_lengths(metric, own["lengths"])]
    return "\n\n".join(parts)


def _table3(metric: str, tables: dict[str, Any]) -> str:
    mean, theirs = tables["table3"]["mean"], metric == "code"
    first, paper_first = mean["sequential"]["cost"], PAPER_TABLE3["sequential"][0]
    lines = [
        f"Table III, metric `{metric}`, {tables['windows']} windows, driven by {tables['driver']}:",
        "",
        "| placer | cost | to sequential | ms of CPU |"
        + (" paper: cost | to sequential | ms |" if theirs else ""),
        "|---|---|---|---|" + ("---|---|---|" if theirs else ""),
    ]
    for name, row in mean.items():
        cells = [
            name,
            f"{row['cost']:,.0f}",
            f"{row['cost'] / first:.4f}",
            f"{1000 * row['seconds']:.2f}",
        ]
        if theirs:
            cost, seconds = PAPER_TABLE3.get(name, (None, None))
            cells += [
                f"{cost:,.0f}" if cost else "–",
                f"{cost / paper_first:.3f}" if cost else "–",
                f"{1000 * seconds:,.0f}" if seconds else "–",
            ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _table4(metric: str, tables: dict[str, Any]) -> str:
    mean, theirs = tables["table4"]["mean"], metric == "code"
    best = mean["contiguous-exact"]["cost"]
    again = f"{tables['cap_s']:g} s" if tables["cap_s"] else "to the end"
    lines = [
        f"Table IV, metric `{metric}`, {tables['solved']} windows, SCIP's limit "
        f"{tables['limit_s']:g} s, and {again} where that proved nothing:",
        "",
        "| | cost | to the best | not placed | s |"
        + (" paper: cost | to the best | not placed | s |" if theirs else ""),
        "|---|---|---|---|---|" + ("---|---|---|---|" if theirs else ""),
    ]
    for name, row in mean.items():
        cells = [
            name,
            f"{row['cost']:,.0f}",
            f"{row['cost'] / best:.4f}",
            f"{row['left_out']:.3f}",
            f"{row['seconds']:.4f}",
        ]
        if theirs:
            cost, seconds, left_out = PAPER_TABLE4.get(name, (None, None, None))
            cells += [
                f"{cost:,.0f}" if cost else "–",
                f"{cost / PAPER_TABLE4['scip'][0]:.3f}" if cost else "–",
                f"{left_out:.2f}" if left_out is not None else "–",
                f"{seconds:.1f}" if seconds else "–",
            ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _lengths(metric: str, lengths: dict[str, Any]) -> str:
    theirs = metric == "code"
    lines = [
        f"Figure 6, metric `{metric}`, {len(lengths['epochs'])} epochs of {lengths['jobs']} jobs:",
        "",
        "| method | cost of a job | mean wait, s |"
        + (" public code: cost | wait, s |" if theirs else ""),
        "|---|---|---|" + ("---|---|" if theirs else ""),
    ]
    for name, row in lengths["mean"].items():
        line = f"| {name} | {row['cost']:,.0f} | {row['wait_s']:.0f} |"
        if theirs:
            known = PAPER_LENGTHS.get(name)
            line += f" {known[0]:,.0f} | {known[1]:.0f} |" if known else " – | – |"
        lines.append(line)
    return "\n".join(lines)


def plot(result: dict[str, Any], path: Path) -> None:
    """Cost and wait by the length of a period, for each metric."""
    known = [(metric, own["lengths"]["mean"]) for metric, own in result.items() if "lengths" in own]
    if not known:
        return
    figure, axes = plt.subplots(len(known), 2, figsize=(9, 3.4 * len(known)), squeeze=False)
    for (metric, methods), (costs, waits) in zip(known, axes, strict=True):
        for axis, key, label in (
            (costs, "cost", "mean hops cost of a job"),
            (waits, "wait_s", "mean wait, s"),
        ):
            for name, dash in (("fcfs", ":"), ("easy", "--"), ("easy, compact", "-.")):
                if name in methods:
                    axis.axhline(methods[name][key], color="#555555", linestyle=dash, label=name)
            for series, colour in zip(SERIES, COLOURS, strict=True):
                at = [s for s in PERIODS_S if f"{s} s, {series}" in methods]
                values = [methods[f"{s} s, {series}"][key] for s in at]
                if at:
                    axis.plot(at, values, marker="o", color=colour, label=f"windows, {series}")
            axis.set_xlabel("period, s")
            axis.set_ylabel(label)
            axis.set_title(f"metric {metric}", fontsize=9)
            axis.grid(alpha=0.3)
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="lower center", ncol=4, fontsize=8)
    figure.tight_layout(rect=(0, 0.12 / len(known), 1, 1))
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
