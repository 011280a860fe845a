# SPDX-License-Identifier: Apache-2.0
"""The pages on this machine: every block has a mark, commands run, configurations load."""

import subprocess
from pathlib import Path

import pytest

from tests.documents import inline, listing, parsing
from tests.documents.following import Follower
from tests.documents.host import Host
from tests.documents.loading import load
from tests.documents.marks import Load, Run
from tests.documents.pages import PAGES, ROOT, Page, read

READ = [read(path) for path in PAGES]
LOADED = [block for page in READ for block in page.blocks if isinstance(block.mark, Load)]


def on_this_machine(page: Page) -> bool:
    return any(isinstance(b.mark, Run) and b.mark.at_hand for b in page.blocks)


@pytest.mark.parametrize("page", READ, ids=lambda page: page.path)
def test_every_block_is_run_or_says_why_not(page: Page) -> None:
    assert page.faults == ()
    assert [block.place for block in page.blocks if block.mark is None] == []


@pytest.mark.parametrize("block", LOADED, ids=lambda block: block.place)
def test_configurations_load(block, tmp_path: Path) -> None:
    load(block, block.mark, tmp_path)


@pytest.mark.parametrize("page", [p for p in READ if on_this_machine(p)], ids=lambda p: p.path)
def test_commands_do_what_the_page_says(page: Page, tmp_path: Path) -> None:
    """Slow: commands start one after the other, and simulate thousands of jobs."""
    host = Host(tmp_path)
    follower = Follower(lambda mark: host if mark.at_hand else None)
    follower.follow(page.blocks)
    assert not follower.faults, "\n\n".join(follower.faults)


@pytest.mark.parametrize("page", READ, ids=lambda page: page.path)
def test_commands_in_sentences_parse(page: Page) -> None:
    wrong = [
        f"{page.path}:{span.line}: `{span.text}`: {problem}"
        for span in inline.commands_in(page)
        if inline.program_of(span) not in inline.OTHERS
        for problem in parsing.problems(span.text)
    ]
    assert wrong == []


def test_the_list_of_what_is_run_is_up_to_date() -> None:
    assert listing.PATH.read_text() == listing.page(), f"{listing.COMMAND} writes it"


@pytest.mark.parametrize("path", inline.TABLES)
def test_options_in_tables_exist(path: str) -> None:
    known = set().union(
        *(parsing.options_of(parsing.command_named(name)) for name in inline.TABLES[path])
    )
    listed = list(inline.listed_options((ROOT / path).read_text()))
    assert listed
    assert [f"{path}:{line}: {option}" for line, option in listed if option not in known] == []


def test_options_of_the_link_to_pbs_exist() -> None:
    known = parsing.options_of(parsing.command_named("pbs-link"))
    named = list(inline.options_in(read("docs/PBS.md")))
    assert named
    assert [(line, option) for line, option in named if option not in known] == []


def test_options_of_the_dockerized_cluster_exist() -> None:
    said = ""
    for verb in ("up", "down", "shell", "logs"):
        command = [str(ROOT / "scripts" / "cluster"), verb, "--help"]
        said += subprocess.run(command, capture_output=True, text=True, check=True).stdout
    named = list(inline.options_in(read("docs/ADMIN.md"), "## The dockerized cluster"))
    assert named
    assert [(line, option) for line, option in named if f"{option} " not in said] == []
