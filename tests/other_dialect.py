# SPDX-License-Identifier: Apache-2.0
"""A made-up resource manager, to show that the service needs nothing but a dialect of it."""

from dataclasses import dataclass

import numpy as np

from bridge.dialect import ControllerRequest, NodeDemand
from bridge.errors import BadRequest
from bridge.model.topology import Topology
from bridge.words import Words

ARRAY = "[].srv"
WORDS = Words(
    partition="queue",
    node="machine",
    account="group",
    time_limit="walltime",
    time_option="-l walltime",
    nodes_option="-l host",
    chunks_option="-l select",
    place_option="-l place",
    switches_option="-l switches",
    whole_nodes_option="-l place=alone",
    time_step_s=1,
    release_command="qrls",
    begin_command="qalter -a",
    daemon_user="nobody",
)


@dataclass(frozen=True)
class OtherDialect:
    """Array `12[].srv` has the tasks `12[3].srv`; a partition is a queue.

    A job is `tasks` vnodes anywhere, each of so many CPUs and so much memory: nothing is rounded to
    cores, memory that is not stated is none, and memory per CPU does not exist.
    """

    words: Words = WORDS

    def array_of(self, job_id):
        head, bracket, _ = job_id.partition("[")
        return head + ARRAY if bracket else job_id

    def are_array_tasks(self, job_ids):
        return np.array([job_id[-len(ARRAY) :] != ARRAY and "[" in job_id for job_id in job_ids])

    def min_nodes(self, stated):
        return 0

    def node_demand(self, stated, min_nodes, max_nodes, accounting):
        if stated.memory_per_cpu_mib:
            raise BadRequest("asks for memory per CPU, which this server does not know")
        return NodeDemand(
            max_nodes=max_nodes or max(stated.tasks, min_nodes),
            tasks=max(stated.tasks, 1),
            cpus_per_task=stated.cpus_per_task,
            memory_per_task_mib=stated.memory_per_node_mib,
        )

    def state_demand(self, requested, min_nodes):
        return ControllerRequest(
            min_nodes, requested.max_nodes, requested.tasks, requested.cpus_per_task,
            memory_per_node_mib=requested.memory_per_task_mib,
        )  # fmt: skip

    def takes_all_memory(self, accounting, *, memory_stated):
        return False

    def check_chunks(self, request, stated):
        if stated.tasks != request.n_chunks:
            raise BadRequest("the server holds another select")

    def controller_request(self, request, generic):
        return ControllerRequest(1, request.n_chunks, request.n_chunks, request.kinds[0].ncpus)

    def chunk_features(self, request, chunk, generic):
        return frozenset(chunk.features)

    def chunk_memory_mib(self, request, chunk, cpus):
        return chunk.mem_mib

    def read_topology(self, path, nodes=None):
        """Lines of a switch and its nodes."""
        names = tuple(nodes or self.topology_nodes(path))
        lines = [line.split() for line in path.read_text().splitlines()]
        leaf = {node: at for at, words in enumerate(lines) for node in words[1:]}
        return Topology(
            tuple(words[0] for words in lines),
            np.full(len(lines), -1, dtype=np.int32),
            np.array([leaf.get(name, -1) for name in names], dtype=np.int32),
        )

    def topology_nodes(self, path):
        return [node for line in path.read_text().splitlines() for node in line.split()[1:]]

    def submit_options(self, change):
        stated = [f"-q {change.partition}"] if change.partition else []
        if change.time_limit_s:
            stated.append(f"-l walltime={change.time_limit_s}")
        return " ".join(stated)

    def reserve_command(self, reservation):
        return f"pbs_rsub -N {reservation.name}"


OTHER = OtherDialect()
