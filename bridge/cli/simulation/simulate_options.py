# SPDX-License-Identifier: Apache-2.0
"""The arguments and options of `schedbridge lab simulate`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from bridge.cli.simulation.policies import SiteOption
from bridge.cli.simulation.replays import Engine
from bridge.cli.simulation.sharing import SharingOptions
from bridge.lab.sim.runs.power_options import POWER_PAPER, PowerOptions


@dataclass(frozen=True)
class SimulateOptions:
    """What the user has given; see the help of each."""

    trace: Annotated[
        Path,
        typer.Argument(
            help="Trace in the Standard Workload Format (.swf[.gz]); or a site's own jobs"
            " (.workload.jsonl[.gz], by 'schedbridge lab import'); or esp:SHARE, the ESP workload"
            " on 32 nodes (--procs), of whose jobs SHARE percent are malleable; or power-paper, 20"
            " malleable jobs in a corridor of power."
        ),
    ]
    policy: Annotated[
        list[str],
        typer.Option(help="A preset's name, or a YAML file with one policy. Repeat to compare."),
    ] = field(default_factory=lambda: ["easy"])
    procs: Annotated[
        int | None, typer.Option(help="Processors of the machine; default: as in the header.")
    ] = None
    jobs: Annotated[int | None, typer.Option(help="Only the first N jobs.", min=1)] = None
    system: Annotated[
        Path | None, typer.Option(help="YAML description of nodes and partitions.")
    ] = None
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Skip malformed lines instead of rejecting the trace.")
    ] = False
    seed: Annotated[
        int,
        typer.Option(help="Seed of all random numbers: policies, faults, the order of esp.", min=0),
    ] = 0
    faults: Annotated[
        int,
        typer.Option(
            help="Inject N faults: lost nodes, cancelled jobs, jobs that end early.",
            min=0,
            max=1_000_000,
        ),
    ] = 0
    predict: Annotated[
        list[str] | None,
        typer.Option(
            help="Predictor of run times, in place of the policy's own: time-limit, last-two,"
            " name-history, oracle. Repeat to run each policy with each predictor."
        ),
    ] = None
    decision_time: Annotated[
        str,
        typer.Option(
            help="Simulated duration of a decision: free (none), counted (as measured here), or a"
            " number of milliseconds."
        ),
    ] = "free"
    speed_up: Annotated[
        str | None,
        typer.Option(
            help="Speed-up of every malleable job of esp: amdahl:FRACTION,"
            " downey:PARALLELISM:VARIANCE, table:WIDTH=SPEEDUP,..., or phases:SHARE*MODEL,...;"
            " default: Amdahl's law with a serial fraction drawn for each job."
        ),
    ] = None
    change_cost: Annotated[
        str | None,
        typer.Option(
            help="Duration of a change of width: join (as measured with this engine), or seconds"
            " as WHOLE or WHOLE:PAUSE, where PAUSE is how long the job pauses; default: join."
        ),
    ] = None
    site: SiteOption = None
    corridor: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Bounds of system power over time, YAML or JSON: steps from the"
            " start of the run, - {at: 0, lower: 1700W, upper: 2500W}.",
        ),
    ] = None
    node_power: Annotated[
        str | None,
        typer.Option(metavar="IDLE:MAX", help="Power of each node, W; system power is simulated."),
    ] = None
    power_error: Annotated[
        float | None,
        typer.Option(
            help="By how many percent the power of jobs may differ from their model; default: 0,"
            " for power-paper 10."
        ),
    ] = None
    power_sensors: Annotated[
        bool, typer.Option("--power-sensors", help="Policies see the measured power of jobs.")
    ] = False
    power_down: Annotated[
        int,
        typer.Option(
            min=0,
            max=86_400,
            metavar="SECONDS",
            help="Idle nodes can be powered down, and need this long to power up; default: 0,"
            " nodes stay on.",
        ),
    ] = 0
    interference: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Jobs may share nodes; this model, YAML or JSON, says how much they slow each"
            " other down.",
        ),
    ] = None
    consent: Annotated[
        float | None,
        typer.Option(help="Percentage of the jobs that consent to share nodes; default: 100."),
    ] = None
    over_time_limit: Annotated[
        str | None,
        typer.Option(
            metavar="MINUTES",
            help="How long jobs that share nodes may run beyond their limit; default: unlimited.",
        ),
    ] = None
    engine: Annotated[
        Engine,
        typer.Option(
            help="cycle: the service's cycle at every event; fast: a replay of counts, with the"
            " same starts; auto: fast where possible. The results name the engine that ran."
        ),
    ] = Engine.AUTO
    json_output: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False
    out: Annotated[
        Path | None, typer.Option(help="Directory for results, CSV, SWF, plots, HTML report.")
    ] = None

    def power(self, *, bounded: bool) -> PowerOptions:
        """The options of power, checked.

        Args:
            bounded: the site's rules bound power.

        Raises:
            ConfigError: an option would have no effect.
        """
        options = PowerOptions(
            self.corridor, self.node_power, self.power_error, self.power_sensors, self.power_down
        )
        return options.checked(bounded=bounded or str(self.trace) == POWER_PAPER)

    @property
    def sharing(self) -> SharingOptions:
        """The options of jobs that share nodes."""
        return SharingOptions(self.interference, self.consent, self.over_time_limit)
