# SPDX-License-Identifier: Apache-2.0
"""Running jobs on a real Slurm get other nodes: decided by the tests, carried out by the plugin."""

import itertools

import pytest

from tests.integration.decider import (
    HELPER,
    Decider,
    held,
    helpers,
    hosts_of_a_step,
    made,
    malleable,
)
from tests.integration.slurm import Cluster


def test_a_job_grows_and_shrinks_and_a_step_of_it_survives(decider: Decider) -> None:
    cluster = decider.cluster
    job = malleable(decider, "n1", run="srun -N1 -n1 --overlap -w n1 sleep 120")
    step = f"{job}.0"
    cluster.wait_for("its step", lambda: step in cluster.run("squeue", "-s", "-h"), 20)
    end = cluster.job(job)["EndTime"]
    locks = []
    for nodes in ("n[1-2]", "n[1-4]", "n[1-8]", "n[1-4]", "n[1-2]", "n1", "n[1-8]", "n1"):
        locks.append(decider.resized(job, nodes)["lock_ms"])
        assert cluster.job(job)["EndTime"] == end
        assert decider.reported(job)["head"] == ""
    print("Slurm's locks were held for at most, ms:", locks)
    assert hosts_of_a_step(cluster, job, "n1") == ["n1"]
    assert step in cluster.run("squeue", "-s", "-h")
    assert not helpers(cluster)
    assert not set(made(cluster, job)) & {"RUNNING", "PENDING"}


def test_steps_run_on_added_nodes(decider: Decider) -> None:
    job = malleable(decider, "n1")
    decider.resized(job, "n[1-4]")
    assert hosts_of_a_step(decider.cluster, job, "n[1-4]") == ["n1", "n2", "n3", "n4"]
    shown = decider.cluster.run("scontrol", "show", "job", "-d", job)
    assert "Nodes=n[1-4] CPU_IDs=0-3 " in shown


def test_the_batch_host_stays_where_it_is_not_the_first_node(decider: Decider) -> None:
    cluster = decider.cluster
    other = cluster.sbatch("-N", "4", "-w", "n[1-4]", "--exclusive", run="sleep 300")
    cluster.wait_state(other, "RUNNING")
    job = malleable(decider, "n[5-6]")
    cluster.run("scancel", other)
    cluster.wait_for("idle nodes", lambda: "n3" in cluster.run("sinfo", "-N", "-h", "-t", "idle"))
    decider.resized(job, "n[3,5-6]")
    assert cluster.job(job)["BatchHost"] == "n5"
    assert decider.reported(job)["head"] == "n5"
    assert hosts_of_a_step(cluster, job, "n[3,5]") == ["n3", "n5"]
    for nodes in ("n[3,6]", "n3"):
        said = decider.resize(job, nodes)
        assert said["outcome"] == "OUTCOME_INVALID", said
        assert "n5 is the head of the job" in str(said["text"])
    decider.resized(job, "n5")
    assert decider.reported(job)["head"] == ""


def test_what_was_done_is_not_done_again(decider: Decider) -> None:
    job = malleable(decider, "n1")
    decider.resized(job, "n[1-2]")
    before = made(decider.cluster, job)
    assert decider.resize(job, "n2,n1")["outcome"] == "OUTCOME_APPLIED"
    assert len(made(decider.cluster, job)) == len(before)
    decider.resized(job, "n1")
    assert decider.resize(job, "n1")["outcome"] == "OUTCOME_APPLIED"


def test_a_decision_about_another_set_of_nodes_is_stale(decider: Decider) -> None:
    job = malleable(decider, "n[1-2]")
    first = decider.reported(job)["version"]
    decider.resized(job, "n[1-4]")
    assert decider.reported(job)["version"] != first
    assert decider.resize(job, "n[1-8]", stale=True)["outcome"] == "OUTCOME_STALE"
    decider.resized(job, "n[1-2]")
    assert decider.reported(job)["version"] == first


def test_nodes_in_use_are_not_had(decider: Decider) -> None:
    cluster = decider.cluster
    job = malleable(decider, "n[1-2]")
    other = cluster.sbatch("-n", "1", "-w", "n3", run="sleep 300")
    cluster.wait_state(other, "RUNNING")
    said = decider.resize(job, "n[1-4]")
    assert said["outcome"] == "OUTCOME_BUSY", said
    assert held(cluster, job) == ["n1", "n2"]
    assert not helpers(cluster)
    assert made(cluster, job) == []


def test_a_job_that_shares_nodes_is_not_grown(decider: Decider) -> None:
    cluster = decider.cluster
    others = cluster.sbatch("-N7", "-w", "n[2-8]", "--exclusive", run="sleep 300")
    cluster.wait_state(others, "RUNNING")
    job = cluster.sbatch("--malleable=1-2", "-n1", "-c2", "-w", "n1", run="sleep 300")
    cluster.wait_state(job, "RUNNING")
    said = decider.resize(job, "n[1-2]")
    assert said["outcome"] == "OUTCOME_REFUSED", said
    assert "whole nodes" in str(said["text"])
    assert not helpers(cluster)


def test_limits_bind_growth(decider: Decider) -> None:
    cluster = decider.cluster
    job = malleable(decider, "n[1-2]")
    cluster.root("sacctmgr", "-i", "modify", "qos", "normal", "set", "MaxTRESPerUser=node=3")
    try:
        said = decider.judged(job, "n[1-4]")
        assert said["outcome"] == "OUTCOME_LIMITED", said
        assert "QOSMaxNodePerUserLimit" in str(said["text"])
        assert held(cluster, job) == ["n1", "n2"]
        assert not helpers(cluster)
        assert not made(cluster, job)  # refused before a helper was made
        decider.resized(job, "n[1-3]")
    finally:
        cluster.root("sacctmgr", "-i", "modify", "qos", "normal", "set", "MaxTRESPerUser=node=-1")


@pytest.mark.parametrize(
    ("options", "nodes", "why"),
    [
        ((), "n[1-2]", "not malleable"),
        (("--malleable=1-2",), "n[1-3]", "the job allows 1 to 2"),
        (("--malleable=1-4", "--node-constraints=pof2"), "n[1-3]", "which is not pof2"),
        (("--malleable=1-4",), "n[1-4],n[9-10]", "unknown nodes"),
        (("--malleable=1-4", "-p", "left"), "n[1-4],n8", "not all nodes are in partition left"),
    ],
)
def test_what_a_job_does_not_allow_is_invalid(
    decider: Decider, options: tuple[str, ...], nodes: str, why: str
) -> None:
    cluster = decider.cluster
    job = cluster.sbatch("--exclusive", "-t", "10", *options, run="sleep 300")
    cluster.wait_state(job, "RUNNING")
    before = held(cluster, job)
    said = decider.resize(job, nodes)
    assert said["outcome"] == "OUTCOME_INVALID", said
    assert why in str(said["text"]) or "allows 1 to 4" in str(said["text"])
    assert held(cluster, job) == before


def test_nothing_is_left_behind_by_a_restart(decider: Decider) -> None:
    cluster = decider.cluster
    job = malleable(decider, "n1")
    decider.resized(job, "n[1-4]")
    version = decider.reported(job)["version"]
    cluster.script("restart", "controller")
    cluster.wait_for("a report", lambda: decider.reported(job)["version"] == version, 20)
    assert held(cluster, job) == ["n1", "n2", "n3", "n4"]
    assert not helpers(cluster)
    decider.resized(job, "n1")
    # As a slurmctld that was killed between two steps would leave one.
    stray = cluster.sbatch("-H", "-J", HELPER)
    cluster.root(
        "scontrol", "update", f"JobId={stray}", f"AdminComment=schedbridge: nodes for job {job}"
    )
    cluster.wait_state(stray, "CANCELLED", timeout_s=20)
    assert cluster.state(job) == "RUNNING"


def test_accounting_adds_up(decider: Decider) -> None:
    cluster = decider.cluster
    job = malleable(decider, "n1")
    for nodes in ("n[1-4]", "n[1-2]", "n[1-8]", "n1"):
        decider.resized(job, nodes)
    cluster.run("scancel", job)
    cluster.wait_records([job])
    records = [one for one in cluster.records() if one.job_id == job]
    records.sort(key=lambda one: one.submit_s)
    # Of each record Submit is when the nodes became these; Start may be the job's own.
    widths = [len(one.nodes) for one in records]
    assert widths[-5:] == [1, 4, 2, 8, 1]
    assert {one.state for one in records[:-1]} == {"RESIZING"}
    for one, after in itertools.pairwise(records):
        assert one.end_s == after.submit_s
    assert all(one.cpus == 4 * len(one.nodes) for one in records)


def test_suspended_jobs_keep_their_nodes(decider: Decider) -> None:
    cluster = decider.cluster
    job = malleable(decider, "n[1-2]")
    cluster.root("scontrol", "suspend", job)
    for nodes in ("n1", "n[1-4]"):
        said = decider.resize(job, nodes)
        assert said["outcome"] == "OUTCOME_REFUSED", said
        assert "suspended" in str(said["text"])
    cluster.root("scontrol", "resume", job)
    cluster.wait_state(job, "RUNNING")
    decider.resized(job, "n[1-4]")
    decider.resized(job, "n1")


def test_a_job_that_grew_can_be_requeued(decider: Decider) -> None:
    cluster = decider.cluster
    job = malleable(decider, "n1", "--requeue")
    decider.resized(job, "n[1-4]")
    cluster.root("scontrol", "requeuehold", job)
    cluster.wait_state(job, "PENDING")
    shown = cluster.job(job)
    assert shown["NumNodes"].split("-")[0] == "1"
    assert not helpers(cluster)
    cluster.wait_for(
        "idle nodes", lambda: len(cluster.run("sinfo", "-N", "-h", "-t", "idle", "-p", "main")
                                  .splitlines()) == 8,
    )  # fmt: skip


def test_a_job_that_grew_may_lose_a_node_and_go_back(decider: Decider) -> None:
    cluster = decider.cluster
    job = malleable(decider, "n[1-2]", "--no-kill", "--node-constraints=pof2")
    decider.resized(job, "n[1-4]")
    cluster.root("scontrol", "update", "NodeName=n4", "State=DOWN", "Reason=test")
    cluster.wait_for("the loss", lambda: held(cluster, job) == ["n1", "n2", "n3"], 20)
    cluster.wait_for("a report", lambda: decider.reported(job)["nodes"] == ["n1", "n2", "n3"], 20)
    decider.resized(job, "n[1-3,5]")
    decider.resized(job, "n[1-3]")  # no power of two, but as it was
    decider.resized(job, "n[1-2]")


def test_progress_is_shown_to_users(decider: Decider) -> None:
    cluster = decider.cluster
    job = cluster.sbatch("-n1", run="sleep 300")
    cluster.wait_state(job, "RUNNING")
    said = decider.result(decider.send(job, progress="grows to 4 nodes; waits"))
    assert said["outcome"] == "OUTCOME_APPLIED"
    shown = cluster.run("scontrol", "show", "job", job)
    assert "SystemComment=schedbridge: grows to 4 nodes, waits" in shown
    assert "schedbridge: grows" in cluster.run("squeue", "-h", "-j", job, "-O", "system_comment:80")
    decider.result(decider.send(job, progress=""))
    assert "SystemComment" not in cluster.run("scontrol", "show", "job", job)


def test_without_permission_nothing_is_resized(decider: Decider) -> None:
    cluster = decider.cluster
    job = malleable(decider, "n[1-2]")
    conf, word = "/etc/slurm/schedbridge/bridge.conf", "permit_job_expansion,"
    cluster.inside("controller", "sed", "-i", f"s/=defer,{word}/=defer,/", conf)
    try:
        cluster.script("restart", "controller")
        words = 'SchedulerParameters lacks "permit_job_expansion"'
        cluster.wait_for("a line", lambda: words in cluster.script("logs", "controller"), 10)
        said = decider.resize(job, "n[1-4]")
        assert said["outcome"] == "OUTCOME_REFUSED", said
        assert "permit_job_expansion" in str(said["text"])
    finally:
        cluster.inside("controller", "sed", "-i", f"s/=defer,/=defer,{word}/", conf)
        cluster.script("restart", "controller")
    assert held(cluster, job) == ["n1", "n2"]


def test_the_default_policy_resizes_nobody(cluster: Cluster) -> None:
    job = cluster.sbatch("--malleable=1-8", "--exclusive", "-t", "10", "-w", "n1", run="sleep 60")
    cluster.wait_state(job, "RUNNING")
    before = held(cluster, job)
    waiting = cluster.sbatch("-N", "4", "--exclusive", "-t", "5")
    cluster.wait_for(
        "a planned start", lambda: cluster.job(waiting)["StartTime"] not in ("Unknown", "N/A"), 20
    )
    cluster.run("scancel", waiting)
    assert held(cluster, job) == before
    assert f"bridge: resize JobId={job} " not in cluster.script("logs", "controller")
