// SPDX-License-Identifier: GPL-2.0-or-later
#include "rules/wall_limit.h"

static uint32_t stated(uint32_t minutes)
{
    return minutes == NO_VAL ? INFINITE : minutes;
}

static uint32_t wall_of(const slurmdb_qos_rec_t *qos)
{
    return qos ? stated(qos->max_wall_pj) : INFINITE;
}

// MaxWall of the partition's QOS, else of the job's, else of its association; a QOS with
// OverPartQOS takes precedence over the partition's.
static uint32_t accounting_minutes(const job_record_t *job, const part_record_t *part)
{
    assoc_mgr_lock_t locks = {.assoc = READ_LOCK, .qos = READ_LOCK};
    if (!(accounting_enforce & ACCOUNTING_ENFORCE_LIMITS) || job->limit_set.time == ADMIN_SET_LIMIT)
        return INFINITE;
    assoc_mgr_lock(&locks);
    const slurmdb_qos_rec_t *of_job = job->qos_ptr, *of_part = part->qos_ptr;
    bool over = of_job && (of_job->flags & QOS_FLAG_OVER_PART_QOS);
    uint32_t first = wall_of(over ? of_job : of_part), second = wall_of(over ? of_part : of_job);
    uint32_t minutes = first != INFINITE ? first : second;
    if (minutes == INFINITE && job->assoc_ptr)
        minutes = stated(job->assoc_ptr->max_wall_pj);
    assoc_mgr_unlock(&locks);
    return minutes;
}

uint32_t longest_minutes(const job_record_t *job, const part_record_t *part)
{
    return MIN(accounting_minutes(job, part), stated(part->max_time));
}

uint32_t longest_minutes_anywhere(const job_record_t *job)
{
    uint32_t minutes = INFINITE;
    if (!job->part_ptr_list)
        return job->part_ptr ? accounting_minutes(job, job->part_ptr) : INFINITE;
    list_itr_t *at = list_iterator_create(job->part_ptr_list);
    for (part_record_t *part; (part = list_next(at));)
        minutes = MIN(minutes, accounting_minutes(job, part));
    list_iterator_destroy(at);
    return minutes;
}
