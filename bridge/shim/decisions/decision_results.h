// SPDX-License-Identifier: GPL-2.0-or-later
// Results of decisions, kept until the service has received them.
#ifndef BRIDGE_DECISION_RESULTS_H
#define BRIDGE_DECISION_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/pb.h"

typedef struct {
    arena_t arena;
    arena_list_t list; // of pb_decision_result_t
    bool urgent;       // something the service must know immediately, not with the next change
} decision_results_t;

void decision_results_add(decision_results_t *results, const pb_decision_t *decision,
                          pb_outcome_t outcome, int code, const char *text);

void decision_results_clear(decision_results_t *results);

#endif
