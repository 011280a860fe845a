// SPDX-License-Identifier: GPL-2.0-or-later
// What the mock of slurmctld does where running jobs get other nodes.
#include <signal.h>

#include "slurm_mock.h"

bool permit_job_expansion(void) {
    return xstrcasestr(slurm_conf.sched_params, "permit_job_expansion") != NULL;
}

bool permit_job_shrink(void) {
    return xstrcasestr(slurm_conf.sched_params, "disable_job_shrink") == NULL;
}

identity_t *copy_identity(identity_t *id) {
    identity_t *copy = malloc(sizeof(*copy));
    *copy = *id;
    return copy;
}

void slurm_init_job_desc_msg(job_desc_msg_t *message) {
    *message = (job_desc_msg_t){.job_id = NO_VAL,
                                .group_id = NO_VAL,
                                .user_id = NO_VAL,
                                .max_nodes = NO_VAL,
                                .min_nodes = NO_VAL,
                                .min_cpus = NO_VAL,
                                .num_tasks = NO_VAL,
                                .time_limit = NO_VAL,
                                .shared = NO_VAL16};
}

void slurm_free_job_desc_msg(job_desc_msg_t *message) {
    char *const texts[] = {message->account,    message->admin_comment, message->alloc_node,
                           message->dependency, message->features,      message->mcs_label,
                           message->name,       message->partition,     message->qos,
                           message->req_nodes,  message->reservation,   message->wckey,
                           message->work_dir};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        free(texts[i]);
    free(message->id);
    free(message);
}

void slurm_msg_t_init(slurm_msg_t *message) {
    *message = (slurm_msg_t){0};
}

// Makes the helper: an allocation that waits for nothing.
int job_allocate(job_desc_msg_t *asked, int immediate, int will_run, will_run_response_msg_t **resp,
                 int allocate, uid_t user, bool cron, job_record_t **job, char **problem,
                 uint16_t version) {
    mock_needs("job_allocate", WRITE_LOCK, WRITE_LOCK);
    if (immediate || will_run || resp || !allocate || cron || version != SLURM_PROTOCOL_VERSION)
        mock_wrong("job_allocate in another way than salloc");
    if (user != asked->user_id || !asked->work_dir || !asked->partition || !asked->dependency)
        mock_wrong("a helper of somebody else, or without what Slurm needs");
    *job = NULL;
    if (mock.allocate_code) {
        *problem = xstrdup(mock.allocate_words);
        return mock.allocate_code;
    }
    job_record_t *helper = mock_job(mock.next_id++);
    mock.helpers++;
    free(helper->name);
    helper->name = xstrdup(asked->name);
    helper->admin_comment = xstrdup(asked->admin_comment);
    helper->user_id = asked->user_id;
    helper->resv_name = xstrdup(asked->reservation);
    helper->part_ptr = find_part_record(asked->partition);
    helper->batch_flag = 0;
    helper->details->min_nodes = asked->min_nodes;
    helper->details->max_nodes = asked->max_nodes;
    helper->details->num_tasks = asked->num_tasks;
    helper->details->cpus_per_task = asked->cpus_per_task;
    helper->id = asked->id;
    asked->id = NULL;
    *job = helper;
    if (mock.starts_at_once)
        mock_run(helper, 1, 4);
    return SLURM_SUCCESS;
}

int job_signal(job_record_t *job, uint16_t signal, uint16_t flags, uid_t user, bool preempt) {
    mock_needs("job_signal", WRITE_LOCK, WRITE_LOCK);
    if (signal != SIGKILL || flags || user != slurm_conf.slurm_user_id || preempt)
        mock_wrong("a job is cancelled in an odd way");
    job->job_state = IS_JOB_PENDING(job) ? JOB_CANCELLED : JOB_CANCELLED | JOB_COMPLETING;
    mock.cancelled++;
    return SLURM_SUCCESS;
}

static void hold(job_record_t *job, bitstr_t *nodes) {
    FREE_NULL_BITMAP(job->node_bitmap);
    job->node_bitmap = nodes;
    free(job->nodes);
    job->nodes = bitmap2node_name(nodes);
    job->node_cnt = (uint32_t)bit_set_count(nodes);
}

// As Slurm 24.11: the cores of both, one over the other.
static void merge_cores(struct job_resources *held, struct job_resources *added) {
    if (!held->core_bitmap || !added->core_bitmap)
        return;
    bitoff_t own = bit_size(held->core_bitmap), more = bit_size(added->core_bitmap);
    bitstr_t *cores = bit_alloc(own + more);
    for (bitoff_t at = 0; at < MAX(own, more); at++)
        cores->bit[at] =
            (at < own && held->core_bitmap->bit[at]) || (at < more && added->core_bitmap->bit[at]);
    bit_or(held->node_bitmap, added->node_bitmap);
    FREE_NULL_BITMAP(held->core_bitmap);
    held->core_bitmap = cores;
}

static int merge(job_record_t *helper) {
    job_record_t *job =
        find_job_record((uint32_t)strtoul(strrchr(helper->admin_comment, ' '), NULL, 10));
    bitstr_t *all = bit_copy(job->node_bitmap);
    bit_or(all, helper->node_bitmap);
    merge_cores(job->job_resrcs, helper->job_resrcs);
    hold(job, all);
    hold(helper, bit_alloc(node_record_count));
    helper->details->min_nodes = 0;
    helper->job_state = JOB_COMPLETE | JOB_COMPLETING;
    return SLURM_SUCCESS;
}

int update_job(slurm_msg_t *message, uid_t user, bool answer) {
    const job_desc_msg_t *asked = message->data;
    mock_needs("update_job", WRITE_LOCK, WRITE_LOCK);
    job_record_t *job = find_job_record(asked->job_id);
    if (!job || user != slurm_conf.slurm_user_id || answer)
        mock_wrong("an update of no job, or in another name");
    if (mock.update_code || mock.update_does_nothing)
        return mock.update_code;
    if (asked->min_nodes == 0)
        return merge(job);
    if (asked->time_limit != NO_VAL && !asked->req_nodes) {
        job->end_time += 60 * ((time_t)asked->time_limit - (time_t)job->time_limit);
        job->time_limit = asked->time_limit;
        job->limit_set.time = ADMIN_SET_LIMIT;
        return SLURM_SUCCESS;
    }
    if (!xstrcmp(asked->req_nodes, job->details->req_nodes))
        return SLURM_SUCCESS; // "identical to old req_nodes"
    bitstr_t *left = NULL;
    if (node_name2bitmap(asked->req_nodes, false, &left, NULL) ||
        !bit_super_set(left, job->node_bitmap))
        mock_wrong("%s is not what job %u has", asked->req_nodes, job->job_id);
    if (job->batch_host && !bit_test(left, find_node_record(job->batch_host)->index))
        mock_wrong("job %u loses its batch host", job->job_id);
    hold(job, left);
    mock.cores_noted = true;
    return SLURM_SUCCESS;
}

int select_g_select_nodeinfo_set_all(void) {
    mock_needs("select_g_select_nodeinfo_set_all", WRITE_LOCK, WRITE_LOCK);
    mock.cores_noted = false;
    return SLURM_SUCCESS;
}
