// SPDX-License-Identifier: GPL-2.0-or-later
#include "decisions/announce.h"

#include "common/records.h"
#include "common/throttle.h"

#define MAX_TEXT 160
// A start further ahead is a defect of the planner.
#define FURTHEST_S ((int64_t)10 * 366 * 24 * 3600)

static uint32_t slurm_reason(pb_reason_t code, const job_record_t *job)
{
    switch (code) {
    case PB(REASON_CODE__REASON_PRIORITY):
        return WAIT_PRIORITY;
    case PB(REASON_CODE__REASON_LICENCES):
        return WAIT_LICENSES;
    case PB(REASON_CODE__REASON_RESERVATION):
    case PB(REASON_CODE__REASON_MAINTENANCE):
        return job->resv_name ? WAIT_RESERVATION : WAIT_NODE_NOT_AVAIL;
    case PB(REASON_CODE__REASON_NODES_DOWN):
        return WAIT_NODE_NOT_AVAIL;
    case PB(REASON_CODE__REASON_BEGIN_TIME):
        return WAIT_TIME;
    case PB(REASON_CODE__REASON_ARRAY_LIMIT):
        return WAIT_ARRAY_TASK_LIMIT;
    case PB(REASON_CODE__REASON_PARTITION):
        return job->part_ptr && job->part_ptr->state_up == PARTITION_DOWN       ? WAIT_PART_DOWN
               : job->part_ptr && job->part_ptr->state_up == PARTITION_INACTIVE ? WAIT_PART_INACTIVE
                                                                                : WAIT_PART_CONFIG;
    case PB(REASON_CODE__REASON_NEVER):
    case PB(REASON_CODE__REASON_BAD_REQUEST):
        return FAIL_CONSTRAINTS;
    case PB(REASON_CODE__REASON_OTHER):
        return WAIT_NO_REASON;
    default:
        // Also for a limit of the service: Slurm's limit reasons are about its own limits, and it
        // clears them when it finds those satisfied.
        return WAIT_RESOURCES;
    }
}

// Whether Slurm itself holds the job and has set a reason that its own code depends on.
static bool slurm_knows_better(const job_record_t *job, const sent_job_t *entry, pb_reason_t code)
{
    if (job->priority == 0 || code == PB(REASON_CODE__REASON_HELD) ||
        code == PB(REASON_CODE__REASON_DEPENDENCY))
        return true;
    if (code == PB(REASON_CODE__REASON_BAD_REQUEST) || code == PB(REASON_CODE__REASON_NEVER))
        return false;
    return entry->hold != PB(HOLD__HOLD_NONE) && job->state_reason != WAIT_NO_REASON &&
           job->state_reason != WAIT_RESOURCES && job->state_reason != WAIT_PRIORITY;
}

// Text for users' terminals is short and printable.
static char *clean(const char *text)
{
    char line[MAX_TEXT + 1];
    return plain(line, sizeof(line), text)[0] ? xstrdup(line) : NULL;
}

// The unavailable nodes among those that the job names, as Slurm writes them; NULL: none.
static char *unavailable(const job_record_t *job)
{
    bitstr_t *named = job->details->req_node_bitmap;
    if (!named || bit_super_set(named, avail_node_bitmap))
        return NULL;
    bitstr_t *missing = bit_alloc(bit_size(named));
    for (bitoff_t at = 0; (at = compat_next_bit(named, at)) >= 0; at++) {
        if (!bit_test(avail_node_bitmap, at))
            bit_set(missing, at);
    }
    char *names = bitmap2node_name(missing);
    FREE_NULL_BITMAP(missing);
    return names;
}

// The description beside Slurm's reason: none if the reason says all, Slurm's sentence if it has
// one, the service's text if that says more.
static char *sentence(uint32_t reason, const pb_pending_t *pending, const job_record_t *job)
{
    char *names, *text;
    switch (reason) {
    case WAIT_LICENSES:
    case WAIT_RESERVATION:
    case WAIT_TIME:
    case WAIT_ARRAY_TASK_LIMIT:
    case WAIT_PART_DOWN:
    case WAIT_PART_INACTIVE:
        return NULL;
    case WAIT_NODE_NOT_AVAIL:
        if (pending->code == PB(REASON_CODE__REASON_MAINTENANCE))
            return xstrdup("ReqNodeNotAvail, Reserved for maintenance");
        if (pending->code == PB(REASON_CODE__REASON_RESERVATION))
            return xstrdup("ReqNodeNotAvail, May be reserved for other job");
        names = unavailable(job);
        text = names ? xstrdup_printf("ReqNodeNotAvail, UnavailableNodes:%s", names)
                     : clean(pending->text);
        xfree(names);
        return text;
    default:
        return clean(pending->text);
    }
}

static void show(job_record_t *job, uint32_t reason, char *text)
{
    if (job->state_reason == reason && !xstrcmp(job->state_desc, text)) {
        xfree(text);
        return;
    }
    job->state_reason = reason;
    xfree(job->state_desc);
    job->state_desc = text;
    last_job_update = time(NULL);
}

static void set_reason(job_record_t *job, const sent_job_t *entry, const pb_pending_t *pending)
{
    if (pending->code == PB(REASON_CODE__REASON_REFUSED)) {
        // The text is of an error, for `explain`: users of squeue get Slurm's word for it, and its
        // sentence if it has set one. None: it has not tried yet, or has no word.
        uint32_t word = entry->word == WAIT_NO_REASON ? WAIT_RESOURCES : entry->word;
        if (job->state_reason != word || word == WAIT_RESOURCES)
            show(job, word, NULL);
        return;
    }
    uint32_t reason = slurm_reason(pending->code, job);
    show(job, reason, sentence(reason, pending, job));
}

void announce_refusal(job_record_t *job, sent_job_t *entry, uint32_t word)
{
    bool shown = entry->word != WAIT_NO_REASON && job->state_reason == entry->word;
    if (shown && entry->word != word && IS_JOB_PENDING(job) && job->priority)
        show(job, word == WAIT_NO_REASON ? WAIT_RESOURCES : word, NULL);
    entry->word = word;
}

static bool known_nodes(const char *names)
{
    bitstr_t *nodes = NULL;
    bool known = nodes_named(names, &nodes);
    FREE_NULL_BITMAP(nodes);
    return known;
}

verdict_t announce_start(job_record_t *job, sent_job_t *entry, const pb_planned_start_t *planned)
{
    time_t now = time(NULL);
    // The plan is slightly older than now: a start in the meantime is no error.
    if (planned->start_s < now - slurm_conf.msg_timeout)
        return INVALID("the planned start lies in the past");
    if (planned->start_s > now + FURTHEST_S)
        return INVALID("the planned start lies more than ten years ahead");
    if (planned->nodes[0] && !known_nodes(planned->nodes))
        return INVALID("unknown nodes");
    if (planned->partition[0] && !find_part_record(planned->partition))
        return INVALID("unknown partition");
    char *nodes = planned->nodes[0] ? planned->nodes : NULL;
    if (job->start_time != planned->start_s || xstrcmp(job->sched_nodes, nodes)) {
        job->start_time = planned->start_s;
        xfree(job->sched_nodes);
        job->sched_nodes = xstrdup(nodes);
        last_job_update = now;
    }
    entry->announced = true;
    if (planned->reason && !slurm_knows_better(job, entry, planned->reason->code))
        set_reason(job, entry, planned->reason);
    return APPLIED;
}

// Whether a job that waits for its begin time will not start then: the announcement is about later.
static bool misses_begin(const job_record_t *job, const sent_job_t *entry, pb_reason_t code)
{
    if (entry->hold != PB(HOLD__HOLD_BEGIN_TIME) || job->details->begin_time <= time(NULL))
        return false;
    switch (code) {
    case PB(REASON_CODE__REASON_RESOURCES):
    case PB(REASON_CODE__REASON_LICENCES):
    case PB(REASON_CODE__REASON_LIMIT):
    case PB(REASON_CODE__REASON_POWER):
    case PB(REASON_CODE__REASON_NEVER):
        return true;
    default:
        return false;
    }
}

verdict_t announce_pending(job_record_t *job, sent_job_t *entry, const pb_pending_t *pending)
{
    bool misses = misses_begin(job, entry, pending->code);
    // For a job without a start Slurm shows the begin time as its start; NO_VAL is shown as "None".
    time_t start = misses ? (time_t)NO_VAL : 0;
    if (job->start_time != start || job->sched_nodes) {
        job->start_time = start;
        xfree(job->sched_nodes);
        last_job_update = time(NULL);
    }
    entry->announced = misses;
    // Until then its reason is Slurm's BeginTime; Slurm does not know fixed starts.
    if (misses ? job_option(job, "fixed-start") != NULL
               : !slurm_knows_better(job, entry, pending->code))
        set_reason(job, entry, pending);
    return APPLIED;
}
