// SPDX-License-Identifier: GPL-2.0-or-later
// Whole cycles of the plugin in a mock of slurmctld whose records hold anything and change at any
// moment at which the locks are free, against a service that says anything. What must hold:
//   a job starts only by a decision of this very reply for just what it asks for now, on just those
//   nodes, and not twice by one number; every other request is as its user left it; every decision
//   has a result; locks are balanced, and free during calls; nothing grows.
// Usage: fuzz_cycle [rounds [seed]]; a failure is repeated with the seed it printed.
#include <inttypes.h>

#include "common/hash.h"
#include "common/records.h"
#include "cycle/cycle.h"
#include "expect.h"
#include "mock_wire.h"
#include "random.h"
#include "report/jobs.h"
#include "resize/expand.h"
#include "slurm_mock.h"

#define NODES 8
#define MAX_JOBS 24
#define MAX_DECISIONS 40
#define WORLD_ROUNDS 3000
#define MAX_MEMORY ((size_t)64 * 1024 * 1024)

size_t __sanitizer_get_current_allocated_bytes(void); // of the sanitizers

static cycle_t cycle;
static uint32_t next_id;
static unsigned long starts_seen, stale_seen, understood, refused, fallbacks;

// ---------------------------------------------------------------- poison

static uint32_t any32(uint32_t sane) {
    static const uint32_t odd[] = {0, 1, 2, 1u << 31, NO_VAL, INFINITE, UINT32_MAX - 2, 65535};
    return one_in(20) ? odd[random_below(8)] : sane;
}

static uint16_t any16(uint16_t sane) {
    return one_in(20) ? (uint16_t)any32(sane) : sane;
}

static uint64_t any64(uint64_t sane) {
    static const uint64_t odd[] = {
        0, 1, UINT64_MAX, NO_VAL64, MEM_PER_CPU, MEM_PER_CPU | 5, UINT64_MAX / 2, NO_VAL};
    return one_in(20) ? odd[random_below(8)] : sane;
}

static time_t any_time(time_t sane) {
    static const time_t odd[] = {
        0,         1,        -1, NO_VAL, INFINITE, INT64_C(253402300799), INT64_C(361600000000),
        INT64_MAX, INT64_MIN};
    return one_in(20) ? odd[random_below(9)] : sane;
}

static char *any_text(const char *sane) {
    if (!one_in(12))
        return xstrdup(sane);
    if (one_in(3))
        return NULL;
    size_t length = one_in(50) ? 70000 : random_below(60);
    char *text = malloc(length + 1);
    for (size_t i = 0; i < length; i++)
        text[i] = one_in(2) ? "n[1-9],\n\x1b%"[random_below(10)] : (char)(1 + random_below(255));
    text[length] = 0;
    return text;
}

static void set_text(char **text, const char *sane) {
    free(*text);
    *text = any_text(sane);
}

static bitstr_t *any_nodes(void) {
    bitstr_t *nodes = bit_alloc(node_record_count);
    for (int i = 0; i < node_record_count; i++) {
        if (one_in(3))
            bit_set(nodes, i);
    }
    return nodes;
}

// ---------------------------------------------------------------- what a user asked for

static uint64_t bits_print(bitstr_t *bits) {
    uint64_t print = bits ? 2 : 1;
    for (bitoff_t i = 0; bits && i < bit_size(bits); i++)
        print = 2 * print + (uint64_t)bit_test(bits, i);
    return print;
}

// All that the plugin changes for the time of a start.
static uint64_t shape(const job_record_t *job) {
    const job_details_t *details = job->details;
    bridge_hash_t hash = BRIDGE_HASH_START;
    if (!details)
        return 1;
    hash_number(&hash, (uint64_t)details->min_nodes << 32 | details->max_nodes);
    hash_number(&hash, (uint64_t)details->task_dist << 32 | job->req_switch);
    hash_number(&hash, bits_print(details->req_node_bitmap));
    hash_number(&hash, bits_print(details->exc_node_bitmap));
    hash_number(&hash, details->arbitrary_tpn != NULL);
    if (IS_JOB_PENDING(job)) {
        hash_number(&hash, job->time_limit);
        hash_number(&hash, (uint64_t)(uintptr_t)job->part_ptr);
    }
    return hash_end(hash);
}

static uint64_t settled_version(const job_record_t *job) {
    return job->details ? job_version(job) : 0;
}

// To be called after every change of a record by others than the plugin.
static void settle(job_record_t *job) {
    job->mock.shape = shape(job);
    job->mock.version = settled_version(job);
}

// ---------------------------------------------------------------- a living cluster

static job_record_t *any_job(void) {
    return job_list->count ? job_list->items[random_below((unsigned)job_list->count)] : NULL;
}

static void new_job(void) {
    if (job_list->count >= MAX_JOBS)
        return;
    uint32_t id = next_id++;
    job_record_t *job = one_in(4) ? mock_array(id, 1 + random_below(5)) : mock_job(id);
    job_details_t *details = job->details;
    details->max_nodes = 1 + random_below(3);
    details->num_tasks = 1 + random_below(4);
    if (one_in(6)) {
        job->part_ptr_list = mock_list();
        mock_append(job->part_ptr_list, part_list->items[0]);
        mock_append(job->part_ptr_list, part_list->items[1]);
    }
    settle(job);
}

static void poison(job_record_t *job) {
    job_details_t *details = job->details;
    switch (details ? random_below(16) : 15) {
    case 0:
        job->time_limit = any32(1 + random_below(100));
        break;
    case 1:
        details->min_nodes = any32(1);
        details->max_nodes = any32(1 + random_below(3));
        break;
    case 2:
        details->num_tasks = any32(1 + random_below(4));
        details->cpus_per_task = any16(1);
        details->ntasks_per_node = any16(0);
        break;
    case 3:
        details->pn_min_memory = any64(100);
        details->pn_min_cpus = any32(1);
        details->min_cpus = any32(1);
        break;
    case 4:
        details->begin_time = any_time(time(NULL) + (time_t)random_below(100) - 80);
        details->submit_time = any_time(time(NULL) - 100);
        break;
    case 5:
        job->deadline = any_time(one_in(2) ? 0 : time(NULL) + (time_t)random_below(1000));
        job->time_min = any32(NO_VAL);
        break;
    case 6:
        job->start_time = any_time(0);
        job->end_time = any_time(time(NULL));
        break;
    case 7:
        set_text(&job->name, "name");
        set_text(&job->user_name, "alice");
        set_text(&job->account, "physics");
        break;
    case 8:
        set_text(&job->partition, "main");
        set_text(&job->licenses, "matlab:1");
        set_text(&job->resv_name, one_in(2) ? NULL : "resv");
        set_text(&job->state_desc, "words");
        break;
    case 9:
        set_text(&details->req_nodes, "n1");
        set_text(&details->exc_nodes, "n2");
        set_text(&details->features, "fast");
        details->features_use = NULL;
        FREE_NULL_BITMAP(details->req_node_bitmap);
        FREE_NULL_BITMAP(details->exc_node_bitmap);
        details->req_node_bitmap = one_in(3) ? any_nodes() : NULL;
        details->exc_node_bitmap = one_in(3) ? any_nodes() : NULL;
        break;
    case 10:
        job->req_switch = any32(0);
        job->wait4switch = any32(10);
        job->priority = any32(100);
        break;
    case 11:
        if (job->array_recs) {
            job->array_recs->max_run_tasks = any32(2);
            job->array_recs->tot_run_tasks = any32(1);
        }
        job->het_job_id = one_in(10) ? 5 : 0;
        job->assoc_id = one_in(10) ? 666 : 1;
        break;
    case 12:
        for (uint32_t i = 0; job->spank_job_env && i < job->spank_job_env_size; i++)
            free(job->spank_job_env[i]);
        free(job->spank_job_env);
        job->spank_job_env_size = random_below(4);
        job->spank_job_env = calloc(job->spank_job_env_size + 1, sizeof(char *));
        for (uint32_t i = 0; i < job->spank_job_env_size; i++) {
            static const char *const entries[] = {
                "_SLURM_SPANK_OPTION_schedbridge_malleable=1-2",
                "SPANK_X=1",
                "=",
                "_SLURM_SPANK_OPTION_schedbridge_chunks=2:ncpus=1",
                "_SLURM_SPANK_OPTION_schedbridge_node_constraints=pof2",
                "_SLURM_SPANK_OPTION_schedbridge_coschedule=both",
                "SPANK_SCHEDBRIDGE_SHARES=3:1"};
            job->spank_job_env[i] = any_text(entries[random_below(7)]);
        }
        if (job->part_ptr)
            job->part_ptr->max_share = one_in(3) ? 1 : 2;
        if (job->job_state == JOB_PENDING)
            job->details->share_res = one_in(3) ? 0 : 254;
        job->details->requeue = one_in(2);
        break;
    case 13:
        job->mock.waits_for = one_in(6) ? (int)(1 + random_below(REASONS - 1)) : 0;
        job->mock.limited = one_in(8);
        job->mock.too_late = one_in(16);
        job->mock.never = one_in(64);
        break;
    case 14:
        details->whole_node = one_in(4);
        details->contiguous = any16(0);
        details->prolog_running = one_in(20);
        job->batch_flag = !one_in(4);
        set_text(&job->burst_buffer, one_in(9) ? "ready" : NULL);
        xfree(job->burst_buffer); // staging is for test_snapshot
        break;
    default:
        job->part_ptr = one_in(40) ? NULL : part_list->items[random_below(2)];
        job->state_reason = random_below(REASONS);
    }
}

// Slurm frees the details of a job only when it has ended.
static void advance(job_record_t *job) {
    if (IS_JOB_PENDING(job)) {
        if (one_in(8))
            job->job_state = JOB_CANCELLED | (one_in(4) ? JOB_REVOKED : 0);
        else if (one_in(10) && job->details && job->part_ptr && !job->job_resrcs)
            mock_run(job, (int)random_below(NODES), (uint16_t)any32(2));
    } else if (IS_JOB_RUNNING(job)) {
        job->job_state = (one_in(2) ? JOB_COMPLETE : JOB_TIMEOUT) | JOB_COMPLETING;
        job->node_bitmap_cg = one_in(4) || !job->job_resrcs || !job->job_resrcs->node_bitmap
                                  ? NULL
                                  : bit_copy(job->job_resrcs->node_bitmap);
    } else if (IS_JOB_COMPLETING(job)) {
        job->job_state &= ~(uint32_t)JOB_COMPLETING;
        FREE_NULL_BITMAP(job->node_bitmap_cg);
    } else {
        mock_forget(job);
    }
}

static void change_nodes(void) {
    node_record_t *node = node_record_table_ptr[random_below((unsigned)node_record_count)];
    static const uint32_t states[] = {NODE_STATE_IDLE,
                                      NODE_STATE_DOWN,
                                      NODE_STATE_MIXED,
                                      NODE_STATE_IDLE | NODE_STATE_DRAIN,
                                      NODE_STATE_IDLE | NODE_STATE_PLANNED,
                                      NODE_STATE_FUTURE};
    node->node_state = states[random_below(6)];
    node->real_memory = any64(1024);
    node->cpus_efctv = any16(4);
    last_node_update = time(NULL);
}

// Something happens in slurmctld while its locks are free.
static void happen(void) {
    for (unsigned events = random_below(3); events; events--) {
        job_record_t *job = any_job();
        if (job && one_in(2)) {
            poison(job);
            settle(job);
        } else if (job && one_in(3)) {
            advance(job);
            slurmctld_diag_stats.jobs_completed++;
        } else if (one_in(8)) {
            change_nodes();
        } else {
            new_job();
            slurmctld_diag_stats.jobs_submitted++;
        }
        last_job_update = time(NULL);
    }
    if (one_in(200)) // the wall clock is set
        mock.wall_us += ((int64_t)random_below(7200) - 3600) * 1000000;
    for (int i = 0; i < job_list->count; i++) { // some of that may have been a run or an end
        job_record_t *job = job_list->items[i];
        job->mock.shape = shape(job);
        job->mock.version = settled_version(job);
    }
}

// ---------------------------------------------------------------- a service that says anything

static pb_decision_t decisions[MAX_DECISIONS], *list[MAX_DECISIONS];
static pb_start_t starts[MAX_DECISIONS];
static pb_planned_start_t planned[MAX_DECISIONS];
static pb_pending_t reasons[MAX_DECISIONS];
static pb_node_use_t uses[MAX_DECISIONS], *use_list[MAX_DECISIONS];
static pb_reserve_t reserve;
static pb_unreserve_t unreserve;
static pb_resize_t resizes[MAX_DECISIONS];
static pb_progress_t progress;
static pb_requeue_t requeue;
static pb_extend_t extension;
static char texts[MAX_DECISIONS][4][64];

static const char *some_nodes(char *text, size_t bytes) {
    static const char *const odd[] = {
        "", "n9", "n[1-4000000000]", "n[1-", "n1\nn2", "n1,n1", "n[1-8],n[1-8]", "x", "n[3-3,3-3]"};
    if (one_in(10))
        return odd[random_below(9)];
    unsigned first = 1 + random_below(NODES), last = MIN(NODES, first + random_below(3));
    snprintf(text, bytes, first == last ? "n%u" : "n[%u-%u]", first, last);
    return text;
}

static void decide(size_t n) {
    const job_record_t *job = any_job();
    pb_decision_t *decision = &decisions[n];
    schedbridge__v1__decision__init(decision);
    schedbridge__v1__start__init(&starts[n]);
    schedbridge__v1__planned_start__init(&planned[n]);
    schedbridge__v1__pending__init(&reasons[n]);
    // Most often a new number, or one that was used, or is like a new one in its lower half.
    decision->id = one_in(30) ? mock_wire.decided : ++mock_wire.decided;
    decision->id -= one_in(30) && decision->id >> 32 ? UINT64_C(1) << 32 : 0;
    if (job && job->array_job_id && job->array_task_id != NO_VAL)
        snprintf(texts[n][0], 64, "%u_%u", job->array_job_id, job->array_task_id);
    else
        snprintf(texts[n][0], 64, "%" PRIu64,
                 (job && !one_in(30) ? job->job_id : random_below(50)) +
                     (UINT64_C(1) << 32) * (uint64_t)one_in(30));
    decision->job_id = texts[n][0];
    decision->job_version = job ? job->mock.version : 1;
    if (one_in(10))
        decision->job_version ^= UINT64_C(1) << random_below(64);
    reasons[n].code = (pb_reason_t)random_below(20);
    reasons[n].text = one_in(9) ? "odd \n\x1b[31m" : "needs nodes";
    switch (random_below(8)) {
    case 0:
    case 1:
    case 2:
        decision->action_case = PB(DECISION__ACTION_PLANNED_START);
        decision->planned_start = &planned[n];
        planned[n].start_s = any_time(time(NULL) + (time_t)random_below(1000));
        planned[n].nodes = (char *)some_nodes(texts[n][1], 64);
        planned[n].reason = one_in(2) ? &reasons[n] : NULL;
        break;
    case 3:
        decision->action_case = PB(DECISION__ACTION_PENDING);
        decision->pending = &reasons[n];
        break;
    case 4:
        if (one_in(4)) {
            schedbridge__v1__reserve__init(&reserve);
            reserve.name = one_in(3) ? "taken" : "r1";
            reserve.users = "root";
            reserve.nodes = "n1";
            reserve.start_s = any_time(100);
            reserve.end_s = any_time(200);
            decision->action_case = PB(DECISION__ACTION_RESERVE);
            decision->reserve = &reserve;
        } else if (one_in(4)) {
            schedbridge__v1__unreserve__init(&unreserve);
            unreserve.name = one_in(3) ? "unknown" : "r1";
            decision->action_case = PB(DECISION__ACTION_UNRESERVE);
            decision->unreserve = &unreserve;
        } else if (one_in(4)) {
            schedbridge__v1__progress__init(&progress);
            progress.text = one_in(2) ? "odd \n; schedbridge: \x1b[31m" : "";
            decision->action_case = PB(DECISION__ACTION_PROGRESS);
            decision->progress = &progress;
        } else if (one_in(4)) {
            schedbridge__v1__requeue__init(&requeue);
            requeue.reason = one_in(2) ? "odd \n; schedbridge: \x1b[31m" : "";
            decision->action_case = PB(DECISION__ACTION_REQUEUE);
            decision->requeue = &requeue;
        } else if (one_in(3)) {
            schedbridge__v1__extend__init(&extension);
            extension.total_s = one_in(4) ? any_time(100) : (int64_t)random_below(2000);
            decision->action_case = PB(DECISION__ACTION_EXTEND);
            decision->extend = &extension;
        } else if (one_in(2)) {
            schedbridge__v1__resize__init(&resizes[n]);
            resizes[n].nodes = (char *)some_nodes(texts[n][1], 64);
            decision->action_case = PB(DECISION__ACTION_RESIZE);
            decision->resize = &resizes[n];
        }
        break;
    default:
        decision->action_case = PB(DECISION__ACTION_START);
        decision->start = &starts[n];
        starts[n].nodes = (char *)some_nodes(texts[n][1], 64);
        starts[n].partition = one_in(3) ? (one_in(3) ? "nowhere" : "half") : "";
        if (one_in(6))
            starts[n].host_job_id = one_in(4) ? "odd_1" : texts[random_below((unsigned)n + 1)][0];
        if (one_in(4)) {
            schedbridge__v1__node_use__init(&uses[n]);
            uses[n].nodes = one_in(3) ? (char *)some_nodes(texts[n][2], 64) : starts[n].nodes;
            uses[n].cpus = any32(1 + random_below(3));
            use_list[n] = &uses[n];
            starts[n].uses = &use_list[n];
            starts[n].n_uses = 1;
        }
    }
    list[n] = decision;
}

static void script(const pb_cycle_request_t *request, pb_cycle_reply_t *reply) {
    (void)request;
    reply->decisions = list;
    for (unsigned wanted = random_below(one_in(20) ? MAX_DECISIONS : 12); wanted; wanted--)
        decide(reply->n_decisions++);
    reply->wake_after_s = one_in(10) ? any32(1) : 0;
    if (one_in(40))
        reply->need_full = true;
    if (one_in(40))
        reply->generation ^= UINT64_C(1) << random_below(64);
    if (one_in(40))
        reply->service_epoch ^= UINT64_C(1) << random_below(64);
    if (one_in(60))
        mock_wire.decided += UINT64_C(1) << 32;
}

// What has arrived, for the judge of starts.
static pb_cycle_reply_t *arrived;
static uint64_t decided_before, started_by[MAX_DECISIONS];
static size_t n_started;

static void note_arrival(const unsigned char *bytes, size_t count) {
    if (arrived)
        schedbridge__v1__cycle_reply__free_unpacked(arrived, NULL);
    arrived = mock_wire.cycle ? schedbridge__v1__cycle_reply__unpack(NULL, count, bytes) : NULL;
    decided_before = cycle.decided;
    n_started = 0;
}

static size_t bend(unsigned char *bytes, size_t count, size_t room) {
    if (one_in(6)) {
        for (unsigned flips = 1 + random_below(4); flips && count; flips--)
            bytes[random_below((unsigned)count)] = (unsigned char)random_below(256);
        size_t cut = one_in(4) ? random_below(30) : 0;
        count -= MIN(count, cut);
    }
    if (one_in(3000))
        for (count = 0; count + 1 < room; count += 2)
            memcpy(bytes + count, "\x1a\0", 2);
    note_arrival(bytes, count);
    return count;
}

// ---------------------------------------------------------------- the judge

static bool names_job(const pb_decision_t *decision, const job_record_t *job) {
    char id[32];
    snprintf(id, sizeof(id), "%u", job->job_id);
    if (!strcmp(decision->job_id, id))
        return true;
    unsigned array, task;
    return sscanf(decision->job_id, "%u_%u", &array, &task) == 2 && array == job->array_job_id &&
           task == job->array_task_id;
}

// Called by select_nodes() before it changes the record.
static void judge_start(job_record_t *job) {
    bitstr_t *nodes = NULL, *given = NULL;
    if (expand_is_helper(job))
        return;
    bool allowed = false;
    EXPECT(nodes_named(mock.select_names, &given));
    EXPECT(arrived && arrived->service_epoch == cycle.service_epoch && !arrived->need_full);
    EXPECT(arrived->generation == cycle.generation);
    for (size_t i = 0; !allowed && i < arrived->n_decisions; i++) {
        const pb_decision_t *decision = arrived->decisions[i];
        if (decision->action_case != PB(DECISION__ACTION_START) || !names_job(decision, job) ||
            decision->job_version != job->mock.version || decision->id <= decided_before)
            continue;
        bool used = false;
        for (size_t k = 0; k < n_started; k++)
            used |= started_by[k] == decision->id;
        if (used || !nodes_named(decision->start->nodes, &nodes))
            continue;
        allowed = bits_print(nodes) == bits_print(given) &&
                  (uint32_t)bit_set_count(given) == job->details->min_nodes;
        FREE_NULL_BITMAP(nodes);
        if (allowed && n_started < MAX_DECISIONS)
            started_by[n_started++] = decision->id;
    }
    if (!allowed)
        fprintf(stderr, "job %u starts on %s, and no decision says so\n", job->job_id,
                mock.select_names);
    EXPECT(allowed);
    FREE_NULL_BITMAP(given);
    starts_seen++;
}

static void judge_world(void) {
    mock_nothing_held("after a cycle");
    EXPECT_NUMBER(mock.fed_locks, 0);
    for (int i = 0; i < job_list->count; i++) {
        job_record_t *job = job_list->items[i];
        if (IS_JOB_PENDING(job) && job->mock.shape != shape(job))
            fprintf(stderr,
                    "the request of job %u is not what it was: nodes %u-%u, distribution %u, "
                    "switches %u, required %s, excluded %s, limit %u, partition %s\n",
                    job->job_id, job->details->min_nodes, job->details->max_nodes,
                    job->details->task_dist, job->req_switch,
                    job->details->req_node_bitmap ? "some" : "none",
                    job->details->exc_node_bitmap ? "some" : "none", job->time_limit,
                    job->part_ptr ? job->part_ptr->name : "none");
        EXPECT(!IS_JOB_PENDING(job) || job->mock.shape == shape(job));
        EXPECT(!job->details || !job->details->arbitrary_tpn);
    }
    for (size_t i = 0; i < cycle.results.list.count; i++) {
        const pb_decision_result_t *result = cycle.results.list.items[i];
        EXPECT(result->outcome >= PB(OUTCOME__OUTCOME_APPLIED) &&
               result->outcome <= PB(OUTCOME__OUTCOME_LIMITED));
        stale_seen += result->outcome == PB(OUTCOME__OUTCOME_STALE);
    }
}

// ---------------------------------------------------------------- rounds

static void no_complaint(const char *line) {
    fprintf(stderr, "%s\n", line);
    exit(1);
}

static void begin_world(void) {
    char problem[100];
    mock_begin(NODES, 4);
    mock_wire_begin();
    mock.on_start = judge_start;
    mock.between = happen;
    mock_wire.script = script;
    mock_wire.bend = bend;
    mock_wire.meanwhile = happen;
    accounting_enforce = one_in(2) ? ACCOUNTING_ENFORCE_LIMITS : 0;
    cycle = (cycle_t){.full = true, .epoch = 1000, .locks = {.batch_ms = 5}};
    settings_read(&cycle.settings, "", no_complaint);
    cycle.wire = wire_open(&cycle.settings, problem, sizeof(problem));
    fallback_begin(&cycle.fallback);
    next_id = 1;
}

static void end_world(void) {
    fallbacks += cycle.fallback.times;
    wire_close(cycle.wire);
    sent_state_clear(&cycle.sent_state);
    decision_results_clear(&cycle.results);
    fallback_end(&cycle.fallback);
    note_arrival((const unsigned char *)"", 0);
    if (arrived)
        schedbridge__v1__cycle_reply__free_unpacked(arrived, NULL);
    arrived = NULL;
    mock_wire_end();
    mock_end();
}

static void play(void) {
    happen();
    mock.look_us = one_in(10) ? random_below(4000) : 0;
    static const int codes[] = {ESLURM_NODES_BUSY, ESLURM_ACCOUNTING_POLICY,
                                ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE,
                                ESLURM_LICENSES_UNAVAILABLE};
    mock.select_code = one_in(4) ? codes[random_below(4)] : 0;
    mock.split_anyway = one_in(2);
    mock.other_cluster = one_in(50);
    mock_wire.fails = one_in(60) ? "gone" : NULL;
    mock_wire.failure = (wire_failure_t)random_below(3);
    mock_wire.takes_us = one_in(100) ? random_below(8000000) : 0;
    if (one_in(300)) {
        mock_wire.epoch++;
        mock_wire.decided = 0;
    }
    mock.now_us += one_in(20) ? random_below(3000000) : random_below(100000);
    unsigned calls = mock_wire.cycles;
    // Without the pace it keeps: nearly every round shall say something.
    if (one_in(10) || !cycle.silent_since_ms || mock.now_us / 1000 >= cycle.retry_ms) {
        if (one_in(50))
            (void)cycle_due(&cycle);
        if (!one_in(8))
            cycle.tick_ms = 0;
        cycle_run(&cycle);
    }
    if (mock_wire.cycles > calls) {
        understood += !cycle.silent_since_ms;
        refused += cycle.silent_since_ms != 0;
    }
    judge_world();
}

int main(int count, char **arguments) {
    unsigned rounds = count > 1 ? (unsigned)atoi(arguments[1]) : 20000;
    unsigned long long seed = count > 2 ? strtoull(arguments[2], NULL, 10) : 0;
    if (count <= 2) {
        FILE *source = fopen("/dev/urandom", "r");
        EXPECT(source && fread(&seed, 4, 1, source) == 1);
        fclose(source);
    }
    random_seed(seed);
    printf("fuzz_cycle: %u rounds, seed %llu\n", rounds, seed);
    fflush(stdout);
    for (unsigned round = 0; round < rounds; round++) {
        if (round % WORLD_ROUNDS == 0) {
            if (round)
                end_world();
            EXPECT(__sanitizer_get_current_allocated_bytes() < MAX_MEMORY);
            begin_world();
        }
        play();
        if ((round + 1) % 100000 == 0) {
            printf("fuzz_cycle: %u rounds, %zu bytes in use\n", round + 1,
                   __sanitizer_get_current_allocated_bytes());
            fflush(stdout);
        }
        EXPECT(round % 100 || __sanitizer_get_current_allocated_bytes() < MAX_MEMORY);
    }
    end_world();
    printf("fuzz_cycle: %lu starts, %lu stale decisions; replies understood %lu, refused %lu; "
           "fallbacks %lu\n",
           starts_seen, stale_seen, understood, refused, fallbacks);
    // Else the fuzzing never gets where it shall.
    EXPECT(rounds < 2000 || (starts_seen > rounds / 100 && stale_seen > rounds / 100 &&
                             understood > rounds / 3 && refused > rounds / 100));
    DONE();
}
