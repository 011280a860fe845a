// SPDX-License-Identifier: GPL-2.0-or-later
// Cgroups of jobs on nodes that jobs share. In plugstack.conf of these nodes:
//   optional spank_bridge_shares.so
// Whatever fails here is logged, and the job goes on: the agent then moves its processes.
#include <slurm/spank.h>
#include <stdlib.h>

#include "shares/cpu_groups.h"

#pragma GCC visibility push(default)
SPANK_PLUGIN(schedbridge_shares, 1)
int slurm_spank_task_post_fork(spank_t spank, int argc, char **argv);
int slurm_spank_job_epilog(spank_t spank, int argc, char **argv);
#pragma GCC visibility pop

// slurmd and slurmstepd set the name after everything that users may set.
static cpu_groups_t here(void)
{
    return (cpu_groups_t){
        .cgroups = "/sys/fs/cgroup", .proc = "/proc", .node = getenv("SLURMD_NODENAME")};
}

// As root, in slurmstepd: Slurm has put the task into its own cgroups, and it waits to be executed.
int slurm_spank_task_post_fork(spank_t spank, int argc, char **argv)
{
    const cpu_groups_t at = here();
    char problem[512];
    uint32_t job;
    pid_t pid;
    (void)argc;
    (void)argv;
    if (spank_get_item(spank, S_JOB_ID, &job) || spank_get_item(spank, S_TASK_PID, &pid))
        return ESPANK_SUCCESS; // the step "extern" has no task
    if (!cpu_groups_enter(&at, job, pid, problem, sizeof(problem)))
        slurm_info("schedbridge: job %u has no cgroup of its own in cpu yet: %s", job, problem);
    return ESPANK_SUCCESS;
}

// As root, started by slurmd when the job's processes have ended.
int slurm_spank_job_epilog(spank_t spank, int argc, char **argv)
{
    const cpu_groups_t at = here();
    (void)spank;
    (void)argc;
    (void)argv;
    cpu_groups_release(&at);
    return ESPANK_SUCCESS;
}
