# SPDX-License-Identifier: Apache-2.0
"""The list of suites. Each is run as `scripts/test NAME`; `.ci/run` runs the first three."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Suite:
    """One suite.

    Attributes:
        name: what `scripts/test` calls it.
        protects: what would break unnoticed without it.
        typical_min: how long it takes on two quiet cores, minutes; rounded from measurements.
    """

    name: str
    protects: str
    typical_min: float


SUITES = (
    Suite("style", "format, types, the direction of imports", 1),
    Suite("unit", "everything that needs no cluster: units, contracts, properties, golden "
          "schedules, the plugin in C against a mock of Slurm, the whole system in virtual time",
          12),
    Suite("smoke", "a dozen things that every site does, on a real dockerized Slurm", 4),
    Suite("documents", "commands and outputs of the how-to pages, as written", 20),
    Suite("cluster", "what users and administrators do, on a real dockerized Slurm", 26),
    Suite("faults", "2,000 jobs while services and daemons crash, hang, slow down or send "
          "invalid data", 15),
    Suite("elastic", "MPI jobs that grow and shrink, with three MPIs", 25),
    Suite("pbs", "jobs and faults on a real OpenPBS server (PBS_EXEC: where one is installed)", 30),
    Suite("differential", "the same jobs on a bridged and on a stock Slurm", 40),
    Suite("slurm-suite", "Slurm's own tests of scheduling, on both", 100),
    Suite("properties", "the properties with 10 times as many examples, drawn anew, and whole "
          "crosses of presets, orders and places", 60),
    Suite("mutants", "the tests themselves: two suites must notice each planted fault", 35),
    Suite("fuzz", "the service's wire: a million malformed messages", 180),
    Suite("simulation-long", "the whole system in virtual time: 10,000 seeds", 240),
)  # fmt: skip


def listed() -> str:
    """The suites as text, a line or two each, with the time that each takes."""
    width = max(len(suite.name) for suite in SUITES)
    lines = []
    for suite in SUITES:
        words = f"{suite.protects} ({_duration(suite.typical_min)})".split()
        line, indent = f"  {suite.name:<{width}}", " " * (width + 2)
        for word in words:
            if len(line) + len(word) + 1 > 100:
                lines.append(line)
                line = indent
            line += f" {word}"
        lines.append(line)
    return "\n".join(lines)


def _duration(minutes: float) -> str:
    return f"{minutes / 60:g} h" if minutes >= 60 else f"{minutes:g} min"
