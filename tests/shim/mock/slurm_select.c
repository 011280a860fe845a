// SPDX-License-Identifier: GPL-2.0-or-later
// How the mock of slurmctld chooses the nodes of a job, and starts it there.
#include "slurm_launch.h"

// Slurm checks that nodes are contiguous only where it chooses some of them itself. Leaves the
// first that will do; false: there are none.
static bool choose_contiguous(bitstr_t *given, bitstr_t *required, uint32_t wanted) {
    for (bitoff_t first = 0; first + (bitoff_t)wanted <= given->size; first++) {
        bitoff_t at = first, end = first + (bitoff_t)wanted;
        bool names = true; // all that are required are among them
        while (at < end && given->bit[at])
            at++;
        for (bitoff_t i = 0; required && i < given->size; i++)
            names &= !required->bit[i] || (i >= first && i < end);
        if (at < end || !names)
            continue;
        for (bitoff_t i = 0; i < given->size; i++)
            given->bit[i] = i >= first && i < end;
        return true;
    }
    return false;
}

// Notes what is asked for: all nodes that are not excluded, or some of them. An error: some node is
// required and, by its user, excluded, or no nodes are contiguous.
static int note_request(job_record_t *job, bitstr_t *given) {
    bool contradicts = false, among = false, scattered = false;
    job_details_t *details = job->details;
    bitstr_t *required = details->req_node_bitmap;
    if (!details->exc_node_bitmap)
        mock_wrong("a request that is not narrowed");
    for (bitoff_t i = 0; i < given->size; i++) {
        given->bit[i] = !details->exc_node_bitmap->bit[i];
        contradicts |= required && required->bit[i] && !given->bit[i];
        among |= given->bit[i] && !(required && required->bit[i]);
    }
    char *names = bitmap2node_name(contradicts ? required : given);
    snprintf(mock.select_names, sizeof(mock.select_names), "%s", names);
    free(names);
    mock.select_nodes = details->min_nodes;
    mock.select_among = among;
    mock.select_num_tasks = details->num_tasks;
    mock.select_cpus = details->min_cpus;
    uint32_t some = (uint32_t)bit_set_count(given);
    bool few = some < details->min_nodes; // the others are excluded by its user
    if (!among && !few && !contradicts &&
        (details->min_nodes != details->max_nodes || details->min_nodes != some))
        mock_wrong("%u to %u nodes", details->min_nodes, details->max_nodes);
    mock.select_required = required ? (uint32_t)bit_set_count(required) : 0;
    if (among && details->contiguous)
        scattered = !choose_contiguous(given, required, details->min_nodes);
    for (bitoff_t i = given->size - 1;
         among && !details->contiguous && i >= 0 && some > details->min_nodes; i--) {
        some -= given->bit[i] && !(required && required->bit[i]);
        given->bit[i] &= required && required->bit[i];
    }
    mock.select_time_limit = job->time_limit;
    mock.select_switch = job->req_switch;
    mock.select_dist = details->task_dist;
    mock.select_part = job->part_ptr;
    mock.select_arbitrary = (details->task_dist & SLURM_DIST_STATE_BASE) == SLURM_DIST_ARBITRARY;
    for (uint32_t i = 0;
         mock.select_arbitrary && details->arbitrary_tpn && i < MIN(64, details->min_nodes); i++)
        mock.select_tasks[i] = details->arbitrary_tpn[i];
    return contradicts || few ? ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE
           : scattered        ? ESLURM_NODES_BUSY
                              : 0;
}

static void take_first_task(job_record_t *job) {
    if (!job->array_recs || job->array_task_id != NO_VAL)
        return;
    bitoff_t task = job->array_recs->task_id_bitmap ? bit_ffs(job->array_recs->task_id_bitmap) : -1;
    if (task < 0)
        return;
    job->array_task_id = (uint32_t)task;
    job_array_post_sched(job, true);
}

int select_nodes(job_node_select_t *select, bool test_only, bool defer, uint32_t flag) {
    job_record_t *job = select->job_ptr;
    mock_needs("select_nodes", WRITE_LOCK, WRITE_LOCK);
    if (test_only || defer || flag != SLURMDB_JOB_FLAG_SCHED)
        mock_wrong("select_nodes in another way than Slurm's scheduler");
    if (!IS_JOB_PENDING(job))
        mock_wrong("select_nodes for a job that does not wait");
    mock.selects++;
    bitstr_t *given = bit_alloc(bit_size(job->details->exc_node_bitmap));
    int code = note_request(job, given);
    if (!code)
        code = mock.select_code;
    if (!code && mock_owned(job, given))
        code = ESLURM_NODES_BUSY;
    if (!code && mock.only_in && job->resv_ptr != mock.only_in)
        code = ESLURM_NODES_BUSY;
    if (!code && mock.only_with && xstrcmp(job->details->features_use, mock.only_with))
        code = ESLURM_NODES_BUSY;
    uint32_t refused = mock.select_reason ? mock.select_reason : WAIT_RESOURCES;
    if (!code && job->qos_ptr && job->qos_ptr->full) {
        code = ESLURM_ACCOUNTING_POLICY;
        refused = WAIT_ASSOC_JOB_LIMIT;
    }
    mock_set_reason(job, code ? refused : WAIT_NO_REASON);
    if (code) {
        job->state_desc = xstrdup(mock.select_desc ? mock.select_desc : "of the narrowed request");
        FREE_NULL_BITMAP(given);
        if (mock.split_anyway)
            take_first_task(job);
        return code;
    }
    mock.started++;
    if (mock.on_start)
        mock.on_start(job);
    take_first_task(job);
    job->job_state = JOB_RUNNING;
    job->start_time = time(NULL);
    job->end_time = job->start_time + 60 * (time_t)MIN(job->time_limit, 100000);
    xfree(job->nodes);
    job->nodes = bitmap2node_name(given);
    job->node_cnt = (uint32_t)bit_set_count(given);
    job->total_cpus = job->details->num_tasks;
    job->tres_alloc_cnt[TRES_ARRAY_CPU] = job->total_cpus;
    job->tres_alloc_cnt[TRES_ARRAY_NODE] = job->node_cnt;
    job->tres_alloc_cnt[TRES_ARRAY_BILLING] = mock.billing * job->node_cnt;
    mock_release(job); // of an earlier run
    job->job_resrcs = calloc(1, sizeof(*job->job_resrcs));
    job->job_resrcs->node_bitmap = given;
    job->job_resrcs->nhosts = job->node_cnt;
    job->job_resrcs->cpus = calloc(job->node_cnt, sizeof(uint16_t));
    bool shares = (job->part_ptr->max_share & SHARED_FORCE) ||
                  (job->part_ptr->max_share > 1 && job->details->share_res == 1);
    job->job_resrcs->node_req = shares ? NODE_CR_AVAILABLE : NODE_CR_ONE_ROW;
    mock_alloc(job, given);
    FREE_NULL_BITMAP(job->node_bitmap);
    job->node_bitmap = bit_copy(given);
    bitoff_t cores = 0;
    for (bitoff_t i = 0; i < given->size; i++)
        cores += given->bit[i] ? node_record_table_ptr[i]->tot_cores : 0;
    if (cores) {
        job->job_resrcs->core_bitmap = bit_alloc(cores);
        bit_not(job->job_resrcs->core_bitmap);
    }
    return SLURM_SUCCESS;
}

void rebuild_job_part_list(job_record_t *job) {
    (void)job;
    mock_needs("rebuild_job_part_list", WRITE_LOCK, READ_LOCK);
}
