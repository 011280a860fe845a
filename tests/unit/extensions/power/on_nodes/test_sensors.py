# SPDX-License-Identifier: Apache-2.0
"""Sensors of power, on made-up sysfs trees and answers of Slurm."""

import random

import pytest

from bridge.errors import ConfigError
from bridge.extensions.power.on_nodes.choice import (
    NodeSensors,
    PowerSettings,
    first_value,
    model_from,
    sensors_from,
)
from bridge.extensions.power.on_nodes.model import NodeLoad, PowerModel
from bridge.extensions.power.on_nodes.pm_counters import STILL_S, PmCounters
from bridge.extensions.power.on_nodes.rapl import LONGEST_S, Rapl
from bridge.extensions.power.on_nodes.slurm_energy import (
    ANSWER_S,
    ASK_S,
    GIVE_UP_S,
    KEPT_S,
    SlurmEnergy,
)

MOST_UJ = 1_000_000_000


class Clock:
    s = 50.0

    def __call__(self):
        return self.s


@pytest.fixture
def clock():
    return Clock()


# ------------------------------------------------------------------ RAPL


@pytest.fixture
def zone(tmp_path):
    def make(name, label, energy_uj, max_uj=MOST_UJ):
        folder = tmp_path / "class" / "powercap" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "name").write_text(f"{label}\n")
        (folder / "energy_uj").write_text(f"{energy_uj}\n")
        (folder / "max_energy_range_uj").write_text(f"{max_uj}\n")
        return folder

    make.sys = tmp_path
    return make


def a_server(zone, *, package=0, dram=0, others=0):
    for number in (0, 1):
        zone(f"intel-rapl:{number}", f"package-{number}", package)
        zone(f"intel-rapl:{number}:0", "core", others)
        zone(f"intel-rapl:{number}:1", "uncore", others)
        zone(f"intel-rapl:{number}:2", "dram", dram)
    zone("intel-rapl:2", "psys", others)
    zone("intel-rapl-mmio:0", "package-0", others)


def test_packages_and_memory_count_once(zone, clock):
    a_server(zone)
    sensor = Rapl(zone.sys, clock=clock)
    assert sensor.read() is None  # a baseline
    clock.s += 2
    a_server(zone, package=100_000_000, dram=10_000_000, others=77_000_000)
    assert sensor.read() == pytest.approx((2 * 100 + 2 * 10) / 2)
    assert (sensor.name, sensor.age_s) == ("rapl", 0)


def test_a_counter_goes_round_at_its_range(zone, clock):
    folder = zone("intel-rapl:0", "package-0", MOST_UJ - 30_000_000)
    sensor = Rapl(zone.sys, rest_w=40, clock=clock)
    sensor.read()
    clock.s += 1
    (folder / "energy_uj").write_text("20000000")
    assert sensor.read() == pytest.approx(50 + 40)


def test_any_power_is_found_across_any_number_of_rounds(zone, clock):
    """Against a naive model that never goes round."""
    generator = random.Random(0)
    folder = zone("intel-rapl:0", "package-0-die-0", 0)
    sensor, energy_uj = Rapl(zone.sys, clock=clock), 0
    sensor.read()
    for _ in range(200):
        watts, after_s = generator.randint(1, 300), generator.choice((0.5, 1, 3))
        clock.s += after_s
        energy_uj += int(watts * after_s * 1e6)
        (folder / "energy_uj").write_text(str(energy_uj % MOST_UJ))
        assert sensor.read() == pytest.approx(watts)
    assert energy_uj > 3 * MOST_UJ


def test_after_a_long_pause_or_a_missing_package_there_is_a_new_baseline(zone, clock):
    a_server(zone)
    sensor = Rapl(zone.sys, clock=clock)
    sensor.read()
    clock.s += LONGEST_S + 1
    assert sensor.read() is None
    clock.s += 1
    assert sensor.read() == 0
    energy = zone.sys / "class" / "powercap" / "intel-rapl:1" / "energy_uj"
    energy.write_text("not a number")
    clock.s += 1
    assert sensor.read() is None
    a_server(zone)
    clock.s += 1
    assert sensor.read() is None
    clock.s += 1
    assert sensor.read() == 0


def test_without_powercap_nothing_is_measured(tmp_path):
    assert Rapl(tmp_path).read() is None


# ------------------------------------------------------------------ Cray's files


@pytest.fixture
def counters(tmp_path):
    folder = tmp_path / "cray" / "pm_counters"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    ("text", "watts"),
    [("92 W", 92.0), ("92 W 1374 us", 92.0), ("0 W", None), ("", None), ("-5 W", None),
     ("many W", None)],
)  # fmt: skip
def test_the_file_power(counters, tmp_path, text, watts):
    (counters / "power").write_text(text)
    assert PmCounters(tmp_path).read() == watts


def test_firmware_that_has_stopped_is_not_believed(counters, tmp_path, clock):
    sensor = PmCounters(tmp_path, clock)
    assert sensor.read() is None
    (counters / "power").write_text("92 W")
    (counters / "freshness").write_text("7")
    assert sensor.read() == 92
    clock.s += STILL_S
    assert (sensor.read(), sensor.age_s) == (92, STILL_S)
    clock.s += 0.1
    assert sensor.read() is None
    (counters / "freshness").write_text("8")
    assert (sensor.read(), sensor.age_s) == (92, 0)


# ------------------------------------------------------------------ Slurm


class Slurm:
    """Answers commands; by default at once."""

    def __init__(self):
        self.requested, self.killed = [], 0
        self.plugin, self.node, self.code = b"acct_gather_energy/ipmi", b"CurrentWatts=92", 0

    def __call__(self, words):
        self.requested.append(" ".join(words))
        return self

    def poll(self):
        return self.code

    def kill(self):
        self.killed += 1

    def output(self):
        if "config" in self.requested[-1]:
            return b"AccountingStorageTRES   = cpu\nAcctGatherEnergyType    = " + self.plugin
        return b"NodeName=n1 CPUAlloc=0 " + self.node + b" AveWatts=80 ExtSensorsWatts=7\n"


@pytest.fixture
def slurm():
    return Slurm()


def asked_for_long(sensor, clock, seconds=2 * ASK_S):
    value = None
    for _ in range(int(seconds)):
        clock.s += 1
        value = sensor.read()
    return value


def test_slurm_says_which_plugin_measures(slurm, clock):
    sensor = SlurmEnergy("n1", slurm, clock)
    assert asked_for_long(sensor, clock) == 92
    assert sensor.name == "slurm:ipmi"
    assert slurm.requested[:2] == ["scontrol show config", "scontrol --oneliner show node n1"]
    assert 0 < sensor.age_s <= ASK_S


def test_slurm_is_asked_seldom(slurm, clock):
    asked_for_long(SlurmEnergy("n1", slurm, clock), clock, 20 * ASK_S)
    assert len(slurm.requested) <= 1 + 20


@pytest.mark.parametrize("node", [b"CurrentWatts=n/a", b"CurrentWatts=0", b"CurrentWatts=12x", b""])
def test_what_slurm_does_not_know_is_no_value(slurm, clock, node):
    slurm.node = node
    assert asked_for_long(SlurmEnergy("n1", slurm, clock), clock) is None


def test_a_value_of_slurm_ends_when_slurm_is_silent(slurm, clock):
    sensor = SlurmEnergy("n1", slurm, clock)
    asked_for_long(sensor, clock)
    slurm.code = 1
    assert asked_for_long(sensor, clock, KEPT_S + ASK_S) is None


@pytest.mark.parametrize("plugin", [b"acct_gather_energy/none", b"(null)"])
def test_without_a_plugin_slurm_is_left_alone(slurm, clock, plugin):
    slurm.plugin = plugin
    assert asked_for_long(SlurmEnergy("n1", slurm, clock), clock, GIVE_UP_S) is None
    assert len(slurm.requested) == 1


def test_a_command_that_hangs_is_ended(slurm, clock):
    slurm.code = None
    sensor = SlurmEnergy("n1", slurm, clock)
    assert asked_for_long(sensor, clock, ASK_S + ANSWER_S + 2) is None
    assert slurm.killed == 1


def test_without_scontrol_nothing_is_asked(clock):
    def start(words):
        raise FileNotFoundError(words[0])

    assert asked_for_long(SlurmEnergy("n1", start, clock), clock) is None


def test_nodes_do_not_ask_all_at_once(clock):
    instants = set()
    for number in range(50):
        slurm, clock.s = Slurm(), 0.0
        sensor = SlurmEnergy(f"n{number}", slurm, clock)
        while not slurm.requested:
            clock.s += 1
            sensor.read()
        instants.add(clock.s)
    assert len(instants) > ASK_S / 2


# ------------------------------------------------------------------ model and choice


@pytest.mark.parametrize(("busy", "watts"), [(0, 71), (1, 160.5), (2, 250), (9, 250), (None, None)])
def test_the_model(busy, watts):
    assert PowerModel(NodeLoad(2, busy), (71, 250)).read() == watts


def test_a_meter_that_loses_its_value_is_named_until_one_is_back(tmp_path, counters):
    """Of two nodes: the other one keeps its own."""
    settings = PowerSettings(("pm_counters", "model"), tmp_path, model=(10, 20))
    lost, fine = (NodeSensors(name, settings, NodeLoad(2, 1)) for name in ("n1", "n2"))
    assert (lost.read().source, lost.lost) == ("model", None)  # it never had a meter
    (counters / "power").write_text("92 W")
    assert lost.read().is_measured
    assert fine.read().watts == 92
    (counters / "power").unlink()
    for _ in range(3):
        found = lost.read()
        assert (found.source, found.is_measured) == ("model", False)
        assert (lost.lost.source, lost.lost.watts) == ("pm_counters", 92)
    assert fine.lost is None
    (counters / "power").write_text("93 W")
    assert lost.read().watts == 93
    assert lost.lost is None


def test_a_model_of_which_nothing_is_stated_says_nothing():
    assert PowerModel(NodeLoad(2, 1)).read() is None


def test_the_first_sensor_that_has_a_value_is_named(tmp_path, counters, clock):
    sensors = [Rapl(tmp_path), PmCounters(tmp_path), PowerModel(NodeLoad(2, 1), (10, 20))]
    assert first_value(sensors).source == "model"
    (counters / "power").write_text("92 W")
    assert (first_value(sensors).source, first_value(sensors).watts) == ("pm_counters", 92)
    assert first_value([]) is None


def test_options():
    assert sensors_from("rapl, model,rapl") == ("rapl", "model")
    assert sensors_from("none") == ()
    assert model_from("71-250") == model_from("71W-250W") == (71, 250)
    assert model_from("") is None
    assert PowerSettings().sensors[0] == "rapl"
    for text in ("71", "250-71", "a-b", "-5-6"):
        with pytest.raises(ConfigError):
            model_from(text)
    with pytest.raises(ConfigError, match="wattmeter"):
        sensors_from("wattmeter")
