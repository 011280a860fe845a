// SPDX-License-Identifier: GPL-2.0-or-later
#include "rules/comment.h"

#define BETWEEN "; "

// A part begins the comment or follows a separator, and ends at the next one. NULL: none.
static const char *find_part(const char *comment, const char *key)
{
    for (const char *at = comment; at && *at;) {
        if (!strncmp(at, key, strlen(key)))
            return at;
        at = strstr(at, BETWEEN);
        at = at ? at + sizeof(BETWEEN) - 1 : NULL;
    }
    return NULL;
}

char *comment_text(const job_record_t *job, const char *key)
{
    const char *part = find_part(job->system_comment, key);
    if (!part)
        return NULL;
    const char *text = part + strlen(key), *end = strstr(text, BETWEEN);
    return xstrdup_printf("%.*s", (int)(end ? (size_t)(end - text) : strlen(text)), text);
}

// The comment without the part; NULL: nothing is left.
static char *without(const char *comment, const char *key)
{
    const char *part = find_part(comment, key);
    if (!part)
        return comment && comment[0] ? xstrdup(comment) : NULL;
    const char *end = strstr(part, BETWEEN);
    const char *rest = end ? end + sizeof(BETWEEN) - 1 : "";
    int before = (int)(part - comment);
    if (!rest[0] && before)
        before -= (int)sizeof(BETWEEN) - 1;
    return before || rest[0] ? xstrdup_printf("%.*s%s", before, comment, rest) : NULL;
}

void comment_write(job_record_t *job, const char *key, const char *text)
{
    char *others = without(job->system_comment, key), *comment = others;
    if (text[0]) {
        char *plain = xstrdup(text);
        for (char *sign = plain; *sign; sign++) {
            if (*sign == BETWEEN[0])
                *sign = ',';
        }
        comment = others ? xstrdup_printf("%s" BETWEEN "%s%s", others, key, plain)
                         : xstrdup_printf("%s%s", key, plain);
        xfree(plain);
        xfree(others);
    }
    if (xstrcmp(comment, job->system_comment)) {
        xfree(job->system_comment);
        job->system_comment = comment;
        last_job_update = time(NULL);
    } else {
        xfree(comment);
    }
}
