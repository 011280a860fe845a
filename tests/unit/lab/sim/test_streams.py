# SPDX-License-Identifier: Apache-2.0
"""Made-up streams: the shares that are fitted, and jobs that can all run."""

import numpy as np
import pytest

from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.workloads.streams import MIXES, stream, stream_system
from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.alike import assert_alike

SYSTEMS = {"eurora": (64, 64 * 16), "kit": (1173, 1152 * 20 + 21 * 48)}


@pytest.mark.parametrize("name", MIXES)
def test_the_paper_s_shares_of_short_jobs_are_met(name):
    system = stream_system(name)
    assert (len(system.nodes), system.processors) == SYSTEMS[name]
    made = stream(name, system, 20_000, load=0.9, seed=3)
    assert np.mean(made.runtime_s < 3600) == pytest.approx(MIXES[name].lengths[0], abs=0.02)
    assert (made.runtime_s <= made.time_limit_s).all()
    assert (np.diff(made.submit_s) >= 0).all()
    span_s = made.submit_s[-1] - made.submit_s[0]
    work = (made.runtime_s * made.processors).sum()
    assert work / (span_s * system.processors) == pytest.approx(0.9, rel=0.1)


@pytest.mark.parametrize("name", MIXES)
def test_same_seed_same_stream_and_every_job_runs(name):
    system = stream_system(name)
    made = stream(name, system, 150, load=1.2, seed=5)
    assert_alike(made, stream(name, system, 150, load=1.2, seed=5))
    assert not np.array_equal(made.submit_s, stream(name, system, 150, load=1.2, seed=6).submit_s)
    outcome = simulate(made, system, Decider(build(PRESETS["easy"])).decide)
    assert outcome.schedule.finished.all()
    assert not outcome.refusals


def test_accelerators_are_asked_for():
    system = stream_system("eurora")
    made = stream("eurora", system, 5000, load=0.9, seed=1)
    wants = made.requests.per_task
    for kind in ("gpu", "mic"):
        share = (wants[:, system.resources.index(kind)] > 0).mean()
        assert 0.01 < share < 0.6, kind


def test_the_first_jobs_of_a_stream_keep_their_requests():
    made = stream("kit", stream_system("kit"), 50, load=0.9, seed=1).first(10)
    assert len(made) == len(made.requests) == 10
