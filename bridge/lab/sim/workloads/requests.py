# SPDX-License-Identifier: Apache-2.0
"""A workload's jobs as requests in a system's queue.

Rules
    1. On a pool a job requests as many whole nodes as it has processors.
    2. On a described system it requests a task for each processor, anywhere; or, if the trace has
       node requests (`FormatDeviations.nodes_field`), that number of nodes, with that many tasks
       on each at most, with those features and names.
    3. Priority falls with submission, as in Slurm's priority/basic.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError, RequestError
from bridge.lab.sim.sharing.setting import Sharing
from bridge.lab.sim.workloads.node_requests import NodeRequest, parse_node_request
from bridge.lab.sim.workloads.system import System
from bridge.lab.sim.workloads.workload import Malleable, Workload
from bridge.model.job import JobTable, WidthRule
from bridge.model.job_columns import objects
from bridge.model.node import NodeTable

_MIB_KIB = 1024
_FIELD = "trace.nodes_field"


def requests(workload: Workload, system: System) -> JobTable:
    """Returns all jobs of a workload as pending jobs, one row each, in order of submission.

    Raises:
        ConfigError: no partition takes some queue, or a node request is invalid, contradicts the
            trace's number of processors, or has a property that no node has.
    """
    if workload.requests is not None:
        return replace(
            workload.requests,
            submit_s=workload.submit_s,
            eligible_s=workload.submit_s,
            time_limit_s=workload.time_limit_s,
            **_consent(workload),
        )
    n_jobs, n_resources = len(workload), len(system.resources)
    partitions = _partitions_of(workload, system)
    per_node = np.zeros((n_jobs, n_resources), dtype=np.int64)
    per_task = np.zeros_like(per_node)
    ones = np.ones(n_jobs, dtype=np.int64)
    zeros = np.zeros(n_jobs, dtype=np.int64)
    if system.pool:
        per_node[:, 0] = 1
        if workload.sharing is not None:
            per_node[:, 1] = _used_mib(workload.sharing, int(system.nodes.capacity[0, 1]))
        min_nodes = max_nodes = workload.processors
        tasks = zeros
    else:
        per_task[:, 0] = 1
        if system.use_memory:
            holder = per_node if system.dialect.memory_per_node else per_task
            holder[:, 1] = -(-workload.memory_kib // _MIB_KIB)
        min_nodes, max_nodes = ones, np.minimum(workload.processors, len(system.nodes))
        tasks = workload.processors
    node_requests = _NodeRequests(workload, system)
    if node_requests.known:
        min_nodes = max_nodes = node_requests.nodes
    moldable = {} if workload.malleable is None else _moldable(workload.malleable, min_nodes)
    return JobTable(
        **moldable,
        **_stated_power(workload),
        **_consent(workload),
        id=workload.id,
        name=_numbered("app", workload.executable),
        user=_numbered("user", workload.user),
        account=_numbered("group", workload.group),
        priority=np.arange(n_jobs, 0, -1, dtype=np.int64),
        submit_s=workload.submit_s,
        eligible_s=workload.submit_s,
        time_limit_s=workload.time_limit_s,
        partitions=partitions,
        min_nodes=min_nodes,
        max_nodes=max_nodes,
        per_node=per_node,
        per_task=per_task,
        tasks=tasks,
        max_tasks_per_node=node_requests.max_per_node,
        exclusive=_exclusive(partitions, system, shared=workload.sharing is not None)
        | node_requests.exclusive,
        features=objects(node_requests.features),
        required=objects(node_requests.required),
        excluded=objects(node_requests.excluded),
        licences=np.zeros((n_jobs, 0), dtype=np.int64),
    )


def _stated_power(workload: Workload) -> dict[str, NDArray[Any]]:
    """The columns for what jobs state of their power."""
    if workload.power is None:
        return {}
    return {"min_power_w": workload.power.min_w, "max_power_w": workload.power.max_w}


def _consent(workload: Workload) -> dict[str, NDArray[Any]]:
    """The columns for jobs that may share their nodes."""
    if workload.sharing is None:
        return {}
    return {
        "coschedule": workload.sharing.coschedule,
        "requeue": np.ones(len(workload), dtype=bool),
    }


def _moldable(widths: Malleable, requested: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """The columns for other widths at the start: malleable jobs start on any that they allow."""
    rules = zip(widths.width_rule.tolist(), requested.tolist(), strict=True)
    allows = np.array([WidthRule(rule).allows(nodes) for rule, nodes in rules], dtype=bool)
    may = (widths.max_nodes > 0) & allows
    return {
        "min_start": np.where(may, widths.min_nodes, 0),
        "max_start": np.where(may, widths.max_nodes, 0),
        "width_rule": np.where(may, widths.width_rule, 0).astype(np.int8),
    }


class _NodeRequests:
    """The node requests of the jobs, as columns; empty without such a field.

    Attributes:
        known: whether the trace has them.
        nodes, max_per_node: int64; 0: unknown.
        exclusive: bool.
        features, required, excluded: as in `JobTable`.
    """

    def __init__(self, workload: Workload, system: System) -> None:
        n_jobs = len(workload)
        self.known = workload.node_requests is not None and not system.pool
        self.nodes = np.zeros(n_jobs, dtype=np.int64)
        self.max_per_node = np.zeros(n_jobs, dtype=np.int64)
        self.exclusive = np.zeros(n_jobs, dtype=bool)
        self.features: list[str] = [""] * n_jobs
        self.required: list[tuple[int, ...]] = [()] * n_jobs
        self.excluded: list[tuple[int, ...]] = [()] * n_jobs
        if workload.node_requests is None or system.pool:
            return
        properties = _Properties(system.nodes)
        known: dict[str, _Lowered] = {}
        for job, text in enumerate(workload.node_requests.tolist()):
            if text not in known:
                known[text] = properties.lower(text, str(workload.id[job]))
            request, features, required, excluded = known[text]
            if request.processors != workload.processors[job]:
                raise ConfigError(
                    _FIELD,
                    f"job {workload.id[job]} asked for {request.processors} processors by '{text}'"
                    f" and for {workload.processors[job]} in the trace's own column",
                )
            self.nodes[job], self.max_per_node[job] = request.nodes, request.max_per_node
            self.exclusive[job] = request.exclusive
            self.features[job], self.required[job] = features, required
            self.excluded[job] = excluded


_Lowered = tuple[NodeRequest, str, tuple[int, ...], tuple[int, ...]]


class _Properties:
    """Names and features of nodes, as jobs request them."""

    def __init__(self, nodes: NodeTable) -> None:
        self._node = {name: index for index, name in enumerate(nodes.names)}
        self._having: dict[str, list[int]] = {}
        for index, features in enumerate(nodes.features):
            for feature in features:
                self._having.setdefault(feature, []).append(index)

    def lower(self, text: str, job_id: str) -> _Lowered:
        """A request, with its constraint and its required and excluded nodes."""
        try:
            request = parse_node_request(text)
        except RequestError as error:
            raise ConfigError(_FIELD, f"job {job_id}: {error}") from None
        for word in (*request.having, *request.without):
            if word not in self._node and word not in self._having:
                raise ConfigError(
                    _FIELD,
                    f"job {job_id} asked for '{text}', and no node is named '{word}' or has that"
                    " feature; describe it under nodes",
                )
        excluded: set[int] = set()
        for word in request.without:
            excluded.update([self._node[word]] if word in self._node else self._having[word])
        return (
            request,
            "&".join(word for word in request.having if word not in self._node),
            tuple(self._node[word] for word in request.having if word in self._node),
            tuple(sorted(excluded)),
        )


def _partitions_of(workload: Workload, system: System) -> NDArray[np.object_]:
    """The partitions each job may use, by the queue it was submitted to.

    Raises:
        ConfigError: no partition takes some queue.
    """
    named = frozenset[int]().union(*system.queues)
    choice: dict[int, tuple[int, ...]] = {}
    for queue in np.unique(workload.queue).tolist():
        choice[queue] = tuple(
            position
            for position, takes in enumerate(system.queues)
            if queue in takes or (not takes and queue not in named)
        )
        if not choice[queue]:
            raise ConfigError("partitions", f"none takes queue {queue} of {workload.name}")
    return objects([choice[queue] for queue in workload.queue.tolist()])


def _used_mib(sharing: Sharing, node_mib: int) -> NDArray[np.int64]:
    """The most memory that each job uses of a node."""
    shares = np.array([each.memory for each in sharing.interference.applications])
    used = np.ceil(shares[sharing.application] * node_mib).astype(np.int64)
    clipped: NDArray[np.int64] = np.clip(used, 1, node_mib)
    return clipped


def _exclusive(
    partitions: NDArray[np.object_], system: System, *, shared: bool
) -> NDArray[np.bool_]:
    """Jobs that share no node: all of a pool, and those with a partition that does not share.

    Where jobs may be guests, those of a pool are not exclusive: nodes have one processor anyway.
    """
    if system.whole_nodes or (system.pool and not shared):
        return np.ones(len(partitions), dtype=bool)
    alone = {position for position, part in enumerate(system.partitions) if part.exclusive}
    return np.array([not alone.isdisjoint(named) for named in partitions], dtype=bool)


def _numbered(prefix: str, numbers: NDArray[np.int64]) -> NDArray[np.object_]:
    return objects([f"{prefix}{number}" if number >= 0 else "" for number in numbers.tolist()])
