# SPDX-License-Identifier: Apache-2.0
"""The jobs on each switch: a topology with its nodes and their jobs.

Terms
    down    the controller allows no starts there. A job still running there is shown.
    hops    between two nodes of a job, mean over its pairs: 2 below one leaf switch, 4 below one
            switch above it, and so on (metric `paper` of `bridge.model.hop_tree`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.core import HopMetric, Tree
from bridge.model.hop_tree import Metric, hop_metric
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.model.topology import Topology


@dataclass(frozen=True)
class Placed:
    """A job that holds nodes, or starts on them now.

    Attributes:
        nodes: ascending node indexes.
        end_s: latest end, Unix seconds.
        running: False: it starts with the cycle shown.
    """

    id: str
    name: str
    user: str
    nodes: NDArray[np.int32]
    end_s: int
    running: bool = True


@dataclass(frozen=True)
class NodeCounts:
    """Numbers of idle, busy and down nodes."""

    idle: int
    busy: int
    down: int

    @property
    def text(self) -> str:
        """As text, without zeros."""
        parts = [f"{self.idle:,} idle"] * bool(self.idle) + [f"{self.busy:,} busy"] * bool(
            self.busy
        )
        return ", ".join(parts + [f"{self.down:,} down"] * bool(self.down)) or "no nodes"


@dataclass(frozen=True)
class Compactness:
    """The compactness of a job's nodes.

    Attributes:
        leaf_switches: number of those with its nodes.
        hops: mean over pairs; 0 for one node; infinite across fabrics; None if a node is on no
            switch.
        cost: communication hops by the paper's definition; otherwise like `hops`.
    """

    leaf_switches: int
    hops: float | None
    cost: float | None


@dataclass(frozen=True)
class TreeOccupancy:
    """A tree with its nodes and jobs.

    Attributes:
        names: (n_nodes,) names of the nodes.
        down: (n_nodes,) bool.
        words: (n_nodes,) the controller's name of each node's state; empty: unknown.
        jobs: most nodes first.
        now_s: Unix seconds; None: no jobs are known, only the switches are shown.
    """

    topology: Topology
    names: tuple[str, ...]
    down: NDArray[np.bool_]
    words: tuple[str, ...]
    jobs: tuple[Placed, ...]
    now_s: int | None

    @staticmethod
    def of(
        topology: Topology,
        names: Iterable[str],
        *,
        down: NDArray[np.bool_] | None = None,
        words: Iterable[str] | None = None,
        jobs: Iterable[Placed] = (),
        now_s: int | None = None,
    ) -> "TreeOccupancy":
        """Places jobs on a tree; they keep this order.

        Raises:
            ValueError: the switches do not form trees.
        """
        named = tuple(names)
        count = len(named)
        Tree(topology.parent, topology.leaf_of_node)  # raises unless the switches form trees
        return TreeOccupancy(
            topology,
            named,
            np.zeros(count, dtype=bool) if down is None else down,
            ("",) * count if words is None else tuple(words),
            tuple(sorted(jobs, key=lambda job: (-len(job.nodes), len(job.id), job.id))),
            now_s,
        )

    @staticmethod
    def of_cycle(snapshot: Snapshot, plan: Plan | None, topology: Topology) -> "TreeOccupancy":
        """The running jobs of a snapshot, and those started by its plan now."""
        running = snapshot.running
        jobs = [
            Placed(
                str(running.id[i]),
                str(running.name[i]),
                str(running.user[i]),
                np.unique(running.nodes[running.indptr[i] : running.indptr[i + 1]]),
                int(running.end_s[i]),
            )
            for i in range(len(running))
        ]
        for row in [] if plan is None else plan.starts_now.tolist():
            assert plan is not None
            job = int(plan.job[row])
            table = snapshot.jobs
            held = np.unique(plan.nodes_of(row))
            name, user = str(table.name[job]), str(table.user[job])
            jobs.append(
                Placed(str(table.id[job]), name, user, held, int(plan.end_s[row]), running=False)
            )
        return TreeOccupancy.of(
            topology,
            snapshot.nodes.names,
            down=~snapshot.nodes.usable,
            words=snapshot.nodes.state,
            jobs=jobs,
            now_s=snapshot.now_s,
        )

    # ------------------------------------------------------------ nodes

    @cached_property
    def on_node(self) -> tuple[tuple[int, ...], ...]:
        """Positions in `jobs` of those on each node."""
        held: list[list[int]] = [[] for _ in self.names]
        for i, job in enumerate(self.jobs):
            for node in job.nodes.tolist():
                held[node].append(i)
        return tuple(map(tuple, held))

    @cached_property
    def nodes_of_leaf(self) -> dict[int, list[int]]:
        """Nodes on each leaf switch, in their order; -1: on no switch."""
        found: dict[int, list[int]] = {}
        for node, leaf in enumerate(self.topology.leaf_of_node.tolist()):
            found.setdefault(leaf, []).append(node)
        return found

    def count(self, nodes: Iterable[int]) -> NodeCounts:
        """Counts nodes by state; a node with a job is busy, even if it is down."""
        idle = busy = down = 0
        for node in nodes:
            if self.on_node[node]:
                busy += 1
            elif self.down[node]:
                down += 1
            else:
                idle += 1
        return NodeCounts(idle, busy, down)

    def state(self, node: int) -> str:
        """`idle`, `busy` or `down`."""
        return "busy" if self.on_node[node] else "down" if self.down[node] else "idle"

    # ------------------------------------------------------------ switches

    @cached_property
    def below(self) -> dict[int, list[int]]:
        """The switches directly below each switch, in file order; -1: the roots."""
        found: dict[int, list[int]] = {}
        for switch, parent in enumerate(self.topology.parent.tolist()):
            found.setdefault(parent, []).append(switch)
        return found

    @cached_property
    def counts(self) -> tuple[NodeCounts, ...]:
        """Nodes below each switch."""
        nodes: list[list[int]] = [[] for _ in self.topology.names]
        for leaf, held in self.nodes_of_leaf.items():
            switch = leaf
            while switch >= 0:
                nodes[switch] += held
                switch = int(self.topology.parent[switch])
        return tuple(self.count(held) for held in nodes)

    @cached_property
    def tree(self) -> Tree:
        return Tree(self.topology.parent, self.topology.leaf_of_node)

    @cached_property
    def levels(self) -> int:
        """Number of levels; 1: leaf switches only."""
        return int(self.tree.level.max(initial=0)) + 1

    @cached_property
    def _metric(self) -> HopMetric:
        return hop_metric(Metric.PAPER, self.levels)

    @cached_property
    def compactness(self) -> tuple[Compactness, ...]:
        return tuple(self._compactness(job.nodes) for job in self.jobs)

    def _compactness(self, nodes: NDArray[np.int32]) -> Compactness:
        leaves = self.topology.leaf_of_node[nodes]
        count, n = len(np.unique(leaves[leaves >= 0])), len(nodes)
        if n < 2:
            return Compactness(count, 0.0, 0.0)
        if (leaves < 0).any():
            return Compactness(count, None, None)
        indptr = np.array([0, n], dtype=np.int64)
        cost = float(self.tree.costs(self._metric, indptr, nodes.astype(np.int32))[0])
        return Compactness(count, cost / 1000 / (n - 1), cost)

    # ------------------------------------------------------------ as JSON

    def plain(self) -> dict[str, Any]:
        """The occupancy as JSON; infinite hops become the text `across fabrics`."""
        names, level = self.topology.names, self.tree.level.tolist()
        switches = [
            {
                "name": name,
                "above": names[parent] if parent >= 0 else None,
                "level": level[i],
                **vars(self.counts[i]),
            }
            for i, (name, parent) in enumerate(
                zip(names, self.topology.parent.tolist(), strict=True)
            )
        ]
        nodes = [
            {
                "name": name,
                "switch": names[leaf] if leaf >= 0 else None,
                "state": self.state(i),
                "words": self.words[i],
                "jobs": [self.jobs[at].id for at in self.on_node[i]],
            }
            for i, (name, leaf) in enumerate(
                zip(self.names, self.topology.leaf_of_node.tolist(), strict=True)
            )
        ]
        jobs = [
            {
                "id": job.id,
                "name": job.name,
                "user": job.user,
                "running": job.running,
                "end_s": job.end_s,
                "nodes": [self.names[node] for node in job.nodes.tolist()],
                "leaf_switches": how.leaf_switches,
                "hops_per_pair": _finite(how.hops),
                "cost": _finite(how.cost),
            }
            for job, how in zip(self.jobs, self.compactness, strict=True)
        ]
        return {
            "now_s": self.now_s,
            "fabrics": len(self.below.get(-1, [])),
            "levels": self.levels,
            **vars(self.count(range(len(self.names)))),
            "switches": switches,
            "nodes": nodes,
            "jobs": jobs,
        }


def _finite(value: float | None) -> float | str | None:
    return "across fabrics" if value is not None and np.isinf(value) else value


def hops_text(how: Compactness) -> str:
    """A job's mean hops as text."""
    if how.hops is None:
        return "?"
    return "apart" if np.isinf(how.hops) else f"{how.hops:.2f}" if how.hops else "-"
