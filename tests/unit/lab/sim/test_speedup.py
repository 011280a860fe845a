# SPDX-License-Identifier: Apache-2.0
import itertools

import pytest

from bridge.errors import ConfigError
from bridge.lab.sim.workloads.speedup import (
    Amdahl,
    Downey,
    Phase,
    Phases,
    Table,
    parse_speedup,
)
from schedbridge_contracts.crosses import each


def test_amdahl():
    assert Amdahl(0.0).at(8) == 8
    assert Amdahl(1.0).at(8) == 1
    assert Amdahl(0.1).at(10) == pytest.approx(1 / 0.19)


@pytest.mark.parametrize("sigma", [0.0, 0.5, 1.0, 2.0])
def test_downey_rises_from_one_to_its_average_parallelism(sigma):
    model = Downey(16, sigma)
    values = [model.at(n) for n in range(1, 200)]
    assert values[0] == pytest.approx(1.0)
    assert all(b >= a - 1e-9 for a, b in itertools.pairwise(values))
    assert values[-1] == pytest.approx(16.0)


def test_downey_without_variance_is_linear_up_to_its_average():
    assert [Downey(8, 0.0).at(n) for n in (1, 4, 8, 16)] == [1, 4, 8, 8]


def test_a_table_is_read_between_its_widths():
    table = Table((2, 4, 8), (2.0, 3.0, 3.5))
    assert [table.at(n) for n in (1, 2, 3, 8, 99)] == [1.0, 2.0, 2.5, 3.5, 3.5]


def test_what_is_lost_counts_as_communication():
    assert Amdahl(0.0).mtct(8) == 0
    assert Table((1, 4), (1.0, 2.0)).mtct(4) == 1.0


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("amdahl:0.05", Amdahl(0.05)),
        ("downey:32:1.5", Downey(32, 1.5)),
        ("table:1=1,4=3.2", Table((1, 4), (1.0, 3.2))),
        ("phases:1*amdahl:0.05", Phases((Phase(1.0, Amdahl(0.05)),))),
        (
            "phases:0.25*table:1=1,4=3.2,0.5*downey:32:1@0.5,0.25*amdahl:0@unknown",
            Phases(
                (
                    Phase(0.25, Table((1, 4), (1.0, 3.2))),
                    Phase(0.5, Downey(32, 1), 0.5),
                    Phase(0.25, Amdahl(0), -1.0),
                )
            ),
        ),
    ],
)
def test_models_are_written_as_text(text, model):
    assert parse_speedup(text) == model


@each(
    text=["", "linear", "amdahl:", "amdahl:2", "downey:3", "downey:0:1", "table:", "table:4=1,2=3",
     "table:1=0", "amdahl:nan", "downey:nan:1", "downey:inf:0", "downey:3:nan",
     "table:1=nan", "table:1=inf",
     "phases:", "phases:amdahl:0", "phases:1*", "phases:0.5*amdahl:0",
     "phases:0.5*amdahl:0,0.6*amdahl:0", "phases:0*amdahl:0,1*amdahl:0",
     "phases:-1*amdahl:0,2*amdahl:0",
     "phases:nan*amdahl:0", "phases:inf*amdahl:0", "phases:1*amdahl:nan", "phases:1*amdahl:0,",
     "phases:,1*amdahl:0", "phases:1*amdahl:0@", "phases:1*amdahl:0@-1", "phases:1*amdahl:0@nan",
     "phases:1*amdahl:0@inf", "phases:1*phases:1*amdahl:0", "phases:" + "1*phases:" * 9999,
     "phases:" + ",".join(["0.005*amdahl:0"] * 200)],
)  # fmt: skip
def test_impossible_models_are_refused(text):
    with pytest.raises(ConfigError, match="speed-up"):
        parse_speedup(text)


def test_phases_together_are_as_fast_as_their_work_is_done():
    both = parse_speedup("phases:0.5*amdahl:1,0.5*amdahl:0")
    assert both.at(4) == pytest.approx(1 / (0.5 + 0.5 / 4))
    assert both.at(1) == pytest.approx(1)
    assert [part.speedup.at(4) for part in both.parts()] == [1, 4]
    assert Amdahl(0.2).parts() == (Phase(1.0, Amdahl(0.2)),)
