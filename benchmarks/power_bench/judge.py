# SPDX-License-Identifier: Apache-2.0
"""The measures of power of a run on a real cluster; see `bridge.extensions.power.measures`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bridge.extensions.power.measures import PowerMeasures, power_measures
from bridge.lab.sim.corridor.power import PowerLog
from bridge.lab.sim.runs.power_oracle import Configurations
from power_bench.jobs import Experiment
from power_bench.rig import Truth


def measured(
    given: Experiment, truth: Truth, ids: Sequence[str], submitted_s: Sequence[float], end_s: int
) -> PowerMeasures:
    """Judges system power from the first submission to the last end.

    Whether a violation was avoidable is judged with widths that may change, under every strategy.

    Args:
        given: the experiment.
        truth: the power drawn.
        ids: of the jobs, in the order of their submission.
        submitted_s: when, since 1970.
        end_s: the last end.
    """
    submit_s = np.floor(np.array(submitted_s)).astype(np.int64)
    workload = replace(given.drawn(), submit_s=submit_s)
    origin_s = int(submit_s[0])
    log = power_log(given, truth, ids, origin_s)
    bounds = log.bounds
    exists = Configurations(workload, log, given.nodes).exists
    return power_measures(log.until(end_s), bounds, exists, submit_s.tolist())


def power_log(given: Experiment, truth: Truth, ids: Sequence[str], origin_s: int) -> PowerLog:
    """The truth in the form of a simulation's, from the first submission on."""
    at_s, power_w = np.array(truth.at_s), np.array(truth.power_w)
    begun = max(int(np.searchsorted(at_s, origin_s, side="right")) - 1, 0)
    at_s, power_w = at_s[begun:].copy(), power_w[begun:]
    at_s[0] = origin_s
    held = {number: truth.held[job] for number, job in enumerate(ids) if job in truth.held}
    return PowerLog(given.setting(given.drawn()), origin_s, at_s, power_w, held)


def figures(found: PowerMeasures) -> Mapping[str, object]:
    """The keys of `policy_bench.power`."""
    assert found.upper is not None
    assert found.lower is not None
    both = (found.upper, found.lower)
    blamed = [side.avoidable for side in both if side.avoidable is not None]
    return {
        "violations": sum(side.late.number for side in both),
        "seconds": sum(side.late.seconds for side in both),
        "watt_seconds": sum(side.late.watt_seconds for side in both),
        "avoidable": sum(each.number for each in blamed),
        "avoidable_s": sum(each.seconds for each in blamed),
        "upper_s": found.upper.all.seconds,
        "lower_s": found.lower.all.seconds,
        "energy_kwh": round(found.energy_kwh, 4),
        "mean_w": round(found.mean_w, 1),
        "peak_w": found.peak_w,
    }
