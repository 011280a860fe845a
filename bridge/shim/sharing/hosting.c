// SPDX-License-Identifier: GPL-2.0-or-later
#include "sharing/hosting.h"

#include <inttypes.h>
#include <stdio.h>

#include "rules/comment.h"

#define RECORD "schedbridge guests: "
#define NONE_YET "none yet"
#define MAX_S ((int64_t)1 << 40)

static bool read_record(const job_record_t *job, hosting_t *found)
{
    char rest;
    char *text = job->system_comment ? comment_text(job, RECORD) : NULL;
    *found = (hosting_t){0};
    bool good = text && !strcmp(text, NONE_YET);
    if (text && !good)
        good = sscanf(text, "%" SCNd64 " s, since %" SCNd64 ", limit +%" SCNu32 " min%c",
                      &found->past_s, &found->since_s, &found->added, &rest) == 3 &&
               found->past_s >= 0 && found->past_s < MAX_S && found->since_s >= 0 &&
               found->since_s < MAX_S;
    xfree(text);
    return good;
}

static void write_record(job_record_t *job, const hosting_t *hosting)
{
    char text[80] = NONE_YET;
    if (hosting->past_s || hosting->since_s || hosting->added)
        snprintf(text, sizeof(text), "%" PRId64 " s, since %" PRId64 ", limit +%" PRIu32 " min",
                 hosting->past_s, hosting->since_s, hosting->added);
    comment_write(job, RECORD, text);
}

// When a job reaches the limit that it has without extensions: the policy lets no guest stay.
static int64_t own_end_s(const job_record_t *job, const hosting_t *hosting)
{
    return (int64_t)job->end_time - 60 * (int64_t)hosting->added;
}

bool hosting_of(const job_record_t *job, hosting_t *found)
{
    return IS_JOB_RUNNING(job) && !IS_JOB_COMPLETING(job) && read_record(job, found);
}

int64_t hosting_seconds(const hosting_t *hosting, const job_record_t *job, time_t now)
{
    int64_t counts_until_s = MIN((int64_t)now, own_end_s(job, hosting));
    int64_t open_s = hosting->since_s ? counts_until_s - hosting->since_s : 0;
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
    write_record(job, &(hosting_t){0});
}

void hosting_open(job_record_t *host, time_t now)
{
    hosting_t hosting = {0};
    bool known = read_record(host, &hosting);
    if (known && hosting.since_s)
        return;
    hosting.since_s = now;
    write_record(host, &hosting);
}

void hosting_close(job_record_t *host, time_t at)
{
    hosting_t hosting;
    if ((!IS_JOB_RUNNING(host) && !IS_JOB_SUSPENDED(host)) || !read_record(host, &hosting) ||
        !hosting.since_s)
        return;
    int64_t counts_until_s = MIN((int64_t)at, own_end_s(host, &hosting));
    hosting.past_s += MAX(counts_until_s - hosting.since_s, 0);
    hosting.since_s = 0;
    write_record(host, &hosting);
}

void hosting_added(job_record_t *host, uint32_t minutes)
{
    hosting_t hosting;
    if (!read_record(host, &hosting))
        return;
    hosting.added += minutes;
    write_record(host, &hosting);
}

void hosting_forget(job_record_t *job)
{
    comment_write(job, RECORD, "");
}
