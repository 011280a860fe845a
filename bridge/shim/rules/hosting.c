// SPDX-License-Identifier: GPL-2.0-or-later
#include "rules/hosting.h"

#include <inttypes.h>
#include <stdio.h>

#include "rules/note.h"

#define NOTE "SPANK_SCHEDBRIDGE_HOSTS="
#define MOST_S ((int64_t)1 << 40)

static bool read_note(const job_record_t *job, hosting_t *found)
{
    char rest;
    const char *text = note_text(job, NOTE);
    return text &&
           sscanf(text, "%" SCNd64 ":%" SCNd64 ":%" SCNu32 "%c", &found->past_s, &found->since_s,
                  &found->added, &rest) == 3 &&
           found->past_s >= 0 && found->past_s < MOST_S && found->since_s >= 0 &&
           found->since_s < MOST_S;
}

static void write_note(job_record_t *job, const hosting_t *hosting)
{
    char text[80];
    snprintf(text, sizeof(text), "%" PRId64 ":%" PRId64 ":%" PRIu32, hosting->past_s,
             hosting->since_s, hosting->added);
    note_write(job, NOTE, text);
}

bool hosting_of(const job_record_t *job, hosting_t *found)
{
    return IS_JOB_RUNNING(job) && !IS_JOB_COMPLETING(job) && read_note(job, found);
}

int64_t hosting_seconds(const hosting_t *hosting, const job_record_t *job, time_t now)
{
    int64_t open_s = hosting->since_s ? (int64_t)now - hosting->since_s : 0;
    int64_t ran_s = (int64_t)now - (int64_t)job->start_time;
    return MAX(MIN(hosting->past_s + MAX(open_s, 0), ran_s), 0);
}

bool hosting_may_extend(const job_record_t *job)
{
    hosting_t hosting;
    return hosting_of(job, &hosting) && job->time_limit != INFINITE && job->time_limit != NO_VAL &&
           !job->resv_ptr;
}

void hosting_begin(job_record_t *job)
{
    write_note(job, &(hosting_t){0});
}

void hosting_open(job_record_t *host, time_t now)
{
    hosting_t hosting = {0};
    bool known = read_note(host, &hosting);
    if (known && hosting.since_s)
        return;
    hosting.since_s = now;
    write_note(host, &hosting);
}

void hosting_close(job_record_t *host, time_t at)
{
    hosting_t hosting;
    if (!hosting_of(host, &hosting) || !hosting.since_s)
        return;
    hosting.past_s += MAX((int64_t)at - hosting.since_s, 0);
    hosting.since_s = 0;
    write_note(host, &hosting);
}

void hosting_added(job_record_t *host, uint32_t minutes)
{
    hosting_t hosting;
    if (!read_note(host, &hosting))
        return;
    hosting.added += minutes;
    write_note(host, &hosting);
}

void hosting_forget(job_record_t *job)
{
    note_remove(job, NOTE);
}
