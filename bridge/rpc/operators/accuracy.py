# SPDX-License-Identifier: Apache-2.0
"""The records of announced starts on the wire: sums only, for all callers."""

import numpy as np
from numpy.typing import NDArray

from bridge.measures import StartErrors
from bridge.rpc.pb import operator_pb2 as pb
from bridge.state.announced_starts import StartRecords

_PERIODS = {
    "hour": pb.PERIOD_HOUR,
    "day": pb.PERIOD_DAY,
    "week": pb.PERIOD_WEEK,
    "all": pb.PERIOD_ALL,
}


def accuracy_reply(kept: StartRecords, partition: str) -> pb.AccuracyReply:
    """Writes the records.

    Args:
        partition: only this one; empty: all.
    """
    reply = pb.AccuracyReply(
        now_s=kept.now_s,
        since_s=kept.since_s,
        keep_days=kept.keep_days,
        waiting_promised=kept.waiting_promised,
        series_step_s=kept.step_s,
    )
    for line in kept.lines:
        if partition and line.partition != partition:
            continue
        found = line.accuracy
        reply.lines.add(
            period=_PERIODS[line.period],
            partition=line.partition,
            promised=found.promised,
            unpromised=found.unpromised,
            gone=found.gone,
            first=_errors(found.first, line.first_percentiles_s),
            last=_errors(found.last, line.last_percentiles_s),
            changed=found.changed,
            changes=found.changes,
            later_s=found.later_s,
            earlier_s=found.earlier_s,
        )
    for point in kept.series:
        if partition and point.partition != partition:
            continue
        reply.series.add(
            from_s=point.from_s,
            partition=point.partition,
            promised=point.promised,
            absolute_p50_s=point.absolute_p50_s,
            absolute_p90_s=point.absolute_p90_s,
        )
    return reply


def _errors(errors: StartErrors, percentiles_s: NDArray[np.int64]) -> pb.StartErrors:
    return pb.StartErrors(
        median_s=errors.median_s,
        absolute_mean_s=errors.absolute_s.mean,
        absolute_p50_s=errors.absolute_s.p50,
        absolute_p90_s=errors.absolute_s.p90,
        kept=errors.kept,
        percentiles_s=percentiles_s.tolist(),
    )
