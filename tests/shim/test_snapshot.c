// SPDX-License-Identifier: GPL-2.0-or-later
// What is read of Slurm's tables: in batches of bounded time, only what changed, whatever a record
// holds, and never by a pointer from before a batch.
#include "report/snapshot.h"

#include "cycle/events.h"
#include "expect.h"
#include "report/jobs.h"
#include "rules/examine.h"
#include "slurm_mock.h"

static sent_state_t sent_state;
static lock_scope_t locks;
static snapshot_t snapshot;

static void begin(void) {
    mock_begin(8, 4);
    sent_state = (sent_state_t){0};
    locks = (lock_scope_t){.batch_ms = 5};
    snapshot = (snapshot_t){0};
}

static void end(void) {
    mock_nothing_held("after a scan");
    snapshot_clear(&snapshot);
    sent_state_clear(&sent_state);
    mock_end();
}

static void scan(void) {
    snapshot_clear(&snapshot);
    EXPECT(snapshot_take(&snapshot, &sent_state, &locks));
    mock_nothing_held("after a scan");
}

static const pb_job_t *told(const char *id) {
    for (size_t i = 0; i < snapshot.jobs.count; i++) {
        const pb_job_t *job = snapshot.jobs.items[i];
        if (!strcmp(job->id, id))
            return job;
    }
    return NULL;
}

static void only_what_changed_is_told(void) {
    begin();
    job_record_t *job = mock_job(1);
    mock_array(5, 3);
    mock_run(mock_job(2), 0, 2);
    scan();
    EXPECT_NUMBER(snapshot.jobs.count, 3);
    EXPECT_NUMBER(snapshot.nodes.count, 8);
    EXPECT_NUMBER(snapshot.scale.nodes, 8);
    EXPECT_NUMBER(snapshot.scale.cpus, 32);
    EXPECT_NUMBER(snapshot.scale.name_bytes, 24);
    EXPECT(snapshot.partitions && snapshot.reservations && snapshot.licences);
    EXPECT_NUMBER(told("5")->array_tasks, 3);
    EXPECT(told("2")->allocation);
    scan();
    EXPECT(!snapshot_has_news(&snapshot));
    job->time_limit = 20;
    scan();
    EXPECT_NUMBER(snapshot.jobs.count, 1);
    EXPECT_NUMBER(told("1")->time_limit_s, 1200);
    EXPECT_NUMBER(told("1")->version, job_version(job));
    mock_forget(job);
    scan();
    EXPECT_NUMBER(snapshot.removed_jobs.count, 1);
    EXPECT_TEXT(snapshot.removed_jobs.items[0], "1");
    end();
}

static void what_slurm_holds_back_is_told_so(void) {
    begin();
    mock_job(1)->priority = 0;
    mock_job(2)->mock.waits_for = WAIT_DEPENDENCY;
    mock_job(3)->mock.waits_for = WAIT_TIME;
    mock_job(4)->mock.limited = true;
    accounting_enforce = ACCOUNTING_ENFORCE_LIMITS;
    mock_job(5)->mock.never = true; // it ends
    job_record_t *job = mock_job(6);
    job->het_job_id = 6;
    mock_job(7)->part_ptr = NULL;
    scan();
    EXPECT_NUMBER(told("1")->hold, PB(HOLD__HOLD_HELD));
    EXPECT_NUMBER(told("2")->hold, PB(HOLD__HOLD_DEPENDENCY));
    EXPECT_NUMBER(told("3")->hold, PB(HOLD__HOLD_BEGIN_TIME));
    EXPECT_NUMBER(told("4")->hold, PB(HOLD__HOLD_LIMIT));
    EXPECT(!told("5"));
    EXPECT_NUMBER(told("6")->hold, PB(HOLD__HOLD_OTHER));
    EXPECT_NUMBER(told("7")->hold, PB(HOLD__HOLD_PARTITION));
    end();
}

// scontrol requeuehold, RequeueExitHold and a Prolog that fails: Slurm lets a user release the job
// only while its reason says that the user held it.
static void who_holds_a_job_is_kept_while_its_former_run_is_cleaned_up(void) {
    static const uint32_t reasons[] = {WAIT_HELD_USER, WAIT_HELD, WAIT_MAX_REQUEUE,
                                       WAIT_RESV_DELETED, FAIL_BAD_CONSTRAINTS};
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        begin();
        job_record_t *jobs[] = {mock_job(1), mock_job(2), mock_job(3), mock_job(4)};
        list_t *steps = mock_list();
        mock_append(steps, jobs[0]);
        jobs[0]->step_list = steps;
        jobs[1]->details->prolog_running = 1;
        jobs[2]->restart_cnt = 1;
        jobs[2]->details->submit_time = time(NULL) + 100;
        jobs[3]->restart_cnt = 1;
        jobs[3]->details->submit_time = time(NULL) + 100;
        for (int at = 0; at < 3; at++) {
            jobs[at]->priority = 0;
            jobs[at]->state_reason = reasons[i];
            jobs[at]->state_desc = xstrdup("launch failed requeued held");
        }
        for (int cleaned = 0; cleaned < 2; cleaned++) {
            scan();
            if (!cleaned)
                EXPECT_NUMBER(told("4")->hold, PB(HOLD__HOLD_OTHER)); // it is not held
            for (int at = 0; at < 3; at++) {
                char id[] = {(char)('1' + at), 0};
                if (!cleaned)
                    EXPECT_NUMBER(told(id)->hold, PB(HOLD__HOLD_HELD));
                EXPECT_NUMBER(jobs[at]->state_reason, reasons[i]);
                EXPECT_TEXT(jobs[at]->state_desc, "launch failed requeued held");
            }
            EXPECT_NUMBER(jobs[3]->state_reason, cleaned ? WAIT_NO_REASON : WAIT_CLEANING);
            steps->count = 0;
            jobs[1]->details->prolog_running = 0;
            mock.now_us += INT64_C(200000000);
        }
        jobs[2]->details->submit_time = time(NULL) + 100;
        jobs[2]->priority = 1000; // released
        scan();
        EXPECT_NUMBER(jobs[2]->state_reason, WAIT_CLEANING);
        end();
    }
}

static void more_names_than_nodes_are_told_as_what_is_left_out(void) {
    begin();
    job_record_t *job = mock_job(1);
    job->details->req_nodes = xstrdup("n[1-2]");
    job->details->exc_nodes = xstrdup("n3");
    job->details->exc_node_bitmap = bit_alloc(node_record_count);
    for (int i = 2; i < node_record_count; i++)
        bit_set(job->details->exc_node_bitmap, i);
    char *others = bitmap2node_name(job->details->exc_node_bitmap);
    scan();
    EXPECT_TEXT(told("1")->request->required_nodes, "");
    EXPECT_TEXT(told("1")->request->excluded_nodes, others);
    free(others);
    job = mock_job(2);
    job->details->req_nodes = xstrdup("n[1-2]");
    job->details->req_node_bitmap = bit_alloc(node_record_count);
    job->details->exc_nodes = xstrdup("n3");
    job->details->exc_node_bitmap = bit_alloc(node_record_count);
    scan();
    EXPECT_TEXT(told("2")->request->required_nodes, "n[1-2]");
    EXPECT_TEXT(told("2")->request->excluded_nodes, "n3");
    end();
}

// Nothing tells when limits change: while one keeps back a job, a scan is followed by another.
static void tasks_that_share_cpus_have_none_of_their_own(void) {
    begin();
    for (uint32_t id = 1; id <= 3; id++) {
        job_details_t *details = mock_job(id)->details;
        details->num_tasks = 20;
        details->min_nodes = details->max_nodes = details->min_cpus = id;
        details->overcommit = id < 3;
    }
    scan();
    EXPECT_NUMBER(told("1")->request->tasks, 0);
    EXPECT_NUMBER(told("2")->request->tasks, 0);
    EXPECT_NUMBER(told("2")->request->min_cpus, 2);
    EXPECT_NUMBER(told("3")->request->tasks, 20);
    end();
}

static void who_is_kept_back_by_a_limit_is_looked_at_again(void) {
    begin();
    accounting_enforce = ACCOUNTING_ENFORCE_LIMITS;
    job_record_t *job = mock_job(1);
    scan();
    EXPECT(!snapshot.limited);
    job->mock.limited = true;
    job->time_limit++;
    scan();
    EXPECT(snapshot.limited);
    scan();
    EXPECT(snapshot.limited);
    job->mock.limited = false;
    mock.now_us += 2000000;
    scan();
    EXPECT(!snapshot.limited);
    EXPECT_NUMBER(told("1")->hold, PB(HOLD__HOLD_NONE));
    end();
}

static void of_some_qos_no_place_is_kept(void) {
    begin();
    slurmdb_qos_rec_t qos = {.id = 1, .name = "scavenge"};
    job_record_t *job = mock_job(1);
    job->qos_ptr = &qos;
    scan();
    EXPECT(!told("1")->request->no_place);
    qos.flags = QOS_FLAG_NO_RESERVE; // by sacctmgr
    scan();
    EXPECT(told("1")->request->no_place);
    job->qos_ptr = NULL;
    end();
}

// A limit on the nodes of a group counts a node once, however many jobs of the group run there.
static void nodes_that_a_group_has_already_count_once(void) {
    static const struct {
        const char *what;
        uint32_t nodes;
        bool held;
    } cases[] = {{"one more beside the one it has", 2, false},
                 {"more than that", 3, true},
                 {"whole nodes", 2, true},
                 {"nodes it names", 2, true},
                 {"the node is held whole", 2, true},
                 {"the node is down", 2, true},
                 {"the node is of no partition of the job", 2, true},
                 {"of a QOS", 2, false},
                 {"of a QOS of the partition", 2, false},
                 {"of the user, in a QOS", 2, false},
                 {"of the user, but other nodes of the QOS", 2, true},
                 {"of the account, in a QOS", 2, false}};
    for (int i = 0; i < (int)(sizeof(cases) / sizeof(cases[0])); i++) {
        begin();
        job_record_t *job = mock_job(1);
        bitstr_t *group = bit_alloc(node_record_count);
        slurmdb_assoc_usage_t above = {.grp_node_bitmap = group}, below = {0};
        slurmdb_assoc_rec_t account = {.usage = &above}, user = {.usage = &below};
        slurmdb_qos_usage_t usage = {.grp_node_bitmap = group};
        slurmdb_qos_rec_t qos = {.usage = &usage};
        bit_set(group, i == 6 ? node_record_count - 1 : 0);
        below.parent_assoc_ptr = &account;
        if (i < 7)
            job->assoc_ptr = &user;
        else if (i == 8)
            job->part_ptr->qos_ptr = &qos;
        else
            job->qos_ptr = &qos;
        bitstr_t *nobodys = bit_alloc(node_record_count);
        if (i >= 9) {
            account.acct = "chem";
            job->assoc_ptr = &account;
            usage.grp_node_bitmap = i == 10 ? group : nobodys;
            above.grp_node_bitmap = nobodys;
            mock.user_limits.node_bitmap = i == 9 ? group : nobodys;
            mock.account_limits.node_bitmap = i == 11 ? group : nobodys;
            mock.group_reason = i == 11 ? WAIT_QOS_MAX_NODE_PER_ACCT : WAIT_QOS_MAX_NODE_PER_USER;
        }
        job->details->min_nodes = cases[i].nodes;
        job->state_reason = WAIT_RESOURCES;
        job->state_desc = xstrdup("said by the service");
        if (i == 2)
            job->details->whole_node = WHOLE_NODE_REQUIRED;
        if (i == 3) {
            job->details->req_node_bitmap = bit_alloc(node_record_count);
            bit_set(job->details->req_node_bitmap, 1);
        }
        if (i == 4)
            bit_clear(share_node_bitmap, 0);
        if (i == 5)
            bit_clear(avail_node_bitmap, 0);
        if (i == 6)
            bit_clear(job->part_ptr->node_bitmap, node_record_count - 1);
        mock.group = group;
        mock.group_max = 2;
        accounting_enforce = ACCOUNTING_ENFORCE_LIMITS;
        scan();
        EXPECT_NUMBER(told("1")->hold, cases[i].held ? PB(HOLD__HOLD_LIMIT) : PB(HOLD__HOLD_NONE));
        uint32_t reason = i < 9 ? WAIT_ASSOC_GRP_NODE : mock.group_reason;
        EXPECT_NUMBER(job->state_reason, cases[i].held ? reason : WAIT_RESOURCES);
        if (!cases[i].held)
            EXPECT_TEXT(job->state_desc, "said by the service");
        EXPECT(!job->details->req_node_bitmap == (i != 3));
        job->assoc_ptr = NULL;
        job->qos_ptr = NULL;
        mock.group = NULL;
        mock.group_reason = 0;
        FREE_NULL_BITMAP(group);
        FREE_NULL_BITMAP(nobodys);
        end();
    }
}

static void what_was_announced_outlives_an_examination(void) {
    const uint32_t words[] = {WAIT_RESERVATION, WAIT_ARRAY_TASK_LIMIT, WAIT_PART_CONFIG};
    for (int i = 0; i < 3; i++) {
        begin();
        job_record_t *job = mock_job(1);
        job->resv_name = xstrdup("mine"); // such a job is examined with every scan
        scan();
        job->state_reason = words[i];
        scan();
        EXPECT_NUMBER(job->state_reason, words[i]);
        // What Slurm said when it held the job back is over when it no longer does.
        job->mock.waits_for = words[i];
        scan();
        job->mock.waits_for = 0;
        scan();
        EXPECT_NUMBER(job->state_reason, WAIT_NO_REASON);
        end();
    }
}

static void cores_of_a_suspended_job_are_free(void) {
    begin();
    job_record_t *with_memory = mock_job(1), *without = mock_job(2), *gang = mock_job(3);
    mock_run(with_memory, 0, 4);
    mock_run(without, 1, 4);
    mock_run(gang, 2, 4);
    with_memory->job_resrcs->memory_allocated = calloc(1, sizeof(uint64_t));
    with_memory->job_resrcs->memory_allocated[0] = 100;
    with_memory->job_resrcs->whole_node = WHOLE_NODE_REQUIRED;
    scan();
    with_memory->job_state = without->job_state = gang->job_state = JOB_SUSPENDED;
    with_memory->priority = without->priority = 0; // nobody but a person resumes them
    scan();
    EXPECT(told("1") && told("2") && !told("3"));
    EXPECT_NUMBER(told("1")->state, PB(JOB_STATE__JOB_STATE_RUNNING));
    EXPECT(!told("1")->allocation->exclusive);
    EXPECT_NUMBER(told("1")->allocation->n_uses, 1);
    EXPECT_NUMBER(told("1")->allocation->uses[0]->cpus, 0);
    EXPECT_NUMBER(told("1")->allocation->uses[0]->memory_mib, 100);
    EXPECT_NUMBER(told("2")->allocation->n_uses, 0);
    with_memory->job_state = JOB_RUNNING;
    with_memory->priority = 1000;
    scan();
    EXPECT_NUMBER(told("1")->allocation->uses[0]->cpus, 4);
    EXPECT(told("1")->allocation->exclusive);
    end();
}

static void running_malleable_jobs_say_what_they_asked_for(void) {
    begin();
    job_record_t *malleable = mock_job(1), *rigid = mock_job(2);
    malleable->spank_job_env_size = 1;
    malleable->spank_job_env = calloc(1, sizeof(char *));
    malleable->spank_job_env[0] = xstrdup("_SLURM_SPANK_OPTION_schedbridge_malleable=2-8");
    mock_run(malleable, 0, 4);
    malleable->details->whole_node = WHOLE_NODE_REQUIRED;
    mock_run(rigid, 1, 4);
    scan();
    EXPECT(told("1")->request && told("1")->request->malleable);
    EXPECT_NUMBER(told("1")->request->malleable->min_nodes, 2);
    EXPECT_NUMBER(told("1")->request->malleable->max_nodes, 8);
    EXPECT(!told("2")->request);
    EXPECT(!told("1")->rigid && !told("2")->rigid);
    malleable->details->whole_node = 0;
    scan();
    EXPECT(told("1")->rigid && !told("2")); // which has not changed
    malleable->details->whole_node = WHOLE_NODE_REQUIRED;
    malleable->job_state = JOB_SUSPENDED;
    malleable->priority = 0; // nobody but a person resumes it
    scan();
    EXPECT(!told("1")->request);
    end();
}

static void jobs_that_run_say_what_they_stated_to_draw(void) {
    begin();
    job_record_t *rigid = mock_job(1), *silent = mock_job(2), *waiting = mock_job(3);
    job_record_t *const stating[] = {rigid, waiting};
    for (int i = 0; i < 2; i++) {
        job_record_t *job = stating[i];
        job->spank_job_env_size = 2;
        job->spank_job_env = calloc(2, sizeof(char *));
        job->spank_job_env[0] = xstrdup("_SLURM_SPANK_OPTION_schedbridge_min_power=90");
        job->spank_job_env[1] = xstrdup("_SLURM_SPANK_OPTION_schedbridge_max_power=250");
    }
    mock_run(rigid, 0, 4);
    mock_run(silent, 1, 4);
    scan();
    EXPECT(!told("1")->request);
    EXPECT_NUMBER(told("1")->allocation->min_power_w, 90);
    EXPECT_NUMBER(told("1")->allocation->max_power_w, 250);
    EXPECT_NUMBER(told("2")->allocation->max_power_w, 0);
    EXPECT_NUMBER(told("3")->request->malleable->max_power_w, 250);
    end();
}

static void a_scan_gives_the_locks_back(void) {
    begin();
    for (uint32_t id = 1; id <= 600; id++)
        mock_job(id);
    mock.look_us = 100;
    scan();
    EXPECT_NUMBER(snapshot.jobs.count, 600);
    // Sixteen jobs are read between two looks at the clock, or four examined.
    EXPECT(mock.longest_us <= 5000 + 16 * 6 * 100);
    EXPECT(mock.lock_count > 20);
    end();
}

static uint32_t next_gone;

static void others_change_the_table(void) {
    EXPECT(lock_scope_take(&locks, LOCK_SCOPE_READ));
    job_record_t *job = find_job_record(next_gone++);
    lock_scope_give(&locks);
    if (job)
        mock_forget(job);
    mock_job(10000 + next_gone);
}

static void jobs_come_and_go_during_a_scan(void) {
    begin();
    for (uint32_t id = 1; id <= 300; id++)
        mock_job(id);
    mock.look_us = 1000;
    next_gone = 1;
    mock.between = others_change_the_table;
    scan();
    EXPECT(next_gone > 20);
    mock.between = NULL;
    scan();
    for (uint32_t id = 300; id > 290; id--)
        EXPECT(sent_state_find(&sent_state, id) != NULL);
    EXPECT_NUMBER(sent_state.count, (size_t)job_list->count);
    end();
}

static void shut_down(void) {
    slurmctld_config.shutdown_time = time(NULL);
}

static void a_shutdown_ends_a_scan(void) {
    begin();
    for (uint32_t id = 1; id <= 300; id++)
        mock_job(id);
    mock.look_us = 1000;
    mock.between = shut_down;
    EXPECT(!snapshot_take(&snapshot, &sent_state, &locks));
    mock_nothing_held("after a scan");
    end();
}

static gres_state_t *add_gres(list_t **list, uint64_t per_task, uint64_t per_job) {
    gres_state_t *gres = calloc(1, sizeof(*gres));
    gres_job_state_t *state = calloc(1, sizeof(*state));
    state->gres_per_task = per_task;
    state->gres_per_job = per_job;
    gres->gres_name = "gpu";
    gres->gres_data = state;
    if (!*list)
        *list = mock_list();
    mock_append(*list, gres);
    return gres;
}

static void what_jobs_do_not_use_up_is_told_so(void) {
    begin();
    char *types[] = {"fast", "slow"};
    uint64_t counts[] = {4, 0};
    gres_node_state_t lent = {.gres_cnt_avail = 6, .no_consume = true, .type_cnt = 2};
    gres_node_state_t plain = {.gres_cnt_avail = 2};
    lent.type_name = types;
    lent.type_cnt_avail = counts;
    gres_state_t lustre = {.gres_name = "lustre", .gres_data = &lent};
    gres_state_t gpu = {.gres_name = "gpu", .gres_data = &plain};
    node_record_t *node = compat_node(0);
    node->gres_list = mock_list();
    mock_append(node->gres_list, &gpu);
    mock_append(node->gres_list, &lustre);
    scan();
    const pb_node_t *message = snapshot.nodes.items[0];
    EXPECT_NUMBER(message->n_gres, 3);
    EXPECT_TEXT(message->gres[0]->name, "gpu");
    EXPECT(!message->gres[0]->no_consume);
    EXPECT_TEXT(message->gres[1]->name, "lustre:fast");
    EXPECT_NUMBER(message->gres[1]->count, 4);
    EXPECT(message->gres[1]->no_consume);
    EXPECT_NUMBER(message->gres[2]->count, 2);
    EXPECT(message->gres[2]->no_consume);
    mock_list_free(node->gres_list);
    node->gres_list = NULL;
    end();
}

static void records_of_any_content_are_read(void) {
    begin();
    job_record_t *job = mock_job(1);
    free(job->name);
    job->name = NULL;
    job->time_limit = NO_VAL;
    job->part_ptr->default_time = NO_VAL;
    job->part_ptr->max_time = NO_VAL;
    job->details->min_nodes = 0;
    job->details->num_tasks = 0;
    add_gres(&job->gres_list_req, UINT64_MAX, UINT64_MAX);
    add_gres(&job->gres_list_req, 0, 1);
    job = mock_job(2);
    mock_run(job, 1, 2);
    FREE_NULL_BITMAP(job->job_resrcs->node_bitmap); // as of a job that Slurm could not restore
    job = mock_job(3);
    mock_run(job, 1, 2);
    job->job_resrcs->nhosts = 0;
    free(job->job_resrcs->cpus);
    job->job_resrcs->cpus = NULL;
    job = mock_job(4);
    mock_run(job, 1, 2);
    job->job_state |= JOB_COMPLETING;
    job = mock_array(5, 0);
    job->array_recs->max_run_tasks = 5;
    job->array_recs->tot_run_tasks = 9;
    job = mock_array(6, 4);
    FREE_NULL_BITMAP(job->array_recs->task_id_bitmap);
    job = mock_job(7);
    job->spank_job_env_size = 4000000000u; // and no environment
    job->spank_job_env_size = 0;
    job = mock_job(8);
    mock_run(job, 2, 1);
    job->job_state = JOB_COMPLETE;
    job->end_time = INT64_MIN;
    job = mock_job(9);
    xfree(job->tres_req_cnt);
    accounting_enforce = ACCOUNTING_ENFORCE_LIMITS;
    scan();
    EXPECT_TEXT(told("1")->name, "");
    EXPECT(told("2") && told("3") && told("4") && told("5") && told("6") && told("9"));
    (void)events_fingerprint();
    scan();
    end();
}

int main(void) {
    only_what_changed_is_told();
    what_slurm_holds_back_is_told_so();
    who_holds_a_job_is_kept_while_its_former_run_is_cleaned_up();
    more_names_than_nodes_are_told_as_what_is_left_out();
    tasks_that_share_cpus_have_none_of_their_own();
    who_is_kept_back_by_a_limit_is_looked_at_again();
    of_some_qos_no_place_is_kept();
    nodes_that_a_group_has_already_count_once();
    what_was_announced_outlives_an_examination();
    cores_of_a_suspended_job_are_free();
    running_malleable_jobs_say_what_they_asked_for();
    jobs_that_run_say_what_they_stated_to_draw();
    a_scan_gives_the_locks_back();
    jobs_come_and_go_during_a_scan();
    a_shutdown_ends_a_scan();
    what_jobs_do_not_use_up_is_told_so();
    records_of_any_content_are_read();
    DONE();
}
