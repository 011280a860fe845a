// SPDX-License-Identifier: GPL-2.0-or-later
#include "decisions/reserve.h"

#include "common/records.h"

#define MAX_NAME 64
#define MAX_WORDS 4096

// Only text that Slurm's own tools would accept: it is written to slurmctld's state files.
static bool is_clean(const char *text, size_t maximum, const char *more)
{
    size_t length = strnlen(text, maximum + 1);
    if (length > maximum)
        return false;
    for (size_t i = 0; i < length; i++) {
        bool letter = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z') ||
                      (text[i] >= '0' && text[i] <= '9');
        if (!letter && !strchr(more, text[i]))
            return false;
    }
    return true;
}

static bool is_name(const char *name)
{
    return name[0] && is_clean(name, MAX_NAME, "_.-");
}

static verdict_t outcome(int code, const char *name, const char *what, const char *detail)
{
    if (code == SLURM_SUCCESS) {
        info("bridge: reservation %s %s", name, what);
        return APPLIED;
    }
    info("bridge: reservation %s not %s: %s", name, what, slurm_strerror(code));
    return REFUSED(code, "%s", detail && detail[0] ? detail : slurm_strerror(code));
}

verdict_t reserve(const pb_reserve_t *wanted)
{
    bitstr_t *nodes = NULL;
    char *problem = NULL;
    if (!is_name(wanted->name))
        return INVALID("'%.64s' is not a valid reservation name", wanted->name);
    if (!is_clean(wanted->users, MAX_WORDS, "_.-,@") ||
        !is_clean(wanted->accounts, MAX_WORDS, "_.-,@") ||
        (!wanted->users[0] && !wanted->accounts[0]))
        return INVALID("no users or accounts, or invalid characters in them");
    if (!is_clean(wanted->licences, MAX_WORDS, "_.-,:@"))
        return INVALID("invalid characters in the licences");
    if (wanted->start_s <= 0 || wanted->end_s <= wanted->start_s)
        return INVALID("the reservation does not end after it begins");
    if (wanted->partition[0] && !find_part_record(wanted->partition))
        return INVALID("unknown partition %.64s", wanted->partition);
    if (!nodes_named(wanted->nodes, &nodes))
        return INVALID("unknown nodes: %.100s", wanted->nodes);
    FREE_NULL_BITMAP(nodes);

    resv_desc_msg_t *asked = xmalloc(sizeof(*asked));
    slurm_init_resv_desc_msg(asked);
    asked->name = xstrdup(wanted->name);
    asked->start_time = wanted->start_s;
    asked->end_time = wanted->end_s;
    asked->node_list = xstrdup(wanted->nodes);
    asked->partition = wanted->partition[0] ? xstrdup(wanted->partition) : NULL;
    asked->users = wanted->users[0] ? xstrdup(wanted->users) : NULL;
    asked->accounts = wanted->accounts[0] ? xstrdup(wanted->accounts) : NULL;
    asked->licenses = wanted->licences[0] ? xstrdup(wanted->licences) : NULL;
    int code = create_resv(asked, &problem);
    slurm_free_resv_desc_msg(asked);
    verdict_t verdict = outcome(code, wanted->name, "made", problem);
    xfree(problem);
    return verdict;
}

verdict_t unreserve(const pb_unreserve_t *wanted)
{
    if (!is_name(wanted->name))
        return INVALID("'%.64s' is not a valid reservation name", wanted->name);
    char *name = xstrdup(wanted->name);
    reservation_name_msg_t asked = {.name = name};
    int code = delete_resv(&asked);
    xfree(name);
    return outcome(code, wanted->name, "removed", NULL);
}
