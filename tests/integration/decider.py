# SPDX-License-Identifier: Apache-2.0
"""Decides on running jobs in the service's place, and hears what the plugin says of it."""

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.integration.replaced_service import RESULTS, SERVE, ReplacedService
from tests.integration.slurm import Cluster, expand

ORDERS = "/tmp/orders.jsonl"
HELPER = "schedbridge-resize"


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
            lambda: [line for line in self.lines() if line.get("key") == key], 60,
        )  # fmt: skip
        return found[0]

    def start_guest(self, job: str, host: str, **order: object) -> dict[str, object]:
        return self.result(self.send(job, host=host, **order))

    def tell_agents(self, **share: object) -> None:
        """A share of a job; without one, all are dropped."""
        line = json.dumps({"share": share} if share else {"shares": None})
        self.cluster.inside("service", "sh", "-c", f"echo '{line}' >>{ORDERS}")

    def resize(self, job: str, nodes: str, **order: object) -> dict[str, object]:
        return self.result(self.send(job, nodes=nodes, **order))

    def reported(self, job: str) -> dict[str, object]:
        """What the plugin has reported of a running job last."""
        return [line for line in self.lines() if line.get("job") == job][-1]

    def judged(self, job: str, nodes: str) -> dict[str, object]:
        """The result of a resize to nodes that other jobs do not want.

        Nodes that were released a moment ago are busy until their daemons have answered.
        """

        def answered() -> dict[str, object]:
            said = self.resize(job, nodes)
            return {} if said["outcome"] == "OUTCOME_BUSY" else said

        return self.cluster.wait_for(f"job {job} on {nodes}", answered, 60)

    def resized(self, job: str, nodes: str) -> dict[str, object]:
        """A resize that must be carried out; Slurm and the report must then agree with it."""
        said = self.judged(job, nodes)
        assert said["outcome"] == "OUTCOME_APPLIED", said
        wanted = sorted(expand(nodes))
        assert sorted(expand(self.cluster.job(job)["NodeList"])) == wanted
        self.cluster.wait_for(
            f"a report of {nodes}", lambda: self.reported(job)["nodes"] == wanted, 30
        )
        return said


def malleable(decider: Decider, nodes: str, *options: str, run: str = "sleep 300") -> str:
    """A job that runs on these nodes and may have one to eight.

    The service starts such a job on as many nodes as it may have; those beyond are then taken.
    """
    cluster = decider.cluster
    job = cluster.sbatch("--malleable=1-8", "--exclusive", "-t", "10", *options, run=run)
    cluster.wait_state(job, "RUNNING")
    if held(cluster, job) != expand(nodes):
        decider.resized(job, nodes)
    return job


def held(cluster: Cluster, job: str) -> list[str]:
    return sorted(expand(cluster.job(job)["NodeList"]))


def helpers(cluster: Cluster) -> list[str]:
    """Helper jobs that have not ended."""
    out = cluster.run("squeue", "-h", "-a", "-o", "%j %i %T")
    return [line for line in out.splitlines() if line.startswith(HELPER)]


def made(cluster: Cluster, job: str) -> list[str]:
    """The states of all helpers of a job, as accounting has them."""
    out = cluster.root(
        "sacct", "-a", "-X", "-D", "-n", "-P", "-S", "now-1days", "--name", HELPER,
        "-o", "State,AdminComment",
    )  # fmt: skip
    mark = f"schedbridge: nodes for job {job}"
    return [line.split("|")[0].split()[0] for line in out.splitlines() if line.endswith(mark)]


def hosts_of_a_step(cluster: Cluster, job: str, nodes: str) -> list[str]:
    """Runs a step of one task on each of these nodes."""
    width = str(len(expand(nodes)))
    out = cluster.run(
        "srun", f"--jobid={job}", "--overlap", "-Q", "-N", width, "-n", width, "-w", nodes,
        "printenv", "SLURMD_NODENAME",
    )  # fmt: skip
    return sorted(out.split())


@contextmanager
def deciding(cluster: Cluster) -> Iterator[Decider]:
    """The service with orders of the test; the cluster is empty afterwards."""
    cluster.inside("service", "rm", "-f", ORDERS)
    with ReplacedService(cluster, "told_service.py", ORDERS, RESULTS, *SERVE):
        yield Decider(cluster)
        cluster.root("sh", "-c", "squeue -h -o %A | sort -u | xargs -r scancel --quiet")
        cluster.wait_empty()
