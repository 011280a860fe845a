# SPDX-License-Identifier: Apache-2.0
"""Keeps the ordered shares of this node's jobs in force.

Rules
    1. Each pass compares everything with the wanted shares (`wanted.py`), whatever earlier passes
       did: there may be new processes and jobs, and others may have written the files.
    2. An error with one job is logged, once for each kind of error, and affects no other job.
    3. A job all of whose processes are being killed has no quota, and at least the usual weight;
       otherwise it would end slowly and delay the next job. (Only SIGKILL counts: it never stays
       pending for long.)
    4. Changes are undone when they are no longer wanted; this is repeated until it succeeds. A job
       of several nodes may have no process on one of them between its steps: what is set for it
       stays until its share is no longer wanted.
    5. An order that is older than the last one, by its number, is ignored.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Final

from bridge.agent.processes import Processes
from bridge.agent.use.cgroups import ROOT, NodeCgroups, usable_cpus
from bridge.extensions.sharing.on_nodes.cgroup_v1 import CgroupV1, own_name
from bridge.extensions.sharing.on_nodes.cgroup_v2 import CgroupV2
from bridge.extensions.sharing.on_nodes.method import Method
from bridge.extensions.sharing.on_nodes.priorities import PriorityMethod
from bridge.extensions.sharing.on_nodes.record import Recorded, ShareRecord
from bridge.extensions.sharing.on_nodes.wanted import (
    MAX_LEASE_S,
    MAX_SHARES,
    USUAL_WEIGHT,
    Share,
    ShareKey,
    bounded,
    fallen_back,
    is_job,
)

_log = logging.getLogger(__name__)

LOOK_S: Final = 0.5
"""Between two passes."""
ABSENT_S: Final = 120.0
"""Without a service, a job without processes for this long has ended."""
_REQUESTED: Final = 16
"""Processes of a job that are checked for a pending SIGKILL."""
_SIGKILL_BIT: Final = 1 << 8


@dataclass(frozen=True)
class ShareInForce:
    """What the last pass did for a share.

    Attributes:
        method: by what; empty: the job has no process here.
        problem: why it is not in force; empty: it is.
        complete: all processes of the job are known to have it.
    """

    share: Share
    method: str
    problem: str = ""
    complete: bool = False


class ShareKeeper:
    """The shares of one machine. `order` may be called by any thread, `look` by one."""

    def __init__(
        self,
        nodes: Sequence[str],
        record: ShareRecord,
        processes: Processes,
        *,
        root: Path = ROOT,
        proc: Path = Path("/proc"),
        cpus: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begins with the shares in the record, as if their lease had ended.

        Args:
            nodes: for which the agent reports; shares on others are ignored.
            cpus: the CPUs of a node; 0: those that this process may use.
            clock: monotonic, s.
        """
        alone = len(nodes) == 1
        cgroups = {node: NodeCgroups(node, alone=alone, root=root) for node in nodes}
        self._cgroups = cgroups
        self._v1 = CgroupV1(cgroups, root, proc, freezes=lambda: self._note(self._noted))
        self._noted: Mapping[ShareKey, Share] = {}
        self._methods: tuple[Method, ...] = (
            CgroupV2(cgroups, proc), self._v1, PriorityMethod(processes, proc),
        )  # fmt: skip
        self._nodes, self._proc, self._clock = frozenset(nodes), proc, clock
        self._cpus = cpus or usable_cpus(root)
        self._record = record
        self._lock = threading.Lock()
        found = record.read()
        self._wanted = tuple(share for share in found.shares if share.node in self._nodes)
        self._v1.own = {key: path for key, path in found.own.items() if path.name == own_name(key)}
        self._v1.frozen = set(found.frozen)
        self._until_s = float("-inf")
        self._sequence = 0
        # The methods by which a job was, or may have been, changed.
        self._changed: dict[ShareKey, set[str]] = {}
        names = {method.name for method in self._methods}
        for key, name in found.changed:
            known = {name} if name in names else names
            self._changed[key] = self._changed.get(key, set()) | known
        for share in self._wanted:
            self._changed.setdefault(share.key, set(names))
        for key in self._v1.own:
            self._changed[key] = self._changed.get(key, set()) | {self._v1.name}
        self._absent: dict[ShareKey, float] = {}
        self._logged: set[tuple[ShareKey, str]] = set()
        self.in_force: tuple[ShareInForce, ...] = ()

    # ------------------------------------------------------------ orders

    def begin(self) -> None:
        """A new service numbers its orders from the start."""
        with self._lock:
            self._sequence = 0

    def order(self, sequence: int, lease_s: float, shares: Iterable[Share]) -> bool:
        """Takes an order; False: it is old, or invalid.

        Args:
            sequence: its number; the same again renews the lease.
            lease_s: for how long it is valid.
            shares: shares of all jobs that do not have their full share.
        """
        found = {share.key: share for share in islice(shares, MAX_SHARES + 1)}
        if len(found) > MAX_SHARES:
            return False
        mine = tuple(
            bounded(share, self._cpus)
            for share in found.values()
            if share.node in self._nodes and is_job(share.job)
        )
        with self._lock:
            if sequence < self._sequence:
                return False
            self._sequence = sequence
            self._wanted = mine
            self._until_s = self._clock() + min(max(lease_s, 0.0), MAX_LEASE_S)
        return True

    def _now_wanted(self) -> tuple[tuple[Share, ...], bool]:
        with self._lock:
            ordered, valid = self._wanted, self._clock() < self._until_s
        if valid:
            return ordered, True
        alone = {share.key for share in ordered if share.guest and self._is_alone(share.key)}
        return fallen_back(ordered, self._cpus, alone), False

    def _is_alone(self, key: ShareKey) -> bool:
        """Whether a job is known to be the only one on its node."""
        node, job = key
        try:
            return self._cgroups[node].occupants() == {job}
        except OSError as error:
            self._tell(key, f"the node's other jobs are not known: {error}")
            return False

    # ------------------------------------------------------------ passes

    def look(self) -> tuple[ShareInForce, ...]:
        """Puts the wanted shares in force, and undoes others (rules 1 to 4)."""
        shares, valid = self._now_wanted()
        # The guardian must know every guest, whatever its share is.
        wanted = {share.key: share for share in shares if share.guest or not share.is_full}
        self._v1.thaw()
        self._note(wanted)
        self.in_force = tuple(self._apply(share) for share in wanted.values())
        present = {each.share.key for each in self.in_force if each.method or each.problem}
        for key in [key for key in self._changed if key not in wanted]:
            self._give_back(key)
        self._absent = {
            key: self._absent.get(key, self._clock()) for key in wanted.keys() - present
        }
        if not valid:
            self._forget()
        self._logged = {
            each for each in self._logged if each[0] in wanted or each[0] in self._changed
        }
        self._note(wanted)
        return self.in_force

    @property
    def cgroups(self) -> Mapping[ShareKey, Path]:
        """The cgroups of version 1 that were made for jobs."""
        return self._v1.own

    @property
    def is_idle(self) -> bool:
        """Nothing is in force, expected or to be undone."""
        return not self._changed and not self.in_force

    def _note(self, wanted: Mapping[ShareKey, Share]) -> None:
        self._noted = wanted
        changed = [(key, name) for key, names in self._changed.items() for name in sorted(names)]
        changed += [(key, "") for key in wanted if key not in self._changed]
        own, frozen = dict(self._v1.own), frozenset(self._v1.frozen)
        try:
            self._record.put(Recorded(tuple(wanted.values()), tuple(changed), own, frozen))
        except OSError as error:
            self._tell(("", ""), f"{self._record.path} cannot be written: {error}")

    def _apply(self, share: Share) -> ShareInForce:
        problem = ""
        for method in self._methods:
            try:
                if not method.offers(share.key):
                    continue
                before = self._changed.get(share.key, set())
                self._changed[share.key] = before | {method.name}
                if not method.apply(self._unless_dying(method, share)):
                    self._changed[share.key] = before
                    return ShareInForce(share, "", problem)
                if method.is_weaker:
                    why = problem or "there are no cgroups"
                    self._tell(share.key, f"by priorities only, which are weaker: {why}")
                complete = method.is_complete(share.key)
                if not complete and not method.is_weaker:
                    self._tell(share.key, "some of its processes started outside its cgroup")
                return ShareInForce(share, method.name, complete=complete)
            except Exception as error:  # a job must not stop the shares of others
                problem = str(error) or type(error).__name__
                self._tell(share.key, f"by {method.name}: {problem}")
        return ShareInForce(share, "", problem)

    def _unless_dying(self, method: Method, share: Share) -> Share:
        """The share that a job has if all of its processes are being killed (rule 3)."""
        if not share.milli_cpus and share.weight >= USUAL_WEIGHT:
            return share
        requested = list(islice(method.processes(share.key), _REQUESTED))
        if requested and all(self._is_killed(pid) for pid in requested):
            return replace(share, milli_cpus=0, weight=max(share.weight, USUAL_WEIGHT))
        return share

    def _is_killed(self, pid: int) -> bool:
        try:
            status = (self._proc / str(pid) / "status").read_bytes()
        except OSError:
            return True  # it is gone
        pending = 0
        for line in status.splitlines():
            if line.startswith((b"SigPnd:", b"ShdPnd:")):
                with contextlib.suppress(ValueError):
                    pending |= int(line.split()[1], 16)
        return bool(pending & _SIGKILL_BIT)

    def _give_back(self, key: ShareKey) -> None:
        for each in self._methods:
            if each.name not in self._changed[key]:
                continue
            try:
                done = each.restore(key)
            except Exception as error:
                done = isinstance(error, FileNotFoundError | ProcessLookupError)
                self._tell(key, f"cannot be undone by {each.name}: {error}")
            if done:
                self._changed[key].discard(each.name)
        if not self._changed[key]:
            del self._changed[key]

    def _forget(self) -> None:
        """Without a service no message ends a job: those long without processes have ended."""
        before_s = self._clock() - ABSENT_S
        gone = {key for key, since_s in self._absent.items() if since_s < before_s}
        with self._lock:
            self._wanted = tuple(share for share in self._wanted if share.key not in gone)

    def _tell(self, key: ShareKey, text: str) -> None:
        if (key, text) not in self._logged and len(self._logged) < MAX_SHARES:
            self._logged.add((key, text))
            _log.warning("the share of job %s on %s: %s", key[1] or "-", key[0] or "-", text)
