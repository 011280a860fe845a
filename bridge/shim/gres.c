// SPDX-License-Identifier: GPL-2.0-or-later
#include "gres.h"

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
    }
    list_iterator_destroy(at);
    *count = found.count;
    return (pb_gres_t **)found.items;
}

static uint64_t share(uint64_t total, uint64_t parts)
{
    return (total + parts - 1) / parts;
}

static uint64_t least_on_a_node(const gres_job_state_t *state, const job_record_t *job)
{
    const job_details_t *details = job->details;
    uint64_t nodes = details->min_nodes ? details->min_nodes : 1;
    uint64_t most_nodes =
        details->max_nodes && details->max_nodes != NO_VAL ? details->max_nodes : 0;
    uint64_t least = state->gres_per_node;
    if (!least && state->gres_per_socket)
        least = state->gres_per_socket * MAX(1, job_get_sockets_per_node((job_record_t *)job));
    if (!least && state->gres_per_task) {
        uint64_t tasks = details->ntasks_per_node && details->ntasks_per_node != NO_VAL16
                             ? details->ntasks_per_node
                             : share(MAX(1, details->num_tasks), nodes);
        least = state->gres_per_task * tasks;
    }
    if (!least && state->gres_per_job) {
        // With a fixed number of nodes the total is shared out; with a free one, one each will do.
        least = most_nodes == nodes ? share(state->gres_per_job, nodes) : 1;
    }
    return least;
}

pb_gres_t **gres_per_node(arena_t *arena, const job_record_t *job, size_t *count)
{
    arena_list_t found = {0};
    *count = 0;
    if (!job->gres_list_req)
        return NULL;
    list_itr_t *at = list_iterator_create(job->gres_list_req);
    for (gres_state_t *gres; (gres = list_next(at));) {
        const gres_job_state_t *state = gres->gres_data;
        uint64_t least = least_on_a_node(state, job);
        if (least)
            arena_append(arena, &found,
                         gres_message(arena, gres->gres_name, state->type_name, least));
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
