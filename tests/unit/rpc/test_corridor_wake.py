# SPDX-License-Identifier: Apache-2.0
import pytest

from bridge.model.rules.power import Corridor, PowerRules, with_power
from bridge.model.rules.site import NO_RULES, Site
from bridge.rpc.controller.corridor_wake import corridor_change_s, listen_ms

BOUNDED = with_power(Site(), PowerRules(Corridor((0, 100, 200), (0, 1, 2), (9, 9, 9))))


def test_the_controller_calls_when_the_bounds_change():
    assert [corridor_change_s(BOUNDED, now_s) for now_s in (0, 99, 100, 199, 200)] == [
        100, 100, 200, 200, None,
    ]  # fmt: skip
    assert corridor_change_s(NO_RULES, 0) is None


@pytest.mark.parametrize(("wall_s", "after_ms"), [(0, 1000), (0.05, 1000), (0.1, 2000), (9, 5000)])
def test_it_calls_often_but_not_for_more_than_a_share_of_the_time(wall_s, after_ms):
    assert listen_ms(BOUNDED, wall_s) == after_ms
    assert listen_ms(NO_RULES, wall_s) == 0
