// SPDX-License-Identifier: GPL-2.0-or-later
#include "expect.h"
#include "report/sent_state.h"

#define JOBS 5000

static unsigned forgotten;

static void forget(const sent_job_t *job, void *context) {
    EXPECT(job->job_id);
    EXPECT(!((bool *)context)[job->job_id]);
    forgotten++;
}

// A sent state against a plain array, through many scans in which jobs come, stay and go.
static void a_sent_state_agrees_with_an_array(void) {
    static bool known[JOBS + 1], seen[JOBS + 1];
    sent_state_t sent_state = {0};
    srand(7);
    for (int scan = 0; scan < 40; scan++) {
        unsigned left = 0;
        sent_state.scan++;
        memset(seen, 0, sizeof(seen));
        for (uint32_t id = 1; id <= JOBS; id++) {
            if (rand() % 100 < (known[id] ? 90 : scan % 7 * 5)) {
                bool made;
                sent_job_t *job = sent_state_put(&sent_state, id, &made);
                EXPECT_NUMBER(made, !known[id]);
                EXPECT_NUMBER(job->job_id, id);
                if (made)
                    job->fingerprint = id * UINT64_C(77);
                EXPECT_NUMBER(job->fingerprint, id * UINT64_C(77));
                job->scan = sent_state.scan;
                seen[id] = true;
            }
            left += known[id] && !seen[id];
        }
        forgotten = 0;
        sent_state_sweep(&sent_state, forget, seen);
        EXPECT_NUMBER(forgotten, left);
        memcpy(known, seen, sizeof(known));
        size_t count = 0;
        for (uint32_t id = 1; id <= JOBS; id++) {
            sent_job_t *job = sent_state_find(&sent_state, id);
            EXPECT_NUMBER(job != NULL, known[id]);
            EXPECT(!job || job->fingerprint == id * UINT64_C(77));
            count += known[id];
        }
        EXPECT_NUMBER(sent_state.count, count);
    }
    sent_state_clear(&sent_state);
    EXPECT(!sent_state_find(&sent_state, 1));
}

static void what_is_not_told_is_found_again(void) {
    sent_state_t sent_state = {.scan = 7};
    bool made;
    *sent_state_put(&sent_state, 1, &made) =
        (sent_job_t){.job_id = 1, .fingerprint = 5, .told = 7, .ended = 6, .sent = true};
    *sent_state_put(&sent_state, 2, &made) =
        (sent_job_t){.job_id = 2, .fingerprint = 5, .told = 6, .ended = 7, .sent = true};
    sent_state_untell(&sent_state);
    const sent_job_t *one = sent_state_find(&sent_state, 1), *two = sent_state_find(&sent_state, 2);
    EXPECT(!one->fingerprint && !one->told && one->ended == 6 && one->sent);
    EXPECT(two->fingerprint == 5 && two->told == 6 && !two->ended);
    sent_state_clear(&sent_state);
}

static void an_empty_sent_state_is_no_trouble(void) {
    sent_state_t sent_state = {.scan = 9};
    EXPECT(!sent_state_find(&sent_state, 0));
    EXPECT(!sent_state_find(&sent_state, UINT32_MAX));
    sent_state_sweep(&sent_state, forget, NULL);
    sent_state_clear(&sent_state);
    EXPECT_NUMBER(sent_state.scan, 9);
}

int main(void) {
    a_sent_state_agrees_with_an_array();
    what_is_not_told_is_found_again();
    an_empty_sent_state_is_no_trouble();
    DONE();
}
