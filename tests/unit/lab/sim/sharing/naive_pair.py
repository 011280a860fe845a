# SPDX-License-Identifier: Apache-2.0
"""Two jobs on the same nodes, in small steps of time: slow, and written without the package."""

from collections.abc import Sequence
from dataclasses import dataclass, field

STEP_S = 1 / 128


@dataclass
class NaiveJob:
    """A job; stages are (seconds alone, busy CPUs, disk demand); `of`: CPUs of the nodes."""

    stages: Sequence[tuple[float, float, float]]
    of: int
    pressure: float
    sensitivity: float
    ceiling: float = 1.0
    weight: float = 100.0
    done_s: float = 0.0
    cpu_s: float = 0.0
    ended_s: float | None = None
    total_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.total_s = sum(work for work, _, _ in self.stages)

    def demands(self) -> tuple[float, float]:
        left = self.done_s
        for work, cpu, disk in self.stages:
            if left < work:
                return cpu, disk
            left -= work
        return 0.0, 0.0


def fill(demands: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Water-filling by bisection over the level."""
    if sum(demands) <= 1:
        return list(demands)
    low, high = 0.0, 1e9
    for _ in range(200):
        level = (low + high) / 2
        got = [min(d, level * w) for d, w in zip(demands, weights, strict=True)]
        low, high = (level, high) if sum(got) < 1 else (low, level)
    return [min(d, low * w) for d, w in zip(demands, weights, strict=True)]


def step(jobs: Sequence[NaiveJob], now_s: float) -> None:
    """All jobs that are not over go on for `STEP_S`; there are one or two."""
    live = [job for job in jobs if job.ended_s is None]
    demands = [job.demands() for job in live]
    alone = len(live) == 1
    caps = [1.0 if alone else job.ceiling for job in live]
    of = live[0].of
    wanted = [min(d[0] / of, c) for d, c in zip(demands, caps, strict=True)]
    cpu = fill(wanted, [job.weight for job in live])
    of_cpu = [min(c * of / d[0], 1.0) if d[0] else 1.0 for c, d in zip(cpu, demands, strict=True)]
    disk = fill([d[1] * p for d, p in zip(demands, of_cpu, strict=True)], [1.0] * len(live))
    part = [
        min(c * of / d[0] if d[0] else 1.0, i / d[1] if d[1] else 1.0, 1.0)
        for c, i, d in zip(cpu, disk, demands, strict=True)
    ]
    for at, job in enumerate(live):
        speed = part[at]
        if not alone:
            other = live[1 - at]
            speed /= 1 + job.sensitivity * other.pressure * part[1 - at]
        job.done_s += STEP_S * speed
        job.cpu_s += STEP_S * speed * demands[at][0]
    for job in live:
        if job.done_s >= job.total_s - 1e-9:
            job.ended_s = now_s + STEP_S
