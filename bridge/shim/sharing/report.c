// SPDX-License-Identifier: GPL-2.0-or-later
#include "sharing/report.h"

#include "common/records.h"
#include "sharing/coscheduling.h"
#include "sharing/hosting.h"

void sharing_hash(bridge_hash_t *hash, const job_record_t *job, bool started)
{
    hash_number(hash, (uint64_t)coscheduling_told(job) << 1 | (job->details->requeue != 0));
    if (!started)
        return;
    const job_record_t *host = coscheduling_host(job);
    hash_number(hash, host ? compat_job_id(host) : 0);
    hosting_t hosting;
    if (!hosting_of(job, &hosting))
        return;
    hash_number(hash, (uint64_t)hosting.past_s);
    hash_number(hash, (uint64_t)hosting.since_s);
    hash_number(hash, (uint64_t)hosting.added << 1 | hosting_may_extend(job));
}

void sharing_report(arena_t *arena, pb_job_t *message, const job_record_t *job)
{
    const job_record_t *host = coscheduling_host(job);
    message->coschedule = (Schedbridge__V1__Coschedule)coscheduling_told(job);
    message->max_slowdown_permille = coscheduling_slowdown(job);
    // A guest stays one that may be requeued, whatever its user changes while it runs.
    message->requeue = job->batch_flag && (job->details->requeue || host);
    if (host)
        message->host_job_id =
            job_wire_id(arena, compat_job_id(host), host->array_job_id, host->array_task_id);
    hosting_t hosting;
    if (!hosting_of(job, &hosting))
        return;
    message->hosted_s = hosting.past_s;
    message->hosted_since_s = hosting.since_s;
    message->extended_s = 60 * (int64_t)hosting.added;
    message->extendable = hosting_may_extend(job);
}
