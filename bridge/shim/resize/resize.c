// SPDX-License-Identifier: GPL-2.0-or-later
#include "resize/resize.h"

#include "common/lock_scope.h"
#include "common/records.h"
#include "report/allocation.h"
#include "rules/job_limits.h"
#include "rules/raised_limit.h"
#include "rules/unmodelled.h"
#include "rules/wall_limit.h"

#define BUSY(...) verdict_of(PB(OUTCOME__OUTCOME_BUSY), ESLURM_NODES_BUSY, __VA_ARGS__)

typedef struct {
    bitstr_t *after, *added;
    uint32_t width, removed;
    bitoff_t head;
} change_t;

bool resize_is_permitted(void)
{
    return permit_job_expansion() && permit_job_shrink();
}

// ---------------------------------------------------------------- sets a job had before it grew

// A return to one is allowed even if its width breaks the job's own rule: after the loss of a node
// it may be the only way back from a failed growth.
#define MAX_FORMER 64

static struct {
    uint32_t job;
    uint64_t nodes;
} former[MAX_FORMER];
static unsigned next_former;

static void remember(const job_record_t *job)
{
    former[next_former].job = compat_job_id(job);
    former[next_former].nodes = nodes_fingerprint(job->node_bitmap);
    next_former = (next_former + 1) % MAX_FORMER;
}

static bool had_before(const job_record_t *job, bitstr_t *nodes)
{
    uint64_t fingerprint = nodes_fingerprint(nodes);
    for (unsigned i = 0; i < MAX_FORMER; i++) {
        if (former[i].job == compat_job_id(job) && former[i].nodes == fingerprint)
            return true;
    }
    return false;
}

// ---------------------------------------------------------------- may it be resized to this?

static verdict_t judge_job(const job_record_t *job)
{
    if (job->het_job_id)
        return REFUSED(ESLURM_NOT_SUPPORTED, "heterogeneous jobs are not resized");
    if (job_binds_its_nodes(job))
        return REFUSED(ESLURM_NOT_SUPPORTED, "the job's request binds its nodes together");
    if (IS_JOB_SUSPENDED(job))
        return REFUSED(ESLURM_JOB_SUSPENDED, "the job is suspended");
    if (!IS_JOB_RUNNING(job) || job->job_state & (JOB_REQUEUE | JOB_REQUEUE_HOLD))
        return REFUSED(ESLURM_NOT_SUPPORTED, "the job is not running");
    if (IS_JOB_CONFIGURING(job))
        return BUSY("the job's nodes are being prepared");
    if (!job->part_ptr || !job->node_bitmap || !job->job_resrcs || bit_ffs(job->node_bitmap) < 0)
        return REFUSED(ESLURM_NOT_SUPPORTED, "the job's partition or nodes are gone");
    return APPLIED;
}

static verdict_t judge_width(const job_record_t *job, const malleable_t *malleable,
                             const change_t *change)
{
    if (change->removed && had_before(job, change->after))
        return APPLIED;
    uint32_t minimum = MAX(1, malleable->min_nodes);
    if (change->width < minimum || change->width > malleable->max_nodes)
        return INVALID("%u nodes given, the job allows %u to %u", change->width, minimum,
                       malleable->max_nodes);
    if (!malleable_allows(malleable, change->width))
        return INVALID("%u nodes given, which is not %s", change->width, malleable->constraint);
    return APPLIED;
}

// Slurm cannot take back a node on which the job has no CPU, e.g. if there are fewer tasks than
// nodes.
static bool has_cpus_everywhere(const job_record_t *job)
{
    const struct job_resources *held = job->job_resrcs;
    for (uint32_t i = 0; held->cpus && i < held->nhosts; i++) {
        if (!held->cpus[i])
            return false;
    }
    return true;
}

// Slurm powers nodes up for jobs that start on them, not for the helper, which ends at once.
static bool is_switched_off(bitstr_t *nodes)
{
    for (bitoff_t at = 0; (at = compat_next_bit(nodes, at)) >= 0; at++) {
        const node_record_t *node = compat_node((int)at);
        if (IS_NODE_POWERED_DOWN(node) || IS_NODE_POWERING_DOWN(node) || IS_NODE_POWERING_UP(node))
            return true;
    }
    return false;
}

static verdict_t judge_limits(job_record_t *job, const change_t *change)
{
    uint32_t reason = WAIT_NO_REASON, maximum = acct_policy_get_max_nodes(job, &reason);
    if (change->width > maximum)
        return LIMITED("%u nodes given, a limit in accounting (%s) lets the job have %u",
                       change->width, compat_reason_string(reason), maximum);
    return job_limits_foresee(job, change->added);
}

// Conditions that Slurm does not test for the helper, or whose failure would leave a cancelled
// record in accounting.
static verdict_t judge_added(job_record_t *job, const change_t *change, const char *names)
{
    const job_details_t *details = job->details;
    if (!permit_job_expansion())
        return REFUSED(ESLURM_NOT_SUPPORTED, "SchedulerParameters lacks permit_job_expansion");
    // A step on a new node waits for a prolog that only the helper had there; with Contain the
    // helper has a step at once, and Slurm merges no job that has one.
    if (slurm_conf.prolog_flags & PROLOG_FLAG_ALLOC)
        return REFUSED(ESLURM_NOT_SUPPORTED, "no job can grow with PrologFlags=Alloc or Contain");
    if (!bit_super_set(change->added, job->part_ptr->node_bitmap))
        return INVALID("%.60s: not all nodes are in partition %.60s", names, job->part_ptr->name);
    if (details->exc_node_bitmap && nodes_overlap(change->added, details->exc_node_bitmap))
        return INVALID("%.60s: the job excludes some of these nodes", names);
    if (job->end_time < time(NULL) + 60)
        return REFUSED(ESLURM_INVALID_TIME_LIMIT, "the job ends within a minute");
    if (is_switched_off(change->added))
        return REFUSED(ESLURM_NODE_NOT_AVAIL, "some of the nodes are powered down");
    // Slurm 24.11 loses track of which cores a merged job has on which node.
    if (!(details->whole_node & WHOLE_NODE_REQUIRED))
        return REFUSED(ESLURM_NOT_SUPPORTED, "only jobs that hold whole nodes can grow");
    // Nodes that a job has just given back are not shared before they have answered.
    if (nodes_overlap(change->added, cg_node_bitmap) ||
        !bit_super_set(change->added, share_node_bitmap) ||
        !bit_super_set(change->added, idle_node_bitmap))
        return BUSY("%.80s: some of these nodes are in use", names);
    return judge_limits(job, change);
}

static verdict_t judge(job_record_t *job, const change_t *change, const char *names)
{
    uint32_t added = (uint32_t)bit_set_count(change->added);
    if (added && change->removed)
        return INVALID("nodes are both added and removed");
    if (!bit_test(change->after, change->head))
        return INVALID("%s is the head of the job and cannot be removed",
                       compat_node((int)change->head)->name);
    if (job->gres_list_req || job->gres_list_alloc)
        return REFUSED(ESLURM_NOT_SUPPORTED, "Slurm does not resize jobs with generic resources");
    if (!has_cpus_everywhere(job))
        return REFUSED(ESLURM_NOT_SUPPORTED, "the job has no CPUs on some of its nodes");
    return added ? judge_added(job, change, names) : APPLIED;
}

// ---------------------------------------------------------------- fewer nodes

// On each node Slurm counts the jobs that do not share it, and does not decrement the count when
// such a job gives a node back: jobs that share would then start there late until slurmctld is
// restarted. Slurm itself marks the node as shared again, after the node has answered that the
// job's processes have ended.
static void mend_counts(const job_record_t *job, bitstr_t *removed, const uint16_t *before)
{
    unsigned which = 0;
    for (bitoff_t at = 0; (at = compat_next_bit(removed, at)) >= 0; at++, which++) {
        node_record_t *node = compat_node((int)at);
        bool gone = !bit_test(job->node_bitmap, at);
        if (gone && job->details->share_res == 0 && before[which] &&
            node->no_share_job_cnt == before[which])
            node->no_share_job_cnt--;
    }
}

// select/cons_tres records that the cores of removed nodes must be given back, does so when it next
// chooses nodes, and loses the record if any job ends before that: the nodes appear idle, but no
// job can start there until another one shrinks. A query of allocated resources makes it do so at
// once.
static void give_cores_back(void)
{
    (void)select_g_select_nodeinfo_set_all();
}

static uint16_t *counts_of(bitstr_t *nodes)
{
    unsigned which = 0;
    uint16_t *counts = xcalloc((size_t)bit_set_count(nodes), sizeof(*counts));
    for (bitoff_t at = 0; (at = compat_next_bit(nodes, at)) >= 0; at++)
        counts[which++] = compat_node((int)at)->no_share_job_cnt;
    return counts;
}

static verdict_t remove_nodes(job_record_t *job, const change_t *change)
{
    job_desc_msg_t asked;
    bitstr_t *removed = bit_copy(change->after);
    bit_not(removed);
    bit_and(removed, job->node_bitmap);
    uint16_t *before = counts_of(removed);
    char *names = bitmap2node_name(change->after);
    // Slurm treats the list that the user requested at submission as no change at all.
    if (!xstrcmp(names, job->details->req_nodes)) {
        char *spelled = xstrdup_printf("%s,%s", names, compat_node((int)change->head)->name);
        xfree(names);
        names = spelled;
    }
    slurm_init_job_desc_msg(&asked);
    asked.req_nodes = names;
    verdict_t verdict = job_update(job, job, &asked, change->after);
    xfree(names);
    mend_counts(job, removed, before);
    give_cores_back();
    FREE_NULL_BITMAP(removed);
    xfree(before);
    return verdict;
}

// The job's new limit in minutes, if it may run until then on fewer nodes; NO_VAL: it stays.
static uint32_t raised_minutes(const job_record_t *job, const change_t *change, int64_t end_s)
{
    int64_t now = time(NULL), left = (int64_t)job->end_time - now;
    uint32_t longest = longest_minutes(job, job->part_ptr);
    if (job->time_limit == NO_VAL || job->time_limit == INFINITE || left <= 0 ||
        end_s <= (int64_t)job->end_time)
        return NO_VAL;
    int64_t maximum = left * (change->width + change->removed) / change->width;
    int64_t minutes = job->time_limit + (MIN(end_s - now, maximum) - left + 59) / 60;
    if (longest != INFINITE)
        minutes = MIN(minutes, longest);
    return minutes > job->time_limit && minutes < INFINITE ? (uint32_t)minutes : NO_VAL;
}

// Otherwise it would be killed for the nodes that it lost to others.
static void raise_limit(job_record_t *job, const change_t *change, uint32_t minutes)
{
    job_desc_msg_t asked;
    uint32_t before = job->time_limit;
    uint16_t set_by = job->limit_set.time;
    if (minutes == NO_VAL)
        return;
    slurm_init_job_desc_msg(&asked);
    asked.time_limit = minutes;
    verdict_t verdict = job_update(job, job, &asked, change->after);
    // Slurm marks a limit set by an administrator and would never apply MaxWall to it again.
    job->limit_set.time = set_by;
    if (is_applied(&verdict))
        raised_limit_note(job, before);
    else
        info("bridge: the time limit of %pJ stays: %s", job, verdict.text);
}

// ---------------------------------------------------------------- both

static verdict_t carry_out(job_record_t *job, const change_t *change, int64_t end_s,
                           start_job_t *start)
{
    if (!change->removed)
        remember(job);
    int64_t began_us = clock_us();
    uint32_t minutes = change->removed ? raised_minutes(job, change, end_s) : NO_VAL;
    verdict_t verdict =
        change->removed ? remove_nodes(job, change) : expand_job(job, change->added, start);
    if (is_applied(&verdict))
        raise_limit(job, change, minutes);
    last_job_update = last_node_update = time(NULL);
    info("bridge: resize %pJ to %u nodes in %.2f ms: %s", job, change->width,
         (double)(clock_us() - began_us) / 1000.0,
         is_applied(&verdict) ? job->nodes : verdict.text);
    return verdict;
}

verdict_t resize_job(job_record_t *job, const pb_resize_t *wanted, start_job_t *start)
{
    malleable_t malleable;
    char problem[sizeof(((verdict_t *)0)->text)];
    change_t change = {0};
    verdict_t verdict = judge_job(job);
    if (!is_applied(&verdict))
        return verdict;
    if (!job_malleable(job, &malleable, problem, sizeof(problem)))
        return INVALID("%s", problem);
    if (!malleable.max_nodes)
        return INVALID("the job is not malleable");
    if (malleable.no_resize)
        return INVALID("the job keeps its nodes: it was submitted with --no-resize");
    if (!nodes_named(wanted->nodes, &change.after))
        return INVALID("unknown nodes: %.100s", wanted->nodes);
    if (job_holds(job, change.after)) {
        FREE_NULL_BITMAP(change.after);
        return APPLIED;
    }
    change.added = bit_copy(job->node_bitmap);
    bit_not(change.added);
    bit_and(change.added, change.after);
    change.width = (uint32_t)bit_set_count(change.after);
    change.removed = (uint32_t)bit_set_count(job->node_bitmap) +
                     (uint32_t)bit_set_count(change.added) - change.width;
    change.head = allocation_head(job);
    verdict = judge_width(job, &malleable, &change);
    if (is_applied(&verdict))
        verdict = judge(job, &change, wanted->nodes);
    if (is_applied(&verdict))
        verdict = carry_out(job, &change, wanted->end_s, start);
    FREE_NULL_BITMAP(change.after);
    FREE_NULL_BITMAP(change.added);
    return verdict;
}
