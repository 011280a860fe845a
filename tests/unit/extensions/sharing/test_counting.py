# SPDX-License-Identifier: Apache-2.0
"""CPUs of a host and its guest are counted once, whichever of them ends first."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bridge.extensions.sharing.counting import as_reported, counted_once, pairs
from schedbridge_contracts.builders import a_running_job, a_snapshot

CPUS = 4


def a_pair(host_end_s=100, guest_end_s=50, host_cpus=CPUS, guest_cpus=2, **guest):
    guest = {"host_id": "h", "mem_mib": 10} | guest
    return a_snapshot(
        nodes=3,
        running=[
            a_running_job((0, 1), host_end_s, shared=True, cpus=host_cpus, id="h", max_nodes=3,
                          mem_mib=1000),
            a_running_job((0, 1), guest_end_s, shared=True, cpus=guest_cpus, id="g", **guest),
        ],
    )().running  # fmt: skip


def busy_cpus(running, at_s):
    """CPUs in use on each node, by the table alone."""
    found = np.zeros(3, dtype=np.int64)
    for row in range(len(running)):
        if running.end_s[row] > at_s:
            own = slice(running.indptr[row], running.indptr[row + 1])
            np.add.at(found, running.nodes[own], running.use[own, 0])
    return found.tolist()


def test_a_table_without_guests_is_left_as_it_is():
    running = a_snapshot(running=[a_running_job((0,))])().running
    assert counted_once(running) is running


def test_a_guest_that_ends_first_frees_no_cpu():
    running = counted_once(a_pair())
    assert busy_cpus(running, 0) == [4, 4, 0]
    assert busy_cpus(running, 60) == [4, 4, 0]
    assert busy_cpus(running, 100) == [0, 0, 0]


def test_a_guest_whose_host_ends_first_keeps_its_own():
    running = counted_once(a_pair(guest_end_s=300))
    assert busy_cpus(running, 0) == [4, 4, 0]
    assert busy_cpus(running, 100) == [2, 2, 0]


def test_a_guest_is_nobodys_host():
    """Neither in a chain nor in a ring; but once its own host is gone, it may be one."""

    def running(**hosts):
        jobs = [a_running_job((0,), id=job, host_id=host) for job, host in hosts.items()]
        return a_snapshot(nodes=1, running=jobs)().running

    assert pairs(running(a="", b="a", c="b")) == {1: 0}
    assert pairs(running(a="b", b="a")) == {}
    assert pairs(running(a="a")) == {}
    assert pairs(running(b="gone", c="b")) == {1: 0}


def test_memory_is_never_shared():
    running = counted_once(a_pair())
    assert running.use[:, 1].tolist() == [1000, 1000, 10, 10]


def test_neither_of_them_is_resized():
    assert not counted_once(a_pair()).malleable.any()


def test_without_its_host_a_guest_is_an_ordinary_job():
    running = counted_once(a_pair(host_id="gone"))
    assert not running.host_id.any()
    assert busy_cpus(running, 0) == [6, 6, 0]
    assert pairs(running) == {}


def test_nobody_is_the_guest_of_himself():
    assert pairs(a_pair(host_id="g")) == {}


@given(
    st.integers(1, 200), st.integers(1, 200), st.integers(1, CPUS), st.integers(1, CPUS),
    st.integers(1, 200), st.integers(1, 200),
)  # fmt: skip
def test_at_every_instant_the_larger_of_the_two_is_held(host_s, guest_s, host, guest, later, last):
    raw = a_pair(host_s, guest_s, host, guest)
    once = counted_once(raw)
    again = counted_once(replace(once, end_s=np.array([later, last], dtype=np.int64)))
    for running, ends in ((once, (host_s, guest_s)), (again, (later, last))):
        for at_s in {0, *ends, *(end - 1 for end in ends)}:
            alive = [cpus for cpus, end in zip((host, guest), ends, strict=True) if end > at_s]
            held = busy_cpus(running, at_s)[0]
            if len(alive) == 2:
                assert held == max(host, guest)
            elif ends[1] > ends[0]:  # the guest remains
                assert held == (guest if alive else 0)
            elif host >= guest:
                assert held == sum(alive)
    if host >= guest:
        assert as_reported(again).tolist() == raw.use.tolist()
