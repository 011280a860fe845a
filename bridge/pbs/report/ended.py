# SPDX-License-Identifier: Apache-2.0
"""The run of a job that has ended, for predictions.

Rules
    1. A job that did not run, or whose start is unknown, is left out; so is one that was requeued.
    2. Exit_status 0 is success; 271 and 265 (signals 15 and 9) after the time limit a time-out,
       before it a cancellation; below 0 the system ended it; anything else is an error.
    3. Without Exit_status it ended as completed.
"""

from bridge.errors import BadRequest
from bridge.pbs.objects import values
from bridge.pbs.objects.jobs import owner_of
from bridge.pbs.tables import Attributes, amounts, text
from bridge.rpc.pb import scheduler_pb2 as pb

_KILLED = frozenset((271, 265, 256 + 9, 128 + 9, 128 + 15))


def ended(job_id: str, attributes: Attributes, end_s: int) -> pb.EndedJob | None:
    """Returns the run of a job.

    Args:
        job_id: its id.
        attributes: the last known ones.
        end_s: when it ended, or was first missed.
    """
    start_s = values.instant(text(attributes, "stime"))
    if not 0 < start_s < end_s or text(attributes, "job_state") in ("Q", "H", "W"):
        return None
    try:
        limit_s = values.duration_s(amounts(attributes, "Resource_List").get("walltime", "0"))
    except BadRequest:
        limit_s = 0
    return pb.EndedJob(
        id=job_id,
        name=text(attributes, "Job_Name")[:160],
        user=owner_of(attributes).user[:160],
        start_s=start_s,
        end_s=end_s,
        time_limit_s=limit_s,
        ending=_ending(text(attributes, "Exit_status"), end_s - start_s, limit_s),
    )


def _ending(status: str, ran_s: int, limit_s: int) -> "pb.Ending":
    try:
        code = values.whole(status) if status else 0
    except BadRequest:
        code = 0
    if code in _KILLED:
        return pb.ENDING_TIMEOUT if limit_s and ran_s >= limit_s else pb.ENDING_CANCELLED
    if code < 0:
        return pb.ENDING_LOST
    return pb.ENDING_FAILED if code else pb.ENDING_COMPLETED
