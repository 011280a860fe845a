# SPDX-License-Identifier: Apache-2.0
"""One cluster in one container, which Slurm's tests may stop, reconfigure and start as they like.

It answers to what `tests.differential.stand` asks of a cluster's login side, so that the same agent
clears it between two tests.
"""

import subprocess
from pathlib import Path
from threading import Timer
from typing import Any

from cluster import images, life, removal
from cluster.daemons import LABEL, Daemon
from cluster.engine import Trouble, call, wait_for
from cluster.site import archive

from tests.differential.stand import Stand
from tests.slurm_suite.changes import CHANGES
from tests.slurm_suite.site import HOST, NODES, Layout, site

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TESTS = "/usr/src/slurm/testsuite"
_CONF = """SlurmSourceDir=/usr/src/slurm
SlurmBuildDir=/usr/src/slurm
SlurmInstallDir=/usr
SlurmConfigDir=/etc/slurm
"""
_GLOBALS = "set testsuite_user alice\n"
# Whatever a test left: daemons of any configuration, jobs' processes, files it added.
_STOP = """
# By their files: a slurmctld that was reconfigured has another name.
fuser -k -KILL /usr/sbin/slurm{ctld,d,stepd,dbd} /usr/bin/{srun,salloc,sbatch,expect}
pkill -KILL -f 'python3 -m pytest '
find /etc/slurm -type f ! -name munge.key ! -name 'slurmdbd.conf*' -delete
rm -rf /var/lib/slurm/state* /var/spool/slurmd/* /run/slurm/slurm*.pid /run/slurm/cred_state*
install -d -o slurm -g slurm -m 755 /var/lib/slurm/state
role start database
mariadb -e 'DROP DATABASE slurm_acct_db'
role start database
"""
ANSWER_S = 300
"""How long the container may take for some lines, and its agent for an answer."""
_REGISTER = """
sacctmgr -i -Q add cluster {name}
sacctmgr -i -Q add account everyone
sacctmgr -i -Q add user slurm,user,bob Account=everyone
sacctmgr -i -Q modify user slurm set AdminLevel=Administrator
"""
_LISTED = "sacctmgr -nP show qos format=name; sacctmgr -nP show account format=account"
_MADE = {"normal", "root", "everyone"}


class SuiteStand(Stand):
    """A cluster, bridged or stock, and Slurm's tests beside it."""

    def __init__(self, name: str, *, bridged: bool) -> None:
        """Nothing is started yet."""
        super().__init__(name, bridged=bridged)
        self.layout: Layout | None = None
        """Its layout; none yet, or not known."""

    @property
    def container(self) -> str:
        """The only one."""
        return f"{self.name}-login"

    def up(self) -> None:
        """Starts the container, munge and the service; no layout yet.

        Raises:
            Trouble: it cannot be started.
        """
        self.layout = None
        removal.down(self.name)
        if not images.exists(images.SUITE):
            images.build("suite")
        # SYS_PTRACE: who ends daemons must be able to see which file a process runs.
        call(
            "run", "--detach", "--name", self.container, "--hostname", HOST, "--cap-add",
            "SYS_PTRACE", "--label", f"{LABEL}={self.name}", images.SUITE,
        )  # fmt: skip
        key = archive({})
        call("exec", "-i", self.container, "tar", "-x", "-C", "/etc/slurm", stdin=key)
        self.root(
            "role start munge\n"  # while nobody else may write beside its key
            f"cat >{TESTS}/testsuite.conf <<'E'\n{_CONF}E\n"
            f"cat >{TESTS}/expect/globals.local <<'E'\n{_GLOBALS}E\n"
            + "".join(f"cd {TESTS}/{change.folder} && {change.script}\n" for change in CHANGES)
        )
        self._files(Layout.STANDING)
        if self.bridged:
            config = life.SERVICE_CONFIG.read_bytes()
            call("exec", "-i", self.container, "sh", "-c",
                 "cat >/etc/schedbridge/bridge.yaml", stdin=config)  # fmt: skip
            self._daemon("service").start()

    def is_up(self) -> bool:
        """Is the container there, with the service? Other daemons may be down: tests end them."""
        if call("exec", self.container, "true", check=False).returncode != 0:
            return False
        return not self.bridged or self._daemon("service").role("alive", check=False)

    def run(self, line: str, output: Path, bound_s: float) -> int:
        """Runs a line as the user slurm, what it prints into a file; its exit code.

        Raises:
            TimeoutExpired: it does not end.
        """
        with output.open("wb") as written:
            return subprocess.run(
                ["docker", "exec", "--user", "slurm", "--env", "HOME=/home/slurm", "--env",
                 "USER=slurm", "--env", f"PATH={PATH}", self.container, "bash", "-c", line],
                stdin=subprocess.DEVNULL, stdout=written, stderr=subprocess.STDOUT, check=False,
                timeout=bound_s,
            ).returncode  # fmt: skip

    def ask(self, verb: str, **request: object) -> Any:
        """Asks the agent; one that does not answer in time is ended.

        Raises:
            StandError: it could not do it.
        """
        timer = Timer(ANSWER_S, self._end_agent)
        timer.start()
        try:
            return super().ask(verb, **request)
        finally:
            timer.cancel()

    def lay_out(self, layout: Layout, *, again: bool = False) -> None:
        """Gives it a layout as if no test had been there, and starts its daemons; none of a seed.

        Args:
            layout: see site.py.
            again: even if it has it.

        Raises:
            Trouble: it does not become one.
        """
        if self.layout is layout and not again:
            return
        self.close()
        self.root(_STOP, check=False)
        self._files(layout)
        self.layout = layout
        if layout is Layout.SEED:
            return
        if layout is Layout.STANDING:
            self._daemon("dbd").start()
            self.root(_REGISTER.format(name=self.name))
        nodes = " ".join(f"n{number}" for number in range(1, NODES + 1))
        self.root(f"role start node {nodes}")
        self._daemon("controller").start()
        shown = ("exec", self.container, "sinfo", "-h", "-p", "all", "-o", "%D %t")
        if not wait_for(
            lambda: call(*shown, check=False).stdout.split() == [str(NODES), "idle"], 60, 0.25
        ):
            raise Trouble(f"{self.name}: nodes are not idle", self._daemon("controller").tail())

    def pristine(self) -> bool:
        """Are slurm.conf, the QOS and the accounts as they were made?"""
        if self.layout is None:
            return False
        made = site(self.name, bridged=self.bridged, layout=self.layout).files()
        told = self.root("cat /etc/slurm/slurm.conf", check=False)
        if told != made["slurm.conf"]:
            return False
        return self.layout is not Layout.STANDING or set(self.root(_LISTED).split()) == _MADE

    def root(self, script: str, *, check: bool = True) -> str:
        """Runs lines as root; what they print.

        Raises:
            Trouble: they failed, or did not end in time, and `check`.
        """
        return call(
            "exec", "-i", self.container, "timeout", "-k", "5", str(ANSWER_S), "bash",
            "-es" if check else "-s", stdin=script.encode(), check=check,
        ).stdout  # fmt: skip

    def fetch(self, path: str, to: Path) -> None:
        """Copies a file out of the container, if it is there."""
        call("cp", f"{self.container}:{path}", str(to), check=False)

    def _end_agent(self) -> None:
        if self._agent is not None:
            self._agent.kill()

    def _daemon(self, *words: str) -> Daemon:
        return Daemon(self.name, self.container, words)

    def _files(self, layout: Layout) -> None:
        made = site(self.name, bridged=self.bridged, layout=layout).files()
        call("exec", "-i", self.container, "tar", "-x", "-C", "/etc/slurm", stdin=archive(made))
        self.root(
            "cd /etc/slurm; chown slurm: . *.conf*; [ ! -e slurmdbd.conf.all ] ||"
            " install -o slurm -g slurm -m 600 slurmdbd.conf.all slurmdbd.conf"
        )
