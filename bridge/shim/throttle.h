// SPDX-License-Identifier: GPL-2.0-or-later
// Keeps slurmctld's log readable: messages that others can cause are limited to a number a minute,
// and counted beyond. Texts of others are made printable, so that they cannot forge lines.
#ifndef BRIDGE_THROTTLE_H
#define BRIDGE_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int64_t until_ms; // end of the present minute; 0: none has begun
    unsigned said, hidden;
} throttle_t;

// True if a line may be written now, at most `most` in a minute. *hidden: lines that were not
// written since the last minute in which some were.
bool throttle_allows(throttle_t *throttle, unsigned most, int64_t now_ms, unsigned *hidden);

// Copies printable ASCII; all else becomes '?', and what has no room is left out. Returns `to`.
char *plain(char *to, size_t room, const char *from);

#endif
