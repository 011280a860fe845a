// SPDX-License-Identifier: GPL-2.0-or-later
// Starts of malleable jobs on other widths than they ask for, against the mock of slurmctld: what
// Slurm derived from -N fits the width that it starts on, and afterwards the request is as before.
#include "applying.h"
#include "rules/moldable.h"
#include "rules/raised_limit.h"
#include "rules/wall_limit.h"

// Asks for four whole nodes with two tasks each, ten minutes, and may have one to eight.
static job_record_t *moldable(uint32_t id) {
    job_record_t *job = waiting(id);
    job_details_t *details = job->details;
    details->whole_node = WHOLE_NODE_REQUIRED;
    details->min_nodes = details->max_nodes = 4;
    details->ntasks_per_node = 2;
    details->num_tasks = 8;
    details->min_cpus = details->orig_min_cpus = 8;
    job->spank_job_env_size = 1;
    job->spank_job_env = calloc(1, sizeof(char *));
    job->spank_job_env[0] = xstrdup("_SLURM_SPANK_OPTION_schedbridge_malleable=1-8");
    return job;
}

static pb_outcome_t outcome_of(job_record_t *job, const char *nodes, int64_t limit_s) {
    pb_start_t *message = start(job, nodes);
    message->time_limit_s = limit_s;
    EXPECT(apply());
    return result(0)->outcome;
}

static void a_start_on_other_widths_fits_them(void) {
    static const struct {
        const char *nodes;
        uint32_t width, tasks;
    } widths[] = {{"n1", 1, 2}, {"n[1-3]", 3, 6}, {"n[1-4]", 4, 8}, {"n[1-8]", 8, 16}};
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        begin();
        job_record_t *job = moldable(1);
        EXPECT_NUMBER(outcome_of(job, widths[i].nodes, 0), APPLIED);
        EXPECT_NUMBER(job->node_cnt, widths[i].width);
        EXPECT_NUMBER(mock.select_num_tasks, widths[i].tasks);
        EXPECT_NUMBER(mock.select_cpus, widths[i].tasks);
        EXPECT_NUMBER(mock.select_time_limit, 10);
        // If it goes back to the queue it asks for the same again.
        EXPECT_NUMBER(job->details->min_nodes, 4);
        EXPECT_NUMBER(job->details->num_tasks, 8);
        EXPECT_NUMBER(job->details->min_cpus, 8);
        EXPECT_NUMBER(job->details->orig_min_cpus, 8);
        end();
    }
}

static void a_refused_start_changes_nothing(void) {
    begin();
    job_record_t *job = moldable(1);
    mock.select_code = ESLURM_NODES_BUSY;
    image_t before = image_of(job);
    EXPECT_NUMBER(outcome_of(job, "n1", 2400), BUSY);
    EXPECT_NUMBER(mock.select_num_tasks, 2);
    before.job.state_reason = job->state_reason;
    expect_same(&before, job);
    end();
}

static void an_arrays_rest_asks_for_what_it_asked(void) {
    begin();
    job_record_t *job = moldable(1);
    job->array_job_id = 1;
    job->array_recs = calloc(1, sizeof(*job->array_recs));
    job->array_recs->task_cnt = 3;
    job->array_recs->task_id_bitmap = bit_alloc(3);
    bit_not(job->array_recs->task_id_bitmap);
    know(job);
    EXPECT_NUMBER(outcome_of(job, "n[1-2]", 1200), APPLIED);
    EXPECT_NUMBER(list_count(job_list), 2);
    for (int i = 0; i < 2; i++) {
        const job_record_t *one = job_list->items[i];
        EXPECT_NUMBER(one->details->num_tasks, 8);
        EXPECT_NUMBER(one->details->min_cpus, 8);
        EXPECT_NUMBER(one->time_limit, IS_JOB_PENDING(one) ? 10 : 20);
    }
    end();
}

static void fewer_nodes_may_have_more_time(void) {
    static const struct {
        const char *nodes;
        int64_t limit_s;
        uint32_t minutes; // 0: not so
    } starts[] = {
        {"n1", 2400, 40},    {"n1", 1200, 20},     {"n1", 2460, 0},
        {"n[1-3]", 840, 14}, {"n[1-3]", 900, 0},   {"n[1-4]", 660, 0},
        {"n[1-8]", 660, 0},  {"n1", 1ll << 62, 0}, {"n1", -60, 0},
    };
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        begin();
        job_record_t *job = moldable(1);
        pb_outcome_t said = outcome_of(job, starts[i].nodes, starts[i].limit_s);
        EXPECT_NUMBER(said, starts[i].minutes ? APPLIED : INVALID);
        EXPECT_NUMBER(job->time_limit, starts[i].minutes ? starts[i].minutes : 10);
        end();
    }
    begin();
    job_record_t *job = moldable(1);
    job->part_ptr->max_time = 25;
    EXPECT_NUMBER(outcome_of(job, "n1", 1560), INVALID);
    EXPECT_NUMBER(outcome_of(job, "n1", 1500), APPLIED);
    EXPECT_NUMBER(job->time_limit, 25);
    end();
}

static void requeue(job_record_t *job) {
    job->job_state = JOB_PENDING;
    raised_limit_restore(job);
}

static void a_job_that_waits_again_has_the_limit_that_it_asked_for(void) {
    begin();
    job_record_t *job = moldable(1);
    EXPECT_NUMBER(outcome_of(job, "n1", 2400), APPLIED);
    EXPECT_NUMBER(job->time_limit, 40);
    EXPECT_NUMBER(job->spank_job_env_size, 2);
    requeue(job);
    EXPECT_NUMBER(job->time_limit, 10);
    EXPECT_NUMBER(job->spank_job_env_size, 1);
    EXPECT(job_is_moldable(job));
    requeue(job);
    EXPECT_NUMBER(job->time_limit, 10);
    end();

    begin(); // somebody has changed it meanwhile
    job = moldable(1);
    EXPECT_NUMBER(outcome_of(job, "n1", 2400), APPLIED);
    job->time_limit = 60;
    requeue(job);
    EXPECT_NUMBER(job->time_limit, 60);
    job->time_limit = 40;
    requeue(job);
    EXPECT_NUMBER(job->time_limit, 40);
    end();

    begin(); // it asked for none, and the partition has a default
    job = moldable(1);
    job->time_limit = NO_VAL;
    job->part_ptr->default_time = 10;
    EXPECT_NUMBER(outcome_of(job, "n1", 2400), APPLIED);
    EXPECT_NUMBER(job->time_limit, 40);
    requeue(job);
    EXPECT_NUMBER(job->time_limit, 10);
    end();

    begin(); // one that asked for as much keeps nothing of it
    job = moldable(1);
    EXPECT_NUMBER(outcome_of(job, "n[1-4]", 0), APPLIED);
    EXPECT_NUMBER(job->spank_job_env_size, 1);
    end();
}

// A client may send any environment.
static void a_note_of_a_users_own_raises_nothing(void) {
    static const char *const notes[] = {"99:10", "4294967295:10", "",     "5", "5:10x",
                                        "-5:10", "5:11",          "x:10", ":", "5:10:"};
    for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
        begin();
        job_record_t *job = moldable(1);
        char *option = job->spank_job_env[0];
        free(job->spank_job_env);
        job->spank_job_env = calloc(3, sizeof(char *));
        job->spank_job_env[1] = xstrdup_printf("SPANK_SCHEDBRIDGE_LIMIT=%s", notes[i]);
        job->spank_job_env[2] = option;
        job->spank_job_env_size = 3; // the first one is a null pointer
        raised_limit_restore(job);
        EXPECT_NUMBER(job->time_limit, 10);
        EXPECT_NUMBER(job->spank_job_env_size, 2);
        EXPECT(job_is_moldable(job));
        end();
    }
}

// Nor does it get a longer one than accounting allows: what its partition's QOS says goes before
// its own QOS, unless that one overrides it, and both go before its association.
static void a_longer_time_stays_within_the_wall_limits(void) {
    static const struct {
        uint32_t of_part, of_job, of_assoc;
        bool over;
        uint32_t longest, minimum;
    } cases[] = {
        {INFINITE, INFINITE, INFINITE, false, INFINITE, 1},
        {INFINITE, INFINITE, 20, false, 20, 2},
        {INFINITE, 15, 20, false, 15, 3},
        {30, 15, 20, false, 30, 2},
        {30, 15, 20, true, 15, 3},
        {30, INFINITE, 20, true, 30, 2},
        {INFINITE, INFINITE, 10, false, 10, 4},
        {INFINITE, INFINITE, 5, false, 5, 4},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin();
        job_record_t *job = moldable(1);
        slurmdb_qos_rec_t of_part = {.max_wall_pj = cases[i].of_part};
        slurmdb_qos_rec_t of_job = {.max_wall_pj = cases[i].of_job,
                                    .flags = cases[i].over ? QOS_FLAG_OVER_PART_QOS : 0};
        slurmdb_assoc_rec_t of_assoc = {.max_wall_pj = cases[i].of_assoc};
        part_record_t *part = job->part_ptr;
        part->qos_ptr = &of_part, job->qos_ptr = &of_job, job->assoc_ptr = &of_assoc;
        EXPECT_NUMBER(longest_minutes(job, part), INFINITE); // limits are not enforced
        uint64_t version = job_version(job);
        accounting_enforce = ACCOUNTING_ENFORCE_LIMITS;
        EXPECT_NUMBER(longest_minutes(job, part), cases[i].longest);
        EXPECT_NUMBER(molded_min_nodes(job), cases[i].minimum);
        EXPECT_NUMBER(molded_minutes(job, part, 1), MIN(40, cases[i].longest));
        EXPECT((job_version(job) != version) == (cases[i].minimum > 1));
        part->max_time = 12;
        EXPECT_NUMBER(longest_minutes(job, part), MIN(12, cases[i].longest));
        job->limit_set.time = ADMIN_SET_LIMIT;
        EXPECT_NUMBER(longest_minutes(job, part), 12);
        accounting_enforce = 0;
        part->qos_ptr = job->qos_ptr = NULL, job->assoc_ptr = NULL;
        end();
    }
}

static void a_job_whose_partition_is_gone_can_be_reported(void) {
    begin();
    job_record_t *job = moldable(1);
    part_record_t *part = job->part_ptr;
    accounting_enforce = ACCOUNTING_ENFORCE_LIMITS;
    job->part_ptr = NULL;
    EXPECT_NUMBER(molded_min_nodes(job), 1);
    job->time_limit = NO_VAL;
    EXPECT_NUMBER(molded_min_nodes(job), 1);
    accounting_enforce = 0;
    job->part_ptr = part;
    end();
}

// Each of these says of a job that its tasks do not follow from its nodes, or that it shares them.
static void break_it(job_record_t *job, int how) {
    switch (how) {
    case 0:
        job->details->whole_node = 0;
        break;
    case 1:
        job->bit_flags |= JOB_NTASKS_SET;
        break;
    case 2:
        job->batch_flag = 0;
        break;
    case 3:
        job->details->req_nodes = xstrdup("n1");
        break;
    case 4:
        free(job->spank_job_env[0]);
        job->spank_job_env[0] = xstrdup("_SLURM_SPANK_OPTION_schedbridge_min_nodes_invasic=1");
        break;
    case 5:
        job->details->contiguous = 1;
        break;
    default:
        job->het_job_id = 7;
    }
}

static void others_are_not_moldable(void) {
    for (int how = 0; how < 7; how++) {
        begin();
        job_record_t *job = moldable(1);
        EXPECT(job_is_moldable(job));
        uint64_t version = job_version(job);
        break_it(job, how);
        EXPECT(!job_is_moldable(job));
        EXPECT(job_version(job) != version || how == 6);
        EXPECT_NUMBER(molded_minutes(job, job->part_ptr, 1), 0);
        molded_fit(job, 1);
        EXPECT_NUMBER(job->details->num_tasks, 8);
        end();
    }
}

// On one node the job needs forty minutes. Each of three QOS admits it, is full, or allows less.
// The first that admits it counts; else what the last said that allows so much; else it is invalid.
static void a_longer_time_is_one_of_any_qos(void) {
    enum { ADMITS, IS_FULL, IS_SHORT, CASES };
    for (int which = 0; which < CASES * CASES * CASES; which++) {
        const int kinds[] = {which % CASES, which / CASES % CASES, which / CASES / CASES};
        slurmdb_qos_rec_t qos[3];
        begin();
        accounting_enforce = ACCOUNTING_ENFORCE_LIMITS;
        job_record_t *job = moldable(1), *other = moldable(2);
        pb_outcome_t expected = INVALID;
        int admits = -1;
        job->qos_list = mock_list();
        for (int i = 2; i >= 0; i--) {
            qos[i] = (slurmdb_qos_rec_t){.id = (uint32_t)i + 1, .full = kinds[i] == IS_FULL};
            qos[i].max_wall_pj = kinds[i] == IS_SHORT ? 39 : 40 + (uint32_t)i;
            admits = kinds[i] == ADMITS ? i : admits;
            expected = kinds[i] == IS_FULL && expected == INVALID ? LIMITED : expected;
        }
        for (int i = 0; i < 3; i++)
            mock_append(job->qos_list, &qos[i]);
        job->qos_ptr = &qos[0];
        start(job, "n1")->time_limit_s = 2400;
        start(other, "n[2-5]");
        EXPECT(apply());
        EXPECT_NUMBER(result(0)->outcome, admits >= 0 ? APPLIED : expected);
        EXPECT_NUMBER(result(1)->outcome, APPLIED);
        EXPECT(job->qos_ptr == &qos[MAX(admits, 0)]);
        EXPECT_NUMBER(job->time_limit, admits >= 0 ? 40 : 10);
        job->qos_ptr = NULL;
        end();
    }
}

static void a_rigid_job_is_never_started_on_fewer(void) {
    begin();
    job_record_t *job = moldable(1);
    job->spank_job_env[0][0] = 'x'; // no option any more
    EXPECT_NUMBER(outcome_of(job, "n[1-3]", 0), INVALID);
    EXPECT_NUMBER(outcome_of(job, "n[1-5]", 0), INVALID);
    EXPECT_NUMBER(mock.selects, 0);
    EXPECT_NUMBER(outcome_of(job, "n[1-4]", 0), APPLIED);
    end();
}

int main(void) {
    a_start_on_other_widths_fits_them();
    a_refused_start_changes_nothing();
    an_arrays_rest_asks_for_what_it_asked();
    fewer_nodes_may_have_more_time();
    a_job_that_waits_again_has_the_limit_that_it_asked_for();
    a_note_of_a_users_own_raises_nothing();
    a_longer_time_stays_within_the_wall_limits();
    a_job_whose_partition_is_gone_can_be_reported();
    others_are_not_moldable();
    a_longer_time_is_one_of_any_qos();
    a_rigid_job_is_never_started_on_fewer();
    DONE();
}
