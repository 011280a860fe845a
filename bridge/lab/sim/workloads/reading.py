# SPDX-License-Identifier: Apache-2.0
"""Reads a file as jobs to simulate: a trace in the Standard Workload Format, or a site workload."""

from dataclasses import dataclass
from pathlib import Path

from bridge.errors import TraceError
from bridge.lab.sim.workloads.records.lowering import NodeOutage, simulation_of
from bridge.lab.sim.workloads.records.record_file import is_site_workload, read_site_workload
from bridge.lab.sim.workloads.swf import Trace, read_swf
from bridge.lab.sim.workloads.system import System
from bridge.lab.sim.workloads.workload import Workload, workload_from


@dataclass(frozen=True)
class Readable:
    """What a file holds.

    Attributes:
        trace: in the common format; a row for each job (`Workload.row`).
        ignored: sentences on what the file has and the simulation does not honour.
    """

    trace: Trace
    workload: Workload
    outages: tuple[NodeOutage, ...] = ()
    ignored: tuple[str, ...] = ()


def read_workload(
    path: str | Path, system: System | None, procs: int | None = None, *, lenient: bool = False
) -> Readable:
    """Reads a file; its name says which of the two formats it has.

    Args:
        system: described nodes; None: a pool.
        procs: processors of the pool; None: as the file says.
        lenient: drop lines that break the rules.

    Raises:
        TraceError: the file breaks a rule, states no processors, or has no job to simulate.
        ConfigError: the system does not fit the file.
    """
    if not is_site_workload(path):
        trace = read_swf(path, lenient=lenient)
        if system is not None:
            return Readable(trace, workload_from(trace, system.processors, system.dialect))
        return Readable(trace, workload_from(trace, procs))
    site = read_site_workload(path, lenient=lenient)
    processors = system.processors if system is not None else procs or site.processors
    if not processors and procs is None:
        raise TraceError(str(path), None, "states no processors; give --procs or --system")
    found = simulation_of(site, system, processors)
    return Readable(found.trace, found.workload, found.outages, found.ignored)
