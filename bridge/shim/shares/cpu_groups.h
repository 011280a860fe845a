// SPDX-License-Identifier: GPL-2.0-or-later
// Cgroups in which the CPU shares of jobs that share a node are set.
//
// With cgroup v1 Slurm makes none in the hierarchy "cpu". So a job gets one before its first
// process runs, and all descendants start in it: schedbridge_NODE_job_JOB, below the cgroup of
// slurmd. The agent on the node finds it there (bridge/extensions/sharing/on_nodes/cgroup_v1.py),
// and sets weight and quota.
#ifndef BRIDGE_CPU_GROUPS_H
#define BRIDGE_CPU_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct {
    const char *cgroups; // where cgroups are mounted
    const char *proc;    // where processes are shown
    const char *node;    // as Slurm calls it
} cpu_groups_t;

// Moves a process of a job into the job's cgroup, which is made if it is not there. Nothing is done
// where Slurm has put the process into a cgroup of the job, or "cpu" is not mounted as version 1.
// Weight and quota stay as the agent has set them, also while the job has no process: the end of a
// job removes its cgroup, or resets it, so that none is left to a job with the same number.
//
// Returns false if it failed; then there is one line in `problem`.
bool cpu_groups_enter(const cpu_groups_t *at, uint32_t job, pid_t pid, char *problem, size_t size);

// Gives jobs of the node their full share, and removes their cgroups that are empty: to be called
// when a job has ended. At most two jobs share a node, so the other one is alone now. A living
// agent corrects within a second what is wrong here; a dead one leaves nobody limited.
void cpu_groups_release(const cpu_groups_t *at);

#endif
