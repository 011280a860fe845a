// SPDX-License-Identifier: GPL-2.0-or-later
// Jobs that name several QOS, against the mock of slurmctld: each is tried in Slurm's order, when
// the job is examined and again at each start, and a refused start leaves the job as it was.
#include "applying.h"
#include "report/snapshot.h"

static slurmdb_qos_rec_t fast, normal;

static job_record_t *of_two(job_record_t *job) {
    fast = (slurmdb_qos_rec_t){.id = 1, .name = "fast"};
    normal = (slurmdb_qos_rec_t){.id = 2, .name = "normal"};
    job->qos_list = mock_list();
    mock_append(job->qos_list, &fast);
    mock_append(job->qos_list, &normal);
    job->qos_ptr = &fast;
    return job;
}

static void each_is_tried_in_order(void) {
    for (int full = 0; full < 4; full++) {
        begin();
        job_record_t *job = of_two(waiting(1));
        fast.full = full & 1;
        normal.full = full & 2;
        start(job, "n1");
        EXPECT(apply());
        expect_result(0, full == 3 ? LIMITED : APPLIED, "");
        EXPECT_NUMBER(mock.selects, fast.full ? 2 : 1);
        EXPECT(job->qos_ptr == (full == 1 ? &normal : &fast));
        EXPECT(IS_JOB_RUNNING(job) == (full != 3));
        end();
    }
}

static void busy_nodes_are_busy_under_any(void) {
    begin();
    job_record_t *job = of_two(waiting(1));
    mock.select_code = ESLURM_NODES_BUSY;
    image_t before = image_of(job);
    start(job, "n1");
    EXPECT(apply());
    expect_result(0, BUSY, "");
    EXPECT_NUMBER(mock.selects, 1);
    expect_same(&before, job);
    end();
}

// Four whole nodes for 45 minutes; on two of them it needs 90.
static job_record_t *moldable(void) {
    job_record_t *job = of_two(waiting(1));
    job_details_t *details = job->details;
    details->whole_node = WHOLE_NODE_REQUIRED;
    details->min_nodes = details->max_nodes = 4;
    details->num_tasks = details->min_cpus = details->orig_min_cpus = 4;
    job->time_limit = 45;
    job->spank_job_env_size = 1;
    job->spank_job_env = calloc(1, sizeof(char *));
    job->spank_job_env[0] = xstrdup("_SLURM_SPANK_OPTION_schedbridge_malleable=1-8");
    accounting_enforce = ACCOUNTING_ENFORCE_LIMITS;
    return job;
}

static void a_time_limit_is_judged_under_each(void) {
    static const struct {
        uint32_t fast, normal; // MaxWall
        bool fast_full, normal_full;
        pb_outcome_t outcome;
    } cases[] = {
        {60, INFINITE, false, false, APPLIED}, {60, INFINITE, true, false, APPLIED},
        {60, 90, true, false, APPLIED},        {60, INFINITE, false, true, LIMITED},
        {INFINITE, 60, true, false, LIMITED},  {60, 89, false, false, INVALID},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin();
        job_record_t *job = moldable();
        fast.max_wall_pj = cases[i].fast;
        normal.max_wall_pj = cases[i].normal;
        fast.full = cases[i].fast_full;
        normal.full = cases[i].normal_full;
        bool runs = cases[i].outcome == APPLIED;
        start(job, "n[1-2]")->time_limit_s = 5400;
        EXPECT(apply());
        expect_result(0, cases[i].outcome, "");
        EXPECT(IS_JOB_RUNNING(job) == runs);
        EXPECT(job->qos_ptr == (runs ? &normal : &fast));
        EXPECT_NUMBER(job->time_limit, runs ? 90 : 45);
        end();
    }
}

static void the_next_task_of_an_array_tries_the_first_again(void) {
    begin();
    job_record_t *job = of_two(waiting_array(1, 3));
    fast.full = true;
    start(job, "n1");
    EXPECT(apply());
    EXPECT(job->qos_ptr == &normal && IS_JOB_RUNNING(job));
    EXPECT(lock_scope_take(&locks, LOCK_SCOPE_READ));
    job_record_t *rest = find_job_record(1);
    lock_scope_give(&locks);
    EXPECT(rest != job && rest->qos_ptr == &fast);
    fast.full = false;
    start(rest, "n2");
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    EXPECT(rest->qos_ptr == &fast && IS_JOB_RUNNING(rest));
    end();
}

static const pb_job_t *told(snapshot_t *snapshot) {
    snapshot_clear(snapshot);
    mock.now_us += 2000000; // limits are tested once a second
    EXPECT(snapshot_take(snapshot, &sent_state, &locks));
    return snapshot->jobs.count ? snapshot->jobs.items[0] : NULL;
}

static void the_first_that_admits_a_job_is_reported(void) {
    begin();
    snapshot_t snapshot = {0};
    job_record_t *job = of_two(mock_job(1));
    accounting_enforce = ACCOUNTING_ENFORCE_LIMITS;
    job->state_reason = WAIT_PRIORITY;
    fast.full = true;
    const pb_job_t *seen = told(&snapshot);
    EXPECT(seen && seen->hold == PB(HOLD__HOLD_NONE));
    EXPECT_TEXT(seen->qos, "normal");
    EXPECT_NUMBER(job->state_reason, WAIT_PRIORITY); // that of the first is none
    normal.full = true;
    seen = told(&snapshot);
    EXPECT(seen && seen->hold == PB(HOLD__HOLD_LIMIT));
    EXPECT_NUMBER(job->state_reason, WAIT_ASSOC_JOB_LIMIT);
    normal.full = false;
    seen = told(&snapshot);
    EXPECT(seen && seen->hold == PB(HOLD__HOLD_NONE));
    fast.full = false;
    seen = told(&snapshot);
    EXPECT(seen);
    EXPECT_TEXT(seen->qos, "fast");
    snapshot_clear(&snapshot);
    end();
}

int main(void) {
    each_is_tried_in_order();
    busy_nodes_are_busy_under_any();
    a_time_limit_is_judged_under_each();
    the_next_task_of_an_array_tries_the_first_again();
    the_first_that_admits_a_job_is_reported();
    DONE();
}
