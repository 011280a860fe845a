# SPDX-License-Identifier: Apache-2.0
import json

import pytest

from bridge.errors import ConfigError
from bridge.extensions.power.rules import NO_UPPER_W, Corridor
from bridge.lab.sim.corridor.steps import CorridorStep, parse_corridor, read_corridor

LIST = """
- {at: 0, lower: 1700W, upper: 2500W}
- {at: 5m, lower: 1kW, upper: 1.7 kW}
- {at: 3600, upper: 3500, announced: true}
"""


def a_file(tmp_path, text):
    path = tmp_path / "corridor"
    path.write_text(text)
    return path


def test_a_list_of_steps(tmp_path):
    found = read_corridor(a_file(tmp_path, LIST))
    assert found.steps == (
        CorridorStep(0, 1700, 2500),
        CorridorStep(300, 1000, 1700),
        CorridorStep(3600, 0, 3500, announced=True),
    )
    assert (found.grace_s, found.base_w) == (10, 0)


def test_json_with_everything(tmp_path):
    steps = [{"at": 7, "lower": 5}]
    found = read_corridor(
        a_file(tmp_path, json.dumps({"steps": steps, "grace_s": 0, "base": "1 MW"}))
    )
    assert found.steps == (CorridorStep(7, 5, NO_UPPER_W),)
    assert (found.grace_s, found.base_w) == (0, 10**6)


def test_what_is_known_are_steps_that_have_begun_and_announced_ones():
    steps = parse_corridor(
        [
            {"at": 0, "upper": 4},
            {"at": 10, "upper": 3},
            {"at": 20, "upper": 2, "announced": True},
            {"at": 30, "upper": 1},
        ]
    )

    def uppers(corridor):
        return dict(zip(corridor.starts_s, corridor.upper_w, strict=True))

    before = {0: NO_UPPER_W, 100: 4}
    assert uppers(steps.known(100, 109)) == before | {120: 2}
    assert uppers(steps.known(100, 110)) == before | {110: 3, 120: 2}
    assert uppers(steps.whole(100)) == before | {110: 3, 120: 2, 130: 1}
    assert uppers(steps.unannounced().known(100, 119)) == before | {110: 3}
    assert steps.instants(100) == [100, 110, 120, 130]
    assert steps.announced(100) == {120}
    assert steps.whole(100) == Corridor(
        (0, 100, 110, 120, 130), (0, 0, 0, 0, 0), (NO_UPPER_W, 4, 3, 2, 1)
    )


@pytest.mark.parametrize(
    ("value", "key", "says"),
    [
        (None, "steps", "list of steps"),
        ([], "steps", "list of steps"),
        ({"steps": []}, "steps", "list of steps"),
        ({"step": []}, "step", "unknown key"),
        ([5], "steps.0", "mapping"),
        ([{"upper": 5}], "steps.0.at", "is missing"),
        ([{"at": 0, "uper": 5}], "steps.0.uper", "unknown key"),
        ([{"at": -1}], "steps.0.at", "-1"),
        ([{"at": "soon"}], "steps.0.at", "soon"),
        ([{"at": True}], "steps.0.at", "True"),
        ([{"at": 0, "lower": "5J"}], "steps.0.lower", "5J"),
        ([{"at": 0, "upper": "nanW"}], "steps.0.upper", "nanW"),
        ([{"at": 0, "upper": "1e400W"}], "steps.0.upper", "1e400W"),
        ([{"at": 0, "lower": -5}], "steps.0.lower", "-5"),
        ([{"at": 0, "lower": True}], "steps.0.lower", "True"),
        ([{"at": 0, "lower": 6, "upper": 5}], "steps.0", "above"),
        ([{"at": 0, "announced": 1}], "steps.0.announced", "true or false"),
        ([{"at": 5}, {"at": 5}], "steps.1.at", "after the previous step"),
        ({"steps": [{"at": 0}], "grace_s": -1}, "grace_s", "-1"),
        ({"steps": [{"at": 0}], "base": "x"}, "base", "x"),
    ],
)
def test_what_is_wrong_is_said(value, key, says):
    with pytest.raises(ConfigError) as caught:
        parse_corridor(value)
    assert caught.value.key == key
    assert says in caught.value.problem


def test_a_file_that_cannot_be_read(tmp_path):
    for path in (tmp_path / "none", a_file(tmp_path, "a: [")):
        with pytest.raises(ConfigError) as caught:
            read_corridor(path)
        assert str(path) in str(caught.value)
