# SPDX-License-Identifier: Apache-2.0
"""The quantiles of the last minute, against a list that forgets nothing."""

import numpy as np

from bridge.rpc.agents.recent import APART_S, HIGH, LOW, MIN_S, SETTLE_S, WINDOW_S, Recent
from schedbridge_contracts.crosses import each

SEED = 11


class Naive:
    """Keeps all values, and sorts whenever it is asked."""

    def __init__(self):
        self.values = []

    def add(self, at_s, value):
        if self.values and at_s < self.values[-1][0]:
            return
        if self.values and at_s - self.values[-1][0] < APART_S:
            self.values[-1] = (self.values[-1][0], value)
        else:
            self.values.append((at_s, value))

    def bounds(self, now_s, stale_s):
        if not self.values:
            return None
        first, last = self.values[0][0], self.values[-1][0]
        if now_s - last > stale_s or last - first < MIN_S:
            return None
        since_s = max(now_s - WINDOW_S, first + SETTLE_S)
        found = [value for at_s, value in self.values if at_s >= since_s]
        if not found:
            return None
        return (
            np.quantile(found, LOW, method="lower"),
            np.quantile(found, HIGH, method="higher"),
        )


@each(case=range(40))
def test_against_the_list(case):
    generator = np.random.default_rng([SEED, case])
    recent, naive, now_s, said = Recent(), Naive(), 1000.0, 0
    pause_s = (0.1, 0.5, 1, 1, 2, 15, 70) if case % 2 else (1,)
    for _ in range(150):
        now_s += generator.choice(pause_s)
        at_s = now_s - generator.choice((0, 0, 0, 0.3, 5))
        watts = float(generator.integers(50, 60))
        recent.add(at_s, watts)
        naive.add(at_s, watts)
        requested_s, stale_s = (
            now_s + generator.choice((0, 20, 59, 61)),
            generator.choice((30, 300)),
        )
        found = recent.bounds(requested_s, stale_s)
        assert found == naive.bounds(requested_s, stale_s)
        said += found is not None
    assert said > 10


def test_a_minute_of_any_number_of_values_is_bounded():
    recent = Recent()
    for number in range(100_000):
        recent.add(number / 1000, 1.0)
    assert len(recent._values) <= WINDOW_S / APART_S + 1
