# SPDX-License-Identifier: Apache-2.0
"""The pure half of the link, put together: a `Model` of `bridge.pbs.report` and `decisions`."""

import logging
from pathlib import Path

from bridge.pbs.decisions.announcement import announcement
from bridge.pbs.decisions.last_check import LastCheck
from bridge.pbs.decisions.reservations import answer
from bridge.pbs.link.sched_priv import SchedPriv
from bridge.pbs.link.usage_file import UsageFile
from bridge.pbs.orders import Confirmation
from bridge.pbs.report.ended import ended
from bridge.pbs.report.translation import HELLO_FIELDS, Report, Translation
from bridge.pbs.tables import Attributes, Tables, text
from bridge.rpc.pb import scheduler_pb2 as pb

_log = logging.getLogger(__name__)

FEATURES = ("start", "planned_start", "pending_reason")
"""The features of a link."""


class PbsModel:
    """Tables to messages, and decisions to requests."""

    def __init__(self, sched_priv: SchedPriv | None = None) -> None:
        """Starts with nothing read.

        Args:
            sched_priv: the files of pbs_sched; None: they are not read.
        """
        self._sched_priv = sched_priv
        self._translation = Translation()
        self._last_check: tuple[Tables, LastCheck] | None = None
        self._logged: set[str] = set()
        self._usage = UsageFile()

    def hello(self) -> pb.HelloRequest:
        """The hello, without the server's name."""
        return pb.HelloRequest(controller="OpenPBS pbs-link", features=FEATURES, **HELLO_FIELDS)

    def report(self, tables: Tables) -> Report:
        """Returns the tables as messages; says once what is not modelled."""
        if self._sched_priv is not None:
            named = text(tables.sched, "sched_priv")
            self._translation.reader.files = self._sched_priv.files(named)
            self._usage.open(Path(named or self._sched_priv.default), self._translation.usage)
        report = self._translation.report(tables)
        if self._translation.counts_usage:
            self._usage.save(self._translation.usage)
        for line in report.not_modelled:
            if line not in self._logged and len(self._logged) < 1000:
                self._logged.add(line)
                _log.warning("%s", line)
        return report

    def end(self) -> None:
        """Saves what is to outlive this process."""
        if self._translation.counts_usage:
            self._usage.save(self._translation.usage, now=True)

    def checked(self, tables: Tables) -> LastCheck:
        """Returns a new last check against some tables."""
        return LastCheck(tables, self._translation.reader)

    def announcement(self, tables: Tables, decision: pb.Decision) -> tuple[str, Attributes]:
        """Returns the job and the attributes that show a planned start, or a reason."""
        if self._last_check is None or self._last_check[0] is not tables:
            self._last_check = tables, self.checked(tables)
        return announcement(decision, self._last_check[1].parsed.nodes)

    def reservation(self, tables: Tables, name: str) -> Confirmation | None:
        """Answers an unconfirmed reservation."""
        return answer(tables, name, self._translation.reader)

    def ended(self, job_id: str, attributes: Attributes, end_s: int) -> pb.EndedJob | None:
        """Returns the run of a job that held vnodes, for predictions."""
        return ended(job_id, attributes, end_s) if text(attributes, "stime") else None
