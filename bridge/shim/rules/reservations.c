// SPDX-License-Identifier: GPL-2.0-or-later
#include "rules/reservations.h"

static bool names_several(const job_record_t *job)
{
    return job->resv_list && list_count(job->resv_list) > 1;
}

static bool is_magnetic_now(const slurmctld_resv_t *resv, time_t now)
{
    return (resv->flags & RESERVE_FLAG_MAGNETIC) && resv->start_time <= now && now < resv->end_time;
}

// Whether there is any magnetic reservation; needed for every job, checked once a second.
static bool any_is_magnetic(time_t now)
{
    static time_t looked, updated;
    static bool found;
    if (looked == now && updated == last_resv_update)
        return found;
    looked = now;
    updated = last_resv_update;
    found = false;
    list_itr_t *at = list_iterator_create(resv_list);
    for (slurmctld_resv_t *resv; !found && (resv = list_next(at));)
        found = is_magnetic_now(resv, now);
    list_iterator_destroy(at);
    return found;
}

// Slurm's own check walks the tree of associations, so it is made only at the start.
static bool may_draw(const slurmctld_resv_t *resv, const job_record_t *job)
{
    if (!resv->user_cnt || resv->account_cnt || (resv->ctld_flags & RESV_CTLD_USER_NOT) ||
        job->user_id == 0 || job->user_id == slurm_conf.slurm_user_id)
        return true;
    for (int i = 0; i < resv->user_cnt; i++) {
        if (resv->user_list[i] == job->user_id)
            return true;
    }
    return false;
}

bool reservations_are_open(const job_record_t *job)
{
    time_t now = time(NULL);
    bool found = false;
    if (job->resv_name || job->resv_list)
        return names_several(job);
    if (job->het_job_id || !any_is_magnetic(now))
        return false;
    list_itr_t *at = list_iterator_create(resv_list);
    for (slurmctld_resv_t *resv; !found && (resv = list_next(at));)
        found = is_magnetic_now(resv, now) && may_draw(resv, job);
    list_iterator_destroy(at);
    return found;
}

void reservations_leave(job_record_t *job)
{
    job_resv_clear_magnetic_flag(job);
}

static int select_in(job_record_t *job, slurmctld_resv_t *resv, bool magnetic)
{
    slurmctld_resv_t *present = job->resv_ptr;
    uint32_t id = job->resv_id;
    job->resv_ptr = resv;
    job->resv_id = resv->resv_id;
    if (magnetic) {
        job->resv_name = xstrdup(resv->name);
        job->bit_flags |= JOB_MAGNETIC;
    }
    int code = compat_select_nodes(job);
    if (code == SLURM_SUCCESS)
        return code;
    if (magnetic)
        reservations_leave(job);
    job->resv_ptr = present;
    job->resv_id = id;
    return code;
}

// Those open to the job, as Slurm puts them into its scheduler's queue.
static list_t *magnetic_ones(job_record_t *job)
{
    list_t *queue = list_create(NULL);
    job_queue_req_t asked = {
        .job_ptr = job, .job_queue = queue, .part_ptr = job->part_ptr, .prio = job->priority};
    job_resv_append_magnetic(&asked);
    return queue;
}

int reservations_select(job_record_t *job)
{
    int code = ESLURM_RESERVATION_NOT_USABLE;
    if (names_several(job)) {
        list_itr_t *at = list_iterator_create(job->resv_list);
        for (slurmctld_resv_t *resv; code != SLURM_SUCCESS && (resv = list_next(at));)
            code = select_in(job, resv, false);
        list_iterator_destroy(at);
        return code;
    }
    if (reservations_are_open(job)) {
        list_t *queue = magnetic_ones(job);
        for (job_queue_rec_t *entry; (entry = list_pop(queue));) {
            if (code != SLURM_SUCCESS && entry->resv_ptr)
                code = select_in(job, entry->resv_ptr, true);
            xfree(entry);
        }
        FREE_NULL_LIST(queue);
        if (code == SLURM_SUCCESS)
            return code;
    }
    return compat_select_nodes(job);
}
