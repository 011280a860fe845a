# SPDX-License-Identifier: Apache-2.0
"""Running jobs on a real Slurm get other nodes: decided by the tests, carried out by the plugin."""

import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.integration.replaced_service import RESULTS, SERVE, ReplacedService
from tests.integration.slurm import Cluster, expand

ORDERS = "/tmp/orders.jsonl"
HELPER = "schedbridge-resize"
LOCKS_MS = 3.0
"""How long a resize on eight nodes may hold Slurm's locks."""


@dataclass
class Decider:
    """Sends decisions about running jobs, and knows what the plugin said of them."""

    cluster: Cluster
    keys: Iterator[int] = field(default_factory=itertools.count)

    def lines(self) -> list[dict[str, object]]:
        text = self.cluster.inside("service", "sh", "-c", f"cat {RESULTS} 2>/dev/null || true")
        return [json.loads(line) for line in text.splitlines()]

    def send(self, job: str, **order: object) -> str:
        key = str(next(self.keys))
        line = json.dumps({"key": key, "job": job, **order})
        self.cluster.inside("service", "sh", "-c", f"echo '{line}' >>{ORDERS}")
        return key

    def result(self, key: str) -> dict[str, object]:
        found = self.cluster.wait_for(
            "the result of a decision",
            lambda: [line for line in self.lines() if line.get("key") == key], 20,
        )  # fmt: skip
        return found[0]

    def resize(self, job: str, nodes: str, **order: object) -> dict[str, object]:
        return self.result(self.send(job, nodes=nodes, **order))

    def reported(self, job: str) -> dict[str, object]:
        """What the plugin has reported of a running job last."""
        return [line for line in self.lines() if line.get("job") == job][-1]

    def resized(self, job: str, nodes: str) -> dict[str, object]:
        """A resize that must be carried out; Slurm and the report must then agree with it."""
        said = self.resize(job, nodes)
        assert said["outcome"] == "OUTCOME_APPLIED", said
        wanted = sorted(expand(nodes))
        assert sorted(expand(self.cluster.job(job)["NodeList"])) == wanted
        self.cluster.wait_for(
            f"a report of {nodes}", lambda: self.reported(job)["nodes"] == wanted, 10
        )
        return said


@pytest.fixture
def decider(cluster: Cluster) -> Iterator[Decider]:
    cluster.inside("service", "rm", "-f", ORDERS)
    with ReplacedService(cluster, "told_service.py", ORDERS, RESULTS, *SERVE):
        yield Decider(cluster)
        cluster.root("sh", "-c", "squeue -h -o %A | sort -u | xargs -r scancel --quiet")
        cluster.wait_empty()


def malleable(cluster: Cluster, nodes: str, *options: str, run: str = "sleep 300") -> str:
    """Starts a malleable job on these nodes."""
    job = cluster.sbatch(
        "--malleable=1-8", "--exclusive", "-t", "10", "-w", nodes, "-N", str(len(expand(nodes))),
        *options, run=run,
    )  # fmt: skip
    cluster.wait_state(job, "RUNNING")
    return job


def helpers(cluster: Cluster) -> list[str]:
    """Helper jobs that have not ended."""
    out = cluster.run("squeue", "-h", "-a", "-o", "%j %i %T")
    return [line for line in out.splitlines() if line.startswith(HELPER)]


def test_a_job_grows_and_shrinks(decider: Decider) -> None:
    cluster = decider.cluster
    job = malleable(cluster, "n1", run="srun -N1 -n1 --overlap -w n1 sleep 60")
    cluster.wait_for("its step", lambda: f"{job}.0" in cluster.run("squeue", "-s", "-h"), 20)
    end = cluster.job(job)["EndTime"]
    held = []
    for nodes in ("n[1-2]", "n[1-4]", "n[1-8]", "n[1-4]", "n[1-2]", "n1"):
        held.append(decider.resized(job, nodes)["lock_ms"])
        assert cluster.job(job)["EndTime"] == end
        time.sleep(1.5)
    print("lock ms", held)
    assert f"{job}.0" in cluster.run("squeue", "-s", "-h")
    assert not helpers(cluster)
