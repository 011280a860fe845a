// SPDX-License-Identifier: GPL-2.0-or-later
#include "decisions/apply.h"

#include <stdlib.h>

#include "common/records.h"
#include "common/throttle.h"
#include "decisions/actions.h"
#include "report/jobs.h"

#define STALE(text) verdict_of(PB(OUTCOME__OUTCOME_STALE), 0, "%s", text)

// If the job is gone, changed or in another state, the result is STALE: the next report shows it.
static verdict_t apply_one(const pb_decision_t *decision, sent_state_t *sent_state)
{
    const action_t *action = action_of(decision);
    if (!action)
        return INVALID("this plugin does not know that action");
    if (action->of == NO_JOB)
        return action->carry_out(NULL, NULL, decision);
    job_record_t *job = job_by_wire_id(decision->job_id);
    if (!job || !job->details)
        return STALE("the job is gone");
    sent_job_t *entry = sent_state_find(sent_state, compat_job_id(job));
    if (!entry)
        return STALE("the job was not reported");
    // An array's last unstarted task has the array's number: the old name refers to it until its
    // new name has been reported.
    bool by_task = strchr(decision->job_id, '_') != NULL;
    if (entry->array_job_id && by_task != (entry->array_task_id != NO_VAL))
        return STALE("the job is gone");
    Schedbridge__V1__JobState state = job_wire_state(job);
    if (action->of == PENDING_JOB && state != PB(JOB_STATE__JOB_STATE_PENDING))
        return STALE("the job is no longer pending");
    if (action->of == RUNNING_JOB && state != PB(JOB_STATE__JOB_STATE_RUNNING))
        return STALE("the job is not running");
    if (decision->job_version != job_version(job))
        return STALE("the job has changed");
    return action->carry_out(job, entry, decision);
}

static void count(applied_t *applied, const pb_decision_t *decision, const verdict_t *verdict)
{
    if (!is_applied(verdict)) {
        char job[65], text[sizeof(verdict->text)];
        applied->refused++;
        debug("bridge: decision %" PRIu64 " for job %s not carried out: %s", decision->id,
              plain(job, sizeof(job), decision->job_id), plain(text, sizeof(text), verdict->text));
    } else if (decision->action_case == PB(DECISION__ACTION_START)) {
        applied->starts++;
    } else if (decision->action_case == PB(DECISION__ACTION_RESIZE)) {
        applied->resizes++;
    } else {
        applied->announcements++;
    }
}

// ---------------------------------------------------------------- numbers of decisions

static int by_number(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
    return first < second ? -1 : first > second;
}

// The numbers of a reply's decisions, ascending; to be freed.
static uint64_t *numbers_of(const pb_cycle_reply_t *reply)
{
    uint64_t *numbers = calloc(reply->n_decisions, sizeof(*numbers));
    if (!numbers)
        abort();
    for (size_t i = 0; i < reply->n_decisions; i++)
        numbers[i] = reply->decisions[i]->id;
    qsort(numbers, reply->n_decisions, sizeof(*numbers), by_number);
    return numbers;
}

// True for a number that was used before, or occurs twice in this reply: it identifies nothing.
static bool is_used(const uint64_t *numbers, size_t count, uint64_t number, uint64_t decided)
{
    if (number <= decided)
        return true;
    const uint64_t *at = bsearch(&number, numbers, count, sizeof(*numbers), by_number);
    return (at > numbers && at[-1] == number) || (at < numbers + count - 1 && at[1] == number);
}

bool apply_reply(const pb_cycle_reply_t *reply, sent_state_t *sent_state, lock_scope_t *locks,
                 decision_results_t *results, uint64_t *decided, applied_t *applied)
{
    bool interrupted;
    const uint64_t before = *decided;
    *applied = (applied_t){0};
    if (!reply->n_decisions)
        return true;
    uint64_t *numbers = numbers_of(reply);
    *decided = MAX(before, numbers[reply->n_decisions - 1]);
    bool good = lock_scope_take(locks, LOCK_SCOPE_APPLY);
    for (size_t i = 0; good && i < reply->n_decisions; i++) {
        good = lock_scope_breathe(locks, &interrupted);
        if (!good)
            break;
        const pb_decision_t *decision = reply->decisions[i];
        bool used = is_used(numbers, reply->n_decisions, decision->id, before);
        applied->repeated += used;
        verdict_t verdict =
            used ? STALE("this decision number was used before") : apply_one(decision, sent_state);
        count(applied, decision, &verdict);
        decision_results_add(results, decision, verdict.outcome, verdict.code, verdict.text);
    }
    free(numbers);
    if (!good)
        return false;
    lock_scope_give(locks);
    if (applied->starts || applied->resizes) {
        schedule_node_save(); // have locks of their own
        schedule_job_save();
    }
    // Slurm saves its state some seconds later. Steps start on added nodes as soon as their growth
    // is reported: if slurmctld was killed before it was saved, it would end them.
    if (applied->resizes)
        dump_all_job_state();
    return true;
}
