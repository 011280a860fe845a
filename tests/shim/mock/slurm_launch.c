// SPDX-License-Identifier: GPL-2.0-or-later
// What the mock of slurmctld does when a job is launched, and put back into the queue; and the
// users that nodes are kept for meanwhile (filter_by_node_owner, make_node_alloc, make_node_idle).
#include "slurm_launch.h"

typedef struct {
    const job_record_t *job;
    bitstr_t *nodes;
    bool found;
} others_t;

static int look_for_others(void *record, void *context) {
    const job_record_t *other = record;
    others_t *others = context;
    if (!IS_JOB_RUNNING(other) || other->user_id == others->job->user_id || !other->node_bitmap)
        return 0;
    for (bitoff_t i = 0; i < others->nodes->size; i++)
        others->found |= others->nodes->bit[i] && other->node_bitmap->bit[i];
    return 0;
}

bool mock_owned(job_record_t *job, bitstr_t *nodes) {
    others_t others = {.job = job, .nodes = nodes};
    if (job->details->whole_node & WHOLE_NODE_USER) {
        (void)list_for_each_ro(job_list, look_for_others, &others);
        return others.found;
    }
    for (bitoff_t i = 0; i < nodes->size; i++) {
        uint32_t owner = node_record_table_ptr[i]->owner;
        if (nodes->bit[i] && owner != NO_VAL && owner != job->user_id)
            return true;
    }
    return false;
}

void mock_alloc(job_record_t *job, bitstr_t *nodes) {
    for (bitoff_t i = 0; i < nodes->size; i++) {
        node_record_t *node = node_record_table_ptr[i];
        if (!nodes->bit[i])
            continue;
        node->run_job_cnt++;
        if (job->details->whole_node & WHOLE_NODE_USER) {
            node->owner_job_cnt++;
            node->owner = job->user_id;
        }
    }
}

void mock_idle(job_record_t *job) {
    for (bitoff_t i = 0; i < job->node_bitmap->size; i++) {
        node_record_t *node = node_record_table_ptr[i];
        if (!job->node_bitmap->bit[i])
            continue;
        node->run_job_cnt--;
        if (!(job->details->whole_node & WHOLE_NODE_USER))
            continue;
        if (!node->owner_job_cnt)
            mock_wrong("owner_job_cnt underflow");
        if (--node->owner_job_cnt == 0)
            node->owner = NO_VAL;
    }
}

void mock_release(job_record_t *job) {
    if (!job->job_resrcs)
        return;
    FREE_NULL_BITMAP(job->job_resrcs->node_bitmap);
    FREE_NULL_BITMAP(job->job_resrcs->core_bitmap);
    free(job->job_resrcs->cpus);
    free(job->job_resrcs->memory_allocated);
    xfree(job->job_resrcs);
}

// Of requeues only what the plugin asks for.
int job_requeue(uid_t uid, uint32_t job_id, slurm_msg_t *msg, bool preempt, uint32_t flags) {
    job_record_t *job = find_job_record(job_id);
    mock_needs("job_requeue", WRITE_LOCK, WRITE_LOCK);
    if (uid != slurm_conf.slurm_user_id || msg || preempt || flags || !job)
        mock_wrong("a requeue in an odd way");
    if (!job->details->requeue)
        return ESLURM_DISABLED;
    if (mock.requeue_code)
        return mock.requeue_code;
    mock_idle(job);
    job->job_state = JOB_PENDING;
    return SLURM_SUCCESS;
}

void srun_allocate(job_record_t *job) {
    mock_needs("srun_allocate", WRITE_LOCK, READ_LOCK);
    if (job->batch_flag)
        mock_wrong("a batch job is told to srun");
    mock.allocated++;
}

void launch_job(job_record_t *job) {
    mock_needs("launch_job", WRITE_LOCK, WRITE_LOCK);
    if (!IS_JOB_RUNNING(job))
        mock_wrong("a job that does not run is launched");
    mock.launched++;
}
