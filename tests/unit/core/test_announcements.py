# SPDX-License-Identifier: Apache-2.0
"""`write_announcements` writes what protobuf would."""

import random

import numpy as np
import pytest

from bridge.core import NEVER, UNPLANNED, HostlistFolder, write_announcements
from bridge.rpc.pb import scheduler_pb2 as pb
from schedbridge_contracts.crosses import each

NAMES = [f"n{at:03}" for at in range(70)]
PARTITIONS = ["batch", "größer", "p" * 200]
REASONS = [
    pb.Pending(code=pb.REASON_RESOURCES, text="waits"),
    pb.Pending(code=pb.REASON_OTHER),
    pb.Pending(code=pb.REASON_PRIORITY, text="x" * 160),
    pb.Pending(),
]


def columns(rows, first_id=1):
    """Rows are (job id, version, start, nodes, partition, reason)."""
    return {
        "first_id": first_id,
        "job_id": [row[0] for row in rows],
        "version": np.array([row[1] for row in rows], dtype=np.uint64),
        "start_s": np.array([row[2] for row in rows], dtype=np.int64),
        "partition": np.array([row[4] for row in rows], dtype=np.int32),
        "partitions": PARTITIONS,
        "reason": np.array([row[5] for row in rows], dtype=np.int64),
        "reasons": [reason.SerializeToString() for reason in REASONS],
        "indptr": np.cumsum([0, *(len(row[3]) for row in rows)]).astype(np.int64),
        "nodes": np.array([node for row in rows for node in row[3]], dtype=np.int32),
    }


def by_fields(rows, first_id):
    reply, folder = pb.CycleReply(), HostlistFolder(NAMES)
    for at, (job_id, version, start_s, nodes, partition, reason) in enumerate(rows):
        message = reply.decisions.add(id=first_id + at, job_id=job_id, job_version=version)
        if start_s in (NEVER, UNPLANNED):
            message.pending.CopyFrom(REASONS[reason])
        else:
            message.planned_start.start_s = start_s
            message.planned_start.nodes = folder.fold(np.array(nodes, dtype=np.int32))
            message.planned_start.partition = PARTITIONS[partition]
            message.planned_start.reason.CopyFrom(REASONS[reason])
    return reply


@each(seed=range(30))
def test_the_same_as_messages_filled_field_by_field(seed):
    dice = random.Random(seed)
    first_id = dice.choice((1, 127, 128, 1 << 40))
    rows = [
        (
            dice.choice(("7", "1234567_[1-9]", "j" * 130, "")),
            dice.choice((0, 1, dice.getrandbits(64), (1 << 64) - 1)),
            dice.choice((0, 1, 1_700_000_000 + dice.getrandbits(30), NEVER, UNPLANNED)),
            dice.sample(range(len(NAMES)), dice.randint(0, len(NAMES))),
            dice.randrange(len(PARTITIONS)),
            dice.randrange(len(REASONS)),
        )
        for _ in range(dice.randint(0, 40))
    ]
    written = write_announcements(HostlistFolder(NAMES), **columns(rows, first_id))
    expected = by_fields(rows, first_id)
    assert pb.CycleReply.FromString(written) == expected
    merged = pb.CycleReply(generation=3, decisions=[pb.Decision(id=9)])
    merged.MergeFromString(written)
    assert list(merged.decisions)[1:] == list(expected.decisions)
    assert merged.generation == 3


ROW = ("7", 1, 5, [3], 0, 0)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"job_id": ["7", "8"]}, "version: expected 2 rows"),
        ({"job_id": [7]}, "job_id: expected texts"),
        ({"reasons": ["waits"]}, "reasons: expected bytes"),
        ({"reason": np.array([4])}, "reason: 4 at position 0 is more than 3"),
        ({"partition": np.array([3], dtype=np.int32)}, "partition: 3 is more than 2"),
        ({"partition": np.array([-1], dtype=np.int32)}, "partition: -1 is less than 0"),
        ({"nodes": np.array([70], dtype=np.int32)}, "nodes: 70 at position 0 is more than 69"),
        ({"indptr": np.array([0, 2])}, "indptr: the last offset is 2"),
    ],
)
def test_what_does_not_fit_is_refused(change, text):
    with pytest.raises(ValueError, match=text):
        write_announcements(HostlistFolder(NAMES), **{**columns([ROW]), **change})


def test_a_row_without_a_start_needs_no_partition():
    rows = [("7", 1, NEVER, [], -1, 0)]
    written = write_announcements(HostlistFolder(NAMES), **columns(rows))
    assert pb.CycleReply.FromString(written) == by_fields(rows, 1)
