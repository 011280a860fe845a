// SPDX-License-Identifier: GPL-2.0-or-later
// What the mock of slurmctld does with jobs, and the cluster that it begins with.
#include "slurm_launch.h"

// ---------------------------------------------------------------- Slurm's judgement

void mock_set_reason(job_record_t *job, int reason) {
    job->state_reason = (uint32_t)reason;
    xfree(job->state_desc);
}

bool job_independent(job_record_t *job) {
    mock_needs("job_independent", WRITE_LOCK, READ_LOCK);
    if (job->mock.never) { // a dependency that can never be fulfilled ends the job
        job->job_state = JOB_CANCELLED;
        return false;
    }
    if (job->mock.waits_for)
        mock_set_reason(job, job->mock.waits_for);
    return !job->mock.waits_for;
}

int job_limits_check(job_record_t **job, bool check_min_time) {
    (void)check_min_time;
    mock_needs("job_limits_check", WRITE_LOCK, READ_LOCK);
    part_record_t *part = (*job)->part_ptr;
    (*job)->details->pn_min_cpus = (*job)->details->orig_pn_min_cpus + part->adjusted;
    return part->reason;
}

bool deadline_ok(job_record_t *job, char *who) {
    (void)who;
    mock_needs("deadline_ok", WRITE_LOCK, NO_LOCK);
    if (job->mock.too_late)
        job->job_state = JOB_DEADLINE;
    return !job->mock.too_late;
}

int assoc_mgr_validate_assoc_id(void *connection, uint32_t id, int enforce) {
    (void)connection;
    (void)enforce;
    return id == 666 ? SLURM_ERROR : SLURM_SUCCESS;
}

void job_fail_qos(job_record_t *job, const char *who, bool assoc_locked) {
    (void)who;
    (void)assoc_locked;
    mock_needs("job_fail_qos", WRITE_LOCK, NO_LOCK);
    mock_set_reason(job, FAIL_QOS);
}

void set_job_failed_assoc_qos_ptr(job_record_t *job) {
    (void)job;
    mock_needs("set_job_failed_assoc_qos_ptr", WRITE_LOCK, NO_LOCK);
}

void acct_policy_handle_accrue_time(job_record_t *job, bool assoc_locked) {
    (void)job;
    (void)assoc_locked;
    mock_needs("acct_policy_handle_accrue_time", WRITE_LOCK, NO_LOCK);
}

bool acct_policy_job_runnable_pre_select(job_record_t *job, bool assoc_locked) {
    mock_needs("acct_policy_job_runnable_pre_select", WRITE_LOCK, NO_LOCK);
    if (assoc_locked != (mock.assoc_locked > 0))
        mock_wrong("acct_policy_job_runnable_pre_select is told wrongly of locks");
    bool limited = job->mock.limited || (job->qos_ptr && job->qos_ptr->full);
    if (limited)
        mock_set_reason(job, WAIT_ASSOC_JOB_LIMIT);
    return !limited;
}

slurmdb_used_limits_t *acct_policy_get_user_used_limits(list_t **limits, uint32_t user_id) {
    (void)user_id;
    if (!limits || !mock.assoc_locked)
        mock_wrong("acct_policy_get_user_used_limits without its lock");
    return &mock.user_limits;
}

slurmdb_used_limits_t *acct_policy_get_acct_used_limits(list_t **limits, char *account) {
    if (!limits || !account || !mock.assoc_locked)
        mock_wrong("acct_policy_get_acct_used_limits without its lock");
    return &mock.account_limits;
}

uint32_t acct_policy_get_max_nodes(job_record_t *job, uint32_t *reason) {
    mock_needs("acct_policy_get_max_nodes", READ_LOCK, NO_LOCK);
    (void)job;
    *reason = WAIT_ASSOC_GRP_NODE;
    return mock.max_nodes ? mock.max_nodes : INFINITE;
}

void acct_policy_set_qos_order(job_record_t *job, slurmdb_qos_rec_t **first,
                               slurmdb_qos_rec_t **second) {
    if (!mock.assoc_locked)
        mock_wrong("acct_policy_set_qos_order without its lock");
    *first = job->qos_ptr;
    *second = NULL;
}

bool acct_policy_job_runnable_post_select(job_record_t *job, uint64_t *tres, bool assoc_locked) {
    mock_needs("acct_policy_job_runnable_post_select", WRITE_LOCK, NO_LOCK);
    if (!assoc_locked || !mock.assoc_locked)
        mock_wrong("acct_policy_job_runnable_post_select without its lock");
    if (mock.group) {
        bitstr_t *required = job->details->req_node_bitmap;
        uint64_t wanted = tres[TRES_ARRAY_NODE], there = 0;
        for (bitoff_t i = 0; required && i < required->size; i++)
            there += required->bit[i] && mock.group->bit[i];
        wanted -= there <= wanted ? there : 0;
        if (bit_set_count(mock.group) + wanted > mock.group_max) {
            mock_set_reason(job, mock.group_reason ? mock.group_reason : WAIT_ASSOC_GRP_NODE);
            return false;
        }
    }
    return tres[TRES_ARRAY_NODE] > 0;
}

double assoc_mgr_tres_weighted(uint64_t *tres, double *weights, uint64_t flags, bool no_mem) {
    (void)weights;
    (void)flags;
    (void)no_mem;
    return (double)(tres[TRES_ARRAY_CPU] % 1000000);
}

uint64_t job_get_tres_mem(struct job_resources *resources, uint64_t pn_min_memory, uint32_t cpus,
                          uint32_t nodes, part_record_t *part, list_t *gres, bool by_user,
                          uint16_t sockets, uint32_t tasks) {
    (void)resources;
    (void)part;
    (void)gres;
    (void)by_user;
    (void)sockets;
    (void)tasks;
    return pn_min_memory & MEM_PER_CPU ? (pn_min_memory & ~MEM_PER_CPU) * cpus
                                       : pn_min_memory * nodes;
}

uint16_t job_get_sockets_per_node(job_record_t *job) {
    (void)job;
    return 2;
}

void gres_stepmgr_set_job_tres_cnt(list_t *gres, uint32_t nodes, uint64_t *tres, bool locked) {
    (void)gres;
    (void)nodes;
    (void)tres;
    if (!locked || !mock.assoc_locked)
        mock_wrong("gres_stepmgr_set_job_tres_cnt without its lock");
}

int bb_g_job_test_stage_in(job_record_t *job, bool test_only) {
    (void)test_only;
    return !xstrcmp(job->burst_buffer, "ready");
}

int bb_g_job_try_stage_in(void) {
    return 0;
}

int fed_mgr_job_lock(job_record_t *job) {
    (void)job;
    mock_needs("fed_mgr_job_lock", WRITE_LOCK, NO_LOCK);
    if (mock.other_cluster)
        return SLURM_ERROR;
    mock.fed_locks++;
    return SLURM_SUCCESS;
}

int fed_mgr_job_unlock(job_record_t *job) {
    (void)job;
    mock.fed_locks--;
    return SLURM_SUCCESS;
}

int fed_mgr_job_start(job_record_t *job, time_t start) {
    (void)job;
    (void)start;
    mock.fed_locks--;
    return SLURM_SUCCESS;
}

bool job_state_reason_check(int reason, int kind) {
    if (kind == JSR_PART)
        return (reason >= WAIT_PART_NODE_LIMIT && reason <= WAIT_PART_INACTIVE) ||
               reason == WAIT_PART_CONFIG;
    return reason == WAIT_ASSOC_JOB_LIMIT || reason == WAIT_ASSOC_TIME_LIMIT;
}

const char *job_state_reason_string(int reason) {
    static char words[40];
    snprintf(words, sizeof(words), "Reason%d", reason);
    return words;
}

const char *slurm_strerror(int code) {
    static char words[40];
    snprintf(words, sizeof(words), "error %d", code);
    return words;
}

// ---------------------------------------------------------------- arrays

int num_pending_job_array_tasks(uint32_t array) {
    int count = 0;
    mock_needs("num_pending_job_array_tasks", READ_LOCK, NO_LOCK);
    for (int i = 0; i < job_list->count; i++) {
        const job_record_t *job = job_list->items[i];
        count += job->array_job_id == array && job->array_task_id != NO_VAL && IS_JOB_PENDING(job);
    }
    return count;
}

static bitstr_t *copied(bitstr_t *bits) {
    return bits ? bit_copy(bits) : NULL;
}

static job_details_t *copy_details(const job_details_t *from) {
    job_details_t *to = malloc(sizeof(*to));
    *to = *from;
    to->req_node_bitmap = copied(from->req_node_bitmap);
    to->exc_node_bitmap = copied(from->exc_node_bitmap);
    to->req_nodes = xstrdup(from->req_nodes);
    to->exc_nodes = xstrdup(from->exc_nodes);
    to->features = xstrdup(from->features);
    to->prefer = xstrdup(from->prefer);
    to->work_dir = xstrdup(from->work_dir);
    to->features_use = to->prefer ? to->prefer : to->features; // set_job_features_use()
    to->depend_list = NULL;
    to->feature_list = to->feature_list_use = to->prefer_list = NULL;
    return to;
}

// The task named in the record gets a number of its own; what is left of the array, in a copy of
// the record as it is, keeps the array's.
job_record_t *job_array_split(job_record_t *job, bool list_add) {
    mock_needs("job_array_split", WRITE_LOCK, NO_LOCK);
    job_record_t *rest = malloc(sizeof(*rest));
    (void)list_add;
    *rest = *job;
    rest->array_task_id = NO_VAL;
    rest->details = copy_details(job->details);
    rest->array_recs = malloc(sizeof(*rest->array_recs));
    *rest->array_recs = *job->array_recs;
    rest->array_recs->task_cnt--;
    if (job->array_task_id < (uint32_t)job->array_recs->task_id_bitmap->size)
        job->array_recs->task_id_bitmap->bit[job->array_task_id] = false;
    char **const texts[] = {
        &rest->account,         &rest->burst_buffer, &rest->licenses,      &rest->name,
        &rest->nodes,           &rest->partition,    &rest->resv_name,     &rest->sched_nodes,
        &rest->state_desc,      &rest->user_name,    &rest->tres_per_node, &rest->tres_per_job,
        &rest->tres_per_socket, &rest->tres_per_task};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        *texts[i] = xstrdup(*texts[i]);
    rest->tres_req_cnt = calloc(TRES_COUNT, sizeof(uint64_t));
    memcpy(rest->tres_req_cnt, job->tres_req_cnt, TRES_COUNT * sizeof(uint64_t));
    rest->tres_alloc_cnt = calloc(TRES_COUNT, sizeof(uint64_t));
    rest->spank_job_env = NULL;
    rest->spank_job_env_size = 0;
    rest->gres_list_alloc = rest->gres_list_req = rest->license_list = rest->part_ptr_list = NULL;
    rest->step_list = rest->resv_list = NULL;
    rest->job_resrcs = NULL;
    rest->node_bitmap = rest->node_bitmap_cg = NULL;
    rest->admin_comment = rest->alloc_node = rest->batch_host = rest->mcs_label = NULL;
    rest->system_comment = rest->wckey = NULL;
    rest->id = NULL;
    if (job->qos_list) {
        rest->qos_list = mock_list();
        for (int i = 0; i < job->qos_list->count; i++)
            mock_append(rest->qos_list, job->qos_list->items[i]);
    }
    if (job->part_ptr_list) {
        rest->part_ptr_list = mock_list();
        for (int i = 0; i < job->part_ptr_list->count; i++)
            mock_append(rest->part_ptr_list, job->part_ptr_list->items[i]);
    }
    job->job_id = mock.next_id++;
    xfree(job->array_recs);
    mock_append(job_list, rest);
    return rest;
}

job_record_t *job_array_post_sched(job_record_t *job, bool list_add) {
    mock_needs("job_array_post_sched", WRITE_LOCK, NO_LOCK);
    if (job->array_recs && job->array_recs->task_cnt > 1)
        return job_array_split(job, list_add);
    if (job->array_recs) { // its last task
        FREE_NULL_BITMAP(job->array_recs->task_id_bitmap);
        xfree(job->array_recs);
    }
    return job;
}

void job_state_set(job_record_t *job, uint32_t state) {
    mock_needs("job_state_set", WRITE_LOCK, NO_LOCK);
    job->job_state = state;
}

// ---------------------------------------------------------------- reservations

void slurm_init_resv_desc_msg(resv_desc_msg_t *message) {
    *message = (resv_desc_msg_t){0};
}

void slurm_free_resv_desc_msg(resv_desc_msg_t *message) {
    free(message->name);
    free(message->node_list);
    free(message->partition);
    free(message->users);
    free(message->accounts);
    free(message->licenses);
    free(message);
}

int create_resv(resv_desc_msg_t *wanted, char **problem) {
    mock_needs("create_resv", READ_LOCK, WRITE_LOCK);
    if (strlen(wanted->name) > 64)
        mock_wrong("a reservation of an endless name");
    if (!strcmp(wanted->name, "taken")) {
        *problem = xstrdup("the name is taken");
        return ESLURM_NOT_SUPPORTED;
    }
    mock.reservations++;
    return SLURM_SUCCESS;
}

int delete_resv(reservation_name_msg_t *wanted) {
    mock_needs("delete_resv", READ_LOCK, WRITE_LOCK);
    if (!strcmp(wanted->name, "unknown"))
        return ESLURM_NOT_SUPPORTED;
    mock.reservations--;
    return SLURM_SUCCESS;
}

void job_resv_append_magnetic(job_queue_req_t *asked) {
    mock_needs("job_resv_append_magnetic", WRITE_LOCK, NO_LOCK);
    for (int i = 0; i < resv_list->count; i++) {
        slurmctld_resv_t *resv = resv_list->items[i];
        if (!(resv->flags & RESERVE_FLAG_MAGNETIC))
            continue;
        job_queue_rec_t *entry = calloc(1, sizeof(*entry));
        entry->resv_ptr = resv;
        mock_append(asked->job_queue, entry);
    }
}

void job_resv_clear_magnetic_flag(job_record_t *job) {
    if (!(job->bit_flags & JOB_MAGNETIC) || job->job_state == JOB_RUNNING)
        return;
    xfree(job->resv_name);
    job->resv_id = 0;
    job->resv_ptr = NULL;
    job->bit_flags &= ~JOB_MAGNETIC;
}

// ---------------------------------------------------------------- a world

static part_record_t *add_partition(const char *name, int nodes) {
    part_record_t *part = calloc(1, sizeof(*part));
    part->name = xstrdup(name);
    part->node_bitmap = bit_alloc(node_record_count);
    for (int i = 0; i < nodes; i++)
        bit_set(part->node_bitmap, i);
    part->max_nodes = INFINITE;
    part->max_time = INFINITE;
    part->default_time = NO_VAL;
    part->state_up = 3;
    part->max_share = 1;
    part->max_cpus_per_node = part->max_cpus_per_socket = INFINITE;
    mock_append(part_list, part);
    return part;
}

void mock_begin(int nodes, int cpus) {
    mock = (mock_t){.now_us = INT64_C(1795316341000000), .next_id = 1000000};
    slurm_conf = (slurm_conf_t){.cluster_name = "mock",
                                .plugindir = "/nowhere:/nowhere/else",
                                .sched_params = "defer",
                                .select_type = "select/cons_tres",
                                .select_type_param = CR_CORE | CR_MEMORY,
                                .msg_timeout = 10};
    slurmctld_config = (slurmctld_config_t){0};
    slurmctld_diag_stats = (diag_stats_t){0};
    accounting_enforce = 0;
    power_save_enabled = false;
    job_list = mock_list();
    part_list = mock_list();
    resv_list = mock_list();
    cluster_license_list = mock_list();
    active_feature_list = mock_list();
    node_record_count = nodes;
    node_record_table_ptr = calloc((size_t)nodes + 1, sizeof(*node_record_table_ptr));
    avail_node_bitmap = bit_alloc(nodes);
    cg_node_bitmap = bit_alloc(nodes);
    idle_node_bitmap = bit_alloc(nodes);
    share_node_bitmap = bit_alloc(nodes);
    for (int i = 0; i < nodes; i++) {
        node_record_t *node = calloc(1, sizeof(*node));
        node->name = xstrdup_printf("n%d", i + 1);
        node->index = i;
        node->cpus_efctv = (uint16_t)cpus;
        node->tpc = 1;
        node->real_memory = 1024;
        node->owner = NO_VAL;
        node->node_state = NODE_STATE_IDLE;
        node_record_table_ptr[i] = node;
        bit_set(avail_node_bitmap, i);
        bit_set(idle_node_bitmap, i);
        bit_set(share_node_bitmap, i);
    }
    add_partition("main", nodes);
    add_partition("half", nodes / 2)->adjusted = 3;
    last_job_update = last_node_update = last_part_update = last_resv_update = 0;
    last_license_update = 0;
}

static void free_gres(list_t *list) {
    for (int i = 0; list && i < list->count; i++) {
        gres_state_t *gres = list->items[i];
        gres_job_state_t *state = gres->gres_data;
        free(state->gres_cnt_node_alloc);
        free(state);
        free(gres);
    }
    mock_list_free(list);
}

static void free_items(list_t *list) {
    for (int i = 0; list && i < list->count; i++)
        free(list->items[i]);
    mock_list_free(list);
}

static void free_details(job_details_t *details) {
    if (!details)
        return;
    FREE_NULL_BITMAP(details->req_node_bitmap);
    FREE_NULL_BITMAP(details->exc_node_bitmap);
    free_items(details->depend_list);
    mock_list_free(details->feature_list);
    free(details->req_nodes);
    free(details->exc_nodes);
    free(details->features);
    free(details->prefer);
    free(details->work_dir);
    free(details);
}

void mock_forget(job_record_t *job) {
    mock_drop(job_list, job);
    free_details(job->details);
    if (job->array_recs)
        FREE_NULL_BITMAP(job->array_recs->task_id_bitmap);
    free(job->array_recs);
    char *const texts[] = {
        job->account,         job->burst_buffer,  job->licenses,       job->name,
        job->nodes,           job->partition,     job->resv_name,      job->sched_nodes,
        job->state_desc,      job->user_name,     job->tres_per_node,  job->tres_per_job,
        job->tres_per_socket, job->tres_per_task, job->admin_comment,  job->alloc_node,
        job->batch_host,      job->mcs_label,     job->system_comment, job->wckey};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        free(texts[i]);
    free(job->id);
    FREE_NULL_BITMAP(job->node_bitmap);
    free(job->tres_req_cnt);
    free(job->tres_alloc_cnt);
    for (uint32_t i = 0; job->spank_job_env && i < job->spank_job_env_size; i++)
        free(job->spank_job_env[i]);
    free(job->spank_job_env);
    free_gres(job->gres_list_alloc);
    free_gres(job->gres_list_req);
    mock_list_free(job->license_list);
    mock_list_free(job->resv_list);
    mock_list_free(job->qos_list);
    mock_list_free(job->part_ptr_list);
    mock_list_free(job->step_list);
    mock_release(job);
    FREE_NULL_BITMAP(job->node_bitmap_cg);
    free(job);
}

void mock_end(void) {
    mock_nothing_held("at the end");
    if (mock.fed_locks)
        mock_wrong("a federation's lock is left");
    while (job_list->count)
        mock_forget(job_list->items[0]);
    mock_list_free(job_list);
    for (int i = 0; i < part_list->count; i++) {
        part_record_t *part = part_list->items[i];
        free(part->name);
        FREE_NULL_BITMAP(part->node_bitmap);
    }
    free_items(part_list);
    free_items(resv_list);
    free_items(cluster_license_list);
    free_items(active_feature_list);
    for (int i = 0; i < node_record_count; i++) {
        free(node_record_table_ptr[i]->name);
        free(node_record_table_ptr[i]);
    }
    free(node_record_table_ptr);
    FREE_NULL_BITMAP(exc_node_bitmap);
    FREE_NULL_BITMAP(avail_node_bitmap);
    FREE_NULL_BITMAP(cg_node_bitmap);
    FREE_NULL_BITMAP(idle_node_bitmap);
    FREE_NULL_BITMAP(share_node_bitmap);
    node_record_table_ptr = NULL;
    job_list = NULL;
}

job_record_t *mock_job(uint32_t id) {
    job_record_t *job = calloc(1, sizeof(*job));
    job_details_t *details = calloc(1, sizeof(*details));
    job->job_id = id;
    job->array_task_id = NO_VAL;
    job->details = details;
    job->name = xstrdup("job");
    job->user_name = xstrdup("alice");
    job->account = xstrdup("physics");
    job->partition = xstrdup("main");
    job->part_ptr = part_list->items[0];
    job->priority = 1000;
    job->batch_flag = 1;
    job->time_limit = 10;
    job->time_min = NO_VAL;
    job->tres_req_cnt = calloc(TRES_COUNT, sizeof(uint64_t));
    job->tres_alloc_cnt = calloc(TRES_COUNT, sizeof(uint64_t));
    details->submit_time = details->begin_time = time(NULL) - 100;
    details->min_nodes = 1;
    details->max_nodes = 1;
    details->num_tasks = 1;
    details->cpus_per_task = details->orig_cpus_per_task = 1;
    details->min_cpus = details->orig_min_cpus = 1;
    details->pn_min_cpus = details->orig_pn_min_cpus = 1;
    details->task_dist = SLURM_DIST_CYCLIC;
    mock_append(job_list, job);
    return job;
}

job_record_t *mock_array(uint32_t id, uint32_t tasks) {
    job_record_t *job = mock_job(id);
    job->array_job_id = id;
    job->array_recs = calloc(1, sizeof(*job->array_recs));
    job->array_recs->task_cnt = tasks;
    job->array_recs->task_id_bitmap = bit_alloc(tasks);
    bit_not(job->array_recs->task_id_bitmap);
    return job;
}

slurmctld_resv_t *mock_reservation(char *name, uint64_t flags) {
    slurmctld_resv_t *resv = calloc(1, sizeof(*resv));
    resv->name = name;
    resv->flags = flags;
    resv->start_time = time(NULL) - 10;
    resv->end_time = resv->start_time + 600;
    resv->resv_id = (uint32_t)resv_list->count + 1;
    mock_append(resv_list, resv);
    last_resv_update++;
    return resv;
}

void mock_run(job_record_t *job, int node, uint16_t cpus) {
    job->job_state = JOB_RUNNING;
    job->start_time = time(NULL) - 10;
    job->end_time = job->start_time + 600;
    job->node_cnt = 1;
    job->total_cpus = cpus;
    job->job_resrcs = calloc(1, sizeof(*job->job_resrcs));
    job->job_resrcs->node_bitmap = bit_alloc(node_record_count);
    bit_set(job->job_resrcs->node_bitmap, node);
    FREE_NULL_BITMAP(job->node_bitmap);
    job->node_bitmap = bit_copy(job->job_resrcs->node_bitmap);
    job->job_resrcs->nhosts = 1;
    job->job_resrcs->cpus = calloc(1, sizeof(uint16_t));
    job->job_resrcs->cpus[0] = cpus;
    free(job->nodes);
    job->nodes = bitmap2node_name(job->job_resrcs->node_bitmap);
}
