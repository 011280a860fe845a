# SPDX-License-Identifier: Apache-2.0
"""Counts of resizes: within an hour, and over restarts of the service."""

import sqlite3

import pytest

from bridge.extensions.elastic.resizing.launchers import Willing
from bridge.extensions.elastic.resizing.resize_memory import ResizeMemory
from bridge.extensions.elastic.resizing.resize_times import MAX_OF_USER, NAME, ResizeTimes
from bridge.extensions.elastic.resizing.runtime import Runtime
from bridge.extensions.elastic.resizing.world import World
from bridge.ports import State
from bridge.state.store import Store
from schedbridge_contracts.builders import a_running_job, a_snapshot

HOUR_S = 3600


def test_changes_count_for_an_hour_and_the_last_one_of_a_job_for_as_long_as_it_runs():
    resize_times = ResizeTimes()
    for at in (1000, 2000, 3000):
        resize_times.begun("70", "ann", at)
    resize_times.begun("7", "an", 3000)
    resize_times.keep(["70", "7"], 1000 + HOUR_S)
    assert [resize_times.of_user(user) for user in ("ann", "an", "anna")] == [2, 1, 0]
    assert [resize_times.of_job(job) for job in ("70", "7", "700")] == [3000, 3000, 0]
    resize_times.keep(["70"], 3000 + HOUR_S)
    assert [resize_times.of_user(user) for user in ("ann", "an")] == [0, 0]
    assert [resize_times.of_job(job) for job in ("70", "7")] == [3000, 0]


def test_users_and_jobs_of_one_name_are_two():
    resize_times = ResizeTimes()
    resize_times.begun("ann", "7", 1000)
    assert (resize_times.of_job("7"), resize_times.of_user("ann")) == (0, 0)


def test_one_user_fills_no_memory():
    resize_times = ResizeTimes()
    resize_times.begun("m", "ann", 1)
    resize_times.recall({"u ann": list(range(2, 2 * MAX_OF_USER))})
    resize_times.begun("m", "ann", 2 * MAX_OF_USER)
    assert resize_times.of_user("ann") == MAX_OF_USER


def test_a_clock_that_is_set_back_and_one_that_was_ahead():
    resize_times = ResizeTimes()
    resize_times.begun("m", "ann", 5000)
    resize_times.set_back(1000)
    assert resize_times.of_job("m") == 4000
    resize_times.recall({"u ann": [9_000_000], "j m": [9_000_000]})  # of a file
    resize_times.keep(["m"], 4100)
    assert (resize_times.of_user("ann"), resize_times.of_job("m")) == (1, 4000)


class Service:
    """What of a service counts resizes, with a memory file."""

    def __init__(self, path):
        self.store = Store(path)
        self.memory = ResizeMemory(self.store.state())
        self.runtime = Runtime(Willing(), lambda job: f"{job}-1")
        self.memory.of(self.runtime.resize_times)
        self.state = self.memory.others
        self.store.watch(lambda: self.memory.put(self.state))

    def see(self, now_s):
        """A report; how often ann's jobs have changed, and when this one did."""
        job = a_running_job((0,), id="m", user="ann", min_nodes=1, max_nodes=4, end_s=100_000)
        world = a_snapshot(nodes=4, now_s=now_s, running=[job])()
        self.state = self.memory.take(self.store.catch_up(self.state))
        self.runtime.see(world)
        shown = self.runtime.overlay(world).running
        return world, int(shown.user_resizes[0]), int(shown.resized_s[0])

    def grow(self, now_s):
        world, _, _ = self.see(now_s)
        self.runtime.begin(World(world), "m", ("n1", "n2"), by_s=0, end_s=0, reason="")

    def stop(self):
        self.store.close()


def test_counts_outlive_the_service(tmp_path):
    path = tmp_path / "memory.sqlite"
    first = Service(path)
    first.grow(1000)
    first.stop()
    second = Service(path)
    assert NAME not in second.state.learnt
    assert second.see(1100)[1:] == (1, 1000)
    assert second.see(1000 + HOUR_S)[1:] == (0, 1000)
    second.stop()
    with sqlite3.connect(path) as database:
        kept = database.execute("SELECT key FROM learnt WHERE predictor = ?", (NAME,)).fetchall()
    assert kept == [("j m",)]


@pytest.mark.parametrize(
    "value", ["[]", "x", '["a"]', "[1e400]", "{}", "[99999999999999999999]", "[9000000000]", "null"]
)
def test_a_damaged_value_harms_no_other(tmp_path, value):
    path = tmp_path / "memory.sqlite"
    first = Service(path)
    first.grow(1000)
    first.runtime.resize_times.begun("x", "bob", 1000)
    first.stop()
    with sqlite3.connect(path) as database:
        database.execute("UPDATE learnt SET value = ? WHERE key = 'u bob'", (value,))
        database.execute("INSERT INTO learnt VALUES (?, 'neither', '[5]')", (NAME,))
    second = Service(path)
    assert second.see(1100)[1:] == (1, 1000)
    assert second.runtime.resize_times.of_user("bob") == 0
    second.stop()


def test_without_changes_nothing_is_kept():
    memory = ResizeMemory(State())
    assert memory.put(State()).learnt == {}
