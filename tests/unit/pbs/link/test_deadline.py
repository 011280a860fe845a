# SPDX-License-Identifier: Apache-2.0
"""A call that does not return, and the file that outlives the link."""

import json
import threading

import pytest

from bridge.pbs.link.deadline import within
from bridge.pbs.link.usage_file import NAME, SAVE_S, UsageFile
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
