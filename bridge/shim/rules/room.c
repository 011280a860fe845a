// SPDX-License-Identifier: GPL-2.0-or-later
#include "rules/room.h"

#include "common/records.h"

// As Slurm decides it: see _resolve_shared_status().
static bool takes_whole_nodes(const job_record_t *job, const part_record_t *part)
{
    return (job->details->whole_node & WHOLE_NODE_REQUIRED) || !job->details->share_res ||
           !part->max_share;
}

// One that is suspended by hand has given its cores to others.
static bool holds_cpus(const job_record_t *job)
{
    return (IS_JOB_RUNNING(job) || (IS_JOB_SUSPENDED(job) && job->priority)) && job->job_resrcs &&
           job->job_resrcs->node_bitmap && job->job_resrcs->cpus;
}

static int take_held(void *record, void *context)
{
    const job_record_t *job = record;
    uint32_t *free_cpus = context, which = 0;
    if (!holds_cpus(job))
        return 0;
    const struct job_resources *held = job->job_resrcs;
    for (bitoff_t at = 0;
         which < held->nhosts && (at = compat_next_bit(held->node_bitmap, at)) >= 0; at++, which++)
        free_cpus[at] -= MIN(free_cpus[at], held->cpus[which]);
    return 0;
}

static bool have_cpus(const job_record_t *job, bitstr_t *nodes)
{
    const job_details_t *details = job->details;
    uint32_t on_each = details->pn_min_cpus == NO_VAL ? 1 : MAX(1, details->pn_min_cpus);
    uint64_t wanted = details->min_cpus == NO_VAL ? 0 : details->min_cpus, found = 0;
    uint32_t *free_cpus = xcalloc((size_t)bit_size(nodes), sizeof(*free_cpus));
    bool enough = true;
    for (bitoff_t at = 0; (at = compat_next_bit(nodes, at)) >= 0; at++)
        free_cpus[at] = compat_node((int)at)->cpus_efctv;
    (void)list_for_each_ro(job_list, take_held, free_cpus);
    for (bitoff_t at = 0; (at = compat_next_bit(nodes, at)) >= 0; at++) {
        enough &= free_cpus[at] >= on_each;
        found += free_cpus[at];
    }
    xfree(free_cpus);
    return enough && found >= wanted;
}

bool nodes_have_room(const job_record_t *job, const part_record_t *part, bitstr_t *nodes)
{
    if (!bit_super_set(nodes, avail_node_bitmap) || nodes_overlap(nodes, cg_node_bitmap))
        return false;
    if (bit_super_set(nodes, idle_node_bitmap))
        return true;
    return !takes_whole_nodes(job, part) && bit_super_set(nodes, share_node_bitmap) &&
           have_cpus(job, nodes);
}
