# SPDX-License-Identifier: Apache-2.0
"""Jobs that are kept from where the controller refused to start them, and cannot start elsewhere.

A job is kept from a refused node if others could hold the job as far as its request says, and one
whose request the model lacks a part of is planned on more nodes than before
(`bridge.rpc.reported.refusals`).

Rules
    1. Limits and FreePools may leave a job no other nodes. The plan then says that it can never
       run, which is true of the others alone: it is tried again where it was refused.
    2. A job that cannot start now on more nodes than before is tried on fewer of these.
    3. Its reason names the nodes that the controller had, what it said, and what is tried next.
"""

from dataclasses import replace

import numpy as np

from bridge.dialect import dialect_of
from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.controller_choice import beyond_model
from bridge.rpc.reported.refusals import RefusedStart
from bridge.rpc.reported.session import Session


def tried_again(snapshot: Snapshot, plan: Plan, session: Session) -> Plan:
    """Has such jobs tried again; returns the plan in which their reasons say so."""
    ids, beyond = snapshot.jobs.id, beyond_model(snapshot)
    kept = np.array([job_id in session.avoiding for job_id in ids.tolist()], dtype=bool)
    kept[plan.job[plan.starts_now]] = False
    reasons, refused = list(plan.reasons), dict[str, RefusedStart]()
    for row in np.flatnonzero(kept[plan.job]).tolist():
        job_id, reason = ids[plan.job[row]], plan.reasons[row]
        if reason is None or not (beyond[plan.job[row]] or not reason.can_ever_run):
            continue
        if job_id not in refused:
            refused[job_id] = _tried_again(job_id, reason, session)
        text = _text(snapshot, refused[job_id], reason)
        reasons[row] = Reason(ReasonCode.REFUSED, text)
    return replace(plan, reasons=tuple(reasons))


def _tried_again(job_id: str, reason: Reason, session: Session) -> RefusedStart:
    """The refusal of a job that cannot start elsewhere now, of which the next trial is decided."""
    refusal = session.refusal_of(job_id)
    if refusal.min_nodes:
        is_allowed = reason.can_ever_run and reason.code is not ReasonCode.LIMIT
        session.try_fewer(job_id, is_allowed=is_allowed)
    elif not reason.can_ever_run:
        session.retry_there(job_id)
    return refusal


def _text(snapshot: Snapshot, refusal: RefusedStart, reason: Reason) -> str:
    if refusal.min_nodes:
        nodes = dialect_of(snapshot).words.nodes(refusal.min_nodes)
        return f"{refusal.sentence}; on {nodes}: {reason.text}"
    where = ", ".join(sorted(refusal.avoid) or sorted(refusal.partitions))
    again = "is tried there again" if not reason.can_ever_run else "is tried there again later"
    return f"could not be started on {where} ({refusal.text}) and {again}; elsewhere: {reason.text}"
