# SPDX-License-Identifier: Apache-2.0
"""Follows a page as a reader would: block by block, in order, each where its mark says."""

import re
import shlex
import subprocess
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from tests.documents.marks import Output, Run
from tests.documents.pages import Block
from tests.documents.stated import missing


class Place(Protocol):
    """Where blocks run."""

    def run(self, script: str, mark: Run) -> subprocess.CompletedProcess[str]:
        """Runs a script; its standard error is part of its output."""

    def put(self, mark: Run) -> None:
        """Puts the files that the mark names where the block looks for them."""


Shown = Callable[[Block], AbstractContextManager[object]]
"""Tells the reader of a test that a block begins, and what became of it."""


class Follower:
    """Runs blocks one after the other, and remembers what went wrong.

    Blocks whose place is not at hand are left out, and what they print.

    Attributes:
        faults: a text for each block that did not do what the page says.
    """

    def __init__(
        self, place_of: Callable[[Run], Place | None], shown: Shown = lambda _: nullcontext()
    ) -> None:
        """Begins without faults; each block is run or compared within its `shown`."""
        self.faults: list[str] = []
        self._place_of, self._shown = place_of, shown
        self._last: tuple[Run, str] | None = None

    def follow(self, blocks: Iterable[Block]) -> None:
        """Runs those that are commands, compares those that are output."""
        for block in blocks:
            try:
                if isinstance(block.mark, Run):
                    self._last = None
                    if place := self._place_of(block.mark):
                        with self._shown(block):
                            self._run(block, block.mark, place)
                elif isinstance(block.mark, Output) and self._last is not None:
                    with self._shown(block):
                        self._compare(block, block.mark)
            except (AssertionError, subprocess.TimeoutExpired) as fault:
                self.faults.append(f"{block.place}\n{block.text}\n{fault}")

    def _run(self, block: Block, mark: Run, place: Place) -> None:
        place.put(mark)
        self._must(mark.first, mark)
        text = block.text
        for word, command in mark.where.items():
            text = _put(word, self._must(command, mark).strip(), text)
        if mark.lines:
            self._must(f"printf %s {shlex.quote(text)} > {mark.lines}", mark)
        else:
            done = place.run(commands_of(text), mark)
            assert done.returncode == mark.exits, f"exit code {done.returncode}:\n{done.stdout}"
            self._last = (mark, done.stdout)
            assert not (lacking := missing(stated_in(text), done.stdout)), lacking
        self._must(mark.then, mark)

    def _must(self, script: str, mark: Run) -> str:
        if not script:
            return ""
        place = self._place_of(mark)
        assert place is not None
        done = place.run(script, mark)
        assert done.returncode == 0, f"{script}\nexit code {done.returncode}:\n{done.stdout}"
        return done.stdout

    def _compare(self, block: Block, mark: Output) -> None:
        assert self._last is not None
        run, printed = self._last
        if mark.output != "above":
            printed = self._must(mark.output, run)
        assert not (lacking := missing(block.text, printed)), lacking


def _put(word: str, instead: str, text: str) -> str:
    return re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", lambda _: instead, text)


def commands_of(text: str) -> str:
    """The commands of a block; where some have a prompt, only those, and the rest is output."""
    prompted = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
    return "\n".join(prompted) if prompted else text


def stated_in(text: str) -> str:
    """The output in a block with prompts."""
    lines = text.splitlines()
    if not any(line.startswith("$ ") for line in lines):
        return ""
    return "\n".join("..." if line.startswith("$ ") else line for line in lines)
