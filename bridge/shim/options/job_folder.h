// SPDX-License-Identifier: GPL-2.0-or-later
// The folder of a job on a node, in which its processes tell the node's agent about themselves.
#pragma once

#include <sys/types.h>

#define JOB_FOLDERS "/dev/shm/schedbridge"

// A step of a job begins on this machine: its job gets a folder, JOB_FOLDERS/JOB, of its user and
// with mode 0700. Needs root. Returns NULL, or what failed; errno says why.
const char *job_folder_enter(const char *folders, unsigned job, uid_t uid, gid_t gid);

// The step ends. Folders of jobs without a step on this machine are removed with all that is in
// them; of a very full one the rest is removed when later steps end.
void job_folder_leave(unsigned job);
