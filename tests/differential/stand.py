# SPDX-License-Identifier: Apache-2.0
"""One of the two clusters, from up to down, and the line to its agent."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docker"))

from cluster import daemons, images, life, removal  # noqa: E402
from cluster.engine import call  # noqa: E402

from tests.differential.accounts import commands  # noqa: E402
from tests.differential.site import site  # noqa: E402
from tests.differential.variants import VARIANTS  # noqa: E402

AGENT = Path(__file__).with_name("agent.py")


class StandError(Exception):
    """A cluster does not do what it is told; the message says what."""


class Stand:
    """A cluster, bridged or stock."""

    def __init__(self, name: str, *, bridged: bool, variant: str = "plain") -> None:
        """Nothing is started yet."""
        self.name, self.bridged, self.variant = name, bridged, variant
        self.said: list[dict[str, Any]] = []
        """What the submissions of this case said; empty for one in the background."""
        self._agent: subprocess.Popen[str] | None = None

    def up(self) -> None:
        """Starts it, with its accounts; both are of one image."""
        removal.down(self.name)
        if not images.exists(images.CLUSTER):
            images.build("cluster")
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
            config.write(life.SERVICE_CONFIG.read_text() + VARIANTS[self.variant].planning)
            config.flush()
            life.up(
                site(self.name, bridged=self.bridged, variant=self.variant),
                Path(config.name), images.CLUSTER,
            )  # fmt: skip
        call("exec", "-i", f"{self.name}-dbd", "sh", "-es", stdin=commands(early=False).encode())

    def is_up(self) -> bool:
        """Does it answer already?"""
        return call("exec", f"{self.name}-login", "scontrol", "ping", check=False).returncode == 0

    def revive(self) -> bool:
        """Starts its slurmctld again if it has ended; was it so?

        Slurm 24.11 ends itself now and then when it is reconfigured twice within a second.

        Raises:
            Trouble: it cannot be started.
        """
        controller = daemons.find(self.name, "controller")
        if controller.role("alive", check=False):
            return False
        controller.start()
        return True

    def down(self) -> None:
        """Removes it."""
        self.close()
        removal.down(self.name)

    def close(self) -> None:
        """Ends the agent; the cluster stays."""
        if self._agent is not None:
            agent, self._agent = self._agent, None
            try:
                agent.communicate(timeout=30)  # its input ends
            except subprocess.TimeoutExpired:
                agent.kill()
                agent.wait()

    def ask(self, verb: str, **request: object) -> Any:
        """Asks the agent.

        Raises:
            StandError: it could not do it.
        """
        if self._agent is None or self._agent.poll() is not None:
            self._agent = subprocess.Popen(
                ["docker", "exec", "-i", f"{self.name}-login", "python3", "-u", "-c",
                 AGENT.read_text(encoding="utf-8")],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
        assert self._agent.stdin is not None
        assert self._agent.stdout is not None
        self._agent.stdin.write(json.dumps({"verb": verb, **request}) + "\n")
        self._agent.stdin.flush()
        line = self._agent.stdout.readline()
        if not line:
            raise StandError(f"{self.name}: the agent is gone")
        answer = json.loads(line)
        if "error" in answer:
            raise StandError(f"{self.name}: {verb}: {answer['error']}")
        return answer["answer"]
