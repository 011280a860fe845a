# SPDX-License-Identifier: Apache-2.0
"""The runs of `simulate` as they are finished: told, kept, and not lost when it is stopped.

Rules
    1. Of several policies, each result is told when it is there: on standard output, or, where that
       is for one JSON object, on standard error if that is a terminal.
    2. With a directory, the jobs of a run and `results.json` of all runs so far are written at
       once.
    3. If a run is stopped (Ctrl-C) or fails, the runs before it are kept: `stopped` is what to
       raise once they are shown. The summary then says that it is not complete.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

from bridge.cli.simulation.run_results import write_results, write_run
from bridge.errors import BridgeError, ConfigError
from bridge.lab.report.run import Run
from bridge.lab.sim.runs.simulation_result import SimulationResult
from bridge.lab.sim.workloads.swf import Trace
from bridge.units import format_duration


class Collected:
    """The runs that are finished.

    Attributes:
        results, runs: in order.
        summary: what all have in common, and whether these are all runs that were asked for.
        stopped: why there are not more; None: these are all.
    """

    def __init__(
        self,
        trace: Trace,
        summary: dict[str, object],
        wanted: int,
        directory: Path | None,
        *,
        quiet: bool,
    ) -> None:
        """Starts without runs.

        Args:
            summary: what all runs have in common.
            wanted: how many runs there will be.
            directory: where they are kept; None: nowhere.
            quiet: standard output is for something else.
        """
        self.results: list[SimulationResult] = []
        self.runs: list[Run] = []
        self.stopped: BaseException | None = None
        self._trace, self._summary, self._wanted = trace, summary, wanted
        self._directory, self._quiet = directory, quiet

    @property
    def summary(self) -> dict[str, object]:
        """The facts about the runs so far."""
        return {**self._summary, "complete": len(self.runs) == self._wanted}

    def collect(self, results: Iterable[tuple[SimulationResult, Run]]) -> None:
        """Takes one after the other.

        Raises:
            KeyboardInterrupt, BridgeError, MemoryError: before the first was there.
            ConfigError: the directory cannot be written.
        """
        try:
            for result, run in results:
                self.results.append(result)
                self.runs.append(run)
                self._keep(result, run)
                self._tell(run)
        except (KeyboardInterrupt, BridgeError, MemoryError) as error:
            if not self.runs:
                raise
            self.stopped = error
            if len(self.runs) < self._wanted:
                print(
                    f"stopped: {len(self.runs)} of {self._wanted} policies are done",
                    file=sys.stderr,
                    flush=True,
                )

    def _keep(self, result: SimulationResult, run: Run) -> None:
        if self._directory is None:
            return
        try:
            write_run(self._directory, self._trace, result, run)
            write_results(self._directory, self.runs, self.summary)
        except OSError as error:
            problem = f"cannot write there: {error.strerror}"
            raise ConfigError("out", problem, file=str(self._directory)) from None

    def _tell(self, run: Run) -> None:
        if self._wanted == 1:
            return
        stream = sys.stderr if self._quiet else sys.stdout
        if self._quiet and not stream.isatty():
            return
        found = run.measures
        print(
            f"{len(self.runs)} of {self._wanted}: {run.policy}: wait"
            f" {format_duration(found.wait_s.mean)} on average,"
            f" {format_duration(found.wait_s.p95)} at 95 %,"
            f" {format_duration(found.wait_s.max)} at most",
            file=stream,
            flush=True,
        )
