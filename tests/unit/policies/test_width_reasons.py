# SPDX-License-Identifier: Apache-2.0
"""Why running malleable jobs keep or change their widths, as the policies say."""

import dataclasses

import pytest

from bridge.model.decisions.width_reasons import WidthCode
from bridge.model.job import WidthRule
from bridge.registry import build, parse_policy
from schedbridge_contracts.builders import a_job, a_running_job
from schedbridge_contracts.cycles import Memory, a_site, run
from tests.unit.policies.test_reshape import a_world, malleable

POLICIES = ["malleable", "malleable-performance", "fpsma"]


def said(world, preset="malleable", **settings):
    """Job id to code, and the plan."""
    plan = run(world, Memory(), build(parse_policy(preset)), **settings)
    found = {reason.job_id: reason for reason in plan.widths}
    assert len(found) == len(plan.widths)
    return found


def full(*jobs, nodes=16, **more):
    """With all other nodes in use."""
    held = {node for job in jobs for node in job.nodes}
    rest = tuple(node for node in range(nodes) if node not in held)
    return a_world(*jobs, a_running_job(rest, end_s=5000), nodes=nodes, **more)


@pytest.mark.parametrize("preset", POLICIES)
class TestAllPolicies:
    def test_a_job_that_grows_says_to_how_many_nodes(self, preset):
        reason = said(a_world(malleable(range(4), id="m", maximum=8)), preset)["m"]
        assert (reason.code, reason.nodes) == (WidthCode.GROWS, 8)

    def test_a_job_that_shrinks_says_so(self, preset):
        world = full(malleable(range(8), id="m", requested_nodes=8), jobs=[a_job(nodes=4)])
        reason = said(world, preset)["m"]
        assert reason.code == WidthCode.SHRINKS
        assert 1 <= reason.nodes <= 4

    def test_rigid_jobs_have_no_reason(self, preset):
        assert said(a_world(a_running_job(id="r")), preset) == {}

    @pytest.mark.parametrize(
        ("job", "code"),
        [
            (malleable(range(4), id="m"), WidthCode.NO_IDLE_NODES),
            (malleable(range(4), id="m", maximum=4), WidthCode.WIDEST),
            (malleable(range(4), id="m", maximum=7, rule=WidthRule.POF2), WidthCode.WIDEST),
            (malleable(range(4), id="m", adapting=True), WidthCode.ADAPTING),
            (
                dataclasses.replace(malleable(range(4), id="m"), end_s=15),
                WidthCode.ENDS_SOON,
            ),
        ],
    )
    def test_without_idle_nodes(self, preset, job, code):
        assert said(full(job), preset)["m"].code == code

    def test_too_few_idle_nodes_for_the_next_width(self, preset):
        job = malleable(range(4), id="m", maximum=8, rule=WidthRule.POF2)
        others = a_running_job(tuple(range(7, 16)), end_s=5000)
        reason = said(a_world(job, others), preset)["m"]
        assert (reason.code, reason.nodes) == (WidthCode.TOO_FEW_NODES, 8)

    def test_what_a_rule_of_the_site_forbids(self, preset):
        site = a_site({"limits": [{"user": "user", "resource": "cpus", "items": 20}]})
        reason = said(a_world(malleable(range(4), id="m")), preset, site=site)["m"]
        assert reason.code == WidthCode.RULE


def test_one_at_a_time_is_a_rule_of_the_papers_policies_only():
    world = full(malleable(range(4), id="m"), malleable((5, 6), id="a", adapting=True))
    assert said(world, "fpsma")["m"].code == WidthCode.OTHER_ADAPTS
    assert said(world, "malleable")["m"].code == WidthCode.NO_IDLE_NODES


def test_a_job_that_has_just_changed_says_until_when():
    job = malleable(range(4), id="m", requested_nodes=4, resized_s=90)
    world = dataclasses.replace(a_world(job, nodes=8), now_s=110)
    reason = said(world)["m"]
    assert (reason.code, reason.until_s) == (WidthCode.TOO_SOON, 150)


def test_nodes_that_waiting_jobs_are_promised_are_not_lent():
    blocker = a_running_job((4, 5), end_s=40)
    job = malleable(range(4), id="m", requested_nodes=4, minimum=4)
    world = a_world(job, blocker, jobs=[a_job(nodes=4, limit_s=900)], nodes=8)
    assert said(world)["m"].code == WidthCode.PLANNED_NODES


def test_a_job_that_only_communicates_gains_nothing():
    world = a_world(malleable(range(4), id="m"), mtct=[50.0])
    assert said(world)["m"].code == WidthCode.NO_GAIN


def test_others_that_gain_more_go_first():
    parallel = malleable(range(4), id="p", requested_nodes=4, maximum=8)
    serial = malleable(range(4, 8), id="s", requested_nodes=4, maximum=8)
    found = said(a_world(parallel, serial, nodes=12, mtct=[0.0, 0.9]))
    assert found["p"].code == WidthCode.GROWS
    assert found["s"].code in {WidthCode.OTHERS_FIRST, WidthCode.NO_GAIN}
