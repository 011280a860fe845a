# SPDX-License-Identifier: Apache-2.0
"""How long the tests of a run take, and which of them were run twice.

Each run writes `build/durations/SUITE.tsv` (`--suite NAME`; otherwise `part.tsv`): a line per test
with its CPU time and its time, most CPU time first. CPU time includes child processes that have
ended, and is much the same on a loaded machine. A run with `--suite` also prints the slowest fifty,
and those that took more than 5 s themselves, without fixtures, whose docstring has no sentence
"Slow: ...": of CPU time, or else waiting. Every run ends with the tests that were run twice, and
how they failed at first.

`--max-silent-cpu 15` makes a run fail in which a test took that much CPU time and does not say why:
three times what is printed, as slower and busy machines need more. How long a test waited fails no
run: that depends on what else the machine does.

With xdist the workers measure, and the controller collects.
"""

import math
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SLOW_S = 5.0
PRINTED = 50


def cpu_s() -> float:
    """The CPU time of this process, and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


@dataclass
class Duration:
    """What one test took, over all its runs."""

    time_s: float = 0.0
    cpu_s: float = 0.0
    own_cpu_s: float = 0.0
    """Without fixtures, of its longest run; as the next."""
    own_time_s: float = 0.0
    is_explained: bool = False
    runs: int = 1
    failed_at_first: str = ""


@dataclass(eq=False)  # pytest keeps plugins in sets
class Measuring:
    """Adds to each report of a test the CPU time since the report before it."""

    last_s: float = 0.0

    def pytest_runtest_logstart(self) -> None:
        """What was between two tests belongs to none."""
        self.last_s = cpu_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Iterator[None]:
        """Attributes of a report reach the controller."""
        report = yield
        now_s = cpu_s()
        report.cpu_s, self.last_s = now_s - self.last_s, now_s
        report.is_explained = "Slow: " in (getattr(getattr(item, "obj", None), "__doc__", "") or "")
        return report


class Collecting:
    """Adds the reports up."""

    def __init__(self, config: pytest.Config) -> None:
        self.suite: str | None = config.getoption("suite", None)
        self.max_silent_cpu_s: float = config.getoption("max_silent_cpu", math.inf)
        self.folder = config.rootpath / "build" / "durations"
        self.tests: dict[str, Duration] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test makes three reports; a worker that died makes one without times."""
        test = self.tests.setdefault(report.nodeid, Duration())
        test.time_s += report.duration
        cpu_s = getattr(report, "cpu_s", 0.0)
        test.cpu_s += cpu_s
        if report.when == "call":
            test.own_cpu_s = max(test.own_cpu_s, cpu_s)
            test.own_time_s = max(test.own_time_s, report.duration)
        test.is_explained |= getattr(report, "is_explained", False)
        if report.outcome == "rerun":
            test.runs += 1
            test.failed_at_first = test.failed_at_first or report.longreprtext

    def slowest(self) -> list[tuple[str, Duration]]:
        """All tests, most CPU time first."""
        return sorted(self.tests.items(), key=lambda named: -named[1].cpu_s)

    def refused(self) -> list[str]:
        """A line for each test that takes too long and does not say why."""
        return [
            f"{name}: {test.own_cpu_s:.0f} s of CPU time: make it faster, or say why in its"
            ' docstring: "Slow: ..."'
            for name, test in self.slowest()
            if test.own_cpu_s > self.max_silent_cpu_s and not test.is_explained
        ]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Makes a run fail that would pass."""
        if session.exitstatus == pytest.ExitCode.OK and self.refused():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Writes the file and prints what is to be read."""
        if not self.tests:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.suite or 'part'}.tsv"
        lines = [f"{d.cpu_s:.2f}\t{d.time_s:.2f}\t{d.runs}\t{name}\n" for name, d in self.slowest()]
        path.write_text("cpu_s\ttime_s\truns\ttest\n" + "".join(lines))
        if self.suite:
            self._print_slowest(terminalreporter, path)
        for line in self.refused():
            terminalreporter.write_line(line, red=True)
        twice = {name: test for name, test in self.tests.items() if test.runs > 1}
        for name, test in twice.items():
            terminalreporter.section(f"{name} failed at first")
            terminalreporter.write_line(test.failed_at_first)
        terminalreporter.write_line(f"run twice: {', '.join(twice) or 'none'}")

    def _print_slowest(self, out: pytest.TerminalReporter, path: Path) -> None:
        total_s = sum(test.cpu_s for test in self.tests.values())
        out.section(f"slowest {PRINTED} of {len(self.tests)} tests ({total_s:.0f} s of CPU)")
        for name, test in self.slowest()[:PRINTED]:
            out.write_line(f"{test.cpu_s:8.2f} s of CPU {test.time_s:8.2f} s  {name}")
        out.write_line(f"all: {path}")
        silent = [(name, test) for name, test in self.slowest() if not test.is_explained]
        busy = [name for name, test in silent if test.own_cpu_s > SLOW_S]
        waited = [name for name, test in silent if test.own_cpu_s <= SLOW_S < test.own_time_s]
        out.write_line(f"over {SLOW_S:g} s of CPU without a reason: {', '.join(busy) or 'none'}")
        out.write_line(f"else over {SLOW_S:g} s without a reason: {', '.join(waited) or 'none'}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--suite` and `--max-silent-cpu`."""
    parser.addoption(
        "--suite", metavar="NAME", help="write build/durations/NAME.tsv, print slowest"
    )
    parser.addoption(
        "--max-silent-cpu", metavar="SECONDS", type=float, default=math.inf,
        help="fail if a test takes more CPU time, and its docstring does not say why",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Measures where tests run, and collects where the run is reported."""
    config.pluginmanager.register(Measuring(), "measure-durations")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Collecting(config), "collect-durations")
