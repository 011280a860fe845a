// SPDX-License-Identifier: GPL-2.0-or-later
// A note forged by a client can only lower its own limit.
#include "rules/raised_limit.h"

#include <inttypes.h>
#include <stdio.h>

#include "rules/note.h"

#define NOTE "SPANK_SCHEDBRIDGE_LIMIT="

// The user's limit and the raised one, in minutes.
static bool read_note(const job_record_t *job, uint32_t *asked, uint32_t *raised)
{
    char rest;
    const char *text = note_text(job, NOTE);
    return text && sscanf(text, "%" SCNu32 ":%" SCNu32 "%c", asked, raised, &rest) == 2;
}

void raised_limit_note(job_record_t *job, uint32_t asked)
{
    uint32_t first, raised;
    char text[32];
    if (read_note(job, &first, &raised) && raised == asked)
        asked = first;
    snprintf(text, sizeof(text), "%u:%u", asked, job->time_limit);
    note_write(job, NOTE, text);
}

void raised_limit_restore(job_record_t *job)
{
    uint32_t asked, raised;
    if (read_note(job, &asked, &raised) && raised == job->time_limit && asked < raised) {
        info("bridge: %pJ waits again: its time limit is %u minutes, as requested", job, asked);
        job->time_limit = asked;
        last_job_update = time(NULL);
    }
    note_remove(job, NOTE);
}
