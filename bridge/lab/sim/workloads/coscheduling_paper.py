# SPDX-License-Identifier: Apache-2.0
"""The experiment in which ASA_X was evaluated: 15 workflows on three sizes of cluster.

Rules
    1. A set is 4 Montage, 4 BLAST and 4 Statistics of 8, 16, 32 and 64 cores, and 3 Synthetic of
       16, 32 and 64. All are submitted at once, in an order by the seed. Each is one job.
    2. A set is run three times, each after the previous one has ended; what was learnt is kept.
    3. Clusters have 64, 128 and 256 cores, on nodes of `NODE_CPUS`.
    4. How long a workflow takes alone follows from the mean and the deviation over its sizes in the
       paper's Table 2 (Slurm): it falls evenly with each doubling of the cores. Runs scatter by
       `SCATTER`, by the seed. Time limits are `LIMIT` times what it takes without scatter.
    5. A job requests the memory given in Table 2 (`MEMORY`) on each of its nodes.
    6. Stages, their demands and their interference are those of the interference model; Statistics
       is its application `readings`. A job holds all its CPUs in sequential stages, too. Demands
       are scaled so that a workflow uses as much CPU time of its allocation as in Table 2 (Slurm),
       which differs between the sizes of the cluster: parallel stages use more of their CPUs, and
       if that does not suffice, sequential ones take less of the time.
    7. Every job may be host and guest, and be requeued. No job is killed for its time limit.

Source: A. Souza, K. Pelckmans, J. Tordsson, A HPC co-scheduler with reinforcement learning,
JSSPP 2021, sections 4.1 to 4.4 and Table 2.
Deviates: it does not state time limits (rule 4), the order, or when the next set is submitted; its
system was one of shared memory, and has no nodes. Its text calls 256 cores the high load in one
place, and the fewest cores in another. Here 64 cores are the high load, as in Table 3.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.extensions.sharing.rules import Coschedule
from bridge.lab.sim.sharing.interference import Interference, UseStage
from bridge.lab.sim.sharing.setting import Sharing
from bridge.lab.sim.workloads.system import System
from bridge.lab.sim.workloads.workload import Workload
from bridge.model.job import JobTable
from bridge.model.job_columns import objects
from bridge.model.node import NodeTable
from bridge.model.snapshot import Partition

CORES: Final = (64, 128, 256)
MAX_CORES: Final = 65_536
REPEATS: Final = 3
NODE_CPUS: Final = 8
NODE_MIB: Final = 31_500
SCATTER: Final = 0.03
LIMIT: Final = 1.25


@dataclass(frozen=True)
class Workflow:
    """One of the four.

    Attributes:
        cores: cores of its jobs in a set.
        mean_h, deviation: run time alone over these, and its standard deviation relative to it.
        cpu: CPU time used of that allocated, on clusters of `CORES`.
    """

    cores: tuple[int, ...]
    mean_h: float
    deviation: float
    memory: float
    cpu: tuple[float, float, float]

    def runtime_s(self, cores: int) -> float:
        """What it takes alone (rule 4)."""
        steps = -np.log2(np.array(self.cores))
        place = (-np.log2(cores) - steps.mean()) / steps.std()
        return float(3600 * self.mean_h * (1 + self.deviation * place))


WORKFLOWS: Final[Mapping[str, Workflow]] = MappingProxyType(
    {
        "montage": Workflow((8, 16, 32, 64), 0.35, 0.04, 0.10, (0.45, 0.33, 0.21)),
        "blast": Workflow((8, 16, 32, 64), 0.71, 0.21, 0.44, (0.96, 0.95, 0.91)),
        "readings": Workflow((8, 16, 32, 64), 0.69, 0.10, 0.05, (0.26, 0.16, 0.10)),
        "synthetic": Workflow((16, 32, 64), 0.49, 0.15, 0.95, (0.99, 0.99, 0.99)),
    }
)
_JOBS: Final = tuple((name, cores) for name, flow in WORKFLOWS.items() for cores in flow.cores)
SET: Final = len(_JOBS)
"""Jobs of a set."""


def paper_system(cores: int) -> System:
    """The cluster.

    Raises:
        ConfigError: these are not whole nodes, too few for the largest job, or too many.
    """
    if cores % NODE_CPUS or not max(size for _, size in _JOBS) <= cores <= MAX_CORES:
        raise ConfigError(
            "cores", f"must be a multiple of {NODE_CPUS} from 64 to {MAX_CORES}, not {cores}"
        )
    count = cores // NODE_CPUS
    capacity = np.tile(np.array([NODE_CPUS, NODE_MIB], dtype=np.int64), (count, 1))
    nodes = NodeTable(
        tuple(f"n{index:03d}" for index in range(count)),
        capacity,
        np.ones(count, dtype=bool),
        np.ones(count, dtype=np.int32),
        (frozenset(),) * count,
        ("UP",) * count,
    )
    everything = Partition("all", np.arange(count, dtype=np.int32), shared=True)
    return System(f"{cores} cores", ("cpus", "mem_mib"), nodes, (everything,))


def paper_model(interference: Interference, cores: int) -> Interference:
    """The model with the memory and the CPU use of the paper's workflows.

    Args:
        interference: with the four workflows.
        cores: cores of the cluster; the CPU use is that on the nearest of `CORES`.

    Raises:
        ConfigError: one of them is missing.
    """
    made = []
    for name, flow in WORKFLOWS.items():
        if name not in interference.number:
            raise ConfigError("applications", f"has no '{name}', which the paper's experiment runs")
        found = interference.applications[interference.number[name]]
        cpu = flow.cpu[int(np.argmin([abs(size - cores) for size in CORES]))]
        stages = tuple(
            replace(stage, memory=flow.memory) for stage in _busy_stages(found.stages, cpu)
        )
        made.append(replace(found, stages=stages))
    return Interference(tuple(made), interference.source)


def _busy_stages(stages: tuple[UseStage, ...], cpu: float) -> tuple[UseStage, ...]:
    """The stages so that they use this share of the CPUs (rule 6); one CPU counts as none."""
    parallel = sum(stage.share for stage in stages if stage.parallel)
    if parallel < cpu:
        rest = (1 - cpu) / (1 - parallel)
        stages = tuple(
            replace(stage, share=stage.share * (cpu / parallel if stage.parallel else rest))
            for stage in stages
        )
    low, high = 0.0, 1000.0
    for _ in range(100):  # so that no stage uses more than its CPUs
        factor = (low + high) / 2
        used = sum(stage.share * min(factor * stage.cpu, 1.0) for stage in stages if stage.parallel)
        low, high = (factor, high) if used < cpu else (low, factor)
    return tuple(
        replace(stage, cpu=min(high * stage.cpu, 1.0)) if stage.parallel else stage
        for stage in stages
    )


def paper_sets(
    system: System, interference: Interference, *, seed: int, begins_s: Sequence[int]
) -> Workload:
    """The jobs of some sets.

    Args:
        system: the result of `paper_system`.
        interference: the result of `paper_model`.
        seed: the seed of order and scatter, which differ between sets.
        begins_s: when all jobs of each set are submitted, ascending.
    """
    rng = np.random.default_rng(seed)
    order, scatter = [], []
    for _ in begins_s:
        order += [_JOBS[at] for at in rng.permutation(len(_JOBS)).tolist()]
        scatter.append(rng.normal(0, SCATTER, len(_JOBS)))
    cores = np.array([size for _, size in order], dtype=np.int64)
    names = [name for name, _ in order]
    alone_s = np.array([WORKFLOWS[name].runtime_s(size) for name, size in order])
    runtime_s = np.rint(alone_s * np.exp(np.concatenate(scatter))).astype(np.int64)
    submit_s = np.repeat(np.array(begins_s, dtype=np.int64), SET)
    count, ones = len(order), np.ones(len(order), dtype=np.int64)
    application = np.array([interference.number[name] for name in names], dtype=np.int64)
    coschedule = np.full(count, Coschedule.BOTH, dtype=np.int8)
    memory = np.array([WORKFLOWS[name].memory for name in names])
    limit_s = np.rint(LIMIT * alone_s).astype(np.int64)
    ids = objects(str(number) for number in range(1, count + 1))
    return Workload(
        name=f"{len(begins_s)} sets of {SET} workflows, seed {seed}",
        processors_total=system.processors,
        id=ids,
        submit_s=submit_s,
        runtime_s=runtime_s,
        time_limit_s=limit_s,
        processors=cores,
        memory_kib=np.zeros(count, dtype=np.int64),
        user=ones,
        group=ones,
        executable=application,
        queue=-ones,
        row=np.arange(count, dtype=np.int64),
        left_out={},
        requests=_requests(
            ids=ids, names=names, cores=cores, memory=memory, limit_s=limit_s, submit_s=submit_s
        ),
        sharing=Sharing(interference, application, coschedule),
    )


def _requests(
    *,
    ids: NDArray[np.object_],
    names: list[str],
    cores: NDArray[np.int64],
    memory: NDArray[np.float64],
    limit_s: NDArray[np.int64],
    submit_s: NDArray[np.int64],
) -> JobTable:
    count = len(ids)
    per_node = np.stack(
        (np.full(count, NODE_CPUS), np.rint(memory * NODE_MIB).astype(np.int64)), axis=1
    )
    return JobTable(
        id=ids,
        name=objects(names),
        user=objects(["user1"] * count),
        account=objects(["group1"] * count),
        priority=np.arange(count, 0, -1, dtype=np.int64),
        submit_s=submit_s,
        eligible_s=submit_s,
        time_limit_s=limit_s,
        partitions=objects([(0,)] * count),
        min_nodes=cores // NODE_CPUS,
        max_nodes=cores // NODE_CPUS,
        per_node=per_node.astype(np.int64),
        per_task=np.zeros_like(per_node, dtype=np.int64),
        licences=np.zeros((count, 0), dtype=np.int64),
        requeue=np.ones(count, dtype=bool),
    )
