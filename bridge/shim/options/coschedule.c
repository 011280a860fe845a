// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/coschedule.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define MAX_PERMILLE 1000

static const char *const names[] = {
    [COSCHEDULE_HOST] = "host",
    [COSCHEDULE_GUEST] = "guest",
    [COSCHEDULE_BOTH] = "both",
    [COSCHEDULE_NEVER] = "never",
};

bool coschedule_read(coschedule_t *coschedule, const char *value, char *problem, size_t bytes)
{
    for (size_t i = COSCHEDULE_HOST; i < sizeof(names) / sizeof(names[0]); i++) {
        if (value && !strcmp(value, names[i])) {
            *coschedule = (coschedule_t)i;
            return true;
        }
    }
    snprintf(
        problem, bytes,
        "--coschedule=%.40s: give one of host (another job may run on this one's nodes), guest "
        "(it may run on another one's), both or never",
        value ? value : "");
    return false;
}

// Digits with at most `decimals` decimal places, as a multiple of the last place; -1: invalid.
static int64_t decimal(const char *text, const char *end, unsigned decimals)
{
    int64_t number = 0;
    unsigned places = 0;
    bool point = false, digits = false;
    for (; text < end; text++) {
        if (*text == '.' && !point) {
            point = true;
            continue;
        }
        if (!isdigit((unsigned char)*text) || places == decimals || number > MAX_PERMILLE * 100)
            return -1;
        number = 10 * number + (*text - '0');
        places += point;
        digits = true;
    }
    for (; places < decimals; places++)
        number *= 10;
    return digits ? number : -1;
}

bool coschedule_read_slowdown(uint32_t *permille, const char *value, char *problem, size_t bytes)
{
    const char *text = value ? value : "";
    size_t length = strlen(text);
    bool percent = length && text[length - 1] == '%';
    int64_t found = decimal(text, text + length - percent, percent ? 1 : 3);
    if (found > 0 && found <= MAX_PERMILLE) {
        *permille = (uint32_t)found;
        return true;
    }
    snprintf(problem, bytes,
             "--max-slowdown=%.40s: give a fraction from 0.001 to 1 or a percentage from 0.1%% to "
             "100%%, for instance --max-slowdown=10%%",
             text);
    return false;
}
