# SPDX-License-Identifier: Apache-2.0
"""A stated model for nodes without a meter: idle + (maximum - idle) * busy CPUs / CPUs.

Busy CPUs are read from the node's own cgroup, because in a container load averages and /proc/stat
are the host's.
"""

from dataclasses import dataclass


@dataclass
class NodeLoad:
    """The load of a node, as last read.

    Attributes:
        cpus: how many the node has.
        busy_cpus: mean number of CPUs in use; None: unknown.
    """

    cpus: float = 1.0
    busy_cpus: float | None = None

    @property
    def share(self) -> float | None:
        """In [0, 1]; None: unknown."""
        if self.busy_cpus is None:
            return None
        return min(max(self.busy_cpus / self.cpus, 0.0), 1.0)


class PowerModel:
    """The model; a `bridge.extensions.power.on_nodes.sensor.Sensor`.

    Attributes:
        bounds: idle and maximum power, W, as stated by the agent's options or by the service; None:
            not stated, so there is no value.
    """

    name = "model"
    age_s = 0.0

    def __init__(self, load: NodeLoad, bounds: tuple[float, float] | None = None) -> None:
        """Takes the load, which the caller keeps up to date."""
        self._load = load
        self.bounds = bounds

    def read(self) -> float | None:
        """By the load as last read."""
        share = self._load.share
        if self.bounds is None or share is None:
            return None
        idle_w, max_w = self.bounds
        return idle_w + (max_w - idle_w) * share
