# SPDX-License-Identifier: Apache-2.0
"""The reported state of one controller, kept up to date by deltas.

Terms
    epoch        one life of a controller; `bridge.rpc.reported.fence` says which one counts.
    generation   counts the controller's reports within an epoch.

Rules
    1. A delta is applied only to exactly the generation against which it was computed. Otherwise a
       full report is requested.
    2. A report with an impossible clock, generation or number of objects, or with a job without
       a version, is an error of the controller, not of a user. The state is discarded and a full
       report is requested, once; if that is no better, the controller gets an error with the
       problem. One object that cannot be read is an irregularity (7): it stops no other.
    3. An invalid request is an error of the user: that job is held with a reason that says so.
    4. The end of a job is in the snapshot of the report that contained it, and in no other.
    5. A start that the controller refused holds the job for a time
       (`bridge.rpc.reported.refusals`).
    6. If the clock runs back or leaps, a full report is requested (`bridge.rpc.reported.clock`).
    7. An irregularity (`bridge.rpc.reported.irregularities`) causes one request for a full report;
       what a full report says is used, and requested again from time to time while it leaves
       something out. Times stated by users are never refused, but clipped to valid bounds.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Collection, Sequence, Set

import numpy as np
from numpy.typing import NDArray

from bridge.dialect import DIALECTS, dialect_of
from bridge.errors import RequestError, SnapshotError, UnsupportedVersion
from bridge.extension_packages import overlaid
from bridge.model.job import NONE_ENDED
from bridge.model.snapshot import Snapshot
from bridge.model.topology import Topology
from bridge.planning.queue.implied_switches import imply
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.clock import ControllerClock
from bridge.rpc.reported.cluster import ReportedCluster
from bridge.rpc.reported.decode_request import MAX_NODE_LIST
from bridge.rpc.reported.ended import read_ended
from bridge.rpc.reported.fence import Fence
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.rpc.reported.irregularities import Doubts
from bridge.rpc.reported.refusals import Refusals, RefusedStart
from bridge.rpc.reported.safe_text import printable
from bridge.state.accuracy import Began

_log = logging.getLogger(__name__)

WIRE_VERSION = 1
MAX_FEATURES = 64

LONG = 256
"""Texts of at least this many characters are parsed before the report's turn."""
SHORT_REPORT = 1 << 14
"""Bytes of a report below which no text in it is long enough to delay others."""


class Session:
    """The state of one controller, and the snapshots made of it.

    Attributes:
        generation: the generation of the last report applied; 0: none.
        full_requests: number of requests for a full report.
        started: jobs that started with the last report.
        gone: waiting jobs that it removed.
        whole: it named all jobs: a full one that left out no more than the one before.
        avoiding: ids of jobs that the last snapshot keeps from where the controller refused them.
    """

    def __init__(
        self,
        retry_s: int = 30,
        switches: Callable[[Sequence[str], str], Topology | None] = lambda *_: None,
        switches_wait_s: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Starts without a state.

        Args:
            retry_s: delay before a refused start is retried.
            switches: returns the switches above nodes of these names, in a dialect.
            switches_wait_s: how long jobs without a switch request wait for few leaf switches.
            clock: monotonic clock, s; shows which controllers are silent.
        """
        self._fence = Fence(clock)
        self._switches, self._wait_s = switches, switches_wait_s
        self._warned = False
        self.full_requests = 0
        self.hello = pb.HelloRequest()
        self.started: list[Began] = []
        self.gone: list[str] = []
        self.whole = False
        self.ended = NONE_ENDED
        self._broken = False
        self._missing: frozenset[str] = frozenset()
        self._doubts = Doubts()
        self._clock = ControllerClock()
        self.retry_s = retry_s
        self._refusals = Refusals(retry_s)
        self.avoiding: Set[str] = self._refusals.avoiding
        self.generation = self.now_s = 0
        self._cluster = ReportedCluster(self.hello, self._refusals, changes=0)

    def _clear(self) -> None:
        self.generation = self.now_s = 0
        self._cluster = ReportedCluster(self.hello, self._refusals, self._cluster.changes)

    @property
    def epoch(self) -> int:
        """The epoch of the accepted controller; 0 before its hello."""
        return self._fence.epoch

    @property
    def left_out_jobs(self) -> Collection[str]:
        """Ids of the jobs that cannot be read, and are not in the snapshot if they wait."""
        return self._cluster.left_out_jobs

    @property
    def nodes(self) -> NodeIndex:
        """The names of the nodes."""
        return self._cluster.nodes.index

    def greet(self, hello: pb.HelloRequest) -> bool:
        """Begins an epoch; a repeated hello changes nothing.

        Returns:
            False if it is a repeated one.

        Raises:
            UnsupportedVersion: the controller uses another version of the wire.
            StaleSnapshot: another controller is accepted.
            SnapshotError: the epoch is 0, or the dialect is unknown.
        """
        if hello.wire_version != WIRE_VERSION:
            raise UnsupportedVersion(
                f"the controller speaks wire version {hello.wire_version}, this service "
                f"{WIRE_VERSION}: install matching versions of plugin and service"
            )
        if hello.epoch == 0:
            raise SnapshotError("epoch", "must not be 0")
        if hello.dialect and hello.dialect not in DIALECTS:
            raise SnapshotError("dialect", f"is not one of {', '.join(sorted(DIALECTS))}")
        self._fence.take(hello.epoch)
        hello = _bounded(hello)
        if hello == self.hello:
            return False
        if hello.epoch != self.hello.epoch:
            self._broken, self._doubts, self._clock = False, Doubts(), ControllerClock()
            self._missing = frozenset()
        self.hello = hello
        self._clear()
        return True

    def apply(self, request: pb.CycleRequest) -> bool:
        """Applies a report.

        Returns:
            False if a full report is needed first.

        Raises:
            StaleSnapshot: a newer controller has taken over.
            SnapshotError: even a full report has an impossible clock or number of objects.
        """
        greeted = self._fence.admit(request.epoch)
        self.started, self.gone, self.ended = [], [], NONE_ENDED
        self.whole, full = False, request.base_generation == 0
        if not greeted or not self.follows(request):
            return self._ask()
        try:
            if request.generation <= request.base_generation:
                raise SnapshotError("generation", "does not grow")
            if self._clock.check(request.now_s, full):
                self._refusals.clear()  # their times are by another clock
                self._doubts.clock_set_back(request.now_s)
            if full:
                self._clear()
            self._cluster.apply(request)
            self.ended = read_ended(request.ended, request.now_s)
            doubt = self._doubt(request, full)
        except SnapshotError as error:
            self._clear()
            if full and self._broken:
                raise
            _log.warning("requesting a full report: %s", error)
            self._broken = True
            return self._ask()
        except BaseException:
            self._clear()  # a partly applied report leaves no valid state
            raise
        if doubt:
            _log.warning("requesting a full report: %s", doubt)
            self._clear()
            return self._ask()
        if full:
            self._broken = False
            missing = frozenset(self._cluster.left_out_jobs)
            self.whole = missing <= self._missing
            self._missing = missing
        self.generation = request.generation
        self.now_s = request.now_s
        self.started, self.gone = self._cluster.started, self._cluster.gone
        self._clock.take(request.now_s)
        self._fence.reported()
        return True

    def follows(self, request: pb.CycleRequest) -> bool:
        """Tells whether a report is a full one, or a delta to the last one applied."""
        base = request.base_generation
        return request.epoch == self.epoch and (not base or base == self.generation)

    def prepare(self, request: pb.CycleRequest) -> None:
        """Parses the long node lists of a report into the cache; safe beside a running cycle."""
        if request.ByteSize() < SHORT_REPORT:
            return
        nodes = self._cluster.nodes.index
        for job in request.jobs:
            requested = job.request
            for text, unknown_ok in (
                (requested.required_nodes, False),
                (requested.excluded_nodes, True),
            ):
                if LONG <= len(text) <= MAX_NODE_LIST:
                    with contextlib.suppress(RequestError):  # reported when the job is read
                        nodes.parse(text, unknown_ok=unknown_ok)

    def _doubt(self, request: pb.CycleRequest, full: bool) -> str:
        """Why a full report is to be requested: irregularities, or what is left out (rule 7)."""
        cluster, now_s = self._cluster, request.now_s
        odd = request.jobs and cluster.has_left_out
        new = ""
        if odd or cluster.running_changed or request.nodes or request.removed_nodes:
            new = self._doubts.review(cluster.irregularities(now_s), now_s, full)
        return new or self._doubts.still_left_out(cluster.first_left_out(4), now_s, full)

    def _ask(self) -> bool:
        self.full_requests += 1
        return False

    def refuse(
        self,
        job_id: str,
        version: int,
        text: str,
        now_s: int,
        *,
        busy: bool = False,
        beyond_model: bool = False,
        nodes: Sequence[str] = (),
        partition: str = "",
    ) -> None:
        """Holds a job after a refused start on some nodes (rule 5); busy: briefly."""
        words = printable(text) or "the controller refused to start it"
        self._refusals.add(
            job_id, version, words, changes=self._cluster.changes, now_s=now_s, busy=busy,
            beyond_model=beyond_model, nodes=nodes, partition=partition,
        )  # fmt: skip

    def retry_there(self, job_id: str) -> RefusedStart:
        """Tries one of these again where it was refused; returns that refusal."""
        return self._refusals.retry_there(job_id, changes=self._cluster.changes, now_s=self.now_s)

    @property
    def changes(self) -> int:
        """Counts a change that may make a refused start possible."""
        return self._cluster.changes

    def next_retry_s(self) -> int | None:
        """When the next refused start may be retried, even without a change."""
        return self._refusals.next_retry_s(self._cluster.changes, self.now_s)

    def nodes_awaited(self) -> bool:
        """Whether a waiting job is about to get nodes that look idle."""
        return self._refusals.nodes_awaited(self.now_s)

    def snapshot(self) -> tuple[Snapshot, NDArray[np.int64]]:
        """Returns the snapshot, and the ascending serial numbers of its job rows."""
        snapshot, serials = self._cluster.snapshot(
            now_s=self.now_s, generation=self.generation, ended=self.ended, switches=self._switches
        )
        if snapshot.topology is None and not self._warned and snapshot.jobs.switches.any():
            self._warned = True
            option = dialect_of(snapshot).words.switches_option
            _log.warning(
                "a job asks for %s: left to the controller, as no switches are known", option
            )
        return imply(overlaid(snapshot), self._wait_s), serials


def _bounded(hello: pb.HelloRequest) -> pb.HelloRequest:
    """A copy with long texts cut."""
    kept = pb.HelloRequest()
    kept.CopyFrom(hello)
    kept.controller, kept.cluster = printable(hello.controller), printable(hello.cluster)
    del kept.features[:]
    kept.features.extend(printable(word) for word in hello.features[:MAX_FEATURES])
    return kept
