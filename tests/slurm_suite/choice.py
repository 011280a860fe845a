# SPDX-License-Identifier: Apache-2.0
"""Which of Slurm's tests are run, and which are not, with the reason: chosen.yaml."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.differential.cases import UNSUPPORTED
from tests.slurm_suite.site import Layout

FILE = Path(__file__).with_name("chosen.yaml")
SUITES = ("expect", "python")
LIMIT_S = {"expect": 180, "python": 300}
"""When a test is ended that says nothing else."""


@dataclass(frozen=True)
class Test:
    """One of Slurm's tests."""

    __test__ = False  # none of pytest's

    suite: str
    topic: str
    number: str
    what: str
    limit_s: int
    unsupported: str = ""
    """The unsupported feature (docs/ADMIN.md) that it tests."""
    unsupported_parts: str = ""
    """A pattern of those of its parts that do; empty: all."""
    layout: Layout = Layout.STANDING
    """What it finds; a seed, if it is one in Python."""

    @property
    def name(self) -> str:
        """Its file in the suite, without ending."""
        return f"test{self.number}" if self.suite == "expect" else f"test_{self.number}"


@dataclass(frozen=True)
class LeftOut:
    """Tests that are not run, for one reason."""

    suite: str
    why: str
    numbers: tuple[str, ...]


@dataclass(frozen=True)
class Choice:
    """All of chosen.yaml."""

    tests: tuple[Test, ...]
    left_out: tuple[LeftOut, ...]

    def unknown(self, suite: str, numbers: set[str]) -> tuple[set[str], set[str]]:
        """Numbers that the suite has and this has not, and the other way round."""
        here = {test.number for test in self.tests if test.suite == suite}
        here |= {one for group in self.left_out if group.suite == suite for one in group.numbers}
        return numbers - here, here - numbers


def load(path: Path = FILE) -> Choice:
    """Reads the file.

    Raises:
        ValueError: it is not as it should be; the message says where.
    """
    told = yaml.safe_load(path.read_text(encoding="utf-8"))
    tests = [
        _test(suite, group["topic"], name, given)
        for suite in SUITES
        for group in told[suite]
        for name, given in group["tests"].items()
    ]
    left_out = [
        LeftOut(suite, group["why"], tuple(expand(group["tests"])))
        for suite in SUITES
        for group in told["left out"][suite]
    ]
    named = [(test.suite, test.number) for test in tests]
    named += [(group.suite, number) for group in left_out for number in group.numbers]
    twice = sorted({one for one in named if named.count(one) > 1})
    if twice:
        raise ValueError(f"{path.name}: named twice: {', '.join(' '.join(one) for one in twice)}")
    return Choice(tuple(tests), tuple(left_out))


_NAMES = {"expect": r"test(\d+\.\d+)", "python": r"test_(\d+_\d+)"}


def _test(suite: str, topic: str, name: str, given: Any) -> Test:
    match = re.fullmatch(_NAMES[suite], str(name))
    if match is None:
        raise ValueError(f"{topic}: '{name}' is not a test in {suite}")
    number = match[1]
    more = given if isinstance(given, dict) else {"what": given}
    if more.get("unsupported", UNSUPPORTED[0]) not in UNSUPPORTED:
        raise ValueError(f"{topic}: {number}: '{more['unsupported']}' is not in UNSUPPORTED")
    if set(more) - {"what", "limit_s", "unsupported", "parts", "layout"}:
        raise ValueError(
            f"{topic}: {number}: only what, limit_s, unsupported, parts and layout can be said"
        )
    return Test(suite, topic, number, more["what"], more.get("limit_s", LIMIT_S[suite]),
                more.get("unsupported", ""), more.get("parts", ""),
                Layout(more.get("layout", "standing")))  # fmt: skip


def expand(words: str) -> list[str]:
    """Numbers of tests: `1.3-5 1.8` is 1.3, 1.4, 1.5, 1.8."""
    found = []
    for word in str(words).split():
        match = re.fullmatch(r"(\d+)([._])(\d+)(?:-(\d+))?", word)
        if match is None:
            raise ValueError(f"'{word}' is not a number of a test, and no row of them")
        first, last = int(match[3]), int(match[4] or match[3])
        found += [f"{match[1]}{match[2]}{number}" for number in range(first, last + 1)]
    return found


def choose(tests: tuple[Test, ...], words: str) -> list[Test]:
    """Those that the words name, else those whose suite, name, topic and text hold all of them."""
    wanted = words.split()
    named = [test for test in tests if {test.number, test.name} & set(wanted)]
    if named:
        return named
    return [
        test for test in tests
        if all(word.lower() in f"{test.suite} {test.name} {test.topic} {test.what}".lower()
               for word in wanted)
    ]  # fmt: skip
