# SPDX-License-Identifier: Apache-2.0
"""One run: a script played to its end on a model of the cluster and the real service."""

import functools
import logging
import os
import random
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bridge.registry import PRESETS, build, parse_policy
from bridge.rpc.pb import scheduler_pb2 as pb
from tests.simulation.whole import script as scripts
from tests.simulation.whole.cluster import Cluster, Job, Node, Partition, Reservation, names_in
from tests.simulation.whole.disk import Disk
from tests.simulation.whole.history import History
from tests.simulation.whole.host import Host, one_thread
from tests.simulation.whole.network import FAIR, Network, Weather
from tests.simulation.whole.plugin import CALM_TICK_MS, TICK_MS, Plugin
from tests.simulation.whole.schedule import Schedule
from tests.simulation.whole.script import STORM_MS, Script, Step
from tests.simulation.whole.untrue import spoil

CALM_MS = STORM_MS + 600_000
"""When the last fault is mended."""

QUIET_MS = 8 * 3600_000
"""So long after the last fault everything must have come to its end."""

LEASES_MS = 180_000
"""Longer than a controller that is silent keeps another one out."""

MOST_EVENTS = 12_000


@dataclass(frozen=True)
class Outcome:
    """What a run came to."""

    script: Script
    history: History


def play(script: Script) -> Outcome:
    """Plays a script."""
    _load_all()
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with tempfile.TemporaryDirectory(prefix="sb-run-", dir=_quick_disk()) as home:
            return _Run(script, Path(home)).play()
    finally:
        logging.disable(before)


@functools.cache
def _load_all() -> None:
    """Loads every module before its clock is replaced."""
    for policy in scripts.POLICIES:
        build(parse_policy(policy))
    for preset in PRESETS.values():
        build(preset)


def _quick_disk() -> str | None:
    """Memory, where there is such a file system: nothing here asks whether a disk is real."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class _Run:
    def __init__(self, script: Script, home: Path) -> None:
        self.script = script
        self.schedule = Schedule()
        self.history = History()
        self.disk = Disk(home)
        self.cluster = Cluster(self.schedule, self.history)
        self.network = Network(script.seed, self.schedule, self.history, script.base_ms)
        self.host = Host(
            self.schedule, self.history, self.disk, policy=script.policy, rules=script.rules,
            seed=script.seed,
        )  # fmt: skip
        self.network.serve = self.host.serve
        self.dice = random.Random(f"run {script.seed}")
        self.calls = 0
        self.plugin: Plugin | None = None
        self.others: list[Plugin] = []
        self.restarting = False

    def play(self) -> Outcome:
        script, cluster = self.script, self.cluster
        with one_thread(self.host.clock, self.disk):
            self._note("begin", seed=script.seed, winds=list(script.winds), rules=script.rules,
                       policy=script.policy, memory_counts=script.memory_counts)  # fmt: skip
            cluster.memory_counts, cluster.clean_ms = script.memory_counts, script.clean_ms
            for name, cpus, memory, features in script.nodes:
                cluster.put_node(Node(name, cpus, memory, features))
            for name, nodes, most_s, exclusive in script.partitions:
                cluster.put_partition(Partition(name, nodes, True, most_s, exclusive))
            cluster.put_licences(script.licences)
            self.host.boot()
            self._start_controller()
            for step in script.steps:
                self.schedule.at(step.at_ms, self._doing(step))
            self.schedule.at(CALM_MS, self._calm)
            events = 0
            while not self._over() and events < MOST_EVENTS and self.schedule.step():
                events += 1
            self._note("over", events=events, orderly=self._settled())
            if self.host.up:
                self.host.stop()
        self.disk.release()
        return Outcome(script, self.history)

    def _note(self, kind: str, **what: Any) -> None:
        self.history.add(self.schedule.now_ms, kind, **what)

    def _settled(self) -> bool:
        return all(
            job.state == "pending" and (job.held or job.told_s == 0)
            for job in self.cluster.jobs.values()
        )

    def _over(self) -> bool:
        if self.schedule.now_ms < CALM_MS + 1_000:
            return False
        if self.schedule.now_ms > CALM_MS + QUIET_MS:
            return True
        return not any(job.state != "pending" or not job.held for job in self.cluster.jobs.values())

    def _doing(self, step: Step) -> Any:
        return lambda: getattr(self, f"_do_{step.kind}")(**step.what)

    # ------------------------------------------------------------ the controller

    def _count(self) -> int:
        self.calls += 1
        return self.calls

    def _start_controller(self) -> None:
        self.restarting = False
        cluster = self.cluster
        self.plugin = Plugin(
            "main", cluster.clock.time_ns() // 1000, cluster=cluster, network=self.network,
            schedule=self.schedule, history=self.history, calls=self._count,
        )  # fmt: skip
        self._set_tick()
        cluster.changed = self.plugin.changed

    def _do_controller(self, again_ms: int) -> None:
        if self.restarting or self.plugin is None:
            return
        self.restarting = True
        self.plugin.stop()
        self.cluster.changed = lambda: None
        self.schedule.after(again_ms, self._start_controller)

    def _do_second(self, epoch: str, for_ms: int) -> None:
        own = self.cluster.clock.time_ns() // 1000
        number = {"newer": own, "older": own - 10**9, "absurd": 2**64 - 1}[epoch]
        other = Plugin(
            f"second-{epoch}", number, cluster=self.cluster, network=self.network,
            schedule=self.schedule, history=self.history, calls=self._count, active=False,
        )  # fmt: skip
        other.tick_ms = TICK_MS
        self.others.append(other)
        self._set_tick()
        self.schedule.after(for_ms, other.stop)
        self.schedule.after(for_ms + LEASES_MS, self._set_tick)

    def _set_tick(self) -> None:
        """While there are two of them, and a while longer, the controller calls as a real one."""
        now = self.schedule.now_ms
        for step in self.script.steps:
            if step.kind == "second" and step.at_ms <= now < step.at_ms + step.what["for_ms"] + (
                LEASES_MS
            ):
                self._tick(TICK_MS)
                return
        self._tick(CALM_TICK_MS)

    def _tick(self, tick_ms: int) -> None:
        if self.plugin is not None:
            self.plugin.tick_ms = tick_ms
            self.plugin.look(tick_ms)

    def _do_untrue(self, which: str, times: int) -> None:
        if self.plugin is None:
            return
        left = times

        def untrue(request: Any) -> str:
            nonlocal left
            if left <= 0:
                return ""
            done = spoil(request, which, self.dice)
            left -= bool(done)
            return done

        self.plugin.untrue = untrue

    def _do_race(self, which: str) -> None:
        """Strikes the next start that the service decides, before the controller hears of it."""

        def strike(method: str, answer: bytes) -> None:
            if method != "Cycle":
                return
            for decision in pb.CycleReply.FromString(answer).decisions:
                job = self.cluster.jobs.get(decision.job_id)
                if decision.WhichOneof("action") == "start" and job is not None:
                    self.network.under_way = lambda method, answer: None
                    self._note("race", which=which, job=decision.job_id)
                    self._strike(which, decision)
                    return

        self.network.under_way = strike

    def _strike(self, which: str, decision: pb.Decision) -> None:
        cluster, job_id, start = self.cluster, decision.job_id, decision.start
        again_ms = self.dice.randrange(1_000, 60_000)
        match which:
            case "cancel":
                cluster.cancel(job_id)
            case "hold":
                cluster.alter(job_id, held=True)
                self.schedule.after(again_ms, lambda: cluster.alter(job_id, held=False))
            case "limit":
                cluster.alter(job_id, limit_s=cluster.jobs[job_id].limit_s + 60)
            case "drain":
                node = names_in(start.nodes or start.choice)[0]
                self._do_drain(node)
                self.schedule.after(again_ms, lambda: self._do_node_back(node))
            case "partition":
                self._do_partition(start.partition, False)
                self.schedule.after(again_ms, lambda: self._do_partition(start.partition, True))

    # ------------------------------------------------------------ users and administrators

    def _do_submit(self, job: str, **what: Any) -> None:
        self.cluster.submit(Job(job, submit_s=self.cluster.now_s, **what))

    def _do_cancel(self, job: str) -> None:
        self.cluster.cancel(job)

    def _do_alter(self, job: str, changes: dict[str, Any]) -> None:
        self.cluster.alter(job, **changes)

    def _do_node_down(self, node: str) -> None:
        self.cluster.down(node)

    def _do_drain(self, node: str) -> None:
        self.cluster.put_node(replace(self.cluster.nodes[node], usable=False))

    def _do_node_back(self, node: str) -> None:
        self.cluster.put_node(replace(self.cluster.nodes[node], usable=True))

    def _do_resize(self, node: str, cpus: int) -> None:
        if not any(node in job.nodes for job in self.cluster.jobs.values()):
            self.cluster.put_node(replace(self.cluster.nodes[node], cpus=cpus))

    def _do_licences(self, total: dict[str, int]) -> None:
        self.cluster.put_licences(total)

    def _do_partition(self, name: str, up: bool) -> None:
        self.cluster.put_partition(replace(self.cluster.partitions[name], up=up))

    def _do_reserve(self, name: str, start_s: int, end_s: int, nodes: tuple[str, ...]) -> None:
        if end_s > self.cluster.now_s:
            self.cluster.reserve(Reservation(name, start_s, end_s, nodes))

    def _do_policy(self, name: str) -> None:
        self.host.set_policy(name)

    def _do_rules(self, rules: dict[str, Any]) -> None:
        self.host.set_rules(rules)

    # ------------------------------------------------------------ trouble

    def _do_weather(self, **weather: Any) -> None:
        self.network.weather = Weather(**weather)

    def _do_kill(self, what: str, line: int, cut: float | None, again_ms: int) -> None:
        self.host.kill_at = (what, line, cut, again_ms)

    def _do_stop(self, again_ms: int) -> None:
        self.host.stop(again_ms)

    def _do_disk(self, full: bool) -> None:
        self.disk.full, self.disk.freed_ms = full, self.schedule.now_ms
        self._note("disk", full=full)

    def _do_clock(self, who: str, seconds: int) -> None:
        if who == "controller":
            self.cluster.step_clock(seconds)
        else:
            self.host.step_clock(seconds)

    def _calm(self) -> None:
        """All trouble is over: from now on everything must come to its end."""
        self.network.weather = FAIR
        self.host.kill_at = None
        if self.disk.full:
            self._do_disk(False)
        if self.plugin is not None:
            self.plugin.untrue, self.plugin.tick_ms = None, CALM_TICK_MS
        for other in self.others:
            if other.alive:
                other.stop()
        for name, cpus, _, _ in self.script.nodes:
            del cpus
            if not self.cluster.nodes[name].usable:
                self._do_node_back(name)
        for name in self.cluster.partitions:
            if not self.cluster.partitions[name].up:
                self._do_partition(name, True)
        self._note("calm")
        if self.plugin is not None:
            self.cluster.changed()
