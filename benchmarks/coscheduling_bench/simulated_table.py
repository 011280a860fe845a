# SPDX-License-Identifier: Apache-2.0
"""The tables of coscheduling.py: the experiment of ASA_X, and logs of which a part consents.

Intervals of the experiment are those of its summary; of logs, Student's 95 % interval over seeds.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from policy_bench import coschedule as bench

from bridge.lab.experiments.statistics.student import quantile

Found = Mapping[str, Any]
_BLANK: Final = "-"


def lines(found: Found, table: str) -> list[str]:
    """A table of the documents, by its name in `TABLES`."""
    return TABLES[table](found)


def _experiment(found: Found) -> list[str]:
    return bench.lines(found["summary"])


def _workflows(found: Found) -> list[str]:
    names = list(found["summary"][0]["workflows"])
    rows = [f"| cores | policy | {' | '.join(names)} |", "|---:|---|" + "---:|" * len(names)]
    for entry in found["summary"]:
        cells = [f"{entry['workflows'][name]['mean']:+.1f} %" for name in names]
        rows.append(_row(entry["cores"], entry["policy"], *cells))
    return rows


def _curve(found: Found) -> list[str]:
    summary = found["summary"]
    sets = range(1, len(summary[0]["repeats"]) + 1)
    heads = [f"response {n}, h" for n in sets] + [f"slower {n}, %" for n in sets]
    rows = [f"| cores | policy | {' | '.join(heads)} |", "|---:|---|" + "---:|" * len(heads)]
    for entry in summary:
        cells = [_interval(each["response_h"], 2) for each in entry["repeats"]]
        cells += [_interval(each["slower_percent"], 1) for each in entry["repeats"]]
        rows.append(_row(entry["cores"], entry["policy"], *cells))
    return rows


def _harm(found: Found) -> list[str]:
    rows = [
        "| cores | policy | hosts of a run | slower: mean, % | 95 %, % | above 10 %, % "
        "| above for, s: mean | 95 %, s | beyond their limits, % | requeued of a run |",
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for entry in found["summary"]:
        runs = [run for run in found["runs"]
                if (run["cores"], run["policy"]) == (entry["cores"], entry["policy"])]  # fmt: skip
        if not any(run["hosts"] for run in runs):
            continue
        cells = [
            _interval(entry[key], digits)
            for key, digits in (
                ("host_mean_percent", 1), ("host_p95_percent", 1), ("above_bound_percent", 1),
                ("above_s_mean", 0), ("above_s_p95", 0),
                ("hosts_overrun_percent", 1),
            )
        ]  # fmt: skip
        hosts, requeued = (
            statistics.mean(run[key] for run in runs) for key in ("hosts", "requeued")
        )
        rows.append(
            _row(entry["cores"], entry["policy"], f"{hosts:.1f}", *cells, f"{requeued:.1f}")
        )
    return rows


def _pairs(found: Found) -> list[str]:
    """Slowdowns of hosts by the workflows of host and guest, over all sizes and seeds."""
    by: dict[tuple[str, str], dict[str, list[float]]] = {}
    for run in found["runs"]:
        for host, guest, percent in run["pairs"]:
            by.setdefault((host, guest), {}).setdefault(run["policy"], []).append(percent)
    names = list(found["summary"][0]["workflows"])
    policies = list(dict.fromkeys(run["policy"] for run in found["runs"] if run["pairs"]))
    rows = [f"| host | guest | {' | '.join(policies)} |", "|---|---|" + "---:|" * len(policies)]
    for host in names:
        for guest in names:
            if seen := by.get((host, guest)):
                rows.append(_row(host, guest, *(_spread(seen.get(each, ())) for each in policies)))
    return rows


def _spread(values: Sequence[float]) -> str:
    if not values:
        return _BLANK
    middle, high = np.percentile(values, [50, 95])
    return f"{middle:.1f} % ({high:.1f} %) of {len(values)}"


def traces(runs: Sequence[Found]) -> list[str]:
    """A row for each log, consent and policy: means over the seeds."""
    rows = [
        "| log | consent, % | policy | seeds | wait, s | response, s | bounded slowdown | CPU, % "
        "| guests | hosts slower: mean, % | 95 %, % | above 10 %, % | above for, s: mean | 95 %, s "
        "| overrun, % | hosts' by guests, % |",
        "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for (log, consent, policy), members in _groups(runs).items():
        cells = [
            _student([run[name] for run in members], digits, with_interval=name in _WITH_INTERVAL)
            if name in members[0]  # older files lack some
            else _BLANK
            for name, digits in (
                ("wait_s", 0), ("response_s", 0), ("bounded_slowdown", 1), ("cpu_percent", 1),
                ("guests", 0), ("host_mean_percent", 1), ("host_p95_percent", 1),
                ("above_bound_percent", 1), ("above_s_mean", 0), ("above_s_p95", 0),
                ("overrun_percent", 1), ("hosts_overrun_percent", 1),
            )
        ]  # fmt: skip
        rows.append(_row(log, consent, policy, len(members), *cells))
    return rows


_WITH_INTERVAL: Final = "wait_s", "guests", "above_bound_percent"


def _gains(found: Found) -> list[str]:
    """What the site gains: differences to `easy` of the same seed, percent."""
    groups = _groups(found["runs"])
    keys = ("wait_s", "response_s", "bounded_slowdown", "cpu_percent")
    rows = [
        "| log | consent, % | policy | seeds | wait, % | response, % | bounded slowdown, % "
        "| CPU use, % |",
        "|---|---:|---|---:|---:|---:|---:|---:|",
    ]
    for (log, consent, policy), members in groups.items():
        alone = {run.get("seed", 0): run for run in groups.get((log, consent, "easy"), ())}
        seeds = [run.get("seed", 0) for run in members]
        both = [(run, alone[s]) for run, s in zip(members, seeds, strict=True) if s in alone]
        if policy == "easy" or not both:
            continue
        cells = [
            _student([100 * (run[key] / than[key] - 1) for run, than in both], 1, signed=True)
            for key in keys
        ]
        rows.append(_row(log, consent, policy, len(both), *cells))
    return rows


def _groups(runs: Sequence[Found]) -> dict[tuple[str, int, str], list[Found]]:
    groups: dict[tuple[str, int, str], list[Found]] = {}
    for run in runs:
        key = run["log"], run["consent_percent"], Path(run["policy"]).stem
        groups.setdefault(key, []).append(run)
    return groups


def _student(
    values: Sequence[float], digits: int, *, with_interval: bool = True, signed: bool = False
) -> str:
    form = f"{'+' if signed else ''},.{digits}f"
    mean = statistics.mean(values)
    if not with_interval or len(values) < 2 or min(values) == max(values):
        return f"{mean:{form}}"
    half = quantile(0.975, len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5
    return f"{mean:{form}} [{mean - half:{form}}, {mean + half:{form}}]"


def _interval(value: Found, digits: int) -> str:
    low, high = value["interval"]
    if low == high:
        return f"{value['mean']:,.{digits}f}"
    return f"{value['mean']:,.{digits}f} [{low:,.{digits}f}, {high:,.{digits}f}]"


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _traces(found: Found) -> list[str]:
    return traces(found["runs"])


TABLES: Final[Mapping[str, Callable[[Found], list[str]]]] = {
    "experiment": _experiment, "workflows": _workflows, "curve": _curve, "harm": _harm,
    "pairs": _pairs, "traces": _traces, "gains": _gains,
}  # fmt: skip
