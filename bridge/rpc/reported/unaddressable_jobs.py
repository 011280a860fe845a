# SPDX-License-Identifier: Apache-2.0
"""Jobs that hold nodes, and whose ids are impossible: they count, but nobody can name them.

Rules
    1. Such a job counts under a key that is no id (`is_id`): to nodes, limits, licences and power.
    2. Nothing is decided for it: it keeps its width, shares no node, and gives none back early.
    3. Each of several jobs of one impossible id counts. One that is removed by that id is gone only
       if no other job has it; otherwise the next full report tells which are left.
"""

from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.safe_text import printable

_MAX_SHOWN = 100
"""Characters of the id in the key, which is shown where the job is in the way of others."""


class UnaddressableJobs:
    """The keys of these jobs, since the last full report."""

    def __init__(self) -> None:
        self._keys: dict[str, list[str]] = {}
        self._count = 0

    def counted(self, job: pb.Job, occurrence: int) -> pb.Job:
        """What counts of a job.

        Args:
            job: running or completing.
            occurrence: how many jobs of the same id come before it in the report.
        """
        keys = self._keys.setdefault(job.id, [])
        if occurrence >= len(keys):
            self._count += 1
            keys.append(f"{printable(job.id)[:_MAX_SHOWN] or '?'} ({self._count})")
        kept = pb.Job(
            id=keys[min(occurrence, len(keys) - 1)], version=job.version, state=job.state,
            name=job.name, user=job.user, account=job.account, allocation=job.allocation,
            coschedule=pb.COSCHEDULE_NEVER,
        )  # fmt: skip
        for name in ("number", "head", "adapting"):
            kept.allocation.ClearField(name)
        for use in kept.allocation.uses:
            use.until_s = 0
        return kept

    def is_shared(self, job_id: str) -> bool:
        """Whether several jobs have an impossible id."""
        return len(self._keys.get(job_id, ())) > 1

    def forget(self, job_id: str) -> str | None:
        """The key of a job that is removed or waits again; None: none, or one of several (3)."""
        return None if self.is_shared(job_id) else next(iter(self._keys.pop(job_id, ())), None)
