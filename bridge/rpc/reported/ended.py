# SPDX-License-Identifier: Apache-2.0
"""Decodes the ended jobs of a report; one that cannot be read is left out."""

from collections.abc import Sequence

import numpy as np

from bridge.model.job import NONE_ENDED, EndedTable, Ending
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.clock import SKEW_S
from bridge.rpc.reported.decode_allocation import is_id
from bridge.rpc.reported.safe_text import printable
from bridge.units import UNLIMITED_S

MAX_ENDED = 100_000
"""Maximum number of ended jobs used from one report: the last ones."""


def read_ended(messages: Sequence[pb.EndedJob], now_s: int) -> EndedTable:
    """The jobs that ended, without those with impossible times or ids."""
    if len(messages) > MAX_ENDED:
        messages = messages[-MAX_ENDED:]
    rows = [
        (
            job.id,
            printable(job.name),
            printable(job.user),
            job.start_s,
            job.end_s,
            min(job.time_limit_s, UNLIMITED_S),
            job.ending if job.ending in Ending._value2member_map_ else Ending.UNKNOWN,
        )
        for job in messages
        if is_id(job.id) and 0 < job.start_s < job.end_s <= now_s + SKEW_S and job.time_limit_s >= 0
    ]
    if not rows:
        return NONE_ENDED
    kinds = (object, object, object, np.int64, np.int64, np.int64, np.int8)
    columns = zip(*rows, strict=True)
    return EndedTable(*(np.array(c, dtype=k) for c, k in zip(columns, kinds, strict=True)))
