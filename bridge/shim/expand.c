// SPDX-License-Identifier: GPL-2.0-or-later
#include "expand.h"

#include <signal.h>

#define HELPER_NAME "schedbridge-resize"
// Only administrators can write this comment, so no user's job is taken for a helper.
#define HELPER_MARK "schedbridge: nodes for job "

static const verdict_t applied = {.outcome = PB(OUTCOME__OUTCOME_APPLIED)};

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
    verdict_t said = {.outcome = PB(OUTCOME__OUTCOME_REFUSED), .code = code};
    bool more = words && words[0];
    if (code == ESLURM_NODES_BUSY)
        said.outcome = PB(OUTCOME__OUTCOME_BUSY);
    if (code == ESLURM_ACCOUNTING_POLICY)
        said.outcome = PB(OUTCOME__OUTCOME_LIMITED);
    snprintf(said.text, sizeof(said.text), "%s%s%.80s", slurm_strerror(code), more ? ": " : "",
             more ? words : "");
    return said;
}

verdict_t job_update(job_record_t *job, const job_record_t *of, job_desc_msg_t *asked,
                     bitstr_t *wanted)
{
    slurm_msg_t message;
    slurm_msg_t_init(&message);
    message.data = asked;
    compat_update_of(asked, compat_job_id(of));
    int code = update_job(&message, slurm_conf.slurm_user_id, false);
    verdict_t said = applied;
    if (code != SLURM_SUCCESS)
        return refusal(code, NULL);
    if (!job_holds(job, wanted)) {
        said.outcome = PB(OUTCOME__OUTCOME_REFUSED);
        said.code = SLURM_ERROR;
        snprintf(said.text, sizeof(said.text),
                 "Slurm says it is done, but the job holds %d nodes, not %d",
                 (int)bit_set_count(job->node_bitmap), (int)bit_set_count(wanted));
    }
    return said;
}

// ---------------------------------------------------------------- the helper

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
static job_desc_msg_t *helper_request(const job_record_t *job, bitstr_t *added, bitoff_t head)
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
    asked->ntasks_per_node = 1;
    asked->cpus_per_task = asked->pn_min_cpus = cpus_on(job, head);
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

// Slurm cuts the helper's limit to whole minutes; a reservation that begins in the job's last
// minute must be seen, too.
static uint32_t minutes_left(const job_record_t *job)
{
    return (uint32_t)((job->end_time - time(NULL) + 59) / 60);
}

static verdict_t start_helper(job_record_t *helper, const job_record_t *job, const char *names)
{
    if (IS_JOB_RUNNING(helper)) // by Slurm itself, where slurm.conf lacks "defer"
        return applied;
    pb_start_t start = SCHEDBRIDGE__V1__START__INIT;
    start.nodes = (char *)names;
    start.partition = job->part_ptr->name;
    helper->time_limit = minutes_left(job);
    return start_job(helper, &start);
}

static verdict_t merge(job_record_t *job, job_record_t *helper, bitstr_t *added)
{
    verdict_t others = {.outcome = PB(OUTCOME__OUTCOME_REFUSED), .code = ESLURM_NODES_BUSY};
    bitstr_t *all = bit_copy(job->node_bitmap);
    job_desc_msg_t asked;
    snprintf(others.text, sizeof(others.text), "Slurm gave other nodes: %.100s",
             helper->nodes ? helper->nodes : "");
    bit_or(all, added);
    slurm_init_job_desc_msg(&asked);
    asked.min_nodes = 0;
    verdict_t said = job_holds(helper, added) ? job_update(job, helper, &asked, all) : others;
    FREE_NULL_BITMAP(all);
    return said;
}

verdict_t expand_job(job_record_t *job, bitstr_t *added, bitoff_t head)
{
    job_record_t *helper = NULL;
    char *problem = NULL;
    job_desc_msg_t *asked = helper_request(job, added, head);
    int code = job_allocate(asked, 0, 0, NULL, 1, job->user_id, false, &helper, &problem,
                            SLURM_PROTOCOL_VERSION);
    verdict_t said = code == SLURM_SUCCESS && helper ? start_helper(helper, job, asked->req_nodes)
                                                     : refusal(code, problem);
    if (said.outcome == PB(OUTCOME__OUTCOME_APPLIED))
        said = merge(job, helper, added);
    if (said.outcome != PB(OUTCOME__OUTCOME_APPLIED))
        cancel(helper);
    xfree(problem);
    slurm_free_job_desc_msg(asked);
    return said;
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
        info("bridge: %pJ was to give its nodes to another job and was left behind: cancelled",
             job);
        cancel(job);
    }
    return 0;
}

void expand_clear_strays(void)
{
    list_for_each_ro(job_list, clear, NULL);
}
