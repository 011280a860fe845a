// SPDX-License-Identifier: GPL-2.0-or-later
#include "resize/progress.h"

#include "common/throttle.h"
#include "rules/comment.h"

#define MAX_TEXT 160
#define OURS "schedbridge: "

void show_text(job_record_t *job, const char *words)
{
    char text[MAX_TEXT + 1];
    plain(text, sizeof(text), words);
    comment_write(job, OURS, text);
}

verdict_t show_progress(job_record_t *job, const pb_progress_t *progress)
{
    show_text(job, progress->text);
    return APPLIED;
}
