// SPDX-License-Identifier: GPL-2.0-or-later
#include "rules/moldable.h"

#include "common/records.h"
#include "rules/unmodelled.h"
#include "rules/wall_limit.h"

bool job_is_moldable(const job_record_t *job)
{
    const job_details_t *details = job->details;
    malleable_t malleable;
    char problem[8];
    // Only in a batch job do the environment variables about tasks follow from the nodes.
    return IS_JOB_PENDING(job) && job->batch_flag && job->spank_job_env_size && !job->het_job_id &&
           (details->whole_node & WHOLE_NODE_REQUIRED) && !compat_tasks_are_stated(job) &&
           job_malleable(job, &malleable, problem, sizeof(problem)) && malleable.max_nodes &&
           !malleable.no_resize && !details->req_nodes && !job->gres_list_req &&
           !job_option(job, "chunks") && !job_is_unmodelled(job);
}

molded_t molded_of(const job_details_t *details)
{
    return (molded_t){.num_tasks = details->num_tasks,
                      .min_cpus = details->min_cpus,
                      .orig_min_cpus = details->orig_min_cpus};
}

void molded_restore(job_details_t *details, const molded_t *molded)
{
    details->num_tasks = molded->num_tasks;
    details->min_cpus = molded->min_cpus;
    details->orig_min_cpus = molded->orig_min_cpus;
}

static uint32_t scaled(uint32_t amount, uint32_t nodes, uint32_t asked)
{
    if (!amount || amount == NO_VAL)
        return amount;
    uint64_t found = ((uint64_t)amount * nodes + asked - 1) / asked;
    return (uint32_t)MIN(found, NO_VAL - 1);
}

void molded_fit(const job_record_t *job, uint32_t nodes)
{
    job_details_t *details = job->details;
    uint32_t asked = MAX(1, details->min_nodes);
    if (!nodes || nodes == asked || !job_is_moldable(job))
        return;
    // Slurm refuses a number of nodes that is too small for these, though it derived them from -N
    // itself.
    details->num_tasks = scaled(details->num_tasks, nodes, asked);
    details->min_cpus = scaled(details->min_cpus, nodes, asked);
    details->orig_min_cpus = scaled(details->orig_min_cpus, nodes, asked);
}

uint32_t asked_minutes(const job_record_t *job, const part_record_t *part)
{
    uint32_t minutes = job->time_limit;
    if (minutes == NO_VAL)
        minutes = part->default_time != NO_VAL ? part->default_time : part->max_time;
    return minutes == NO_VAL ? INFINITE : minutes;
}

uint32_t molded_minutes(const job_record_t *job, const part_record_t *part, uint32_t nodes)
{
    uint32_t asked = MAX(1, job->details->min_nodes), minutes = asked_minutes(job, part);
    if (!nodes || nodes >= asked || minutes == INFINITE || !job_is_moldable(job))
        return 0;
    uint64_t maximum = ((uint64_t)minutes * asked + nodes - 1) / nodes;
    maximum = MIN(maximum, longest_minutes(job, part));
    return (uint32_t)MIN(maximum, INFINITE - 1);
}

uint32_t molded_min_nodes(const job_record_t *job)
{
    uint32_t longest = longest_minutes_anywhere(job), asked = MAX(1, job->details->min_nodes);
    // The partition may have been deleted.
    uint32_t minutes = job->part_ptr ? asked_minutes(job, job->part_ptr) : job->time_limit;
    if (minutes == NO_VAL || longest == INFINITE || minutes == INFINITE)
        return 1;
    if (minutes >= longest)
        return asked;
    return (uint32_t)(((uint64_t)minutes * asked + longest - 1) / longest);
}
