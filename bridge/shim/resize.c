// SPDX-License-Identifier: GPL-2.0-or-later
#include "resize.h"

#include <signal.h>
#include <stdarg.h>

#include "allocation.h"
#include "jobs.h"
#include "nodes.h"

#define HELPER_NAME "schedbridge-resize"
// Only administrators can write this comment, so no user's job is taken for a helper.
#define HELPER_MARK "schedbridge: nodes for job "

__attribute__((format(printf, 3, 4))) static verdict_t verdict(pb_outcome_t outcome, int code,
                                                               const char *format, ...)
{
    verdict_t said = {.outcome = outcome, .code = code};
    va_list args;
    va_start(args, format);
    vsnprintf(said.text, sizeof(said.text), format, args);
    va_end(args);
    return said;
}

#define APPLIED verdict(PB(OUTCOME__OUTCOME_APPLIED), 0, "%s", "")
#define INVALID(...) verdict(PB(OUTCOME__OUTCOME_INVALID), 0, __VA_ARGS__)
#define REFUSED(code, ...) verdict(PB(OUTCOME__OUTCOME_REFUSED), code, __VA_ARGS__)
#define BUSY(...) verdict(PB(OUTCOME__OUTCOME_BUSY), ESLURM_NODES_BUSY, __VA_ARGS__)

typedef struct {
    bitstr_t *after, *added;
    uint32_t width, removed;
    bitoff_t head;
} change_t;

static bool is_applied(const verdict_t *said)
{
    return said->outcome == PB(OUTCOME__OUTCOME_APPLIED);
}

bool resize_is_permitted(void)
{
    return permit_job_expansion() && permit_job_shrink();
}

bool resize_is_helper(const job_record_t *job)
{
    return job->admin_comment && !xstrcmp(job->name, HELPER_NAME) &&
           !strncmp(job->admin_comment, HELPER_MARK, sizeof(HELPER_MARK) - 1);
}

// ---------------------------------------------------------------- sets a job had before it grew

// Going back to one is allowed even where its width breaks the job's own rule: after the loss of a
// node there may be no other way back from growth that failed.
#define MOST_FORMER 64

static struct {
    uint32_t job;
    uint64_t nodes;
} former[MOST_FORMER];
static unsigned next_former;

static void remember(const job_record_t *job)
{
    former[next_former].job = compat_job_id(job);
    former[next_former].nodes = nodes_print(job->node_bitmap);
    next_former = (next_former + 1) % MOST_FORMER;
}

static bool had_before(const job_record_t *job, bitstr_t *nodes)
{
    uint64_t print = nodes_print(nodes);
    for (unsigned i = 0; i < MOST_FORMER; i++) {
        if (former[i].job == compat_job_id(job) && former[i].nodes == print)
            return true;
    }
    return false;
}

// ---------------------------------------------------------------- may it be resized so?

static verdict_t judge_job(const job_record_t *job)
{
    if (job->het_job_id)
        return REFUSED(ESLURM_NOT_SUPPORTED, "heterogeneous jobs are not resized");
    if (IS_JOB_SUSPENDED(job))
        return REFUSED(ESLURM_JOB_SUSPENDED, "the job is suspended");
    if (!IS_JOB_RUNNING(job) || job->job_state & (JOB_REQUEUE | JOB_REQUEUE_HOLD))
        return REFUSED(ESLURM_NOT_SUPPORTED, "the job does not run");
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
    uint32_t least = MAX(1, malleable->min_nodes);
    if (change->width < least || change->width > malleable->max_nodes)
        return INVALID("%u nodes given, the job allows %u to %u", change->width, least,
                       malleable->max_nodes);
    if (!malleable_allows(malleable, change->width))
        return INVALID("%u nodes given, which is not %s", change->width, malleable->constraint);
    return APPLIED;
}

static bool overlap(bitstr_t *a, bitstr_t *b)
{
    for (bitoff_t at = 0; (at = compat_next_bit(a, at)) >= 0; at++) {
        if (bit_test(b, at))
            return true;
    }
    return false;
}

static bool is_switched_off(bitstr_t *nodes)
{
    for (bitoff_t at = 0; (at = compat_next_bit(nodes, at)) >= 0; at++) {
        const node_record_t *node = compat_node((int)at);
        if (IS_NODE_POWERED_DOWN(node) || IS_NODE_POWERING_DOWN(node))
            return true;
    }
    return false;
}

// What Slurm would not test for the helper, and what would cost a cancelled record in accounting.
static verdict_t judge_added(const job_record_t *job, const change_t *change, const char *names)
{
    const job_details_t *details = job->details;
    if (!permit_job_expansion())
        return REFUSED(ESLURM_NOT_SUPPORTED, "SchedulerParameters lacks permit_job_expansion");
    if (!bit_super_set(change->added, job->part_ptr->node_bitmap))
        return INVALID("%.60s: not all nodes are in partition %.60s", names, job->part_ptr->name);
    if (details->exc_node_bitmap && overlap(change->added, details->exc_node_bitmap))
        return INVALID("%.60s: the job excludes some of these nodes", names);
    if (job->end_time < time(NULL) + 60)
        return REFUSED(ESLURM_INVALID_TIME_LIMIT, "the job ends within a minute");
    if (is_switched_off(change->added))
        return REFUSED(ESLURM_NODE_NOT_AVAIL, "some of the nodes are switched off");
    bool whole = (details->whole_node & WHOLE_NODE_REQUIRED) != 0;
    if (overlap(change->added, cg_node_bitmap) ||
        (whole && !bit_super_set(change->added, idle_node_bitmap)))
        return BUSY("%.80s: some of these nodes are in use", names);
    return APPLIED;
}

static verdict_t judge(const job_record_t *job, const change_t *change, const char *names)
{
    uint32_t added = (uint32_t)bit_set_count(change->added);
    if (added && change->removed)
        return INVALID("nodes are added and removed at once");
    if (!bit_test(change->after, change->head))
        return INVALID("%s is the head of the job and stays", compat_node((int)change->head)->name);
    if (job->gres_list_req || job->gres_list_alloc)
        return REFUSED(ESLURM_NOT_SUPPORTED, "Slurm does not resize jobs with generic resources");
    return added ? judge_added(job, change, names) : APPLIED;
}

static bool holds(const job_record_t *job, bitstr_t *nodes)
{
    return bit_super_set(nodes, job->node_bitmap) && bit_super_set(job->node_bitmap, nodes);
}

// Slurm's success is not enough: some requests it takes for no change at all.
static verdict_t compared(const job_record_t *job, const change_t *change)
{
    if (holds(job, change->after))
        return APPLIED;
    return REFUSED(SLURM_ERROR, "Slurm says it is done, but the job holds %u nodes, not %u",
                   (unsigned)bit_set_count(job->node_bitmap), change->width);
}

// ---------------------------------------------------------------- more nodes

// CPUs to have on each added node: as many as on the head.
static uint16_t cpus_on(const job_record_t *job, bitoff_t head)
{
    const struct job_resources *held = job->job_resrcs;
    bool whole = (job->details->whole_node & WHOLE_NODE_REQUIRED) != 0;
    if (whole || !held->cpus || !bit_test(held->node_bitmap, head))
        return 1; // of a whole node all are given
    return MAX(1, held->cpus[bit_set_count_range(held->node_bitmap, 0, head)]);
}

// An allocation without a script or a shell, of the same kind as the job's.
static job_desc_msg_t *helper_request(const job_record_t *job, const change_t *change)
{
    const job_details_t *details = job->details;
    uint32_t nodes = (uint32_t)bit_set_count(change->added);
    job_desc_msg_t *asked = xmalloc(sizeof(*asked));
    slurm_init_job_desc_msg(asked);
    asked->name = xstrdup(HELPER_NAME);
    asked->admin_comment = xstrdup_printf(HELPER_MARK "%u", compat_job_id(job));
    asked->dependency = xstrdup_printf("expand:%u", compat_job_id(job));
    asked->user_id = job->user_id;
    asked->group_id = job->group_id;
    asked->account = xstrdup(job->account);
    asked->qos = xstrdup(job->qos_ptr ? job->qos_ptr->name : NULL);
    asked->wckey = xstrdup(job->wckey);
    asked->partition = xstrdup(job->part_ptr->name);
    asked->reservation = xstrdup(job->resv_name);
    asked->alloc_node = xstrdup(job->alloc_node);
    asked->work_dir = xstrdup(details->work_dir ? details->work_dir : "/");
    asked->features = xstrdup(details->features);
    asked->mcs_label = xstrdup(job->mcs_label);
    asked->req_nodes = bitmap2node_name(change->added);
    asked->min_nodes = asked->max_nodes = asked->num_tasks = nodes;
    asked->ntasks_per_node = 1;
    asked->cpus_per_task = asked->pn_min_cpus = cpus_on(job, change->head);
    asked->min_cpus = nodes * asked->cpus_per_task;
    asked->pn_min_memory = details->pn_min_memory;
    asked->core_spec = details->core_spec;
    if (details->whole_node & WHOLE_NODE_REQUIRED)
        asked->shared = 0;
    compat_copy_identity(asked, job);
    return asked;
}

static void cancel(job_record_t *helper)
{
    if (helper && !IS_JOB_FINISHED(helper))
        (void)job_signal(helper, SIGKILL, 0, slurm_conf.slurm_user_id, false);
}

static verdict_t refusal(int code, const char *words)
{
    pb_outcome_t outcome = code == ESLURM_NODES_BUSY          ? PB(OUTCOME__OUTCOME_BUSY)
                           : code == ESLURM_ACCOUNTING_POLICY ? PB(OUTCOME__OUTCOME_LIMITED)
                                                              : PB(OUTCOME__OUTCOME_REFUSED);
    bool more = words && words[0];
    return verdict(outcome, code, "%s%s%.80s", slurm_strerror(code), more ? ": " : "",
                   more ? words : "");
}

static int update(uint32_t job_id, job_desc_msg_t *asked)
{
    slurm_msg_t message;
    slurm_msg_t_init(&message);
    message.data = asked;
    compat_update_of(asked, job_id);
    return update_job(&message, slurm_conf.slurm_user_id, false);
}

// Slurm cuts the helper's limit to whole minutes; a reservation that begins in the job's last
// minute must be seen, too.
static uint32_t minutes_left(const job_record_t *job)
{
    return (uint32_t)((job->end_time - time(NULL) + 59) / 60);
}

static verdict_t start_helper(job_record_t *helper, const job_record_t *job, const char *names)
{
    if (IS_JOB_RUNNING(helper)) // by Slurm itself, where slurm.conf lacks "defer"
        return APPLIED;
    pb_start_t start = SCHEDBRIDGE__V1__START__INIT;
    start.nodes = (char *)names;
    start.partition = job->part_ptr->name;
    helper->time_limit = minutes_left(job);
    return start_job(helper, &start);
}

static verdict_t merge(job_record_t *job, job_record_t *helper, const change_t *change)
{
    job_desc_msg_t asked;
    if (!holds(helper, change->added))
        return REFUSED(ESLURM_NODES_BUSY, "Slurm gave other nodes: %.100s", helper->nodes);
    slurm_init_job_desc_msg(&asked);
    asked.min_nodes = 0;
    remember(job);
    int code = update(compat_job_id(helper), &asked);
    return code == SLURM_SUCCESS ? compared(job, change) : refusal(code, "not merged");
}

static verdict_t add_nodes(job_record_t *job, const change_t *change)
{
    job_record_t *helper = NULL;
    char *problem = NULL;
    job_desc_msg_t *asked = helper_request(job, change);
    int code = job_allocate(asked, 0, 0, NULL, 1, job->user_id, false, &helper, &problem,
                            SLURM_PROTOCOL_VERSION);
    verdict_t said = code == SLURM_SUCCESS && helper ? start_helper(helper, job, asked->req_nodes)
                                                     : refusal(code, problem);
    if (is_applied(&said))
        said = merge(job, helper, change);
    if (!is_applied(&said))
        cancel(helper);
    xfree(problem);
    slurm_free_job_desc_msg(asked);
    return said;
}

// ---------------------------------------------------------------- fewer nodes

static verdict_t remove_nodes(job_record_t *job, const change_t *change)
{
    job_desc_msg_t asked;
    char *names = bitmap2node_name(change->after);
    // Slurm takes the very list that the user asked for at submission for no change at all.
    if (!xstrcmp(names, job->details->req_nodes)) {
        char *spelled = xstrdup_printf("%s,%s", names, compat_node((int)change->head)->name);
        xfree(names);
        names = spelled;
    }
    slurm_init_job_desc_msg(&asked);
    asked.req_nodes = names;
    int code = update(compat_job_id(job), &asked);
    xfree(names);
    return code == SLURM_SUCCESS ? compared(job, change) : refusal(code, NULL);
}

// ---------------------------------------------------------------- both

static verdict_t carry_out(job_record_t *job, const change_t *change)
{
    verdict_t said = change->removed ? remove_nodes(job, change) : add_nodes(job, change);
    last_job_update = last_node_update = time(NULL);
    info("bridge: resize %pJ to %u nodes: %s", job, change->width,
         is_applied(&said) ? job->nodes : said.text);
    return said;
}

verdict_t resize_job(job_record_t *job, const pb_resize_t *wanted)
{
    malleable_t malleable;
    char problem[sizeof(((verdict_t *)0)->text)];
    change_t change = {0};
    verdict_t said = judge_job(job);
    if (!is_applied(&said))
        return said;
    if (!job_malleable(job, &malleable, problem, sizeof(problem)))
        return INVALID("%s", problem);
    if (!malleable.max_nodes)
        return INVALID("the job is not malleable");
    if (!nodes_named(wanted->nodes, &change.after))
        return INVALID("unknown nodes: %.100s", wanted->nodes);
    if (holds(job, change.after)) {
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
    said = judge_width(job, &malleable, &change);
    if (is_applied(&said))
        said = judge(job, &change, wanted->nodes);
    if (is_applied(&said))
        said = carry_out(job, &change);
    FREE_NULL_BITMAP(change.after);
    FREE_NULL_BITMAP(change.added);
    return said;
}

// ---------------------------------------------------------------- left behind

bool resize_is_stray(const job_record_t *job)
{
    return resize_is_helper(job) && !IS_JOB_FINISHED(job);
}

static int clear(void *record, void *unused)
{
    job_record_t *job = record;
    (void)unused;
    if (resize_is_stray(job)) {
        info("bridge: %pJ was to give its nodes to another job and was left behind: cancelled",
             job);
        cancel(job);
    }
    return 0;
}

void resize_clear_strays(void)
{
    list_for_each_ro(job_list, clear, NULL);
}
