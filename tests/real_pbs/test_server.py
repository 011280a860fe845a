# SPDX-License-Identifier: Apache-2.0
"""Jobs and faults on a real server (`scripts/test pbs`)."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.real_pbs.server import HOME, wait_for

pytestmark = pytest.mark.usefixtures("no_jobs")


def held(server, job_id):
    return server.jobs("-t", job_id)[job_id]


def test_chunks_get_their_vnodes(server, bridge):
    job = server.qsub("-l", "select=2:ncpus=2:mem=1gb+1:ncpus=1", "-l", "place=scatter")
    server.wait_state(job, "R")
    where = held(server, job)["exec_vnode"]
    assert where.count("(") == 3
    assert len({part.split(":")[0] for part in where.split("+")}) == 3


def test_a_waiting_job_has_a_reason_and_an_expected_start(server, bridge):
    server.wait_state(server.qsub("-l", "select=4:ncpus=4"), "R")
    waits, never = server.qsub("-l", "select=1:ncpus=2"), server.qsub("-l", "select=9:ncpus=4")
    wait_for("an estimate", lambda: "estimated" in held(server, waits))
    assert held(server, waits)["comment"].startswith("Not Running: ")
    wait_for("a reason", lambda: "comment" in held(server, never))
    assert "can never run" in bridge.ask("explain", never)
    assert waits in bridge.ask("plan")
    assert "OpenPBS" in bridge.ask("status")


def test_the_tasks_of_an_array_run(server, bridge):
    server.qsub("-J", "1-6", "-l", "select=1:ncpus=4", script="true")
    wait_for("an empty queue", lambda: not server.run("qselect"), 120)


def test_a_held_job_waits_until_it_is_released(server, bridge):
    job = server.qsub("-h", "-l", "select=1:ncpus=1")
    other = server.qsub("-l", "select=1:ncpus=1")
    server.wait_state(other, "R")
    assert server.state(job) == "H"
    server.run("qrls", job)
    server.wait_state(job, "R")


def test_a_job_in_a_confirmed_reservation_starts(server, bridge):
    begin = time.strftime("%Y%m%d%H%M.%S", time.localtime(time.time() + 8))
    told = server.run("env", "PBS_TZID=UTC", "pbs_rsub", "-R", begin, "-D", "300", "-l",
                      "select=1:ncpus=2", user="alice")  # fmt: skip
    name = told.split()[0]
    try:
        wait_for("a confirmation", lambda: "RESV_UNCONFIRMED" not in
                 server.run("pbs_rstat", "-F", name))  # fmt: skip
        job = server.qsub("-q", name.partition(".")[0], "-l", "select=1:ncpus=2",
                          "-l", "walltime=00:01:00")  # fmt: skip
        server.wait_state(job, "R", limit_s=120)
        queue = server.run("qmgr", "-c", f"list queue {name.partition('.')[0]}")
        assert "pbs-default" in queue
    finally:
        server.run("pbs_rdel", name, check=False)


def test_pbs_sched_takes_over_and_hands_back(server, bridge):
    before = bridge.registrations()
    bridge.service.kill()
    bridge.service.wait()
    try:
        server.wait_state(server.qsub("-l", "select=1:ncpus=1"), "R")
        assert "pbs_sched takes over" in bridge.log.read_text()
    finally:
        bridge.start_service()
    wait_for("the registration", lambda: bridge.registrations() > before)
    server.wait_state(server.qsub("-l", "select=1:ncpus=1"), "R")


def test_a_frozen_link_is_killed(server, bridge):
    os.kill(bridge.link_pid(), signal.SIGSTOP)
    server.wait_state(server.qsub("-l", "select=1:ncpus=1"), "R", limit_s=120)
    assert "it is killed" in bridge.log.read_text()


def test_a_restart_of_the_server_loses_nothing(server, bridge):
    runs = server.qsub("-l", "select=1:ncpus=1")
    server.wait_state(runs, "R")
    server.stop()
    server.start_again()
    server.wait_state(server.qsub("-l", "select=1:ncpus=1"), "R", limit_s=120)
    assert server.state(runs) == "R"


def test_a_server_that_was_frozen_is_served_again(server, bridge):
    runs = server.qsub("-l", "select=1:ncpus=1")
    server.wait_state(runs, "R")
    pid = int((HOME / "server_priv/server.lock").read_text().split()[0])
    kills = bridge.log.read_text().count("it is killed")
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_for("a watchdog", lambda: bridge.log.read_text().count("it is killed") > kills, 40)
        time.sleep(5)
    finally:
        os.kill(pid, signal.SIGCONT)
    server.wait_state(server.qsub("-l", "select=1:ncpus=1"), "R", limit_s=120)
    assert server.state(runs) == "R"
    wait_for("the link's registration", lambda: "bridge.pbs.link" in Path(
        f"/proc/{bridge.link_pid()}/cmdline"
    ).read_text(), 60)  # fmt: skip
    other = server.qsub("-l", "select=9:ncpus=4")
    wait_for("the service's reason", lambda: "can hold it with its constraints" in
             held(server, other).get("comment", ""), 60)  # fmt: skip


def test_a_dead_mom_gets_no_jobs(server, bridge):
    server.signal_mom("n1", signal.SIGKILL)
    jobs = [server.qsub("-l", "select=1:ncpus=4") for _ in range(3)]
    for job in jobs:
        server.wait_state(job, "R", limit_s=120)
    wait_for("three that run elsewhere", lambda: not any(
        "n1" in held(server, job).get("exec_vnode", "") for job in jobs
    ))  # fmt: skip
    server.start_mom("n1")
    wait_for("the mom", lambda: server.nodes()["n1"]["state"] == "free")
