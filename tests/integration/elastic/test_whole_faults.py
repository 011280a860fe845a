# SPDX-License-Identifier: Apache-2.0
"""The whole path while programs, launchers and nodes die at any step, and users give orders.

After each test all nodes are idle again (the fixture `cluster` waits for it).
"""

import re

import pytest

from tests.integration.elastic.whole import (
    HEAT,
    NEVER,
    at_stage,
    ended,
    has_width,
    on_node,
    order,
    output,
    shown,
    stage,
    start,
    width,
)

QUICK, SLOW = HEAT.format(3), HEAT.format(15)
"""The latter probes every three seconds: steps that wait for it can be seen."""


def held_at(cluster, nodes, program=QUICK):
    """A job of so many nodes that only orders resize."""
    job = start(cluster, program, f"1-{nodes}", "-w", "n1")
    has_width(cluster, job, nodes)
    cluster.run("schedbridge", "elastic", "hold", job)
    return job


def lose(cluster, node):
    """A node is gone: its daemons and all that runs there."""
    cluster.script("kill", "node", node)
    cluster.script("kill", "agent", node)
    on_node(cluster, node, "pkill -KILL slurmstepd; pkill -KILL -u user; true")


def bring_back(cluster, node):
    for words in (f"node {node}", f"agent {node}"):  # which take their time after such an end
        on_node(cluster, node, f"role start {words}")
    cluster.wait_for(
        f"{node} is idle", lambda: cluster.run("sinfo", "-h", "-n", node, "-o", "%T") == "idle", 90
    )


def test_a_node_that_is_lost_while_a_job_grows_there_costs_the_job_nothing(cluster, rigid):
    job = start(cluster, HEAT.format(NEVER), "1-2", "-w", "n1")
    at_stage(cluster, job, "adding")
    (node,) = set(expanded(cluster, job)) - {"n1"}
    lose(cluster, node)
    try:
        cluster.wait_for("the node is given back", lambda: width(cluster, job) == 1, 120)
        assert cluster.state(job) == "RUNNING"
    finally:
        bring_back(cluster, node)
    assert not order(cluster, "hold", job)
    ended(cluster, job, rigid)


def expanded(cluster, job):
    nodes = cluster.job(job)["NodeList"]
    return cluster.run("scontrol", "show", "hostnames", nodes).split()


def test_a_slurmd_that_is_down_does_not_keep_a_job_from_leaving_its_node(cluster, rigid):
    job = held_at(cluster, 2)
    (node,) = set(expanded(cluster, job)) - {"n1"}
    cluster.script("kill", "node", node)
    try:
        assert not order(cluster, "shrink", job, "1")
        has_width(cluster, job, 1)
    finally:
        cluster.script("restart", "node", node)
    ended(cluster, job, rigid)


def test_a_node_that_is_lost_while_the_program_leaves_it_ends_the_job_and_nothing_else(cluster):
    job = held_at(cluster, 2)
    other = cluster.sbatch("-N1", "--exclusive", "-t5", run="sleep 60")
    cluster.wait_state(other, "RUNNING")
    (node,) = set(expanded(cluster, job)) - {"n1"}
    assert not order(cluster, "shrink", job, "1")
    at_stage(cluster, job, "leaving", "vacating", "releasing")
    lose(cluster, node)
    try:
        cluster.wait_for(
            "the job has ended, or gone on without the node",
            lambda: cluster.state(job) != "RUNNING" or (
                width(cluster, job) == 1 and not stage(cluster, job)
            ), 150,
        )  # fmt: skip
        assert cluster.state(other) == "RUNNING"
    finally:
        bring_back(cluster, node)


@pytest.mark.parametrize("at", ["granting", "adding"])
def test_a_program_that_dies_between_asked_and_granted_leaves_no_node_behind(cluster, at):
    job = start(cluster, SLOW, "1-4", "-w", "n1")
    at_stage(cluster, job, *(("granting", "adding") if at == "granting" else ("adding",)))
    on_node(cluster, "n1", "pkill -KILL -x heat")
    cluster.wait_state(job, "COMPLETED", timeout_s=90)
    assert "exit 0" not in output(cluster, job)


STEPS = ["granting", "adding", "leaving", "vacating"]
"""Granting takes some milliseconds: whoever waits for it may find the next step."""


def changing(cluster, at):
    """A job that grows from 1 to 3 nodes or shrinks from 3 to 1, and is just at this step.

    It has run for a while: a slurmctld that is killed loses jobs that began in its last seconds.
    """
    job = held_at(cluster, 3, SLOW)
    if at in ("granting", "adding"):
        assert not order(cluster, "shrink", job, "1")
        has_width(cluster, job, 1)
        assert not order(cluster, "grow", job, "3")
        at_stage(cluster, job, *(("granting", "adding") if at == "granting" else ("adding",)))
        return job
    if at == "vacating":
        linger(cluster, job, "n3")
    else:
        on_node(cluster, "n1", "pkill -STOP -x heat")  # so that it comes to no probe
    assert not order(cluster, "shrink", job, "1")
    at_stage(cluster, job, at)
    return job


@pytest.mark.parametrize("at", STEPS)
def test_a_launcher_that_is_killed_at_any_step_goes_on(cluster, rigid, at):
    job = changing(cluster, at)
    on_node(cluster, "n1", f"kill -9 $(cat /tmp/schedbridge-{job}-*/launcher.pid)")
    on_node(cluster, "n1", "pkill -CONT -x heat; true")
    has_width(cluster, job, 3 if at in ("granting", "adding") else 1)
    said = ended(cluster, job, rigid)
    assert "the launcher died and is started again" in said


@pytest.mark.parametrize("daemon", ["service", "controller", "agent"])
@pytest.mark.parametrize("at", STEPS)
def test_a_daemon_that_is_killed_at_any_step_loses_nothing(cluster, rigid, daemon, at):
    job = changing(cluster, at)
    words = [daemon, "n1"] if daemon == "agent" else [daemon]
    cluster.script("kill", *words)
    on_node(cluster, "n1", "pkill -CONT -x heat; true")
    cluster.script("restart", *words)
    # A new service has forgotten `hold`: a job that has shrunk may grow again. So what counts is
    # that the program was through with the change, and the nodes that the job holds in the end.
    kind = "grow from 1 to 3" if at in ("granting", "adding") else "shrink from 3 to 1"
    cluster.wait_for("the change is done", lambda: is_done(output(cluster, job), kind), 150)
    if at in ("granting", "adding"):
        has_width(cluster, job, 3)
    else:
        cluster.wait_for("it has settled", lambda: not stage(cluster, job), 150)
    ended(cluster, job, rigid)


def is_done(said, kind):
    """Whether a launcher has told of a change of this kind that it is done."""
    numbers = re.findall(rf"change (\d+): {kind} nodes", said)
    return any(f"change {number}: done" in said for number in numbers)


def linger(cluster, job, node):
    """A process of the job is on a node for a while: the node is not vacant before it ends."""
    step = f"srun --jobid={job} --overlap -N1 -n1 -w {node} -Q sleep 8"
    cluster.run("sh", "-c", f"nohup {step} >/dev/null 2>&1 & sleep 1")
    cluster.wait_for(
        "its process", lambda: on_node(cluster, node, "pgrep -xc -u user sleep || true") != "0", 20
    )


def test_two_runs_in_one_script_use_the_nodes_that_the_job_has(cluster, rigid):
    again = f"{HEAT.format(1)}\nschedbridge run --mpi pmi2 -- {HEAT.format(1)}"
    job = start(cluster, again, "1-3", "-w", "n1")
    has_width(cluster, job, 3)
    result = rigid
    said = ended(cluster, job, result)
    assert said.splitlines().count(result) == 2
    second = said[said.index(result) :]
    assert "grow" not in second, said  # it began on all three


def test_a_task_of_an_array_grows_and_shrinks(cluster, rigid):
    array = start(cluster, QUICK, "1-4", "--array=3,7", "-o", "elastic/%A_%a.out")
    job = f"{array}_7"
    cluster.wait_for("a task grows", lambda: shown(cluster, job).get("nodes"), 90)
    cluster.run("schedbridge", "elastic", "hold", f"{array}_3")
    cluster.run("scancel", f"{array}_3")
    has_width(cluster, job, 4)
    waiting = cluster.sbatch("-N3", "--exclusive", "-t5", run="sleep 10")
    cluster.wait_state(waiting, "RUNNING", timeout_s=120)
    cluster.run("schedbridge", "elastic", "hold", job)
    assert width(cluster, job) == 1
    ended(cluster, job, rigid)


def test_a_job_that_was_resized_is_suspended_signalled_and_requeued(cluster, rigid):
    job = held_at(cluster, 2)
    cluster.root("scontrol", "suspend", job)
    cluster.wait_state(job, "SUSPENDED")
    problem = order(cluster, "shrink", job, "1")
    cluster.root("scontrol", "resume", job)
    cluster.wait_state(job, "RUNNING")
    if problem:
        assert not order(cluster, "shrink", job, "1")
    has_width(cluster, job, 1)
    assert not order(cluster, "grow", job, "2")
    has_width(cluster, job, 2)
    cluster.root("scontrol", "requeuehold", job)
    cluster.wait_state(job, "PENDING", timeout_s=90)
    assert shown(cluster, job) == {}
    cluster.root("scontrol", "release", job)
    cluster.root("scontrol", "update", f"JobId={job}", "StartTime=now")
    cluster.wait_state(job, "RUNNING", timeout_s=200)
    has_width(cluster, job, 2)
    ended(cluster, job, rigid)


def test_accounting_adds_up_the_parts_of_a_resized_job(cluster):
    job = held_at(cluster, 3)
    assert not order(cluster, "shrink", job, "1")
    has_width(cluster, job, 1)
    cluster.run("scancel", job)
    (*_, last) = cluster.wait_records([job])

    def parts():
        out = cluster.run(
            "env", "SLURM_TIME_FORMAT=%s", "sacct", "-X", "-D", "-P", "-n", "-j", job, "-o",
            "State,Submit,Start,End,NNodes,CPUTimeRAW",
        )  # fmt: skip
        return [line.split("|") for line in out.splitlines()]

    rows = parts()
    assert [row[0] for row in rows[:-1]] == ["RESIZING"] * (len(rows) - 1), rows
    # The job grows soon after its start: Slurm keeps no part that begins and ends in one second.
    assert [int(row[4]) for row in rows] in ([1, 3, 1], [3, 1]), rows
    submit = [int(row[1]) for row in rows]
    end = [int(row[3]) for row in rows]
    assert submit[1:] == end[:-1], rows  # the parts follow each other without a gap
    assert last.end_s == end[-1]
