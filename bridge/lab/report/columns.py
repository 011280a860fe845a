# SPDX-License-Identifier: Apache-2.0
"""The columns of tables about runs, for terminal and page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan, nan

from bridge.extensions.power.columns import NAME
from bridge.extensions.power.measures import KWH_J, PowerMeasures
from bridge.lab.report.run import Run
from bridge.measures import Measures, RunTimeErrors, StartAccuracy
from bridge.units import format_duration


@dataclass(frozen=True)
class TableColumn:
    """One column of a table.

    Attributes:
        value: gets it from the measures; nan if it was not measured.
        better: 1 if larger is better, -1 if smaller, 0 if neither.
    """

    heading: str
    value: Callable[[Measures], float]
    write: Callable[[float], str]
    better: int = -1

    def best(self, runs: Sequence[Run]) -> float | None:
        """The best value among runs that differ; None if the column has no better side."""
        values = [self.value(run.measures) for run in runs]
        values = [value for value in values if not isnan(value)]
        if not self.better or not values or min(values) == max(values):
            return None
        return max(values) if self.better > 0 else min(values)

    def show(self, run: Run) -> str:
        """The formatted value."""
        value = self.value(run.measures)
        return "not measured" if isnan(value) else self.write(value)


def milliseconds(value_ms: float) -> str:
    """A formatted decision time: `2.31 ms`, `0.41 µs`."""
    return f"{value_ms:.3g} ms" if value_ms >= 0.1 else f"{value_ms * 1e3:.2g} µs"


_KWH_H = KWH_J * 3600


def _ratio(value: float) -> str:
    return f"{value:,.1f}"


def _starts(take: Callable[[StartAccuracy], float]) -> Callable[[Measures], float]:
    return lambda m: nan if m.starts is None else take(m.starts)


def _promised(take: Callable[[StartAccuracy], float]) -> Callable[[Measures], float]:
    """A measure that needs announced starts."""
    return lambda m: nan if m.starts is None or not m.starts.promised else take(m.starts)


def _run_times(take: Callable[[RunTimeErrors], float]) -> Callable[[Measures], float]:
    return lambda m: nan if m.run_times is None else take(m.run_times)


def _power(take: Callable[[PowerMeasures], float]) -> Callable[[Measures], float]:
    return lambda m: nan if NAME not in m.parts else take(m.parts[NAME])


def _outside(side: str, part: str, key: str) -> Callable[[Measures], float]:
    """A figure of the violations of one bound; nan if there is none, or it is not judged."""

    def take(power: PowerMeasures) -> float:
        found = getattr(power, side)
        amount = None if found is None else getattr(found, part)
        return nan if amount is None else float(getattr(amount, key))

    return _power(take)


def _thousands(value: float) -> str:
    return f"{value / 1000:,.1f}"


def _share(value: float) -> str:
    return f"{value:.1%}"


COLUMNS = (
    TableColumn("mean wait", lambda m: m.wait_s.mean, format_duration),
    TableColumn("90 % waited no longer than", lambda m: m.wait_s.p90, format_duration),
    TableColumn("mean bounded slowdown", lambda m: m.bounded_slowdown.mean, _ratio),
    TableColumn("mean slowdown", lambda m: m.slowdown.mean, _ratio),
    TableColumn("mean turnaround", lambda m: m.turnaround_s.mean, format_duration),
    TableColumn("utilisation", lambda m: m.utilization, _share, 1),
    TableColumn("makespan", lambda m: m.makespan_s, format_duration),
    TableColumn(
        "starts that had been announced", _starts(lambda a: a.promised), "{:,.0f}".format, 0
    ),
    TableColumn(
        "error of the first announcement, median",
        _promised(lambda a: a.first.absolute_s.p50),
        format_duration,
    ),
    TableColumn(
        "90 % of them within", _promised(lambda a: a.first.absolute_s.p90), format_duration
    ),
    TableColumn("never later than first announced", _promised(lambda a: a.first.kept), _share, 1),
    TableColumn(
        "error of the last announcement, median",
        _promised(lambda a: a.last.absolute_s.p50),
        format_duration,
    ),
    TableColumn("never later than last announced", _promised(lambda a: a.last.kept), _share, 1),
    TableColumn("changes of an announced start", _promised(lambda a: a.changes), "{:,.2f}".format),
    TableColumn("churn: later, per job", _promised(lambda a: a.later_s), format_duration),
    TableColumn("churn: earlier, per job", _promised(lambda a: a.earlier_s), format_duration),
    TableColumn(
        "error of predicted run times, mean", _run_times(lambda r: r.off_s.mean), format_duration
    ),
    TableColumn("run times underestimated", _run_times(lambda r: r.under), _share, 0),
    TableColumn("accuracy of run times", _run_times(lambda r: r.accuracy), _share, 1),
    TableColumn("energy, kWh", _power(lambda p: p.energy_kwh), "{:,.2f}".format),
    TableColumn(
        "energy-delay product, kWh h",
        _power(lambda p: p.energy_delay_js / _KWH_H),
        "{:,.2f}".format,
    ),
    TableColumn("mean power, W", _power(lambda p: p.mean_w), "{:,.0f}".format, 0),
    TableColumn("peak power, W", _power(lambda p: p.peak_w), "{:,.0f}".format),
    *(
        TableColumn(f"{where} the corridor{words}", _outside(side, part, key), write)
        for side, where in (("upper", "above"), ("lower", "below"))
        for words, part, key, write in (
            (": times", "all", "number", "{:,.0f}".format),
            (": in all", "all", "seconds", format_duration),
            (", behind the grace: times", "late", "number", "{:,.0f}".format),
            (", behind the grace: in all", "late", "seconds", format_duration),
            (", behind the grace, kW s", "late", "watt_seconds", _thousands),
            (", avoidable: in all", "avoidable", "seconds", format_duration),
        )
    ),
    TableColumn("decisions", lambda m: m.decisions, lambda value: f"{value:,.0f}", 0),
    TableColumn("time of a decision, mean", lambda m: m.decision_ms.mean, milliseconds, 0),
    TableColumn("99 % of them within", lambda m: m.decision_ms.p99, milliseconds, 0),
)


def columns_of(runs: Sequence[Run]) -> list[TableColumn]:
    """The columns for which any of the runs has a value."""
    return [c for c in COLUMNS if not all(isnan(c.value(run.measures)) for run in runs)]
