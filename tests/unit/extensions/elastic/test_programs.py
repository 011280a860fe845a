# SPDX-License-Identifier: Apache-2.0
"""Programs without MPI: what the launcher decides."""

import pytest

from bridge.extensions.elastic.launcher import record as r
from bridge.extensions.elastic.launcher.programs import ProgramMachine
from bridge.extensions.elastic.launcher.record import (
    LauncherStage,
    LauncherState,
    from_text,
    to_text,
)
from bridge.extensions.elastic.lines import Grow, Result, Shrink, Withdraw


class World:
    """A machine, and what it has asked for."""

    def __init__(self, workers=True, connected=False):
        self.machine = ProgramMachine(
            LauncherState("7", ("n1",), "none", engine="program"), 1, "/dev/shm/x", workers=workers
        )
        self.out = self.machine.begin(0.0)
        if connected:
            self.tell(r.Hello(1))

    @property
    def record(self):
        return self.machine.record

    def tell(self, event, at_s=0.0):
        made = self.machine.handle(event, at_s)
        self.out += made
        return made

    def results(self):
        return [a.message for a in self.out
                if isinstance(a, r.TellAgent) and isinstance(a.message, Result)]  # fmt: skip

    def where(self):
        return sorted(step.nodes[0] for step in self.record.live("worker") if not step.stopped)


GROW = Grow("g", ("n1", "n2", "n3"), ("n2", "n3"), 10.0)
SHRINK = Shrink("s", ("n1", "n3"), ("n2",), 10.0)


def wide(connected=False):
    world = World(connected=connected)
    world.tell(GROW)
    if connected:
        world.tell(r.Begin("1"))
        world.tell(r.Done("1"))
    assert world.record.nodes == ("n1", "n2", "n3")
    return world


def test_workers_are_started_wherever_there_are_nodes():
    world = wide()
    assert world.where() == ["n1", "n2", "n3"]
    assert world.results() == [Result("g", "done", "", ("n1", "n2", "n3"))]
    assert r.Notify("main-1") in world.out


def test_it_attaches_at_once():
    attach = World().machine.attach()
    assert (attach.engine, attach.nodes) == ("program", ("n1",))


def test_workers_end_before_their_node_goes():
    world = wide()
    world.tell(SHRINK)
    assert world.where() == ["n1", "n3"]
    assert len(world.results()) == 1, "its worker still finishes a task"
    world.tell(r.StepEnded("worker-3", 0))
    assert world.results()[1] == Result("s", "done", "", ("n1", "n3"))


def test_a_worker_that_does_not_end_keeps_its_node_and_is_replaced_later():
    world = wide()
    world.tell(SHRINK)
    world.tell(r.Tick(), 10.0)
    assert world.results()[1].outcome == "refused"
    assert world.record.nodes == ("n1", "n2", "n3")
    assert world.where() == ["n1", "n3"]
    world.tell(r.StepEnded("worker-3", 0), 60.0)
    assert world.where() == ["n1", "n2", "n3"]


def test_a_connected_program_is_asked_before_its_workers():
    world = wide(connected=True)
    world.tell(SHRINK)
    assert world.where() == ["n1", "n2", "n3"]
    world.tell(r.Begin("2"))
    world.tell(r.Done("2"))
    assert world.where() == ["n1", "n3"]
    world.tell(r.Tick(), 100.0)
    assert r.StopStep("worker-3", hard=True) in world.out
    world.tell(r.StepEnded("worker-3", 137), 101.0)
    assert world.results()[1].outcome == "done"


def test_a_connected_program_may_refuse_or_not_answer():
    world = wide(connected=True)
    world.tell(SHRINK)
    world.tell(r.Cancelled("2", "I need it."))
    assert world.results()[1] == Result("s", "refused", "I need it.", ("n1", "n2", "n3"))
    world.tell(Shrink("t", ("n1", "n3"), ("n2",), 10.0))
    world.tell(r.Tick(), 10.0)
    assert "did not come to a probe" in world.results()[2].reason
    assert world.where() == ["n1", "n2", "n3"]


def test_a_growth_that_is_withdrawn_ends_the_new_workers_first():
    world = World(connected=True)
    world.tell(GROW)
    world.tell(Withdraw("g"))
    assert world.where() == ["n1"]
    assert not world.results()
    world.tell(r.StepEnded("worker-3", 0))
    world.tell(r.StepEnded("worker-4", 0))
    assert world.results() == [Result("g", "refused", "It was withdrawn.", ("n1",))]


def test_the_job_ends_with_the_program():
    world = wide()
    world.tell(r.StepEnded("main-1", 3))
    assert world.where() == []
    for name in ("worker-2", "worker-3", "worker-4"):
        world.tell(r.StepEnded(name, 143))
    assert world.out[-1] == r.Finish(3)


def test_a_worker_that_fails_is_the_programs_matter():
    world = wide()
    world.tell(r.StepEnded("worker-3", 1))
    assert world.record.stage is LauncherStage.RUNNING


@pytest.mark.parametrize("connected", [False, True])
def test_a_launcher_that_is_killed_goes_on(connected):
    world = wide(connected)
    world.tell(SHRINK)
    again = ProgramMachine(from_text(to_text(world.record)), 1, "/dev/shm/x", workers=True)
    repeated = {a.name for a in again.resume(0.0) if isinstance(a, r.StartStep)}
    assert repeated == {"main-1", "worker-2", "worker-3", "worker-4"}
    assert again.record.stage is (LauncherStage.REQUESTED if connected else LauncherStage.LEAVING)


def test_a_worker_that_ends_during_the_next_change_is_replaced_where_its_node_stays():
    world = wide()
    world.tell(SHRINK)
    world.tell(r.Tick(), 10.0)
    world.tell(Shrink("t", ("n1", "n2"), ("n3",), 10.0), 20.0)
    assert world.record.stage is LauncherStage.LEAVING
    world.tell(r.StepEnded("worker-3", 0), 21.0)
    assert world.where() == ["n1", "n2"]
    world.tell(r.StepEnded("worker-4", 0), 22.0)
    assert world.results()[-1] == Result("t", "done", "", ("n1", "n2"))
    assert world.where() == ["n1", "n2"]
