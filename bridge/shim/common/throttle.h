// SPDX-License-Identifier: GPL-2.0-or-later
// Limits log messages that others can cause to a number per minute, and counts the rest. Text from
// others is made printable, so that it cannot forge log lines.
#ifndef BRIDGE_THROTTLE_H
#define BRIDGE_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int64_t until_ms; // end of the current minute; 0: none yet
    unsigned written, hidden;
} throttle_t;

// True if a message may be logged now, at most `maximum` per minute. *hidden: messages suppressed
// since the last minute with messages.
bool throttle_allows(throttle_t *throttle, unsigned maximum, int64_t now_ms, unsigned *hidden);

// Copies printable ASCII; other bytes become '?', and text beyond the space is cut. Returns `to`.
char *plain(char *to, size_t room, const char *from);

#endif
