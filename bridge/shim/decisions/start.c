// SPDX-License-Identifier: GPL-2.0-or-later
#include "decisions/start.h"

#include "common/records.h"
#include "rules/examine.h"
#include "rules/moldable.h"
#include "rules/qos_choice.h"
#include "rules/raised_limit.h"
#include "rules/reservations.h"
#include "rules/room.h"
#include "rules/unmodelled.h"
#include "sharing/coscheduling.h"

// ---------------------------------------------------------------- preconditions

static const char *words_for(const job_record_t *job)
{
    return job->state_desc && job->state_desc[0] ? job->state_desc
                                                 : compat_reason_string(job->state_reason);
}

static bool qos_is_valid(const job_record_t *job)
{
    assoc_mgr_lock_t locks = {.assoc = READ_LOCK, .qos = READ_LOCK};
    if (!job->qos_ptr || !job->assoc_ptr || !(accounting_enforce & ACCOUNTING_ENFORCE_QOS) ||
        job->limit_set.qos)
        return true;
    assoc_mgr_lock(&locks);
    bool valid = job->qos_ptr->id < (uint32_t)g_qos_count && job->assoc_ptr->usage &&
                 job->assoc_ptr->usage->valid_qos &&
                 bit_test(job->assoc_ptr->usage->valid_qos, job->qos_ptr->id);
    assoc_mgr_unlock(&locks);
    return valid;
}

// The tests that select_nodes() leaves to its caller.
static verdict_t judge_job(job_record_t *job, part_record_t *part)
{
    if (examine_cleaning(job))
        return REFUSED(ESLURM_DISABLED, "the job's former run is still being cleaned up");
    if (job->het_job_id)
        return REFUSED(ESLURM_NOT_SUPPORTED, "heterogeneous jobs are not supported");
    if (!job_independent(job))
        return REFUSED(ESLURM_DEPENDENCY, "%s", words_for(job));
    if (job->priority == 0)
        return REFUSED(ESLURM_JOB_HELD, "the job is held");
    uint32_t reason = examine_partition(job, part);
    if (reason != WAIT_NO_REASON) {
        verdict_t verdict =
            REFUSED(ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE, "%s", compat_reason_string(reason));
        verdict.word = reason;
        return verdict;
    }
    if (!qos_is_valid(job)) {
        job_fail_qos(job, __func__, false);
        last_job_update = time(NULL);
        return REFUSED(ESLURM_INVALID_QOS, "the job's QOS is not valid for its account");
    }
    if (job->deadline && job->deadline != NO_VAL && !compat_deadline_ok(job))
        return REFUSED(ESLURM_INVALID_TIME_LIMIT, "the job's deadline has passed");
    if (assoc_mgr_validate_assoc_id(acct_db_conn, job->assoc_id, accounting_enforce)) {
        job->state_reason = FAIL_ACCOUNT;
        xfree(job->state_desc);
        last_job_update = time(NULL);
        return REFUSED(ESLURM_INVALID_ACCOUNT, "the job's account is not valid");
    }
    return APPLIED;
}

// Checks the number of nodes. A malleable job may have bounds other than -N.
static verdict_t judge_count(const job_record_t *job, uint32_t nodes)
{
    malleable_t malleable;
    char problem[sizeof(((verdict_t *)0)->text)];
    uint32_t minimum = MAX(1, job->details->min_nodes);
    uint32_t maximum = job->details->max_nodes ? job->details->max_nodes : NO_VAL;
    if (!job_malleable(job, &malleable, problem, sizeof(problem)))
        return INVALID("%s", problem);
    if (malleable.min_nodes)
        minimum = malleable.min_nodes;
    if (malleable.max_nodes)
        maximum = malleable.max_nodes;
    if (nodes < minimum || nodes > maximum)
        return INVALID("%u nodes given, the job asks for %u to %u", nodes, minimum, maximum);
    if (!malleable_allows(&malleable, nodes))
        return INVALID("%u nodes given, which is not %s", nodes, malleable.constraint);
    return APPLIED;
}

// The CPUs of the job on each node, as numbers of Slurm's tasks; *tasks (to be freed) NULL: Slurm
// distributes them.
static verdict_t judge_uses(const job_record_t *job, const pb_start_t *start, bitstr_t *nodes,
                            uint16_t **tasks)
{
    const job_details_t *details = job->details;
    uint16_t size = details->cpus_per_task == NO_VAL16 ? 1 : MAX(1, details->cpus_per_task);
    uint64_t total = 0;
    *tasks = NULL;
    if (!COMPAT_TASKS_ON_NODES || !start->n_uses || (details->whole_node & WHOLE_NODE_REQUIRED))
        return APPLIED;
    *tasks = xcalloc((size_t)bit_set_count(nodes), sizeof(uint16_t));
    for (size_t i = 0; i < start->n_uses; i++) {
        const pb_node_use_t *use = start->uses[i];
        bitstr_t *named = NULL;
        if (!use->cpus || use->cpus % size || use->cpus / size >= NO_VAL16)
            return INVALID("%u CPUs on %.60s are not whole tasks of %u CPUs", use->cpus, use->nodes,
                           size);
        if (!nodes_named(use->nodes, &named) || !bit_super_set(named, nodes)) {
            FREE_NULL_BITMAP(named);
            return INVALID("CPUs on nodes that are not given: %.60s", use->nodes);
        }
        for (bitoff_t at = 0; (at = compat_next_bit(named, at)) >= 0; at++) {
            (*tasks)[bit_set_count_range(nodes, 0, at)] = (uint16_t)(use->cpus / size);
            total += use->cpus / size;
        }
        FREE_NULL_BITMAP(named);
    }
    for (int i = 0; i < bit_set_count(nodes); i++) {
        if (!(*tasks)[i])
            return INVALID("no CPUs given on some of %.60s", start->nodes);
    }
    if (total != details->num_tasks)
        return INVALID("%llu tasks given, the job asks for %u", (unsigned long long)total,
                       details->num_tasks);
    return APPLIED;
}

// The time limit to start the job with, in minutes: the service's, cut to the partition's. On fewer
// nodes than requested (`nodes`) it may be longer.
static verdict_t judge_limit(const job_record_t *job, const part_record_t *part,
                             const pb_start_t *start, uint32_t nodes, uint32_t *minutes)
{
    bool may_cut = job->time_min && job->time_min != NO_VAL;
    *minutes = job->time_limit;
    if (start->time_limit_s) {
        int64_t wanted = start->time_limit_s / 60;
        uint32_t maximum = molded_minutes(job, part, nodes);
        if (wanted > 0 && maximum && wanted <= maximum && (!may_cut || wanted >= job->time_limit)) {
            *minutes = *minutes == NO_VAL ? (uint32_t)wanted : MAX(*minutes, (uint32_t)wanted);
            return APPLIED;
        }
        if (!may_cut || wanted < job->time_min || wanted >= INFINITE)
            return INVALID("a time limit of %lld s, which the job does not allow",
                           (long long)start->time_limit_s);
        *minutes = MIN(*minutes, (uint32_t)wanted);
    }
    if (may_cut && part->max_time != INFINITE && *minutes != NO_VAL)
        *minutes = MIN(*minutes, MAX(part->max_time, job->time_min));
    return APPLIED;
}

// ---------------------------------------------------------------- the narrowed request

typedef struct {
    bitstr_t *required, *excluded;
    uint32_t min_nodes, max_nodes, time_limit, state_reason, task_dist, req_switch;
    molded_t molded;
    uint16_t *tasks;
    char *state_desc;
    part_record_t *part;
    char *features_use;
    list_t *feature_list_use;
    uint8_t share_res, whole_node;
} kept_t;

// Exactly these nodes; all of them, if Slurm would choose them for the whole request; or any of
// them that satisfy it. Slurm checks some conditions only on nodes that it chooses itself: it takes
// nodes that a request requires even if they are not contiguous.
typedef enum { EXACTLY, ALL_OF, AMONG } scope_t;

typedef struct {
    part_record_t *part;
    bitstr_t *nodes;
    scope_t scope;
    uint16_t *tasks;        // on each node; NULL: Slurm distributes them
    uint32_t minutes;       // the time limit
    bool shares;            // its CPUs with another job, now or later
    job_record_t *host;     // NULL: it gets CPUs of its own
    slurmdb_qos_rec_t *qos; // the present one of the tasks of an array that are left
} terms_t;

static void narrow(job_record_t *job, const terms_t *terms, kept_t *kept)
{
    job_details_t *details = job->details;
    part_record_t *part = terms->part;
    bitstr_t *nodes = terms->nodes;
    scope_t scope = terms->scope;
    *kept = (kept_t){.required = details->req_node_bitmap,
                     .excluded = details->exc_node_bitmap,
                     .min_nodes = details->min_nodes,
                     .max_nodes = details->max_nodes,
                     .molded = molded_of(details),
                     .time_limit = job->time_limit,
                     .state_reason = job->state_reason,
                     .state_desc = xstrdup(job->state_desc),
                     .task_dist = details->task_dist,
                     .req_switch = job->req_switch,
                     .tasks = *compat_tasks_on_nodes(details),
                     .part = job->part_ptr,
                     .features_use = details->features_use,
                     .feature_list_use = details->feature_list_use,
                     .share_res = details->share_res,
                     .whole_node = details->whole_node};
    bitstr_t *required = scope == EXACTLY ? nodes : kept->required;
    if (scope == EXACTLY)
        molded_fit(job, (uint32_t)bit_set_count(nodes));
    details->req_node_bitmap = required ? bit_copy(required) : NULL;
    // With more names than the job may have nodes, some of them suffice.
    if (scope != EXACTLY && required && kept->max_nodes &&
        (uint32_t)bit_set_count(required) > kept->max_nodes)
        bit_and(details->req_node_bitmap, nodes);
    details->exc_node_bitmap = bit_copy(nodes);
    bit_not(details->exc_node_bitmap);
    if (kept->excluded)
        bit_or(details->exc_node_bitmap, kept->excluded);
    if (scope != AMONG)
        details->min_nodes = details->max_nodes = (uint32_t)bit_set_count(nodes);
    details->features_use = details->features;
    details->feature_list_use = details->feature_list;
    if (terms->shares)
        coscheduling_begin(job, terms->host, nodes);
    if (terms->tasks) {
        details->task_dist = (details->task_dist & ~SLURM_DIST_STATE_BASE) | SLURM_DIST_ARBITRARY;
        *compat_tasks_on_nodes(details) = terms->tasks;
    }
    // The service has already counted leaf switches and the job's wait for few of them. Slurm,
    // which would only start counting now, must not refuse the nodes.
    if (scope != AMONG) {
        job->req_switch = 0;
        job->best_switch = true;
    }
    job->time_limit = terms->minutes;
    if (job->deadline && job->deadline != NO_VAL) {
        time_t now = time(NULL), left = job->deadline > now ? job->deadline - now : 0;
        uint32_t until = (uint32_t)MIN(left / 60, NO_VAL - 1);
        uint32_t limit = job->time_limit;
        if (limit == NO_VAL || limit == INFINITE)
            limit = part->default_time != NO_VAL ? part->default_time : part->max_time;
        job->time_limit = limit == INFINITE ? until : MIN(limit, until);
    }
    job->part_ptr = part;
}

// Restores the original values in the record of an array's remaining tasks, which was copied from
// the narrowed record.
static void restore_rest(job_record_t *rest, const kept_t *kept)
{
    job_details_t *details = rest->details;
    FREE_NULL_BITMAP(details->req_node_bitmap);
    FREE_NULL_BITMAP(details->exc_node_bitmap);
    details->req_node_bitmap = kept->required ? bit_copy(kept->required) : NULL;
    details->exc_node_bitmap = kept->excluded ? bit_copy(kept->excluded) : NULL;
    details->min_nodes = kept->min_nodes;
    details->max_nodes = kept->max_nodes;
    molded_restore(details, &kept->molded);
    if (details->task_dist != kept->task_dist) {
        details->task_dist = kept->task_dist;
        *compat_tasks_on_nodes(details) = NULL; // the started record's
    }
    reservations_leave(rest);
    details->share_res = kept->share_res;
    details->whole_node = kept->whole_node;
    rest->req_switch = kept->req_switch;
    rest->time_limit = kept->time_limit;
    if (rest->part_ptr != kept->part) {
        rest->part_ptr = kept->part;
        (void)job_limits_check(&rest, false);
    }
}

static void restore(job_record_t *job, kept_t *kept, bool started)
{
    job_details_t *details = job->details;
    FREE_NULL_BITMAP(details->req_node_bitmap);
    FREE_NULL_BITMAP(details->exc_node_bitmap);
    details->req_node_bitmap = kept->required;
    details->exc_node_bitmap = kept->excluded;
    details->min_nodes = kept->min_nodes;
    details->max_nodes = kept->max_nodes;
    molded_restore(details, &kept->molded);
    details->task_dist = kept->task_dist;
    *compat_tasks_on_nodes(details) = kept->tasks;
    job->req_switch = kept->req_switch;
    if (!started) {
        job->time_limit = kept->time_limit;
        details->features_use = kept->features_use;
        details->feature_list_use = kept->feature_list_use;
        details->share_res = kept->share_res;
        details->whole_node = kept->whole_node;
        if (job->part_ptr != kept->part) {
            job->part_ptr = kept->part;
            (void)job_limits_check(&job, false);
        }
    }
}

// Slurm's reason for a refusal, if it is about the job. Most reasons are about the narrowed request
// and mean nothing to the user.
static uint32_t word_for(const job_record_t *job, int code)
{
    switch (code) {
    case ESLURM_ACCOUNTING_POLICY:
    case ESLURM_BURST_BUFFER_WAIT:
    case ESLURM_LICENSES_UNAVAILABLE:
    case ESLURM_FED_JOB_LOCK:
        return job->state_reason;
    case ESLURM_RESERVATION_BUSY:
    case ESLURM_RESERVATION_NOT_USABLE:
        return job->state_reason;
    case ESLURM_NODE_NOT_AVAIL:
        // The down nodes were chosen for it; reservations of others are a reason of their own.
        return job->state_reason == WAIT_NODE_NOT_AVAIL &&
                       !xstrcasestr(job->state_desc, "UnavailableNodes")
                   ? job->state_reason
                   : WAIT_NO_REASON;
    case ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE:
        // It is specific about QOS, groups and numbers of nodes, but not about accounts.
        return job->state_reason == WAIT_QOS || job->state_reason == WAIT_ACCOUNT ||
                       job->state_reason == WAIT_PART_NODE_LIMIT
                   ? job->state_reason
                   : WAIT_PART_CONFIG;
    default:
        return WAIT_NO_REASON;
    }
}

// Why Slurm found no nodes. If they were to be all of some nodes, and nothing is in the way there,
// these may never do, so that the service must try others. The nodes of a host are checked before.
static verdict_t no_nodes(const job_record_t *job, const terms_t *terms, int code)
{
    if (terms->scope == ALL_OF && (terms->host || nodes_have_room(job, terms->part, terms->nodes)))
        return REFUSED(code, "%s: not all conditions of the request hold on these nodes",
                       slurm_strerror(code));
    return verdict_of(PB(OUTCOME__OUTCOME_BUSY), code, "%s", slurm_strerror(code));
}

static verdict_t refusal(job_record_t *job, kept_t *kept, const terms_t *terms, int code)
{
    uint32_t word = word_for(job, code);
    bool own = word == job->state_reason; // with Slurm's sentence, if it has one
    verdict_t verdict = word != WAIT_NO_REASON && code != ESLURM_LICENSES_UNAVAILABLE
                            ? REFUSED(code, "%s: %s", slurm_strerror(code),
                                      own ? words_for(job) : compat_reason_string(word))
                        : code == ESLURM_NODES_BUSY ? no_nodes(job, terms, code)
                                                    : REFUSED(code, "%s", slurm_strerror(code));
    if (code == ESLURM_ACCOUNTING_POLICY)
        verdict.outcome = PB(OUTCOME__OUTCOME_LIMITED);
    verdict.word = code == ESLURM_NODES_BUSY ? WAIT_RESOURCES : word;
    if (word != WAIT_NO_REASON && !own) {
        job->state_reason = word;
        xfree(job->state_desc);
        last_job_update = time(NULL);
    } else if (word == WAIT_NO_REASON && IS_JOB_PENDING(job) && job->priority) {
        job->state_reason = kept->state_reason;
        xfree(job->state_desc);
        job->state_desc = kept->state_desc;
        kept->state_desc = NULL;
    }
    xfree(kept->state_desc);
    return verdict;
}

// ---------------------------------------------------------------- the start

static void launch(job_record_t *job)
{
    char *nodes = job->nodes ? job->nodes : "";
    last_job_update = time(NULL);
    info("bridge: start %pJ NodeList=%s #CPUs=%u Partition=%s", job, nodes, job->total_cpus,
         job->part_ptr->name);
    if (job->batch_flag == 0)
        srun_allocate(job);
    else if (!IS_JOB_CONFIGURING(job))
        launch_job(job);
    rebuild_job_part_list(job);
}

// As in Slurm's scheduler, whose queue has one entry with the preferred features and one without.
static int select_preferred(job_record_t *job)
{
    job_details_t *details = job->details;
    if (!details->prefer)
        return reservations_select(job);
    details->features_use = details->prefer;
    details->feature_list_use = details->prefer_list;
    int code = reservations_select(job);
    if (code == SLURM_SUCCESS)
        return code;
    details->features_use = details->features;
    details->feature_list_use = details->feature_list;
    return reservations_select(job);
}

static verdict_t start_narrowed(job_record_t *job, const terms_t *terms)
{
    kept_t kept;
    uint32_t asked = asked_minutes(job, terms->part);
    uint32_t array_job_id = job_is_array_head(job) ? job->array_job_id : 0;
    if (fed_mgr_job_lock(job))
        return REFUSED(ESLURM_FED_JOB_LOCK, "another cluster of the federation has the job");
    coscheduling_restore(job); // of an earlier run
    narrow(job, terms, &kept);
    (void)job_limits_check(&job, false); // adjusts the request to the partition
    job->last_sched_eval = time(NULL);
    int code = terms->scope == EXACTLY ? compat_select_nodes(job) : select_preferred(job);
    if (array_job_id) {
        job_record_t *rest = find_job_record(array_job_id);
        if (rest && rest != job && rest->details) {
            restore_rest(rest, &kept);
            rest->qos_ptr = terms->qos;
        }
    }
    restore(job, &kept, code == SLURM_SUCCESS);
    if (terms->shares)
        coscheduling_end(job, terms->host, terms->nodes, code == SLURM_SUCCESS);
    if (code != SLURM_SUCCESS) {
        fed_mgr_job_unlock(job);
        return refusal(job, &kept, terms, code);
    }
    xfree(kept.state_desc);
    if (job->time_limit > asked)
        raised_limit_note(job, asked);
    if (terms->shares)
        coscheduling_note(job, terms->host, kept.share_res, kept.whole_node);
    fed_mgr_job_start(job, job->start_time);
    launch(job);
    return APPLIED;
}

// Checks the other jobs that run, or may run, on the nodes.
static verdict_t judge_sharing(const job_record_t *job, const pb_start_t *start, terms_t *terms)
{
    if (!start->host_job_id[0]) {
        terms->shares =
            terms->scope != AMONG && coscheduling_will_host(job, terms->part, terms->nodes);
        return coscheduling_judge_third(job, terms->part, terms->nodes);
    }
    terms->shares = true;
    terms->host = job_by_wire_id(start->host_job_id);
    if (terms->scope == AMONG)
        return INVALID("a start on the CPUs of a job must name nodes of it");
    return coscheduling_judge(job, terms->host, terms->part, terms->nodes);
}

// Lets Slurm check nodes against the parts of the request that the wire cannot state. Where it is
// given the tasks on each node it takes the nodes as they are.
static verdict_t judge_unmodelled(const job_record_t *job, terms_t *terms)
{
    if (!terms->tasks)
        terms->scope = ALL_OF;
    else if (job->details->contiguous && !nodes_are_contiguous(terms->nodes))
        return REFUSED(ESLURM_NODES_BUSY, "the nodes are not contiguous");
    return APPLIED;
}

static verdict_t judge_start(job_record_t *job, const pb_start_t *start, terms_t *terms,
                             const char *names)
{
    bool exactly = terms->scope != AMONG;
    uint32_t width = exactly ? (uint32_t)bit_set_count(terms->nodes) : 0;
    verdict_t verdict = judge_limit(job, terms->part, start, width, &terms->minutes);
    if (is_applied(&verdict) && exactly)
        verdict = judge_count(job, width);
    if (is_applied(&verdict) && !bit_super_set(terms->nodes, terms->part->node_bitmap))
        verdict = INVALID("%.60s: not all nodes are in partition %.60s", names, terms->part->name);
    if (is_applied(&verdict) && exactly)
        verdict = judge_uses(job, start, terms->nodes, &terms->tasks);
    if (is_applied(&verdict) && exactly && job_is_unmodelled(job))
        verdict = judge_unmodelled(job, terms);
    if (is_applied(&verdict))
        verdict = judge_sharing(job, start, terms);
    if (is_applied(&verdict))
        verdict = judge_job(job, terms->part);
    return verdict;
}

// A start under the job's present QOS.
static verdict_t start_under_qos(job_record_t *job, const pb_start_t *start, part_record_t *part,
                                 slurmdb_qos_rec_t *qos)
{
    terms_t terms = {
        .part = part, .scope = !start->nodes[0] && start->choice[0] ? AMONG : EXACTLY, .qos = qos};
    const char *names = terms.scope == AMONG ? start->choice : start->nodes;
    if (!nodes_named(names, &terms.nodes))
        return INVALID("unknown nodes: %.100s", names);
    verdict_t verdict = judge_start(job, start, &terms, names);
    if (is_applied(&verdict))
        verdict = start_narrowed(job, &terms);
    xfree(terms.tasks);
    FREE_NULL_BITMAP(terms.nodes);
    return verdict;
}

// Whether the start may be possible under another QOS: busy nodes are that under any. A time limit
// that is invalid under one may be allowed by the next.
static bool may_be_its_qos(const verdict_t *verdict)
{
    return verdict->outcome == PB(OUTCOME__OUTCOME_REFUSED) ||
           verdict->outcome == PB(OUTCOME__OUTCOME_LIMITED) ||
           verdict->outcome == PB(OUTCOME__OUTCOME_INVALID);
}

verdict_t start_job(job_record_t *job, const pb_start_t *start)
{
    if (!job->part_ptr)
        return INVALID("the job's partition is gone");
    part_record_t *part = start->partition[0] ? find_part_record(start->partition) : job->part_ptr;
    if (!part || !examine_has_partition(job, part))
        return INVALID("the job may not use partition %.64s", start->partition);
    slurmdb_qos_rec_t *present = job->qos_ptr;
    verdict_t verdict, tried;
    unsigned which = 0;
    do {
        qos_choose(job, which);
        tried = start_under_qos(job, start, part, present);
        // The start is invalid only if it is so under all of them.
        if (!which || tried.outcome != PB(OUTCOME__OUTCOME_INVALID))
            verdict = tried;
    } while (may_be_its_qos(&tried) && IS_JOB_PENDING(job) && ++which < qos_choices(job));
    // An invalid QOS has made Slurm drop the list and the present one.
    if (!is_applied(&verdict) && job->qos_ptr)
        job->qos_ptr = present;
    return verdict;
}
