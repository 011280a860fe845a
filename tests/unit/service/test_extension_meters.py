# SPDX-License-Identifier: Apache-2.0
"""What extensions count over cycles; one that fails stops neither the cycle nor others."""

from types import SimpleNamespace

import pytest

from bridge import extension_packages
from bridge.extension_packages import Installed
from bridge.extensions.port import Extension, Face
from bridge.model.plan import Plan
from bridge.model.rules.site import Site
from bridge.ports import State
from bridge.service import observers
from bridge.service.observers import ExtensionMeters
from bridge.service.telemetry import Metrics
from schedbridge_contracts.sharing import a_guest, a_host, a_world


class Meter:
    """Counts running jobs by user, and fails where there are many."""

    def __init__(self, metrics):
        self.jobs = metrics.counter("seen", "Running jobs", "user")

    def planned(self, snapshot, plan):
        assert plan == "plan"
        for user in snapshot.running.user.tolist():
            self.jobs.labels(user).inc()
        if len(snapshot.running) > 2:
            raise ValueError("too many")


class Meters:
    def meter(self, metrics, site, state):
        assert site() == Site()
        assert state() == State()
        return Meter(metrics)


class Named:
    """Has the name of a metric of the service."""

    def meter(self, metrics, site, state):
        return metrics.gauge("nodes", "Taken")


HOST_AND_GUEST = a_world([a_host(user="ann"), a_guest(user="bob")])


def meters(metrics):
    return ExtensionMeters(metrics, Site, State)


def cycle(meters, snapshot, plan="plan"):
    published = SimpleNamespace(snapshot=snapshot, plan=plan)
    meters.cycle(SimpleNamespace(published=published))


@pytest.fixture
def metrics():
    return Metrics("1.2", "easy")


def test_those_that_are_installed_count(metrics):
    pair = [[a_host((node,)), a_guest((node,))] for node in (0, 1)]
    meter = meters(metrics)
    meter.cycle(SimpleNamespace(published=None))
    assert "schedbridge_coschedule_guests 0.0" in metrics.page().decode()
    for guests, running in ((1, pair[0]), (2, [*pair[0], *pair[1]]), (1, pair[1])):
        cycle(meter, a_world(running), Plan.without_rows(0))
        assert f"schedbridge_coschedule_guests {guests}.0" in metrics.page().decode()
    assert "schedbridge_coschedule_starts_total 2.0" in metrics.page().decode()


def test_one_that_fails_is_logged_once_and_stops_no_other(metrics, monkeypatch, caplog):
    offered = [
        Extension(name, meter=Face(f"{__name__}:{what}"))
        for name, what in (("a", "Named"), ("b", "Meters"), ("c", "Missing"))
    ]
    there = Installed({each.name: each for each in [*offered, Extension("plain")]})
    assert observers.installed is extension_packages.installed
    monkeypatch.setattr(observers, "installed", lambda: there)
    meter = meters(metrics)
    many = a_world([a_host(user="ann"), a_guest(user="bob"), a_host((1,), user="bob")])
    for world in (HOST_AND_GUEST, many, many):
        cycle(meter, world)
    seen = [
        metrics.registry.get_sample_value("schedbridge_seen_total", {"user": user})
        for user in ("ann", "bob")
    ]
    assert seen == [3, 5]
    assert sorted(record.getMessage() for record in caplog.records) == [
        "metrics of the extension a are missing",
        "metrics of the extension c are missing",
        "the extension b does not count a cycle",
    ]
