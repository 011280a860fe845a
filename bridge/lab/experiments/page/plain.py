# SPDX-License-Identifier: Apache-2.0
"""Findings as JSON values; unknown numbers are null."""

from dataclasses import asdict
from math import isfinite
from typing import Any

from bridge.lab.experiments.statistics.bootstrap import LEVEL
from bridge.lab.experiments.statistics.compare import ComparisonRow, Faced, Findings
from bridge.lab.experiments.statistics.reading import Contestant, Scenario


def plain(findings: Findings) -> dict[str, Any]:
    """Everything that was found."""
    return {
        "baseline": _contestant(findings.baseline),
        "trim": asdict(findings.trim),
        "level": LEVEL,
        "notes": list(findings.notes),
        "comparisons": [_comparison(one) for one in findings.comparisons],
        "fairness": [_faced(one) for one in findings.faced],
    }


def _contestant(one: Contestant) -> dict[str, str]:
    return {"policy": one.policy, "predictor": one.predictor}


def _scenario(one: Scenario) -> dict[str, str]:
    return {
        "trace": one.trace,
        "perturbation": one.perturbation,
        "parameters": one.parameters,
        "mark": one.mark,
    }


def _number(value: float) -> float | None:
    return value if isfinite(value) else None


def _comparison(one: ComparisonRow) -> dict[str, Any]:
    estimate, verdict = one.estimate, one.verdict
    return {
        **_scenario(one.scenario),
        **_contestant(one.contestant),
        "class_kind": one.job_class.kind,
        "class": one.job_class.name,
        "jobs": one.jobs,
        "measure": one.quantity.name,
        "unit": one.quantity.unit,
        "larger_is_better": one.quantity.better > 0,
        "base": _number(estimate.base),
        "other": _number(estimate.other),
        "relative": estimate.relative,
        "difference": _number(estimate.difference),
        "low": _number(estimate.low),
        "high": _number(estimate.high),
        "over": estimate.over or None,
        "units": estimate.units,
        "p": _number(estimate.p),
        "p_holm": _number(verdict.p_holm),
        "comparisons_in_table": verdict.family,
        "outcome": str(verdict.outcome),
        "verdict": verdict.words,
    }


def _faced(one: Faced) -> dict[str, Any]:
    harm = {name: _number(value) for name, value in asdict(one.harm).items()}
    return {
        **_scenario(one.scenario),
        **_contestant(one.contestant),
        "seeds": list(one.seeds),
        "runs_that_differ": one.distinct,
        "over": one.over or None,
        "units": one.units,
        "judged_jobs": one.judged,
        "unpaired_jobs": one.unpaired,
        "run_longer": one.longer,
        "jobs_worse_low": harm.pop("low"),
        "jobs_worse_high": harm.pop("high"),
        **harm,
    }
