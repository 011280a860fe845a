# SPDX-License-Identifier: Apache-2.0
"""Builds of images: what people see of them, and where the rest is."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "docker"))

from cluster import engine, images

SCRIPT = """
wc -c
echo 'Step 1/3 : FROM base'
echo ' ---> Using cache'
echo 'Step 2/3 : RUN apt-get    install a b'
echo ' ---> Running in 77'
echo 'no room' >&2
exit 3
"""


def test_a_build_tells_its_steps_and_keeps_its_log(tmp_path, capfd):
    code = images._followed(["sh", "-c", SCRIPT], b"x" * 200_000, tmp_path / "log")
    assert code == 3
    said = capfd.readouterr().err.splitlines()
    assert [line.rpartition(" (")[0] for line in said] == [
        "cluster:   step 2 of 3: RUN apt-get install a b"
    ]
    log = (tmp_path / "log").read_text().splitlines()
    assert log[0].strip() == "200000"
    assert log[-1] == "no room"


@pytest.mark.parametrize("start", [False, True])
def test_without_an_engine_one_line_says_what_to_do(start, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(engine.os, "geteuid", lambda: 1000)
    with pytest.raises(engine.Trouble, match="not installed: run scripts/docker-engine as root"):
        engine.need_engine(start=start)
