// SPDX-License-Identifier: GPL-2.0-or-later
// Syntax of the options of jobs that share nodes: --coschedule and --max-slowdown. The SPANK plugin
// reads them at submission; the scheduler plugin, which must not trust clients, reads them again.
#ifndef BRIDGE_COSCHEDULE_H
#define BRIDGE_COSCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Numbers as on the wire.
typedef enum {
    COSCHEDULE_UNSTATED,
    COSCHEDULE_HOST,
    COSCHEDULE_GUEST,
    COSCHEDULE_BOTH,
    COSCHEDULE_NEVER,
} coschedule_t;

// False, with one line for the user, if the value is invalid.
bool coschedule_read(coschedule_t *coschedule, const char *value, char *problem, size_t bytes);

// By how much a job may be slowed down: "0.1" or "10%", in thousandths.
bool coschedule_read_slowdown(uint32_t *permille, const char *value, char *problem, size_t bytes);

static inline bool coschedule_hosts(coschedule_t coschedule)
{
    return coschedule == COSCHEDULE_HOST || coschedule == COSCHEDULE_BOTH;
}

static inline bool coschedule_is_guest(coschedule_t coschedule)
{
    return coschedule == COSCHEDULE_GUEST || coschedule == COSCHEDULE_BOTH;
}

#endif
