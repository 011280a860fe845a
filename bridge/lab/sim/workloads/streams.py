# SPDX-License-Identifier: Apache-2.0
"""Synthetic job streams from a seed, for systems whose logs are not public.

Terms
    mix         the kinds of jobs, their run times and requests.
    unit        what a job takes together from one node; it has one or several equal ones.
    session     a number of jobs of one application that a user submits almost at once.
    load        processor-seconds that arrive per second, as a share of the machine's processors.

Fitted to the paper's statements about its two logs
    Eurora      93.14 % of the jobs run for less than an hour; units request cores, memory, GPUs
                and MICs; the same applications recur (predictors depend on that).
    KIT         66.26 % run for less than an hour; nothing is scarce on 98 % of the nodes.

Assumed, as it is not published
    The rest of the distribution (log-normal pieces of less than an hour, one to five hours, more),
    shares of serial and accelerated jobs, numbers and sizes of units, memory, sessions, users, time
    limits, and the load. The load is set so that jobs queue; at the logs' own rates (400,000 jobs
    in 17 months, 114,355 in 19) most decisions are trivial.

Rules
    1. The same mix, number of jobs, load and seed give the same stream.
    2. An application has a typical length; its runs scatter around it by a third. A time limit is
       the next common one above a generous estimate of the user: none is too short.

Source: C. Galleguillos, Z. Kiziltan, R. Soto, A Constraint Programming-based Job Dispatcher for
Modern HPC Systems and Applications, 2020, section 4.
"""

from dataclasses import dataclass
from importlib.resources import as_file, files
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.lab.sim.workloads.system import System, read_system
from bridge.lab.sim.workloads.workload import Workload
from bridge.model.job import JobTable
from bridge.model.job_columns import objects

ORIGIN_S = 1_400_000_000
"""Start time of a stream, arbitrary."""

_LIMITS_S: Final = np.array(
    [300, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400, 172_800, 259_200]
)
_PIECES_S: Final = ((20.0, 3599.0), (3600.0, 18_000.0), (18_001.0, 86_400.0))
_SCATTER: Final = 1 / 3
_JITTER_S: Final = 120


@dataclass(frozen=True)
class ApplicationKind:
    """A class of similar jobs.

    Attributes:
        units: least and most; drawn as a power of two, small ones more often.
        cores: least and most of a unit, as above.
        mib_per_core: least and most memory, log-uniform.
        extra: resource to most of it in a unit, at least 1.
    """

    share: float
    units: tuple[int, int]
    cores: tuple[int, int]
    mib_per_core: tuple[int, int]
    extra: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Mix:
    """A mix of jobs.

    Attributes:
        data: file of the system in `bridge/lab/sim/data`.
        lengths: shares of jobs of less than an hour, one to five hours, and more.
        session: mean number of jobs of a session.
    """

    data: str
    lengths: tuple[float, float, float]
    users: int
    applications: int
    session: float
    kinds: tuple[ApplicationKind, ...]


MIXES: Final = MappingProxyType(
    {
        "eurora": Mix(
            "eurora.yaml",
            (0.9314, 0.0610, 0.0076),
            users=80,
            applications=240,
            session=6.0,
            kinds=(
                ApplicationKind(0.35, (1, 1), (1, 8), (256, 2000)),
                ApplicationKind(0.25, (1, 16), (1, 16), (256, 1000)),
                ApplicationKind(0.30, (1, 8), (1, 8), (256, 1500), (("gpu", 2),)),
                ApplicationKind(0.10, (1, 4), (1, 8), (256, 1500), (("mic", 2),)),
            ),
        ),
        "kit": Mix(
            "kit.yaml",
            (0.6626, 0.1874, 0.1500),
            users=150,
            applications=500,
            session=3.0,
            kinds=(
                ApplicationKind(0.25, (1, 1), (1, 16), (500, 3200)),
                ApplicationKind(0.69, (1, 256), (20, 20), (500, 3200)),
                ApplicationKind(0.06, (1, 4), (4, 32), (4000, 20_000), (("gpu", 4),)),
            ),
        ),
    }
)
"""The paper's two systems."""


def stream_system(name: str) -> System:
    """The machine of a stream.

    Raises:
        ConfigError: there is no such stream.
    """
    if name not in MIXES:
        raise ConfigError("system", f"no stream '{name}'; there are {', '.join(MIXES)}")
    with as_file(files("bridge.lab.sim").joinpath("data", MIXES[name].data)) as path:
        return read_system(path)


def stream(name: str, system: System, n_jobs: int, *, load: float, seed: int) -> Workload:
    """Generates jobs.

    Args:
        system: the result of `stream_system`.

    Returns:
        The jobs, with their requests in `Workload.requests`.
    """
    mix, dice = MIXES[name], np.random.default_rng((seed, n_jobs))
    made = _Applications(mix, system, dice)
    app = _sessions(mix, n_jobs, dice)
    runtime_s = made.runtime_s(app, mix, dice)
    processors = made.units[app] * made.wants[app, 0]
    work = float((runtime_s * processors).sum())
    span_s = work / (load * system.processors)
    submit_s = _arrivals(app, span_s, dice)
    order = np.argsort(submit_s, kind="stable")
    app, submit_s, runtime_s = app[order], submit_s[order], runtime_s[order]
    guess = runtime_s * dice.uniform(1.2, 6.0, n_jobs)
    limit = np.minimum(np.searchsorted(_LIMITS_S, guess), len(_LIMITS_S) - 1)
    time_limit_s = _LIMITS_S[limit]
    user = made.user[app]
    ids = np.array([str(number) for number in range(1, n_jobs + 1)], dtype=object)
    return Workload(
        name=f"{name} stream, seed {seed}, load {load:g}",
        processors_total=system.processors,
        id=ids,
        submit_s=submit_s,
        runtime_s=np.minimum(runtime_s, time_limit_s),
        time_limit_s=time_limit_s,
        processors=processors[order],
        memory_kib=made.wants[app, 1] * 1024 // made.wants[app, 0],
        user=user,
        group=user % 20,
        executable=app,
        queue=np.full(n_jobs, -1, dtype=np.int64),
        row=np.arange(n_jobs, dtype=np.int64),
        left_out={},
        requests=_requests(
            ids=ids,
            user=user,
            app=app,
            submit_s=submit_s,
            time_limit_s=time_limit_s,
            units=made.units[app],
            wants=made.wants[app],
            system=system,
        ),
    )


class _Applications:
    """The requests of each application; columns of length n_applications.

    Attributes:
        units: int64.
        wants: (n, R) int64: amounts of a unit.
        length_s: float64: typical run time.
    """

    def __init__(self, mix: Mix, system: System, dice: np.random.Generator) -> None:
        count = mix.applications
        largest = system.nodes.capacity.max(axis=0)
        self.user = dice.integers(0, mix.users, count)
        shares = np.array([kind.share for kind in mix.kinds])
        self.units = np.ones(count, dtype=np.int64)
        self.wants = np.zeros((count, len(system.resources)), dtype=np.int64)
        for at, which in enumerate(dice.choice(len(shares), count, p=shares / shares.sum())):
            kind = mix.kinds[which]
            self.units[at] = _power(dice, *kind.units)
            cores = _power(dice, *kind.cores)
            low, high = kind.mib_per_core
            mib = int(cores * np.exp(dice.uniform(np.log(low), np.log(high))))
            self.wants[at, :2] = cores, min(mib, int(largest[1]))
            for resource, maximum in kind.extra:
                self.wants[at, system.resources.index(resource)] = dice.integers(1, maximum + 1)
        # Serial units without accelerators also fit the ordinary node.
        ordinary = np.median(system.nodes.capacity, axis=0).astype(np.int64)
        plain = (self.wants[:, 2:] == 0).all(axis=1)
        self.wants[plain, 1] = np.minimum(self.wants[plain, 1], ordinary[1])
        self.length_s = np.zeros(count)

    def runtime_s(
        self, app: NDArray[np.int64], mix: Mix, dice: np.random.Generator
    ) -> NDArray[np.int64]:
        """Run times of jobs; the shares of lengths are the mix's."""
        jobs_of = np.bincount(app, minlength=mix.applications)
        order = dice.permutation(mix.applications)
        reached = np.cumsum(jobs_of[order]) / max(len(app), 1)
        piece = np.searchsorted(np.cumsum(mix.lengths)[:-1], reached - 1e-9)
        low, high = np.log(np.array(_PIECES_S)).T
        drawn = np.clip(dice.normal(0.5, 0.25, mix.applications), 0.0, 1.0)
        self.length_s[order] = np.exp(low[piece] + drawn * (high[piece] - low[piece]))
        bounds = np.empty((mix.applications, 2))
        bounds[order] = np.array(_PIECES_S)[piece]
        spread = np.exp(dice.normal(0.0, _SCATTER, len(app)))
        took = np.clip(self.length_s[app] * spread, bounds[app, 0], bounds[app, 1])
        return np.maximum(took, 1).astype(np.int64)


def _power(dice: np.random.Generator, minimum: int, maximum: int) -> int:
    """`minimum` times a power of two up to `maximum`; smaller ones more often."""
    steps = int(np.log2(maximum / minimum)) + 1
    weights = 0.75 ** np.arange(steps)
    drawn: int = minimum << int(dice.choice(steps, p=weights / weights.sum()))
    return drawn


def _sessions(mix: Mix, n_jobs: int, dice: np.random.Generator) -> NDArray[np.int64]:
    """The application of each job; jobs of a session are adjacent."""
    liked = 1 / np.arange(1, mix.applications + 1) ** 0.8  # few applications make most of the runs
    liked = dice.permutation(liked)
    sizes = dice.geometric(1 / mix.session, n_jobs)
    apps = dice.choice(mix.applications, n_jobs, p=liked / liked.sum())
    return np.repeat(apps, sizes)[:n_jobs].astype(np.int64)


def _arrivals(
    app: NDArray[np.int64], span_s: float, dice: np.random.Generator
) -> NDArray[np.int64]:
    """Submit times: sessions at random, more by day; the jobs of one within two minutes."""
    begins = np.flatnonzero(np.diff(app, prepend=-1))
    drawn = np.sort(dice.uniform(0, span_s, 2 * len(begins)))
    by_day = 1 + 0.6 * np.sin(2 * np.pi * drawn / 86_400)
    kept = dice.choice(len(drawn), len(begins), replace=False, p=by_day / by_day.sum())
    start = drawn[np.sort(kept)][dice.permutation(len(begins))]
    sizes = np.diff(np.append(begins, len(app)))
    at = np.repeat(start, sizes) + dice.uniform(0, _JITTER_S, len(app))
    return ORIGIN_S + at.astype(np.int64)


def _requests(
    *,
    ids: NDArray[np.object_],
    user: NDArray[np.int64],
    app: NDArray[np.int64],
    submit_s: NDArray[np.int64],
    time_limit_s: NDArray[np.int64],
    units: NDArray[np.int64],
    wants: NDArray[np.int64],
    system: System,
) -> JobTable:
    n_jobs = len(ids)
    return JobTable(
        id=ids,
        name=objects(f"app{number}" for number in app.tolist()),
        user=objects(f"user{number}" for number in user.tolist()),
        account=objects(f"group{number % 20}" for number in user.tolist()),
        priority=np.arange(n_jobs, 0, -1, dtype=np.int64),
        submit_s=submit_s,
        eligible_s=submit_s,
        time_limit_s=time_limit_s,
        partitions=objects((0,) for _ in range(n_jobs)),
        min_nodes=np.ones(n_jobs, dtype=np.int64),
        max_nodes=np.minimum(units, len(system.nodes)),
        per_node=np.zeros_like(wants),
        per_task=wants,
        tasks=units,
        licences=np.zeros((n_jobs, 0), dtype=np.int64),
    )
