# SPDX-License-Identifier: Apache-2.0
"""Runs blocks on a dockerized Slurm: on its login side, or beside its daemons."""

import shlex
import subprocess
from pathlib import Path

from tests.documents.host import TIMEOUT_S, Host, files_of
from tests.documents.marks import PageCluster, Run
from tests.documents.pages import ROOT
from tests.integration.slurm import Cluster

DEFAULT = PageCluster(cluster="--nodes 8 --cpus 4 --accounting")
"""The cluster of the integration tests."""
SAME_SHELL = """if [ -r ~/.exported ]; then . ~/.exported; fi
trap 'export -p >~/.exported' EXIT"""
"""A user types all blocks in one shell: what one exports, the next ones have."""


class PageOnCluster:
    """Runs the blocks of one page on a cluster that stands while it does."""

    def __init__(self, name: str, wanted: PageCluster | None, folder: Path) -> None:
        wanted = wanted or DEFAULT
        options = shlex.split(wanted.cluster)
        if wanted.service:
            config = folder / "bridge.yaml"
            config.write_text((ROOT / "slurm_conf" / "bridge.yaml").read_text() + wanted.service)
            options += ["--service-config", str(config)]
        self.cluster = Cluster(name, *options)

    def stand(self) -> None:
        """Starts the cluster, unless a page has done so."""
        if self.cluster.process("true").returncode:
            self.cluster.up()

    def run(self, script: str, mark: Run) -> subprocess.CompletedProcess[str]:
        """Runs a script where the mark says."""
        self.stand()
        words = ["bash", "-euo", "pipefail", "-c"]
        if mark.run == "login":
            words.append(f"exec 2>&1\n{SAME_SHELL}\n{script}")
            return self.cluster.process(*words, user=mark.user or "user", timeout_s=TIMEOUT_S)
        return subprocess.run(
            ["docker", "exec", f"{self.cluster.name}-controller", *words, f"exec 2>&1\n{script}"],
            capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def put(self, mark: Run) -> None:
        """Puts the files that the mark names into the home of the user who types the block."""
        self.stand()
        for name, content in files_of(mark.files).items():
            write = ("sh", "-c", f"cat > {name}")
            self.cluster.process(*write, user=mark.user or "user", stdin=content.decode())


class BesideService:
    """Runs blocks on this machine, in the network of the service's container, as root."""

    def __init__(self, there: PageOnCluster, host: Host) -> None:
        self.there, self.host = there, host

    def run(self, script: str, mark: Run) -> subprocess.CompletedProcess[str]:
        """Runs a script; the loopback interface is the service's."""
        self.there.stand()
        name = f"{self.there.cluster.name}-service"
        pid = subprocess.run(
            ["docker", "inspect", "--format", "{{.State.Pid}}", name],
            capture_output=True, text=True, check=True,
        ).stdout.strip()  # fmt: skip
        inside = f"nsenter --target {pid} --net bash -euo pipefail -c {shlex.quote(script)}"
        return self.host.run(inside, mark)

    def put(self, mark: Run) -> None:
        """Puts the files that the mark names into the folder."""
        self.host.put(mark)
