// SPDX-License-Identifier: GPL-2.0-or-later
// What is odd against the mock of slurmctld: poisonous records stop no others, locks are held for a
// bounded time, words are safe to show, orders that make no sense are told.
#include "applying.h"

// ---------------------------------------------------------------- poisonous records

static job_record_t *poison(uint32_t id) {
    job_record_t *job = waiting(id);
    xfree(job->name);
    xfree(job->user_name);
    xfree(job->account);
    xfree(job->partition);
    job->time_limit = INFINITE;
    job->deadline = INT64_MAX / 2;
    job->start_time = INT64_C(253402300799) * 100;
    job->details->begin_time = INT64_C(253402300799);
    job->details->num_tasks = NO_VAL;
    job->details->cpus_per_task = NO_VAL16;
    job->details->max_nodes = NO_VAL;
    job->details->pn_min_memory = UINT64_MAX;
    job->spank_job_env_size = 3;
    job->spank_job_env = calloc(3, sizeof(char *));
    job->spank_job_env[0] = xstrdup("");
    job->spank_job_env[1] = xstrdup("_SLURM_SPANK_OPTION_schedbridge_chunks=\xff\n");
    return job;
}

static void a_poisonous_record_stops_no_other(void) {
    begin();
    job_record_t *bad[4];
    for (uint32_t i = 0; i < 4; i++)
        bad[i] = poison(10 + i);
    bad[1]->part_ptr = NULL;
    xfree(bad[2]->spank_job_env[0]);
    bad[3]->part_ptr_list = mock_list();
    job_record_t *good[4];
    for (uint32_t i = 0; i < 4; i++) {
        good[i] = waiting(1 + i);
        start(bad[i], "n8");
        announce(bad[i], INT64_MAX);
        announce(bad[i], INT64_MIN);
        explain(bad[i], (pb_reason_t)4711, "\x1b[31m");
        static const char *const nodes[] = {"n1", "n2", "n3", "n4"};
        start(good[i], nodes[i]);
    }
    EXPECT(apply());
    for (int i = 0; i < 4; i++)
        EXPECT(IS_JOB_RUNNING(good[i]));
    end();
}

static void a_job_without_details_is_gone(void) {
    begin();
    job_record_t *job = waiting(1);
    job_record_t *other = waiting(2);
    start(job, "n1");
    start(other, "n2");
    job_details_t *details = job->details;
    job->details = NULL; // as Slurm leaves an old job
    EXPECT(apply());
    expect_result(0, STALE, "gone");
    expect_result(1, APPLIED, "");
    job->details = details;
    end();
}

// ---------------------------------------------------------------- locks

static void locks_are_given_back_between_batches(void) {
    begin();
    mock.look_us = 700;
    for (uint32_t id = 1; id <= 500; id++)
        announce(waiting(id), time(NULL) + 100)->nodes = "n[1-8]";
    EXPECT(apply());
    EXPECT_NUMBER(applied.announcements, 500);
    // A decision takes some three looks: no hold is longer than a batch and one more decision.
    EXPECT(mock.longest_us <= 5000 + 4 * 700);
    EXPECT(mock.lock_count >= 100);
    EXPECT(lock_scope_longest_ms(&locks) <= 7.9);
    end();
}

static uint32_t purged;

static void purge(void) {
    EXPECT(lock_scope_take(&locks, LOCK_SCOPE_READ)); // somebody else has them now
    job_record_t *job = find_job_record(++purged);
    lock_scope_give(&locks);
    if (job && !IS_JOB_RUNNING(job))
        mock_forget(job);
    mock.look_us = 0;
}

static void no_pointer_lives_across_a_batch(void) {
    begin();
    mock.look_us = 6000; // each decision is a batch
    purged = 499;
    mock.between = purge;
    for (uint32_t id = 501; id > 499; id--)
        start(waiting(id), "n1");
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    expect_result(1, STALE, "gone"); // purged while the locks were given
    end();
}

static void shut_down(void) {
    slurmctld_config.shutdown_time = time(NULL);
}

static void a_shutdown_leaves_the_rest_undone(void) {
    begin();
    mock.look_us = 6000;
    mock.between = shut_down;
    for (uint32_t id = 1; id <= 3; id++)
        start(waiting(id), "n1");
    EXPECT(!apply());
    EXPECT_NUMBER(mock.started, 1);
    end();
    begin();
    shut_down();
    start(waiting(1), "n1");
    EXPECT(!apply());
    EXPECT_NUMBER(mock.started, 0);
    end();
}

// ---------------------------------------------------------------- words

static void announcements_are_shown(void) {
    begin();
    job_record_t *job = waiting(1);
    pb_pending_t reason = SCHEDBRIDGE__V1__PENDING__INIT;
    reason.code = PB(REASON_CODE__REASON_PRIORITY);
    reason.text = "behind\njob \x1b[31m12\xff";
    pb_planned_start_t *message = announce(job, time(NULL) + 600);
    message->nodes = "n[1-2]";
    message->reason = &reason;
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    EXPECT(!results.urgent);
    EXPECT_NUMBER(job->start_time, time(NULL) + 600);
    EXPECT_TEXT(job->sched_nodes, "n[1-2]");
    EXPECT_NUMBER(job->state_reason, WAIT_PRIORITY);
    EXPECT_TEXT(job->state_desc, "behind?job ?[31m12?");
    EXPECT(sent_state_find(&sent_state, 1)->announced);
    explain(job, PB(REASON_CODE__REASON_RESOURCES), "needs nodes");
    EXPECT(apply());
    EXPECT_NUMBER(job->start_time, 0);
    EXPECT(!job->sched_nodes);
    EXPECT_TEXT(job->state_desc, "needs nodes");
    end();
}

static void announcements_beyond_reason_are_not(void) {
    begin();
    job_record_t *job = waiting(1);
    image_t before = image_of(job);
    const int64_t times[] = {
        0, 1, -1, INT64_MIN, INT64_MAX, INT64_C(361600000000), time(NULL) - 3600};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        announce(job, times[i]);
    announce(job, time(NULL) + 60)->nodes = "nowhere";
    announce(job, time(NULL) + 60)->nodes = "n[1-4000000000]";
    announce(job, time(NULL) + 60)->partition = "nowhere";
    size_t all = count;
    EXPECT(apply());
    for (size_t i = 0; i < all; i++)
        expect_result(i, INVALID, "");
    expect_same(&before, job);
    end();
}

static void a_reason_of_slurms_own_stays(void) {
    begin();
    job_record_t *job = waiting(1);
    job->priority = 0;
    job->state_reason = WAIT_HELD_USER;
    explain(job, PB(REASON_CODE__REASON_RESOURCES), "needs nodes");
    EXPECT(apply());
    EXPECT_NUMBER(job->state_reason, WAIT_HELD_USER);
    end();
}

// What squeue shows: Slurm's word alone where it has one, ours beside it where they say more.
static void slurms_words_are_shown_where_it_has_them(void) {
    const struct {
        pb_reason_t code;
        bool reserved; // the job has a reservation
        const char *named;
        uint32_t word;
        const char *desc;
    } told[] = {
        {PB(REASON_CODE__REASON_LICENCES), false, "", WAIT_LICENSES, NULL},
        {PB(REASON_CODE__REASON_BEGIN_TIME), false, "", WAIT_TIME, NULL},
        {PB(REASON_CODE__REASON_ARRAY_LIMIT), false, "", WAIT_ARRAY_TASK_LIMIT, NULL},
        {PB(REASON_CODE__REASON_RESERVATION), true, "", WAIT_RESERVATION, NULL},
        {PB(REASON_CODE__REASON_MAINTENANCE), true, "", WAIT_RESERVATION, NULL},
        {PB(REASON_CODE__REASON_RESERVATION), false, "", WAIT_NODE_NOT_AVAIL,
         "ReqNodeNotAvail, May be reserved for other job"},
        {PB(REASON_CODE__REASON_MAINTENANCE), false, "", WAIT_NODE_NOT_AVAIL,
         "ReqNodeNotAvail, Reserved for maintenance"},
        {PB(REASON_CODE__REASON_NODES_DOWN), false, "23", WAIT_NODE_NOT_AVAIL,
         "ReqNodeNotAvail, UnavailableNodes:n2,n3"},
        {PB(REASON_CODE__REASON_NODES_DOWN), false, "1", WAIT_NODE_NOT_AVAIL, "ours"},
        {PB(REASON_CODE__REASON_NODES_DOWN), false, "", WAIT_NODE_NOT_AVAIL, "ours"},
        {PB(REASON_CODE__REASON_RESOURCES), false, "", WAIT_RESOURCES, "ours"},
        {PB(REASON_CODE__REASON_PRIORITY), false, "", WAIT_PRIORITY, "ours"},
        {PB(REASON_CODE__REASON_LIMIT), false, "", WAIT_RESOURCES, "ours"},
        {PB(REASON_CODE__REASON_POWER), false, "", WAIT_RESOURCES, "ours"},
        {PB(REASON_CODE__REASON_NEVER), false, "", FAIL_CONSTRAINTS, "ours"},
        {PB(REASON_CODE__REASON_PARTITION), false, "", WAIT_PART_CONFIG, "ours"},
        {(pb_reason_t)99, false, "", WAIT_RESOURCES, "ours"}, // of a newer service
    };
    for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
        begin();
        job_record_t *job = waiting(1);
        job->resv_name = told[i].reserved ? xstrdup("mine") : NULL;
        job->details->req_node_bitmap = told[i].named[0] ? bit_alloc(8) : NULL;
        for (const char *node = told[i].named; *node; node++)
            bit_set(job->details->req_node_bitmap, *node - '1');
        avail_node_bitmap->bit[1] = avail_node_bitmap->bit[2] = false;
        explain(job, told[i].code, "ours");
        EXPECT(apply());
        EXPECT_NUMBER(job->state_reason, told[i].word);
        EXPECT(!xstrcmp(job->state_desc, told[i].desc));
        end();
    }
    const uint16_t states[] = {PARTITION_DOWN, PARTITION_INACTIVE};
    const uint32_t words[] = {WAIT_PART_DOWN, WAIT_PART_INACTIVE};
    for (int i = 0; i < 2; i++) {
        begin();
        job_record_t *job = waiting(1);
        job->part_ptr->state_up = states[i];
        explain(job, PB(REASON_CODE__REASON_PARTITION), "ours");
        EXPECT(apply());
        EXPECT_NUMBER(job->state_reason, words[i]);
        EXPECT(!job->state_desc);
        end();
    }
}

static void a_refusal_is_told_in_slurms_word(void) {
    begin();
    job_record_t *job = waiting(1);
    mock.select_code = ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE;
    start(job, "n1");
    EXPECT(apply());
    EXPECT_NUMBER(job->state_reason, WAIT_PART_CONFIG);
    explain(job, PB(REASON_CODE__REASON_REFUSED), "error 5: PartitionConfig");
    EXPECT(apply());
    EXPECT_NUMBER(job->state_reason, WAIT_PART_CONFIG);
    EXPECT(!job->state_desc);
    // Told of something else meanwhile, and of the refusal again.
    explain(job, PB(REASON_CODE__REASON_RESOURCES), "needs nodes");
    explain(job, PB(REASON_CODE__REASON_REFUSED), "error 5: PartitionConfig");
    EXPECT(apply());
    EXPECT_NUMBER(job->state_reason, WAIT_PART_CONFIG);
    EXPECT(!job->state_desc);
    // Busy nodes: what was the reason is none any more, and the service need not say so again.
    mock.select_code = ESLURM_NODES_BUSY;
    start(job, "n1");
    EXPECT(apply());
    expect_result(0, BUSY, "error");
    EXPECT_NUMBER(job->state_reason, WAIT_RESOURCES);
    EXPECT(!job->state_desc);
    explain(job, PB(REASON_CODE__REASON_RESOURCES), "needs nodes");
    explain(job, PB(REASON_CODE__REASON_REFUSED), "error 7");
    EXPECT(apply());
    EXPECT_NUMBER(job->state_reason, WAIT_RESOURCES);
    EXPECT(!job->state_desc);
    // Slurm has no word for it.
    mock.select_code = ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE;
    start(job, "n1");
    explain(job, PB(REASON_CODE__REASON_REFUSED), "error 8");
    EXPECT(apply());
    EXPECT_NUMBER(job->state_reason, WAIT_RESOURCES);
    EXPECT(!job->state_desc);
    end();
    begin(); // it was never tried: no nodes are free
    job_record_t *jobs[] = {waiting(1), waiting(2)};
    for (int i = 0; i < 2; i++) {
        jobs[i]->state_reason = i ? WAIT_PRIORITY : WAIT_NO_REASON;
        explain(jobs[i], PB(REASON_CODE__REASON_REFUSED), "constraint: counts are not understood");
    }
    EXPECT(apply());
    for (int i = 0; i < 2; i++) {
        EXPECT_NUMBER(jobs[i]->state_reason, WAIT_RESOURCES);
        EXPECT(!jobs[i]->state_desc);
    }
    end();
}

static void odd_words_reach_neither_log_nor_result(void) {
    begin(); // the mock ends the suite for a line that is not text
    job_record_t *job = waiting(1);
    start(job, "n1\n[2026] slurmctld: error: forged")->partition = "main";
    decide(NULL)->job_id = "5\nforged \x1b[2J";
    EXPECT(apply());
    EXPECT(mock.debugs >= 2);
    end();
}

// ---------------------------------------------------------------- reservations

static pb_reserve_t *order(pb_reserve_t *wanted) {
    pb_decision_t *decision = decide(NULL);
    schedbridge__v1__reserve__init(wanted);
    wanted->name = "maintenance";
    wanted->nodes = "n[1-2]";
    wanted->users = "root";
    wanted->start_s = time(NULL) + 100;
    wanted->end_s = time(NULL) + 200;
    decision->job_id = "";
    decision->job_version = 0;
    decision->action_case = PB(DECISION__ACTION_RESERVE);
    decision->reserve = wanted;
    return wanted;
}

static void orders_are_carried_out_by_slurm(void) {
    begin();
    pb_reserve_t wanted[3];
    order(&wanted[0]);
    order(&wanted[1])->name = "taken";
    order(&wanted[2])->licences = "matlab:2";
    pb_unreserve_t unwanted[2] = {SCHEDBRIDGE__V1__UNRESERVE__INIT,
                                  SCHEDBRIDGE__V1__UNRESERVE__INIT};
    unwanted[0].name = "maintenance";
    unwanted[1].name = "unknown";
    for (int i = 0; i < 2; i++) {
        pb_decision_t *decision = decide(NULL);
        decision->action_case = PB(DECISION__ACTION_UNRESERVE);
        decision->unreserve = &unwanted[i];
    }
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    expect_result(1, REFUSED, "taken");
    expect_result(2, APPLIED, "");
    expect_result(3, APPLIED, "");
    expect_result(4, REFUSED, "error");
    EXPECT_NUMBER(mock.reservations, 1);
    end();
}

static void orders_that_make_no_sense_are_invalid(void) {
    begin();
    static char endless[100001];
    memset(endless, 'x', sizeof(endless) - 1);
    pb_reserve_t wanted[10];
    order(&wanted[0])->name = "";
    order(&wanted[1])->name = "a b\n\x1b[31m";
    order(&wanted[2])->name = endless;
    order(&wanted[3])->nodes = "nowhere";
    order(&wanted[4])->users = "";
    order(&wanted[5])->users = "root;id";
    order(&wanted[6])->end_s = 0;
    order(&wanted[7])->start_s = -5;
    order(&wanted[8])->partition = "nowhere\n";
    order(&wanted[9])->licences = endless;
    EXPECT(apply());
    for (size_t i = 0; i < 10; i++)
        expect_result(i, INVALID, "");
    EXPECT_NUMBER(mock.reservations, 0);
    end();
}

int main(void) {
    a_poisonous_record_stops_no_other();
    a_job_without_details_is_gone();
    locks_are_given_back_between_batches();
    no_pointer_lives_across_a_batch();
    a_shutdown_leaves_the_rest_undone();
    announcements_are_shown();
    announcements_beyond_reason_are_not();
    a_reason_of_slurms_own_stays();
    slurms_words_are_shown_where_it_has_them();
    a_refusal_is_told_in_slurms_word();
    odd_words_reach_neither_log_nor_result();
    orders_are_carried_out_by_slurm();
    orders_that_make_no_sense_are_invalid();
    DONE();
}
