# SPDX-License-Identifier: Apache-2.0
"""The 15 workflows of the paper's experiment, scaled to nodes of one core.

Rules
    1. A set is 4 Montage, 4 BLAST, 4 Statistics (`readings`) and 3 Synthetic; all are submitted at
       once, in an order by the seed. Each stage is a job that depends on the one before. A smaller
       set has as many of each kind as possible.
    2. On two nodes and more the first Montage, the first Statistics and the first Synthetic are two
       nodes wide: their sequential stages leave one node idle. The others have one node. Twice the
       nodes do twice the work, and sequential stages take twice the time.
    3. A stage repeats its work so often (`SIZES`) that most take 10 to 40 s alone: a host must be
       measured twice before it gets its first guest, and agents report every 5 s. Each workflow has
       stages that are shorter.
    4. The time limit of wide jobs is three minutes, of BLAST two, of others one, Slurm's least.
       Jobs may run beyond them (OverTimeLimit).
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

SIZES: Final[Mapping[str, tuple[int, int]]] = {
    "montage": (7, 48), "blast": (40, 30), "readings": (60, 72), "synthetic": (24, 12),
}  # fmt: skip
"""Size on one node, and how often each stage does its work."""
STAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "montage": ("project", "match", "correct", "add"),
    "blast": ("scan", "rank"),
    "readings": ("record", "quantiles", "correlate", "report"),
    "synthetic": ("load", "compute"),
}
KINDS: Final = ("montage", "blast", "readings", "synthetic")
WIDE: Final = (0, 2, 3)
"""Places in the set, before it is shuffled, of the wide workflows."""
MEMORY_MIB: Final = 400
LIMIT_MIN: Final[Mapping[str, int]] = {"montage": 1, "blast": 2, "readings": 1, "synthetic": 1}
WIDE_LIMIT_MIN: Final = 3


@dataclass(frozen=True)
class Workflow:
    """One workflow of a set.

    Attributes:
        number: from 0; names its directory.
        nodes: of each of its jobs.
    """

    number: int
    kind: str
    nodes: int

    @property
    def words(self) -> list[str]:
        """The arguments of `workflow.py submit`, without the directory."""
        size, times = SIZES[self.kind]
        return [
            self.kind, "--cores", str(self.nodes), "--size", str(size * self.nodes),
            "--times", str(times),
        ]  # fmt: skip


@dataclass(frozen=True)
class StageJob:
    """One job of a workflow."""

    workflow: Workflow
    stage: str

    @property
    def key(self) -> tuple[str, str, int]:
        """What jobs that take the same time alone have in common."""
        return self.workflow.kind, self.stage, self.workflow.nodes


def workflows(seed: int, count: int, max_nodes: int) -> Sequence[Workflow]:
    """A set of `count` workflows in a random order."""
    kinds = [
        (KINDS[at % len(KINDS)], 2 if at in WIDE and max_nodes >= 2 else 1) for at in range(count)
    ]
    random.Random(seed).shuffle(kinds)
    return [Workflow(number, *each) for number, each in enumerate(kinds)]


def sbatch_options(workflow: Workflow) -> list[str]:
    """Every job may be host and guest, and be requeued."""
    limit_min = WIDE_LIMIT_MIN if workflow.nodes > 1 else LIMIT_MIN[workflow.kind]
    return [
        "--partition=share", f"--nodes={workflow.nodes}", f"--time={limit_min}",
        f"--mem={MEMORY_MIB}", "--coschedule=both", "--requeue", "--kill-on-invalid-dep=yes",
    ]  # fmt: skip
