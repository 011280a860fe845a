// SPDX-License-Identifier: GPL-2.0-or-later
#include "rules/examine.h"

#include "common/lock_scope.h"
#include "common/records.h"
#include "rules/qos_choice.h"

// Limits of associations and QOS depend on all other jobs: they are checked this often, and always
// when a job starts.
#define LIMITS_MS 1000
// Tasks of an array that wait for corresponding tasks of another get their own records, this many
// at a time (Slurm's correspond_after_task_cnt).
#define CORRESPONDING_TASKS 10

bool examine_needed(const job_record_t *job, const sent_job_t *entry, int64_t now_ms)
{
    const job_details_t *details = job->details;
    time_t now = time(NULL);
    switch (entry->hold) {
    case PB(HOLD__HOLD_NONE):
        break;
    case PB(HOLD__HOLD_HELD):
        if (job->priority == 0)
            return false;
        return true;
    case PB(HOLD__HOLD_BEGIN_TIME):
        return details->begin_time <= now;
    default:
        return true;
    }
    if (job->priority == 0 || details->begin_time == 0 || details->begin_time > now)
        return true;
    if (details->depend_list && list_count(details->depend_list))
        return true;
    if (job->resv_name || job->burst_buffer || job->step_list || details->prolog_running ||
        (job->deadline && job->deadline != NO_VAL))
        return true;
    return (accounting_enforce & ACCOUNTING_ENFORCE_LIMITS) &&
           now_ms - entry->tested_ms >= LIMITS_MS;
}

static void hold(sent_job_t *entry, pb_hold_t why, const char *text)
{
    entry->hold = (uint8_t)why;
    snprintf(entry->hold_text, sizeof(entry->hold_text), "%s", text ? text : "");
}

static void hold_as_slurm_says(sent_job_t *entry, pb_hold_t why, const job_record_t *job)
{
    hold(entry, why,
         job->state_desc && job->state_desc[0] ? job->state_desc
                                               : compat_reason_string(job->state_reason));
}

static void set_reason(job_record_t *job, uint32_t reason)
{
    if (job->state_reason == reason)
        return;
    job->state_reason = reason;
    xfree(job->state_desc);
    last_job_update = time(NULL);
}

// Slurm's scheduler does this for every pending job when it builds its queue.
static void keep_records(job_record_t *job)
{
    job->bit_flags &= ~BACKFILL_SCHED;
    job->preempt_in_progress = false;
    set_job_failed_assoc_qos_ptr(job);
    acct_policy_handle_accrue_time(job, false);
    if (job->state_reason != WAIT_NO_REASON && job->state_reason != WAIT_PRIORITY &&
        job->state_reason != WAIT_RESOURCES && job->state_reason != job->state_reason_prev_db)
        job->state_reason_prev_db = job->state_reason;
}

static int is_corresponding(void *dependency, void *unused)
{
    (void)unused;
    return ((depend_spec_t *)dependency)->depend_type == SLURM_DEPEND_AFTER_CORRESPOND;
}

bool examine_split(job_record_t *job)
{
    bool split = false;
    if (!job_is_array_head(job) || !job->details->depend_list ||
        !list_find_first(job->details->depend_list, is_corresponding, NULL))
        return false;
    while (job_is_array_head(job) && job->array_recs->task_cnt &&
           num_pending_job_array_tasks(job->array_job_id) < CORRESPONDING_TASKS) {
        bitoff_t task = bit_ffs(job->array_recs->task_id_bitmap);
        if (task < 0)
            break;
        bool last = job->array_recs->task_cnt == 1;
        job->array_task_id = (uint32_t)task;
        split = true;
        if (last) {
            compat_array_post_sched(job);
            break;
        }
        job = compat_array_split(job);
        compat_job_state_set(job, JOB_PENDING);
        job->start_time = 0;
    }
    return split;
}

// The reason why job_independent() returned false.
static void hold_dependent(job_record_t *job, sent_job_t *entry)
{
    switch (job->state_reason) {
    case WAIT_TIME:
        hold(entry, PB(HOLD__HOLD_BEGIN_TIME), "BeginTime");
        break;
    case WAIT_ARRAY_TASK_LIMIT:
        hold_as_slurm_says(entry, PB(HOLD__HOLD_ARRAY_LIMIT), job);
        break;
    case WAIT_RESERVATION:
    case WAIT_RESV_DELETED:
    case WAIT_RESV_INVALID:
        hold_as_slurm_says(entry, PB(HOLD__HOLD_RESERVATION), job);
        break;
    case FAIL_ACCOUNT:
    case FAIL_QOS:
        hold_as_slurm_says(entry, PB(HOLD__HOLD_LIMIT), job);
        break;
    case WAIT_DEPENDENCY:
    case WAIT_DEP_INVALID:
        hold_as_slurm_says(entry, PB(HOLD__HOLD_DEPENDENCY), job);
        break;
    default:
        hold_as_slurm_says(entry, PB(HOLD__HOLD_OTHER), job);
    }
}

static bool is_held_reason(uint32_t reason)
{
    return reason == FAIL_BAD_CONSTRAINTS || reason == FAIL_BURST_BUFFER_OP ||
           reason == WAIT_HELD || reason == WAIT_HELD_USER || reason == WAIT_MAX_REQUEUE ||
           reason == WAIT_RESV_INVALID || reason == WAIT_RESV_DELETED;
}

bool examine_has_partition(const job_record_t *job, const part_record_t *part)
{
    if (!job->part_ptr_list)
        return job->part_ptr == part;
    bool found = false;
    list_itr_t *at = list_iterator_create(job->part_ptr_list);
    for (part_record_t *one; !found && (one = list_next(at));)
        found = one == part;
    list_iterator_destroy(at);
    return found;
}

bool examine_cleaning(const job_record_t *job)
{
    const job_details_t *details = job->details;
    return details->prolog_running || (job->step_list && list_count(job->step_list)) ||
           (job->restart_cnt && details->submit_time >= time(NULL));
}

uint32_t examine_partition(job_record_t *job, part_record_t *part)
{
    part_record_t *present = job->part_ptr;
    job->part_ptr = part;
    // As in backfill, which cuts time limits (--time-min), the minimum must fit.
    uint32_t reason = (uint32_t)job_limits_check(&job, true);
    job->part_ptr = present;
    // The check adjusts the request to the partition: undo that.
    if (present != part)
        (void)job_limits_check(&job, false);
    return reason;
}

static uint32_t examine_partitions(job_record_t *job)
{
    if (!job->part_ptr_list)
        return examine_partition(job, job->part_ptr);
    uint32_t reason = WAIT_PART_CONFIG;
    list_itr_t *at = list_iterator_create(job->part_ptr_list);
    for (part_record_t *part; reason != WAIT_NO_REASON && (part = list_next(at));)
        reason = examine_partition(job, part);
    list_iterator_destroy(at);
    return reason;
}

static bool is_about_nodes_in_use(uint32_t reason)
{
    return reason == WAIT_ASSOC_GRP_NODE || reason == WAIT_QOS_GRP_NODE ||
           reason == WAIT_QOS_MAX_NODE_PER_USER || reason == WAIT_QOS_MAX_NODE_PER_ACCT;
}

static void add_nodes(bitstr_t *all, bitstr_t *some)
{
    if (some)
        bit_or(all, some);
}

// The nodes that a QOS counts for a job's group, user or account.
static void add_nodes_of_qos(bitstr_t *all, const job_record_t *job, slurmdb_qos_rec_t *qos)
{
    if (!qos || !qos->usage)
        return;
    if (job->state_reason == WAIT_QOS_MAX_NODE_PER_USER)
        add_nodes(all, acct_policy_get_user_used_limits(&qos->usage->user_limit_list, job->user_id)
                           ->node_bitmap);
    else if (job->state_reason != WAIT_QOS_MAX_NODE_PER_ACCT)
        add_nodes(all, qos->usage->grp_node_bitmap);
    else if (job->assoc_ptr)
        add_nodes(all, acct_policy_get_acct_used_limits(&qos->usage->acct_limit_list,
                                                        job->assoc_ptr->acct)
                           ->node_bitmap);
}

// The nodes that already count for the limit that it has reached, and on which it could run beside
// the running jobs. At most as many as the job needs, as Slurm's test ignores all of them if there
// are more.
static bitstr_t *shared_nodes(const job_record_t *job, uint32_t maximum)
{
    bitstr_t *found = bit_copy(job->part_ptr->node_bitmap);
    bitstr_t *group = bit_alloc(bit_size(found));
    slurmdb_assoc_rec_t *assoc = job->assoc_ptr;
    add_nodes_of_qos(group, job, job->qos_ptr);
    add_nodes_of_qos(group, job, job->part_ptr->qos_ptr);
    if (job->state_reason == WAIT_ASSOC_GRP_NODE || job->state_reason == WAIT_QOS_GRP_NODE)
        for (; assoc && assoc->usage; assoc = assoc->usage->parent_assoc_ptr)
            add_nodes(group, assoc->usage->grp_node_bitmap);
    bit_and(found, group);
    bit_and(found, share_node_bitmap);
    bit_and(found, avail_node_bitmap);
    FREE_NULL_BITMAP(group);
    for (bitoff_t at = 0; (at = compat_next_bit(found, at)) >= 0; at++) {
        if (!maximum)
            bit_clear(found, at);
        else
            maximum--;
    }
    return found;
}

// Whether the job is within its limits on nodes that its groups already use, which count once. Its
// nodes are not known yet.
static bool fits_beside_its_group(job_record_t *job, uint32_t nodes, uint64_t *tres)
{
    job_details_t *details = job->details;
    bitstr_t *required = details->req_node_bitmap;
    if (required || (details->whole_node & WHOLE_NODE_REQUIRED))
        return false;
    details->req_node_bitmap = shared_nodes(job, nodes);
    bool allowed = bit_set_count(details->req_node_bitmap) > 0 &&
                   acct_policy_job_runnable_post_select(job, tres, true);
    FREE_NULL_BITMAP(details->req_node_bitmap);
    details->req_node_bitmap = required;
    return allowed;
}

bool examine_limits(job_record_t *job, uint32_t nodes)
{
    assoc_mgr_lock_t locks = {.assoc = READ_LOCK, .qos = WRITE_LOCK, .tres = READ_LOCK};
    if (!(accounting_enforce & ACCOUNTING_ENFORCE_LIMITS))
        return true;
    if (!acct_policy_job_runnable_pre_select(job, false))
        return false;
    uint64_t tres[slurmctld_tres_cnt];
    memset(tres, 0, sizeof(tres));
    if (job->tres_req_cnt)
        memcpy(tres, job->tres_req_cnt, sizeof(tres));
    tres[TRES_ARRAY_CPU] = job->total_cpus ? job->total_cpus : job->details->min_cpus;
    tres[TRES_ARRAY_MEM] = compat_job_memory(job, tres[TRES_ARRAY_CPU], nodes);
    tres[TRES_ARRAY_NODE] = nodes;
    assoc_mgr_lock(&locks);
    compat_set_job_tres(job, nodes, tres);
    tres[TRES_ARRAY_BILLING] = (uint64_t)assoc_mgr_tres_weighted(
        tres, job->part_ptr->billing_weights, slurm_conf.priority_flags, true);
    uint32_t reason = job->state_reason;
    char *desc = xstrdup(job->state_desc);
    bool allowed = acct_policy_job_runnable_post_select(job, tres, true);
    if (!allowed && is_about_nodes_in_use(job->state_reason) &&
        fits_beside_its_group(job, nodes, tres)) {
        job->state_reason = reason;
        xfree(job->state_desc);
        job->state_desc = desc;
        desc = NULL;
        allowed = true;
    }
    xfree(desc);
    assoc_mgr_unlock(&locks);
    return allowed;
}

// Prepares the stage-in of a job's burst buffer, which Slurm does in the order of start times.
static bool burst_buffer_ready(job_record_t *job, sent_job_t *entry)
{
    if (!job->burst_buffer || bb_g_job_test_stage_in(job, true) == 1)
        return true;
    if (!job->start_time)
        job->start_time = time(NULL);
    (void)bb_g_job_try_stage_in();
    hold(entry, PB(HOLD__HOLD_OTHER), "the burst buffer is being staged in");
    return false;
}

// Whether partitions and limits admit the job under its present QOS. False: the entry says why not.
static bool is_within_its_qos(job_record_t *job, sent_job_t *entry, bool was_held)
{
    uint32_t reason = examine_partitions(job);
    if (reason != WAIT_NO_REASON) {
        set_reason(job, reason);
        hold_as_slurm_says(
            entry, reason == WAIT_QOS_THRES ? PB(HOLD__HOLD_LIMIT) : PB(HOLD__HOLD_PARTITION), job);
        return false;
    }
    if (was_held && compat_reason_is_part(job->state_reason))
        set_reason(job, WAIT_NO_REASON);
    if (!examine_limits(job, MAX(1, job->details->min_nodes))) {
        hold_as_slurm_says(entry, PB(HOLD__HOLD_LIMIT), job);
        return false;
    }
    return true;
}

// The same under one of its QOS after the other. The first that admits it is its present one, which
// is reported; without any it is the last, whose reason is shown.
static bool is_within_some_qos(job_record_t *job, sent_job_t *entry, bool was_held)
{
    uint32_t reason = job->state_reason;
    char *sentence = xstrdup(job->state_desc);
    bool admitted = false;
    for (unsigned which = 0; !admitted && which < qos_choices(job); which++) {
        qos_choose(job, which);
        admitted = is_within_its_qos(job, entry, was_held);
        if (admitted && which) { // the reasons of the others are none
            hold(entry, PB(HOLD__HOLD_NONE), NULL);
            job->state_reason = was_held ? WAIT_NO_REASON : reason;
            xfree(job->state_desc);
            job->state_desc = was_held ? NULL : xstrdup(sentence);
        }
    }
    xfree(sentence);
    return admitted;
}

bool examine(job_record_t *job, sent_job_t *entry, int64_t now_ms)
{
    char problem[sizeof(entry->hold_text)];
    malleable_t malleable;
    // Otherwise its reason is the announced one, or will be.
    bool was_held = entry->hold != PB(HOLD__HOLD_NONE);
    bool refusal_shown = entry->word != WAIT_NO_REASON && job->state_reason == entry->word;
    entry->tested_ms = now_ms;
    hold(entry, PB(HOLD__HOLD_NONE), NULL);
    keep_records(job);
    if (!entry->announced && (job->start_time || job->sched_nodes) && !job->burst_buffer) {
        job->start_time = 0; // announced by backfill, or before a restart
        xfree(job->sched_nodes);
        last_job_update = time(NULL);
    }
    if (examine_cleaning(job)) {
        // Who holds a job is told by its reason alone: the user who held it may release it.
        if (job->priority == 0 && is_held_reason(job->state_reason)) {
            hold_as_slurm_says(entry, PB(HOLD__HOLD_HELD), job);
            return true;
        }
        set_reason(job, WAIT_CLEANING);
        hold(entry, PB(HOLD__HOLD_OTHER), "the job's former run is still being cleaned up");
        return true;
    }
    if (!job->part_ptr) {
        hold(entry, PB(HOLD__HOLD_PARTITION), "the job's partition is gone");
        return true;
    }
    bool independent = job_independent(job);
    if (!IS_JOB_PENDING(job))
        return false;
    if (job->priority == 0) {
        if (!is_held_reason(job->state_reason))
            set_reason(job, WAIT_HELD);
        hold_as_slurm_says(entry, PB(HOLD__HOLD_HELD), job);
        return true;
    }
    if (!independent) {
        if (job->state_reason == WAIT_HELD || job->state_reason == WAIT_HELD_USER)
            set_reason(job, WAIT_DEPENDENCY); // released behind a dependency
        hold_dependent(job, entry);
        return true;
    }
    if (was_held && (job->state_reason == WAIT_ARRAY_TASK_LIMIT ||
                     job->state_reason == WAIT_RESERVATION || job->state_reason == WAIT_CLEANING))
        set_reason(job, WAIT_NO_REASON);
    if (job->deadline && job->deadline != NO_VAL && !compat_deadline_ok(job))
        return false;
    if (job->het_job_id) {
        hold(entry, PB(HOLD__HOLD_OTHER), "heterogeneous jobs are not supported");
        return true;
    }
    if (!job_malleable(job, &malleable, problem, sizeof(problem))) {
        hold(entry, PB(HOLD__HOLD_OTHER), problem);
        return true;
    }
    if (!is_within_some_qos(job, entry, was_held))
        return true;
    // Slurm clears its limit reason when it finds the limit satisfied. That was tested with the
    // fewest nodes; it refused a start on those that were chosen.
    if (refusal_shown && job->state_reason == WAIT_NO_REASON)
        set_reason(job, entry->word);
    (void)burst_buffer_ready(job, entry);
    return true;
}
