// SPDX-License-Identifier: GPL-2.0-or-later
#include "rules/note.h"

// The place of the note; the number of entries: there is none.
static uint32_t place_of(const job_record_t *job, const char *key)
{
    uint32_t at = 0;
    while (at < job->spank_job_env_size &&
           !(job->spank_job_env[at] && !strncmp(job->spank_job_env[at], key, strlen(key))))
        at++;
    return at;
}

const char *note_text(const job_record_t *job, const char *key)
{
    uint32_t at = job->spank_job_env ? place_of(job, key) : job->spank_job_env_size;
    return at < job->spank_job_env_size ? job->spank_job_env[at] + strlen(key) : NULL;
}

static uint32_t place_for(job_record_t *job, const char *key)
{
    uint32_t at = place_of(job, key);
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

void note_write(job_record_t *job, const char *key, const char *text)
{
    char *entry = xstrdup_printf("%s%s", key, text);
    uint32_t at = place_for(job, key); // may replace the array
    job->spank_job_env[at] = entry;
}

void note_remove(job_record_t *job, const char *key)
{
    uint32_t at = place_of(job, key);
    if (at == job->spank_job_env_size)
        return;
    xfree(job->spank_job_env[at]);
    job->spank_job_env_size--;
    for (; at < job->spank_job_env_size; at++)
        job->spank_job_env[at] = job->spank_job_env[at + 1];
}
