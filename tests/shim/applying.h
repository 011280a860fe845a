// SPDX-License-Identifier: GPL-2.0-or-later
// Decisions for the mock of slurmctld, one after the other, and what became of them.
#ifndef APPLYING_H
#define APPLYING_H

#include "common/verdict.h"
#include "decisions/apply.h"
#include "expect.h"
#include "report/jobs.h"
#include "rules/examine.h"
#include "slurm_mock.h"

#define MAX_CASES 2000

static sent_state_t sent_state;
static lock_scope_t locks;
static decision_results_t results;
static applied_t applied;
static uint64_t decided;
static pb_decision_t decisions[MAX_CASES], *list[MAX_CASES];
static pb_start_t starts[MAX_CASES];
static pb_planned_start_t planned[MAX_CASES];
static pb_pending_t pendings[MAX_CASES];
static char ids[MAX_CASES][32];
static size_t count;

static inline void begin(void) {
    mock_begin(8, 4);
    sent_state = (sent_state_t){0};
    locks = (lock_scope_t){.batch_ms = 5};
    results = (decision_results_t){0};
    decided = 0;
    count = 0;
}

static inline void end(void) {
    mock_nothing_held("after a reply");
    decision_results_clear(&results);
    sent_state_clear(&sent_state);
    mock_end();
}

// As a scan has seen it.
static inline sent_job_t *know(const job_record_t *job) {
    bool made;
    sent_job_t *entry = sent_state_put(&sent_state, job->job_id, &made);
    entry->array_job_id = job->array_job_id;
    entry->array_task_id = job->array_task_id;
    entry->sent = true;
    return entry;
}

static inline job_record_t *waiting(uint32_t id) {
    job_record_t *job = mock_job(id);
    know(job);
    return job;
}

static inline job_record_t *waiting_array(uint32_t id, uint32_t tasks) {
    job_record_t *job = mock_array(id, tasks);
    know(job);
    return job;
}

static inline pb_decision_t *decide(const job_record_t *job) {
    pb_decision_t *decision = &decisions[count];
    schedbridge__v1__decision__init(decision);
    schedbridge__v1__start__init(&starts[count]);
    schedbridge__v1__planned_start__init(&planned[count]);
    schedbridge__v1__pending__init(&pendings[count]);
    snprintf(ids[count], sizeof(ids[count]), "%u", job ? job->job_id : 99);
    decision->id = decided + count + 1;
    decision->job_id = ids[count];
    decision->job_version = job ? job_version(job) : 1;
    list[count++] = decision;
    return decision;
}

static inline pb_start_t *start(const job_record_t *job, const char *nodes) {
    pb_start_t *start = &starts[count];
    pb_decision_t *decision = decide(job);
    start->nodes = (char *)nodes;
    decision->action_case = PB(DECISION__ACTION_START);
    decision->start = start;
    return start;
}

static inline pb_planned_start_t *announce(const job_record_t *job, int64_t start_s) {
    pb_planned_start_t *message = &planned[count];
    pb_decision_t *decision = decide(job);
    message->start_s = start_s;
    decision->action_case = PB(DECISION__ACTION_PLANNED_START);
    decision->planned_start = message;
    return message;
}

static inline pb_pending_t *explain(const job_record_t *job, pb_reason_t code, const char *text) {
    pb_pending_t *message = &pendings[count];
    pb_decision_t *decision = decide(job);
    message->code = code;
    message->text = (char *)text;
    decision->action_case = PB(DECISION__ACTION_PENDING);
    decision->pending = message;
    return message;
}

// Applies what was decided; the results are those of this reply alone.
static inline bool apply(void) {
    pb_cycle_reply_t reply = SCHEDBRIDGE__V1__CYCLE_REPLY__INIT;
    reply.decisions = list;
    reply.n_decisions = count;
    decision_results_clear(&results);
    bool good = apply_reply(&reply, &sent_state, &locks, &results, &decided, &applied);
    mock_nothing_held("after a reply");
    EXPECT(!good || results.list.count == count);
    count = 0;
    return good;
}

static inline const pb_decision_result_t *result(size_t which) {
    EXPECT(which < results.list.count);
    return results.list.items[which];
}

static inline void expect_result(size_t which, pb_outcome_t outcome, const char *words) {
    if (result(which)->outcome != outcome)
        fprintf(stderr, "result %zu: %s\n", which, result(which)->text);
    EXPECT_NUMBER(result(which)->outcome, outcome);
    EXPECT_SAYS(result(which)->text, words);
}

// The outcomes in results; in the plugin these words make verdicts.
#undef APPLIED
#undef REFUSED
#undef INVALID
#define APPLIED PB(OUTCOME__OUTCOME_APPLIED)
#define STALE PB(OUTCOME__OUTCOME_STALE)
#define REFUSED PB(OUTCOME__OUTCOME_REFUSED)
#define BUSY PB(OUTCOME__OUTCOME_BUSY)
#define LIMITED PB(OUTCOME__OUTCOME_LIMITED)
#define INVALID PB(OUTCOME__OUTCOME_INVALID)

// Everything of a record that a refused start must not change.
typedef struct {
    job_record_t job;
    job_details_t details;
    char reason[200];
    bitstr_t *required, *excluded;
} image_t;

static inline image_t image_of(const job_record_t *job) {
    image_t image = {.job = *job, .details = *job->details};
    snprintf(image.reason, sizeof(image.reason), "%s", job->state_desc ? job->state_desc : "");
    image.required = job->details->req_node_bitmap ? bit_copy(job->details->req_node_bitmap) : NULL;
    image.excluded = job->details->exc_node_bitmap ? bit_copy(job->details->exc_node_bitmap) : NULL;
    return image;
}

static inline bool same_bits(bitstr_t *a, bitstr_t *b) {
    return !a || !b ? a == b
                    : bit_size(a) == bit_size(b) && bit_super_set(a, b) && bit_super_set(b, a);
}

static inline void expect_same(image_t *image, const job_record_t *job) {
    image_t now = {.job = *job, .details = *job->details};
    EXPECT_TEXT(job->state_desc ? job->state_desc : "", image->reason);
    EXPECT(same_bits(image->required, job->details->req_node_bitmap));
    EXPECT(same_bits(image->excluded, job->details->exc_node_bitmap));
    FREE_NULL_BITMAP(image->required);
    FREE_NULL_BITMAP(image->excluded);
    now.details.req_node_bitmap = image->details.req_node_bitmap;
    now.details.exc_node_bitmap = image->details.exc_node_bitmap;
    now.job.state_desc = image->job.state_desc;
    now.job.last_sched_eval = image->job.last_sched_eval;
    now.job.best_switch = image->job.best_switch; // Slurm's note for itself
    EXPECT(memcmp(&now.job, &image->job, sizeof(now.job)) == 0);
    EXPECT(memcmp(&now.details, &image->details, sizeof(now.details)) == 0);
}

#endif
