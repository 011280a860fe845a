// SPDX-License-Identifier: GPL-2.0-or-later
// Decisions against the mock of slurmctld: only what is still true is carried out, a start that is
// refused leaves the record as it was, and Slurm's locks are held for a bounded time.
#include "applying.h"

// ---------------------------------------------------------------- starts that are carried out

static void a_start_starts_the_job_where_it_is_told(void) {
    begin();
    job_record_t *job = waiting(1);
    job->details->min_nodes = 2;
    job->details->max_nodes = 4;
    job->req_switch = 1;
    job->details->exc_node_bitmap = bit_alloc(8);
    bit_set(job->details->exc_node_bitmap, 7);
    start(job, "n[2-3]")->partition = "main";
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    EXPECT(!results.urgent); // that the job runs is news enough
    EXPECT_NUMBER(applied.starts, 1);
    EXPECT_TEXT(mock.select_names, "n2,n3");
    EXPECT_NUMBER(mock.select_switch, 0);
    EXPECT_NUMBER(mock.launched, 1);
    EXPECT_NUMBER(mock.saves, 2);
    EXPECT_NUMBER(mock.dumps, 0);
    EXPECT(IS_JOB_RUNNING(job));
    // The request is what the user asked for again.
    EXPECT(!job->details->req_node_bitmap);
    EXPECT(bit_set_count(job->details->exc_node_bitmap) == 1);
    EXPECT_NUMBER(job->details->min_nodes, 2);
    EXPECT_NUMBER(job->details->max_nodes, 4);
    EXPECT_NUMBER(job->req_switch, 1);
    end();
}

static void an_interactive_job_is_told_to_its_client(void) {
    begin();
    job_record_t *job = waiting(1);
    job->batch_flag = 0;
    start(job, "n1");
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    EXPECT_NUMBER(mock.allocated, 1);
    EXPECT_NUMBER(mock.launched, 0);
    end();
}

static void an_arrays_rest_keeps_the_request(void) {
    begin();
    job_record_t *job = waiting_array(5, 3);
    job->details->req_node_bitmap = bit_alloc(8);
    bit_set(job->details->req_node_bitmap, 4);
    job->details->min_nodes = 1;
    job->details->max_nodes = 3;
    job->details->pn_min_cpus = 1;
    job->req_switch = 2;
    job->deadline = time(NULL) + 300;
    job->part_ptr_list = mock_list();
    mock_append(job->part_ptr_list, part_list->items[0]);
    mock_append(job->part_ptr_list, part_list->items[1]);
    start(job, "n[1-2]")->partition = "half";
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    EXPECT_NUMBER(mock.select_time_limit, 5); // of ten minutes, for the deadline
    EXPECT(mock.select_part == part_list->items[1]);
    job_record_t *rest = NULL;
    for (int i = 0; i < job_list->count; i++) {
        job_record_t *one = job_list->items[i];
        rest = one->job_id == 5 ? one : rest;
    }
    EXPECT(rest && rest != job && IS_JOB_PENDING(rest));
    EXPECT_NUMBER(job->array_task_id, 0);
    job_record_t *both[] = {job, rest};
    for (int i = 0; i < 2; i++) {
        const job_details_t *details = both[i]->details;
        EXPECT(bit_set_count(details->req_node_bitmap) == 1 &&
               bit_test(details->req_node_bitmap, 4));
        EXPECT(!details->exc_node_bitmap);
        EXPECT_NUMBER(details->min_nodes, 1);
        EXPECT_NUMBER(details->max_nodes, 3);
        EXPECT_NUMBER(both[i]->req_switch, 2);
        EXPECT_NUMBER(details->task_dist, SLURM_DIST_CYCLIC);
        EXPECT(!details->arbitrary_tpn);
    }
    EXPECT_NUMBER(rest->time_limit, 10);
    EXPECT(rest->part_ptr == part_list->items[0]);
    EXPECT_NUMBER(rest->details->pn_min_cpus, 1); // as its own partition has it
    end();
}

static void a_split_before_a_refusal_is_mended_too(void) {
    begin();
    job_record_t *job = waiting_array(5, 3);
    mock.select_code = ESLURM_NODES_BUSY;
    mock.split_anyway = true;
    job->details->max_nodes = 2;
    start(job, "n[1-2]");
    EXPECT(apply());
    expect_result(0, BUSY, "error");
    EXPECT_NUMBER(list_count(job_list), 2);
    for (int i = 0; i < 2; i++) {
        const job_record_t *one = job_list->items[i];
        EXPECT(!one->details->req_node_bitmap && !one->details->exc_node_bitmap);
        EXPECT_NUMBER(one->details->max_nodes, 2);
        EXPECT_NUMBER(one->details->min_nodes, 1);
    }
    end();
}

static void chunks_become_tasks_on_nodes(void) {
    begin();
    pb_node_use_t uses[2] = {SCHEDBRIDGE__V1__NODE_USE__INIT, SCHEDBRIDGE__V1__NODE_USE__INIT};
    pb_node_use_t *both[] = {&uses[0], &uses[1]};
    job_record_t *job = waiting(1);
    job->details->max_nodes = 3;
    job->details->num_tasks = 4;
    uses[0].nodes = "n[1,3]";
    uses[0].cpus = 1;
    uses[1].nodes = "n2";
    uses[1].cpus = 2;
    pb_start_t *wanted = start(job, "n[1-3]");
    wanted->uses = both;
    wanted->n_uses = 2;
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    EXPECT(mock.select_arbitrary);
    EXPECT_NUMBER(mock.select_tasks[0], 1);
    EXPECT_NUMBER(mock.select_tasks[1], 2);
    EXPECT_NUMBER(mock.select_tasks[2], 1);
    EXPECT(!job->details->arbitrary_tpn);
    EXPECT_NUMBER(job->details->task_dist, SLURM_DIST_CYCLIC);
    end();
}

static void chunks_that_do_not_fit_are_refused(void) {
    static const struct {
        const char *nodes;
        unsigned cpus;
        const char *words;
    } wrong[] = {
        {"n1", 0, "not whole tasks of"},      {"n1", 3, "not whole tasks of"},
        {"n1", 131072, "not whole tasks of"}, {"n4", 2, "not given"},
        {"n[1-4000000000]", 2, "not given"},  {"n1", 2, "no CPUs given on some"},
        {"n[1-2]", 4, "tasks given"},         {"", 2, "not given"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        begin();
        pb_node_use_t use = SCHEDBRIDGE__V1__NODE_USE__INIT, *one = &use;
        job_record_t *job = waiting(1);
        job->details->max_nodes = 2;
        job->details->num_tasks = 2;
        job->details->cpus_per_task = 2;
        use.nodes = (char *)wrong[i].nodes;
        use.cpus = wrong[i].cpus;
        pb_start_t *wanted = start(job, "n[1-2]");
        wanted->uses = &one;
        wanted->n_uses = 1;
        image_t before = image_of(job);
        EXPECT(apply());
        expect_result(0, INVALID, wrong[i].words);
        EXPECT_NUMBER(mock.selects, 0);
        expect_same(&before, job);
        end();
    }
}

// ---------------------------------------------------------------- starts that are not

// Decisions were made for a job as it was reported; `change` happened since.
static void expect_stale(void (*change)(job_record_t *), const char *words) {
    begin();
    job_record_t *job = waiting(1);
    job_record_t *other = waiting(2);
    start(job, "n1");
    announce(job, time(NULL) + 100)->nodes = "n1";
    explain(job, PB(REASON_CODE__REASON_RESOURCES), "text");
    start(other, "n2");
    change(job);
    image_t before = image_of(job);
    EXPECT(apply());
    for (size_t i = 0; i < 3; i++)
        expect_result(i, STALE, words);
    expect_result(3, APPLIED, "");
    EXPECT_NUMBER(mock.started, 1);
    EXPECT(IS_JOB_RUNNING(other));
    expect_same(&before, job);
    end();
}

static void longer(job_record_t *job) {
    job->time_limit++;
}
static void wider(job_record_t *job) {
    job->details->max_nodes = 2;
}
static void elsewhere(job_record_t *job) {
    job->partition[0] = 'M';
}
static void chosen(job_record_t *job) {
    job->details->req_nodes = xstrdup("n5");
}
static void later(job_record_t *job) {
    job->deadline = time(NULL) + 1000;
}
static void licensed(job_record_t *job) {
    job->licenses = xstrdup("matlab:1");
}
static void running(job_record_t *job) {
    mock_run(job, 3, 1);
}
static void cancelled(job_record_t *job) {
    job->job_state = JOB_CANCELLED;
}
static void completing(job_record_t *job) {
    job->job_state |= JOB_COMPLETING;
}
static void revoked(job_record_t *job) {
    job->job_state |= JOB_REVOKED;
}
static void unknown(job_record_t *job) {
    job->job_id = 77; // another job that the service was not told of
}
static void a_task_now(job_record_t *job) {
    sent_job_t *entry = sent_state_find(&sent_state, job->job_id);
    entry->array_job_id = 1;
    entry->array_task_id = 4; // and the service knows that it is 1_4
}

static void stale_decisions_are_not_carried_out(void) {
    expect_stale(longer, "changed");
    expect_stale(wider, "changed");
    expect_stale(elsewhere, "changed");
    expect_stale(chosen, "changed");
    expect_stale(later, "changed");
    expect_stale(licensed, "changed");
    expect_stale(running, "no longer pending");
    expect_stale(cancelled, "no longer pending");
    expect_stale(completing, "no longer pending");
    expect_stale(revoked, "no longer pending");
    expect_stale(unknown, "gone");
    expect_stale(a_task_now, "gone");
}

// In any one bit, of which no half and no float may be left out.
static void a_version_that_looks_alike_is_another(void) {
    for (int bit = 0; bit < 64; bit++) {
        begin();
        job_record_t *job = waiting(1), *other = waiting(2);
        start(job, "n1");
        start(other, "n2");
        decisions[0].job_version ^= UINT64_C(1) << bit;
        EXPECT(apply());
        expect_result(0, STALE, "changed");
        expect_result(1, APPLIED, "");
        EXPECT(IS_JOB_PENDING(job) && IS_JOB_RUNNING(other));
        end();
    }
}

static void a_task_is_named_by_array_and_task(void) {
    static const char *const names[] = {"5_0", "5_4294967296", "4294967301_0", "6",   "6_0",
                                        "5",   "5_",           "5_1",          "5_0x"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        begin();
        job_record_t *task = mock_job(6), *second = mock_job(7);
        task->array_job_id = second->array_job_id = 5;
        task->array_task_id = 0;
        second->array_task_id = 10;
        know(task);
        know(second);
        start(task, "n1");
        decisions[0].job_id = (char *)names[i];
        EXPECT(apply());
        expect_result(0, i ? STALE : APPLIED, i ? "gone" : "");
        EXPECT_NUMBER(IS_JOB_RUNNING(task), !i);
        EXPECT(IS_JOB_PENDING(second));
        end();
    }
}

static void jobs_that_are_not_there_start_nothing(void) {
    static const char *const names[] = {
        "99", "",           "0",          "-1", "1x",   "1_",   "1_0",
        "x",  "4294967295", "4294967297", "1 ", "../1", "1\n2", "99999999999999999999999"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        begin();
        job_record_t *job = waiting(1);
        start(job, "n1");
        decisions[0].job_id = (char *)names[i];
        EXPECT(apply());
        expect_result(0, STALE, "gone");
        EXPECT_NUMBER(mock.selects, 0);
        end();
    }
    begin();
    job_record_t *unreported = mock_job(3);
    start(unreported, "n1");
    EXPECT(apply());
    expect_result(0, STALE, "not reported");
    end();
}

static job_record_t *rest_of(uint32_t array) {
    EXPECT(lock_scope_take(&locks, LOCK_SCOPE_READ));
    job_record_t *rest = find_job_record(array);
    lock_scope_give(&locks);
    EXPECT(rest);
    return rest;
}

static void a_number_is_used_once(void) {
    begin();
    job_record_t *job = waiting_array(5, 8);
    start(job, "n1");
    decisions[0].id = 10;
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    job_record_t *rest = rest_of(5);
    EXPECT(rest != job);
    for (uint64_t old = 0; old <= 10; old += 5) { // again, and from before
        start(rest, "n2");
        decisions[0].id = old;
        EXPECT(apply());
        expect_result(0, STALE, "was used before");
    }
    start(rest, "n2"); // twice in one reply: then it names neither
    start(rest, "n3");
    start(rest, "n4");
    decisions[0].id = decisions[2].id = 12;
    decisions[1].id = 11; // orders come first, with greater numbers
    EXPECT(apply());
    expect_result(0, STALE, "was used before");
    expect_result(1, APPLIED, "");
    expect_result(2, STALE, "was used before");
    EXPECT_NUMBER(mock.started, 2);
    EXPECT_NUMBER(decided, 12);
    start(rest_of(5), "n5");
    decisions[0].id = (UINT64_C(1) << 32) + 5; // greater, though not in its lower half
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    start(rest_of(5), "n6");
    decisions[0].id = 100;
    EXPECT(apply());
    expect_result(0, STALE, "was used before");
    end();
}

static void a_second_start_of_a_job_is_stale(void) {
    begin();
    job_record_t *job = waiting(1);
    start(job, "n1");
    start(job, "n2");
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    expect_result(1, STALE, "no longer pending");
    EXPECT_NUMBER(mock.started, 1);
    end();
}

static void slurm_keeps_the_last_word(void) {
    static const struct {
        int code;
        uint32_t reason;  // that Slurm gives
        uint32_t told;    // what stays of it; 0: nothing, it was about the narrowed request
        const char *desc; // likewise
    } codes[] = {
        {ESLURM_NODES_BUSY, 0, 0, NULL},
        {ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE, 0, 0, NULL},
        {ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE, 0, WAIT_PART_CONFIG, NULL},
        {ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE, WAIT_QOS, WAIT_QOS, "of the narrowed request"},
        {ESLURM_ACCOUNTING_POLICY, WAIT_ASSOC_JOB_LIMIT, WAIT_ASSOC_JOB_LIMIT,
         "of the narrowed request"},
        {ESLURM_LICENSES_UNAVAILABLE, WAIT_LICENSES, WAIT_LICENSES, "of the narrowed request"},
        {ESLURM_RESERVATION_BUSY, WAIT_RESERVATION, WAIT_RESERVATION, "of the narrowed request"},
        {ESLURM_NODE_NOT_AVAIL, WAIT_NODE_NOT_AVAIL, WAIT_NODE_NOT_AVAIL,
         "of the narrowed request"},
        {ESLURM_NODE_NOT_AVAIL, WAIT_RESOURCES, 0, NULL},
        {ESLURM_BURST_BUFFER_WAIT, 0, WAIT_RESOURCES, "of the narrowed request"}};
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        begin();
        job_record_t *job = waiting(1);
        job->state_reason = WAIT_PRIORITY;
        job->state_desc = xstrdup("said by the service");
        job->deadline = time(NULL) + 120;
        job->req_switch = 3;
        job->details->req_node_bitmap = bit_alloc(8);
        bit_set(job->details->req_node_bitmap, 0);
        job->details->features = xstrdup("fast");
        job->part_ptr_list = mock_list();
        mock_append(job->part_ptr_list, part_list->items[0]);
        mock_append(job->part_ptr_list, part_list->items[1]);
        mock.select_code = codes[i].code;
        mock.select_reason = codes[i].reason;
        mock.select_desc = codes[i].desc;
        image_t before = image_of(job);
        start(job, "n1")->partition = "half";
        EXPECT(apply());
        expect_result(0,
                      codes[i].code == ESLURM_NODES_BUSY          ? BUSY
                      : codes[i].code == ESLURM_ACCOUNTING_POLICY ? LIMITED
                                                                  : REFUSED,
                      "error");
        EXPECT_NUMBER(result(0)->code, codes[i].code);
        EXPECT_NUMBER(mock.selects, 1);
        EXPECT_NUMBER(mock.saves, 0);
        if (codes[i].told) {
            EXPECT_NUMBER(job->state_reason, codes[i].told);
            EXPECT(!xstrcmp(job->state_desc, codes[i].desc));
            job->state_reason = before.job.state_reason;
            xfree(job->state_desc);
            job->state_desc = xstrdup("said by the service");
        }
        expect_same(&before, job);
        end();
    }
}

static void made_held(job_record_t *job) {
    job->priority = 0;
}
static void made_dependent(job_record_t *job) {
    job->mock.waits_for = WAIT_DEPENDENCY;
}
static void made_heterogeneous(job_record_t *job) {
    job->het_job_id = 4;
}
static void made_unclean(job_record_t *job) {
    job->details->prolog_running = 1;
}
static void made_late(job_record_t *job) {
    job->deadline = time(NULL) + 5;
    job->mock.too_late = true;
}
static void made_unaccountable(job_record_t *job) {
    job->assoc_id = 666;
}
static void refused_by_partition(job_record_t *job) {
    job->part_ptr->reason = WAIT_PART_DOWN;
}
static void elsewhere_in_a_federation(job_record_t *job) {
    (void)job;
    mock.other_cluster = true;
}

static void what_select_nodes_leaves_to_its_caller_is_tested(void) {
    static const struct {
        void (*change)(job_record_t *);
        int code;
    } wrong[] = {
        {made_held, ESLURM_JOB_HELD},
        {made_dependent, ESLURM_DEPENDENCY},
        {made_heterogeneous, ESLURM_NOT_SUPPORTED},
        {made_unclean, ESLURM_DISABLED},
        {made_late, ESLURM_INVALID_TIME_LIMIT},
        {made_unaccountable, ESLURM_INVALID_ACCOUNT},
        {refused_by_partition, ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE},
        {elsewhere_in_a_federation, ESLURM_FED_JOB_LOCK},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        begin();
        job_record_t *job = waiting(1);
        wrong[i].change(job);
        start(job, "n1");
        EXPECT(apply());
        expect_result(0, REFUSED, "");
        EXPECT_NUMBER(result(0)->code, wrong[i].code);
        EXPECT_NUMBER(mock.selects, 0);
        EXPECT(!IS_JOB_RUNNING(job));
        EXPECT(!job->details->req_node_bitmap && !job->details->exc_node_bitmap);
        end();
    }
}

static void a_node_that_the_user_excluded_stays_so(void) {
    begin();
    job_record_t *job = waiting(1);
    job->details->exc_node_bitmap = bit_alloc(8);
    bit_set(job->details->exc_node_bitmap, 0);
    image_t before = image_of(job);
    start(job, "n1");
    EXPECT(apply());
    expect_result(0, REFUSED, "");
    expect_same(&before, job);
    end();
}

static void time_limits_are_cut_as_far_as_the_job_allows(void) {
    static const struct {
        uint32_t minimum, limit, maximum; // minutes; the last one of the partition
        int64_t wanted_s;
        uint32_t given; // 0: invalid
    } cases[] = {{5, 60, INFINITE, 600, 10},
                 {5, 60, INFINITE, 240, 0},
                 {5, 60, INFINITE, 0, 60},
                 {0, 60, INFINITE, 600, 0},
                 {5, 60, 20, 0, 20},
                 {5, 60, 20, 600, 10},
                 {5, 60, 20, 7200, 20},
                 {5, INFINITE, 20, 300, 5},
                 {5, 60, INFINITE, -60, 0},
                 {0, 60, 20, 0, 60},
                 {5, INFINITE, INFINITE, INT64_MAX, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin();
        job_record_t *job = waiting_array(1, 2);
        job->time_min = cases[i].minimum;
        job->time_limit = cases[i].limit;
        job->part_ptr->max_time = cases[i].maximum;
        start(job, "n1")->time_limit_s = cases[i].wanted_s;
        EXPECT(apply());
        if (cases[i].given) {
            expect_result(0, APPLIED, "");
            EXPECT_NUMBER(mock.select_time_limit, cases[i].given);
            EXPECT_NUMBER(job->time_limit, cases[i].given);
            EXPECT(lock_scope_take(&locks, LOCK_SCOPE_READ));
            EXPECT_NUMBER(find_job_record(1)->time_limit, cases[i].limit); // the tasks left
            lock_scope_give(&locks);
        } else {
            expect_result(0, INVALID, "time limit");
            EXPECT_NUMBER(job->time_limit, cases[i].limit);
        }
        end();
    }
}

static void a_start_that_makes_no_sense_is_invalid(void) {
    static const struct {
        const char *nodes, *partition, *words;
    } wrong[] = {
        {"", "", "unknown nodes"},
        {"n9", "", "unknown nodes"},
        {"n[1-", "", "unknown nodes"},
        {"n[1-4000000000]", "", "unknown nodes"}, // Slurm would write them all out
        {"n1,n[1-7],n1", "", "unknown nodes"},    // more names than nodes
        {"n1\nn2", "", "unknown nodes"},
        {"n[1-2]", "", "2 nodes given"},
        {"n1", "nowhere", "may not use partition"},
        {"n1", "half", "may not use partition"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        begin();
        job_record_t *job = waiting(1);
        image_t before = image_of(job);
        start(job, wrong[i].nodes)->partition = (char *)wrong[i].partition;
        EXPECT(apply());
        expect_result(0, INVALID, wrong[i].words);
        EXPECT_NUMBER(mock.selects, 0);
        expect_same(&before, job);
        end();
    }
    begin();
    job_record_t *job = waiting(1);
    mock_append(job->part_ptr_list = mock_list(), part_list->items[1]);
    start(job, "n8")->partition = "half";
    EXPECT(apply());
    expect_result(0, INVALID, "not all nodes are in partition half");
    end();
}

// ---------------------------------------------------------------- reasons

static void before_its_begin_time_a_job_shows_slurms_word(void) {
    begin();
    job_record_t *late = waiting(1), *fixed = waiting(2);
    fixed->spank_job_env_size = 1;
    fixed->spank_job_env = calloc(1, sizeof(char *));
    fixed->spank_job_env[0] = xstrdup("_SLURM_SPANK_OPTION_schedbridge_fixed_start=18:00");
    job_record_t *const both[] = {late, fixed};
    for (int i = 0; i < 2; i++) {
        both[i]->details->begin_time = time(NULL) + 100;
        both[i]->state_reason = WAIT_TIME;
        sent_state_find(&sent_state, both[i]->job_id)->hold = PB(HOLD__HOLD_BEGIN_TIME);
        explain(both[i], PB(REASON_CODE__REASON_RESOURCES), "cannot be met");
    }
    EXPECT(apply());
    // A deadline that cannot be met is a matter for `explain`, but no start is promised.
    EXPECT_NUMBER(late->state_reason, WAIT_TIME);
    EXPECT(!late->state_desc);
    EXPECT_NUMBER(late->start_time, NO_VAL);
    // Of --fixed-start Slurm knows nothing.
    EXPECT_NUMBER(fixed->state_reason, WAIT_RESOURCES);
    EXPECT_TEXT(fixed->state_desc, "cannot be met");
    end();
}

static void unknown_actions_are_invalid(void) {
    begin();
    pb_decision_t *decision = decide(waiting(1));
    decision->action_case = PB(DECISION__ACTION__NOT_SET);
    Schedbridge__V1__Quota quota = SCHEDBRIDGE__V1__QUOTA__INIT;
    decision = decide(waiting(2));
    decision->action_case = PB(DECISION__ACTION_QUOTA);
    decision->quota = &quota;
    EXPECT(apply());
    expect_result(0, INVALID, "does not know that action");
    expect_result(1, INVALID, "does not know that action");
    end();
}

static void nodes_are_powered_down_unless_in_use_or_excluded(void) {
    begin();
    power_save_enabled = true;
    slurm_conf.resume_program = "/sbin/resume";
    slurm_conf.suspend_program = "/sbin/suspend";
    exc_node_bitmap = bit_alloc(node_record_count);
    bit_set(exc_node_bitmap, 3);
    node_record_table_ptr[4]->node_state = NODE_STATE_ALLOCATED;
    static const char *const names[] = {"n3", "n4", "n5"};
    pb_power_t wanted[3];
    for (int i = 0; i < 3; i++) {
        schedbridge__v1__power__init(&wanted[i]);
        wanted[i].nodes = (char *)names[i];
        pb_decision_t *decision = decide(NULL);
        decision->job_id = "";
        decision->action_case = PB(DECISION__ACTION_POWER);
        decision->power = &wanted[i];
    }
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    expect_result(1, REFUSED, "may not be powered down");
    expect_result(2, BUSY, "in use");
    EXPECT(IS_NODE_POWER_DOWN(node_record_table_ptr[2]));
    EXPECT_NUMBER(node_record_table_ptr[3]->node_state, NODE_STATE_IDLE);
    EXPECT_NUMBER(node_record_table_ptr[4]->node_state, NODE_STATE_ALLOCATED);
    end();
}

int main(void) {
    a_start_starts_the_job_where_it_is_told();
    an_interactive_job_is_told_to_its_client();
    an_arrays_rest_keeps_the_request();
    a_split_before_a_refusal_is_mended_too();
    chunks_become_tasks_on_nodes();
    chunks_that_do_not_fit_are_refused();
    stale_decisions_are_not_carried_out();
    a_version_that_looks_alike_is_another();
    a_task_is_named_by_array_and_task();
    jobs_that_are_not_there_start_nothing();
    a_number_is_used_once();
    a_second_start_of_a_job_is_stale();
    slurm_keeps_the_last_word();
    what_select_nodes_leaves_to_its_caller_is_tested();
    a_node_that_the_user_excluded_stays_so();
    time_limits_are_cut_as_far_as_the_job_allows();
    a_start_that_makes_no_sense_is_invalid();
    before_its_begin_time_a_job_shows_slurms_word();
    unknown_actions_are_invalid();
    nodes_are_powered_down_unless_in_use_or_excluded();
    DONE();
}
