// SPDX-License-Identifier: GPL-2.0-or-later
// The conversation with the service: hello, then cycles; and what silence means.
#ifndef BRIDGE_CYCLE_H
#define BRIDGE_CYCLE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "fallback.h"
#include "decision_results.h"
#include "lock_scope.h"
#include "sent_state.h"
#include "reply.h"
#include "settings.h"
#include "snapshot.h"
#include "throttle.h"
#include "wire.h"

typedef struct {
    settings_t settings;
    wire_t *wire; // opened and closed by the thread; interrupted by others under a lock
    lock_scope_t locks;
    sent_state_t sent_state;
    decision_results_t results;
    fallback_t fallback;

    uint64_t epoch;         // of this life of the plugin; 0: not known yet
    uint64_t service_epoch; // of the service's life; 0: none was met yet
    uint64_t generation;    // of the last call
    uint64_t decided;       // the greatest number of a decision since the hello
    reply_scale_t scale;    // of what it was told
    bool greeted;           // hello was said to the present service
    bool full;              // the next call carries everything

    int64_t silent_since_ms;        // begin of the first of the calls that failed in a row; 0: none
    int64_t retry_ms;               // not before, while silent
    double round_trip_ms;           // of the last call
    double usual_ms;                // of the last few calls, none of them longer than bounds matter
    throttle_t refusals, greetings; // lines about them in the log

    // What the next cycle waits for.
    uint64_t seen;      // events_print() before the last scan
    int64_t recheck_ms; // the last scan fell into the second of an update; 0: it did not
    time_t next_s;      // something changes by itself; 0: nothing
    int64_t tick_ms;    // call at the latest
    int64_t rested_ms;  // not before: scanning takes its bounded share of time
    int64_t paid_ms;    // calls made are paid for until then
    int64_t wait_ms;    // what could wait has waited for long enough; 0: nothing does
    bool again;         // at once
} cycle_t;

// True if a cycle shall be made now.
bool cycle_due(cycle_t *cycle);

// How long cycle_due() is not going to be true; an event may change that if this is 0.
int64_t cycle_rests_ms(const cycle_t *cycle);

// Makes one cycle: scans, calls if there is anything to say, carries out the reply.
void cycle_run(cycle_t *cycle);

// Has everything said anew, after settings or the service changed.
void cycle_forget(cycle_t *cycle);

#endif
