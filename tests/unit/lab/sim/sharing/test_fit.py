# SPDX-License-Identifier: Apache-2.0
"""The fit of the interference model finds what it was made of, and the error of what it was not."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[5] / "benchmarks"))

from interference_bench import fit
from interference_bench.pairs import SETTINGS

from bridge.lab.sim.sharing.interference import UseStage, parse_interference

START = UseStage("start", 0.1, False, 0.5)
PROFILES = {
    "busy": fit.Profile("busy", (UseStage("all", 1.0, True, 0.95),), 1.0, START, 2),
    "steps": fit.Profile(
        "steps", (UseStage("a", 0.5, True, 0.5), UseStage("b", 0.5, False, 0.9)), 0.8, START, 2
    ),
    "writes": fit.Profile("writes", (UseStage("all", 1.0, True, 0.3, 0.7),), 1.2, START, 2),
}
TRUE = np.array([1.0, 0.5, 0.2, 0.1, 0.3, 0.6, 0.8])


def made(parameters: np.ndarray) -> list[fit.Measured]:
    applications = fit.applications(PROFILES, parameters)
    return [
        fit.Measured(
            host, guest, setting,
            *fit.predicted(PROFILES[host], PROFILES[guest], applications, setting),
        )
        for host in PROFILES for guest in PROFILES for setting in SETTINGS
    ]  # fmt: skip


def test_parameters_of_exact_measurements_are_found() -> None:
    measured = made(TRUE)
    found = fit.fit(PROFILES, measured)
    assert np.abs(fit.errors(PROFILES, measured, found)).max() < 0.02
    assert found[-1] == pytest.approx(TRUE[-1], abs=0.05)
    assert found[:3].max() == 1.0  # the largest pressure


def test_no_interference_is_found_where_there_is_none() -> None:
    """Slow: fits the model for each part of the disk."""
    measured = made(np.zeros(7))
    found = fit.fit(PROFILES, measured)
    products = np.outer(found[3:6], found[:3])
    assert products.max() < 0.02
    assert found[-1] == pytest.approx(0, abs=0.02)


def test_a_pair_that_is_unlike_all_others_has_the_larger_error_when_left_out() -> None:
    """Slow: the model is fitted again without that pair, and without another one."""
    measured = made(TRUE)
    odd = [
        fit.Measured(m.host, m.guest, m.setting, m.slowdown * 1.5, m.guest_cpu)
        if (m.host, m.guest) == ("steps", "busy") else m
        for m in measured
    ]  # fmt: skip
    tried = [("steps", "busy"), ("busy", "writes")]
    own, other = (np.array([(m.host, m.guest) == pair for m in odd]) for pair in tried)
    errors = np.abs(fit.left_out(PROFILES, odd, tried))
    assert (np.isfinite(errors) == own | other).all()
    fitted = np.abs(fit.errors(PROFILES, odd, fit.fit(PROFILES, odd)))
    assert errors[own].min() > 0.3 > fitted[own].max()
    assert errors[other].max() < errors[own].min()


def test_the_model_can_be_read_again() -> None:
    model = fit.model(PROFILES, TRUE, "a test")
    assert parse_interference(model.as_value()) == model
    assert all(sum(s.share for s in a.stages) == pytest.approx(1) for a in model.applications)
