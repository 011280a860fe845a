// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/names.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
#define MAX_DIGITS 18

static bool take_number(const char **at, uint64_t *number)
{
    const char *begin = *at;
    *number = 0;
    for (; isdigit((unsigned char)**at); (*at)++) {
        if (*at - begin == MAX_DIGITS)
            return false;
        *number = 10 * *number + (uint64_t)(**at - '0');
    }
    return *at > begin;
}

// Reads "1-3,7]", after the opening bracket.
static bool take_ranges(const char **at, size_t maximum, size_t *count)
{
    *count = 0;
    for (;; (*at)++) {
        uint64_t first, last;
        if (!take_number(at, &first))
            return false;
        last = first;
        if (**at == '-') {
            (*at)++;
            if (!take_number(at, &last) || last < first)
                return false;
        }
        if (last - first >= maximum - *count)
            return false;
        *count += (size_t)(last - first) + 1;
        if (**at != ',')
            break;
    }
    return *(*at)++ == ']';
}

// Reads a name with its brackets, as in "r[1-2]n[01-64]".
static bool take_name(const char **at, size_t maximum, size_t *count)
{
    const char *begin = *at;
    *count = 1;
    for (;;) {
        *at += strspn(*at, LETTERS);
        if (**at != '[')
            return *at > begin;
        size_t more;
        (*at)++;
        if (!take_ranges(at, maximum, &more) || more > maximum / *count)
            return false;
        *count *= more;
    }
}

size_t names_count(const char *hostlist, size_t maximum)
{
    size_t total = 0;
    const char *at = hostlist;
    if (strnlen(hostlist, NAMES_MAX_BYTES + 1) > NAMES_MAX_BYTES || !maximum)
        return 0;
    for (;; at++) {
        size_t count;
        if (!take_name(&at, maximum, &count) || count > maximum - total)
            return 0;
        total += count;
        if (*at != ',')
            return *at ? 0 : total;
    }
}
