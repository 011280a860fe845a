// SPDX-License-Identifier: GPL-2.0-or-later
// What became of decisions, kept until the service has heard it.
#ifndef BRIDGE_FATES_H
#define BRIDGE_FATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "pb.h"

typedef struct {
    arena_t arena;
    arena_list_t list; // of pb_fate_t
    bool urgent;       // something the service must know at once, not with the next change
} fates_t;

void fates_add(fates_t *fates, const pb_decision_t *decision, pb_outcome_t outcome, int code,
               const char *text);

void fates_clear(fates_t *fates);

#endif
