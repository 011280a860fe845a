// SPDX-License-Identifier: GPL-2.0-or-later
// The dialogue with the service: a hello, then cycles; and the fallback after a silence.
#ifndef BRIDGE_CYCLE_H
#define BRIDGE_CYCLE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "common/lock_scope.h"
#include "common/throttle.h"
#include "cycle/fallback.h"
#include "decisions/decision_results.h"
#include "report/sent_state.h"
#include "report/snapshot.h"
#include "wire/reply.h"
#include "wire/settings.h"
#include "wire/wire.h"

typedef struct {
    settings_t settings;
    wire_t *wire; // opened and closed by the thread; others interrupt it under a lock
    lock_scope_t locks;
    sent_state_t sent_state;
    decision_results_t results;
    fallback_t fallback;

    uint64_t epoch;         // of this life of the plugin; 0: unknown
    uint64_t service_epoch; // of the service; 0: none met yet
    uint64_t generation;    // of the last call
    uint64_t decided;       // the greatest decision number since the hello
    reply_scale_t scale;    // of what it was told
    bool greeted;           // the present service has accepted the hello
    bool full;              // the next call is a full report

    int64_t silent_since_ms;        // start of the first of consecutive failed calls; 0: none
    int64_t retry_ms;               // no call before this, while silent
    double round_trip_ms;           // of the last call
    double usual_ms;                // recent average, cut where longer times do not matter
    throttle_t refusals, greetings; // limits on log messages about them

    // The next cycle waits for these.
    uint64_t seen;      // events_fingerprint() before the last scan
    int64_t recheck_ms; // the last scan fell into the second of an update; 0: it did not
    time_t next_s;      // when something changes by itself; 0: nothing
    int64_t tick_ms;    // latest time of the next call
    int64_t rested_ms;  // earliest next scan: scanning has a bounded share of time
    int64_t paid_ms;    // earliest next call: calls have a bounded share of time
    int64_t wait_ms;    // when changes that could wait must be sent; 0: there are none
    bool again;         // immediately
} cycle_t;

// True if a cycle is due.
bool cycle_due(cycle_t *cycle);

// How long cycle_due() will stay false; an event may end that if this is 0.
int64_t cycle_rests_ms(const cycle_t *cycle);

// Makes one cycle: scans, calls if there are changes, carries out the reply.
void cycle_run(cycle_t *cycle);

// Makes the next report a full one, after settings or the service changed.
void cycle_forget(cycle_t *cycle);

#endif
