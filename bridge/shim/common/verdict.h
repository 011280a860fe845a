// SPDX-License-Identifier: GPL-2.0-or-later
// The result of one decision of the service.
#ifndef BRIDGE_VERDICT_H
#define BRIDGE_VERDICT_H

#include <stdbool.h>

#include "common/pb.h"

typedef struct {
    pb_outcome_t outcome;
    int code; // Slurm's error number
    char text[160];
    uint32_t word; // Slurm's reason for a refusal (state_reason); WAIT_NO_REASON: none
} verdict_t;

__attribute__((format(printf, 3, 4))) verdict_t verdict_of(pb_outcome_t outcome, int code,
                                                           const char *format, ...);

#define APPLIED verdict_of(PB(OUTCOME__OUTCOME_APPLIED), 0, "%s", "")
#define INVALID(...) verdict_of(PB(OUTCOME__OUTCOME_INVALID), 0, __VA_ARGS__)
#define REFUSED(code, ...) verdict_of(PB(OUTCOME__OUTCOME_REFUSED), code, __VA_ARGS__)

static inline bool is_applied(const verdict_t *verdict)
{
    return verdict->outcome == PB(OUTCOME__OUTCOME_APPLIED);
}

#endif
