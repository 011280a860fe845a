# SPDX-License-Identifier: Apache-2.0
import pytest

from bridge.errors import ConfigError
from bridge.extensions.power.corridor.sites import site_at, with_bounds
from bridge.extensions.power.rules import NO_UPPER_W, Corridor, power_of
from bridge.units import DAY_S, NEVER

POWER = {"nodes": [{"name": "all", "idle": 1, "max": 2}]}
NIGHT = {"upper": 5, "valid": {"cron": "0 22 * * *", "length": "8h"}}


def test_the_calendar_is_resolved_for_a_span():
    planning = {"power": {**POWER, "corridor": [{"upper": 9}, NIGHT]}, "cron_days": 2}
    power = power_of(site_at(planning, 100 * DAY_S, 130 * DAY_S))
    for day in (100, 130, 131):
        assert power.corridor.at(day * DAY_S + 23 * 3600) == (0, 5)
        assert power.corridor.at(day * DAY_S + 12 * 3600) == (0, 9)
    assert power_of(site_at(None, 0)) is None
    with pytest.raises(ConfigError, match=r"power\.nodes"):
        site_at({"power": {}}, 0)


@pytest.mark.parametrize(
    "corridor",
    [
        Corridor(),
        Corridor((0, 1000, 2000), (0, 3, 4), (NO_UPPER_W, 7, 4)),
        Corridor((0, 1_500_000_000), (5, 0), (5, NO_UPPER_W)),
    ],
)
def test_a_corridor_is_written_as_a_calendar_and_read_again(corridor):
    planning = with_bounds({"power": {**POWER, "corridor": [NIGHT]}}, corridor)
    for now_s in (0, 500, 1000):
        found = power_of(site_at(planning, now_s)).corridor
        for instant in (now_s, 1999, 2000, 1_499_999_999, 1_500_000_000, NEVER - 1):
            assert instant < now_s or found.at(instant) == corridor.at(instant)
    assert with_bounds({"timezone": "UTC"}, corridor) == {"timezone": "UTC"}
