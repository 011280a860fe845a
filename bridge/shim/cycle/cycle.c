// SPDX-License-Identifier: GPL-2.0-or-later
#include "cycle/cycle.h"

#include <stdlib.h>

#include "common/slurm_compat.h"
#include "cycle/events.h"
#include "decisions/actions.h"
#include "decisions/apply.h"
#include "wire/framing.h"

#define WIRE_VERSION 1
#define SHIM_VERSION "0.1.0"
#define RETRY_MS 250
#define FALLBACK_RETRY_MS 1000
// If a newer controller has taken over, this one still retries, in case that one has ended.
#define FENCED_RETRY_MS 5000
// Maximum number of log messages per minute that a service or an impostor can cause.
#define MAX_LINES 3
// After a scan there is a pause of this many times its duration, so that scans use at most a fifth
// of one processor, whatever the rate of jobs.
#define REST_FACTOR 4
// Calls are batched under load: after this many immediate calls, one every PACE_MS. Users do not
// notice, and thousands of short jobs share cycles. Where calls take long (a busy machine, a long
// queue) they are spaced so that they take a fiftieth of the time, but at most LONGEST_PACE_MS
// apart.
#define BURST 5
#define PACE_MS 200
#define PACE_FACTOR 50
#define LONGEST_PACE_MS 500
// Jobs that started, or that only hold their nodes for the last moments, are reported with the next
// change, at most this long after the first of them.
#define WAIT_MS 500
// Updates within the present second may hide each other: scan again after this time, or after this
// many times the duration of a scan. Scan also once a second while a limit of an association or QOS
// holds a job: sacctmgr causes no event.
#define RECHECK_MS 50
#define RECHECK_FACTOR 50
#define SECOND_MS 1000
#define CLAMP(value, minimum, maximum) MAX(minimum, MIN(maximum, value))

void cycle_forget(cycle_t *cycle)
{
    sent_state_clear(&cycle->sent_state);
    cycle->greeted = false;
    cycle->full = true;
    cycle->wait_ms = 0;
}

static int64_t pace_ms(const cycle_t *cycle)
{
    return CLAMP((int64_t)(PACE_FACTOR * cycle->usual_ms), PACE_MS, LONGEST_PACE_MS);
}

static void note_round_trip(cycle_t *cycle, int64_t began_us)
{
    cycle->round_trip_ms = (double)(clock_us() - began_us) / 1000.0;
    double bounded = MIN(cycle->round_trip_ms, (double)LONGEST_PACE_MS / PACE_FACTOR);
    cycle->usual_ms += (bounded - cycle->usual_ms) / 4;
}

// ---------------------------------------------------------------- silence

typedef enum {
    ABSENT,  // no answer, or not in time
    FENCED,  // a newer controller has taken over
    REFUSED, // the peer is not trusted, or its answer is invalid
} silence_t;

static void note_silence(cycle_t *cycle, int64_t began_ms, silence_t kind, const char *what,
                         const char *problem)
{
    char reason[sizeof(cycle->fallback.reason)], why[sizeof(reason)];
    int64_t now_ms = clock_ms();
    unsigned hidden;
    plain(why, sizeof(why), problem);
    if (kind != ABSENT && throttle_allows(&cycle->refusals, MAX_LINES, now_ms, &hidden)) {
        if (hidden)
            error("bridge: %u more calls failed in the same way", hidden);
        error("bridge: %s failed: %s", what, why);
    } else if (!cycle->silent_since_ms) {
        verbose("bridge: %s failed: %s", what, why);
    } else {
        debug("bridge: %s failed: %s", what, why);
    }
    if (!cycle->silent_since_ms)
        cycle->silent_since_ms = began_ms;
    cycle_forget(cycle); // unknown how much of it arrived
    cycle->retry_ms = now_ms + (kind == FENCED           ? FENCED_RETRY_MS
                                : cycle->fallback.active ? FALLBACK_RETRY_MS
                                                         : RETRY_MS);
    if (now_ms - cycle->silent_since_ms >= (int64_t)cycle->settings.silence_s * 1000 - RETRY_MS) {
        snprintf(reason, sizeof(reason), "%s: %.*s", what, (int)sizeof(reason) - 20, why);
        fallback_enter(&cycle->fallback, reason);
    }
}

static void note_answer(cycle_t *cycle)
{
    cycle->silent_since_ms = 0;
    fallback_leave(&cycle->fallback);
}

// A call may take the rest of the silence time.
static unsigned timeout_ms(const cycle_t *cycle)
{
    int64_t maximum = (int64_t)cycle->settings.silence_s * 1000;
    int64_t left = cycle->silent_since_ms && !cycle->fallback.active
                       ? maximum - (clock_ms() - cycle->silent_since_ms)
                       : maximum;
    return (unsigned)MAX(left, RETRY_MS);
}

// ---------------------------------------------------------------- calls

// Packs, calls and unpacks. The caller frees the reply by its type; NULL: the silence was recorded.
static ProtobufCMessage *call(cycle_t *cycle, const char *method, const ProtobufCMessage *request,
                              bool greeting)
{
    char problem[300];
    const unsigned char *reply;
    size_t reply_bytes;
    size_t bytes = protobuf_c_message_get_packed_size(request);
    unsigned char *framed = malloc(FRAME_BYTES + bytes);
    if (!framed)
        abort();
    protobuf_c_message_pack(request, framed + FRAME_BYTES);
    int64_t began_us = clock_us();
    ProtobufCMessage *message = NULL;
    silence_t silence = REFUSED;
    if (!wire_call(cycle->wire, method, framed, bytes, reply_max_bytes(&cycle->scale),
                   timeout_ms(cycle), &reply, &reply_bytes, problem, sizeof(problem))) {
        wire_failure_t failure = wire_failure(cycle->wire);
        silence = failure == WIRE_FENCED ? FENCED : failure == WIRE_FAILED ? ABSENT : REFUSED;
    } else if (greeting) {
        message =
            (ProtobufCMessage *)reply_hello(reply, reply_bytes, NULL, problem, sizeof(problem));
    } else {
        message = (ProtobufCMessage *)reply_cycle(&cycle->scale, reply, reply_bytes, NULL, problem,
                                                  sizeof(problem));
    }
    free(framed);
    note_round_trip(cycle, began_us);
    if (!message)
        note_silence(cycle, began_us / 1000, silence, method, problem);
    return message;
}

static void greet(cycle_t *cycle, const pb_hello_reply_t *reply)
{
    char service[65], policy[65];
    unsigned hidden;
    if (throttle_allows(&cycle->greetings, MAX_LINES, clock_ms(), &hidden))
        info("bridge: %s decides, policy %s", plain(service, sizeof(service), reply->service),
             plain(policy, sizeof(policy), reply->policy));
}

static bool hello(cycle_t *cycle)
{
    char controller[100];
    pb_hello_request_t request = SCHEDBRIDGE__V1__HELLO_REQUEST__INIT;
    if (!lock_scope_take(&cycle->locks, LOCK_SCOPE_READ))
        return false;
    char *cluster = xstrdup(slurm_conf.cluster_name);
    request.memory_consumable = (slurm_conf.select_type_param & COMPAT_CR_MEMORY) != 0;
    request.whole_cores = (slurm_conf.select_type_param & COMPAT_CR_WHOLE_CORES) != 0;
    lock_scope_give(&cycle->locks);
    snprintf(controller, sizeof(controller), "slurm %d.%02d.%d sched/bridge %s",
             (int)SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER),
             (int)SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER),
             (int)SLURM_VERSION_MICRO(SLURM_VERSION_NUMBER), SHIM_VERSION);
    request.wire_version = WIRE_VERSION;
    request.controller = controller;
    request.epoch = cycle->epoch;
    request.cluster = cluster ? cluster : "";
    request.features = action_features(cycle->settings.resizes, &request.n_features);
    int64_t began_ms = clock_ms();
    pb_hello_reply_t *reply = (pb_hello_reply_t *)call(cycle, "Hello", &request.base, true);
    xfree(cluster);
    if (!reply)
        return false;
    bool good = reply->wire_version == WIRE_VERSION && reply->service_epoch;
    if (!good) {
        note_silence(cycle, began_ms, REFUSED, "Hello", "the service speaks another wire version");
    } else {
        if (cycle->service_epoch != reply->service_epoch) {
            greet(cycle, reply);
            decision_results_clear(
                &cycle->results); // results of decisions that no service remembers
        }
        cycle->service_epoch = reply->service_epoch;
        cycle->decided = 0;
        cycle->greeted = true;
        cycle->full = true;
        sent_state_clear(&cycle->sent_state);
    }
    schedbridge__v1__hello_reply__free_unpacked(reply, NULL);
    return good;
}

static pb_cycle_reply_t *call_cycle(cycle_t *cycle, snapshot_t *snapshot)
{
    pb_cycle_request_t request = SCHEDBRIDGE__V1__CYCLE_REQUEST__INIT;
    pb_status_t status = SCHEDBRIDGE__V1__CONTROLLER_STATUS__INIT;
    snapshot_fill(snapshot, &request);
    request.epoch = cycle->epoch;
    request.base_generation = cycle->full ? 0 : cycle->generation;
    request.generation = ++cycle->generation;
    request.fates = (pb_decision_result_t **)cycle->results.list.items;
    request.n_fates = cycle->results.list.count;
    status.fallbacks = cycle->fallback.times;
    status.fallback_time_s = fallback_seconds(&cycle->fallback);
    status.fallback_reason = cycle->fallback.reason;
    status.lock_ms_max = lock_scope_longest_ms(&cycle->locks);
    status.round_trip_ms = cycle->round_trip_ms;
    request.status = &status;
    debug("bridge: cycle %" PRIu64 "%s: %zu jobs, %zu left, %zu nodes, %zu results; locks held "
          "%.1f ms at most",
          request.generation, cycle->full ? " (full)" : "", request.n_jobs, request.n_removed_jobs,
          request.n_nodes, request.n_fates, status.lock_ms_max);
    cycle->scale = snapshot->scale;
    cycle->scale.jobs = cycle->sent_state.count;
    return (pb_cycle_reply_t *)call(cycle, "Cycle", &request.base, false);
}

static void process_reply(cycle_t *cycle, const pb_cycle_reply_t *reply)
{
    applied_t applied;
    bool known = reply->service_epoch == cycle->service_epoch;
    bool good = known && !reply->need_full && reply->generation == cycle->generation;
    if (!good && cycle->full) { // after a full report there is nothing to ask for
        note_silence(cycle, clock_ms(), REFUSED, "Cycle",
                     "the service does not accept a full report");
        cycle->greeted = known;
        return;
    }
    if (!known) {
        debug("bridge: the service has been restarted");
        cycle_forget(cycle);
        cycle->again = true;
        return;
    }
    if (!good) {
        debug("bridge: the service requests a full report");
        sent_state_clear(&cycle->sent_state);
        cycle->full = true;
        cycle->again = true;
        return;
    }
    cycle->full = false;
    decision_results_clear(&cycle->results);
    note_answer(cycle);
    if (reply->wake_after_s)
        cycle->tick_ms = MIN(cycle->tick_ms, clock_ms() + (int64_t)reply->wake_after_s * 1000);
    if (reply->wake_after_ms)
        cycle->tick_ms = MIN(cycle->tick_ms, clock_ms() + (int64_t)reply->wake_after_ms);
    if (!apply_reply(reply, &cycle->sent_state, &cycle->locks, &cycle->results, &cycle->decided,
                     &applied))
        return;
    if (reply->n_decisions && applied.repeated == reply->n_decisions) {
        // A hello restarts the numbering, so that one excessive number locks nothing out.
        note_silence(cycle, clock_ms(), REFUSED, "Cycle", "the service repeats its decisions");
        return;
    }
    if (reply->n_decisions)
        debug("bridge: %zu decisions: %u starts, %u resizes, %u announcements, %u not carried out; "
              "round trip %.1f ms",
              reply->n_decisions, applied.starts, applied.resizes, applied.announcements,
              applied.refused, cycle->round_trip_ms);
}

// ---------------------------------------------------------------- timing

int64_t cycle_rests_ms(const cycle_t *cycle)
{
    int64_t until_ms = cycle->silent_since_ms ? cycle->retry_ms : cycle->rested_ms;
    return MAX(until_ms - clock_ms(), 0);
}

bool cycle_due(cycle_t *cycle)
{
    int64_t now_ms = clock_ms();
    fallback_assert(&cycle->fallback);
    if (cycle->silent_since_ms)
        return now_ms >= cycle->retry_ms;
    if (now_ms < cycle->rested_ms)
        return false;
    time_t now = time(NULL);
    return cycle->again || cycle->results.urgent || now_ms >= cycle->tick_ms ||
           (cycle->recheck_ms && now_ms >= cycle->recheck_ms) ||
           (cycle->wait_ms && now_ms >= cycle->wait_ms) ||
           (cycle->next_s && now >= cycle->next_s) || events_fingerprint() != cycle->seen;
}

// Reads Slurm's tables; into an empty sent state for a full report.
static bool scan(cycle_t *cycle, snapshot_t *snapshot)
{
    if (!snapshot_take(snapshot, &cycle->sent_state, &cycle->locks))
        return false;
    if (snapshot->renumbered && !cycle->full) {
        snapshot_clear(snapshot);
        sent_state_clear(&cycle->sent_state);
        cycle->full = true;
        return snapshot_take(snapshot, &cycle->sent_state, &cycle->locks);
    }
    return true;
}

// Whether to send what a scan found now. Changes that can wait are found again by the next scan.
static bool is_report_due(cycle_t *cycle, const snapshot_t *snapshot, bool tick)
{
    if (cycle->full || tick || cycle->results.urgent)
        return true;
    if (!snapshot_has_news(snapshot)) {
        cycle->wait_ms = 0;
        return false;
    }
    if (!snapshot_can_wait(snapshot))
        return true;
    if (!cycle->wait_ms)
        cycle->wait_ms = clock_ms() + WAIT_MS;
    if (clock_ms() >= cycle->wait_ms)
        return true;
    sent_state_untell(&cycle->sent_state);
    return false;
}

void cycle_run(cycle_t *cycle)
{
    snapshot_t snapshot = {0};
    cycle->locks.batch_ms = cycle->settings.batch_ms;
    if (!cycle->greeted && !hello(cycle))
        return;
    int64_t began_us = clock_us();
    bool tick = began_us / 1000 >= cycle->tick_ms;
    time_t second = time(NULL);
    cycle->seen = events_fingerprint();
    bool recheck = events_latest() >= second;
    cycle->again = false;
    if (!scan(cycle, &snapshot)) {
        snapshot_clear(&snapshot);
        return;
    }
    cycle->again = snapshot.again;
    cycle->next_s = snapshot.next_s;
    int64_t cost_us = clock_us() - began_us;
    int64_t recheck_ms = RECHECK_FACTOR * cost_us / 1000;
    cycle->recheck_ms = recheck            ? clock_ms() + CLAMP(recheck_ms, RECHECK_MS, SECOND_MS)
                        : snapshot.limited ? clock_ms() + MAX(recheck_ms, SECOND_MS)
                                           : 0;
    if (is_report_due(cycle, &snapshot, tick)) {
        cycle->wait_ms = 0;
        cycle->tick_ms = clock_ms() + (int64_t)cycle->settings.tick_s * 1000;
        cycle->paid_ms = MAX(cycle->paid_ms, clock_ms()) + pace_ms(cycle);
        pb_cycle_reply_t *reply = call_cycle(cycle, &snapshot);
        if (reply) {
            process_reply(cycle, reply);
            schedbridge__v1__cycle_reply__free_unpacked(reply, NULL);
        }
    }
    cycle->rested_ms = MAX(clock_ms() + MIN(REST_FACTOR * cost_us / 1000, SECOND_MS),
                           cycle->paid_ms - BURST * pace_ms(cycle));
    snapshot_clear(&snapshot);
}
