# SPDX-License-Identifier: Apache-2.0
"""What the images of `scripts/cluster` are built from."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "docker"))

from cluster.images import ALWAYS, SOURCES  # noqa: E402


def test_everything_that_the_dockerfile_copies_is_sent_to_the_engine():
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "docker/Dockerfile").read_text(), re.M)
    copied = [Path(name) for line in lines for name in line.split()]
    sent = [Path(name) for name in (*ALWAYS, *SOURCES)]
    assert Path("bridge") in copied
    missing = [
        str(path)
        for path in copied
        if not path.is_relative_to("docker/cache")  # the wheels, which are fetched
        and not any(path.is_relative_to(name) for name in sent)
    ]
    assert missing == []
