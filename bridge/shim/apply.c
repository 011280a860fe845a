// SPDX-License-Identifier: GPL-2.0-or-later
#include "apply.h"

#include "announce.h"
#include "jobs.h"
#include "reserve.h"
#include "start.h"

static verdict_t verdict(pb_outcome_t outcome, const char *text)
{
    verdict_t said = {.outcome = outcome};
    snprintf(said.text, sizeof(said.text), "%s", text);
    return said;
}

static verdict_t apply_one(const pb_decision_t *decision, ledger_t *ledger)
{
    if (decision->action_case == PB(DECISION__ACTION_RESERVE))
        return reserve(decision->reserve);
    if (decision->action_case == PB(DECISION__ACTION_UNRESERVE))
        return unreserve(decision->unreserve);
    job_record_t *job = job_by_wire_id(decision->job_id);
    if (!job || !job->details)
        return verdict(PB(OUTCOME__OUTCOME_STALE), "the job is gone");
    ledger_job_t *entry = ledger_find(ledger, compat_job_id(job));
    if (!entry)
        return verdict(PB(OUTCOME__OUTCOME_STALE), "the job was not reported");
    // An array's last unstarted task has the array's number: until the service is told its new
    // name, the old one means it; afterwards no more.
    bool by_task = strchr(decision->job_id, '_') != NULL;
    if (entry->array_job_id && by_task != (entry->array_task_id != NO_VAL))
        return verdict(PB(OUTCOME__OUTCOME_STALE), "the job is gone");
    bool pending = job_wire_state(job) == PB(JOB_STATE__JOB_STATE_PENDING);
    switch (decision->action_case) {
    case PB(DECISION__ACTION_START):
    case PB(DECISION__ACTION_PLANNED_START):
    case PB(DECISION__ACTION_PENDING):
        break;
    case PB(DECISION__ACTION_RESIZE):
    case PB(DECISION__ACTION_QUOTA):
        return verdict(PB(OUTCOME__OUTCOME_INVALID), "this plugin said it cannot do that");
    default:
        return verdict(PB(OUTCOME__OUTCOME_INVALID), "unknown action");
    }
    if (!pending)
        return verdict(PB(OUTCOME__OUTCOME_STALE), "the job is no longer pending");
    if (decision->job_version != job_version(job))
        return verdict(PB(OUTCOME__OUTCOME_STALE), "the job has changed");
    if (decision->action_case == PB(DECISION__ACTION_START))
        return start_job(job, decision->start);
    if (decision->action_case == PB(DECISION__ACTION_PLANNED_START))
        return announce_start(job, entry, decision->planned_start);
    return announce_pending(job, entry, decision->pending);
}

static void count(applied_t *applied, const pb_decision_t *decision, const verdict_t *said)
{
    if (said->outcome != PB(OUTCOME__OUTCOME_APPLIED)) {
        applied->refused++;
        debug("bridge: decision %" PRIu64 " for job %.64s not carried out: %s", decision->id,
              decision->job_id, said->text);
    } else if (decision->action_case == PB(DECISION__ACTION_START)) {
        applied->starts++;
    } else {
        applied->announcements++;
    }
}

bool apply_reply(const pb_cycle_reply_t *reply, ledger_t *ledger, held_t *held, fates_t *fates,
                 applied_t *applied)
{
    bool interrupted;
    *applied = (applied_t){0};
    if (!reply->n_decisions)
        return true;
    if (!held_take(held, HELD_APPLY))
        return false;
    for (size_t i = 0; i < reply->n_decisions; i++) {
        if (!held_breathe(held, &interrupted))
            return false;
        const pb_decision_t *decision = reply->decisions[i];
        verdict_t said = apply_one(decision, ledger);
        count(applied, decision, &said);
        fates_add(fates, decision, said.outcome, said.code, said.text);
    }
    held_give(held);
    if (applied->starts) {
        schedule_node_save(); // have locks of their own
        schedule_job_save();
    }
    return true;
}
