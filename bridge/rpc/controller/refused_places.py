# SPDX-License-Identifier: Apache-2.0
"""Jobs that can run nowhere else than where the controller refused to start them.

A job is kept from a refused node if others could hold it as far as its request says
(`bridge.rpc.reported.refusals`). Limits and FreePools may leave it none of those. The plan then
says that it can never run, which is true of the others alone.
"""

from dataclasses import replace

import numpy as np

from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.snapshot import Snapshot
from bridge.rpc.reported.refusals import RefusedStart
from bridge.rpc.reported.session import Session
from bridge.units import NEVER


def tried_again(snapshot: Snapshot, plan: Plan, session: Session) -> Plan:
    """Has such jobs tried there again; returns the plan in which their reason says so."""
    reasons, refused = list(plan.reasons), dict[str, RefusedStart]()
    for row in np.flatnonzero(plan.start_s == NEVER).tolist():
        job_id, reason = snapshot.jobs.id[plan.job[row]], plan.reasons[row]
        if job_id not in session.avoiding or reason is None or reason.can_ever_run:
            continue
        if job_id not in refused:
            refused[job_id] = session.retry_there(job_id)
        where = ", ".join(sorted(refused[job_id].avoid) or sorted(refused[job_id].partitions))
        reasons[row] = Reason(
            ReasonCode.REFUSED,
            f"could not be started on {where} ({refused[job_id].text}) and is tried there again; "
            f"elsewhere: {reason.text}",
        )
    return replace(plan, reasons=tuple(reasons))
