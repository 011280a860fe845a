# SPDX-License-Identifier: Apache-2.0
"""Each preset schedules a small mix of PBS's jobs."""

import pytest

from bridge.registry import PRESETS
from tests.real_pbs.server import wait_for
from tests.real_pbs.service import Bridge

MIX = (
    ("-l", "select=1:ncpus=4"),
    ("-l", "select=2:ncpus=2:mem=1gb+1:ncpus=1", "-l", "place=scatter"),
    ("-l", "select=1:ncpus=1", "-l", "place=excl"),
    ("-l", "select=3:ncpus=1", "-l", "place=pack"),
    ("-J", "1-4", "-l", "select=1:ncpus=2"),
    ("-l", "select=4:ncpus=4", "-l", "place=vscatter"),
)


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_all_jobs_of_a_mix_run(server, preset):
    bridge = Bridge(preset)
    bridge.start_service()
    try:
        bridge.start_link()
        for words in MIX:
            server.qsub(*words, "-l", "walltime=00:01:00", script="sleep 0.2")
        never = server.qsub("-l", "select=9:ncpus=4")
        wait_for(
            "the end of all jobs that can run",
            lambda: server.run("qselect").split() == [never],
            180, 0.5,
        )  # fmt: skip
    finally:
        bridge.stop()
        server.delete_all()
