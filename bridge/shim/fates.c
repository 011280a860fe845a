// SPDX-License-Identifier: GPL-2.0-or-later
#include "fates.h"

#define MAX_ID 64

void fates_add(fates_t *fates, const pb_decision_t *decision, pb_outcome_t outcome, int code,
               const char *text)
{
    pb_fate_t *fate = PB_NEW(&fates->arena, pb_fate_t, fate);
    fate->decision_id = decision->id;
    fate->job_id = arena_format(&fates->arena, "%.*s", MAX_ID, decision->job_id);
    fate->outcome = outcome;
    fate->code = code;
    fate->text = arena_text(&fates->arena, text);
    arena_append(&fates->arena, &fates->list, fate);
    if (outcome != PB(OUTCOME__OUTCOME_APPLIED) ||
        decision->action_case == PB(DECISION__ACTION_RESERVE) ||
        decision->action_case == PB(DECISION__ACTION_UNRESERVE)) // somebody waits for it
        fates->urgent = true;
}

void fates_clear(fates_t *fates)
{
    arena_reset(&fates->arena);
    fates->list = (arena_list_t){0};
    fates->urgent = false;
}
