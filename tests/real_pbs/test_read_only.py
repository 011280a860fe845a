# SPDX-License-Identifier: Apache-2.0
"""The link without libpbs.so.0: the queue is planned and explained, and nothing is started."""

import os
import re
import subprocess

import pytest

from tests.real_pbs.server import wait_for
from tests.real_pbs.service import COMMAND, Bridge


@pytest.fixture(scope="module")
def bridge(server, tmp_path_factory):
    """A service, and a link that finds PBS's commands but no library."""
    folder = tmp_path_factory.mktemp("without-library")
    for name in ("bin", "sbin"):
        (folder / name).symlink_to(server.exec / name)
    started = Bridge()
    started.start_service()
    with started.log.open("ab") as log:
        started.link = subprocess.Popen(
            [*COMMAND, "pbs-link", "--read-only", "--service", str(started.socket)],
            stderr=log, env={**os.environ, "PBS_EXEC": str(folder)},
        )  # fmt: skip
    yield started
    started.stop()


def test_jobs_are_planned_and_explained_but_not_started(server, bridge):
    odd = [server.qsub("-N", name, "-l", "select=1:ncpus=2") for name in ("nan", "1e5", "plain")]
    never = server.qsub("-l", "select=9:ncpus=4")
    wait_for("a plan", lambda: {*odd, never} <= set(bridge.ask("plan").split()))
    assert "starts now on n1" in bridge.ask("explain", odd[0])
    assert "can never run" in bridge.ask("explain", never)
    assert server.run("qselect", "-s", "R") == ""
    log = bridge.log.read_text()
    assert "read-only: no job is started" in log
    # The first releases of 23.06 print such a name as a number, the later ones as a text.
    printed = re.sub(r"\s", "", server.run("qstat", "-f", "-F", "json"))
    said = "Job_Name is printed as invalid JSON, and read as the text 'nan'" in log
    assert said == ('"Job_Name":nan' in printed)
