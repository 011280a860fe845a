# SPDX-License-Identifier: Apache-2.0
"""A real PBS server with moms, in the world of `world.py`."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.real_pbs.world import SERVER, USERS

HOME = Path("/var/spool/pbs")
_CONF = Path("/etc/pbs.conf")
_PORT = 17000


def pbs_exec() -> Path:
    """Where PBS is installed.

    Raises:
        RuntimeError: it is not.
    """
    folder = Path(os.environ.get("PBS_EXEC", ""))
    if not os.environ.get("PBS_EXEC") or not (folder / "sbin/pbs_server").exists():
        raise RuntimeError("PBS_EXEC must name the folder of an installed OpenPBS 23.06")
    if not (folder / "sbin/pbs_iff").stat().st_mode & 0o4000:
        raise RuntimeError(f"{folder}/sbin/pbs_iff is not setuid: chmod 4755 it")
    return folder


def wait_for(
    what: str, true: Callable[[], Any], limit_s: float = 60.0, step_s: float = 0.05
) -> Any:
    """Waits until something is true, and returns it.

    Raises:
        TimeoutError: it does not become true.
    """
    until = time.monotonic() + limit_s
    while True:
        found = true()
        if found:
            return found
        if time.monotonic() > until:
            raise TimeoutError(f"{what}: not within {limit_s:g} s")
        time.sleep(step_s)


class Server:
    """One server; its moms are `n1`, `n2`, ..."""

    def __init__(self, conf: str = "") -> None:
        """Prepares it.

        Args:
            conf: more lines of pbs.conf.
        """
        self.exec = pbs_exec()
        self._moms: dict[str, Path] = {}
        _CONF.write_text(
            f"PBS_EXEC={self.exec}\nPBS_HOME={HOME}\nPBS_SERVER={SERVER}\n"
            f"PBS_LEAF_NAME={SERVER}\nPBS_START_SERVER=1\nPBS_START_COMM=1\n"
            f"PBS_START_SCHED=0\nPBS_START_MOM=0\nPBS_CORE_LIMIT=0\n{conf}",
            encoding="utf-8",
        )
        self.env = {**os.environ, "PBS_EXEC": str(self.exec)}
        self.env["PATH"] = f"{self.exec}/bin:{self.exec}/sbin:{self.env['PATH']}"

    # ------------------------------------------------------------ commands

    def run(
        self, *words: str, user: str = "", check: bool = True, stdin: str = "", limit_s: float = 120
    ) -> str:
        """Runs a command of PBS and returns what it printed.

        Raises:
            RuntimeError: it failed.
        """
        who: dict[str, Any] = {}
        if user:
            number = USERS[user]
            who = {"user": number, "group": number, "extra_groups": [], "cwd": f"~{user}"}
            who["cwd"] = os.path.expanduser(f"~{user}")  # noqa: PTH111
        done = subprocess.run(
            words, env=self.env, capture_output=True, text=True, input=stdin, check=False,
            timeout=limit_s, errors="replace", **who,
        )  # fmt: skip
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()} {done.stdout.strip()}")
        return done.stdout.strip() or ("" if check else done.stderr.strip())

    def qmgr(self, *lines: str) -> str:
        """Changes the configuration."""
        return self.run("qmgr", stdin="\n".join(lines) + "\n")

    def qsub(self, *words: str, user: str = "alice", script: str = "sleep 3600") -> str:
        """Submits a job; returns its id."""
        return self.run("qsub", "-f", "-m", "n", "-o", "/dev/null", "-e", "/dev/null", *words,
                        user=user, stdin=f"#!/bin/sh\n{script}\n")  # fmt: skip

    def jobs(self, *words: str) -> dict[str, Any]:
        """Returns jobs with their attributes."""
        told = self.run("qstat", "-f", "-F", "json", *words, check=False)
        try:
            found: dict[str, Any] = json.loads(told).get("Jobs", {})
        except ValueError:
            return {}
        return found

    def state(self, job_id: str) -> str:
        """Returns a job's state; empty: it is gone."""
        return str(self.jobs("-t", job_id).get(job_id, {}).get("job_state", ""))

    def wait_state(self, job_id: str, *states: str, limit_s: float = 60.0) -> str:
        """Waits until a job has one of some states, and returns it."""
        found: str = wait_for(
            f"{job_id} in {states}",
            lambda: (s := self.state(job_id)) in states and (s or "gone"),
            limit_s,
        )
        return found

    def delete_all(self) -> None:
        """Deletes every job, and waits until they are gone."""
        ids = self.run("qselect").split()
        for at in range(0, len(ids), 200):
            self.run("qdel", "-Wforce", *ids[at : at + 200], check=False)
        wait_for("no jobs", lambda: not self.run("qselect"), 120)

    # ------------------------------------------------------------ daemons

    def start(self) -> None:
        """Creates the data of a new server, and starts it with its communication daemon."""
        self.run(str(self.exec / "libexec/pbs_habitat"), limit_s=300)
        self.start_again()
        self.qmgr(
            "set server mailer = /bin/true",
            "set server job_history_enable = True",
            "set server flatuid = True",
            "set server scheduling = True",
            "set server resources_default.walltime = 01:00:00",
        )

    def start_again(self) -> None:
        """Starts the daemons."""
        subprocess.run([self.exec / "sbin/pbs_comm"], env=self.env, check=True)
        subprocess.run([self.exec / "sbin/pbs_server"], env=self.env, check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip
        wait_for("the server", lambda: "Server" in self.run("qstat", "-B", check=False))

    def stop(self) -> None:
        """Stops the server; jobs go on."""
        self.run("qterm")

    def add_moms(self, count: int, attributes: str = "") -> None:
        """Starts moms, creates their nodes and waits until they are free.

        Args:
            count: how many.
            attributes: of each node: "resources_available.ncpus=4,resources_available.mem=8gb".
        """
        first = len(self._moms) + 1
        for number in range(first, first + count):
            self._add_mom(f"n{number}", _PORT + 10 * number, attributes)
        names = set(self._moms)
        wait_for(
            "free moms",
            lambda: names <= {n for n, held in self.nodes().items() if held["state"] == "free"},
        )

    def add_host_of_vnodes(self, *vnodes: str) -> str:
        """Starts a mom with several vnodes, and returns its name.

        Args:
            vnodes: the resources of each: "ncpus=2,mem=4gb".
        """
        number = len(self._moms) + 1
        name = f"n{number}"
        lines = ["$configversion 2", f"{name}: resources_available.ncpus=0"]
        lines += [
            f"{name}[{at}]: resources_available.{resource}"
            for at, resources in enumerate(vnodes)
            for resource in resources.split(",")
        ]
        self._add_mom(name, _PORT + 10 * number, "", "\n".join(lines) + "\n")
        wait_for(f"the vnodes of {name}", lambda: f"{name}[{len(vnodes) - 1}]" in self.nodes())
        return name

    def _add_mom(self, name: str, port: int, attributes: str, vnodes: str = "") -> None:
        home = Path("/var/spool") / f"mom-{name}"
        for folder, mode in (
            ("aux", 0o755), ("mom_logs", 0o755), ("mom_priv", 0o751), ("mom_priv/jobs", 0o751),
            ("mom_priv/hooks", 0o755), ("mom_priv/hooks/tmp", 0o755), ("checkpoint", 0o700),
            ("spool", 0o1777), ("undelivered", 0o1777),
        ):  # fmt: skip
            (home / folder).mkdir(parents=True)
            (home / folder).chmod(mode)
        shutil.copy(HOME / "pbs_environment", home / "pbs_environment")
        (home / "mom_priv/config").write_text("$usecp *:/ /\n$clienthost pbssrv\n")
        conf = home / "pbs.conf"
        lines = [line for line in _CONF.read_text().splitlines()
                 if not line.startswith(("PBS_HOME", "PBS_LEAF_NAME", "PBS_START"))]  # fmt: skip
        conf.write_text("\n".join([
            *lines, f"PBS_HOME={home}", f"PBS_MOM_NODE_NAME={name}", f"PBS_LEAF_NAME={name}",
            f"PBS_MOM_SERVICE_PORT={port}", f"PBS_MANAGER_SERVICE_PORT={port + 1}",
            "PBS_START_MOM=1",
        ]) + "\n")  # fmt: skip
        self._moms[name] = home
        if vnodes:
            (home / "vnodes").write_text(vnodes, encoding="utf-8")
            env = {**self.env, "PBS_CONF_FILE": str(conf)}
            subprocess.run([self.exec / "sbin/pbs_mom", "-s", "insert", "own", home / "vnodes"],
                           env=env, check=True)  # fmt: skip
        self.start_mom(name)
        self.qmgr(f"create node {name} Port={port}")
        if attributes:
            self.qmgr(*(f"set node {name} {each}" for each in attributes.split(",")))

    def start_mom(self, name: str) -> None:
        """Starts a mom that is not running."""
        env = {**self.env, "PBS_CONF_FILE": str(self._moms[name] / "pbs.conf")}
        subprocess.run([self.exec / "sbin/pbs_mom"], env=env, check=True)

    def signal_mom(self, name: str, number: signal.Signals) -> None:
        """Sends a signal to a mom."""
        pid = int((self._moms[name] / "mom_priv/mom.lock").read_text().split()[0])
        os.kill(pid, number)

    def nodes(self) -> dict[str, Any]:
        """Returns the vnodes."""
        told = self.run("pbsnodes", "-a", "-v", "-F", "json", check=False)
        try:
            found: dict[str, Any] = json.loads(told)["nodes"]
        except (ValueError, KeyError):
            return {}
        return found
