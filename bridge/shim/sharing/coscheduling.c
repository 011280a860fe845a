// SPDX-License-Identifier: GPL-2.0-or-later
#include "sharing/coscheduling.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/records.h"
#include "rules/note.h"
#include "sharing/hosting.h"

#define NOTE "SPANK_SCHEDBRIDGE_SHARES="
#define NOBODY (NO_VAL - 1) // a user id that no user has
#define BUSY(...) verdict_of(PB(OUTCOME__OUTCOME_BUSY), ESLURM_NODES_BUSY, __VA_ARGS__)

static coschedule_t standard = COSCHEDULE_NEVER;
static coschedule_scope_t scope = COSCHEDULE_SAME_USER;

void coscheduling_configure(const settings_t *settings)
{
    standard = settings->coschedule;
    scope = settings->coschedule_scope;
}

bool coscheduling_is_shared(const part_record_t *part)
{
    return part->max_share == 2; // with SHARED_FORCE another bit would be set
}

// ---------------------------------------------------------------- notes

// The note of a job that was started to share: the number of its host (0: it is no guest), and the
// previous values of share_res and whole_node.
typedef struct {
    uint32_t host;
    uint8_t share_res, whole_node;
} shares_t;

static bool read_note(const job_record_t *job, shares_t *found)
{
    char rest;
    const char *text = note_text(job, NOTE);
    return text && sscanf(text, "%" SCNu32 ":%" SCNu8 ":%" SCNu8 "%c", &found->host,
                          &found->share_res, &found->whole_node, &rest) == 3;
}

static void write_note(job_record_t *job, const shares_t *shares)
{
    char text[32];
    snprintf(text, sizeof(text), "%u:%u:%u", shares->host, shares->share_res, shares->whole_node);
    note_write(job, NOTE, text);
}

// ---------------------------------------------------------------- what jobs request

// The user's request. A job that shares has WHOLE_NODE_USER as well.
static uint8_t asked_whole_node(const job_record_t *job)
{
    shares_t shares;
    return read_note(job, &shares) ? shares.whole_node : job->details->whole_node;
}

// Also true for --exclusive=mcs and the like, and for --exclusive=user where users may share.
static bool is_exclusive(const job_record_t *job)
{
    const struct job_resources *held = job->job_resrcs;
    uint8_t asked = asked_whole_node(job);
    return (asked & ~WHOLE_NODE_USER) || (asked && scope != COSCHEDULE_SAME_USER) ||
           job->details->share_res == 0 || (held && (held->whole_node & WHOLE_NODE_REQUIRED));
}

static bool has_gres(const job_record_t *job)
{
    return job->gres_list_req || job->gres_list_alloc;
}

static coschedule_t wanted(const job_record_t *job)
{
    coschedule_t found = standard;
    char problem[8];
    const char *value = job_option(job, "coschedule");
    if (value && !coschedule_read(&found, value, problem, sizeof(problem)))
        return COSCHEDULE_NEVER;
    return found;
}

uint32_t coscheduling_slowdown(const job_record_t *job)
{
    uint32_t permille = 0;
    char problem[8];
    const char *value = job_option(job, "max-slowdown");
    return value && coschedule_read_slowdown(&permille, value, problem, sizeof(problem)) ? permille
                                                                                         : 0;
}

// Whether it holds all CPUs of all its nodes. Only then does Slurm place a guest on the same CPUs.
static bool holds_all(const job_record_t *job)
{
    const struct job_resources *held = job->job_resrcs;
    uint32_t which = 0;
    if (!held || !held->cpus || !job->node_bitmap)
        return false;
    for (bitoff_t at = 0; (at = compat_next_bit(job->node_bitmap, at)) >= 0; at++, which++) {
        if (which >= held->nhosts || held->cpus[which] < compat_node((int)at)->cpus_efctv)
            return false;
    }
    return which > 0;
}

// Only jobs that were started to share can be hosts: Slurm keeps other users' jobs off their nodes.
static bool can_host(const job_record_t *job)
{
    shares_t shares;
    return read_note(job, &shares) && job->part_ptr && coscheduling_is_shared(job->part_ptr) &&
           job->details->share_res == 1 && job->job_resrcs &&
           job->job_resrcs->node_req == NODE_CR_AVAILABLE && holds_all(job);
}

coschedule_t coscheduling_of(const job_record_t *job)
{
    coschedule_t found = wanted(job);
    bool runs = IS_JOB_RUNNING(job) && !IS_JOB_COMPLETING(job);
    if (is_exclusive(job) || has_gres(job) || (runs && !can_host(job)))
        return COSCHEDULE_NEVER;
    return found;
}

coschedule_t coscheduling_told(const job_record_t *job)
{
    coschedule_t found = coscheduling_of(job);
    bool stated = job_option(job, "coschedule") != NULL;
    return stated || found == COSCHEDULE_NEVER ? found : COSCHEDULE_UNSTATED;
}

// ---------------------------------------------------------------- pairs

static bool are_nodes_of(bitstr_t *nodes, const job_record_t *host)
{
    return nodes && host->node_bitmap && bit_super_set(nodes, host->node_bitmap);
}

job_record_t *coscheduling_host(const job_record_t *guest)
{
    shares_t shares, of_host;
    if (!IS_JOB_RUNNING(guest) || IS_JOB_COMPLETING(guest) || !read_note(guest, &shares) ||
        !shares.host)
        return NULL;
    job_record_t *host = find_job_record(shares.host);
    if (!host || host == guest || !host->details || !IS_JOB_RUNNING(host) ||
        IS_JOB_COMPLETING(host) || host->part_ptr != guest->part_ptr || !can_host(host) ||
        !read_note(host, &of_host) || of_host.host || // a guest cannot be a host
        !are_nodes_of(guest->node_bitmap, host))
        return NULL;
    return host;
}

typedef struct {
    bitstr_t *nodes;
    bool found;
} search_t;

static int look_for_guest(void *record, void *context)
{
    const job_record_t *job = record;
    search_t *search = context;
    if (!job->details || !job->node_bitmap || !coscheduling_host(job))
        return 0;
    for (bitoff_t at = 0; (at = compat_next_bit(job->node_bitmap, at)) >= 0; at++)
        search->found |= bit_test(search->nodes, at);
    return search->found ? -1 : 0; // a negative number ends the search
}

// Whether two or more jobs run on one of these nodes, in a partition in which jobs may share.
static bool may_have_guest(bitstr_t *nodes)
{
    bool found = false;
    list_itr_t *parts = list_iterator_create(part_list);
    for (part_record_t *part; !found && (part = list_next(parts));) {
        if (!coscheduling_is_shared(part) || !part->node_bitmap)
            continue;
        for (bitoff_t at = 0; !found && (at = compat_next_bit(nodes, at)) >= 0; at++)
            found = compat_node((int)at)->run_job_cnt > 1 && bit_test(part->node_bitmap, at);
    }
    list_iterator_destroy(parts);
    return found;
}

// The search visits all jobs, so it is made only if there may be a guest.
static bool has_guest(bitstr_t *nodes)
{
    search_t search = {.nodes = nodes};
    if (!may_have_guest(nodes))
        return false;
    (void)list_for_each_ro(job_list, look_for_guest, &search);
    return search.found;
}

static bool may_meet(const job_record_t *a, const job_record_t *b)
{
    switch (scope) {
    case COSCHEDULE_ALL:
        return true;
    case COSCHEDULE_SAME_ACCOUNT:
        return a->account && !xstrcmp(a->account, b->account);
    case COSCHEDULE_SAME_USER:
        break;
    }
    return a->user_id == b->user_id;
}

// Whether exactly `jobs` jobs run on each of the nodes, and none is completing or suspended there.
static bool has_jobs(bitstr_t *nodes, unsigned jobs)
{
    for (bitoff_t at = 0; (at = compat_next_bit(nodes, at)) >= 0; at++) {
        const node_record_t *node = compat_node((int)at);
        if (node->run_job_cnt != jobs || node->comp_job_cnt || node->sus_job_cnt)
            return false;
    }
    return true;
}

verdict_t coscheduling_judge(const job_record_t *job, const job_record_t *host,
                             const part_record_t *part, bitstr_t *nodes)
{
    if (!host || !host->details || !IS_JOB_RUNNING(host) || IS_JOB_COMPLETING(host))
        return BUSY("the host is no longer running");
    if (!coscheduling_is_shared(part) || host->part_ptr != part)
        return INVALID(
            "the host is not in partition %.40s, or the partition lacks OverSubscribe=YES:2",
            part->name);
    if (!coschedule_is_guest(wanted(job)))
        return INVALID("the job's user does not allow it to run as a guest");
    if (!coschedule_hosts(coscheduling_of(host)))
        return INVALID("the host does not allow a guest, or cannot have one");
    if (is_exclusive(job) || has_gres(job))
        return INVALID("a guest can have neither --exclusive nor GRES");
    if (!job->batch_flag || !job->details->requeue)
        return INVALID("a guest must be a batch job that may be requeued");
    if (!may_meet(job, host))
        return INVALID("the jobs are of different users (bridge_coschedule_scope)");
    if (!are_nodes_of(nodes, host))
        return BUSY("some of the nodes are not the host's");
    if (coscheduling_host(host))
        return INVALID("the host is a guest itself");
    if (!has_jobs(nodes, 1))
        return BUSY("the host is not alone on these nodes");
    return APPLIED;
}

verdict_t coscheduling_judge_third(const job_record_t *job, const part_record_t *part,
                                   bitstr_t *nodes)
{
    bool can_share = job->details->share_res == 1 || (part->max_share & SHARED_FORCE);
    if (can_share && has_guest(nodes))
        return BUSY("two jobs share some of the nodes already");
    return APPLIED;
}

bool coscheduling_will_host(const job_record_t *job, const part_record_t *part, bitstr_t *nodes)
{
    const job_details_t *details = job->details;
    uint64_t cpus = 0, asked = details->min_cpus == NO_VAL ? 0 : details->min_cpus;
    if (!coscheduling_is_shared(part) || !coschedule_hosts(wanted(job)) || is_exclusive(job) ||
        has_gres(job) || !has_jobs(nodes, 0))
        return false;
    for (bitoff_t at = 0; (at = compat_next_bit(nodes, at)) >= 0; at++)
        cpus += compat_node((int)at)->cpus_efctv;
    if (details->pn_min_cpus != NO_VAL)
        asked = MAX(asked, (uint64_t)details->pn_min_cpus * (uint64_t)bit_set_count(nodes));
    return asked >= cpus;
}

// ---------------------------------------------------------------- starts

// Slurm keeps a node that is held with WHOLE_NODE_USER for jobs of its owner. A guest of another
// user is let in while the node has no owner. After that the owner is a user that does not exist,
// so that no third job is let in, whichever of the two ends first.
static void set_owner(bitstr_t *nodes, uint32_t user_id, int jobs)
{
    for (bitoff_t at = 0; (at = compat_next_bit(nodes, at)) >= 0; at++) {
        node_record_t *node = compat_node((int)at);
        node->owner = user_id;
        node->owner_job_cnt += (uint16_t)jobs;
    }
}

void coscheduling_begin(job_record_t *job, const job_record_t *host, bitstr_t *nodes)
{
    job->details->share_res = 1;
    if (host && host->user_id != job->user_id)
        set_owner(nodes, NO_VAL, 0);
    else
        job->details->whole_node |= WHOLE_NODE_USER;
}

void coscheduling_end(job_record_t *job, job_record_t *host, bitstr_t *nodes, bool started)
{
    bool meets = host && host->user_id != job->user_id;
    if (meets && started) {
        job->details->whole_node |= WHOLE_NODE_USER;
        set_owner(nodes, NOBODY, 1);
    } else if (meets) {
        set_owner(nodes, host->user_id, 0);
    }
}

void coscheduling_note(job_record_t *job, job_record_t *host, uint8_t share_res, uint8_t whole_node)
{
    shares_t of_host, shares = {.share_res = share_res, .whole_node = whole_node};
    if (host)
        shares.host = compat_job_id(host);
    write_note(job, &shares);
    hosting_forget(job);
    if (host)
        hosting_open(host, time(NULL));
    else
        hosting_begin(job);
    // The host runs alone, so its own former host is gone, and may return as its guest.
    if (host && read_note(host, &of_host) && of_host.host) {
        of_host.host = 0;
        write_note(host, &of_host);
    }
}

// ---------------------------------------------------------------- guests that have left

#define LATEST_S 120 // a job's processes have ended by then

typedef struct {
    const job_record_t *gone, *host;
    bool found;
} others_t;

static bool has_left(const job_record_t *job)
{
    return !IS_JOB_RUNNING(job) && !IS_JOB_SUSPENDED(job) && !IS_JOB_COMPLETING(job);
}

static int look_for_other(void *record, void *context)
{
    const job_record_t *job = record;
    others_t *others = context;
    shares_t shares;
    if (job != others->gone && job->details && job->spank_job_env_size && !has_left(job) &&
        read_note(job, &shares) && shares.host == compat_job_id(others->host) &&
        are_nodes_of(job->node_bitmap, others->host)) // not left over from a former run of the host
        others->found = true;
    return others->found ? -1 : 0; // a negative number ends the search
}

bool coscheduling_has_left(const job_record_t *job)
{
    shares_t shares;
    return job->details && job->spank_job_env_size && has_left(job) && read_note(job, &shares) &&
           shares.host;
}

void coscheduling_leave(job_record_t *job)
{
    shares_t shares;
    time_t now = time(NULL);
    if (!coscheduling_has_left(job) || !read_note(job, &shares))
        return;
    job_record_t *host = find_job_record(shares.host);
    others_t others = {.gone = job, .host = host};
    shares.host = 0;
    write_note(job, &shares);
    if (!host || !host->details)
        return;
    (void)list_for_each_ro(job_list, look_for_other, &others);
    // The end is noticed late where slurmctld was down.
    if (!others.found)
        hosting_close(host, job->end_time > 0 ? MIN(now, job->end_time + LATEST_S) : now);
}

static int leave_one(void *record, void *context)
{
    (void)context;
    coscheduling_leave(record);
    return 0;
}

void coscheduling_leave_all(void)
{
    (void)list_for_each_ro(job_list, leave_one, NULL);
}

// ---------------------------------------------------------------- jobs that wait again

void coscheduling_restore(job_record_t *job)
{
    shares_t shares;
    if (!IS_JOB_PENDING(job) || IS_JOB_COMPLETING(job))
        return; // Slurm still counts it among the jobs that keep others off their nodes
    coscheduling_leave(job);
    // A forged note does no harm: the client could have requested the same openly.
    if (read_note(job, &shares) && job->details->share_res == 1) {
        job->details->share_res = shares.share_res;
        job->details->whole_node = shares.whole_node;
    }
    note_remove(job, NOTE);
    hosting_forget(job);
}

static int restore_one(void *record, void *context)
{
    job_record_t *job = record;
    (void)context;
    if (!job->details || !job->spank_job_env_size)
        return 0;
    coscheduling_leave(job);
    coscheduling_restore(job);
    return 0;
}

void coscheduling_restore_all(void)
{
    (void)list_for_each_ro(job_list, restore_one, NULL);
}
