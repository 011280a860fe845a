# SPDX-License-Identifier: Apache-2.0
"""A mom that is frozen: the server believes that its node is free."""

import signal

from tests.real_pbs.server import wait_for

FULL = "select=1:ncpus=4"


def on(server, job):
    return server.jobs(job)[job].get("exec_vnode", "")


def test_others_run_and_the_frozen_one_goes_on_where_it_was(server, bridge):
    server.signal_mom("n1", signal.SIGSTOP)
    registered, pid = bridge.registrations(), bridge.link_pid()
    try:
        stuck = server.qsub("-l", f"{FULL}:vnode=n1")
        wait_for("a start under way", lambda: server.jobs(stuck)[stuck].get("substate") == 41)
        others = [server.qsub("-l", FULL) for _ in range(3)]
        for job in others:
            server.wait_state(job, "R")
        wait_for("three that run", lambda: all(
            server.jobs(job)[job]["substate"] == 42 for job in others
        ))  # fmt: skip
        waits = server.qsub("-l", FULL)
        wait_for("a reason", lambda: "comment" in server.jobs(waits)[waits])
        assert server.state(waits) == "Q"
        assert not any("n1" in on(server, job) for job in others)
        assert (bridge.registrations(), bridge.link_pid()) == (registered, pid)
    finally:
        server.signal_mom("n1", signal.SIGCONT)
    wait_for("its start", lambda: server.jobs(stuck)[stuck]["substate"] == 42, 240)
    server.delete_all()


def test_a_resume_to_a_frozen_mom_does_not_stop_the_link(server, bridge):
    sleeps = server.qsub("-l", f"{FULL}:vnode=n2")
    wait_for("its start", lambda: server.jobs(sleeps)[sleeps].get("substate") == 42)
    server.run("qsig", "-s", "suspend", sleeps)
    server.wait_state(sleeps, "S")
    server.signal_mom("n2", signal.SIGSTOP)
    try:
        server.run("qsig", "-s", "resume", sleeps)
        wait_for("a deadline", lambda: "no answer of its moms" in bridge.log.read_text())
        other = server.qsub("-l", f"{FULL}:vnode=n3")
        wait_for("a job that runs", lambda: server.jobs(other)[other].get("substate") == 42)
    finally:
        server.signal_mom("n2", signal.SIGCONT)
    wait_for("its resumption", lambda: server.state(sleeps) == "R", 120)
    server.delete_all()
