// SPDX-License-Identifier: GPL-2.0-or-later
// Resizes against the mock of slurmctld: only malleable jobs are resized, within their own bounds,
// and whatever fails leaves the job with its nodes and no helper job behind.
#include "applying.h"
#include "decisions/actions.h"
#include "resize/expand.h"
#include "resize/resize.h"
#include "rules/raised_limit.h"

static Schedbridge__V1__Resize resizes[MAX_CASES];
static Schedbridge__V1__Progress said_so[MAX_CASES];

// A job that runs on the second node and may have one to eight.
static job_record_t *running_with(uint32_t id, const char *option) {
    job_record_t *job = waiting(id);
    mock_run(job, 1, 4);
    job->batch_host = xstrdup("n2");
    job->details->whole_node = WHOLE_NODE_REQUIRED;
    bit_clear(idle_node_bitmap, 1);
    job->spank_job_env_size = option ? 1 : 0;
    job->spank_job_env = calloc(1, sizeof(char *));
    job->spank_job_env[0] = xstrdup(option);
    slurm_conf.sched_params = "defer,permit_job_expansion";
    return job;
}

static job_record_t *running(uint32_t id) {
    return running_with(id, "_SLURM_SPANK_OPTION_schedbridge_malleable=1-8");
}

static void resize(const job_record_t *job, const char *nodes) {
    schedbridge__v1__resize__init(&resizes[count]);
    resizes[count].nodes = (char *)nodes;
    Schedbridge__V1__Resize *message = &resizes[count];
    pb_decision_t *decision = decide(job);
    decision->action_case = PB(DECISION__ACTION_RESIZE);
    decision->resize = message;
}

static void expect_resize(job_record_t *job, const char *nodes, pb_outcome_t outcome,
                          const char *words) {
    resize(job, nodes);
    EXPECT(apply());
    expect_result(0, outcome, words);
}

// Refused, and neither the job nor anything else has changed.
static void expect_none(job_record_t *job, const char *nodes, pb_outcome_t outcome,
                        const char *words) {
    char before[100];
    unsigned helpers = mock.helpers;
    snprintf(before, sizeof(before), "%s", job->nodes);
    expect_resize(job, nodes, outcome, words);
    EXPECT_TEXT(job->nodes, before);
    EXPECT_NUMBER(mock.helpers, helpers);
    EXPECT_NUMBER(applied.resizes, 0);
}

static void a_job_grows_and_shrinks(void) {
    begin();
    job_record_t *job = running(1);
    job->id = calloc(1, sizeof(*job->id));
    uint64_t version = job_version(job);
    time_t end_time = job->end_time;
    expect_resize(job, "n[2-4]", APPLIED, "");
    EXPECT_NUMBER(applied.resizes, 1);
    EXPECT_NUMBER(mock.saves, 2);
    EXPECT_NUMBER(mock.dumps, 1); // before the result is sent
    EXPECT_TEXT(job->nodes, "n2,n3,n4");
    EXPECT_TEXT(mock.select_names, "n3,n4");
    EXPECT_NUMBER(mock.select_time_limit, 10); // 590 s are left
    EXPECT_NUMBER(job->end_time, end_time);
    EXPECT(job_version(job) != version);
    expect_resize(job, "n2,n4", APPLIED, "");
    EXPECT_TEXT(job->nodes, "n2,n4");
    expect_resize(job, "n2", APPLIED, "");
    EXPECT(job_version(job) == version);
    EXPECT_NUMBER(mock.helpers, 1);
    EXPECT_NUMBER(mock.cancelled, 0);
    end();
}

static void the_same_nodes_again_are_no_change(void) {
    begin();
    job_record_t *job = running(1);
    expect_resize(job, "n[2-4]", APPLIED, "");
    expect_resize(job, "n4,n[2-3]", APPLIED, "");
    EXPECT_NUMBER(mock.helpers, 1);
    end();
}

static void a_helper_is_of_the_jobs_kind(void) {
    begin();
    job_record_t *job = running(1);
    job->user_id = 1001;
    job->resv_name = xstrdup("course");
    job->part_ptr = part_list->items[1];
    expect_resize(job, "n[1-2]", APPLIED, "");
    job_record_t *helper = job_list->items[job_list->count - 1];
    EXPECT(helper && expand_is_helper(helper) && !expand_is_stray(helper));
    EXPECT_NUMBER(helper->user_id, 1001);
    EXPECT_NUMBER(helper->batch_flag, 0);
    EXPECT_NUMBER(helper->details->num_tasks, 1);
    EXPECT_TEXT(helper->resv_name, "course");
    EXPECT(helper->part_ptr == job->part_ptr);
    EXPECT_NUMBER(job_wire_state(helper), PB(JOB_STATE__JOB_STATE_UNSPECIFIED));
    end();
}

static void the_batch_host_is_the_head_wherever_it_is(void) {
    begin();
    job_record_t *job = running(1);
    expect_resize(job, "n[1-3]", APPLIED, "");
    expect_none(job, "n[1,3]", INVALID, "n2 is the head of the job");
    expect_none(job, "n1", INVALID, "n2 is the head of the job");
    expect_resize(job, "n2", APPLIED, "");
    end();
}

static void nodes_given_back_count_one_job_less_that_shares_with_nobody(void) {
    for (int shares = 0; shares < 2; shares++) {
        begin();
        job_record_t *job = running(1);
        job->details->share_res = (uint8_t)shares;
        expect_resize(job, "n[2-4]", APPLIED, "");
        node_record_table_ptr[2]->no_share_job_cnt = 1; // n3, by this job
        expect_resize(job, "n2,n4", APPLIED, "");
        EXPECT_NUMBER(node_record_table_ptr[2]->no_share_job_cnt, shares);
        expect_resize(job, "n2", APPLIED, "");
        EXPECT_NUMBER(node_record_table_ptr[3]->no_share_job_cnt, 0);
        end();
    }
}

static void cores_of_nodes_given_back_are_free_before_another_job_ends(void) {
    begin();
    job_record_t *job = running(1);
    expect_resize(job, "n[2-3]", APPLIED, "");
    expect_resize(job, "n2", APPLIED, "");
    EXPECT_NUMBER(mock.cores_noted, 0);
    end();
}

static void each_node_keeps_its_cores_in_a_merge(void) {
    begin();
    for (int i = 0; i < node_record_count; i++)
        node_record_table_ptr[i]->tot_cores = (uint16_t)(i == 0 ? 2 : 3);
    job_record_t *job = running(1);
    job->job_resrcs->core_bitmap = bit_alloc(3);
    bit_not(job->job_resrcs->core_bitmap);
    bit_clear(job->job_resrcs->core_bitmap, 1); // the second core of n2 is kept for the system
    expect_resize(job, "n[1-4]", APPLIED, "");
    bitstr_t *cores = job->job_resrcs->core_bitmap;
    EXPECT_NUMBER(bit_size(cores), 2 + 3 * 3);
    for (bitoff_t core = 0; core < bit_size(cores); core++)
        EXPECT_NUMBER(bit_test(cores, core), core != 3);
    end();
}

static void the_users_own_list_is_spelled_otherwise(void) {
    begin();
    job_record_t *job = running(1);
    job->details->req_nodes = xstrdup("n2,n3");
    expect_resize(job, "n[2-4]", APPLIED, "");
    expect_resize(job, "n[2-3]", APPLIED, "");
    EXPECT_TEXT(job->nodes, "n2,n3");
    end();
}

static void what_slurm_says_is_compared_with_what_the_job_holds(void) {
    begin();
    job_record_t *job = running(1);
    mock.update_does_nothing = true;
    expect_resize(job, "n[2-3]", REFUSED, "the job holds 1 nodes, not 2");
    EXPECT_NUMBER(mock.cancelled, 1);
    EXPECT_TEXT(job->nodes, "n2");
    end();
}

static void a_helper_that_fails_is_cancelled(void) {
    const struct {
        int code;
        pb_outcome_t outcome;
    } refusals[] = {{ESLURM_NODES_BUSY, BUSY},
                    {ESLURM_ACCOUNTING_POLICY, LIMITED},
                    {ESLURM_RESERVATION_BUSY, REFUSED}};
    for (size_t i = 0; i < 3; i++) {
        begin();
        job_record_t *job = running(1);
        mock.select_code = refusals[i].code;
        mock.select_reason = WAIT_QOS_MAX_NODE_PER_USER;
        expect_resize(job, "n[2-3]", refusals[i].outcome, slurm_strerror(refusals[i].code));
        EXPECT_NUMBER(mock.helpers, 1);
        EXPECT_NUMBER(mock.cancelled, 1);
        EXPECT_TEXT(job->nodes, "n2");
        end();
    }
    begin();
    job_record_t *job = running(1);
    mock.update_code = ESLURM_NOT_SUPPORTED;
    expect_resize(job, "n[2-3]", REFUSED, slurm_strerror(ESLURM_NOT_SUPPORTED));
    EXPECT_NUMBER(mock.cancelled, 1);
    // Its nodes are cleaned up: that is to be reported, as of any job that ends.
    job_record_t *helper = job_list->items[job_list->count - 1];
    EXPECT_NUMBER(job_wire_state(helper), PB(JOB_STATE__JOB_STATE_COMPLETING));
    end();
}

static void a_helper_that_slurm_does_not_make_is_refused(void) {
    begin();
    job_record_t *job = running(1);
    mock.allocate_code = ESLURM_ACCOUNTING_POLICY;
    mock.allocate_words = "QOSMaxNodePerUserLimit";
    expect_none(job, "n[2-3]", LIMITED, "QOSMaxNodePerUserLimit");
    mock.allocate_code = ESLURM_INVALID_ACCOUNT;
    mock.allocate_words = NULL;
    expect_none(job, "n[2-3]", REFUSED, slurm_strerror(ESLURM_INVALID_ACCOUNT));
    end();
}

static void without_defer_slurm_may_start_the_helper_itself(void) {
    begin();
    job_record_t *job = running(1);
    mock.starts_at_once = true;
    expect_resize(job, "n2,n3", REFUSED, "gave other nodes: n2");
    EXPECT_NUMBER(mock.cancelled, 1);
    EXPECT_NUMBER(mock.selects, 0);
    end();
}

static void only_malleable_jobs_within_their_bounds(void) {
    const struct {
        const char *option, *nodes, *words;
    } cases[] = {
        {NULL, "n[2-3]", "not malleable"},
        {"_SLURM_SPANK_OPTION_schedbridge_min_power=5", "n[2-3]", "not malleable"},
        {"_SLURM_SPANK_OPTION_schedbridge_malleable=many", "n[2-3]", ""},
        {"_SLURM_SPANK_OPTION_schedbridge_malleable=1-2", "n[2-4]", "allows 1 to 2"},
        {"_SLURM_SPANK_OPTION_schedbridge_malleable=1-8", "n[2-9]", "unknown nodes"},
        {"_SLURM_SPANK_OPTION_schedbridge_malleable=1-8", "", "unknown nodes"},
        {"_SLURM_SPANK_OPTION_schedbridge_malleable=1-8", "n3", "both added and removed"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin();
        job_record_t *job = running_with(1, cases[i].option);
        expect_none(job, cases[i].nodes, INVALID, cases[i].words);
        end();
    }
}

static void a_width_rule_binds_but_not_the_way_back(void) {
    begin();
    job_record_t *job = running(1);
    expect_resize(job, "n[2-4]", APPLIED, "");
    job->spank_job_env_size = 2;
    job->spank_job_env = realloc(job->spank_job_env, 2 * sizeof(char *));
    job->spank_job_env[1] = xstrdup("_SLURM_SPANK_OPTION_schedbridge_node_constraints=pof2");
    expect_none(job, "n[2-6]", INVALID, "which is not pof2"); // five nodes
    expect_resize(job, "n[2-5]", APPLIED, "");
    expect_none(job, "n2,n4,n5", INVALID, "which is not pof2");
    expect_resize(job, "n[2-4]", APPLIED, ""); // as before it grew
    end();
}

static void nodes_that_a_request_binds_together_stay(void) {
    for (int kind = 0; kind < 3; kind++) {
        begin();
        job_record_t *job = running(1);
        if (kind == 0) {
            job->details->contiguous = 1;
        } else if (kind == 1) {
            job->details->features = xstrdup("[rack1*1&rack2*1]");
        } else {
            job->details->job_size_bitmap = bit_alloc(4);
            bit_set(job->details->job_size_bitmap, 1);
            bit_set(job->details->job_size_bitmap, 3);
        }
        expect_none(job, "n[2-3]", REFUSED, "binds its nodes together");
        FREE_NULL_BITMAP(job->details->job_size_bitmap);
        end();
    }
}

static void jobs_in_odd_states_are_left_alone(void) {
    begin();
    job_record_t *job = running(1);
    job->job_state = JOB_SUSPENDED;
    expect_none(job, "n[2-3]", REFUSED, "suspended");
    job->job_state = JOB_RUNNING | JOB_CONFIGURING;
    expect_none(job, "n[2-3]", BUSY, "being prepared");
    job->job_state = JOB_RUNNING | JOB_REQUEUE;
    expect_none(job, "n[2-3]", REFUSED, "is not running");
    job->job_state = JOB_RUNNING | JOB_COMPLETING;
    expect_none(job, "n[2-3]", STALE, "is not running");
    job->job_state = JOB_PENDING;
    expect_none(job, "n[2-3]", STALE, "is not running");
    job->job_state = JOB_RUNNING;
    job->het_job_id = 1;
    expect_none(job, "n[2-3]", REFUSED, "heterogeneous");
    job->het_job_id = 0;
    resize(job, "n[2-3]");
    decisions[0].job_version++;
    EXPECT(apply());
    expect_result(0, STALE, "has changed");
    end();
}

static void nodes_that_cannot_be_had(void) {
    begin();
    job_record_t *job = running(1);
    job->part_ptr = part_list->items[1]; // n1 to n4
    expect_none(job, "n2,n5", INVALID, "not all nodes are in partition half");
    bit_clear(idle_node_bitmap, 2);
    expect_none(job, "n[2-3]", BUSY, "in use");
    bit_set(idle_node_bitmap, 2);
    bit_set(cg_node_bitmap, 2);
    expect_none(job, "n[2-3]", BUSY, "in use");
    bit_clear(cg_node_bitmap, 2);
    node_record_table_ptr[2]->node_state |= NODE_STATE_POWERED_DOWN;
    expect_none(job, "n[2-3]", REFUSED, "powered down");
    node_record_table_ptr[2]->node_state = NODE_STATE_IDLE | NODE_STATE_POWERING_UP;
    expect_none(job, "n[2-3]", REFUSED, "powered down");
    node_record_table_ptr[2]->node_state = NODE_STATE_IDLE;
    job->details->exc_node_bitmap = bit_alloc(8);
    bit_set(job->details->exc_node_bitmap, 2);
    expect_none(job, "n[2-3]", INVALID, "excludes");
    bit_clear(job->details->exc_node_bitmap, 2);
    job->end_time = time(NULL) + 59;
    expect_none(job, "n[2-3]", REFUSED, "ends within a minute");
    job->end_time = time(NULL) + 600;
    job->details->whole_node = 0;
    expect_none(job, "n[2-3]", REFUSED, "whole nodes");
    job->details->whole_node = WHOLE_NODE_REQUIRED;
    slurm_conf.prolog_flags = PROLOG_FLAG_ALLOC;
    expect_none(job, "n[2-3]", REFUSED, "PrologFlags=Alloc");
    slurm_conf.prolog_flags = 0;
    slurm_conf.sched_params = "defer";
    EXPECT(!resize_is_permitted());
    expect_none(job, "n[2-3]", REFUSED, "permit_job_expansion");
    job->job_resrcs->cpus[0] = 0;
    expect_none(job, "n[2-3]", REFUSED, "no CPUs on some of its nodes");
    job->job_resrcs->cpus[0] = 4;
    slurm_conf.sched_params = "permit_job_expansion,disable_job_shrink";
    EXPECT(!resize_is_permitted());
    job->gres_list_req = mock_list();
    expect_none(job, "n[2-3]", REFUSED, "generic resources");
    end();
}

static void no_limits(slurmdb_qos_rec_t *qos, slurmdb_assoc_rec_t *assoc) {
    *qos = (slurmdb_qos_rec_t){.limit_factor = INFINITE, .usage_factor = 1};
    *assoc = (slurmdb_assoc_rec_t){0};
    for (int kind = 0; kind < TRES_COUNT; kind++) {
        qos->max_tres_pj_ctld[kind] = qos->max_tres_mins_pj_ctld[kind] = INFINITE64;
        assoc->max_tres_ctld[kind] = assoc->max_tres_mins_ctld[kind] = INFINITE64;
    }
}

// One node with 4 CPUs and 1000 MiB, of like ones; for ten minutes.
static job_record_t *limited(slurmdb_qos_rec_t *qos, slurmdb_assoc_rec_t *assoc) {
    job_record_t *job = running(1);
    no_limits(qos, assoc);
    job->qos_ptr = qos;
    job->assoc_ptr = assoc;
    job->tres_alloc_cnt[TRES_ARRAY_CPU] = 4;
    job->tres_alloc_cnt[TRES_ARRAY_MEM] = 1000;
    job->tres_alloc_cnt[TRES_ARRAY_NODE] = 1;
    accounting_enforce = ACCOUNTING_ENFORCE_LIMITS;
    return job;
}

static void unlimited(job_record_t *job) {
    job->qos_ptr = NULL;
    job->assoc_ptr = NULL;
    job->limit_set.tres = NULL;
    accounting_enforce = 0;
    end();
}

static void limits_in_accounting_are_on_all_nodes_of_a_job(void) {
    static const struct {
        int kind;
        uint64_t maximum, minutes; // that two nodes more just have
        const char *words;
    } cases[] = {{TRES_ARRAY_CPU, 12, 120, "it would have cpu=12"},
                 {TRES_ARRAY_MEM, 3000, 30000, "it would have mem=3000"},
                 {TRES_ARRAY_NODE, 3, 30, "it would have node=3"}};
    slurmdb_qos_rec_t qos;
    slurmdb_assoc_rec_t assoc;
    uint16_t admin[TRES_COUNT] = {ADMIN_SET_LIMIT, ADMIN_SET_LIMIT, ADMIN_SET_LIMIT};
    begin();
    job_record_t *job = limited(&qos, &assoc);
    mock.max_nodes = 2;
    expect_none(job, "n[2-4]", LIMITED, "lets the job have 2");
    unlimited(job);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int kind = cases[i].kind;
        for (int by = 0; by < 4; by++) {
            begin();
            job = limited(&qos, &assoc);
            bool minutes = by & 1;
            uint64_t *of_assoc = minutes ? assoc.max_tres_mins_ctld : assoc.max_tres_ctld;
            uint64_t *of_qos = minutes ? qos.max_tres_mins_pj_ctld : qos.max_tres_pj_ctld;
            uint64_t enough = minutes ? cases[i].minutes : cases[i].maximum;
            (by & 2 ? of_qos : of_assoc)[kind] = enough - 1;
            expect_none(job, "n[2-4]", LIMITED, cases[i].words);
            expect_none(job, "n[2-4]", LIMITED, minutes ? "MaxTRESMins" : "(MaxTRES)");
            if (by == 3)
                job->limit_set.tres = admin;
            else
                of_qos[kind] = enough; // goes before the association's
            expect_resize(job, "n[2-4]", APPLIED, "");
            unlimited(job);
        }
    }
}

static void limits_are_scaled_as_slurm_scales_them(void) {
    slurmdb_qos_rec_t qos;
    slurmdb_assoc_rec_t assoc;
    begin();
    job_record_t *job = limited(&qos, &assoc);
    assoc.max_tres_ctld[TRES_ARRAY_CPU] = 6;
    qos.limit_factor = 1.5;
    expect_none(job, "n[2-4]", LIMITED, "lets it have 9");
    qos.limit_factor = 2;
    qos.flags = QOS_FLAG_USAGE_FACTOR_SAFE;
    qos.usage_factor = 3;
    assoc.max_tres_mins_ctld[TRES_ARRAY_CPU] = 120;
    expect_none(job, "n[2-4]", LIMITED, "for 30 minutes");
    qos.usage_factor = 1;
    expect_resize(job, "n[2-4]", APPLIED, "");
    unlimited(job);
}

// Weights of other kinds, and nodes that are not alike: judged by what the helper got.
static void what_cannot_be_foreseen_is_judged_before_the_merge(void) {
    slurmdb_qos_rec_t qos;
    slurmdb_assoc_rec_t assoc;
    for (int enough = 0; enough < 2; enough++) {
        begin();
        job_record_t *job = limited(&qos, &assoc);
        mock.billing = 50;
        job->tres_alloc_cnt[TRES_ARRAY_BILLING] = 50;
        assoc.max_tres_ctld[TRES_ARRAY_BILLING] = enough ? 150 : 149;
        node_record_table_ptr[2]->real_memory += 1;
        expect_resize(job, "n[2-4]", enough ? APPLIED : LIMITED, enough ? "" : "billing=150");
        EXPECT_NUMBER(mock.helpers, 1);
        EXPECT_NUMBER(mock.cancelled, enough ? 0 : 1);
        EXPECT_TEXT(job->nodes, enough ? "n2,n3,n4" : "n2");
        unlimited(job);
    }
}

static void a_stray_helper_is_cancelled(void) {
    begin();
    job_record_t *job = running(1), *stray = waiting(2), *other = waiting(3);
    xfree(stray->name);
    stray->name = xstrdup("schedbridge-resize");
    stray->admin_comment = xstrdup("schedbridge: nodes for job 1");
    xfree(other->name);
    other->name = xstrdup("schedbridge-resize"); // a user's job of that name
    EXPECT(expand_is_stray(stray) && !expand_is_stray(other) && !expand_is_stray(job));
    EXPECT(lock_scope_take(&locks, LOCK_SCOPE_APPLY));
    expand_clear_strays();
    lock_scope_give(&locks);
    EXPECT_NUMBER(stray->job_state, JOB_CANCELLED);
    EXPECT_NUMBER(mock.cancelled, 1);
    EXPECT(IS_JOB_PENDING(other) && IS_JOB_RUNNING(job));
    end();
}

// ---------------------------------------------------------------- progress

static void say(const job_record_t *job, const char *text) {
    schedbridge__v1__progress__init(&said_so[count]);
    said_so[count].text = (char *)text;
    Schedbridge__V1__Progress *message = &said_so[count];
    pb_decision_t *decision = decide(job);
    decision->action_case = PB(DECISION__ACTION_PROGRESS);
    decision->progress = message;
}

static void expect_comment(job_record_t *job, const char *text, const char *comment) {
    say(job, text);
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    EXPECT_TEXT(job->system_comment ? job->system_comment : "(none)", comment);
}

static void progress_is_shown_beside_what_others_wrote(void) {
    char endless[2000];
    begin();
    job_record_t *job = running_with(1, NULL); // any job that runs
    expect_comment(job, "", "(none)");
    expect_comment(job, "grows to 4 nodes", "schedbridge: grows to 4 nodes");
    expect_comment(job, "a;\n\033b", "schedbridge: a,??b");
    expect_comment(job, "", "(none)");
    job->system_comment = xstrdup("from a site; and another");
    expect_comment(job, "joins", "from a site; and another; schedbridge: joins");
    xfree(job->system_comment);
    job->system_comment = xstrdup("first; schedbridge: joins; last");
    expect_comment(job, "done", "first; last; schedbridge: done");
    expect_comment(job, "", "first; last");
    memset(endless, 'x', sizeof(endless) - 1);
    endless[sizeof(endless) - 1] = 0;
    say(job, endless);
    EXPECT(apply());
    EXPECT_NUMBER(strlen(job->system_comment), strlen("first; last; schedbridge: ") + 160);
    end();
}

// ---------------------------------------------------------------- the hello

static bool offers(bool resizes, const char *feature) {
    size_t n;
    char **features = action_features(resizes, &n);
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(features[i], feature))
            return true;
    }
    return false;
}

static void resizes_are_offered_where_slurm_permits_them(void) {
    EXPECT(offers(true, "resize") && !offers(false, "resize"));
    EXPECT(offers(true, "progress") && offers(false, "progress"));
    EXPECT(offers(true, "reserve") && offers(false, "reserve"));
}

// On n[1-4] for ten minutes in all, nine of them left.
static job_record_t *running_on_four(void) {
    job_record_t *job = running(1);
    expect_resize(job, "n[1-4]", APPLIED, "");
    job->time_limit = 10;
    job->start_time = time(NULL) - 60;
    job->end_time = job->start_time + 600;
    return job;
}

static void a_job_on_fewer_nodes_may_run_longer(void) {
    static const struct {
        const char *nodes;
        int64_t left_s; // that the service allows
        uint32_t max_time, minutes;
    } cases[] = {
        {"n2", 2160, INFINITE, 37},      {"n2", 4000, INFINITE, 37}, {"n2", 601, INFINITE, 12},
        {"n[1-2]", 1080, INFINITE, 19},  {"n2", 540, INFINITE, 10},  {"n2", 0, INFINITE, 10},
        {"n2", -1000000, INFINITE, 10},  {"n2", 2160, 20, 20},       {"n2", 2160, 5, 10},
        {"n2", 1ll << 61, INFINITE, 37}, {"n2", 2160, NO_VAL, 37},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin();
        job_record_t *job = running_on_four();
        job->part_ptr->max_time = cases[i].max_time;
        resize(job, cases[i].nodes);
        resizes[0].end_s = time(NULL) + cases[i].left_s;
        EXPECT(apply());
        expect_result(0, APPLIED, "");
        EXPECT_NUMBER(job->time_limit, cases[i].minutes);
        EXPECT_NUMBER(job->end_time - job->start_time, 60 * cases[i].minutes);
        end();
    }
}

static void a_raised_limit_is_noted_and_stays_the_users(void) {
    begin();
    job_record_t *job = running_on_four();
    job->limit_set.time = 1;
    resize(job, "n[1-2]");
    resizes[0].end_s = time(NULL) + 1080;
    EXPECT(apply());
    EXPECT_NUMBER(job->time_limit, 19);
    EXPECT_NUMBER(job->limit_set.time, 1); // MaxWall still applies
    resize(job, "n2");
    resizes[0].end_s = time(NULL) + 2160;
    EXPECT(apply());
    EXPECT_NUMBER(job->time_limit, 37);
    raised_limit_restore(job);
    EXPECT_NUMBER(job->time_limit, 10);
    end();
}

static void a_limit_stays_where_the_nodes_stay(void) {
    begin();
    job_record_t *job = running_on_four();
    resize(job, "n[1-5]"); // more nodes are no reason
    resizes[0].end_s = time(NULL) + 4000;
    EXPECT(apply());
    EXPECT_NUMBER(job->time_limit, 10);
    mock.update_does_nothing = true;
    resize(job, "n2");
    resizes[0].end_s = time(NULL) + 4000;
    EXPECT(apply());
    EXPECT_NUMBER(job->time_limit, 10);
    mock.update_does_nothing = false;
    job->time_limit = INFINITE;
    resize(job, "n2");
    resizes[0].end_s = time(NULL) + 4000;
    EXPECT(apply());
    EXPECT_NUMBER(job->time_limit, INFINITE);
    end();
}

int main(void) {
    a_job_grows_and_shrinks();
    the_same_nodes_again_are_no_change();
    a_helper_is_of_the_jobs_kind();
    the_batch_host_is_the_head_wherever_it_is();
    nodes_given_back_count_one_job_less_that_shares_with_nobody();
    cores_of_nodes_given_back_are_free_before_another_job_ends();
    each_node_keeps_its_cores_in_a_merge();
    the_users_own_list_is_spelled_otherwise();
    what_slurm_says_is_compared_with_what_the_job_holds();
    a_helper_that_fails_is_cancelled();
    a_helper_that_slurm_does_not_make_is_refused();
    without_defer_slurm_may_start_the_helper_itself();
    only_malleable_jobs_within_their_bounds();
    a_width_rule_binds_but_not_the_way_back();
    nodes_that_a_request_binds_together_stay();
    jobs_in_odd_states_are_left_alone();
    nodes_that_cannot_be_had();
    limits_in_accounting_are_on_all_nodes_of_a_job();
    limits_are_scaled_as_slurm_scales_them();
    what_cannot_be_foreseen_is_judged_before_the_merge();
    a_stray_helper_is_cancelled();
    progress_is_shown_beside_what_others_wrote();
    resizes_are_offered_where_slurm_permits_them();
    a_job_on_fewer_nodes_may_run_longer();
    a_raised_limit_is_noted_and_stays_the_users();
    a_limit_stays_where_the_nodes_stay();
    DONE();
}
