# SPDX-License-Identifier: Apache-2.0
"""The paper's Figures 3a and 3b beside ours, drawn from a file of `coscheduling.py`.

Above, the makespan of a set by policy and cores. The values of Figure 3a are in no table of the
paper; its text gives one, a makespan under ASA_X that is 12 % below that of Slurm on 64 cores.
Below, the mean run time of each workflow; those of Figure 3b are also in its Table 2.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from bridge.lab.report.line_styles import LINE_COLOURS

PAPER_RUNTIMES_H: Final[Mapping[str, Mapping[int, Mapping[str, float]]]] = {
    "easy": {
        64: {"montage": 0.35, "blast": 0.71, "readings": 0.69, "synthetic": 0.49},
        128: {"montage": 0.32, "blast": 0.72, "readings": 0.70, "synthetic": 0.50},
        256: {"montage": 0.29, "blast": 0.70, "readings": 0.72, "synthetic": 0.48},
    },
    "static-half": {
        64: {"montage": 0.38, "blast": 0.82, "readings": 0.77, "synthetic": 0.57},
        128: {"montage": 0.35, "blast": 0.79, "readings": 0.76, "synthetic": 0.57},
        256: {"montage": 0.32, "blast": 0.80, "readings": 0.76, "synthetic": 0.53},
    },
    "asax": {
        64: {"montage": 0.35, "blast": 0.75, "readings": 0.73, "synthetic": 0.56},
        128: {"montage": 0.33, "blast": 0.73, "readings": 0.72, "synthetic": 0.55},
        256: {"montage": 0.30, "blast": 0.76, "readings": 0.73, "synthetic": 0.52},
    },
}
"""Table 2, h; `easy` stands for its Slurm, `readings` for its Statistics."""
PAPER_LESS: Final = 0.12
"""By how much the makespan under ASA_X is below that of Slurm on `PAPER_CORES`."""
PAPER_CORES: Final = 64
_WIDTH: Final = 0.8
_DIAMOND: Final[dict[str, Any]] = {
    "marker": "D", "markersize": 5, "color": "#ffffff", "markeredgecolor": "#000000",
    "linestyle": "",
}  # fmt: skip


def plot(found: Mapping[str, Any], path: Path) -> None:
    """Draws both figures; whiskers are 95 % intervals over the seeds, diamonds the paper's."""
    summary = found["summary"]
    policies = list(dict.fromkeys(entry["policy"] for entry in summary))
    cores = sorted({entry["cores"] for entry in summary})
    groups = [[entry for entry in summary if entry["cores"] == size] for size in cores]
    with mpl.rc_context({"svg.hashsalt": "coscheduling", "svg.fonttype": "none"}):
        figure = plt.figure(figsize=(10, 7), layout="constrained")
        grid = figure.add_gridspec(2, len(cores))
        above = figure.add_subplot(grid[0, :])
        _bars(above, policies, [{e["policy"]: e["makespan_h"] for e in group} for group in groups])
        if PAPER_CORES in cores and {"easy", "asax"} <= set(policies):
            _papers_makespan(above, policies, groups, cores.index(PAPER_CORES))
        above.set_xticks(range(len(cores)), [f"{size} cores" for size in cores])
        above.set_ylabel("makespan of a set, h (3a)")
        for at, (size, group) in enumerate(zip(cores, groups, strict=True)):
            axes = figure.add_subplot(grid[1, at])
            _runtimes(axes, policies, group, size)
            axes.set_ylabel("" if at else "run time of a workflow, h (3b)")
        handles, labels = above.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=5, frameon=False)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def _papers_makespan(
    axes: Axes, policies: Sequence[str], groups: Sequence[Sequence[Mapping[str, Any]]], at: int
) -> None:
    alone_h = next(each["makespan_h"]["mean"] for each in groups[at] if each["policy"] == "easy")
    place = at + _offset(policies.index("asax"), len(policies))
    axes.plot(place, alone_h * (1 - PAPER_LESS), label="the paper's", **_DIAMOND)


def _runtimes(
    axes: Axes, policies: Sequence[str], group: Sequence[Mapping[str, Any]], cores: int
) -> None:
    names = list(group[0]["runtimes_h"])
    _bars(axes, policies, [{e["policy"]: e["runtimes_h"][name] for e in group} for name in names])
    for number, policy in enumerate(policies):
        theirs = PAPER_RUNTIMES_H.get(policy, {}).get(cores, {})
        for at, name in enumerate(names):
            if name in theirs:
                axes.plot(at + _offset(number, len(policies)), theirs[name], **_DIAMOND)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylim(top=1.3)
    axes.set_title(f"{cores} cores")


def _bars(
    axes: Axes, policies: Sequence[str], groups: Sequence[Mapping[str, Mapping[str, Any]]]
) -> None:
    """A group of bars, one for each policy, with the interval of each."""
    for number, policy in enumerate(policies):
        places = [at + _offset(number, len(policies)) for at in range(len(groups))]
        means = [group[policy]["mean"] for group in groups]
        axes.bar(places, means, _WIDTH / len(policies), color=LINE_COLOURS[number], label=policy)
        for place, group in zip(places, groups, strict=True):
            axes.plot([place, place], group[policy]["interval"], color="#000000", linewidth=1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def _offset(number: int, of: int) -> float:
    return _WIDTH * ((number + 0.5) / of - 0.5)
