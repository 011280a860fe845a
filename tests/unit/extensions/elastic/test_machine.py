# SPDX-License-Identifier: Apache-2.0
"""The launcher's decisions in a world that dies, delays and repeats at any point."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.extensions.elastic.launcher import record as r
from bridge.extensions.elastic.launcher.machine import MpiLauncher, StageLimits
from bridge.extensions.elastic.launcher.record import (
    LauncherStage,
    LauncherState,
    from_text,
    to_text,
)
from bridge.extensions.elastic.lines import Grow, Result, Shrink, Withdraw

NODES = ("n1", "n2", "n3", "n4", "n5")


@dataclass
class Process:
    """A step of the fake world."""

    role: str
    nodes: tuple[str, ...]
    env: dict[str, str]
    alive: bool = True
    asked_to_end: bool = False
    code: int = 0


@dataclass
class World:
    """Steps, a program and an agent around a machine; every method is one thing that may happen."""

    engine: str
    tasks: int = 1
    now_s: float = 0.0
    steps: dict[str, Process] = field(default_factory=dict)
    inbox: list[dict] = field(default_factory=list)
    connected: bool = False
    ranks: tuple[str, ...] = ()  # where the program computes
    wanted: dict | None = None  # what it has been asked for
    waiting: bool = False  # at a probe, for an answer to begin
    outcome: object = None  # what it said last
    leaving: list[str] = field(default_factory=list)
    returning: bool = False
    seen: bool = False  # has it introduced itself?
    told: list[object] = field(default_factory=list)  # by the launcher to the agent
    requested: dict[str, object] = field(default_factory=dict)
    granted: dict[str, set] = field(default_factory=dict)
    finished: int | None = None
    crashed: bool = False
    killed: tuple[int, str] = (0, "")  # at the event of this number, before or after it was heard
    events: int = 0

    def __post_init__(self):
        self.machine = MpiLauncher(LauncherState("7", ("n1",), "pmi2"), self.tasks, "/dev/shm/x")
        self.carry_out(self.machine.begin(0.0))
        self.main = next(iter(self.steps))
        self.hello()
        self.event(r.Tested(2, self.engine == "join"))
        self.steps["test-2"].alive = False
        self.event(r.StepEnded("test-2", 0))
        assert self.machine.record.stage is LauncherStage.RUNNING
        self.events = 0

    # -------------------------------------------------------------- the launcher

    def event(self, event, *, dies=""):
        """Tells the launcher; it may die before it has heard, or before it has acted."""
        if self.finished is not None:
            return
        self.events += not isinstance(event, r.Tick)
        if self.events == self.killed[0] and not isinstance(event, r.Tick):
            dies = self.killed[1]
        actions = [] if dies == "before" else self.machine.handle(event, self.now_s)
        if dies:
            self.restart()
        else:
            self.carry_out(actions)

    def restart(self):
        """A new launcher, from what the old one wrote."""
        written = to_text(self.machine.record)
        self.connected = False
        self.machine = MpiLauncher(from_text(written), self.tasks, "/dev/shm/x")
        assert to_text(self.machine.record) == written
        self.carry_out(self.machine.resume(self.now_s))
        for step in self.machine.record.live():  # the code is in its directory
            if not self.steps[step.name].alive:
                self.event(r.StepEnded(step.name, self.steps[step.name].code))
        attach = self.machine.attach()
        if attach is not None and attach.pending is None:
            for change in self.requested.values():
                if change.id not in self.results():
                    self.event(change)

    def carry_out(self, actions):
        for action in actions:
            match action:
                case r.StartStep():
                    if action.name not in self.steps:
                        self.start(action)
                case r.StopStep():
                    self.steps[action.name].asked_to_end = True
                case r.TellApp() if self.connected:
                    self.inbox.append(dict(action.message))
                case r.TellAgent():
                    self.told.append(action.message)
                case r.Finish():
                    assert not any(step.alive for step in self.steps.values())
                    self.finished = action.code

    def start(self, action):
        self.steps[action.name] = Process(action.role, action.nodes, dict(action.env))
        if action.role == "main":
            self.main, self.connected, self.seen = action.name, False, False
            self.returning = bool(dict(action.env)["PARKED"])
            self.ranks = action.nodes
            self.inbox, self.wanted, self.outcome, self.waiting = [], None, None, False

    # -------------------------------------------------------------- the program

    def hello(self):
        """The program connects: at its start, or again."""
        if not self.steps[self.main].alive or self.connected:
            return
        self.connected, self.seen = True, True
        self.event(r.Hello(self.tasks * len(self.ranks), "port", self.seen))
        if self.outcome is not None:
            self.event(self.outcome)

    def probe(self, dies=""):
        """The program comes to a probe, or goes on waiting in one."""
        if not self.steps[self.main].alive or self.finished is not None:
            return
        self.hello()
        if self.returning:
            if any(said["op"] == "start" for said in self.inbox):
                self.returning, self.outcome = False, r.Done(self.steps[self.main].env["ID"])
                self.inbox.clear()
                self.event(self.outcome, dies=dies)
            return
        for said in self.inbox:
            if said["op"] == "adapt":
                self.wanted = said
            elif self.wanted and said.get("id") == self.wanted["id"]:
                if said["op"] == "go" and self.waiting:
                    self.inbox.clear()
                    self.waiting = False
                    self.window(dies)
                    return
                if said["op"] in ("no", "withdraw"):
                    self.wanted, self.waiting = None, False
        self.inbox.clear()
        if self.wanted:
            self.waiting = True
            self.event(r.Begin(self.wanted["id"]), dies=dies)

    def window(self, dies):
        wanted, self.wanted = self.wanted, None
        number, nodes = wanted["id"], tuple(wanted["nodes"])
        change = self.machine.record.change
        assert change is not None
        assert change.id not in self.results(), "it begins what was answered"
        if self.engine == "relaunch":
            self.steps[self.main].asked_to_end = True
            self.outcome = r.Parked(number)
        elif wanted["kind"] == "grow":
            mine = (s for s in self.steps.values() if s.role == "joiner" and s.alive)
            if any(step.env["ID"] == number for step in mine):
                self.ranks = nodes
                self.outcome = r.Done(number)
            else:
                self.outcome = r.Cancelled(number, "Nobody connected.")
        else:
            self.leaving = [number] * (len(self.ranks) - len(nodes)) * self.tasks
            self.outcome = r.Done(number, len(self.leaving))
            self.ranks = nodes
        self.event(self.outcome, dies=dies)

    def leave(self):
        if self.leaving:
            self.event(r.Left(self.leaving.pop()))

    def ready(self, dies=""):
        for step in self.steps.values():
            if step.role == "joiner" and step.alive:
                self.event(r.Ready(step.env["ID"]), dies=dies)
                if dies:
                    self.event(r.Ready(step.env["ID"]))

    def end(self, number, code):
        """A step ends: one that was asked to, or one that fails."""
        live = [name for name, step in self.steps.items() if step.alive]
        requested = [name for name in live if self.steps[name].asked_to_end]
        pick = requested or (live if code else [])
        if pick and self.finished is None:
            name = pick[number % len(pick)]
            self.steps[name].alive = False
            if name == self.main:
                self.connected = False
            if not self.steps[name].asked_to_end:
                self.crashed = True
            self.steps[name].code = 0 if self.steps[name].asked_to_end else code
            self.event(r.StepEnded(name, self.steps[name].code))

    # -------------------------------------------------------------- the agent

    def results(self):
        return {said.id: said for said in self.told if isinstance(said, Result)}

    def open(self):
        return [change for change in self.requested.values() if change.id not in self.results()]

    def grow(self, count, dies=""):
        held = self.machine.record.nodes
        free = [node for node in NODES if node not in held][:count]
        if free and self.finished is None and not self.open():
            change = Grow(f"g{len(self.requested)}", (*held, *free), tuple(free), 10.0)
            self.requested[change.id] = change
            self.event(change, dies=dies)

    def shrink(self, count, dies=""):
        held = self.machine.record.nodes
        rest = held[: max(1, len(held) - count)]
        if rest != held and self.finished is None and not self.open():
            gone = tuple(node for node in held if node not in rest)
            change = Shrink(f"s{len(self.requested)}", rest, gone, 10.0)
            self.requested[change.id] = change
            self.event(change, dies=dies)

    def withdraw(self):
        for change in self.open():
            self.event(Withdraw(change.id))

    def let_pass(self, seconds):
        self.now_s += seconds
        self.event(r.Tick())

    def settle(self):
        """Everybody does what is his to do, until nothing is open."""
        for _ in range(200):
            for step in list(self.steps.values()):
                if step.alive and step.asked_to_end:
                    self.end(0, 0)
            self.hello()
            self.ready()
            self.probe()
            self.leave()
            self.let_pass(0.5)
            if not self.open():
                return
        raise AssertionError(f"for ever in {self.machine.record.stage}: {self.open()}")


DEATHS = st.sampled_from(["", "", "", "before", "after"])
STEPS = st.one_of(
    st.tuples(st.sampled_from(["grow", "shrink"]), st.integers(1, 3), DEATHS),
    st.tuples(st.sampled_from(["withdraw", "hello", "leave", "restart"])),
    st.tuples(
        st.sampled_from(["probe", "ready"]), st.sampled_from(["", "", "", "before", "after"])
    ),
    st.tuples(st.just("let_pass"), st.sampled_from([0.1, 3.0, 11.0, 200.0])),
    st.tuples(st.just("end"), st.integers(0, 5), st.sampled_from([0, 0, 0, 9])),
)


@pytest.mark.parametrize("engine", ["join", "relaunch"])
@given(st.lists(STEPS, max_size=40), st.integers(1, 2))
@settings(max_examples=400, deadline=None)
def test_every_change_is_answered_once_and_truly(engine, script, tasks):
    world = World(engine, tasks)
    for name, *words in script:
        if world.finished is not None:
            break
        getattr(world, name)(*words)
        check(world)
    if world.finished is None:
        world.settle()
        check(world)
    said: dict[str, set] = {}
    for message in world.told:
        if isinstance(message, Result):
            said.setdefault(message.id, set()).add((message.outcome, message.nodes))
    assert set(said) == set(world.requested), "each change has a result"
    assert all(len(versions) == 1 for versions in said.values()), "and never another one"
    if not world.crashed and world.finished is not None:
        assert world.finished == 0


def check(world):
    record = world.machine.record
    if (
        record.stage is LauncherStage.RUNNING
        and world.steps[world.main].alive
        and not world.crashed
    ):
        assert record.nodes == world.ranks, "the launcher knows where the program is"
        joiners = [s for s in world.steps.values() if s.role == "joiner" and s.alive]
        lost = [s for s in joiners if not set(s.nodes) & set(world.ranks)]
        for step in lost:
            ours = step.env["ID"]
            assert step.asked_to_end or world.results(), f"new processes of {ours} are forgotten"
    if record.stage in (LauncherStage.RUNNING, LauncherStage.BOOT, LauncherStage.GOING):
        assert record.deadline_s is None


# ------------------------------------------------------------------ by hand


def test_growth_by_join_tells_the_program_when_the_new_processes_are_ready():
    world = World("join")
    world.grow(2)
    assert world.machine.record.stage is LauncherStage.STARTING
    assert world.steps["joiner-3"].nodes == ("n2", "n3")
    assert [said["op"] for said in world.inbox] == ["test", "start"]
    world.ready()
    assert world.inbox[-1]["op"] == "adapt"
    world.probe()
    world.probe()
    assert world.results()["g0"] == Result("g0", "done", "", ("n1", "n2", "n3"))


def test_a_program_that_never_probes_is_left_as_it_was():
    world = World("join")
    world.grow(1)
    world.ready()
    world.let_pass(10.0)
    assert world.machine.record.stage is LauncherStage.UNDOING
    world.end(0, 0)
    result = world.results()["g0"]
    assert (result.outcome, result.nodes) == ("refused", ("n1",))
    assert "did not come to a probe" in result.reason
    world.probe()
    assert not world.waiting  # it reads the withdrawal before it could begin
    world.grow(1)
    world.settle()
    assert world.results()["g1"].outcome == "done"


@pytest.mark.parametrize("engine", ["join", "relaunch"])
def test_the_record_does_not_grow_with_the_number_of_changes(engine):
    world = World(engine)
    sizes = []
    for _ in range(20):
        world.grow(1)
        world.settle()
        world.shrink(1)
        world.settle()
        for name, step in world.steps.items():
            if step.role == "joiner" and step.alive:  # all of its processes have left
                step.alive = False
                world.event(r.StepEnded(name, 0))
        sizes.append(len(world.machine.record.steps))
    assert all(result.outcome == "done" for result in world.results().values())
    assert len(world.results()) == 40
    assert len(world.steps) > 20
    assert sizes[-1] == sizes[2] <= 4


@pytest.mark.parametrize("at", range(1, 9))
@pytest.mark.parametrize("dies", ["before", "after"])
@pytest.mark.parametrize("engine", ["join", "relaunch"])
def test_a_launcher_that_is_killed_at_any_step_still_does_it(engine, dies, at):
    world = World(engine)
    world.killed = (at, dies)
    world.grow(2)
    if at == 1:
        world.restart()  # nobody has heard the order
    world.settle()
    result = world.results()["g0"]
    assert (result.outcome, result.nodes) == ("done", ("n1", "n2", "n3"))
    assert world.ranks == result.nodes
    assert world.now_s < 10, "without waiting for a deadline"
    assert sum(step.role == "joiner" for step in world.steps.values()) == (engine == "join")


def test_withdrawn_while_the_program_asks_to_begin():
    world = World("relaunch")
    world.grow(1)
    world.inbox = [said for said in world.inbox if said["op"] == "adapt"]
    world.wanted = world.inbox.pop()
    world.waiting = True  # its question is on the way
    world.withdraw()
    assert world.results()["g0"].outcome == "refused"
    world.event(r.Begin("1"))
    assert world.inbox[-1] == {"op": "no", "id": "1"}


def test_too_late_to_withdraw_is_done():
    world = World("join")
    world.grow(1)
    world.ready()
    world.probe()
    world.withdraw()
    assert "g0" not in world.results()
    world.probe()
    assert world.results()["g0"].outcome == "done"


def test_new_processes_that_do_not_start_are_tried_again_and_given_up():
    world = World("join")
    world.grow(1)
    for _ in range(4):
        name = next(reversed(world.steps))
        assert world.steps[name].role == "joiner"
        world.steps[name].alive = False
        world.event(r.StepEnded(name, 164))
    assert world.results()["g0"].outcome == "refused"
    assert "code 164" in world.results()["g0"].reason
    assert world.machine.record.stage is LauncherStage.RUNNING


def test_a_relaunch_that_does_not_come_back_returns_to_the_old_width():
    world = World("relaunch")
    world.grow(1)
    world.probe()
    world.probe()
    world.end(0, 0)
    assert world.ranks == ("n1", "n2")
    world.let_pass(StageLimits().restart_s)
    world.end(0, 0)
    assert world.ranks == ("n1",)
    world.hello()
    world.probe()
    result = world.results()["g0"]
    assert (result.outcome, result.nodes) == ("failed", ("n1",))


def test_a_second_change_meanwhile_is_refused():
    world = World("join")
    world.grow(1)
    world.event(Grow("other", ("n1", "n4"), ("n4",), 5.0))
    assert world.results()["other"].reason == "Another change is under way."


@pytest.mark.parametrize(
    "change",
    [
        Grow("x", ("n2", "n1"), ("n1",), 5.0),
        Grow("x", ("n1", "n2", "n3"), ("n3",), 5.0),
        Shrink("x", ("n1",), ("n4",), 5.0),
    ],
)
def test_a_change_that_does_not_fit_is_refused(change):
    world = World("join")
    world.event(change)
    assert world.results()["x"].outcome == "refused"


def test_withdrawing_what_was_never_asked_is_answered_and_remembered():
    world = World("join")
    world.event(Withdraw("x"))
    world.event(Grow("x", ("n1", "n2"), ("n2",), 5.0))
    assert {said.outcome for said in world.told} == {"refused"}


def test_a_process_that_fails_ends_the_job_with_its_code():
    world = World("join")
    world.grow(1)
    world.settle()
    world.steps["joiner-3"].alive = False
    world.event(r.StepEnded("joiner-3", 9))
    world.let_pass(1.0)
    assert world.steps["main-1"].asked_to_end
    world.end(0, 0)
    assert world.finished == 9


def test_tasks_that_do_not_see_each_other_try_the_next_mpi():
    machine = MpiLauncher(LauncherState("7", ("n1",), "pmi2", ("pmix",)), 2, "/dev/shm/x")
    machine.begin(0.0)
    machine.handle(r.Hello(1), 0.0)
    started = machine.record.steps[-1]
    assert (started.role, machine.record.mpi) == ("main", "pmix")
    machine.handle(r.StepEnded("main-1", 0), 0.0)
    assert machine.record.stage is LauncherStage.BOOT
    machine.handle(r.Hello(1), 0.0)
    actions = machine.handle(r.StepEnded("main-2", 0), 0.0)
    assert actions[-1] == r.Finish(1)


def test_a_self_test_that_hangs_means_relaunch():
    machine = MpiLauncher(LauncherState("7", ("n1",), "pmi2"), 1, "/dev/shm/x")
    machine.begin(0.0)
    machine.handle(r.Hello(1, "port"), 0.0)
    actions = machine.handle(r.Tick(), StageLimits().test_s)
    assert {action.name for action in actions if isinstance(action, r.StopStep)} == {
        "main-1",
        "test-2",
    }
    assert machine.record.engine == "relaunch"
    machine.handle(r.StepEnded("main-1", 137), 41.0)
    machine.handle(r.Hello(1, ""), 42.0)
    assert machine.record.stage is LauncherStage.RUNNING


def test_a_program_without_the_library_is_rigid():
    machine = MpiLauncher(LauncherState("7", ("n1",), "pmi2"), 1, "/dev/shm/x")
    machine.begin(0.0)
    assert machine.attach() is None
    machine.handle(r.Tick(), 1e6)
    assert machine.handle(r.StepEnded("main-1", 3), 1e6)[-1] == r.Finish(3)


def test_a_part_of_the_program_that_came_later_ends_when_it_has_done_its_work():
    world = World("join")
    machine = world.machine
    machine.handle(Grow("g", ("n1", "n2"), ("n2",), 30.0), 1.0)
    machine.handle(r.Ready("1"), 2.0)
    machine.handle(r.Begin("1"), 3.0)
    machine.handle(r.Done("1"), 4.0)
    machine.handle(r.StepEnded(world.main, 0), 5.0)
    assert machine.record.stage is LauncherStage.FINISHING
    for now_s in (100.0, 200.0, 300.0):
        assert machine.handle(r.Tick(), now_s) == []
    assert r.Finish(0) in machine.handle(r.StepEnded(machine.record.joiner, 0), 400.0)


def test_processes_of_a_start_that_failed_are_ended_before_the_next_one():
    world = World("join")
    world.machine.handle(Grow("g", ("n1", "n2"), ("n2",), 30.0), 1.0)
    lost = world.machine.record.joiner
    assert r.StopStep(lost, hard=True) in world.machine.handle(r.StepEnded(lost, 137), 2.0)
