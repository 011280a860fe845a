# SPDX-License-Identifier: Apache-2.0
"""Shares by cgroup v1: `cpu.shares` and `cpu.cfs_quota_us`.

Slurm makes no cgroups in the hierarchy `cpu`, unless it is mounted together with `cpuacct`.

Rules
    1. If Slurm has a cgroup of the job in that hierarchy, the files of this cgroup are written.
    2. Otherwise the job has a cgroup of its own, below that of slurmd. All its processes start in
       it where `spank_bridge_shares.so` makes it. Without that plugin, and for processes that Slurm
       has adopted, it is made here, and processes are moved into it until no further one appears;
       their children start in it. Slurm finds a job's processes in other hierarchies and is not
       disturbed.
    3. Only guests, and jobs with less than the full share, are moved. They stay there, and the
       cgroup is removed when they have ended.
    4. A job that forks faster than it is moved is frozen meanwhile, for at most `MAX_MOVE_S`. This
       is recorded before it is frozen, so that the next keeper of shares thaws it. A process that
       cannot be moved stops no other. If a process of another job has reused the id of an ended
       one, it is moved out again before anything else.
    5. Where rule 1 applies, the kernel compares weights of several users' jobs between the cgroups
       of the users: a user's cgroup gets the largest weight of its jobs.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from bridge.agent.processes import is_slurms
from bridge.agent.use.cgroups import NodeCgroups
from bridge.extensions.sharing.on_nodes import method
from bridge.extensions.sharing.on_nodes.method import (
    PERIOD_US,
    pids_below,
    pids_in,
    put,
    quota_us,
)
from bridge.extensions.sharing.on_nodes.mounts import cgroup_of
from bridge.extensions.sharing.on_nodes.wanted import USUAL_WEIGHT, Share, ShareKey

HIERARCHIES: Final = ("cpu", "cpu,cpuacct", "cpuacct,cpu")
MAX_MOVE_S: Final = 1.0
COMPLETE_S: Final = 10.0
"""A job is complete if no process of it was outside its cgroup for this long."""
NO_QUOTA: Final = "-1"
MIN_SHARES: Final = 2
PASSES: Final = 3
_USUAL_SHARES: Final = 1024


def shares_of(weight: int) -> int:
    """A weight of cgroup v2 as shares of v1; 100 is the default of both."""
    return max(weight * _USUAL_SHARES // USUAL_WEIGHT, MIN_SHARES)


def _attach(pid: int, folder: Path) -> None:
    method.attach(str(pid), folder / "cgroup.procs")


class CgroupV1:
    """A `bridge.extensions.sharing.on_nodes.method.Method`.

    Attributes:
        own: cgroups that were made for jobs (rule 2); kept by the agent's record over restarts.
        frozen: jobs that are frozen at present; likewise.
    """

    name = "cgroup-v1"
    is_weaker = False

    def __init__(
        self,
        cgroups: dict[str, NodeCgroups],
        root: Path,
        proc: Path = Path("/proc"),
        *,
        attach: Callable[[int, Path], None] = _attach,
        freezes: Callable[[], None] = lambda: None,
    ) -> None:
        """Takes the cgroups by node.

        Args:
            attach: moves a process.
            freezes: called before a job is frozen; records `frozen`.
        """
        self._cgroups, self._proc = cgroups, proc
        self._root, self._attach = root, attach
        self._freezes = freezes
        self.own: dict[ShareKey, Path] = {}
        self._moved_s: dict[ShareKey, float] = {}
        self.frozen: set[ShareKey] = set()

    def _hierarchy(self) -> Path | None:
        found = (self._root / name for name in HIERARCHIES)
        return next((each for each in found if (each / "cpu.shares").exists()), None)

    def _slurms(self, key: ShareKey) -> Path | None:
        """Slurm's cgroup of a job in the hierarchy (rule 1)."""
        hierarchy, folder = self._hierarchy(), self._listed(key)
        if hierarchy is None or folder is None:
            return None
        below = folder.relative_to(self._root).parts[1:]
        mine = hierarchy.joinpath(*below)
        return mine if (mine / "cpu.shares").exists() else None

    def _listed(self, key: ShareKey) -> Path | None:
        """The cgroup in which Slurm lists the processes of a job."""
        node, job = key
        cgroups = self._cgroups.get(node)
        if cgroups is None or cgroups.is_v2:
            return None
        return cgroups.folders().get(job)

    def offers(self, key: ShareKey) -> bool:
        """Where Slurm lists the job's processes, and the hierarchy is mounted."""
        return self._hierarchy() is not None and self._listed(key) is not None

    def processes(self, key: ShareKey) -> Iterator[int]:
        """Processes of all steps, without Slurm's own."""
        return (pid for pid in self._with_slurms(key) if not is_slurms(pid, self._proc))

    def _with_slurms(self, key: ShareKey) -> Iterator[int]:
        folder = self._listed(key)
        return pids_below(folder) if folder is not None else iter(())

    def apply(self, share: Share) -> bool:
        """Settings first, so that they apply to a process as soon as it is moved."""
        slurms = self._slurms(share.key)
        if slurms is not None:
            _settle(slurms, share)
            self._settle_user(slurms.parent)
            return True
        processes = list(self.processes(share.key))
        own = self.own.get(share.key)
        if not processes:
            return False
        if own is None or not own.is_dir():
            own = self._find_or_make(share.key, processes)
        _settle(own, share)
        self._gather(share.key, own)
        return True

    def is_complete(self, key: ShareKey) -> bool:
        """Whether no process of the job has had to be moved for `COMPLETE_S`."""
        return time.monotonic() - self._moved_s.get(key, float("-inf")) > COMPLETE_S

    def _find_or_make(self, key: ShareKey, processes: Iterable[int]) -> Path:
        """The cgroup in which some process of the job is, or a new one beside them."""
        hierarchy = self._hierarchy()
        if hierarchy is None:
            raise FileNotFoundError("the hierarchy cpu of cgroup v1 is not mounted")
        found = list[Path]()
        for pid in processes:
            with contextlib.suppress(OSError):  # it has ended
                found.append(cgroup_of(pid, hierarchy, self._proc))
                if found[-1].name == own_name(key):
                    break
        if not found:
            raise ProcessLookupError("all its processes have ended meanwhile")
        own = found[-1] if found[-1].name == own_name(key) else found[0] / own_name(key)
        own.mkdir(mode=0o755, exist_ok=True)
        self.own[key] = own
        return own

    def _gather(self, key: ShareKey, own: Path) -> None:
        """Moves the job's processes until none is new (rule 4)."""
        try:
            self._gather_all(key, own)
        finally:
            self._expel(key, own)

    def _expel(self, key: ShareKey, own: Path) -> None:
        """Moves out processes that Slurm does not list as the job's; its list is read last."""
        inside = pids_in(own)
        for pid in set(inside) - set(self._with_slurms(key)):
            with contextlib.suppress(OSError):
                self._attach(pid, own.parent)

    def _gather_all(self, key: ShareKey, own: Path) -> None:
        until = time.monotonic() + MAX_MOVE_S
        for _ in range(PASSES):
            if not self._move(key, own, until):
                return
            self._moved_s[key] = time.monotonic()
        self._freeze(key)
        try:
            until = time.monotonic() + MAX_MOVE_S
            while self._move(key, own, until) and time.monotonic() < until:
                continue
        finally:
            self.thaw()

    def _move(self, key: ShareKey, own: Path, until: float) -> bool:
        """Moves processes that are outside; whether some were, and are inside now.

        Which are inside is read last: one that has just been born there is not moved. One that
        ends meanwhile seems to be outside, and the kernel leaves it there without an error.
        """
        listed, moved = set(self._with_slurms(key)), False
        for pid in listed - set(pids_in(own)):
            if time.monotonic() > until:
                return True
            if not is_slurms(pid, self._proc):
                with contextlib.suppress(OSError):  # it has ended, or is a real-time one
                    self._attach(pid, own)
                    moved = moved or self._is_in(pid, own)
        return moved

    def _is_in(self, pid: int, own: Path) -> bool:
        """Whether a process is in a cgroup, and has not ended."""
        hierarchy = self._hierarchy()
        return hierarchy is not None and cgroup_of(pid, hierarchy, self._proc) == own

    def _freezer(self, key: ShareKey) -> Path | None:
        folder = self._listed(key)
        state = folder / "freezer.state" if folder is not None else None
        return state if state is not None and state.exists() else None

    def _freeze(self, key: ShareKey) -> None:
        state = self._freezer(key)
        if state is None or state.read_text() != "THAWED\n":  # Slurm has suspended it
            return
        self.frozen.add(key)
        self._freezes()
        method.attach("FROZEN", state)

    def thaw(self) -> None:
        """Thaws all jobs that were frozen here, or by the process that died."""
        for key in list(self.frozen):
            state = self._freezer(key)
            if state is not None:
                with contextlib.suppress(FileNotFoundError):
                    method.attach("THAWED", state)
            self.frozen.discard(key)

    def restore(self, key: ShareKey) -> bool:
        """Gives the full share back; the cgroup stays until the job has ended (rule 3)."""
        slurms = self._slurms(key)
        if slurms is not None:
            _settle(slurms, Share(*key))
            self._settle_user(slurms.parent)
        own = self.own.get(key)
        if own is None:
            return True
        with contextlib.suppress(FileNotFoundError):  # removed at the end of the job
            _settle(own, Share(*key))
            if pids_in(own):
                return False
            own.rmdir()
        del self.own[key]
        self._moved_s.pop(key, None)
        return True

    @staticmethod
    def _settle_user(folder: Path) -> None:
        """Gives a user's cgroup the largest weight of its jobs (rule 5)."""
        if not folder.name.startswith("uid_") or not (folder / "cpu.shares").exists():
            return
        found = [int((job / "cpu.shares").read_text()) for job in folder.glob("job_*")]
        put(folder / "cpu.shares", str(max(found, default=_USUAL_SHARES)))


def _settle(folder: Path, share: Share) -> None:
    put(folder / "cpu.shares", str(shares_of(share.weight)))
    if share.milli_cpus:
        put(folder / "cpu.cfs_period_us", str(PERIOD_US))
        put(folder / "cpu.cfs_quota_us", str(quota_us(share.milli_cpus)))
    else:
        put(folder / "cpu.cfs_quota_us", NO_QUOTA)


def own_name(key: ShareKey) -> str:
    """The name of the cgroup that is made for a job."""
    node, job = key
    return f"schedbridge_{node}_job_{job}"
