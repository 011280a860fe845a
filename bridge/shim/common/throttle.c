// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/throttle.h"

#define MINUTE_MS 60000

bool throttle_allows(throttle_t *throttle, unsigned maximum, int64_t now_ms, unsigned *hidden)
{
    *hidden = 0;
    if (now_ms >= throttle->until_ms) {
        *hidden = throttle->hidden;
        *throttle = (throttle_t){.until_ms = now_ms + MINUTE_MS};
    }
    if (throttle->written < maximum) {
        throttle->written++;
        return true;
    }
    throttle->hidden++;
    return false;
}

char *plain(char *to, size_t room, const char *from)
{
    size_t n = 0;
    for (; from[n] && n + 1 < room; n++)
        to[n] = from[n] >= ' ' && from[n] <= '~' ? from[n] : '?';
    to[n] = 0;
    return to;
}
