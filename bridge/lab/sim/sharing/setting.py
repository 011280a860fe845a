# SPDX-License-Identifier: Apache-2.0
"""The jobs of a workload that may share nodes, and their applications.

Rules
    1. An application of a trace (the number of its executable, or without one its user) is randomly
       assigned one of the model's, with equal probabilities, by the seed.
    2. Each job consents at random to be host and guest.
    3. A job is killed when it has exceeded its time limit by more than the grace (like Slurm's
       `OverTimeLimit`). The limit of a host is lengthened as plans say, as the plugin does it: by
       the time with guests at most, in whole minutes.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.extensions.sharing.rules import Coschedule
from bridge.lab.sim.sharing.interference import Interference


@dataclass(frozen=True)
class Sharing:
    """Columns of length n_jobs, and values for all jobs.

    Attributes:
        application: int64: its number there.
        coschedule: int8 `Coschedule`: the consent of the job's user.
        grace_s: how long a job may run beyond its limit; None: until it is done.
    """

    interference: Interference
    application: NDArray[np.int64]
    coschedule: NDArray[np.int8]
    grace_s: int | None = None

    def first(self, n_jobs: int) -> "Sharing":
        """That of the first `n_jobs` jobs."""
        return replace(
            self, application=self.application[:n_jobs], coschedule=self.coschedule[:n_jobs]
        )


def sharing_of(
    interference: Interference,
    executable: NDArray[np.int64],
    user: NDArray[np.int64],
    *,
    consent_percent: float,
    seed: int,
    grace_s: int | None = None,
) -> Sharing:
    """The setting for the jobs of a trace (rules 1 and 2).

    Args:
        executable: (n_jobs,) numbers of the trace; -1: unknown.
        grace_s: see `Sharing`.

    Raises:
        ConfigError: an impossible share of jobs.
    """
    if not 0 <= consent_percent <= 100:
        raise ConfigError("consent", f"must be 0 to 100 percent, not {consent_percent:g}")
    keys = np.where(executable >= 0, 2 * executable, 2 * user + 1)
    _, number = np.unique(keys, return_inverse=True)
    rng = np.random.default_rng((seed, 11))
    kinds = rng.integers(0, len(interference.applications), int(number.max(initial=0)) + 1)
    consents = rng.random(len(number)) * 100 < consent_percent
    coschedule = np.where(consents, Coschedule.BOTH, Coschedule.NEVER).astype(np.int8)
    return Sharing(interference, kinds[number.reshape(-1)], coschedule, grace_s)
