# SPDX-License-Identifier: Apache-2.0
"""Guests on some of their host's nodes, and guests over several nodes, on a real Slurm with real
cgroups."""

from collections.abc import Iterator
from typing import Final

import pytest

from tests.integration.decider import Decider, deciding
from tests.integration.shared_nodes import shared_nodes, with_service
from tests.integration.slurm import Cluster, Record
from tests.integration.test_sharing import (
    FULL_SHARE,
    NO_CGROUP,
    SPIN,
    a_host,
    bound,
    cgroup,
    no_trace_is_left,
    shown,
    submit,
)

CLUSTER = "sbshareparts"
NODES: Final = ("n1", "n2")
OF_BOTH: Final = ("-N2", "-n4", "-wn[1-2]")
"""Options of a job of all CPUs of both nodes."""
NO_SHARE: Final = (NO_CGROUP, FULL_SHARE)
"""What is shown of a job without a quota, without and with a cgroup of its own."""


@pytest.fixture(scope="module")
def parts_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    service = with_service(tmp_path_factory.mktemp("service"))
    with shared_nodes(CLUSTER, "--cgroups", "--accounting", *service) as cluster:
        yield cluster


@pytest.fixture
def sharing(parts_cluster: Cluster) -> Iterator[Decider]:
    with deciding(parts_cluster) as found:
        yield found
        found.tell_agents()
    no_trace_is_left(parts_cluster)


def started(decider: Decider, host: str, nodes: str, *options: str, run: str = SPIN) -> str:
    """A guest that runs on these nodes of its host."""
    guest = submit(decider.cluster, "--coschedule=guest", *options, f"-w{nodes}", run=run)
    said = decider.start_guest(guest, host, on=nodes)
    assert said["outcome"] == "OUTCOME_APPLIED", said
    decider.cluster.wait_state(guest, "RUNNING")
    return guest


def two_guests(decider: Decider) -> tuple[str, dict[str, str]]:
    """A host of two nodes, and its guest on each of them."""
    host = a_host(decider, *OF_BOTH)
    return host, {node: started(decider, host, node) for node in NODES}


def held(cluster: Cluster) -> dict[str, str]:
    """CPUs of each node that Slurm counts as allocated."""
    shown = (cluster.run("scontrol", "show", "node", "-o", node) for node in NODES)
    return {
        node: text.split(" CPUAlloc=")[1].split()[0]
        for node, text in zip(NODES, shown, strict=True)
    }


def own_comment(cluster: Cluster, job: str, words: str) -> None:
    """Waits until the comment of a job has these words."""
    cluster.wait_for(
        f"a comment: {words}", lambda: words in cluster.run("scontrol", "show", "job", job)
    )


def throttled(cluster: Cluster, job: str, node: str) -> None:
    """Waits until the kernel holds the job's processes back on a node."""
    before = cgroup(cluster, job, "cpu.stat", node)
    assert "nr_throttled" in before
    cluster.wait_for("throttling", lambda: cgroup(cluster, job, "cpu.stat", node) != before)


def test_two_guests_have_a_node_of_their_host_each(sharing: Decider) -> None:
    cluster = sharing.cluster
    host, guests = two_guests(sharing)
    queue = cluster.run("squeue", "-h", "-o", "%i %T %N").splitlines()
    assert sorted(queue) == sorted(
        [f"{host} RUNNING n[1-2]", *(f"{guest} RUNNING {node}" for node, guest in guests.items())]
    )
    assert held(cluster) == {"n1": "2", "n2": "2"}
    for node, other, milli_cpus, weight in (("n1", "n2", 250, 1), ("n2", "n1", 500, 10)):
        guest = guests[node]
        assert f"Nodes={node} CPU_IDs=0-1" in cluster.run("scontrol", "show", "job", "-d", guest)
        assert sharing.reported(guest)["host"] == host
        bound(sharing, guest, milli_cpus, weight, node)
        throttled(cluster, guest, node)
        assert shown(cluster, guest, other) == NO_CGROUP
        assert shown(cluster, host, node) in NO_SHARE
        own_comment(cluster, guest, f"a guest on the nodes of job {host}")
    assert shown(cluster, guests["n1"]) == ("25000", "10")  # not changed by the other one's
    own_comment(cluster, host, f"shares its nodes with 2 guests, jobs {', '.join(guests.values())}")
    third = submit(cluster, "--coschedule=guest", "-wn2")
    for node in NODES:
        said = sharing.start_guest(third, host, on=node)
        assert said["outcome"] == "OUTCOME_BUSY", said


def test_one_guest_leaves_and_the_other_stays(sharing: Decider) -> None:
    cluster = sharing.cluster
    host, guests = two_guests(sharing)
    for node, guest in guests.items():
        bound(sharing, guest, node=node)
    reason = "its host was 12 percent slower"
    said = sharing.result(sharing.send(guests["n1"], requeue=reason))
    assert said["outcome"] == "OUTCOME_APPLIED", said
    cluster.wait_state(guests["n1"], "PENDING")
    own_comment(cluster, host, f"shares its nodes with a guest, job {guests['n2']}")
    assert shown(cluster, guests["n2"], "n2") == ("25000", "10")
    assert {cluster.state(job) for job in (host, guests["n2"])} == {"RUNNING"}
    assert held(cluster) == {"n1": "2", "n2": "2"}
    next_one = cluster.wait_for("another guest on the node", lambda: _joins(sharing, host))
    bound(sharing, next_one)
    assert shown(cluster, guests["n2"], "n2") == ("25000", "10")


def _joins(decider: Decider, host: str) -> str:
    """A new guest on n1, if it is free of the one before; otherwise it is withdrawn."""
    guest = submit(decider.cluster, "--coschedule=guest")
    said = decider.start_guest(guest, host, on="n1")
    if said["outcome"] == "OUTCOME_APPLIED":
        decider.cluster.wait_state(guest, "RUNNING")
        return guest
    assert said["outcome"] == "OUTCOME_BUSY", said
    decider.cluster.root("scancel", guest)
    return ""


def test_a_guest_over_two_nodes_has_its_share_on_each(sharing: Decider) -> None:
    cluster = sharing.cluster
    host = a_host(sharing, *OF_BOTH)
    run = "srun -N2 -n4 sh -c 'while :; do :; done'"
    guest = started(sharing, host, "n[1-2]", "-N2", "-n4", run=run)
    assert held(cluster) == {"n1": "2", "n2": "2"}
    for node, milli_cpus in (("n1", 250), ("n2", 500)):
        bound(sharing, guest, milli_cpus, node=node)
        throttled(cluster, guest, node)
    cluster.root("scancel", host)
    cluster.wait_for("a report", lambda: sharing.reported(guest)["host"] == "")
    sharing.tell_agents()  # a plan without quotas
    for node in NODES:
        cluster.wait_for(
            "its full share", lambda node=node: shown(cluster, guest, node) in NO_SHARE
        )
    assert held(cluster) == {"n1": "2", "n2": "2"}
    assert cluster.state(guest) == "RUNNING"


def test_a_host_that_ends_frees_the_node_without_a_guest(sharing: Decider) -> None:
    cluster = sharing.cluster
    host = a_host(sharing, *OF_BOTH)
    guest = started(sharing, host, "n2")
    bound(sharing, guest, node="n2")
    waits = submit(cluster, "-wn2")
    follows = submit(cluster, "-wn1")
    assert {cluster.state(job) for job in (waits, follows)} == {"PENDING"}
    cluster.root("scancel", host)
    cluster.wait_for("a report", lambda: sharing.reported(guest)["host"] == "")
    cluster.wait_state(follows, "RUNNING")
    sharing.tell_agents()  # a plan without quotas
    cluster.wait_for("its full share", lambda: shown(cluster, guest, "n2") in NO_SHARE)
    assert cluster.state(guest) == "RUNNING"
    assert cluster.state(waits) == "PENDING"  # the guest keeps its CPUs
    assert held(cluster) == {"n1": "2", "n2": "2"}
    cluster.root("scancel", follows)
    cluster.wait_for("a free node", lambda: held(cluster) == {"n1": "0", "n2": "2"})
    cluster.root("scancel", guest)
    cluster.wait_state(waits, "RUNNING")
    cluster.root("scancel", waits)
    cluster.wait_for("free nodes", lambda: held(cluster) == {"n1": "0", "n2": "0"})
    cluster.wait_for(
        "accounts", lambda: {each.raw_id for each in _ended(cluster)} >= {host, guest, waits}
    )
    held_by = {each.raw_id: (each.nodes, each.cpus) for each in _ended(cluster)}
    assert held_by[host] == (NODES, 4)
    assert held_by[guest] == held_by[waits] == (("n2",), 2)
    assert "jobs hold" not in cluster.inside("service", "cat", "/tmp/replacement.log")


def _ended(cluster: Cluster) -> list[Record]:
    return [each for each in cluster.records() if each.end_s is not None]


def test_the_service_starts_two_guests_on_one_host(parts_cluster: Cluster) -> None:
    cluster = parts_cluster
    cluster.root("schedbridge", "policy", "set", "static-half")
    try:
        host = submit(cluster, "--coschedule=host", *OF_BOTH, "-J", "host", run="srun sleep 600")
        cluster.wait_state(host, "RUNNING")
        guests = [
            cluster.sbatch("-p", "share", "-N1", "-n2", "--mem=300", "-t10", "--requeue",
                           "--coschedule=guest", "-J", f"guest-{node}", run=SPIN)
            for node in NODES
        ]  # fmt: skip
        for guest in guests:
            cluster.wait_state(guest, "RUNNING", timeout_s=120)
        node_of = {guest: cluster.job(guest)["NodeList"] for guest in guests}
        assert sorted(node_of.values()) == list(NODES)
        for guest, node in node_of.items():
            cluster.wait_for(
                "its quota",
                lambda guest=guest, node=node: shown(cluster, guest, node)[0] == "100000", 60,
            )  # fmt: skip
        own_comment(cluster, host, f"shares its nodes with 2 guests, jobs {', '.join(guests)}")
    finally:
        all_end(cluster)


def test_a_sequential_job_gets_a_guest_on_its_idle_node(parts_cluster: Cluster) -> None:
    cluster = parts_cluster
    cluster.root("schedbridge", "policy", "set", "pairs")
    try:
        run = "while :; do :; done"  # on the first node; no process is on the second one
        host = submit(cluster, "--coschedule=host", *OF_BOTH, "-J", "sequential", run=run)
        cluster.wait_state(host, "RUNNING")
        guest = cluster.sbatch(
            "-p", "share", "-N1", "-n2", "--mem=300", "-t10", "--requeue", "--coschedule=guest",
            "-J", "guest", run=SPIN,
        )  # fmt: skip
        cluster.wait_state(guest, "RUNNING", timeout_s=180)
        assert cluster.job(guest)["NodeList"] == "n2"
        own_comment(cluster, guest, f"a guest on the nodes of job {host}")
        cluster.wait_for("the least weight", lambda: shown(cluster, guest, "n2")[1] == "10", 60)
    finally:
        all_end(cluster)


def all_end(cluster: Cluster) -> None:
    cluster.root("schedbridge", "policy", "set", "slurm-like")
    cluster.root("sh", "-c", "squeue -h -o %A | sort -u | xargs -r scancel --quiet")
    cluster.wait_empty()
    no_trace_is_left(cluster)
