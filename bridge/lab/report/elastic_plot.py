# SPDX-License-Identifier: Apache-2.0
"""Measures of policies for malleable jobs over the share of such jobs, with intervals."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

from bridge.lab.report.line_styles import DASHES, LINE_COLOURS

_PANELS = (
    ("makespan_s", "makespan, s", 1.0),
    ("utilization", "utilisation, %", 100.0),
    ("wait_s", "mean wait, s", 1.0),
    ("response_s", "mean response, s", 1.0),
)


def plot_elastic(path: Path, summary: Sequence[Mapping[str, Any]]) -> None:
    """Draws four panels: makespan, utilisation, mean wait, mean response.

    Args:
        path: .svg, .png or .pdf.
        summary: entries of `policy_bench.elastic.summary`, of one scenario.
    """
    policies = list(dict.fromkeys(entry["policy"] for entry in summary))
    with mpl.rc_context({"svg.hashsalt": "elastic", "svg.fonttype": "none"}):
        figure, panels = plt.subplots(2, 2, figsize=(10, 7), layout="constrained", sharex=True)
        for axes, (key, title, scale) in zip(panels.flat, _PANELS, strict=True):
            for at, policy in enumerate(policies):
                own = sorted(
                    (entry for entry in summary if entry["policy"] == policy),
                    key=lambda entry: float(entry["share"]),
                )
                shares = [entry["share"] for entry in own]
                low, high = ([scale * entry[key]["interval"][k] for entry in own] for k in (0, 1))
                colour = LINE_COLOURS[at % len(LINE_COLOURS)]
                dash = DASHES[at % len(DASHES)]
                mean = [scale * entry[key]["mean"] for entry in own]
                axes.plot(shares, mean, color=colour, dashes=dash, label=policy, marker="o", ms=3)
                axes.fill_between(shares, low, high, color=colour, alpha=0.15, linewidth=0)
            axes.set_title(title)
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(visible=True, color="#dddddd", linewidth=0.6)
        for axes in panels[1]:
            axes.set_xlabel("malleable jobs, %")
        panels[0][0].legend()
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        plt.close(figure)
