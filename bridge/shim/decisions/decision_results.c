// SPDX-License-Identifier: GPL-2.0-or-later
#include "decisions/decision_results.h"

#define MAX_ID 64

void decision_results_add(decision_results_t *results, const pb_decision_t *decision,
                          pb_outcome_t outcome, int code, const char *text)
{
    pb_decision_result_t *result = PB_NEW(&results->arena, pb_decision_result_t, fate);
    result->decision_id = decision->id;
    result->job_id = arena_format(&results->arena, "%.*s", MAX_ID, decision->job_id);
    result->outcome = outcome;
    result->code = code;
    result->text = arena_text(&results->arena, text);
    arena_append(&results->arena, &results->list, result);
    if (outcome != PB(OUTCOME__OUTCOME_APPLIED) ||
        decision->action_case == PB(DECISION__ACTION_RESERVE) ||
        decision->action_case == PB(DECISION__ACTION_UNRESERVE)) // a caller waits for it
        results->urgent = true;
}

void decision_results_clear(decision_results_t *results)
{
    arena_reset(&results->arena);
    results->list = (arena_list_t){0};
    results->urgent = false;
}
