// SPDX-License-Identifier: GPL-2.0-or-later
// The note is an entry of the job's environment for SPANK plugins, which slurmctld saves and no
// user can change after the submission. One that a client has invented can only lower its own
// limit.
#include "rules/raised_limit.h"

#include <inttypes.h>
#include <stdio.h>

#define NOTE "SPANK_SCHEDBRIDGE_LIMIT="

// The place of the note; the number of entries: there is none.
static uint32_t place_of(const job_record_t *job)
{
    uint32_t at = 0;
    while (at < job->spank_job_env_size &&
           !(job->spank_job_env[at] && !strncmp(job->spank_job_env[at], NOTE, sizeof(NOTE) - 1)))
        at++;
    return at;
}

// The user's limit and the one that it was raised to, in minutes.
static bool read_note(const job_record_t *job, uint32_t at, uint32_t *asked, uint32_t *raised)
{
    char rest;
    return at < job->spank_job_env_size &&
           sscanf(job->spank_job_env[at], NOTE "%" SCNu32 ":%" SCNu32 "%c", asked, raised, &rest) ==
               2;
}

static uint32_t place_for(job_record_t *job)
{
    uint32_t at = place_of(job);
    if (at < job->spank_job_env_size) {
        xfree(job->spank_job_env[at]);
        return at;
    }
    char **entries = xcalloc(at + 2, sizeof(*entries));
    for (uint32_t i = 0; i < at; i++)
        entries[i] = job->spank_job_env[i];
    xfree(job->spank_job_env);
    job->spank_job_env = entries;
    job->spank_job_env_size = at + 1;
    return at;
}

void raised_limit_note(job_record_t *job, uint32_t asked)
{
    uint32_t first, raised;
    if (read_note(job, place_of(job), &first, &raised) && raised == asked)
        asked = first;
    uint32_t at = place_for(job);
    job->spank_job_env[at] = xstrdup_printf(NOTE "%u:%u", asked, job->time_limit);
}

void raised_limit_restore(job_record_t *job)
{
    uint32_t at = place_of(job), asked, raised;
    if (at == job->spank_job_env_size)
        return;
    if (read_note(job, at, &asked, &raised) && raised == job->time_limit && asked < raised) {
        info("bridge: %pJ waits again: its time limit is %u minutes, as it was asked for", job,
             asked);
        job->time_limit = asked;
        last_job_update = time(NULL);
    }
    xfree(job->spank_job_env[at]);
    job->spank_job_env_size--;
    for (; at < job->spank_job_env_size; at++)
        job->spank_job_env[at] = job->spank_job_env[at + 1];
}
