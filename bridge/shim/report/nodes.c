// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/nodes.h"

#include "common/hash.h"
#include "report/allocation.h"
#include "report/gres.h"
#include "report/node_power.h"
#include "sharing/coscheduling.h"

// As Slurm decides, except for nodes that are powered off without a way to power them on.
static bool usable(const node_record_t *node)
{
    bool leaving = node_is_leaving(node); // Slurm takes it out until it is down
    if (!leaving && !bit_test(avail_node_bitmap, node->index))
        return false;
    bool off = leaving || IS_NODE_POWERED_DOWN(node);
    return !off || nodes_can_resume();
}

static uint64_t memory_mib(const node_record_t *node)
{
    return node->real_memory > node->mem_spec_limit ? node->real_memory - node->mem_spec_limit : 0;
}

static uint32_t weight(const node_record_t *node)
{
    return node->config_ptr ? node->config_ptr->weight : node->weight;
}

// The state without the parts that follow from jobs, as every start would change them.
static uint32_t steady_state(const node_record_t *node)
{
    uint32_t flags = node->node_state & NODE_STATE_FLAGS & ~(uint32_t)NODE_STATE_COMPLETING;
    uint32_t base = node->node_state & NODE_STATE_BASE;
    bool up = base == NODE_STATE_IDLE || base == NODE_STATE_ALLOCATED || base == NODE_STATE_MIXED;
    return flags | (up ? NODE_STATE_IDLE : base);
}

uint64_t node_fingerprint(const node_record_t *node)
{
    bridge_hash_t hash = BRIDGE_HASH_START;
    hash_text(&hash, node->name);
    hash_number(&hash, (uint64_t)node->cpus_efctv << 32 | node->tpc);
    hash_number(&hash, memory_mib(node));
    hash_number(&hash, (uint64_t)weight(node) << 32 | steady_state(node));
    hash_number(&hash, usable(node));
    hash_number(&hash, node_power_fingerprint(node));
    if (active_feature_list) {
        list_itr_t *at = list_iterator_create(active_feature_list);
        for (node_feature_t *feature; (feature = list_next(at));) {
            if (feature->node_bitmap && bit_test(feature->node_bitmap, node->index))
                hash_text(&hash, feature->name);
        }
        list_iterator_destroy(at);
    }
    if (node->gres_list) {
        list_itr_t *at = list_iterator_create(node->gres_list);
        for (gres_state_t *gres; (gres = list_next(at));) {
            const gres_node_state_t *state = gres->gres_data;
            hash_number(&hash, state->gres_cnt_avail);
            hash_number(&hash, state->no_consume);
            for (uint16_t i = 0; state->type_cnt_avail && i < state->type_cnt; i++)
                hash_number(&hash, state->type_cnt_avail[i]);
        }
        list_iterator_destroy(at);
    }
    return hash_end(hash);
}

static char *state_text(arena_t *arena, const node_record_t *node)
{
    uint32_t state = steady_state(node);
    char *flags = node_state_flag_string(state);
    bool up = (state & NODE_STATE_BASE) == NODE_STATE_IDLE;
    char *text =
        arena_format(arena, "%s%s", up ? "UP" : node_state_base_string(state), flags ? flags : "");
    xfree(flags);
    return text;
}

pb_node_t *node_message(arena_t *arena, const node_record_t *node)
{
    pb_node_t *message = PB_NEW(arena, pb_node_t, node);
    arena_list_t features = {0};
    message->name = arena_text(arena, node->name);
    message->cpus = node->cpus_efctv;
    message->threads_per_core = MAX(1, node->tpc);
    message->memory_mib = memory_mib(node);
    message->gres = gres_of_node(arena, node, &message->n_gres);
    message->usable = usable(node);
    message->state = state_text(arena, node);
    message->weight = weight(node);
    describe_node_power(message, node);
    if (active_feature_list) {
        list_itr_t *at = list_iterator_create(active_feature_list);
        for (node_feature_t *feature; (feature = list_next(at));) {
            if (feature->node_bitmap && bit_test(feature->node_bitmap, node->index))
                arena_append(arena, &features, arena_text(arena, feature->name));
        }
        list_iterator_destroy(at);
    }
    message->features = (char **)features.items;
    message->n_features = features.count;
    return message;
}

static int64_t minutes_s(uint32_t minutes)
{
    return minutes == INFINITE || minutes == NO_VAL ? 0 : (int64_t)minutes * 60;
}

pb_partitions_t *partitions_message(arena_t *arena)
{
    pb_partitions_t *message = PB_NEW(arena, pb_partitions_t, partitions);
    arena_list_t items = {0};
    list_itr_t *at = list_iterator_create(part_list);
    for (part_record_t *part; (part = list_next(at));) {
        pb_partition_t *item = PB_NEW(arena, pb_partition_t, partition);
        item->name = arena_text(arena, part->name);
        item->nodes =
            part->node_bitmap ? nodes_text(arena, part->node_bitmap) : arena_text(arena, NULL);
        item->up = (part->state_up & PARTITION_SCHED) != 0;
        item->min_nodes = part->min_nodes;
        item->max_nodes = part->max_nodes == INFINITE ? 0 : part->max_nodes;
        item->max_time_s = minutes_s(part->max_time);
        item->default_time_s = minutes_s(part->default_time);
        item->exclusive = part->max_share == 0;
        item->priority_tier = part->priority_tier;
        item->shared = coscheduling_is_shared(part);
        arena_append(arena, &items, item);
    }
    list_iterator_destroy(at);
    message->items = (pb_partition_t **)items.items;
    message->n_items = items.count;
    return message;
}

static void note_moment(time_t moment, time_t now, time_t *next_s)
{
    if (moment > now && (!*next_s || moment < *next_s))
        *next_s = moment;
}

pb_reservations_t *reservations_message(arena_t *arena, time_t now, time_t *next_s)
{
    pb_reservations_t *message = PB_NEW(arena, pb_reservations_t, reservations);
    arena_list_t items = {0};
    list_itr_t *at = list_iterator_create(resv_list);
    *next_s = 0;
    for (slurmctld_resv_t *resv; (resv = list_next(at));) {
        // A floating reservation is always the same time ahead: planning around it is impossible.
        if (resv->end_time <= now || (resv->flags & RESERVE_FLAG_TIME_FLOAT))
            continue;
        note_moment(resv->start_time, now, next_s);
        note_moment(resv->end_time, now, next_s);
        pb_reservation_t *item = PB_NEW(arena, pb_reservation_t, reservation);
        item->name = arena_text(arena, resv->name);
        item->start_s = resv->start_time;
        item->end_s = resv->end_time;
        item->nodes = resv->node_bitmap && bit_ffs(resv->node_bitmap) >= 0
                          ? nodes_text(arena, resv->node_bitmap)
                          : arena_text(arena, NULL);
        item->licences = licence_uses(arena, resv->license_list, &item->n_licences);
        item->maintenance = (resv->flags & RESERVE_FLAG_MAINT) != 0;
        arena_append(arena, &items, item);
    }
    list_iterator_destroy(at);
    message->items = (pb_reservation_t **)items.items;
    message->n_items = items.count;
    return message;
}

pb_licences_t *licences_message(arena_t *arena)
{
    pb_licences_t *message = PB_NEW(arena, pb_licences_t, licences);
    arena_list_t items = {0};
    list_t *copy, *licences = compat_licences(&copy);
    if (licences) {
        list_itr_t *at = list_iterator_create(licences);
        for (licenses_t *licence; (licence = list_next(at));) {
            pb_licence_t *item = PB_NEW(arena, pb_licence_t, licence);
            item->name = arena_text(arena, licence->name);
            item->total = licence->total;
            item->used_elsewhere = compat_used_elsewhere(licence);
            arena_append(arena, &items, item);
        }
        list_iterator_destroy(at);
    }
    FREE_NULL_LIST(copy);
    message->items = (pb_licence_t **)items.items;
    message->n_items = items.count;
    return message;
}
