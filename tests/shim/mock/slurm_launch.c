// SPDX-License-Identifier: GPL-2.0-or-later
// What the mock of slurmctld does when a job is launched, and put back into the queue.
#include "slurm_mock.h"

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
    for (bitoff_t i = 0; i < job->node_bitmap->size; i++)
        node_record_table_ptr[i]->run_job_cnt -= job->node_bitmap->bit[i] != 0;
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
