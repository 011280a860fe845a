# SPDX-License-Identifier: Apache-2.0
"""docs/PBS.md on a real server: its blocks are run as written, one after the other."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.documents.following import Follower
from tests.documents.marks import Run
from tests.documents.pages import read
from tests.real_pbs.world import USERS

EVENTUALLY = """eventually() {
    for _ in {1..120}; do if (eval "$*") >/dev/null 2>&1; then return; fi; sleep 0.5; done
    eval "$*" || echo "not within a minute: $*"
    return 1
}"""


@pytest.fixture(scope="module")
def conf():
    return "PBS_DAEMON_SERVICE_USER=pbsadm\n"


class ServersHost:
    """Runs blocks beside the server; what they start goes on when they end."""

    def __init__(self, server) -> None:
        venv = Path(sys.executable).parent
        self._env = {**server.env, "PATH": f"{venv}:{server.env['PATH']}", "COLUMNS": "160"}

    def run(self, script: str, mark: Run) -> subprocess.CompletedProcess[str]:
        """Runs a script as the mark's user."""
        who: dict[str, Any] = {}
        if mark.user:
            number = USERS[mark.user]
            home = os.path.expanduser(f"~{mark.user}")  # noqa: PTH111
            who = {"user": number, "group": number, "extra_groups": [], "cwd": home}
        # Files: a pipe would end only with what the block has started, and `pkill -f` would find
        # the block itself in the arguments of its shell.
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as output,
            tempfile.NamedTemporaryFile("w", encoding="utf-8") as file,
        ):
            file.write(f"{EVENTUALLY}\n{script}")
            file.flush()
            Path(file.name).chmod(0o644)
            done = subprocess.run(
                ["bash", "-euo", "pipefail", file.name], env=self._env, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, timeout=300, check=False, **who,
            )  # fmt: skip
            output.seek(0)
            return subprocess.CompletedProcess(done.args, done.returncode, output.read())

    def put(self, mark: Run) -> None:
        """The page needs no files."""
        assert not mark.files


def test_commands_do_what_the_page_says(server) -> None:
    """Slow: real daemons; jobs are planned, started and handed over."""
    # As PBS's installation leaves it: its own scheduler runs.
    conf = Path("/etc/pbs.conf")
    conf.write_text(conf.read_text().replace("PBS_START_SCHED=0", "PBS_START_SCHED=1"))
    for folder in ("sched_priv", "sched_logs"):
        server.run("chown", "-R", "root", f"/var/spool/pbs/{folder}")
    host = ServersHost(server)
    follower = Follower(lambda _: host)
    follower.follow(read("docs/PBS.md").blocks)
    assert not follower.faults, "\n\n".join(follower.faults)
