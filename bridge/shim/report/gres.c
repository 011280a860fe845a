// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/gres.h"

static pb_gres_t *gres_message(arena_t *arena, const char *name, const char *type, uint64_t count)
{
    pb_gres_t *message = PB_NEW(arena, pb_gres_t, gres);
    message->name =
        type && type[0] ? arena_format(arena, "%s:%s", name, type) : arena_text(arena, name);
    message->count = count;
    return message;
}

pb_gres_t **gres_of_node(arena_t *arena, const node_record_t *node, size_t *count)
{
    arena_list_t found = {0};
    *count = 0;
    if (!node->gres_list)
        return NULL;
    list_itr_t *at = list_iterator_create(node->gres_list);
    for (gres_state_t *gres; (gres = list_next(at));) {
        const gres_node_state_t *state = gres->gres_data;
        uint64_t typed = 0;
        size_t first = found.count;
        for (uint16_t i = 0; state->type_name && i < state->type_cnt; i++) {
            if (!state->type_name[i] || !state->type_cnt_avail[i])
                continue;
            typed += state->type_cnt_avail[i];
            arena_append(arena, &found,
                         gres_message(arena, gres->gres_name, state->type_name[i],
                                      state->type_cnt_avail[i]));
        }
        if (state->gres_cnt_avail != NO_VAL64 && state->gres_cnt_avail > typed)
            arena_append(arena, &found,
                         gres_message(arena, gres->gres_name, NULL, state->gres_cnt_avail - typed));
        for (size_t i = first; i < found.count; i++)
            ((pb_gres_t *)found.items[i])->no_consume = state->no_consume;
    }
    list_iterator_destroy(at);
    *count = found.count;
    return (pb_gres_t **)found.items;
}

static uint64_t share(uint64_t total, uint64_t parts)
{
    return (total + parts - 1) / parts;
}

// The largest amount of a resource, or of one of its types, on any node.
static uint64_t max_on_a_node(const gres_state_t *wanted)
{
    const char *type = ((const gres_job_state_t *)wanted->gres_data)->type_name;
    uint64_t maximum = 0;
    for (int i = 0; i < node_record_count; i++) {
        const node_record_t *node = compat_node(i);
        if (!node || !node->gres_list)
            continue;
        list_itr_t *at = list_iterator_create(node->gres_list);
        for (gres_state_t *gres; (gres = list_next(at));) {
            const gres_node_state_t *state = gres->gres_data;
            if (gres->plugin_id != wanted->plugin_id)
                continue;
            if (!type && state->gres_cnt_avail != NO_VAL64)
                maximum = MAX(maximum, state->gres_cnt_avail);
            for (uint16_t j = 0; type && j < state->type_cnt; j++) {
                if (!xstrcmp(state->type_name[j], type))
                    maximum = MAX(maximum, state->type_cnt_avail[j]);
            }
        }
        list_iterator_destroy(at);
    }
    return maximum;
}

static uint64_t tasks_of(const job_record_t *job)
{
    uint32_t tasks = job->details->num_tasks;
    return tasks && tasks != NO_VAL ? tasks : 1;
}

uint32_t gres_min_nodes(const job_record_t *job)
{
    uint64_t nodes = MAX(1, job->details->min_nodes);
    if (!job->gres_list_req)
        return (uint32_t)nodes;
    list_itr_t *at = list_iterator_create(job->gres_list_req);
    for (gres_state_t *gres; (gres = list_next(at));) {
        const gres_job_state_t *state = gres->gres_data;
        if (state->gres_per_node || (!state->gres_per_job && !state->gres_per_task))
            continue;
        uint64_t maximum = max_on_a_node(gres);
        if (state->gres_per_job && maximum)
            nodes = MAX(nodes, share(state->gres_per_job, maximum));
        if (state->gres_per_task && maximum >= state->gres_per_task)
            nodes = MAX(nodes, share(tasks_of(job), maximum / state->gres_per_task));
    }
    list_iterator_destroy(at);
    return (uint32_t)MIN(nodes, NO_VAL - 1);
}

static uint64_t min_on_a_node(const gres_job_state_t *state, const job_record_t *job,
                              uint64_t nodes)
{
    const job_details_t *details = job->details;
    if (state->gres_per_node)
        return state->gres_per_node;
    if (state->gres_per_socket)
        return state->gres_per_socket * MAX(1, job_get_sockets_per_node((job_record_t *)job));
    if (state->gres_per_task) {
        bool stated = details->ntasks_per_node && details->ntasks_per_node != NO_VAL16;
        return state->gres_per_task *
               (stated ? details->ntasks_per_node : share(tasks_of(job), nodes));
    }
    return state->gres_per_job ? share(state->gres_per_job, nodes) : 0;
}

pb_gres_t **gres_per_node(arena_t *arena, const job_record_t *job, size_t *count)
{
    arena_list_t found = {0};
    uint32_t nodes = gres_min_nodes(job);
    *count = 0;
    if (!job->gres_list_req)
        return NULL;
    list_itr_t *at = list_iterator_create(job->gres_list_req);
    for (gres_state_t *gres; (gres = list_next(at));) {
        const gres_job_state_t *state = gres->gres_data;
        uint64_t minimum = min_on_a_node(state, job, nodes);
        if (minimum)
            arena_append(arena, &found,
                         gres_message(arena, gres->gres_name, state->type_name, minimum));
    }
    list_iterator_destroy(at);
    *count = found.count;
    return (pb_gres_t **)found.items;
}

pb_gres_t **gres_held(arena_t *arena, const job_record_t *job, uint32_t node, size_t *count)
{
    arena_list_t found = {0};
    *count = 0;
    if (!job->gres_list_alloc)
        return NULL;
    list_itr_t *at = list_iterator_create(job->gres_list_alloc);
    for (gres_state_t *gres; (gres = list_next(at));) {
        const gres_job_state_t *state = gres->gres_data;
        if (node >= state->node_cnt || !state->gres_cnt_node_alloc)
            continue;
        if (state->gres_cnt_node_alloc[node])
            arena_append(arena, &found,
                         gres_message(arena, gres->gres_name, state->type_name,
                                      state->gres_cnt_node_alloc[node]));
    }
    list_iterator_destroy(at);
    *count = found.count;
    return (pb_gres_t **)found.items;
}
