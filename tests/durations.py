# SPDX-License-Identifier: Apache-2.0
"""How long the tests of a run take, and which of them were run twice.

Each run writes `build/durations/SUITE.tsv` (`--suite NAME`; otherwise `part.tsv`): a line per test
with its CPU time and its time, most CPU time first. CPU time includes child processes that have
ended, and is much the same on a loaded machine. A run with `--suite` also prints the slowest fifty,
and those over 5 s whose docstring has no sentence "Slow: ...". Every run ends with the tests that
were run twice, and how they failed at first.

With xdist the workers measure, and the controller collects.
"""

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
        self.folder = config.rootpath / "build" / "durations"
        self.tests: dict[str, Duration] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test makes three reports; a worker that died makes one without times."""
        test = self.tests.setdefault(report.nodeid, Duration())
        test.time_s += report.duration
        test.cpu_s += getattr(report, "cpu_s", 0.0)
        test.is_explained |= getattr(report, "is_explained", False)
        if report.outcome == "rerun":
            test.runs += 1
            test.failed_at_first = test.failed_at_first or report.longreprtext

    def slowest(self) -> list[tuple[str, Duration]]:
        """All tests, most CPU time first."""
        return sorted(self.tests.items(), key=lambda named: -named[1].cpu_s)

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
        silent = [n for n, t in self.slowest() if t.cpu_s > SLOW_S and not t.is_explained]
        out.write_line(f"over {SLOW_S:g} s without a reason: {', '.join(silent) or 'none'}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--suite`."""
    parser.addoption(
        "--suite", metavar="NAME", help="write build/durations/NAME.tsv, print slowest"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Measures where tests run, and collects where the run is reported."""
    config.pluginmanager.register(Measuring(), "measure-durations")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Collecting(config), "collect-durations")
