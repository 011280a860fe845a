# SPDX-License-Identifier: Apache-2.0
"""The service and the link without root: as PBS_DAEMON_SERVICE_USER of pbs.conf."""

import contextlib
import time
from pathlib import Path

import pytest

from tests.real_pbs.server import HOME, wait_for
from tests.real_pbs.service import Bridge
from tests.real_pbs.world import USERS

USER = "pbsadm"
pytestmark = pytest.mark.usefixtures("no_jobs")


@pytest.fixture(scope="module")
def conf():
    return f"PBS_DAEMON_SERVICE_USER={USER}\n"


@pytest.fixture(scope="module")
def bridge(server):
    # As PBS's installation does if the variable is set then.
    for folder in ("sched_priv", "sched_logs"):
        server.run("chown", "-R", USER, str(HOME / folder))
    server.qmgr(f"set server managers += {USER}@*")
    started = Bridge(user=USER)
    started.start_service()
    started.start_link()
    yield started
    started.stop()


def owners_of(program):
    """User ids of the processes that run it. Others may end while they are looked at."""
    found = []
    for path in Path("/proc").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if path.name.isdecimal() and (path / "comm").read_text().startswith(program):
                found.append(path.stat().st_uid)
    return found


def test_the_link_is_not_root(bridge):
    status = Path(f"/proc/{bridge.link_pid()}/status").read_text()
    uids = next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1:]
    assert set(uids) == {str(USERS[USER])}


def test_jobs_run_and_estimates_are_written(server, bridge):
    server.wait_state(server.qsub("-l", "select=4:ncpus=4"), "R")
    waits = server.qsub("-l", "select=1:ncpus=1")
    wait_for("an estimate", lambda: "start_time" in server.jobs(waits)[waits].get("estimated", {}))
    assert server.jobs(waits)[waits]["comment"].startswith("Not Running: ")


def test_reservations_are_answered(server, bridge):
    begin = time.strftime("%Y%m%d%H%M.%S", time.localtime(time.time() + 600))
    told = server.run("env", "PBS_TZID=UTC", "pbs_rsub", "-R", begin, "-D", "300", "-l",
                      "select=1:ncpus=2", user="alice")  # fmt: skip
    name = told.split()[0]
    wait_for("a confirmation", lambda: "RESV_CONFIRMED" in server.run("pbs_rstat", "-F", name))
    server.run("pbs_rdel", name)


def test_pbs_sched_takes_over_as_the_same_user(server, bridge):
    before = bridge.registrations()
    bridge.service.kill()
    bridge.service.wait()
    try:
        server.wait_state(server.qsub("-l", "select=1:ncpus=1"), "R", limit_s=120)
        assert "pbs_sched takes over" in bridge.log.read_text()
        assert owners_of("pbs_sched") == [USERS[USER]]
    finally:
        bridge.start_service()
    wait_for("the registration", lambda: bridge.registrations() > before)
