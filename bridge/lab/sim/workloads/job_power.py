# SPDX-License-Identifier: Apache-2.0
"""The true draw of simulated jobs, and the powers that they state.

Terms
    application     of a trace's jobs: the number of the executable, or without one the user.
    model           the assumed draw of a job on each of its nodes.
    draw            the true draw there, including the idle power of the node.

Rules
    1. The model of an application is drawn from the seed, uniformly from the upper part of the
       node type's range (`MIN_SHARE`). That share and the shape are our choice.
    2. A job draws up to `error` of its model more or less, uniformly by the seed, in whole watts,
       but not less than an idle node.
    3. A job states the range that model and error allow, which contains its draw.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.extensions.power.rules import NodePower

MIN_SHARE: Final = 0.3
"""The least model of an application, as a share of the range from idle to maximum."""
MAX_ERROR: Final = 0.9


@dataclass(frozen=True)
class JobPower:
    """Columns of length n_jobs, W on each node, the idle power of the node included.

    Attributes:
        draw_w: int64: what the job truly draws.
        min_w, max_w: int64: what it states; 0: nothing.
    """

    draw_w: NDArray[np.int64]
    min_w: NDArray[np.int64]
    max_w: NDArray[np.int64]

    def first(self, n_jobs: int) -> "JobPower":
        """Those of the first `n_jobs` jobs."""
        return JobPower(self.draw_w[:n_jobs], self.min_w[:n_jobs], self.max_w[:n_jobs])


def drawn_around(
    model_w: NDArray[np.float64], node: NodePower, *, error: float, seed: int
) -> JobPower:
    """What jobs draw and state, by their models (rules 2 and 3).

    Args:
        model_w: (n_jobs,) W.
        error: 0.1: up to 10 % more or less.
        seed: the seed of what they truly draw.

    Raises:
        ConfigError: an impossible error.
    """
    if not 0 <= error <= MAX_ERROR:
        raise ConfigError("power-error", f"must lie between 0 and {MAX_ERROR:.0%}, not {error:.0%}")
    rng = np.random.default_rng((seed, 2))
    factor = 1.0 + error * rng.uniform(-1.0, 1.0, len(model_w))
    minimum, maximum = np.floor(model_w * (1 - error)), np.ceil(model_w * (1 + error))
    whole = [
        np.maximum(each, node.idle_w) for each in (np.rint(model_w * factor), minimum, maximum)
    ]
    draw_w, min_w, max_w = (each.astype(np.int64) for each in whole)
    return JobPower(draw_w, min_w, max_w)


def by_application(
    executable: NDArray[np.int64],
    user: NDArray[np.int64],
    node: NodePower,
    *,
    error: float,
    seed: int,
) -> JobPower:
    """What the jobs of a trace draw (rule 1).

    Args:
        executable: (n_jobs,) numbers of the trace; -1: unknown.
        error: see `drawn_around`.
        seed: the seed of the models, and of what jobs truly draw.

    Raises:
        ConfigError: an impossible error.
    """
    keys = np.where(executable >= 0, 2 * executable, 2 * user + 1)
    _, application = np.unique(keys, return_inverse=True)
    rng = np.random.default_rng((seed, 1))
    share = rng.uniform(MIN_SHARE, 1.0, int(application.max(initial=0)) + 1)
    max_w = node.max_w / (1 + error)
    model_w = node.idle_w + share[application] * (max_w - node.idle_w)
    return drawn_around(model_w, node, error=error, seed=seed)
