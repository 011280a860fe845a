// SPDX-License-Identifier: GPL-2.0-or-later
#include "rules/qos_choice.h"

unsigned qos_choices(const job_record_t *job)
{
    list_t *named = compat_qos_list(job);
    return named && list_count(named) ? (unsigned)list_count(named) : 1;
}

void qos_choose(job_record_t *job, unsigned which)
{
    list_t *named = compat_qos_list(job);
    if (!named || !list_count(named))
        return;
    list_itr_t *at = list_iterator_create(named);
    slurmdb_qos_rec_t *found = list_next(at);
    for (unsigned i = 0; i < which && found; i++)
        found = list_next(at);
    list_iterator_destroy(at);
    if (found)
        job->qos_ptr = found;
}
