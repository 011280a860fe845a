# SPDX-License-Identifier: Apache-2.0
"""The arguments and options of `schedbridge lab import`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bridge.errors import ConfigError
from bridge.lab.accounting.site_commands import READERS
from bridge.lab.sim.workloads.records.record_file import is_site_workload


@dataclass(frozen=True)
class ImportOptions:
    """What the user has given; see the help of each."""

    accounting: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Files, or directories of them: what sacct --json or --parsable2 prints, or PBS"
            " accounting logs, plain or compressed. Default: ask the Slurm of this machine."
        ),
    ] = None
    out: Annotated[
        Path, typer.Option(help="The workload; its name must contain .workload.jsonl.")
    ] = Path("site.workload.jsonl.gz")
    system_out: Annotated[
        Path,
        typer.Option(
            help="The description of the system; with files, needs --nodes and --partitions."
        ),
    ] = Path("system.yaml")
    swf: Annotated[
        Path | None,
        typer.Option(help="Also write the Standard Workload Format (loses information)."),
    ] = None
    since: Annotated[
        str,
        typer.Option(help="Time, or how long ago: 36h, 30d, 8w. Default: 30d; with files: all."),
    ] = ""
    until: Annotated[str, typer.Option(help="Time, or how long ago; default: now.")] = ""
    reader: Annotated[
        str, typer.Option(help=f"How to read from Slurm: {', '.join(READERS)}; default: the best.")
    ] = ""
    nodes: Annotated[
        Path | None, typer.Option(help="With files: what scontrol show nodes [--json] printed.")
    ] = None
    partitions: Annotated[
        Path | None,
        typer.Option(help="With files: what scontrol show partitions [--json] printed."),
    ] = None
    events: Annotated[
        Path | None,
        typer.Option(help="With files: what sacctmgr show event --parsable2 printed."),
    ] = None
    reservations: Annotated[
        Path | None,
        typer.Option(
            help="With files: what sacctmgr show reservation --parsable2"
            " format=Name,Start,End,Flags,NodeNames printed."
        ),
    ] = None
    name: Annotated[
        str,
        typer.Option(help="Name of the site; default: that of the cluster; with files: 'site'."),
    ] = ""
    keep_names: Annotated[
        bool, typer.Option("--keep-names", help="Do not replace names by pseudonyms.")
    ] = False
    secret: Annotated[
        Path | None,
        typer.Option(
            help="File with the secret of the pseudonyms (created if missing), so that later"
            " imports give the same pseudonyms; default: the secret is discarded."
        ),
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False
    json_output: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False

    @property
    def describes(self) -> bool:
        """Whether a system's description is written."""
        return not self.accounting or self.nodes is not None

    @property
    def written(self) -> list[Path]:
        """The files to write."""
        system = self.system_out if self.describes else None
        return [path for path in (self.out, self.swf, system) if path is not None]

    def check(self) -> None:
        """Checks options that do not go together.

        Raises:
            ConfigError: some do not, or a file to write is there already.
        """
        out, reader = self.out, self.reader
        if not is_site_workload(out):
            raise ConfigError(
                "out", f"{out.name} must contain .workload.jsonl, as simulate expects"
            )
        if reader and reader not in READERS:
            raise ConfigError(
                "reader", f"there is no '{reader[:40]}'; there are {', '.join(READERS)}"
            )
        if reader and self.accounting:
            raise ConfigError("reader", "files are read as what they are: leave it out")
        if self.keep_names and self.secret is not None:
            raise ConfigError("secret", "names are kept: leave out one of the two")
        if (self.nodes is None) != (self.partitions is None):
            raise ConfigError("nodes", "give --nodes and --partitions, or neither")
        extra = (self.nodes, self.events, self.reservations)
        if not self.accounting and any(path is not None for path in extra):
            raise ConfigError("nodes", "belongs to accounting files, and none is given")
        for path in self.written:
            if path.exists() and not self.force:
                raise ConfigError(
                    "out", "is there already; give --force to replace it", file=str(path)
                )
