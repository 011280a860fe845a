// SPDX-License-Identifier: GPL-2.0-or-later
// The plugin's notes on a job: entries of its environment for SPANK plugins, which slurmctld saves
// and no user can change after the submission. A client may have forged one at submission.
#ifndef BRIDGE_NOTE_H
#define BRIDGE_NOTE_H

#include "common/slurm_compat.h"

// The text of a note; NULL: there is none. `key` ends with "=".
const char *note_text(const job_record_t *job, const char *key);

// Writes a note; `text` is copied.
void note_write(job_record_t *job, const char *key, const char *text);

void note_remove(job_record_t *job, const char *key);

#endif
