// SPDX-License-Identifier: GPL-2.0-or-later
// The conversation, against mocks of slurmctld and of the service: what silence means, what is
// heard and what is not, and that no lock is held during a call (the mock of the service looks).
#include "cycle/cycle.h"
#include "expect.h"
#include "mock_wire.h"
#include "report/jobs.h"
#include "slurm_mock.h"

static cycle_t cycle;

static void no_complaint(const char *line) {
    fprintf(stderr, "%s\n", line);
    exit(1);
}

static void begin(void) {
    char problem[100];
    mock_begin(8, 4);
    mock_wire_begin();
    cycle = (cycle_t){.full = true, .epoch = 1000, .locks = {.batch_ms = 5}};
    settings_read(&cycle.settings, "", no_complaint);
    cycle.wire = wire_open(&cycle.settings, problem, sizeof(problem));
    fallback_begin(&cycle.fallback);
}

static void end(void) {
    mock_nothing_held("after a cycle");
    wire_close(cycle.wire);
    sent_state_clear(&cycle.sent_state);
    decision_results_clear(&cycle.results);
    fallback_end(&cycle.fallback);
    mock_wire_end();
    mock_end();
}

// Looks every 10 ms, as the plugin's thread does.
static void live(int64_t ms) {
    for (int64_t until_us = mock.now_us + ms * 1000; mock.now_us < until_us; mock.now_us += 10000) {
        if (cycle_due(&cycle))
            cycle_run(&cycle);
        mock_nothing_held("after a cycle");
    }
}

// ---------------------------------------------------------------- scripts of the service

static pb_decision_t decisions[2], *list[2];
static pb_start_t starts[2];

// Starts every waiting job that is reported, each on a node of its own.
static void start_all(const pb_cycle_request_t *request, pb_cycle_reply_t *reply) {
    static char *const nodes[] = {"n1", "n2"};
    reply->decisions = list;
    for (size_t i = 0; i < request->n_jobs && reply->n_decisions < 2; i++) {
        const pb_job_t *job = request->jobs[i];
        size_t n = reply->n_decisions;
        if (job->state != PB(JOB_STATE__JOB_STATE_PENDING))
            continue;
        schedbridge__v1__decision__init(&decisions[n]);
        schedbridge__v1__start__init(&starts[n]);
        decisions[n].id = ++mock_wire.decided;
        decisions[n].job_id = job->id;
        decisions[n].job_version = job->version;
        decisions[n].action_case = PB(DECISION__ACTION_START);
        decisions[n].start = &starts[n];
        starts[n].nodes = nodes[n];
        list[reply->n_decisions++] = &decisions[n];
    }
}

static void need_full(const pb_cycle_request_t *request, pb_cycle_reply_t *reply) {
    start_all(request, reply);
    reply->need_full = true;
}

static void another_generation(const pb_cycle_request_t *request, pb_cycle_reply_t *reply) {
    start_all(request, reply);
    reply->generation--;
}

// The same in the lower half, and as a double.
static void a_generation_that_looks_alike(const pb_cycle_request_t *request,
                                          pb_cycle_reply_t *reply) {
    start_all(request, reply);
    reply->generation ^= UINT64_C(1) << 32;
}

static void a_service_that_looks_alike(const pb_cycle_request_t *request, pb_cycle_reply_t *reply) {
    start_all(request, reply);
    reply->service_epoch ^= UINT64_C(1) << 32;
}

static void another_service(const pb_cycle_request_t *request, pb_cycle_reply_t *reply) {
    start_all(request, reply);
    reply->service_epoch++;
}

static size_t flood(unsigned char *bytes, size_t count, size_t room) {
    (void)count;
    if (!mock_wire.cycle)
        return count;
    for (size_t i = 0; i + 1 < room; i += 2) {
        bytes[i] = 0x1a; // a decision of no bytes
        bytes[i + 1] = 0;
    }
    return room;
}

static size_t noise(unsigned char *bytes, size_t count, size_t room) {
    (void)room;
    memset(bytes, 0xff, count);
    return count;
}

// ---------------------------------------------------------------- good days

static void jobs_are_told_and_started(void) {
    begin();
    mock_wire.script = start_all;
    job_record_t *job = mock_job(1);
    live(100);
    EXPECT_NUMBER(mock_wire.hellos, 1);
    EXPECT(IS_JOB_RUNNING(job));
    EXPECT(slurmctld_config.scheduling_disabled);
    live(1000);
    EXPECT_NUMBER(cycle.results.list.count, 0); // the result was told
    unsigned calls = mock_wire.cycles;
    live(5000);
    EXPECT_NUMBER(mock_wire.cycles, calls); // nothing happens, nothing is said
    live(6000);
    EXPECT(mock_wire.cycles > calls); // the tick
    EXPECT_NUMBER(mock.errors, 0);
    end();
}

static void start_who_is_not_held(const pb_cycle_request_t *request, pb_cycle_reply_t *reply) {
    if (request->n_jobs && request->jobs[0]->hold == PB(HOLD__HOLD_NONE))
        start_all(request, reply);
}

// sacctmgr leaves no trace: a job that a limit keeps back is examined once a second.
static void limits_that_change_are_seen_soon(void) {
    begin();
    mock_wire.script = start_who_is_not_held;
    accounting_enforce = ACCOUNTING_ENFORCE_LIMITS;
    job_record_t *job = mock_job(1);
    job->mock.limited = true;
    live(3000);
    EXPECT(IS_JOB_PENDING(job));
    unsigned calls = mock_wire.cycles;
    live(4000);
    EXPECT_NUMBER(mock_wire.cycles, calls); // nothing to say
    job->mock.limited = false;
    live(1500);
    EXPECT(IS_JOB_RUNNING(job));
    end();
}

// Nothing can be decided for a job that has begun to run, nor while it holds its nodes still.
static void what_frees_nothing_is_told_with_what_comes(void) {
    begin();
    mock_wire.script = start_all;
    live(1000);
    job_record_t *job = mock_job(1);
    slurmctld_diag_stats.jobs_submitted++;
    live(100);
    EXPECT(IS_JOB_RUNNING(job));
    unsigned calls = mock_wire.cycles;
    live(200);
    EXPECT_NUMBER(mock_wire.cycles, calls);
    EXPECT_NUMBER(cycle.results.list.count, 1);
    job_record_t *other = mock_job(2);
    slurmctld_diag_stats.jobs_submitted++;
    live(50);
    EXPECT_NUMBER(mock_wire.cycles, calls + 1);
    EXPECT_NUMBER(mock_wire.cycle->n_jobs, 2); // with the one that is started now
    EXPECT_NUMBER(mock_wire.cycle->n_fates, 1);
    EXPECT(IS_JOB_RUNNING(other));
    live(400);
    EXPECT_NUMBER(mock_wire.cycles, calls + 1);
    live(200); // it does not wait for ever
    EXPECT_NUMBER(mock_wire.cycles, calls + 2);
    EXPECT_NUMBER(mock_wire.cycle->n_jobs, 1);
    job->job_state = JOB_COMPLETE | JOB_COMPLETING;
    job->end_time = job->start_time + 1;
    slurmctld_diag_stats.jobs_completed++;
    live(300);
    EXPECT_NUMBER(mock_wire.cycles, calls + 2);
    job->job_state = JOB_COMPLETE; // its nodes are free
    slurmctld_diag_stats.jobs_completed++;
    live(50);
    EXPECT_NUMBER(mock_wire.cycles, calls + 3);
    EXPECT_NUMBER(mock_wire.cycle->n_removed_jobs, 1);
    EXPECT_NUMBER(mock_wire.cycle->n_ended, 1); // once, though two scans have found it
    other->end_time += 60;                      // of one that runs already: plans depend on it
    slurmctld_diag_stats.jobs_submitted++;
    live(50);
    EXPECT_NUMBER(mock_wire.cycles, calls + 4);
    live(5000);
    EXPECT_NUMBER(mock_wire.cycles, calls + 4);
    end();
}

static unsigned calls_of_a_stream(int64_t takes_us) {
    begin();
    mock_wire.takes_us = takes_us;
    live(10000);
    unsigned before = mock_wire.cycles;
    for (uint32_t id = 1; id <= 1000; id++) {
        mock_job(id);
        slurmctld_diag_stats.jobs_submitted++;
        live(10);
    }
    unsigned calls = mock_wire.cycles - before;
    end();
    return calls;
}

// Ten seconds of a job every 10 ms.
static void calls_that_take_long_come_more_seldom(void) {
    unsigned calls = calls_of_a_stream(3000);
    EXPECT(calls >= 45 && calls <= 60); // one each 200 ms, after some at once
    calls = calls_of_a_stream(8000);
    EXPECT(calls >= 22 && calls <= 38); // 400 ms
    calls = calls_of_a_stream(40000);
    EXPECT(calls >= 16 && calls <= 38); // 500 ms: nobody waits for longer
}

// ---------------------------------------------------------------- what is not heard

static job_record_t *changing;

static void change(void) {
    if (changing)
        changing->time_limit++;
}

static void a_job_that_changes_during_the_call_does_not_start(void) {
    begin();
    mock_wire.script = start_all;
    changing = mock_job(1);
    job_record_t *other = mock_job(2);
    mock_wire.meanwhile = change;
    cycle_run(&cycle);
    EXPECT(!IS_JOB_RUNNING(changing));
    EXPECT(IS_JOB_RUNNING(other));
    EXPECT_NUMBER(cycle.results.list.count, 2);
    const pb_decision_result_t *result = cycle.results.list.items[0];
    EXPECT_NUMBER(result->outcome, PB(OUTCOME__OUTCOME_STALE));
    job_record_t *job = changing;
    changing = NULL;
    live(1000);
    EXPECT(IS_JOB_RUNNING(job)); // once it was told as it is
    end();
}

static void expect_unheard(void (*script)(const pb_cycle_request_t *, pb_cycle_reply_t *)) {
    begin();
    mock_job(1);
    mock_wire.script = script;
    live(400);
    EXPECT(mock_wire.cycles >= 1);
    EXPECT_NUMBER(mock.selects, 0);
    live(8000); // who goes on so is a silent service
    EXPECT(cycle.fallback.active);
    EXPECT(!slurmctld_config.scheduling_disabled);
    EXPECT_NUMBER(mock.selects, 0);
    EXPECT(mock.errors <= 5 + 1);
    end();
}

static void replies_to_something_else_are_not_heard(void) {
    expect_unheard(need_full);
    expect_unheard(another_generation);
    expect_unheard(another_service);
    expect_unheard(a_generation_that_looks_alike);
    expect_unheard(a_service_that_looks_alike);
}

static void a_new_service_is_greeted_and_counts_anew(void) {
    begin();
    mock_wire.script = start_all;
    mock_wire.decided = 1000;
    mock_job(1);
    live(1000);
    EXPECT(cycle.decided > 1000);
    mock_wire.epoch++;
    mock_wire.decided = 0;
    job_record_t *job = mock_job(2);
    slurmctld_diag_stats.jobs_submitted++;
    live(1000);
    EXPECT_NUMBER(mock_wire.hellos, 2);
    EXPECT(IS_JOB_RUNNING(job));
    EXPECT(cycle.decided < 1000);
    EXPECT_NUMBER(cycle.fallback.times, 0);
    end();
}

static unsigned repeated_hellos;

// One number that is far too great must not make all that follow old for ever.
static void leap(const pb_cycle_request_t *request, pb_cycle_reply_t *reply) {
    start_all(request, reply);
    if (reply->n_decisions && !repeated_hellos) {
        repeated_hellos = mock_wire.hellos;
        decisions[0].id = UINT64_MAX;
    }
}

static void a_number_that_leaps_locks_nobody_out(void) {
    begin();
    repeated_hellos = 0;
    mock_wire.script = leap;
    mock_job(1);
    live(100);
    EXPECT_NUMBER(repeated_hellos, 1);
    job_record_t *job = mock_job(2);
    slurmctld_diag_stats.jobs_submitted++;
    live(2000);
    EXPECT(IS_JOB_RUNNING(job));
    EXPECT_SAYS(mock.last_error, "repeats its decisions");
    EXPECT(!cycle.fallback.times);
    end();
}

// ---------------------------------------------------------------- silence

static void expect_fallback(const char *words, unsigned max_errors) {
    int64_t began_us = mock.now_us;
    while (!cycle.fallback.active && mock.now_us < began_us + 60000000)
        live(10);
    EXPECT(cycle.fallback.active);
    EXPECT(mock.now_us - began_us <= 5200000);         // bridge_silence_s
    EXPECT_SAYS(mock.last_error, "sched_backfill.so"); // which the mock does not have
    EXPECT_SAYS(cycle.fallback.reason, words);
    EXPECT(!slurmctld_config.scheduling_disabled);
    EXPECT_NUMBER(mock.schedules, 1);
    live(600000); // ten minutes
    EXPECT(mock.errors <= max_errors);
    EXPECT_NUMBER(cycle.fallback.times, 1);
}

static void expect_return(void) {
    mock_wire.fails = NULL;
    mock_wire.failure = WIRE_FAILED;
    mock_wire.bend = NULL;
    mock_wire.takes_us = 0;
    mock_wire.script = start_all;
    job_record_t *job = mock_job(1);
    live(6000);
    EXPECT(!cycle.fallback.active);
    EXPECT(slurmctld_config.scheduling_disabled);
    EXPECT(IS_JOB_RUNNING(job));
}

static void a_service_that_is_gone_is_waited_for(void) {
    begin();
    mock_wire.fails = "nobody is there\nforged line";
    expect_fallback("nobody is there?forged line", 2);
    EXPECT(mock_wire.hellos == 0 && mock_wire.cycles == 0);
    expect_return();
    end();
}

static void a_service_that_is_slow_is_left(void) {
    begin();
    mock_wire.takes_us = 5100000;
    live(10000);
    EXPECT(cycle.fallback.active);
    expect_return();
    end();
}

static void an_absurd_reply_is_a_failed_call(void) {
    begin();
    mock_job(9);
    mock_wire.bend = flood;
    expect_fallback("decisions", 2 + 3 * 11 + 10); // three lines a minute, and how many more
    EXPECT_NUMBER(mock.selects, 0);
    expect_return();
    end();
}

static void noise_is_a_failed_call(void) {
    begin();
    mock_wire.bend = noise;
    expect_fallback("not understood", 2 + 3 * 11 + 10);
    expect_return();
    end();
}

static void a_stranger_at_the_socket_is_one_line(void) {
    begin();
    mock_wire.fails = "user 1001 listens there";
    mock_wire.failure = WIRE_UNTRUSTED;
    expect_fallback("user 1001 listens", 2 + 3 * 11 + 10);
    expect_return();
    end();
}

static void who_is_fenced_off_asks_slowly(void) {
    begin();
    mock_wire.fails = "gRPC status 10: epoch 5 is over: a newer controller (epoch 9)";
    mock_wire.failure = WIRE_FENCED;
    live(600000);
    EXPECT(cycle.fallback.active);
    EXPECT_SAYS(cycle.fallback.reason, "a newer controller");
    EXPECT(mock.errors <= 2 + 3 * 11 + 10);
    EXPECT_NUMBER(mock_wire.hellos, 0);
    expect_return();
    end();
}

static unsigned fenced_calls;

static void count_call(void) {
    fenced_calls++;
}

static void a_fence_is_tried_every_few_seconds(void) {
    begin();
    fenced_calls = 0;
    mock_wire.meanwhile = count_call;
    mock_wire.fails = "gRPC status 10: over";
    mock_wire.failure = WIRE_FENCED;
    live(60000);
    EXPECT(fenced_calls >= 10 && fenced_calls <= 13);
    end();
}

static void names_of_a_service_forge_no_lines(void) {
    begin(); // the mock ends the suite for a line that is not text
    mock_wire.name = "evil\n[2026] slurmctld: error: forged";
    mock_wire.policy = "\x1b[31mred";
    for (int lives = 0; lives < 50; lives++) { // of a service that is always another one
        mock_wire.epoch++;
        mock_job(100 + (uint32_t)lives);
        slurmctld_diag_stats.jobs_submitted++;
        live(500);
    }
    EXPECT(mock_wire.hellos >= 20);
    EXPECT(mock.infos <= 10);
    end();
}

// ---------------------------------------------------------------- poison

static void a_poisonous_job_stops_no_other(void) {
    begin();
    mock_wire.script = start_all;
    job_record_t *bad = mock_job(1);
    free(bad->name);
    bad->name = xstrdup("x\xffy\n\x1b[31m");
    bad->mock.waits_for = WAIT_DEPENDENCY;
    free(bad->account);
    bad->account = NULL;
    bad->start_time = INT64_C(253402300799) * 1000;
    bad->deadline = INT64_MAX / 4;
    bad->details->exc_nodes = malloc(1 << 20);
    memset(bad->details->exc_nodes, 'n', 1 << 20);
    bad->details->exc_nodes[(1 << 20) - 1] = 0;
    bad->details->exc_node_bitmap = bit_alloc(8);
    bit_set(bad->details->exc_node_bitmap, 3);
    bad->details->features = xstrdup(bad->details->exc_nodes);
    job_record_t *worse = mock_job(2);
    job_details_t *details = worse->details;
    worse->details = NULL;
    job_record_t *good = mock_job(3);
    cycle_run(&cycle);
    EXPECT_NUMBER(mock_wire.cycle->n_jobs, 2);
    const pb_job_t *told = mock_wire.cycle->jobs[0];
    if (strcmp(told->id, "1") != 0)
        told = mock_wire.cycle->jobs[1];
    EXPECT_TEXT(told->name, "x?y\n\x1b[31m"); // for the service to make printable
    EXPECT_TEXT(told->request->excluded_nodes, "n4");
    EXPECT(strlen(told->request->features) < 20000);
    live(1000);
    EXPECT(IS_JOB_RUNNING(good));
    worse->details = details;
    end();
}

int main(void) {
    jobs_are_told_and_started();
    limits_that_change_are_seen_soon();
    what_frees_nothing_is_told_with_what_comes();
    calls_that_take_long_come_more_seldom();
    a_job_that_changes_during_the_call_does_not_start();
    replies_to_something_else_are_not_heard();
    a_new_service_is_greeted_and_counts_anew();
    a_number_that_leaps_locks_nobody_out();
    a_service_that_is_gone_is_waited_for();
    a_service_that_is_slow_is_left();
    an_absurd_reply_is_a_failed_call();
    noise_is_a_failed_call();
    a_stranger_at_the_socket_is_one_line();
    who_is_fenced_off_asks_slowly();
    a_fence_is_tried_every_few_seconds();
    names_of_a_service_forge_no_lines();
    a_poisonous_job_stops_no_other();
    DONE();
}
