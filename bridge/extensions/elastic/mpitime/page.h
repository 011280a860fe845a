// SPDX-License-Identifier: Apache-2.0
// What a process tells the agent of its node about its time in MPI: a file of one page, mpi.PID in
// the folder of its job, JOB_FOLDERS/JOB, which Slurm makes (bridge/shim/options/job_folder.h).
// The agent reads it at any moment; bridge/agent/pages.py has the same layout.
#pragma once

#include <stdint.h>

#define JOB_FOLDERS "/dev/shm/schedbridge"
#define PAGE_MAGIC "BRIDGEMT"

enum { PAGE_VERSION = 1, PAGE_BYTES = 4096 };

// Times are of CLOCK_MONOTONIC. `job`, `step` (of SLURM_STEP_ID) and `task` (of SLURM_PROCID) are
// for people: the agent asks the kernel which job a process belongs to.
struct page {
    char magic[8];
    uint32_t version, pid;
    char job[32];
    uint32_t step, task;
    uint64_t begin_ns;
    uint64_t mpi_ns; // in calls that have ended
    uint64_t calls;
    uint64_t in_since_ns; // begin of the call that it is in; 0: none
};
