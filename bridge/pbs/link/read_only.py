# SPDX-License-Identifier: Apache-2.0
"""The link that only reads: for `plan`, `explain`, and a look at a policy beside pbs_sched.

Rules
    1. It never registers, and drops every decision: nothing is started, written or answered.
    2. Every report is a full one, since the service would wait for the results of its decisions.
    3. A silent service or server is reported once, and asked again.
    4. Reading takes at most a fifth of the time: the commands cost the server.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from bridge.errors import BridgeError
from bridge.pbs.ifl.commands import PrintedTables, find_commands
from bridge.pbs.link.assembly import PbsModel
from bridge.pbs.link.mirror import JOB_ATTRIBUTES
from bridge.pbs.link.model import Model
from bridge.pbs.link.sched_priv import SchedPriv, default_sched_priv
from bridge.pbs.link.stream import Stream
from bridge.pbs.tables import Attributes, Tables
from bridge.rpc.pb import scheduler_pb2 as pb

_log = logging.getLogger(__name__)

MIN_S, _SHARE = 5.0, 5
_MAX_LOGGED = 1000


class TableSource(Protocol):
    problems: list[str]

    def read(self, now_s: int) -> Tables:
        """Reads everything; raises IflError."""


@dataclass
class ReadOnlyLink:
    """Reports a server's state to a service, and nothing else.

    Attributes:
        model: the pure half.
        silence_s: how long a call may take.
        clock, wall: monotonic and Unix time, s.
    """

    source: TableSource
    stream: Stream
    model: Model
    silence_s: float = 5.0
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    _logged: set[str] = field(default_factory=set)
    _running: dict[str, Attributes] = field(default_factory=dict)
    _ended: list[pb.EndedJob] = field(default_factory=list)
    _trouble: str = ""

    def run(self, ending: threading.Event) -> None:
        """Reports until it is stopped."""
        _log.warning("read-only: no job is started, and nothing is written to the server")
        while not ending.is_set():
            began = self.clock()
            self.turn()
            ending.wait(max(MIN_S, (_SHARE - 1) * (self.clock() - began)))

    def turn(self) -> None:
        """Reads and reports once."""
        try:
            tables = _needed(self.source.read(int(self.wall())))
            for line in self.source.problems:
                self._log_once(line)
            self._note_ended(tables)
            self.stream.name_cluster(tables.server_name)
            self.stream.forget()
            self.stream.ask(
                self.model.report(tables), tables.now_s, timeout_s=self.silence_s,
                ended=self._ended,
            )  # fmt: skip
        except BridgeError as error:
            if str(error) != self._trouble:
                _log.warning("%s", error)
            self._trouble = str(error)
            return
        if self._trouble:
            _log.info("server and service answer again")
        self._trouble, self._ended = "", []

    def _log_once(self, line: str) -> None:
        if line not in self._logged and len(self._logged) < _MAX_LOGGED:
            self._logged.add(line)
            _log.warning("%s", line)

    def _note_ended(self, tables: Tables) -> None:
        """Runs of jobs that have left since the last look, for predictions."""
        for job_id, attributes in self._running.items():
            if job_id not in tables.jobs:
                run = self.model.ended(job_id, attributes, tables.now_s)
                if run is not None:
                    self._ended.append(run)
        self._running = {job_id: job for job_id, job in tables.jobs.items() if "exec_vnode" in job}


def read_only_link(
    address: str, pbs_exec: str, server: str, scheduler: str, silence_s: float
) -> ReadOnlyLink:
    """Puts one together, by the commands of a server.

    Args:
        address: address of the service, in gRPC's form.
        pbs_exec: where PBS is installed; empty: its commands are found by PATH.
        server: its name; empty: that of pbs.conf.
        scheduler: name of the scheduler object.
        silence_s: how long a call may take.

    Raises:
        ConfigError: there are no commands.
    """
    model = PbsModel(SchedPriv(default_sched_priv()))
    tables = PrintedTables(find_commands(pbs_exec), server, scheduler)
    return ReadOnlyLink(tables, Stream(address, model.hello()), model, silence_s)


def _needed(tables: Tables) -> Tables:
    """Without attributes of jobs on which no decision depends: they change all the time."""
    jobs = {
        job_id: {name: job[name] for name in JOB_ATTRIBUTES if name in job}
        for job_id, job in tables.jobs.items()
    }
    return replace(tables, jobs=jobs)
