# SPDX-License-Identifier: Apache-2.0
"""The policy `pairs`: a host whose time limit its guest could make it miss has none."""

from dataclasses import replace

import pytest

from bridge.extensions.sharing.part import shared_of
from bridge.extensions.sharing.rules import sharing_rules, with_sharing
from bridge.model.job import Ending
from schedbridge_contracts.sharing import NOW_S, SHARING, a_host, a_waiting_job, a_world
from tests.unit.policies.measured_node import (
    Machine,
    harmless,
)
from tests.unit.policies.test_share import ended


def test_a_host_that_would_not_end_within_its_limit_is_left_alone():
    """At 1 % in 5 s it needs 450 s from the start; 220 s are left."""
    machine = Machine(harmless, host={"end_s": NOW_S + 220})
    machine.jobs = (a_waiting_job(id="g0", cpus=4, limit_s=50),)
    machine.progress(0.1, 0.01, 10)
    assert not any(len(shared_of(plan).guest_starts) for plan in machine.plans)


@pytest.mark.parametrize(
    ("keep_limits", "runs", "progress", "starts"),
    [
        (False, 0, False, True),
        (True, 0, False, False),
        (True, 2, False, False),
        (True, 3, False, True),
        (True, 0, True, True),
    ],
)
def test_with_limits_kept_a_host_of_unknown_need_gets_no_guest(keep_limits, runs, progress, starts):
    machine = Machine(harmless, share={"name": "pairs", "keep_limits": keep_limits})
    for _ in range(runs):
        alone = a_host(id="x", start_s=NOW_S - 300, cpu_s=600.0, measured_s=NOW_S)
        machine.cycles.run(a_world([alone], nodes=1))
        machine.cycles.run(a_world([], nodes=1), ended(("x", 300, 500, Ending.COMPLETED)))
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    for step in range(12):
        machine.extra = {"progress": 0.1 + 0.01 * step} if progress else {}
        machine.step()
    assert any(len(shared_of(plan).guest_starts) for plan in machine.plans) == starts


@pytest.mark.parametrize(("keep_limits", "used_s", "leaves"), [
    (True, 800, True), (True, 640, False), (False, 800, False),
])  # fmt: skip
def test_with_limits_kept_a_guest_leaves_a_host_that_needs_more_than_its_runs_alone(
    keep_limits, used_s, leaves
):
    """Three runs alone took 600 s of CPU time each; 5 % of noise make at most 657 s."""
    machine = Machine(harmless, share={"name": "pairs", "keep_limits": keep_limits})
    for _ in range(3):
        alone = a_host(id="x", start_s=NOW_S - 300, cpu_s=600.0, measured_s=NOW_S)
        machine.cycles.run(a_world([alone], nodes=1))
        machine.cycles.run(a_world([], nodes=1), ended(("x", 300, 500, Ending.COMPLETED)))
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    while not machine.guest:
        machine.step()
    machine.jobs = ()
    machine.work_s = float(used_s)
    machine.plans.clear()
    machine.step()
    reasons = [reason for plan in machine.plans for reason in shared_of(plan).requeues.reasons]
    assert any("within its time limit" in reason for reason in reasons) == leaves


def test_a_guest_leaves_a_host_that_it_would_keep_from_ending_in_time():
    site = with_sharing(SHARING, replace(sharing_rules(SHARING)[0], max_slowdown=1.0))
    machine = Machine(harmless, site=site, host={"end_s": NOW_S + 600})
    machine.jobs = (a_waiting_job(id="g0", cpus=4, limit_s=50),)
    done = 0.5
    while not machine.guest:
        machine.progress(done, 0.01, 1)
        done += 0.01
    machine.jobs = ()
    machine.progress(done, 0.001, 5)
    (gone,) = (plan for plan in machine.plans if len(shared_of(plan).requeues))
    assert "would not end within its time limit" in shared_of(gone).requeues.reasons[0]
