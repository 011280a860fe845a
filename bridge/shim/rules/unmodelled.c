// SPDX-License-Identifier: GPL-2.0-or-later
#include "rules/unmodelled.h"

#include "common/records.h"
#include "rules/reservations.h"
#include "sharing/coscheduling.h"

static bool is_said(uint16_t number)
{
    return number && number != NO_VAL16 && number != INFINITE16;
}

// ---------------------------------------------------------------- the job's own

static bool is_contiguous(const job_record_t *job)
{
    return job->details->contiguous;
}

static bool groups_features(const job_record_t *job)
{
    return job->details->features && strpbrk(job->details->features, "*[");
}

static bool lists_widths(const job_record_t *job)
{
    return compat_node_counts(job->details);
}

static bool overcommits(const job_record_t *job)
{
    return job->details->overcommit;
}

// Constraints on sockets, cores or threads, or tasks on each of them.
static bool has_shape(const job_record_t *job)
{
    const multi_core_data_t *shape = job->details->mc_ptr;
    return shape && (is_said(shape->sockets_per_node) || is_said(shape->cores_per_socket) ||
                     is_said(shape->threads_per_core) || is_said(shape->ntasks_per_board) ||
                     is_said(shape->ntasks_per_socket) || is_said(shape->ntasks_per_core));
}

static bool prefers_features(const job_record_t *job)
{
    return job->details->prefer;
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

static bool needs_local_disk(const job_record_t *job)
{
    return job->details->pn_min_tmp_disk;
}

static bool keeps_cores(const job_record_t *job)
{
    return is_said(job->details->core_spec);
}

static bool is_spread(const job_record_t *job)
{
    return job->bit_flags & SPREAD_JOB;
}

static bool uses_min_nodes(const job_record_t *job)
{
    return job->bit_flags & USE_MIN_NODES;
}

static bool has_devices_on_sockets(const job_record_t *job)
{
    return job->tres_per_socket;
}

static bool names_more_nodes_than_it_needs(const job_record_t *job)
{
    const job_details_t *details = job->details;
    return details->req_node_bitmap && details->max_nodes &&
           (uint32_t)bit_set_count(details->req_node_bitmap) > details->max_nodes;
}

// ---------------------------------------------------------------- of its partitions

static bool spreads_over_nodes(const job_record_t *job, const part_record_t *part)
{
    (void)job;
    return part->flags & PART_FLAG_LLN;
}

static bool has_nodes_of_one_user(const job_record_t *job, const part_record_t *part)
{
    (void)job;
    return part->flags & PART_FLAG_EXCLUSIVE_USER;
}

// Whether Slurm itself may start a job on CPUs that others use.
static bool is_shared_by_slurm(const job_record_t *job, const part_record_t *part)
{
    if (coscheduling_is_shared(part))
        return job->details->share_res == 1; // --oversubscribe
    return (part->max_share & ~SHARED_FORCE) > 1;
}

static bool limits_cpus_of_nodes(const job_record_t *job, const part_record_t *part)
{
    (void)job;
    return part->max_cpus_per_node != INFINITE && part->max_cpus_per_node != NO_VAL;
}

static bool limits_cpus_of_sockets(const job_record_t *job, const part_record_t *part)
{
    (void)job;
    return compat_limits_sockets(part);
}

// ---------------------------------------------------------------- all of them

const unmodelled_kind_t unmodelled_kinds[] = {
    {"--contiguous", .is_of_job = is_contiguous},
    {"--constraint=[a*1&b*2]", .is_of_job = groups_features},
    {"--nodes=1,3", .is_of_job = lists_widths},
    {"--overcommit", .is_of_job = overcommits},
    {"--extra-node-info", .is_of_job = has_shape},
    {"--prefer", .is_of_job = prefers_features},
    {"--nodes=1-3 --ntasks=6", .is_of_job = has_open_width},
    {"--tmp", .is_of_job = needs_local_disk},
    {"--core-spec", .is_of_job = keeps_cores},
    {"--spread-job", .is_of_job = is_spread},
    {"--use-min-nodes", .is_of_job = uses_min_nodes},
    {"--gpus-per-socket", .is_of_job = has_devices_on_sockets},
    {"--reservation=a,b", .is_of_job = reservations_are_open},
    {"--nodelist=n1,n2 --nodes=1", .is_of_job = names_more_nodes_than_it_needs},
    {"LLN=YES", .is_of_part = spreads_over_nodes},
    {"ExclusiveUser=YES", .is_of_part = has_nodes_of_one_user},
    {"OverSubscribe=FORCE", .is_of_part = is_shared_by_slurm},
    {"MaxCPUsPerNode", .is_of_part = limits_cpus_of_nodes},
    {"MaxCPUsPerSocket", .is_of_part = limits_cpus_of_sockets},
    {0},
};

static bool is_in_part(const unmodelled_kind_t *kind, const job_record_t *job)
{
    bool found = false;
    if (!job->part_ptr_list)
        return job->part_ptr && kind->is_of_part(job, job->part_ptr);
    list_itr_t *at = list_iterator_create(job->part_ptr_list);
    for (part_record_t *part; !found && (part = list_next(at));)
        found = kind->is_of_part(job, part);
    list_iterator_destroy(at);
    return found;
}

bool job_is_of_kind(const job_record_t *job, const unmodelled_kind_t *kind)
{
    return kind->is_of_job ? kind->is_of_job(job) : is_in_part(kind, job);
}

bool job_is_unmodelled(const job_record_t *job)
{
    for (const unmodelled_kind_t *kind = unmodelled_kinds; kind->name; kind++) {
        if (job_is_of_kind(job, kind))
            return true;
    }
    return false;
}

bool job_binds_its_nodes(const job_record_t *job)
{
    return is_contiguous(job) || groups_features(job) || lists_widths(job);
}

bool nodes_are_contiguous(bitstr_t *nodes)
{
    bitoff_t first = bit_ffs(nodes), after = first;
    while (after >= 0 && after < bit_size(nodes) && bit_test(nodes, after))
        after++;
    return after - first == bit_set_count(nodes);
}
