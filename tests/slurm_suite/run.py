# SPDX-License-Identifier: Apache-2.0
"""Runs one of Slurm's tests on both clusters at the same time, and again if they differ.

Each test finds a cluster without jobs and reservations; one in Python finds the daemons stopped and
the configuration as it was made. What a test prints is kept in a folder for each cluster.
"""

import re
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from subprocess import SubprocessError
from typing import Any
from xml.etree import ElementTree

from cluster.engine import Trouble

from tests.differential.stand import StandError
from tests.slurm_suite.choice import Test
from tests.slurm_suite.site import Layout
from tests.slurm_suite.stand import TESTS, SuiteStand

GRACE_S = 30
"""How long a test that is told to end has for that."""
_TROUBLES = (Trouble, StandError, OSError, ValueError, SubprocessError, ElementTree.ParseError)
"""What keeps a test from being run: a cluster may answer anything, or nothing."""
_FELL_BACK = "bridge: falling back to Slurm's own backfill"
_JUNIT = "/tmp/junit.xml"
_TIMED_OUT = (124, 137)  # what timeout(1) returns
_FAILED = re.compile(
    r"(?:(?:Error +)?(?P<part>(?:Subtest|Testproc) +\S+) failed *:|Fatal) *(?P<why>.+)"
)
_WARNED = re.compile(r"Warning (?:Subtest +\S+ skipped *: *)?(?P<why>.+)")
_SOME = re.compile(r"Subtests passed +: +[1-9]")
_SKIPPED = 255  # what a test in expect returns that finds something missing


class Status(StrEnum):
    """What became of a test, or of a part of it."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    HUNG = "hung"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Result:
    """What became of a test on one cluster."""

    status: Status
    why: str = ""
    """The first failure's words, or why it was skipped."""
    parts: Mapping[str, Status] = field(default_factory=dict)
    """Its functions, of a test in Python; what failed, of one in expect."""
    took_s: float = 0.0

    @property
    def bad(self) -> set[str]:
        """The parts that failed."""
        return self._parts(Status.FAILED)

    @property
    def skipped(self) -> set[str]:
        """The parts that were not run."""
        return self._parts(Status.SKIPPED)

    def _parts(self, wanted: Status) -> set[str]:
        return {name for name, status in self.parts.items() if status is wanted}


class Verdict(StrEnum):
    """How the two clusters compare on a test."""

    SAME = "same"
    BOTH_FAIL = "both fail"
    SKIPPED = "skipped"
    NOT_RUN = "not run"
    STOCK_ONLY = "stock only"
    UNSUPPORTED = "unsupported"
    BRIDGE_ONLY = "bridge only"


DIFFER = (Verdict.STOCK_ONLY, Verdict.BRIDGE_ONLY, Verdict.NOT_RUN)
"""Verdicts that call for a second run."""

_ALIKE = {
    Status.PASSED: Verdict.SAME, Status.SKIPPED: Verdict.SKIPPED,
    Status.FAILED: Verdict.BOTH_FAIL, Status.HUNG: Verdict.BOTH_FAIL,
}  # fmt: skip
_RANK = {Status.PASSED: 0, Status.SKIPPED: 1, Status.FAILED: 2, Status.HUNG: 3}


def compare(stock: Result, bridge: Result, *, unsupported: str = "", parts: str = "") -> Verdict:
    """Who fails alone, if somebody does.

    Args:
        stock: there.
        bridge: here.
        unsupported: the unsupported feature that the test is about.
        parts: a pattern of those parts of it that are; else all.
    """
    if Status.NOT_RUN in (stock.status, bridge.status):
        return Verdict.NOT_RUN
    ours, theirs = _RANK[bridge.status], _RANK[stock.status]
    worse, better = ours > theirs, ours < theirs
    if stock.status is bridge.status is Status.FAILED:
        worse, better = bool(bridge.bad - stock.bad), bool(stock.bad - bridge.bad)
    if stock.status is bridge.status is Status.PASSED:
        worse = bool(bridge.skipped - stock.skipped)
    if worse:
        alone = bridge.bad - stock.bad
        matched = not parts or (alone and all(re.search(parts, one) for one in alone))
        about = unsupported and matched
        return Verdict.UNSUPPORTED if about else Verdict.BRIDGE_ONLY
    return Verdict.STOCK_ONLY if better else _ALIKE[stock.status]


@dataclass(frozen=True)
class Row:
    """A test and what became of it; two pairs of results if it was run twice."""

    test: Test
    results: tuple[tuple[Result, Result], ...]

    @property
    def verdict(self) -> Verdict:
        """That of the last run."""
        test = self.test
        return compare(
            *self.results[-1], unsupported=test.unsupported, parts=test.unsupported_parts
        )

    def as_dict(self) -> dict[str, Any]:
        """For a file."""
        stock, bridge = self.results[-1]
        return {
            "suite": self.test.suite, "topic": self.test.topic, "name": self.test.name,
            "what": self.test.what, "unsupported": self.test.unsupported, "verdict": self.verdict,
            "stock": asdict(stock), "bridge": asdict(bridge), "runs": len(self.results),
        }  # fmt: skip


def run(
    test: Test, stands: tuple[SuiteStand, SuiteStand], pool: ThreadPoolExecutor, logs: Path,
    *, once: bool = False,
) -> Row:  # fmt: skip
    """Runs a test, twice if one cluster alone fails or cannot run it; the second run counts then.

    Whatever a test does to a cluster, it stops no other test: a cluster that does not do what it is
    told is made anew for the next run.
    """
    told: list[tuple[Result, Result]] = []
    for number in range(1 if once else 2):
        mark = "" if number == 0 else ".again"
        stock, bridge = pool.map(
            lambda stand, mark=mark: _on(  # type: ignore[misc]
                test, stand, logs / ("bridge" if stand.bridged else "stock") / f"{test.name}{mark}"
            ),
            stands,
        )
        told.append((stock, bridge))
        row = Row(test, tuple(told))
        if row.verdict not in DIFFER:
            break
    return row


def _on(test: Test, stand: SuiteStand, log: Path) -> Result:
    """Runs a test on one cluster; what it prints goes to files whose names begin with `log`."""
    try:
        if not stand.is_up():
            stand.up()
        result = _tried(test, stand, log)
        if stand.bridged and _FELL_BACK in _controller_log(log).read_text(errors="replace"):
            raise StandError(f"{stand.name}: the service was silent: Slurm's own backfill decided")
        if not stand.is_up():
            raise StandError(f"{stand.name}: the container or the service ended during the test")
    except _TROUBLES as trouble:
        with suppress(*_TROUBLES):
            stand.down()
            log.with_name(f"{log.name}.trouble.txt").write_text(getattr(trouble, "detail", ""))
        return Result(Status.NOT_RUN, str(trouble))
    return result


def _tried(test: Test, stand: SuiteStand, log: Path) -> Result:
    expect = test.suite == "expect"
    log.parent.mkdir(parents=True, exist_ok=True)
    if expect:
        _clear(stand, test.layout)
        line = f"cd {TESTS}/expect && exec timeout -k {GRACE_S} {test.limit_s} ./{test.name}"
    else:
        stand.lay_out(Layout.SEED, again=True)
        line = (
            f"rm -f {_JUNIT}; cd {TESTS}/python && exec timeout -s INT -k {GRACE_S} {test.limit_s}"
            " /usr/bin/python3 -m pytest -s -rA -v -p no:cacheprovider --disable-warnings"
            f" --auto-config --no-color --junitxml={_JUNIT} tests/{test.name}.py"
        )
    begin_s = time.monotonic()
    output, junit = (log.with_name(f"{log.name}.{ending}") for ending in ("txt", "xml"))
    for old in (junit, _controller_log(log)):
        old.unlink(missing_ok=True)
    code = stand.run(line, output, test.limit_s + 4 * GRACE_S)
    took_s = round(time.monotonic() - begin_s, 1)
    stand.fetch("/var/log/slurm/slurmctld.log", _controller_log(log))
    stand.root(": >/var/log/slurm/slurmctld.log", check=False)
    if code in _TIMED_OUT:
        return Result(Status.HUNG, f"ended after {test.limit_s} s", took_s=took_s)
    text = output.read_text(errors="replace")
    if expect:
        return of_expect(code, text, took_s)
    stand.fetch(_JUNIT, junit)
    if not junit.exists():
        return Result(Status.FAILED, _last(text), took_s=took_s)
    return of_junit(junit.read_text(errors="replace"), took_s)


def _controller_log(log: Path) -> Path:
    return log.with_name(f"{log.name}.slurmctld.log")


def _clear(stand: SuiteStand, layout: Layout) -> None:
    """A cluster of this layout without jobs and reservations, configured as it was made."""
    stand.lay_out(layout)
    try:
        clean = stand.pristine() and "dirty" not in stand.ask("clear")
    except StandError:
        clean = False
    if not clean:
        stand.lay_out(layout, again=True)


def of_expect(code: int, text: str, took_s: float = 0.0) -> Result:
    """Reads what a test in expect printed."""
    if code == 0:
        return Result(Status.PASSED, took_s=took_s)
    found = [line for line in map(_bare, text.splitlines()) if line]
    if code == _SKIPPED:
        why = [match["why"] for line in found if (match := _WARNED.match(line))]
        # It also ends so where only parts of it were skipped.
        status = Status.PASSED if _SOME.search(text) else Status.SKIPPED
        return Result(
            status, (why or [_last(text)])[-1], dict.fromkeys(why, Status.SKIPPED), took_s
        )
    told = [match for line in found if (match := _FAILED.match(line))]
    why = [match["why"] for match in told]
    parts = {match["part"]: Status.FAILED for match in told if match["part"]}
    return Result(Status.FAILED, (why or [_last(text)])[0], parts, took_s)


def of_junit(xml: str, took_s: float = 0.0) -> Result:
    """Reads the report of a test in Python."""
    parts: dict[str, Status] = {}
    why: dict[Status, str] = {}
    for case in ElementTree.fromstring(xml).iter("testcase"):
        status = Status.PASSED
        for child in case:
            if child.tag in ("failure", "error"):
                status = Status.FAILED
            elif child.tag == "skipped" and child.get("type") != "pytest.xfail":
                status = Status.SKIPPED
            else:
                continue
            lines = (child.get("message") or "").splitlines()
            why.setdefault(status, f"{case.get('name')}: {lines[0] if lines else ''}")
        name = str(case.get("name"))
        if parts.get(name) is not Status.FAILED:
            parts[name] = status
    for status in (Status.FAILED, Status.PASSED, Status.SKIPPED):
        if status in parts.values():
            return Result(status, why.get(status, ""), parts, took_s)
    return Result(Status.SKIPPED, "no test in it", took_s=took_s)


def _bare(line: str) -> str:
    plain = re.sub(r"\x1b\[[\d;]*m", "", line)
    # Without the time it was said, and the place in the test.
    return re.sub(r"^\[[\d: .-]+\] | \([\w.]+@[^)]*\)$", "", " ".join(plain.split()))


def _last(text: str) -> str:
    lines = [line for line in map(_bare, text.splitlines()) if line]
    return lines[-1] if lines else "it says nothing"
