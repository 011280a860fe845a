# SPDX-License-Identifier: Apache-2.0
"""The pages on a dockerized Slurm, and in a fresh Debian: `scripts/test documents`.

All blocks of a page run in their order, also those that `test_pages.py` runs, because others follow
from them. Each page has a cluster with the options that it names, from the first block that needs
one; a page may also start its cluster itself. SCHEDBRIDGE_TEST_CLUSTER names the clusters.
"""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.documents import inline, slurm_parsers
from tests.documents.cluster import BesideService, PageOnCluster
from tests.documents.container import Container
from tests.documents.following import Follower, Place
from tests.documents.host import Host
from tests.documents.marks import Run
from tests.documents.pages import PAGES, Block, Page, read

NAME = os.environ.get("SCHEDBRIDGE_TEST_CLUSTER", "sbpages")
READ = [read(path) for path in PAGES]

pytestmark = pytest.mark.cluster


def on_cluster(page: Page) -> bool:
    marks = (block.mark for block in page.blocks)
    return any(isinstance(mark, Run) and (mark.on_cluster or mark.slow) for mark in marks)


@contextmanager
def places(page: Page, folder: Path) -> Iterator[dict[str, Place]]:
    """The places that a page's blocks need, by the marks' words for them."""
    marks = [b.mark for b in page.blocks if isinstance(b.mark, Run) and b.mark.on_cluster]
    host = Host(folder / "host", {"SCHEDBRIDGE_CLUSTER": NAME})
    found: dict[str, Place] = {"host": host, "checkout": host}
    with ExitStack() as stack:
        if any(mark.run == "container" for mark in marks):
            found["container"] = container = Container(f"{NAME}-install")
            stack.callback(container.down)
            container.up()
        if any(mark.engine or mark.run in ("login", "controller", "service") for mark in marks):
            there = PageOnCluster(NAME, page.cluster, folder)
            found |= {"login": there, "controller": there, "service": BesideService(there, host)}
            stack.callback(there.cluster.process_of, "down")
            there.cluster.process_of("down")
        yield found


@contextmanager
def shown(block: Block) -> Iterator[None]:
    """Prints where a block stands when it begins, and its result and duration when it ends."""
    began = time.monotonic()
    print(f"{block.place} ...", end=" ", flush=True)
    try:
        yield
        result = "passed"
    except Exception as fault:
        result = f"failed: {fault}"
        raise
    finally:
        print(f"{time.monotonic() - began:.0f} s, {result}", flush=True)


@pytest.mark.parametrize("page", [p for p in READ if on_cluster(p)], ids=lambda page: page.path)
def test_commands_do_what_the_page_says(
    page: Page, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Slow: real daemons, compilers and jobs; minutes for each page."""
    (tmp_path / "host").mkdir()
    with places(page, tmp_path) as found, capfd.disabled():
        print(flush=True)
        follower = Follower(lambda mark: found[mark.run], shown)
        follower.follow(page.blocks)
    assert not follower.faults, "\n\n".join(follower.faults)


def test_commands_of_slurm_in_sentences_parse() -> None:
    """Slow: a container, and a process for each command."""
    named = {
        span.text
        for page in READ
        for span in inline.commands_in(page)
        if inline.program_of(span) in slurm_parsers.PROGRAMS
    }
    assert named
    assert slurm_parsers.problems(sorted(named)) == []
