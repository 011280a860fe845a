# SPDX-License-Identifier: Apache-2.0
"""Fits the interference model to measured pairs, and reports its error on pairs left out.

The demands of an application are measured when it runs alone. These are fitted by least squares of
the logarithm of host slowdowns: a pressure and a sensitivity of each application, and the part of
the time in which writing stages, while they do not compute, keep the disk busy (one number for
all).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from bridge.lab.sim.sharing.interference import Application, Interference, UseStage
from bridge.lab.sim.sharing.rates import Side, together
from interference_bench.pairs import Setting

_OFFSETS = 4
_LEAST_SHARE = 0.01
_RIDGE = 1e-2
_START = 0.3
_DISKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_ROUNDS = 15
_DIFFERENCE = 1e-3
_NOTHING_S = 1e-9


@dataclass(frozen=True)
class Profile:
    """An application alone.

    Attributes:
        stages: as measured; `io` of writing stages is the time that they do not compute.
        wall_s: of all stages.
        extra: starting processes and checking results, as a stage; its share is of `wall_s`.
        cpus: of the node.
    """

    name: str
    stages: tuple[UseStage, ...]
    wall_s: float
    extra: UseStage
    cpus: int


@dataclass(frozen=True)
class Measured:
    """A pair under a setting: medians of repeats."""

    host: str
    guest: str
    setting: Setting
    slowdown: float
    guest_cpu: float


def profile(name: str, row: Mapping[str, float], stages: Sequence[Mapping], cpus: int) -> Profile:
    """An application alone, from a row of the results."""
    found = []
    for each in stages:
        if each["wall_s"] < _LEAST_SHARE * row["wall_s"]:
            continue
        cpu = min(each["cpu_s"] / (each["wall_s"] * each["cores"]), 1.0)
        io = 1 - cpu if row["written"] > each["wall_s"] * 2e4 else 0.0
        memory = row["memory_mib"] / row["node_memory_mib"]
        found.append(UseStage(each["stage"], each["wall_s"], each["cores"] > 1, cpu, io, memory))
    wall_s = sum(stage.share for stage in found)
    extra_s = max(row["elapsed_s"] - row["wall_s"], 1e-3)
    extra_cpu_s = row["cpu_s"] - sum(each["cpu_s"] for each in stages)
    extra = UseStage("start", extra_s / wall_s, False, float(np.clip(extra_cpu_s / extra_s, 0, 1)))
    scaled = tuple(replace(stage, share=stage.share / wall_s) for stage in found)
    return Profile(name, scaled, wall_s, extra, cpus)


def applications(
    profiles: Mapping[str, Profile], parameters: NDArray[np.float64]
) -> dict[str, Application]:
    """The applications with these pressures, sensitivities and part of the disk."""
    count, made = len(profiles), {}
    for at, (name, found) in enumerate(profiles.items()):
        stages = tuple(replace(s, io=s.io * parameters[-1]) for s in found.stages)
        made[name] = Application(name, stages, parameters[at], parameters[count + at])
    return made


def predicted(
    host: Profile, guest: Profile, made: Mapping[str, Application], setting: Setting
) -> tuple[float, float]:
    """Slowdown of a host, and CPU share of its guest, which is repeated forever.

    The mean over instants of the guest's run at which the host begins.
    """
    one, other = made[host.name], made[guest.name]
    work = [(stage, stage.share * host.wall_s) for stage in one.stages]
    cycle = [(stage, stage.share * guest.wall_s) for stage in (*other.stages, guest.extra)]
    length_s = sum(lasts_s for _, lasts_s in cycle)
    slowdown, used = 0.0, 0.0
    for offset in range(_OFFSETS):
        at, gone_s = 0, length_s * (offset + 0.5) / _OFFSETS
        while gone_s >= cycle[at][1]:
            gone_s, at = gone_s - cycle[at][1], at + 1
        left_s, took_s, cpu_s = cycle[at][1] - gone_s, 0.0, 0.0
        for stage, lasts_s in work:
            rest_s = lasts_s
            while rest_s > _NOTHING_S:
                first, second = together(
                    Side(one, stage, host.cpus, host.cpus),
                    Side(other, cycle[at][0], host.cpus, host.cpus, setting.quota, setting.weight),
                )
                by_s = min(rest_s / first.speed, left_s / second.speed)
                took_s, cpu_s = took_s + by_s, cpu_s + by_s * second.busy / host.cpus
                rest_s, left_s = rest_s - by_s * first.speed, left_s - by_s * second.speed
                if left_s <= _NOTHING_S:
                    at = (at + 1) % len(cycle)
                    left_s = cycle[at][1]
        slowdown += took_s / host.wall_s / _OFFSETS
        used += cpu_s / took_s / _OFFSETS
    return slowdown, used


def fit(profiles: Mapping[str, Profile], pairs: Sequence[Measured]) -> NDArray[np.float64]:
    """Pressures, sensitivities, and the part of the disk, the best of `_DISKS`."""
    found = (_fit_with(profiles, pairs, disk) for disk in _DISKS)
    return min(found, key=lambda each: each[0])[1]


def _fit_with(
    profiles: Mapping[str, Profile], pairs: Sequence[Measured], disk: float
) -> tuple[float, NDArray[np.float64]]:
    """Gauss-Newton with damping, none negative; the remaining sum of squares comes first.

    A small ridge makes them unique: only products of pressure and sensitivity are observed.
    """
    names = list(profiles)
    at = np.full(2 * len(names), _START)
    observed = np.log([pair.slowdown for pair in pairs])

    def residuals(of: NDArray[np.float64]) -> NDArray[np.float64]:
        made = applications(profiles, np.append(of, disk))
        found = [predicted(profiles[p.host], profiles[p.guest], made, p.setting)[0] for p in pairs]
        return np.concatenate((np.log(found) - observed, _RIDGE * of))

    damping, now = 1e-2, residuals(at)
    for _ in range(_ROUNDS):
        slopes = np.empty((len(now), len(at)))
        for column in range(len(at)):
            moved = at.copy()
            moved[column] += _DIFFERENCE
            slopes[:, column] = (residuals(moved) - now) / _DIFFERENCE
        normal = slopes.T @ slopes + damping * np.eye(len(at))
        tried = np.maximum(at - np.linalg.solve(normal, slopes.T @ now), 0)
        after = residuals(tried)
        if after @ after < now @ now:
            done = now @ now - after @ after < 1e-5 * (now @ now)
            at, now, damping = tried, after, damping / 4
            if done:
                break
        else:
            damping *= 8
    scale = at[: len(names)].max() or 1.0  # the largest pressure is 1
    at[: len(names)] /= scale
    at[len(names) :] *= scale
    return float(now @ now), np.append(np.round(at, 3), disk)


def errors(
    profiles: Mapping[str, Profile], pairs: Sequence[Measured], parameters: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Relative error of each predicted slowdown."""
    made = applications(profiles, parameters)
    return np.array(
        [
            predicted(profiles[p.host], profiles[p.guest], made, p.setting)[0] / p.slowdown - 1
            for p in pairs
        ]
    )


def left_out(
    profiles: Mapping[str, Profile],
    pairs: Sequence[Measured],
    of: Iterable[tuple[str, str]] | None = None,
) -> NDArray[np.float64]:
    """The same, each pair of applications predicted by a model fitted to the other pairs.

    Args:
        of: only these pairs of host and guest; of all others it is NaN.
    """
    found = np.full(len(pairs), np.nan)
    for host, guest in product(profiles, profiles) if of is None else of:
        own = np.array([pair.host == host and pair.guest == guest for pair in pairs])
        if own.any():
            rest = [pair for pair, mine in zip(pairs, own, strict=True) if not mine]
            mine = [pair for pair, here in zip(pairs, own, strict=True) if here]
            found[own] = errors(profiles, mine, fit(profiles, rest))
    return found


def model(
    profiles: Mapping[str, Profile], parameters: NDArray[np.float64], source: str
) -> Interference:
    """The published model: rounded numbers, shares of stages with sum 1."""
    made = []
    for found in applications(profiles, parameters).values():
        stages = [
            replace(
                s,
                share=round(s.share, 4),
                cpu=round(s.cpu, 3),
                io=round(s.io, 3),
                memory=round(s.memory, 4),
            )
            for s in found.stages
        ]
        rest = 1 - sum(stage.share for stage in stages[1:])
        stages[0] = replace(stages[0], share=round(rest, 4))
        made.append(replace(found, stages=tuple(stages)))
    return Interference(tuple(made), source)
