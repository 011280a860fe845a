# SPDX-License-Identifier: Apache-2.0
"""Loads the configurations of the pages with the readers that the product itself uses."""

import textwrap
from collections.abc import Callable
from pathlib import Path
from zoneinfo import ZoneInfo

from bridge.cli.experiments.grid import grid_of
from bridge.extensions.power.corridor.open_adr import read_event
from bridge.extensions.power.corridor.signal_text import read_signal
from bridge.lab.experiments.definition import read_definition
from bridge.lab.sim.corridor.steps import read_corridor
from bridge.lab.sim.workloads.records.record_file import read_site_workload
from bridge.lab.sim.workloads.system import read_system
from bridge.service.config import parse
from tests.documents.host import files_of
from tests.documents.marks import Load
from tests.documents.pages import Block


def _experiment(path: Path) -> None:
    grid_of(read_definition(path), path)


def _nodes(path: Path) -> None:
    nested = textwrap.indent(path.read_text(), "    ")
    parse(f"planning:\n  power:\n{nested}", str(path))


def _workload(path: Path) -> None:
    job = '{"kind":"job","id":"1","submit_s":0,"start_s":0,"end_s":9,"runtime_s":9,"cpus":1}\n'
    path.write_text(path.read_text() + job)
    read_site_workload(path)


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "configuration": ("bridge.yaml", lambda path: parse(path.read_text(), str(path))),
    "system": ("system.yaml", read_system),
    "corridor": ("corridor.yaml", read_corridor),
    "experiment": ("plan.yaml", _experiment),
    "signal": ("signal.json", lambda path: read_signal(path.read_text(), ZoneInfo("UTC"), "")),
    "event": ("event.json", lambda path: read_event(path.read_text())),
    "nodes": ("nodes.yaml", _nodes),
    "workload": ("site.workload.jsonl", _workload),
}
"""Name of the file, and its reader, by what a block is."""


def load(block: Block, mark: Load, folder: Path) -> None:
    """Loads a block from a folder of its own; raises what the reader raises."""
    name, reader = READERS[mark.load]
    for other, content in files_of(mark.files).items():
        (folder / other).write_bytes(content)
    (folder / name).write_text(block.text)
    reader(folder / name)
