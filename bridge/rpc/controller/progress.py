# SPDX-License-Identifier: Apache-2.0
"""Sentences on running jobs for `squeue` and `scontrol`.

Rules
    1. A sentence is sent when it changes. It is lost if the job's version has changed meanwhile.
    2. After `reset` no sentence is known to the controller.
"""

from collections.abc import Callable, Mapping

from bridge.model.job import rows_by_id
from bridge.model.snapshot import Snapshot
from bridge.rpc.pb import scheduler_pb2 as pb


class ProgressMessages:
    """What one controller has been told about running jobs."""

    def __init__(self, take_id: Callable[[], int]) -> None:
        """Starts without sentences; `take_id` gives the number of the next decision."""
        self._take_id = take_id
        self._known: Mapping[str, str] = {}

    def reset(self) -> None:
        """Handles a restart of the controller."""
        self._known = {}

    def decide(self, snapshot: Snapshot, now: Mapping[str, str]) -> list[pb.Decision]:
        """The sentences that have changed.

        Args:
            now: the sentence on each running job that has one, by job id.
        """
        if not now and not self._known:
            return []
        found, rows = [], rows_by_id(snapshot.running)
        for job_id in now.keys() | self._known.keys():
            text, row = now.get(job_id, ""), rows.get(job_id)
            if row is not None and text != self._known.get(job_id, ""):
                version = int(snapshot.running.version[row])
                message = pb.Decision(id=self._take_id(), job_id=job_id, job_version=version)
                message.progress.text = text
                found.append(message)
        self._known = now
        return found
