# SPDX-License-Identifier: Apache-2.0
"""The policy `pairs`: progress that hosts report goes before their CPU time."""

import pytest

from bridge.extensions.sharing.part import shared_of
from bridge.model.job import Ending
from schedbridge_contracts.sharing import NOW_S, a_host, a_waiting_job, a_world
from tests.unit.policies.measured_node import Machine, harmful, harmless
from tests.unit.policies.test_share import ended


def test_progress_goes_before_cpu_time():
    """The CPU time of the host does not fall, but its progress does: memory is the bottleneck."""
    machine = Machine(harmless)
    machine.io_bound = True
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    machine.progress(0.1, 0.01, 6)
    assert machine.guest
    machine.jobs = ()
    machine.progress(0.16, 0.005, 8)
    assert not machine.guest
    (gone,) = (plan for plan in machine.plans if len(shared_of(plan).requeues))
    assert shared_of(gone).requeues.reasons[0].startswith("it slows its host down by 100%")


@pytest.mark.parametrize("runs", [0, 5], ids=["unknown application", "known application"])
def test_progress_that_begins_beside_the_guest_hides_no_harm(runs):
    machine = Machine(harmful)
    for _ in range(runs):
        alone = a_host(id="x", start_s=NOW_S - 300, cpu_s=600.0, measured_s=NOW_S)
        machine.cycles.run(a_world([alone], nodes=1))
        machine.cycles.run(a_world([], nodes=1), ended(("x", 300, 500, Ending.COMPLETED)))
    machine.with_guest().progress(0.0, 0.005, 8)
    assert not machine.guest


def test_progress_that_is_told_no_more_hides_no_harm():
    machine = Machine(harmful)
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    machine.progress(0.1, 0.01, 6)
    assert machine.guest
    machine.jobs, machine.extra = (), {}
    machine.step(8)
    assert not machine.guest


@pytest.mark.parametrize("progress", [False, True])
def test_with_progress_only_no_other_job_is_a_host(progress):
    machine = Machine(harmless, share={"name": "pairs", "progress_only": True})
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    if progress:
        machine.progress(0.1, 0.01, 8)
    else:
        machine.step(8)
    assert machine.guest == progress


def test_with_progress_only_a_host_that_reports_none_any_more_loses_its_guest():
    machine = Machine(harmless, share={"name": "pairs", "progress_only": True})
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    machine.progress(0.1, 0.01, 6)
    assert machine.guest
    machine.jobs, machine.extra = (), {}
    machine.step(8)
    assert not machine.guest


@pytest.mark.parametrize("every", [1, 12], ids=["it stands at 0", "it moves once a minute"])
def test_progress_that_says_nothing_of_seconds_leaves_cpu_time_in_force(every):
    machine = Machine(harmful)
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    for step in range(40):
        machine.extra = {"progress": 0.0 if every == 1 else 0.02 * (step // every)}
        machine.step()
        if machine.guest:
            machine.jobs = ()
    assert any(len(shared_of(plan).guest_starts) for plan in machine.plans)
    assert not machine.guest


def test_progress_alone_counts_from_its_first_change():
    """The start-up without progress does not make the rate alone look small."""
    machine = Machine(harmless)
    machine.io_bound = True
    machine.progress(0.0, 0.0, 40)
    machine.progress(0.0, 0.01, 10)
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    machine.progress(0.10, 0.01, 1)
    assert machine.guest
    machine.jobs = ()
    machine.progress(0.11, 0.005, 8)
    assert not machine.guest
