# SPDX-License-Identifier: Apache-2.0
"""Several guests of one host: who of them is to blame, and for how long."""

from dataclasses import replace

import pytest

from bridge.extensions.sharing.histories import History, application, history_key
from bridge.extensions.sharing.interference.monitor import PairMonitor
from bridge.extensions.sharing.left_hosts import PAUSE_S, LeftHosts
from bridge.extensions.sharing.pair_knowledge import CEILINGS, Entry, pair_key
from bridge.extensions.sharing.part import shared_of
from bridge.extensions.sharing.site_harm import MIN, SiteHarm
from bridge.extensions.sharing.slowdown import Rate
from bridge.model.job import Ending
from bridge.model.learnt import Learning, Learnt
from bridge.ports import State
from schedbridge_contracts.sharing import NOW_S, a_guest, a_host, a_waiting_job, a_world
from tests.unit.policies.test_share import Cycles, ended

HOST = application("user", "host", 2)


def monitored(cpu_s, unused=(), steps=4):
    """A host of two nodes beside two guests, each of which has used so much CPU time by the end."""
    learning = Learning(Learnt())
    for step in range(1, steps + 1):
        now_s = NOW_S + 10 * step
        running = [
            a_host((0, 1), busy_cpus=2.0, cpu_s=20.0 * step, measured_s=now_s, unused_nodes=unused)
        ]
        for node, used_s in enumerate(cpu_s):
            running.append(
                a_guest((node,), host_id="h0", name=f"guest{'ab'[node]}", measured_s=now_s,
                        cpu_s=used_s * (step - 1) / (steps - 1), start_s=NOW_S, own_cpus=4)
            )  # fmt: skip
        monitor = PairMonitor(a_world(running, now_s=now_s), learning, Learning(Learnt()))
        monitor.learn()
        if step == 1:
            for guest in (1, 2):
                apps = monitor.pairs.pair_apps(guest)
                monitor.measurements.begin(str(monitor.snapshot.running.id[guest]), 0, apps, 50)
    return monitor, learning


@pytest.mark.parametrize(
    ("cpu_s", "unused", "blame"),
    [
        ((30.0, 10.0), (), [0.75, 0.25]),
        ((0.0, 0.0), (), [0.5, 0.5]),
        ((1.0, 90.0), (1,), [1.0, 0.0]),
        ((10.0, 30.0), (0, 1), [0.25, 0.75]),
    ],
    ids=["by CPU time", "nothing used", "where the host has no process", "nowhere near"],
)
def test_what_a_host_loses_is_laid_on_guests(cpu_s, unused, blame):
    monitor, _ = monitored(cpu_s, unused)
    assert [monitor.estimates.blame(guest) for guest in (1, 2)] == pytest.approx(blame, abs=0.01)


def test_a_whole_run_is_laid_on_guests_by_their_part():
    _, learning = monitored((30.0, 10.0))
    learning.known[history_key(HOST)] = History(5, 100.0, 80.0, 500).numbers()
    world = a_world([], now_s=NOW_S + 50)
    gone = ended(("h0", 100, 500, Ending.COMPLETED))
    PairMonitor(replace(world, ended=gone), learning, Learning(Learnt())).learn()
    harm = {}
    for name in ("guesta", "guestb"):
        entry = Entry.of_numbers(learning.known.get(pair_key(HOST, application("user", name, 1))))
        harm[name] = entry.seen[CEILINGS.index(50)].harm
    assert harm["guesta"] > 2 * harm["guestb"] > 0


@pytest.mark.parametrize(
    ("history", "learnt"),
    [
        (History(5, 100.0, 80.0, 500, 6.0), True),
        (History(5, 100.0, 80.0, 500, 60.0), False),
        (History(2, 100.0, 80.0, 500), False),
    ],
    ids=["alike", "differ", "two runs"],
)
def test_a_longer_run_is_harm_only_if_runs_alone_are_alike(history, learnt):
    monitor, learning = monitored((30.0, 10.0))
    learning.known[history_key(HOST)] = history.numbers()
    host_s = replace(monitor.snapshot.running, start_s=monitor.snapshot.running.start_s - 60)
    late = PairMonitor(replace(monitor.snapshot, running=host_s), learning, Learning(Learnt()))
    unmeasured = replace(monitor.records.pair(1), rates=(Rate(0, 0, 0), Rate(1, 0, 0)))
    found = late.estimates.slowdown(1, unmeasured)
    assert (found is not None and found.at_least > 0.1) == learnt
    gone = ended(("h0", 100, 500, Ending.COMPLETED))
    after = replace(a_world([], now_s=NOW_S + 50), ended=gone)
    PairMonitor(after, learning, Learning(Learnt())).learn()
    entry = Entry.of_numbers(learning.known.get(pair_key(HOST, application("user", "guesta", 1))))
    assert entry.seen[CEILINGS.index(50)].count == 1 + learnt  # the pair's end is the other one


def test_the_share_of_the_cpus_that_a_host_uses_is_that_of_its_used_nodes():
    monitor, _ = monitored((0.0, 0.0), (1,))
    assert monitor.pairs.busy(0) == pytest.approx(0.25)
    assert monitor.pairs.busy(0, [0]) == pytest.approx(0.5)
    assert monitor.pairs.busy(0, [1]) == 0


def test_harm_counts_by_the_time_that_it_lasted():
    learning = Learning(Learnt())
    for _ in range(5):
        SiteHarm(learning).add("ann", 0.2, 10)
        SiteHarm(learning).add("ann", 0.0, 590)
    assert SiteHarm(learning).mean == pytest.approx(0.2 * 10 / 600, abs=1e-4)
    for _ in range(100):
        SiteHarm(learning).add("ann", 0.2, 10)
        SiteHarm(learning).add("ann", 0.0, 590)
        assert not SiteHarm(learning).users_above(0.05)
    sure = Learning(Learnt())
    SiteHarm(sure).add("eve", 0.2, 3600)
    for _ in range(MIN):
        SiteHarm(sure).add("eve", 0.2, 1)
    assert SiteHarm(sure).count < 2  # one long observation and some short ones are one
    assert not SiteHarm(sure).users_above(0.05)


def test_pauses_of_guests_outlive_the_service():
    """What is stored of a state is `known`; nothing else is there after a restart."""
    cycles = Cycles("pairs")
    host, guest = a_host(memory_stall=0.5), a_guest(requeue=True)
    assert shared_of(cycles.run(a_world([host, guest]))).requeues.id.tolist() == ["g0"]
    stored = {name: Learnt(known=learnt.known) for name, learnt in cycles.state.learnt.items()}
    cycles.state = State(learnt=stored)
    waits = a_waiting_job(id="g0", cpus=4)
    for at_s, starts in ((10, 0), (20, 0), (30, 0), (PAUSE_S - 10, 0), (PAUSE_S + 10, 1)):
        now_s = NOW_S + at_s
        other = a_host(id="h1", name="other", measured_s=now_s, cpu_s=100.0 + at_s, busy_cpus=1.0)
        plan = cycles.run(a_world([other], [waits], nodes=1, now_s=now_s))
        assert len(shared_of(plan).guest_starts) == starts, at_s
    left = Learning(cycles.state.learnt_by("guests-sent-away"))
    assert LeftHosts(left, now_s).may_be_guest("user", "other")
