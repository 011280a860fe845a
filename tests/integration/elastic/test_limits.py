# SPDX-License-Identifier: Apache-2.0
"""What keeps a job from growing: its user, the site, Slurm's limits and reservations."""

import pytest

from tests.integration.elastic.whole import (
    HEAT,
    attached,
    ended,
    has_width,
    order,
    shown,
    start,
    width,
)


def grows_beside(cluster, job):
    """Whether a job keeps its one node while the policy gives all others to another one."""
    other = start(cluster, HEAT.format(1))
    has_width(cluster, other, 3)
    kept = width(cluster, job) == 1 and not shown(cluster, job)["reason"]
    cluster.run("scancel", other)
    return not kept


@pytest.mark.parametrize(
    ("option", "word"), [("--no-resize", "--no-resize"), ("-pright", "planning.resizes")]
)
def test_a_job_that_is_never_resized_keeps_its_nodes(cluster, rigid, option, word):
    job = start(cluster, HEAT.format(1), "1-4", option)
    attached(cluster, job)
    assert not grows_beside(cluster, job)
    for user in ("user", "root"):
        assert word in order(cluster, "grow", job, "2", user=user)
    assert word in cluster.run("schedbridge", "elastic", "show", job)
    ended(cluster, job, rigid)


def test_users_keep_their_limits_and_administrators_may_exceed_them(cluster, rigid):
    job = start(cluster, HEAT.format(1), user="alice")
    has_width(cluster, job, 2)
    problem = order(cluster, "grow", job, "3", user="alice")
    assert "asked for 1 nodes and may have 1 more" in problem
    assert "ask for 2 at most" in problem
    assert not order(cluster, "grow", job, "3", user="root")
    has_width(cluster, job, 3)
    ended(cluster, job, rigid, user="alice")


def test_a_job_grows_once_in_a_while_and_gives_nodes_back_at_any_time(cluster, rigid):
    job = start(cluster, HEAT.format(1), user="bob")
    has_width(cluster, job, 4)
    assert not order(cluster, "shrink", job, "2", user="bob")
    has_width(cluster, job, 2)
    assert "planning.resizes: apart" in order(cluster, "grow", job, "3", user="bob")
    waiting = cluster.sbatch("-N3", "--exclusive", "-t5", run="sleep 2")
    cluster.wait_state(waiting, "COMPLETED", timeout_s=120)
    assert width(cluster, job) == 1
    assert not order(cluster, "grow", job, "2", user="root")
    has_width(cluster, job, 2)
    ended(cluster, job, rigid, user="bob")


@pytest.mark.parametrize(
    ("limit", "bounds"), [("GrpTRES=node=2", "1-3"), ("MaxTRES=node=2", "1-4")]
)
def test_growth_that_slurms_own_limits_forbid_is_refused_and_the_job_goes_on(
    cluster, rigid, limit, bounds
):
    name = limit.partition("=")[0]
    cluster.root("sacctmgr", "-i", "modify", "user", "user", "set", limit)
    try:
        job = start(cluster, HEAT.format(1), bounds)
        cluster.wait_for("it is refused", lambda: shown(cluster, job).get("reason"), 90)
        assert "refused by the controller" in shown(cluster, job)["reason"]
        ended(cluster, job, rigid)
        assert len(cluster.job(job)["NodeList"].split(",")) == 1
        assert width(cluster, job) == 1
    finally:
        cluster.root("sacctmgr", "-i", "modify", "user", "user", "set", f"{name}=node=-1")


def test_no_job_grows_into_a_reservation_that_begins_before_it_ends(cluster, rigid):
    cluster.root(
        "scontrol", "create", "reservation", "ReservationName=soon", "StartTime=now+15minutes",
        "Duration=10", "Nodes=n[3-4]", "Users=root",
    )  # fmt: skip
    try:
        job = start(cluster, HEAT.format(1), "1-4", "-w", "n1")
        has_width(cluster, job, 2)
        assert cluster.job(job)["NodeList"] == "n[1-2]"
        short = start(cluster, HEAT.format(1), "1-4", "-t5", "-w", "n3")
        has_width(cluster, short, 2)
        assert cluster.job(short)["NodeList"] == "n[3-4]"
        assert width(cluster, job) == 2
        for one in (job, short):
            ended(cluster, one, rigid)
    finally:
        cluster.root("scontrol", "delete", "ReservationName=soon")
