# SPDX-License-Identifier: Apache-2.0
import pytest

from bridge.errors import ConfigError
from bridge.sim.speedup import Amdahl


def test_amdahl():
    assert Amdahl(0.0).at(8) == 8
    assert Amdahl(1.0).at(8) == 1
    assert Amdahl(0.1).at(10) == pytest.approx(1 / 0.19)


def test_what_is_lost_counts_as_communication():
    assert Amdahl(0.0).mtct(8) == 0
    assert Amdahl(1.0).mtct(4) == 3.0


@pytest.mark.parametrize("serial", [-0.1, 2.0, float("nan")])
def test_impossible_fractions_are_refused(serial):
    with pytest.raises(ConfigError, match="speedup"):
        Amdahl(serial)
