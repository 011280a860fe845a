// SPDX-License-Identifier: GPL-2.0-or-later
#include "sharing/requeue.h"

#include "resize/progress.h"
#include "sharing/coscheduling.h"

verdict_t sharing_requeue(job_record_t *job, const pb_requeue_t *wanted)
{
    const job_record_t *host = coscheduling_host(job);
    if (!host)
        return REFUSED(ESLURM_DISABLED, "the job is no longer a guest");
    if (!job->batch_flag)
        return REFUSED(ESLURM_DISABLED, "the job may not be requeued");
    job->details->requeue = 1; // as when it became a guest; its user cannot withdraw that
    uint32_t number = compat_job_id(host);
    int code = compat_requeue(job);
    if (code != SLURM_SUCCESS)
        return REFUSED(code, "%s", slurm_strerror(code));
    show_text(job, wanted->reason);
    last_job_update = time(NULL);
    info("bridge: requeue %pJ, the guest of JobId=%u", job, number);
    return APPLIED;
}
