// SPDX-License-Identifier: GPL-2.0-or-later
#include "resize/expand.h"

#include <signal.h>

#include "rules/job_limits.h"

#define HELPER_NAME "schedbridge-resize"
// Only administrators can write this comment, so no user's job is taken for a helper.
#define HELPER_MARK "schedbridge: nodes for job "

bool expand_is_helper(const job_record_t *job)
{
    return job->admin_comment && !xstrcmp(job->name, HELPER_NAME) &&
           !strncmp(job->admin_comment, HELPER_MARK, sizeof(HELPER_MARK) - 1);
}

// ---------------------------------------------------------------- Slurm's updates

bool job_holds(const job_record_t *job, bitstr_t *nodes)
{
    return bit_super_set(nodes, job->node_bitmap) && bit_super_set(job->node_bitmap, nodes);
}

static verdict_t refusal(int code, const char *words)
{
    bool more = words && words[0];
    verdict_t verdict =
        REFUSED(code, "%s%s%.80s", slurm_strerror(code), more ? ": " : "", more ? words : "");
    if (code == ESLURM_NODES_BUSY)
        verdict.outcome = PB(OUTCOME__OUTCOME_BUSY);
    if (code == ESLURM_ACCOUNTING_POLICY)
        verdict.outcome = PB(OUTCOME__OUTCOME_LIMITED);
    return verdict;
}

verdict_t job_update(job_record_t *job, const job_record_t *of, job_desc_msg_t *asked,
                     bitstr_t *wanted)
{
    slurm_msg_t message;
    slurm_msg_t_init(&message);
    message.data = asked;
    compat_update_of(asked, compat_job_id(of));
    int code = update_job(&message, slurm_conf.slurm_user_id, false);
    if (code != SLURM_SUCCESS)
        return refusal(code, NULL);
    if (!job_holds(job, wanted))
        return REFUSED(SLURM_ERROR, "Slurm reports success, but the job holds %d nodes, not %d",
                       (int)bit_set_count(job->node_bitmap), (int)bit_set_count(wanted));
    return APPLIED;
}

// ---------------------------------------------------------------- the helper

// An allocation without a script or a shell, of the same kind as the job's.
static job_desc_msg_t *helper_request(const job_record_t *job, bitstr_t *added)
{
    const job_details_t *details = job->details;
    uint32_t nodes = (uint32_t)bit_set_count(added);
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
    asked->req_nodes = bitmap2node_name(added);
    asked->min_nodes = asked->max_nodes = asked->num_tasks = nodes;
    // One task and CPU per node; Slurm adds the rest of each whole node.
    asked->ntasks_per_node = asked->cpus_per_task = asked->pn_min_cpus = 1;
    asked->min_cpus = nodes;
    asked->pn_min_memory = details->pn_min_memory;
    asked->core_spec = details->core_spec;
    asked->shared = 0;
    compat_copy_identity(asked, job);
    return asked;
}

static void cancel(job_record_t *helper)
{
    if (helper && !IS_JOB_FINISHED(helper))
        (void)job_signal(helper, SIGKILL, 0, slurm_conf.slurm_user_id, false);
}

// Slurm cuts the helper's limit to whole minutes; a reservation that begins in the job's last
// minute must be seen, too.
static uint32_t minutes_left(const job_record_t *job)
{
    return (uint32_t)((job->end_time - time(NULL) + 59) / 60);
}

static verdict_t start_helper(job_record_t *helper, const job_record_t *job, const char *names,
                              start_job_t *start)
{
    if (IS_JOB_RUNNING(helper)) // by Slurm itself, where slurm.conf lacks "defer"
        return APPLIED;
    pb_start_t on_added = SCHEDBRIDGE__V1__START__INIT;
    on_added.nodes = (char *)names;
    on_added.partition = job->part_ptr->name;
    helper->time_limit = minutes_left(job);
    return start(helper, &on_added);
}

typedef struct {
    bitstr_t *nodes, *cores;
} held_cores_t;

static held_cores_t cores_of(const job_record_t *job)
{
    const struct job_resources *held = job->job_resrcs;
    return (held_cores_t){.nodes = bit_copy(held->node_bitmap),
                          .cores = held->core_bitmap ? bit_copy(held->core_bitmap) : NULL};
}

// The first core of a node in such a bitmap; -1: the job does not hold the node.
static bitoff_t first_core(bitstr_t *nodes, bitoff_t node)
{
    bitoff_t first = 0;
    if (!bit_test(nodes, node))
        return -1;
    for (bitoff_t at = 0; (at = compat_next_bit(nodes, at)) >= 0 && at < node; at++)
        first += compat_node((int)at)->tot_cores;
    return first;
}

// Slurm 24.11 merges the core bitmaps of the jobs regardless of their nodes: steps on the last
// nodes would have no cores.
static void mend_cores(job_record_t *job, const held_cores_t parts[2])
{
    struct job_resources *held = job->job_resrcs;
    if (!held->core_bitmap || !parts[0].cores || !parts[1].cores)
        return;
    bitoff_t to = 0;
    for (bitoff_t at = 0; (at = compat_next_bit(held->node_bitmap, at)) >= 0; at++) {
        uint16_t cores = compat_node((int)at)->tot_cores;
        bitoff_t from[2] = {first_core(parts[0].nodes, at), first_core(parts[1].nodes, at)};
        for (uint16_t core = 0; core < cores; core++, to++) {
            bool own = false;
            for (int part = 0; part < 2; part++)
                own |= from[part] >= 0 && bit_test(parts[part].cores, from[part] + core);
            if (own)
                bit_set(held->core_bitmap, to);
            else
                bit_clear(held->core_bitmap, to);
        }
    }
}

static verdict_t merge(job_record_t *job, job_record_t *helper, bitstr_t *added)
{
    verdict_t others = REFUSED(ESLURM_NODES_BUSY, "Slurm gave other nodes: %.100s",
                               helper->nodes ? helper->nodes : "");
    bitstr_t *all = bit_copy(job->node_bitmap);
    job_desc_msg_t asked;
    bit_or(all, added);
    slurm_init_job_desc_msg(&asked);
    asked.min_nodes = 0;
    held_cores_t parts[2] = {cores_of(job), cores_of(helper)};
    verdict_t verdict = job_holds(helper, added) ? job_update(job, helper, &asked, all) : others;
    if (is_applied(&verdict))
        mend_cores(job, parts);
    for (int part = 0; part < 2; part++) {
        FREE_NULL_BITMAP(parts[part].nodes);
        FREE_NULL_BITMAP(parts[part].cores);
    }
    FREE_NULL_BITMAP(all);
    return verdict;
}

verdict_t expand_job(job_record_t *job, bitstr_t *added, start_job_t *start)
{
    job_record_t *helper = NULL;
    char *problem = NULL;
    job_desc_msg_t *asked = helper_request(job, added);
    int code = job_allocate(asked, 0, 0, NULL, 1, job->user_id, false, &helper, &problem,
                            SLURM_PROTOCOL_VERSION);
    verdict_t verdict = code == SLURM_SUCCESS && helper
                            ? start_helper(helper, job, asked->req_nodes, start)
                            : refusal(code, problem);
    if (is_applied(&verdict))
        verdict = job_limits_judge(job, helper->tres_alloc_cnt);
    if (is_applied(&verdict))
        verdict = merge(job, helper, added);
    if (!is_applied(&verdict))
        cancel(helper);
    xfree(problem);
    slurm_free_job_desc_msg(asked);
    return verdict;
}

// ---------------------------------------------------------------- left behind

bool expand_is_stray(const job_record_t *job)
{
    return expand_is_helper(job) && !IS_JOB_FINISHED(job);
}

static int clear(void *record, void *unused)
{
    job_record_t *job = record;
    (void)unused;
    if (expand_is_stray(job)) {
        info("bridge: %pJ, the helper of an unfinished resize, was left behind: cancelled", job);
        cancel(job);
    }
    return 0;
}

void expand_clear_strays(void)
{
    list_for_each_ro(job_list, clear, NULL);
}
