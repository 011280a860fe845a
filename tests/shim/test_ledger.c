// SPDX-License-Identifier: GPL-2.0-or-later
#include "expect.h"
#include "ledger.h"

#define JOBS 5000

static unsigned forgotten;

static void forget(const ledger_job_t *job, void *context) {
    EXPECT(job->job_id);
    EXPECT(!((bool *)context)[job->job_id]);
    forgotten++;
}

// A ledger against a plain array, through many scans in which jobs come, stay and go.
static void a_ledger_agrees_with_an_array(void) {
    static bool known[JOBS + 1], seen[JOBS + 1];
    ledger_t ledger = {0};
    srand(7);
    for (int scan = 0; scan < 40; scan++) {
        unsigned left = 0;
        ledger.scan++;
        memset(seen, 0, sizeof(seen));
        for (uint32_t id = 1; id <= JOBS; id++) {
            if (rand() % 100 < (known[id] ? 90 : scan % 7 * 5)) {
                bool made;
                ledger_job_t *job = ledger_put(&ledger, id, &made);
                EXPECT_NUMBER(made, !known[id]);
                EXPECT_NUMBER(job->job_id, id);
                if (made)
                    job->print = id * UINT64_C(77);
                EXPECT_NUMBER(job->print, id * UINT64_C(77));
                job->scan = ledger.scan;
                seen[id] = true;
            }
            left += known[id] && !seen[id];
        }
        forgotten = 0;
        ledger_sweep(&ledger, forget, seen);
        EXPECT_NUMBER(forgotten, left);
        memcpy(known, seen, sizeof(known));
        size_t count = 0;
        for (uint32_t id = 1; id <= JOBS; id++) {
            ledger_job_t *job = ledger_find(&ledger, id);
            EXPECT_NUMBER(job != NULL, known[id]);
            EXPECT(!job || job->print == id * UINT64_C(77));
            count += known[id];
        }
        EXPECT_NUMBER(ledger.count, count);
    }
    ledger_clear(&ledger);
    EXPECT(!ledger_find(&ledger, 1));
}

static void what_is_not_told_is_found_again(void) {
    ledger_t ledger = {.scan = 7};
    bool made;
    *ledger_put(&ledger, 1, &made) =
        (ledger_job_t){.job_id = 1, .print = 5, .told = 7, .ended = 6, .sent = true};
    *ledger_put(&ledger, 2, &made) =
        (ledger_job_t){.job_id = 2, .print = 5, .told = 6, .ended = 7, .sent = true};
    ledger_untell(&ledger);
    const ledger_job_t *one = ledger_find(&ledger, 1), *two = ledger_find(&ledger, 2);
    EXPECT(!one->print && !one->told && one->ended == 6 && one->sent);
    EXPECT(two->print == 5 && two->told == 6 && !two->ended);
    ledger_clear(&ledger);
}

static void an_empty_ledger_is_no_trouble(void) {
    ledger_t ledger = {.scan = 9};
    EXPECT(!ledger_find(&ledger, 0));
    EXPECT(!ledger_find(&ledger, UINT32_MAX));
    ledger_sweep(&ledger, forget, NULL);
    ledger_clear(&ledger);
    EXPECT_NUMBER(ledger.scan, 9);
}

int main(void) {
    a_ledger_agrees_with_an_array();
    what_is_not_told_is_found_again();
    an_empty_ledger_is_no_trouble();
    DONE();
}
