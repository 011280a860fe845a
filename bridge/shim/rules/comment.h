// SPDX-License-Identifier: GPL-2.0-or-later
// The plugin's parts of a job's system comment, "KEY TEXT", separated by "; " from those of others.
// slurmctld saves it, and no client can set it, so what is read there was written by an
// administrator or a plugin. `squeue -O SystemComment` and `scontrol show job` show it.
#ifndef BRIDGE_COMMENT_H
#define BRIDGE_COMMENT_H

#include "common/slurm_compat.h"

// The text of a part; NULL: there is none. The caller frees it with xfree. `key` ends with ": ".
char *comment_text(const job_record_t *job, const char *key);

// Writes a part behind the others; an empty text removes it. Signs that could end it become commas.
void comment_write(job_record_t *job, const char *key, const char *text);

#endif
