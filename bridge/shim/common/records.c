// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/records.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/names.h"

job_record_t *job_by_wire_id(const char *id)
{
    char *end;
    if (!isdigit((unsigned char)id[0]))
        return NULL;
    unsigned long job = strtoul(id, &end, 10);
    if (job >= NO_VAL)
        return NULL;
    if (!*end)
        return find_job_record((uint32_t)job);
    if (*end != '_' || !isdigit((unsigned char)end[1]))
        return NULL;
    unsigned long task = strtoul(end + 1, &end, 10);
    if (*end || task >= NO_VAL)
        return NULL;
    job_record_t *found = find_job_array_rec((uint32_t)job, (uint32_t)task);
    // For a task that has no record yet, Slurm returns the array's record.
    return found && found->array_task_id == task ? found : NULL;
}

char *job_wire_id(arena_t *arena, uint32_t job_id, uint32_t array_job_id, uint32_t array_task_id)
{
    if (array_job_id && array_task_id != NO_VAL)
        return arena_format(arena, "%u_%u", array_job_id, array_task_id);
    return arena_format(arena, "%u", job_id);
}

bool job_is_array_head(const job_record_t *job)
{
    return job->array_recs && job->array_recs->task_id_bitmap && job->array_task_id == NO_VAL;
}

bool job_malleable(const job_record_t *job, malleable_t *malleable, char *problem, size_t bytes)
{
    memset(malleable, 0, sizeof(*malleable));
    bool some = false;
    for (uint32_t i = 0; i < job->spank_job_env_size; i++) {
        bool ours;
        if (!job->spank_job_env || !job->spank_job_env[i])
            continue;
        if (!malleable_take_entry(malleable, job->spank_job_env[i], &ours, problem, bytes))
            return false;
        some |= ours;
    }
    return !some || malleable_settle(malleable, problem, bytes);
}

const char *job_option(const job_record_t *job, const char *option)
{
    const char *value = NULL;
    for (uint32_t i = 0; i < job->spank_job_env_size && !value; i++) {
        if (job->spank_job_env && job->spank_job_env[i])
            value = malleable_entry_value(job->spank_job_env[i], option);
    }
    return value;
}

bool nodes_named(const char *names, bitstr_t **nodes)
{
    *nodes = NULL;
    if (!names_count(names, (size_t)MAX(node_record_count, 0)))
        return false;
    char *copy = xstrdup(names); // Slurm's parser does not accept const
    bool known = compat_nodes(copy, nodes) && bit_ffs(*nodes) >= 0;
    xfree(copy);
    if (!known)
        FREE_NULL_BITMAP(*nodes);
    return known;
}

bool nodes_overlap(bitstr_t *a, bitstr_t *b)
{
    for (bitoff_t at = 0; (at = compat_next_bit(a, at)) >= 0; at++) {
        if (bit_test(b, at))
            return true;
    }
    return false;
}
