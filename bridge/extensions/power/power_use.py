# SPDX-License-Identifier: Apache-2.0
"""Power of nodes and jobs, as reported by agents.

Rules
    1. Agents are not trusted. These values are refused and counted, with the agent's name: values
       for nodes of other agents (`node`), values that are not finite and positive (`number`), are
       outside the bounds of the node's type by more than `SLACK` (`range`), or were measured longer
       ago than `stale_s` (`late`); and more jobs of a node, or readings in a message, than possible
       (`many`).
    2. Ages count from the arrival here, by this machine's monotonic clock. From the agent only the
       time between measurement and sending is used, never its clock.
    3. A job that is alone on a node draws all of the node's power. Each of several jobs on a node
       draws its idle power, which the book of power counts once, and a part of the rest in
       proportion to its CPU time; equal parts if they used none.
    4. A job's bounds are means over its nodes, and unknown if no node is measured. A node that is
       new to the job counts like its measured ones until the job is measured there, but no longer
       than `stale_s` after the first query, and only while its agent reports. Any other node
       without a current value counts with its type's idle and maximum power; if these are not
       stated, the job's power is unknown. Of the maximum a job on a part of a node counts with the
       same part beyond idle.
    5. A job on a node whose measurement is lost (`bridge.extensions.power.node_sensor`) counts as
       `lost_power.py` says. Every change of a node's source is counted, and logged at a limited
       rate for each node.
"""

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from bridge.extensions.power.calibration import MODEL, NodeReports
from bridge.extensions.power.load_curves import LoadCurve
from bridge.extensions.power.lost_power import Claim, lost_power
from bridge.extensions.power.node_sensor import MAX_JOBS, NONE, NodeSensor, Switch
from bridge.extensions.service_port import AgentReader
from bridge.rpc.agents.launcher_table import AgentStream
from bridge.rpc.agents.recent import WINDOW_S, Recent
from bridge.rpc.pb import agent_pb2 as pb
from bridge.rpc.transport.complaints import Complaints, nobody
from bridge.units import format_duration

_log = logging.getLogger(__name__)

STALE_S: Final = 30.0
SLACK: Final = 0.2
MAX_W: Final = 200_000.0
"""Of a node whose type is not stated."""
MAX_READINGS: Final = 100
"""In one message."""
MAX_NAMED: Final = 200
"""Number of agents that are counted by name; all further ones are `others`."""
OTHERS: Final = "others"
KINDS: Final = frozenset({"rapl", "pm_counters", "slurm", MODEL, NONE})
"""Sources that changes are counted by; all further ones are `others`."""
MAX_SOURCES: Final = 3
MAX_TOLD: Final = 20
_MAX_CPUS: Final = 1e6
_RANGE: Final = "range"
_SWEEP_S: Final = 10.0

Watts = tuple[int, int]
"""Idle and maximum, or a low and a high estimate."""


@dataclass(frozen=True)
class NodeValue:
    """The last power of a node, for display.

    Attributes:
        age_s: since it was measured.
        stale: it is too old to be used.
        lost: the source that had the last value before a loss; empty: nothing is lost.
        lost_for_s: since when.
    """

    watts: float
    source: str
    age_s: float
    stale: bool
    lost: str = ""
    lost_w: float = 0.0
    lost_for_s: float = 0.0


@dataclass(frozen=True)
class PowerSource:
    """Where a job's power comes from.

    Attributes:
        text: the sensors of its nodes, each once, and what they stand in for.
        age_s: the age of the oldest value.
        lost_s: for how long the measurement of a node has been lost; None: none is.
    """

    text: str
    age_s: float
    lost_s: float | None


class PowerUse(AgentReader):
    """All nodes; methods may be called by any thread.

    Attributes:
        stale_s: values that are older are not used.
        refused: how many values were refused, by agent and reason.
        tell: called for each refusal with agent and reason.
        switched: called for each change of a node's source with the kinds of both (`KINDS`).
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        stale_s: float = STALE_S,
    ) -> None:
        """Starts without any.

        Args:
            clock: monotonic, s.
            stale_s: values that are older are not used.
        """
        self._clock, self.stale_s = clock, stale_s
        self._lock = threading.Lock()
        self._nodes: dict[str, NodeSensor] = {}
        self._curves: dict[str, LoadCurve] = {}
        self._types: Mapping[str, Watts] = {}
        self._claims: Mapping[str, Mapping[str, Claim]] = {}
        self._counted: dict[str, dict[str, int]] = {}
        self._changes: dict[str, Complaints] = {}
        self.tell: Callable[[str, str], None] = nobody
        self.switched: Callable[[str, str], None] = nobody
        self.refused: Counter[tuple[str, str]] = Counter()
        self.switches: Counter[tuple[str, str]] = Counter()
        self._looked_s = -math.inf
        self._named: set[str] = set()

    @property
    def types(self) -> Mapping[str, Watts]:
        """Idle and maximum power of nodes, W, as the site states them."""
        return self._types

    def state_types(self, types: Mapping[str, Watts]) -> None:
        """Sets the nodes' idle and maximum powers."""
        self._types = types

    def arrived(self, agent: AgentStream) -> None:
        """An agent has opened its stream: it gets the models of its nodes."""
        state_models(agent, self._types)

    def state_claims(self, claims: Mapping[str, Mapping[str, Claim]]) -> None:
        """Sets what the jobs placed on each node may draw there, by node and job.

        Lost measurements of all other jobs are forgotten.
        """
        with self._lock:
            self._claims, self._counted = claims, {}
            for name, node in self._nodes.items():
                node.keep(claims.get(name, ()))

    # ------------------------------------------------------------ reports

    def took(self, agent: str, mine: Collection[str], uses: pb.Uses) -> None:
        """Records a message.

        Args:
            agent: its name, for counts and the log.
            mine: the nodes that it reports for.
        """
        now = self._clock()
        with self._lock:
            if len(uses.uses) > MAX_READINGS:
                self._refuse(agent, "many")
                return
            for use in uses.uses:
                self._took(agent, mine, use, now)

    def _took(self, agent: str, mine: Collection[str], use: pb.Use, now: float) -> None:
        jobs: dict[str, list[pb.JobUse]] = {}
        for job in use.jobs:
            jobs.setdefault(job.node, []).append(job)
        for power in use.nodes:
            name = power.node
            if name not in mine:
                self._refuse(agent, "node")
            elif power.HasField("watts"):
                age_ms = use.ago_ms + power.age_ms
                self._took_node(agent, power, jobs.pop(name, ()), now, age_ms)
            else:
                jobs.pop(name, None)
                self._believe(power, now)
                if name in self._nodes:
                    self._switch(name, self._nodes[name].end(now))
        for _ in jobs:  # of nodes without other values
            self._refuse(agent, "node")

    def _took_node(
        self,
        agent: str,
        power: pb.NodePower,
        jobs: Sequence[pb.JobUse],
        now: float,
        age_ms: int,
    ) -> None:
        reason = self._problem(power, age_ms)
        at_s = now - age_ms / 1000
        if reason in {"", _RANGE}:
            curve = self._curves.get(power.node)
            if curve is None:
                curve = self._curves.setdefault(power.node, LoadCurve())
            curve.add(at_s, _load(power), power.watts, power.source)
        if reason:
            self._refuse(agent, reason)
            return
        node = self._nodes.get(power.node)
        if node is None:
            node = self._nodes.setdefault(power.node, NodeSensor())
        if at_s < node.at_s:
            return
        if power.source == MODEL:
            self._believe(power, now)
        self._switch(power.node, node.take(power.source, power.watts, at_s))
        if len(jobs) > MAX_JOBS:
            self._refuse(agent, "many")
            return
        for job, watts in self._shares(agent, power, jobs):
            recent = node.jobs.get(job)
            if recent is None and len(node.jobs) >= MAX_JOBS:
                self._refuse(agent, "many")
                continue
            if recent is None:
                recent = node.jobs.setdefault(job, Recent())
            recent.add(at_s, watts)
        if now - node.swept_s > _SWEEP_S:
            node.swept_s = now
            kept = now - WINDOW_S
            node.jobs = {job: its for job, its in node.jobs.items() if its.last_s >= kept}

    def _believe(self, power: pb.NodePower, now: float) -> None:
        """Records the loss that an agent reports, if its last value is possible."""
        max_w = (1 + SLACK) * self._types.get(power.node, (0, MAX_W))[1]
        if power.lost_source and 0 < power.lost_watts <= max_w:
            node = self._nodes.setdefault(power.node, NodeSensor())
            node.believe(power.lost_source, power.lost_watts, now)

    def _switch(self, name: str, switches: Iterable[Switch]) -> None:
        now = self._clock()
        for each in switches:
            changes = self._changes.get(name)
            if changes is None:
                changes = self._changes.setdefault(name, _changes_of(name))
            if each.before == each.after:
                changes.complain("source", f"{each.after} again", now, level=logging.INFO)
                continue
            kinds = _kind(each.before), _kind(each.after)
            self.switches[kinds] += 1
            self.switched(*kinds)
            changes.complain(
                "source", f"{each.after} in place of {each.before}", now,
                f"the last value was {each.watts:.0f} W",
                level=logging.WARNING if each.after in (MODEL, NONE) else logging.INFO,
            )  # fmt: skip

    def look(self) -> None:
        """Notices nodes that have fallen silent, and sums up changes that were not logged.

        At most once a second. O(nodes).
        """
        now = self._clock()
        if now - self._looked_s < 1:
            return
        self._looked_s = now
        with self._lock:
            for name, node in self._nodes.items():
                if node.source and self._is_stale(node, now):
                    self._switch(name, node.end(now))
            for changes in self._changes.values():
                changes.sum_up(now)

    def _problem(self, power: pb.NodePower, age_ms: int) -> str:
        watts = power.watts
        if not 0 < watts < math.inf:
            return "number"
        idle_w, max_w = self._types.get(power.node, (0, MAX_W))
        if not (1 - SLACK) * idle_w <= watts <= (1 + SLACK) * max_w:
            return _RANGE
        return "late" if age_ms > self.stale_s * 1000 else ""

    def _shares(
        self, agent: str, power: pb.NodePower, jobs: Sequence[pb.JobUse]
    ) -> Iterable[tuple[str, float]]:
        """The part of the node's power that each job draws (rule 3)."""
        cpus: dict[str, float] = {}
        for job in jobs:
            if not _is_number(job.job) or not 0 <= job.cpus <= _MAX_CPUS:
                self._refuse(agent, "number")
            elif job.HasField("cpus") or len(jobs) == 1:
                cpus[job.job] = job.cpus
            else:
                return ()  # a job that has just begun has no share yet, so no job has
        if len(cpus) == 1:
            return [(job, power.watts) for job in cpus]
        idle_w = min(float(self._types.get(power.node, (0, 0))[0]), power.watts)
        total = sum(cpus.values())
        parts = {job: its / total if total > 0 else 1 / len(cpus) for job, its in cpus.items()}
        return [(job, idle_w + (power.watts - idle_w) * part) for job, part in parts.items()]

    def _refuse(self, agent: str, reason: str) -> None:
        if agent not in self._named:
            if len(self._named) >= MAX_NAMED:
                agent = OTHERS
            self._named.add(agent)
        if not self.refused[agent, reason]:
            _log.warning("values of the agent of %s are refused: %s", agent, reason)
        self.refused[agent, reason] += 1
        self.tell(agent, reason)

    # ------------------------------------------------------------ what is known

    def job_bounds(self, job: str, nodes: Sequence[str]) -> Watts:
        """A low and a high estimate of a running job's draw on each of its nodes (rules 4 and 5).

        Args:
            job: its id on the nodes.

        Returns:
            W, idle power included; (0, 0): not measured.
        """
        now, new = self._clock(), 0
        low_w = high_w = 0.0
        with self._lock:
            by_node = [self._bounds(job, name, now) for name in nodes]
            if all(each is None for each in by_node):
                return 0, 0
            for name, each in zip(nodes, by_node, strict=True):
                if each is None and self._is_new(job, name, now):
                    new += 1
                    continue
                bounds = each or self._stated_bounds(job, name)
                if bounds is None:
                    return 0, 0
                low_w, high_w = low_w + bounds[0], high_w + bounds[1]
        counted = len(nodes) - new
        return max(math.floor(low_w / counted), 1), max(math.ceil(high_w / counted), 1)

    def source(self, nodes: Sequence[str]) -> PowerSource:
        """Where the power of a job on these nodes comes from, for display."""
        now, words, age_s, since_s = self._clock(), set(), 0.0, math.inf
        with self._lock:
            for name in nodes:
                node = self._nodes.get(name)
                if node is None or node.at_s == -math.inf:
                    continue
                age_s = max(age_s, now - node.at_s)
                word = NONE if self._is_stale(node, now) else node.source or NONE
                if self._is_lost(node, now):
                    lost = node.lost
                    word += f" in place of {node.source if lost is None else lost.source}"
                    since_s = min(since_s, node.at_s if lost is None else lost.since_s)
                words.add(word)
        text = ", ".join(sorted(words)[:MAX_SOURCES])
        return PowerSource(text, age_s, None if since_s == math.inf else now - since_s)

    def losses(self) -> list[str]:
        """A sentence for each of the first nodes whose measurement is lost, for operators."""
        found: list[str] = []
        left = 0
        for name, each in sorted(self.nodes().items()):
            if not each.lost:
                continue
            if len(found) == MAX_TOLD:
                left += 1
                continue
            present = NONE if each.stale else f"{each.source} ({each.watts:.0f} W)"
            found.append(
                f"{name}: {each.lost} is lost since {format_duration(each.lost_for_s)}, last value "
                f"{each.lost_w:.0f} W; in its place {present}. Its jobs count with the greatest of "
                "stated, last measured and modelled power"
            )
        return [*found, f"and {left} more nodes"] if left else found

    def _is_lost(self, node: NodeSensor, now: float) -> bool:
        return node.lost is not None or (bool(node.source) and self._is_stale(node, now))

    def _stated_bounds(self, job: str, name: str) -> tuple[float, float] | None:
        """Those of rule 4, without a current value; None: nothing is stated."""
        types = self._types.get(name)
        return None if types is None else (types[0], self._claim(job, name).part_w)

    def _claim(self, job: str, name: str) -> Claim:
        """What a job may draw on a node; a job that is not known to be there, the maximum."""
        found = self._claims.get(name, {}).get(job)
        if found is not None:
            return found
        max_w = self._types.get(name, (0, 0))[1]
        return Claim(max_w, max_w)

    def _bounds(self, job: str, name: str, now: float) -> tuple[float, float] | None:
        """The draw of a job on one node; None: it is not measured there."""
        node = self._nodes.get(name)
        if node is not None and node.source and self._is_stale(node, now):
            self._switch(name, node.end(now))
        if node is not None and node.lost is not None:
            return self._lost_bounds(job, name, node, now)
        recent = node.jobs.get(job) if node is not None else None
        if node is None or recent is None:
            return None
        found = recent.bounds(now, self.stale_s)
        if found is not None:
            node.awaited.pop(job, None)
        return found

    def _lost_bounds(
        self, job: str, name: str, node: NodeSensor, now: float
    ) -> tuple[float, float] | None:
        """The bounds of a job on a node whose measurement is lost (rule 5)."""
        stale = not node.source or self._is_stale(node, now)
        idle_w, max_w = self._types.get(name, (0, 0))
        counted = self._counted.get(name, {})
        if job not in counted:
            placed = self._claims.get(name, {})
            claims = {**placed, job: self._claim(job, name)}
            counted = lost_power(node, claims, (idle_w, max_w), now_s=now, stale=stale)
            if job in placed:
                self._counted[name] = counted
        upper_w = counted[job]
        return (min(idle_w, upper_w), upper_w) if upper_w or max_w else None

    def _is_new(self, job: str, name: str, now: float) -> bool:
        """Whether a job that is not measured on a node has only just begun there."""
        node = self._nodes.get(name)
        if node is None or self._is_stale(node, now):
            return False
        since_s = node.awaited.setdefault(job, now)
        if len(node.awaited) > MAX_JOBS:
            del node.awaited[next(iter(node.awaited))]
        return now - since_s < self.stale_s

    def nodes(self) -> dict[str, NodeValue]:
        """The last value of each node, for display."""
        now = self._clock()
        with self._lock:
            return {name: self._value(node, now) for name, node in self._nodes.items()}

    def _value(self, node: NodeSensor, now: float) -> NodeValue:
        lost, stale = node.lost, self._is_stale(node, now)
        value = NodeValue(node.watts, node.source, now - node.at_s, stale)
        if lost is None:
            return value
        return replace(value, lost=lost.source, lost_w=lost.watts, lost_for_s=now - lost.since_s)

    def curves(self) -> dict[str, NodeReports]:
        """The power of each node by load (`bridge.extensions.power.load_curves`)."""
        with self._lock:
            return {name: curve.curve() for name, curve in self._curves.items()}

    def sensors(self) -> Counter[str]:
        """Numbers of nodes that are measured, modelled, and whose measurement is lost."""
        found: Counter[str] = Counter()
        now = self._clock()
        with self._lock:
            for node in self._nodes.values():
                current = node.source and not self._is_stale(node, now)
                kind = "modelled" if node.source == MODEL else "measured"
                found["lost" if self._is_lost(node, now) else kind] += bool(
                    current or self._is_lost(node, now)
                )
        return found

    def counts(self) -> tuple[int, int]:
        """Numbers of nodes with a current value, and with a stale one."""
        now = self._clock()
        with self._lock:
            stale = sum(self._is_stale(node, now) for node in self._nodes.values())
            return len(self._nodes) - stale, stale

    def _is_stale(self, node: NodeSensor, now: float) -> bool:
        return now - node.at_s > self.stale_s

    def forget(self, nodes: Iterable[str]) -> None:
        """Forgets nodes that the cluster does not have any more."""
        with self._lock:
            for name in nodes:
                self._nodes.pop(name, None)
                self._curves.pop(name, None)
                self._changes.pop(name, None)


def state_models(agent: AgentStream, types: Mapping[str, Watts]) -> None:
    """Sends an agent idle and maximum power of its nodes."""
    for node in agent.nodes:
        if node in types:
            idle_w, max_w = types[node]
            model = pb.PowerModel(node=node, idle_w=idle_w, max_w=max_w)
            agent.send(pb.AgentOrder(model=model))


class PowerReaders:
    """See `bridge.extensions.service_port.AgentReaders`."""

    def reader(self, clock: Callable[[], float]) -> PowerUse:
        """Without reports."""
        return PowerUse(clock)


def _load(power: pb.NodePower) -> float | None:
    """Busy CPUs / CPUs; None: not known."""
    known = power.HasField("busy_cpus") and 0 < power.cpus < math.inf
    return power.busy_cpus / power.cpus if known else None


def _changes_of(name: str) -> Complaints:
    return Complaints(f"power of {name}", nobody, verb="has source")


def _kind(source: str) -> str:
    """The kind of a source, so that their number is bounded."""
    name = source.partition(":")[0]
    return name if name in KINDS else OTHERS


def _is_number(job: str) -> bool:
    return job.isdecimal() and job.isascii() and len(job) <= 20
