# SPDX-License-Identifier: Apache-2.0
from types import SimpleNamespace

import pytest

from bridge.extensions.power.rules import Corridor, PowerRules, with_power
from bridge.model.rules.site import NO_RULES, Site
from bridge.rpc.controller.rule_changes import listen_ms, rules_change_s
from bridge.units import NEVER

BOUNDED = with_power(Site(), PowerRules(Corridor((0, 100, 200), (0, 1, 2), (9, 9, 9))))


def a_part(at_s, *, unannounced=False):
    return SimpleNamespace(
        changes_s=lambda now_s: at_s, unannounced=unannounced, binds_starts=False
    )


def test_the_controller_calls_when_the_bounds_change():
    assert [rules_change_s(BOUNDED, now_s) for now_s in (0, 99, 100, 199, 200)] == [
        100, 100, 200, 200, None,
    ]  # fmt: skip
    assert rules_change_s(NO_RULES, 0) is None


def test_of_two_extensions_the_first_change_counts():
    both = BOUNDED.having("other", a_part(150))
    assert [rules_change_s(both, now_s) for now_s in (0, 100)] == [100, 150]
    assert rules_change_s(NO_RULES.having("a", a_part(NEVER)).having("b", a_part(7)), 0) == 7


@pytest.mark.parametrize(("wall_s", "after_ms"), [(0, 1000), (0.05, 1000), (0.1, 2000), (9, 5000)])
def test_it_calls_often_but_not_for_more_than_a_share_of_the_time(wall_s, after_ms):
    assert listen_ms(BOUNDED, wall_s) == after_ms
    assert listen_ms(NO_RULES, wall_s) == 0
    assert listen_ms(NO_RULES.having("a", a_part(7)), wall_s) == 0
    assert listen_ms(BOUNDED.having("a", a_part(7)), wall_s) == after_ms
