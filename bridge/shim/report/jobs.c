// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/jobs.h"

#include "common/hash.h"
#include "common/records.h"
#include "options/chunks.h"
#include "report/allocation.h"
#include "report/gres.h"
#include "resize/expand.h"
#include "rules/moldable.h"
#include "rules/unmodelled.h"
#include "sharing/report.h"

// A helper of a resize, unless nodes that were not merged are cleaned up after it.
static bool is_nobodys(const job_record_t *job)
{
    return expand_is_helper(job) && !(IS_JOB_COMPLETING(job) && job->details->min_nodes);
}

Schedbridge__V1__JobState job_wire_state(const job_record_t *job)
{
    if (!job->details || IS_JOB_REVOKED(job) || is_nobodys(job))
        return PB(JOB_STATE__JOB_STATE_UNSPECIFIED);
    if (IS_JOB_COMPLETING(job))
        return PB(JOB_STATE__JOB_STATE_COMPLETING);
    if (IS_JOB_PENDING(job))
        return PB(JOB_STATE__JOB_STATE_PENDING);
    if ((IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job)) && job->job_resrcs)
        return PB(JOB_STATE__JOB_STATE_RUNNING);
    return PB(JOB_STATE__JOB_STATE_UNSPECIFIED);
}

// ---------------------------------------------------------------- hashes

static void hash_malleable(bridge_hash_t *hash, const job_record_t *job)
{
    malleable_t malleable;
    char problem[8];
    if (!job->spank_job_env_size)
        return;
    bool valid = job_malleable(job, &malleable, problem, sizeof(problem));
    hash_number(hash, valid);
    if (!valid)
        return;
    hash_number(hash, (uint64_t)malleable.min_nodes << 32 | malleable.max_nodes);
    hash_number(hash, (uint64_t)malleable.min_power_w << 32 | malleable.max_power_w);
    hash_text(hash, malleable.constraint);
    hash_number(hash, malleable.no_resize);
    bool moldable = malleable.max_nodes && job_is_moldable(job);
    hash_number(hash, moldable ? molded_min_nodes(job) : 0);
    if (malleable.max_nodes && job_wire_state(job) == PB(JOB_STATE__JOB_STATE_RUNNING))
        hash_text(hash, job->nodes);
    hash_text(hash, job_option(job, "chunks"));
    hash_text(hash, job_option(job, "place"));
    hash_number(hash, job_option(job, "fixed-start") != NULL);
    hash_text(hash, job_option(job, "coschedule"));
    hash_text(hash, job_option(job, "max-slowdown"));
}

// The deadline by which the job must have ended; 0: none.
static int64_t deadline_s(const job_record_t *job)
{
    return job->deadline == (time_t)NO_VAL ? 0 : (int64_t)job->deadline;
}

// The shortest time limit the job may be cut to at its start; 0: none shorter.
static int64_t min_time_s(const job_record_t *job)
{
    if (job->time_min && job->time_min != NO_VAL)
        return (int64_t)job->time_min * 60;
    if (!deadline_s(job))
        return 0;
    return job->time_limit == NO_VAL || job->time_limit == INFINITE ? 60 : 0;
}

// The maximum number of leaf switches of the job (--switches); 0: any number.
static uint32_t switches(const job_record_t *job)
{
    return job->req_switch == NO_VAL ? 0 : job->req_switch;
}

// Its maximum wait for them, bounded by Slurm (max_switch_wait).
static uint32_t switches_wait_s(const job_record_t *job)
{
    return switches(job) && job->wait4switch != NO_VAL ? job->wait4switch : 0;
}

// Whether Slurm's backfill would make no reservation for it, either.
static bool has_no_place(const job_record_t *job)
{
    return job->qos_ptr && (job->qos_ptr->flags & QOS_FLAG_NO_RESERVE);
}

uint64_t job_version(const job_record_t *job)
{
    const job_details_t *details = job->details;
    bridge_hash_t hash = BRIDGE_HASH_START;
    hash_text(&hash, job->partition);
    hash_text(&hash, job->account);
    hash_number(&hash, job->qos_id);
    hash_number(&hash, (uint64_t)job->time_limit << 32 | job->time_min);
    hash_number(&hash, (uint64_t)details->min_nodes << 32 | details->max_nodes);
    hash_number(&hash, (uint64_t)details->num_tasks << 32 | details->orig_cpus_per_task);
    hash_number(&hash, (uint64_t)details->orig_min_cpus << 32 | details->orig_max_cpus);
    hash_number(&hash, (uint64_t)details->orig_pn_min_cpus << 32 | details->ntasks_per_node);
    hash_number(&hash, details->orig_pn_min_memory);
    hash_number(&hash, (uint64_t)details->whole_node << 32 | (uint64_t)details->contiguous << 16 |
                           details->core_spec);
    hash_text(&hash, details->features);
    hash_text(&hash, details->prefer);
    hash_text(&hash, details->req_nodes);
    hash_text(&hash, details->exc_nodes);
    hash_text(&hash, job->licenses);
    hash_text(&hash, job->resv_name);
    hash_text(&hash, job->tres_per_node);
    hash_text(&hash, job->tres_per_job);
    hash_text(&hash, job->tres_per_socket);
    hash_text(&hash, job->tres_per_task);
    hash_number(&hash, (uint64_t)has_no_place(job) << 1 | job_is_unmodelled(job));
    hash_number(&hash, (uint64_t)deadline_s(job));
    hash_number(&hash, (uint64_t)switches(job) << 32 | switches_wait_s(job));
    hash_malleable(&hash, job);
    return hash_end(hash);
}

static uint32_t startable(const job_record_t *job)
{
    const job_array_struct_t *array = job->array_recs;
    if (!array->max_run_tasks)
        return array->task_cnt;
    uint32_t left = array->max_run_tasks > array->tot_run_tasks
                        ? array->max_run_tasks - array->tot_run_tasks
                        : 0;
    return MIN(left, array->task_cnt);
}

uint64_t job_fingerprint(const job_record_t *job, const sent_job_t *entry, time_t now)
{
    bridge_hash_t hash = BRIDGE_HASH_START;
    Schedbridge__V1__JobState state = job_wire_state(job);
    hash_number(&hash, (uint64_t)state << 32 | job->priority);
    hash_number(&hash, job_version(job));
    sharing_hash(&hash, job, state != PB(JOB_STATE__JOB_STATE_PENDING));
    if (state != PB(JOB_STATE__JOB_STATE_PENDING)) {
        hash_number(&hash, (uint64_t)job->start_time);
        hash_number(&hash, (uint64_t)job->end_time);
        hash_text(&hash, job->nodes);
        hash_number(&hash, (uint64_t)job->total_cpus << 32 | job->node_cnt);
        if (state == PB(JOB_STATE__JOB_STATE_COMPLETING) && job->node_bitmap_cg)
            hash_number(&hash, nodes_fingerprint(job->node_bitmap_cg));
        return hash_end(hash);
    }
    hash_text(&hash, job->name);
    hash_number(&hash, (uint64_t)job->details->submit_time);
    hash_number(&hash, (uint64_t)job->details->begin_time);
    hash_number(&hash, job->details->begin_time > now);
    hash_number(&hash, (uint64_t)(job->qos_ptr ? job->qos_ptr->id : 0) << 32 | entry->hold);
    hash_text(&hash, entry->hold_text);
    if (job_is_array_head(job))
        hash_number(&hash, (uint64_t)job->array_recs->task_cnt << 32 | startable(job));
    return hash_end(hash);
}

// ---------------------------------------------------------------- messages

// Time limit, s; 0: unlimited.
static int64_t time_limit_s(const job_record_t *job)
{
    uint32_t minutes = job->time_limit;
    if (minutes == NO_VAL && job->part_ptr) {
        minutes = job->part_ptr->default_time;
        if (minutes == NO_VAL)
            minutes = job->part_ptr->max_time;
    }
    return minutes == INFINITE || minutes == NO_VAL ? 0 : (int64_t)minutes * 60;
}

// Text chosen by users can be as long as a script. The service accepts shorter names than this; one
// that is invalid because it was cut holds its own job only.
#define MAX_NAME 256
#define MAX_EXPRESSION 16384

// The nodes that a user named. A long list is normalised, each node once.
static char *node_list(arena_t *arena, const char *text, bitstr_t *nodes)
{
    if (text && nodes && strnlen(text, MAX_EXPRESSION) == MAX_EXPRESSION)
        return nodes_text(arena, nodes);
    return arena_cut(arena, text, MAX_EXPRESSION);
}

static void set_partitions(arena_t *arena, pb_request_t *request, const job_record_t *job)
{
    arena_list_t names = {0};
    if (job->part_ptr_list) {
        list_itr_t *at = list_iterator_create(job->part_ptr_list);
        for (part_record_t *part; (part = list_next(at));)
            arena_append(arena, &names, arena_text(arena, part->name));
        list_iterator_destroy(at);
    } else if (job->part_ptr) {
        arena_append(arena, &names, arena_text(arena, job->part_ptr->name));
    }
    request->partitions = (char **)names.items;
    request->n_partitions = names.count;
}

static void set_malleable(arena_t *arena, pb_request_t *request, const job_record_t *job)
{
    malleable_t wanted;
    char problem[8];
    if (!job->spank_job_env_size || !job_malleable(job, &wanted, problem, sizeof(problem)))
        return;
    if (!wanted.min_nodes && !wanted.max_nodes && !wanted.constraint[0] && !wanted.min_power_w &&
        !wanted.max_power_w)
        return;
    pb_malleable_t *message = PB_NEW(arena, pb_malleable_t, malleable);
    message->min_nodes = wanted.min_nodes;
    message->max_nodes = wanted.max_nodes;
    message->node_constraint = arena_text(arena, wanted.constraint);
    message->min_power_w = wanted.min_power_w;
    message->max_power_w = wanted.max_power_w;
    message->no_resize = wanted.no_resize;
    message->moldable = job_is_moldable(job);
    message->min_start = message->moldable ? molded_min_nodes(job) : 0;
    request->malleable = message;
}

// The power that a job with nodes stated; a job that cannot be resized has no request.
static void set_power(pb_allocation_t *allocation, const job_record_t *job)
{
    malleable_t wanted;
    char problem[8];
    if (!job->spank_job_env_size || !job_malleable(job, &wanted, problem, sizeof(problem)))
        return;
    allocation->min_power_w = wanted.min_power_w;
    allocation->max_power_w = wanted.max_power_w;
}

// Whether the job runs and may change its number of nodes.
static bool can_be_resized(const job_record_t *job)
{
    malleable_t wanted;
    char problem[8];
    bool whole = (job->details->whole_node & WHOLE_NODE_REQUIRED) != 0; // see resize.c
    return IS_JOB_RUNNING(job) && whole && job->spank_job_env_size && !job_binds_its_nodes(job) &&
           job_malleable(job, &wanted, problem, sizeof(problem)) && wanted.max_nodes;
}

// Whether the job states a range of nodes, but does not hold whole nodes, so that it cannot be
// resized. Of a waiting job, its partition may still give it whole ones.
static bool is_rigid(const job_record_t *job)
{
    malleable_t wanted;
    char problem[8];
    return job->spank_job_env_size && !(job->details->whole_node & WHOLE_NODE_REQUIRED) &&
           job_malleable(job, &wanted, problem, sizeof(problem)) && wanted.max_nodes &&
           !wanted.no_resize;
}

// A client may have sent anything: long text is cut and invalid bytes are replaced so that the
// service refuses both.
static char *printable(arena_t *arena, const char *text)
{
    char *copy = arena_format(arena, "%.*s", CHUNKS_MAX_LENGTH + 1, text ? text : "");
    for (char *sign = copy; *sign; sign++) {
        if (*sign < ' ' || *sign > '~')
            *sign = '?';
    }
    return copy;
}

static void set_chunks(arena_t *arena, pb_request_t *request, const job_record_t *job)
{
    const char *chunks = job->spank_job_env_size ? job_option(job, "chunks") : NULL;
    const char *place = chunks ? job_option(job, "place") : NULL;
    if (!chunks)
        return;
    pb_chunks_t *message = PB_NEW(arena, pb_chunks_t, chunks);
    message->chunks = printable(arena, chunks);
    message->place = printable(arena, place);
    request->chunks = message;
}

// The tasks that have CPUs of their own. With --overcommit Slurm gives a job the minimum on its
// nodes, however many tasks it has.
static uint32_t tasks_with_cpus(const job_record_t *job)
{
    const job_details_t *details = job->details;
    if (details->num_tasks == NO_VAL || (details->overcommit && !job_option(job, "chunks")))
        return 0;
    return details->num_tasks;
}

static pb_request_t *request_message(arena_t *arena, const job_record_t *job)
{
    const job_details_t *details = job->details;
    pb_request_t *request = PB_NEW(arena, pb_request_t, request);
    set_partitions(arena, request, job);
    request->min_nodes = gres_min_nodes(job);
    request->max_nodes = details->max_nodes == NO_VAL ? 0 : details->max_nodes;
    request->tasks = tasks_with_cpus(job);
    request->cpus_per_task = details->cpus_per_task == NO_VAL16 ? 0 : details->cpus_per_task;
    request->tasks_per_node = details->ntasks_per_node == NO_VAL16 ? 0 : details->ntasks_per_node;
    request->min_cpus = details->min_cpus == NO_VAL ? 0 : details->min_cpus;
    request->min_cpus_per_node = details->pn_min_cpus == NO_VAL ? 0 : details->pn_min_cpus;
    if (details->pn_min_memory & MEM_PER_CPU)
        request->memory_per_cpu_mib = details->pn_min_memory & ~MEM_PER_CPU;
    else
        request->memory_per_node_mib = details->pn_min_memory;
    request->gres_per_node = gres_per_node(arena, job, &request->n_gres_per_node);
    request->exclusive = (details->whole_node & WHOLE_NODE_REQUIRED) ||
                         !xstrcmp(slurm_conf.select_type, "select/linear");
    request->features = arena_cut(arena, details->features, MAX_EXPRESSION);
    if (details->req_nodes && !details->req_node_bitmap && details->exc_node_bitmap) {
        // With more names than nodes needed, Slurm has turned them into an exclusion of all others.
        request->excluded_nodes = nodes_text(arena, details->exc_node_bitmap);
    } else {
        request->required_nodes = node_list(arena, details->req_nodes, details->req_node_bitmap);
        request->excluded_nodes = node_list(arena, details->exc_nodes, details->exc_node_bitmap);
    }
    request->licences = licence_uses(arena, job->license_list, &request->n_licences);
    request->reservation = arena_cut(arena, job->resv_name, MAX_EXPRESSION);
    request->contiguous = details->contiguous != 0;
    request->fixed_start = job_option(job, "fixed-start") != NULL;
    request->controller_chooses = job_is_unmodelled(job);
    request->no_place = has_no_place(job);
    request->switches = switches(job);
    request->switches_wait_s = switches_wait_s(job);
    set_malleable(arena, request, job);
    set_chunks(arena, request, job);
    return request;
}

static const char *user_name(arena_t *arena, const job_record_t *job)
{
    if (job->user_name && job->user_name[0])
        return job->user_name;
    if (job->assoc_ptr && job->assoc_ptr->user)
        return job->assoc_ptr->user;
    return arena_format(arena, "%u", job->user_id);
}

pb_job_t *job_message(arena_t *arena, const job_record_t *job, const sent_job_t *entry, time_t now)
{
    pb_job_t *message = PB_NEW(arena, pb_job_t, job);
    const job_details_t *details = job->details;
    message->id = job_wire_id(arena, compat_job_id(job), job->array_job_id, job->array_task_id);
    message->version = job_version(job);
    message->state = job_wire_state(job);
    message->name = arena_cut(arena, job->name, MAX_NAME);
    message->user = arena_text(arena, user_name(arena, job));
    message->account = arena_cut(arena, job->account, MAX_NAME);
    message->qos = arena_text(arena, job->qos_ptr ? job->qos_ptr->name : NULL);
    message->priority = job->priority;
    message->submit_s = details->submit_time;
    if (details->begin_time > now)
        message->begin_s = details->begin_time;
    else
        message->eligible_s = details->begin_time;
    message->time_limit_s = time_limit_s(job);
    message->deadline_s = deadline_s(job);
    message->min_time_s = min_time_s(job);
    message->rigid = is_rigid(job);
    sharing_report(arena, message, job);
    if (message->state != PB(JOB_STATE__JOB_STATE_PENDING)) {
        message->allocation = allocation_message(arena, job);
        set_power(message->allocation, job);
        if (can_be_resized(job))
            message->request = request_message(arena, job);
        return message;
    }
    message->hold = (pb_hold_t)entry->hold;
    message->hold_text = arena_text(arena, entry->hold_text);
    message->request = request_message(arena, job);
    if (job_is_array_head(job)) {
        message->array_tasks = job->array_recs->task_cnt;
        message->array_startable = startable(job);
    }
    return message;
}

bool job_has_ended(const job_record_t *job)
{
    return job->details && IS_JOB_FINISHED(job) && !IS_JOB_REVOKED(job) &&
           !(job->job_state & (JOB_REQUEUE | JOB_REQUEUE_HOLD | JOB_SPECIAL_EXIT)) &&
           job->start_time > 0 && job->end_time > job->start_time;
}

static pb_ending_t ending(const job_record_t *job)
{
    switch (job->job_state & JOB_STATE_BASE) {
    case JOB_COMPLETE:
        return PB(ENDING__ENDING_COMPLETED);
    case JOB_TIMEOUT:
    case JOB_DEADLINE:
        return PB(ENDING__ENDING_TIMEOUT);
    case JOB_CANCELLED:
        return PB(ENDING__ENDING_CANCELLED);
    case JOB_NODE_FAIL:
    case JOB_PREEMPTED:
    case JOB_BOOT_FAIL:
        return PB(ENDING__ENDING_LOST);
    default:
        return PB(ENDING__ENDING_FAILED);
    }
}

pb_ended_job_t *job_ended_message(arena_t *arena, const job_record_t *job)
{
    pb_ended_job_t *message = PB_NEW(arena, pb_ended_job_t, ended_job);
    message->id = job_wire_id(arena, compat_job_id(job), job->array_job_id, job->array_task_id);
    message->name = arena_cut(arena, job->name, MAX_NAME);
    message->user = arena_text(arena, user_name(arena, job));
    message->start_s = job->start_time;
    message->end_s = job->end_time;
    message->time_limit_s = time_limit_s(job);
    message->ending = ending(job);
    return message;
}
