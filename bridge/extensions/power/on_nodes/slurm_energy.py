# SPDX-License-Identifier: Apache-2.0
"""Power as measured by Slurm's plugin `acct_gather_energy`: BMCs by IPMI or Redfish, and others.

Rules
    1. The name contains the plugin: `slurm:ipmi`, `slurm:xcc`, `slurm:pm_counters`.
    2. `scontrol` is run every `ASK_S`, in the background, because each answer costs slurmctld a
       request. Nodes that start together ask at different instants. A value is used for `KEPT_S`,
       with its age.
    3. Without a plugin there is no further request for `GIVE_UP_S`. Slurm shows `n/a`, or 0, for a
       node without a value.
"""

import re
import subprocess
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Final, Protocol

ASK_S: Final = 15.0
KEPT_S: Final = 30.0
ANSWER_S: Final = 10.0
GIVE_UP_S: Final = 600.0
_PLUGIN: Final = re.compile(rb"^AcctGatherEnergyType\s*=\s*acct_gather_energy/(\w+)", re.MULTILINE)
_WATTS: Final = re.compile(rb"\bCurrentWatts=([0-9]{1,9})(?:\s|$)")


class StartedCommand(Protocol):
    def poll(self) -> int | None:
        """Its exit code; None: it runs."""

    def kill(self) -> None: ...

    def output(self) -> bytes:
        """What it wrote; after its end."""


class _Command:
    """A real process."""

    def __init__(self, words: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def poll(self) -> int | None:
        return self._process.poll()

    def kill(self) -> None:
        self._process.kill()
        self.output()

    def output(self) -> bytes:
        return self._process.communicate()[0]


StartCommand = Callable[[Sequence[str]], StartedCommand]
"""Starts a command; raises OSError."""


class SlurmEnergy:
    """`CurrentWatts` of a node; a `bridge.extensions.power.on_nodes.sensor.Sensor`."""

    def __init__(
        self, node: str, start: StartCommand = _Command, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Prepares the sensor.

        Args:
            node: as Slurm calls it.
            clock: monotonic, s.
        """
        self._node, self._start, self._clock = node, start, clock
        self._plugin = ""
        self._running: tuple[StartedCommand, float] | None = None
        self._next_s = clock() + zlib.crc32(node.encode()) / 2**32 * ASK_S
        self._value: tuple[float, float] | None = None

    @property
    def name(self) -> str:
        """Names the energy plugin."""
        return f"slurm:{self._plugin or 'unknown'}"

    @property
    def age_s(self) -> float:
        """Seconds since Slurm's answer."""
        return 0.0 if self._value is None else self._clock() - self._value[1]

    def read(self) -> float | None:
        """Slurm's last answer."""
        now = self._clock()
        if self._running is not None:
            self._hear(*self._running, now)
        if self._running is None and now >= self._next_s:
            self._ask(now)
        if self._value is None or now - self._value[1] > KEPT_S:
            return None
        return self._value[0]

    def _ask(self, now: float) -> None:
        show = ("--oneliner", "show", "node", self._node) if self._plugin else ("show", "config")
        self._next_s = now + ASK_S
        try:
            self._running = self._start(("scontrol", *show)), now
        except OSError:
            self._next_s = now + GIVE_UP_S

    def _hear(self, running: StartedCommand, requested_s: float, now: float) -> None:
        code = running.poll()
        if code is None:
            if now - requested_s > ANSWER_S:
                running.kill()
                self._running = None
            return
        self._running, text = None, running.output()
        if code != 0:
            return
        if self._plugin:
            found = _WATTS.search(text)
            if found is not None and int(found[1]) > 0:
                self._value = float(found[1]), requested_s
            return
        plugin = _PLUGIN.search(text)
        if plugin is None or plugin[1] == b"none":
            self._next_s = now + GIVE_UP_S
        else:
            self._plugin = plugin[1].decode()
            self._next_s = now
