// SPDX-License-Identifier: GPL-2.0-or-later
#include "rules/unmodelled.h"

#include "common/records.h"
#include "rules/coscheduling.h"
#include "rules/reservations.h"

static bool is_said(uint16_t number)
{
    return number && number != NO_VAL16 && number != INFINITE16;
}

// Constraints on sockets, cores or threads, or tasks on each of them.
static bool has_shape(const job_details_t *details)
{
    const multi_core_data_t *shape = details->mc_ptr;
    return shape && (is_said(shape->sockets_per_node) || is_said(shape->cores_per_socket) ||
                     is_said(shape->threads_per_core) || is_said(shape->ntasks_per_board) ||
                     is_said(shape->ntasks_per_socket) || is_said(shape->ntasks_per_core));
}

// Whether Slurm itself may start a job on CPUs that others use.
static bool is_shared_by_slurm(const job_record_t *job, const part_record_t *part)
{
    if (coscheduling_is_shared(part))
        return job->details->share_res == 1; // --oversubscribe
    return (part->max_share & ~SHARED_FORCE) > 1;
}

static bool part_is_unmodelled(const job_record_t *job, const part_record_t *part)
{
    return (part->flags & (PART_FLAG_LLN | PART_FLAG_EXCLUSIVE_USER)) ||
           is_shared_by_slurm(job, part) ||
           (part->max_cpus_per_node != INFINITE && part->max_cpus_per_node != NO_VAL) ||
           compat_limits_sockets(part);
}

static bool uses_unmodelled_part(const job_record_t *job)
{
    bool found = false;
    if (!job->part_ptr_list)
        return job->part_ptr && part_is_unmodelled(job, job->part_ptr);
    list_itr_t *at = list_iterator_create(job->part_ptr_list);
    for (part_record_t *part; !found && (part = list_next(at));)
        found = part_is_unmodelled(job, part);
    list_iterator_destroy(at);
    return found;
}

static bool names_more_nodes_than_it_needs(const job_details_t *details)
{
    return details->req_node_bitmap && details->max_nodes &&
           (uint32_t)bit_set_count(details->req_node_bitmap) > details->max_nodes;
}

static bool is_malleable(const job_record_t *job)
{
    malleable_t malleable;
    char problem[8];
    return !job_malleable(job, &malleable, problem, sizeof(problem)) || malleable.min_nodes ||
           malleable.max_nodes;
}

// The number of nodes for tasks, or for devices of the whole job, within the bounds of -N depends
// on the free resources: Slurm takes as many as it can.
static bool has_open_width(const job_record_t *job)
{
    const job_details_t *details = job->details;
    return details->max_nodes && details->max_nodes != NO_VAL &&
           details->max_nodes > details->min_nodes &&
           ((details->num_tasks != NO_VAL && details->num_tasks > MAX(1, details->min_nodes)) ||
            job->tres_per_job) &&
           !is_malleable(job);
}

bool nodes_are_contiguous(bitstr_t *nodes)
{
    bitoff_t first = bit_ffs(nodes), after = first;
    while (after >= 0 && after < bit_size(nodes) && bit_test(nodes, after))
        after++;
    return after - first == bit_set_count(nodes);
}

bool job_binds_its_nodes(const job_record_t *job)
{
    const job_details_t *details = job->details;
    return details->contiguous || (details->features && strpbrk(details->features, "*[")) ||
           compat_node_counts(details);
}

bool job_is_unmodelled(const job_record_t *job)
{
    const job_details_t *details = job->details;
    return job_binds_its_nodes(job) || details->overcommit || has_shape(details) ||
           details->prefer || has_open_width(job) || details->pn_min_tmp_disk ||
           is_said(details->core_spec) || (job->bit_flags & (SPREAD_JOB | USE_MIN_NODES)) ||
           job->tres_per_socket || reservations_are_open(job) ||
           names_more_nodes_than_it_needs(details) || uses_unmodelled_part(job);
}
