# SPDX-License-Identifier: Apache-2.0
"""Gauges of extensions on the page of metrics; one that fails stops neither the page nor others."""

from dataclasses import replace
from math import inf
from types import SimpleNamespace
from typing import ClassVar

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bridge import extension_packages
from bridge.extension_packages import Installed
from bridge.extensions.port import Extension, Face
from bridge.extensions.power.rules import NO_UPPER_W, Corridor, NodePower, PowerRules, with_power
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import Site
from bridge.service import observers
from bridge.service.observers import ExtensionGauges
from bridge.service.telemetry import Metrics
from schedbridge_contracts.builders import a_running_job, a_snapshot

POWER = PowerRules(
    Corridor((0, 100), (5, 0), (900, NO_UPPER_W)), (NodePower("all", NodeSet(), 70, 170),), 10
)


class Thermometer:
    """Counts jobs, and fails where it is hot."""

    texts: ClassVar[dict[str, str]] = {"cold": "Running jobs", "hot": "Never known"}

    def value(self, name, snapshot, site):
        return {"cold": 0 if snapshot is None else len(snapshot.running)}[name]


class Named:
    """Has the name of a gauge of the service."""

    texts: ClassVar[dict[str, str]] = {"nodes": "Taken"}


def values(gauges, metrics, snapshot=None):
    if snapshot is not None:
        gauges.cycle(SimpleNamespace(published=SimpleNamespace(snapshot=snapshot)))
    families = text_string_to_metric_families(metrics.page().decode())
    return {family.name: family.samples[0].value for family in families if family.samples}


@pytest.fixture
def metrics():
    return Metrics("1.2", "easy")


def test_bounds_and_estimate_of_system_power(metrics):
    site = with_power(Site(), POWER)
    gauges = ExtensionGauges(metrics, lambda: site)
    names = [f"schedbridge_power_{what}_watts" for what in ("lower", "upper", "estimate")]
    before = values(gauges, metrics)
    assert [before[name] for name in names] == [0, inf, 0]
    running = [a_running_job((0,), max_power_w=100), a_running_job((1,))]
    world = a_snapshot(nodes=4, running=running, now_s=50)()
    found = values(gauges, metrics, world)
    assert [found[name] for name in names] == [5, 900, 10 + 4 * 70 + 30 + 100]
    found = values(gauges, metrics, replace(world, now_s=100))
    assert [found[name] for name in names] == [0, inf, 10 + 4 * 70 + 30 + 100]


def test_power_that_is_not_bounded(metrics):
    found = values(ExtensionGauges(metrics, Site), metrics, a_snapshot(nodes=2)())
    assert found["schedbridge_power_upper_watts"] == inf
    assert found["schedbridge_power_estimate_watts"] == 0


def test_a_gauge_that_fails_is_nan_and_logged_once(metrics, monkeypatch, caplog):
    offered = [
        Extension(name, gauges=Face(f"{__name__}:{what}"))
        for name, what in (("a", "Named"), ("b", "Thermometer"), ("c", "Missing"))
    ]
    there = Installed({each.name: each for each in offered})
    assert observers.installed is extension_packages.installed
    monkeypatch.setattr(observers, "installed", lambda: there)
    gauges = ExtensionGauges(metrics, Site)
    world = a_snapshot(nodes=4, running=[a_running_job((0,)), a_running_job((1,))])()
    for _ in range(2):
        found = values(gauges, metrics, world)
        assert found["schedbridge_cold"] == 2
        assert found["schedbridge_hot"] != found["schedbridge_hot"]
        assert "schedbridge_nodes" in found
    texts = [record.getMessage() for record in caplog.records]
    assert sorted(texts) == [
        "gauges of the extension a are missing",
        "gauges of the extension c are missing",
        "the gauge hot cannot be computed",
    ]
