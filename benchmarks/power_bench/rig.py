# SPDX-License-Identifier: Apache-2.0
"""The nodes' power meters, and the model of the true draw of each node that feeds them.

Each node has its own /sys with `cray/pm_counters` (`scripts/cluster up --power-files`). A node
draws the power of the job that holds it, and idle power without one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bridge.lab.sim.corridor.paper import PAPER_NODE
from bridge.lab.sim.corridor.power import Held

_IDLE_W = PAPER_NODE.idle_w


class NodeMeters:
    """The nodes' /sys below a directory."""

    def __init__(self, folder: Path, nodes: Sequence[str]) -> None:
        self._folder, self._shown = folder, dict.fromkeys(nodes, _IDLE_W)
        self._energy_j, self._at_s = dict.fromkeys(nodes, 1.0), 0.0
        for node in nodes:
            for below in ("cray/pm_counters", "fs/cgroup", "devices"):
                (folder / node / below).mkdir(parents=True)
        self.show(0.0, self._shown)

    def show(self, at_s: float, watts: Mapping[str, int]) -> None:
        """Writes the draw of each node from an instant on (s), and its energy until then."""
        since_s = max(at_s - self._at_s, 0.0) if self._at_s else 0.0
        self._at_s = at_s
        for node, power_w in watts.items():
            self._energy_j[node] += since_s * self._shown[node]
            self._shown[node] = power_w
            self._write(node, "power", f"{power_w} W {at_s * 1e6:.0f} us\n")
            self._write(node, "energy", f"{self._energy_j[node]:.0f} J {at_s * 1e6:.0f} us\n")

    def _write(self, node: str, name: str, text: str) -> None:
        counters = self._folder / node / "cray" / "pm_counters"
        (counters / f".{name}").write_text(text)
        (counters / f".{name}").rename(counters / name)  # readers see a whole file


@dataclass
class Truth:
    """System power, in whole seconds since 1970.

    Attributes:
        nodes: all names.
        draw_w: by job id, for each of its nodes.
        at_s, power_w: system power from each instant on.
        held: by job id: ascending; `nodes` 0: it ended.
    """

    nodes: Sequence[str]
    draw_w: dict[str, int] = field(default_factory=dict)
    at_s: list[int] = field(default_factory=list)
    power_w: list[int] = field(default_factory=list)
    held: dict[str, list[Held]] = field(default_factory=dict)

    def note(self, at_s: float, held: Mapping[str, Sequence[str]]) -> dict[str, int]:
        """Records the nodes of each job; returns the draw of each node from now on."""
        watts = dict.fromkeys(self.nodes, _IDLE_W)
        for job, names in held.items():
            for node in names:
                watts[node] = max(watts[node], self.draw_w.get(job, _IDLE_W))
        second = round(at_s)
        self._append(second, sum(watts.values()))
        for job in self.draw_w:
            mine = len(held.get(job, ()))
            before = self.held.get(job)
            if before is None and not mine:
                continue
            if before is None or before[-1].nodes != mine:
                beyond_w = mine * (self.draw_w[job] - _IDLE_W)
                entries = self.held.setdefault(job, [])
                if entries and entries[-1].at_s == second:
                    entries.pop()
                entries.append(Held(second, mine, beyond_w))
        return watts

    def _append(self, second: int, power_w: int) -> None:
        if self.at_s and self.at_s[-1] == second:
            self.power_w[-1] = power_w
        else:
            self.at_s.append(second)
            self.power_w.append(power_w)
