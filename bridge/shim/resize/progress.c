// SPDX-License-Identifier: GPL-2.0-or-later
#include "resize/progress.h"

#include "common/throttle.h"

#define MAX_TEXT 160
#define OURS "schedbridge: "
#define BETWEEN "; "

// Our part begins the comment or follows a separator, and ends at the next one. NULL: none.
static const char *find_ours(const char *comment)
{
    for (const char *at = comment; at && *at;) {
        if (!strncmp(at, OURS, sizeof(OURS) - 1))
            return at;
        at = strstr(at, BETWEEN);
        at = at ? at + sizeof(BETWEEN) - 1 : NULL;
    }
    return NULL;
}

// The comment without our part; NULL: nothing is left.
static char *without_ours(const char *comment)
{
    const char *ours = find_ours(comment);
    if (!ours)
        return comment && comment[0] ? xstrdup(comment) : NULL;
    const char *end = strstr(ours, BETWEEN);
    const char *rest = end ? end + sizeof(BETWEEN) - 1 : "";
    int before = (int)(ours - comment);
    if (!rest[0] && before)
        before -= (int)sizeof(BETWEEN) - 1;
    return before || rest[0] ? xstrdup_printf("%.*s%s", before, comment, rest) : NULL;
}

void show_text(job_record_t *job, const char *said)
{
    char text[MAX_TEXT + 1];
    plain(text, sizeof(text), said);
    for (char *sign = text; *sign; sign++) {
        if (*sign == BETWEEN[0])
            *sign = ',';
    }
    char *others = without_ours(job->system_comment);
    char *comment = !text[0]  ? others
                    : !others ? xstrdup_printf(OURS "%s", text)
                              : xstrdup_printf("%s" BETWEEN OURS "%s", others, text);
    if (comment != others)
        xfree(others);
    if (xstrcmp(comment, job->system_comment)) {
        xfree(job->system_comment);
        job->system_comment = comment;
        last_job_update = time(NULL);
    } else {
        xfree(comment);
    }
}

verdict_t show_progress(job_record_t *job, const pb_progress_t *progress)
{
    show_text(job, progress->text);
    return APPLIED;
}
