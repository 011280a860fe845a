# SPDX-License-Identifier: Apache-2.0
"""A call that does not return, and the file that outlives the link."""

import json
import os
import struct
import threading

import pytest

from bridge.pbs.link.deadline import within
from bridge.pbs.link.usage_file import NAME, SAVE_S, SCHED_NAME, UsageFile
from bridge.pbs.objects.fair_share import FairShare


def test_a_call_is_waited_for_no_longer_than_its_deadline():
    never = threading.Event()
    assert within(60.0, lambda: 15016) == 15016
    assert within(0.01, lambda: int(never.wait())) is None
    never.set()


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_usage_outlives_the_link(tmp_path):
    clock, share = Clock(), FairShare({"ann": 12.5}, decayed_s=50, seen_s=100)
    file = UsageFile(clock)
    file.open(tmp_path, share)
    file.save(share)
    assert not (tmp_path / NAME).exists()
    clock.now = SAVE_S
    file.save(share)
    later = FairShare()
    UsageFile(clock).open(tmp_path, later)
    assert later == share
    share.usage["ann"] = 99.0
    file.open(tmp_path, share)  # is not read twice
    file.save(share, now=True)
    assert json.loads((tmp_path / NAME).read_text())["usage"] == {"ann": 99.0}


def sched_usage(*entities, tag=b"PBS_MAG!", version=2.0, decayed_s=70):
    """A file as pbs_sched writes it."""
    return struct.pack("@9sdq", tag, version, decayed_s) + b"".join(
        struct.pack("@50sd", name, used) for name, used in entities
    )


def test_usage_begins_with_that_of_pbs_sched(tmp_path, caplog):
    path, share = tmp_path / SCHED_NAME, FairShare()
    path.write_bytes(sched_usage((b"ann", 13.5), (b"lab", 1.0)))
    os.utime(path, (90, 90))
    with caplog.at_level("INFO"):
        UsageFile().open(tmp_path, share)
    assert share == FairShare({"ann": 12.5, "lab": 0.0}, decayed_s=70, seen_s=90)
    assert "usage of 2 entities" in caplog.text
    (tmp_path / NAME).write_text('{"usage": {"ann": 1.0}, "seen_s": 5, "decayed_s": 4}')
    UsageFile().open(tmp_path, share)
    assert share == FairShare({"ann": 1.0}, decayed_s=4, seen_s=5)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"PBS_MAG!", sched_usage((b"a", 2.0))[:-1], sched_usage(version=3.0),
        sched_usage((b"a", 2.0), tag=b"other"), sched_usage((b"a", float("nan"))),
        sched_usage((b"a", -1.0)), sched_usage((b"", 2.0)), sched_usage(decayed_s=-1),
    ],
)  # fmt: skip
def test_an_odd_file_of_pbs_sched_is_named(tmp_path, caplog, content):
    (tmp_path / SCHED_NAME).write_bytes(content)
    share = FairShare()
    UsageFile().open(tmp_path, share)
    assert share == FairShare()
    assert str(tmp_path / SCHED_NAME) in caplog.text


ODD = (
    "", "{", "[]", "{}", '{"usage": 3, "seen_s": 1, "decayed_s": 1}',
    '{"usage": {"a": -1}, "seen_s": 1, "decayed_s": 1}',
    '{"usage": {"a": "x"}, "seen_s": 1, "decayed_s": 1}',
    '{"usage": {"a": 1}, "seen_s": "soon", "decayed_s": 1}',
    '{"usage": {"a": 1}, "seen_s": -4, "decayed_s": 1}', '{"usage": {"a": NaN}}',
    '{"usage": {"a": NaN}, "seen_s": 1, "decayed_s": 1}',
)  # fmt: skip


@pytest.mark.parametrize("written", ODD)
def test_an_odd_file_is_named_and_usage_begins_at_nothing(tmp_path, caplog, written):
    (tmp_path / NAME).write_text(written)
    share = FairShare()
    UsageFile().open(tmp_path, share)
    assert share == FairShare()
    assert str(tmp_path / NAME) in caplog.text


def test_a_directory_that_cannot_be_written_is_named_once(tmp_path, caplog):
    file, share = UsageFile(), FairShare({"ann": 1.0})
    file.open(tmp_path / "none", share)
    for _ in range(3):
        file.save(share, now=True)
    assert caplog.text.count("fair share will begin at nothing") == 1
