# SPDX-License-Identifier: Apache-2.0
"""What the service's metrics say of guests, while `pairs` guides them."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

import bridge
from bridge.extensions.sharing import leaving
from bridge.extensions.sharing.meter import SharingMeter
from bridge.extensions.sharing.slowdown import HostSlowdown
from bridge.extensions.sharing.switch import NAME as SWITCH
from bridge.extensions.sharing.switch import turned_off
from bridge.service.telemetry import Metrics
from schedbridge_contracts.sharing import SHARING
from tests.unit.policies.measured_node import Machine, harmful, harmless

BRIDGE = Path(bridge.__file__).parent


class Metered(Machine):
    """A node whose cycles are counted."""

    def __init__(self, harm, **more):
        super().__init__(harm, **more)
        self.metrics = Metrics("1", "pairs")
        self.meter = SharingMeter(self.metrics, lambda: SHARING, lambda: self.cycles.state)

    def step(self, steps=1, by_s=5):
        for _ in range(steps):
            had_guest = self.guest
            plan = super().step(1, by_s)
            self._show(had_guest, plan)
        return plan

    def _show(self, had_guest, plan):
        has_guest, self.guest = self.guest, had_guest
        world = self.world()
        self.guest = has_guest
        self.meter.planned(world, plan)

    def value(self, name, **labels):
        found = self.metrics.registry.get_sample_value(f"schedbridge_coschedule_{name}", labels)
        return 0.0 if found is None else found


def test_without_guests_all_is_zero():
    machine = Metered(harmless)
    machine.step(3)
    assert machine.value("guests") == machine.value("starts_total") == 0
    assert machine.value("guest_cpu_seconds_total") == 0
    assert machine.value("off") == 0


def test_a_guest_is_counted_once_with_its_cpu_time():
    machine = Metered(harmless).with_guest()
    machine.step(10)
    assert machine.value("guests") == machine.value("starts_total") == 1
    assert machine.value("guest_cpu_seconds_total") == pytest.approx(machine.guest_s)
    assert machine.value("hosts_above_bound") == 0
    # Each measurement once, though the page is read and cycles run more often.
    before = machine.value("host_slowdown_ratio_count")
    assert before > 0
    machine._show(True, machine.plans[-1])
    assert machine.value("host_slowdown_ratio_count") == before
    assert machine.value("host_slowdown_ratio_sum") == pytest.approx(0, abs=0.01 * before)
    machine.guest = False
    machine.step(2)
    assert machine.value("guests") == 0
    assert machine.value("starts_total") == 1


def test_a_host_above_its_bound_and_the_requeue_of_its_guest_are_counted():
    machine = Metered(harmful).with_guest()
    above = 0.0
    while machine.guest:
        machine.step()
        above = max(above, machine.value("hosts_above_bound"))
    machine.step(2)
    assert above == 1
    assert machine.value("hosts_above_bound") == 0
    assert machine.value("requeues_total", reason="slowdown") == 1
    assert machine.value("host_slowdown_ratio_bucket", le="0.1") < machine.value(
        "host_slowdown_ratio_count"
    )


def test_a_guest_of_unknown_harm_is_counted_as_such():
    """Until the second measurement beside it, and while its host's work is not measured."""
    machine = Metered(harmless).with_guest()
    assert (machine.value("guests"), machine.value("slowdown_unknown")) == (0, 0)
    machine.step()
    assert (machine.value("guests"), machine.value("slowdown_unknown")) == (1, 1)
    machine.step(3)
    assert machine.value("slowdown_unknown") == 0
    machine.extra = {"cpu_s": -1.0}
    machine.step()
    assert (machine.value("guests"), machine.value("slowdown_unknown")) == (1, 1)
    machine.guest = False
    machine.extra = {}
    machine.step(2)
    assert (machine.value("guests"), machine.value("slowdown_unknown")) == (0, 0)


def test_a_requeue_that_is_planned_again_is_counted_once():
    machine = Metered(harmful).with_guest()
    while machine.guest:
        machine.step()
    for _ in range(3):
        machine._show(True, machine.plans[-1])
    assert machine.value("requeues_total", reason="slowdown") == 1


def test_the_switch_is_shown():
    machine = Metered(harmless)
    state = machine.cycles.state
    off = turned_off(state.learnt_by(SWITCH), 5, by_policy=True)
    machine.cycles.state = replace(state, learnt={**state.learnt, SWITCH: off})
    assert machine.value("off") == 1


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        (leaving.NO_MEMORY, "memory"), (leaving.NO_ROOM, "memory"),
        (leaving.TOO_LATE, "time-limit"), (leaving.ALWAYS_SLOW, "slowdown"),
        (leaving.NOT_NOW, "switched-off"), (leaving.STOPPED, "switched-off"), ("", "other"),
        (leaving.too_slow(HostSlowdown(0.5, 0.1), 0.1), "slowdown"),
    ],
)  # fmt: skip
def test_reasons_are_counted_by_few_kinds(reason, kind):
    assert leaving.kind_of(reason) == kind
    assert kind in leaving.KINDS


def test_every_metric_is_documented():
    machine = Metered(harmful).with_guest()
    while machine.guest:
        machine.step()
    families = [family.name for family in machine.metrics.registry.collect()]
    own = {name for name in families if name.startswith("schedbridge_coschedule_")}
    text = (BRIDGE / "extensions/sharing/README.md").read_text()
    named = re.findall(r"^\| (schedbridge_[a-z_]+)", text, re.MULTILINE)
    assert {name.removesuffix("_total") for name in named} == own
    assert len(named) == len(own) == 8
