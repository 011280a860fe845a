// SPDX-License-Identifier: GPL-2.0-or-later
#include "sharing/extend.h"

#include <inttypes.h>

#include "common/records.h"
#include "resize/expand.h"
#include "rules/raised_limit.h"
#include "sharing/hosting.h"

// Slurm ends a job up to half a minute after its limit, never before.
#define ABOUT_TO_END_S 60
#define MAX_AT_ONCE 256 // in fallback, each second

// The first reservation of some of the job's nodes that is not over and begins before `end`; NULL:
// none. One that floats begins always later, as in the report of nodes.
static const slurmctld_resv_t *reserved_before(const job_record_t *job, time_t now, time_t end)
{
    const slurmctld_resv_t *found = NULL;
    list_itr_t *at = list_iterator_create(resv_list);
    for (slurmctld_resv_t *resv; (resv = list_next(at));) {
        if (resv->end_time > now && resv->start_time < end &&
            !(resv->flags & RESERVE_FLAG_TIME_FLOAT) && resv->node_bitmap && job->node_bitmap &&
            (!found || resv->start_time < found->start_time) &&
            nodes_overlap(job->node_bitmap, resv->node_bitmap))
            found = resv;
    }
    list_iterator_destroy(at);
    return found;
}

// As `scontrol update TimeLimit` by an administrator: Slurm tells the steps, and counts the minutes
// in the limits of QOS and associations.
static verdict_t lengthen(job_record_t *job, uint32_t minutes)
{
    job_desc_msg_t asked;
    uint32_t before = job->time_limit;
    uint16_t set_by = job->limit_set.time;
    slurm_init_job_desc_msg(&asked);
    asked.time_limit = before + minutes;
    verdict_t verdict = job_update(job, job, &asked, job->node_bitmap);
    // Slurm marks a limit set by an administrator and would never apply MaxWall to it again.
    job->limit_set.time = set_by;
    if (!is_applied(&verdict))
        return verdict;
    if (job->time_limit != before + minutes)
        return REFUSED(SLURM_ERROR, "Slurm reports success, but the time limit is %u minutes",
                       job->time_limit);
    raised_limit_note(job, before);
    hosting_added(job, minutes);
    last_job_update = time(NULL);
    return APPLIED;
}

static verdict_t extend(job_record_t *job, int64_t total_s)
{
    hosting_t hosting;
    time_t now = time(NULL);
    int64_t shared_s = hosting_of(job, &hosting) ? hosting_seconds(&hosting, job, now) : 0;
    if (!shared_s)
        return INVALID("the job has had no guest since its start");
    if (!hosting_may_extend(job))
        return REFUSED(ESLURM_INVALID_TIME_LIMIT, "the job has no time limit, or a reservation");
    int64_t minutes = (MIN(total_s, shared_s) + 59) / 60 - (int64_t)hosting.added;
    if (minutes <= 0)
        return APPLIED;
    if (minutes >= (int64_t)INFINITE - job->time_limit)
        return INVALID("the time limit would be no number of minutes");
    const slurmctld_resv_t *resv = reserved_before(job, now, job->end_time + 60 * minutes);
    if (resv)
        minutes = ((int64_t)resv->start_time - (int64_t)job->end_time) / 60;
    if (minutes <= 0)
        return REFUSED(ESLURM_RESERVATION_BUSY, "reservation %.40s begins before", resv->name);
    verdict_t verdict = lengthen(job, (uint32_t)minutes);
    if (is_applied(&verdict))
        info("bridge: %pJ has had guests for %" PRId64 " s: its time limit is %" PRId64
             " minutes longer, %u minutes",
             job, shared_s, minutes, job->time_limit);
    return verdict;
}

verdict_t extend_host(job_record_t *job, const pb_extend_t *wanted)
{
    if (wanted->total_s <= 0)
        return INVALID("an extension of %" PRId64 " s is none", wanted->total_s);
    return extend(job, wanted->total_s);
}

typedef struct {
    time_t now;
    job_record_t *jobs[MAX_AT_ONCE];
    size_t count;
} due_t;

static int collect_due(void *record, void *context)
{
    job_record_t *job = record;
    due_t *due = context;
    hosting_t hosting;
    if (job->details && job->end_time <= due->now + ABOUT_TO_END_S && hosting_may_extend(job) &&
        hosting_of(job, &hosting) &&
        hosting_seconds(&hosting, job, due->now) > 60 * (int64_t)hosting.added)
        due->jobs[due->count++] = job;
    return due->count < MAX_AT_ONCE ? 0 : -1; // a negative number ends the search
}

void extend_hosts_in_fallback(time_t now)
{
    due_t due = {.now = now};
    (void)list_for_each_ro(job_list, collect_due, &due);
    for (size_t i = 0; i < due.count; i++) // not within the search: an update visits jobs, too
        (void)extend(due.jobs[i], INT64_MAX);
}
