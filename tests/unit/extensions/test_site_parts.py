# SPDX-License-Identifier: Apache-2.0
"""Rules of a site that an extension adds: bounds with weights of nodes, and their check."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from bridge import extension_packages
from bridge.check.legality import check
from bridge.cycle import run_cycle
from bridge.errors import ExtensionError, InvalidPlan
from bridge.extension_packages import gathered
from bridge.extensions.port import Check, Extension, Face, Stages
from bridge.model.reasons import ReasonCode
from bridge.model.rules.site import Site
from bridge.model.weighted_bound import Rise, WeightedBound
from bridge.planning.site_rules.lowered_rules import lower, unknown_to
from bridge.ports import State
from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider
from bridge.units import NEVER
from schedbridge_contracts.builders import a_job, a_snapshot
from tests.unit.extensions.test_extension_packages import points


@dataclass(frozen=True)
class Liquids:
    """Two bounds: each node of a job takes 10 litres of water, and the node's number of air."""

    water: int
    air: int
    resources: tuple[str, ...] = ("pipes",)
    binds_starts: bool = True
    unannounced: bool = False

    def changes_s(self, now_s):
        return NEVER

    def tightens_s(self, now_s):
        return NEVER


class Plumber(Stages):
    """Stages that state the bounds, or none."""

    def bounds(self, snapshot, site):
        part, n_nodes = site.parts["liquids"], len(snapshot.nodes)
        weights = {"water": np.full(n_nodes, 10), "air": np.arange(n_nodes)}
        return [
            WeightedBound(
                key=name, label=f"bound of {name}", subject=name, unit="l",
                code=ReasonCode.LIMIT, starts_s=np.array([0]),
                upper=np.array([getattr(part, name)]), rest=0,
                floor=np.zeros(n_nodes, np.int64), weight=weight,
                stated=np.zeros(len(snapshot.jobs), np.int64),
                running=np.zeros(len(snapshot.running), np.int64),
                rise=Rise(5, "while it is cold"),
            )
            for name, weight in weights.items()
        ]  # fmt: skip


class Meter(Check):
    """A check that refuses each row on one node."""

    refused = -1

    def rows(self, world, site):
        for row in np.unique(world.entry_row[world.node == self.refused]).tolist():
            yield int(world.rows[row]), "leaks"


LIQUIDS = Extension(
    "liquids", site=Liquids, stages=Face(f"{__name__}:Plumber"), check=Face(f"{__name__}:Meter")
)
MANY = 10**6


@pytest.fixture
def liquids(monkeypatch):
    """Makes `liquids` the only extension, and returns a site with these bounds."""
    there = gathered(points(liquids=LIQUIDS))
    monkeypatch.setattr(extension_packages, "installed", lambda: there)
    return lambda water, air: Site().having("liquids", Liquids(water, air))


def planned(site, jobs):
    snapshot = a_snapshot(nodes=4, jobs=jobs)()
    policy = build(PRESETS["conservative"])
    return run_cycle(snapshot, site, State(), policy, lambda: None).plan


@pytest.mark.parametrize(
    ("water", "air", "starts_s"),
    [(MANY, MANY, [0, 0]), (39, MANY, [0, 100]), (MANY, 5, [0, 100]), (40, 10, [0, 0])],
)
def test_jobs_start_together_only_within_both_bounds(liquids, water, air, starts_s):
    plan = planned(liquids(water, air), [a_job(2, limit_s=100), a_job(2, limit_s=100)])
    assert plan.start_s.tolist() == starts_s


def test_the_reason_names_what_a_job_waits_for(liquids):
    plan = planned(liquids(39, MANY), [a_job(2, limit_s=100), a_job(2, limit_s=100)])
    reason = plan.reasons[1]
    assert (reason.code, reason.text) == (
        ReasonCode.LIMIT, "waits for water: needs 20 l, 19 l are free of 39 l"
    )  # fmt: skip


@pytest.mark.parametrize(("nodes", "code"), [(3, ReasonCode.LIMIT), (4, ReasonCode.NEVER)])
def test_a_job_that_never_fits_may_wait_until_the_bound_rises(liquids, nodes, code):
    plan = planned(liquids(25, NEVER), [a_job(nodes), a_job(2)])
    assert plan.start_s.tolist() == [NEVER, 0]
    reason = plan.reasons[0]
    assert reason.code is code
    assert ("while it is cold" in reason.text) == (code is ReasonCode.LIMIT)


def test_a_bound_that_is_never_in_force_is_not_lowered(liquids):
    snapshot = a_snapshot(nodes=4, jobs=[a_job(), a_job()])()
    assert lower(liquids(NEVER, NEVER), snapshot).bounds == ()
    assert [one.given.key for one in lower(liquids(NEVER, 3), snapshot).bounds] == ["air"]


def test_one_whose_bounds_fail_is_named_and_every_job_waits(liquids, monkeypatch):
    monkeypatch.setattr(Plumber, "bounds", lambda _, snapshot, site: site.parts["ink"])
    site, jobs = liquids(MANY, MANY), [a_job(), a_job()]
    with pytest.raises(ExtensionError, match=r"liquids.*KeyError"):
        planned(site, jobs)
    plan = Decider(build(PRESETS["easy"]), site=site).decide(a_snapshot(jobs=jobs)())
    assert not len(plan.starts_now)
    assert len(plan) == len(jobs)


def test_resources_in_its_rules_that_the_cluster_does_not_have_are_named(liquids):
    assert unknown_to(liquids(1, 1), a_snapshot()()) == ("pipes",)


def test_rows_that_its_check_refuses_make_the_plan_illegal(liquids, monkeypatch):
    monkeypatch.setattr(Meter, "refused", 3)
    jobs, site = [a_job(2), a_job(2)], liquids(MANY, MANY)
    with pytest.raises(InvalidPlan, match="leaks"):
        planned(site, jobs)


@pytest.mark.parametrize(
    ("offered", "text"),
    [
        (replace(LIQUIDS, name="other"), "nothing checks"),
        (replace(LIQUIDS, site=None), "nothing checks"),
        (replace(LIQUIDS, site=int), "another type"),
    ],
)
def test_rules_that_nothing_checks_are_kept_by_no_start(monkeypatch, offered, text):
    snapshot = a_snapshot(nodes=4, jobs=[a_job(2), a_job(2)])()
    plan = planned(Site(), [a_job(2), a_job(2)])
    there = extension_packages.Installed({offered.name: offered})
    monkeypatch.setattr(extension_packages, "installed", lambda: there)
    found = check(snapshot, Site().having("liquids", Liquids(MANY, MANY)), plan)
    assert [one.row for one in found] == [0, 1]
    assert all(text in one.text for one in found)
