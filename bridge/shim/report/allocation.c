// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/allocation.h"

#include "common/hash.h"
#include "report/gres.h"

char *nodes_text(arena_t *arena, bitstr_t *nodes)
{
    char *names = bitmap2node_name(nodes);
    char *text = arena_text(arena, names);
    xfree(names);
    return text;
}

uint64_t nodes_fingerprint(bitstr_t *nodes)
{
    bridge_hash_t hash = BRIDGE_HASH_START;
    hash_number(&hash, (uint64_t)bit_size(nodes));
    for (bitoff_t bit = compat_next_bit(nodes, 0); bit >= 0;
         bit = compat_next_bit(nodes, bit + 1)) {
        bitoff_t first = bit;
        while (bit + 1 < bit_size(nodes) && bit_test(nodes, bit + 1))
            bit++;
        hash_number(&hash, (uint64_t)first << 32 | (uint64_t)bit);
    }
    return hash_end(hash);
}

pb_licence_use_t **licence_uses(arena_t *arena, list_t *licences, size_t *count)
{
    arena_list_t uses = {0};
    *count = 0;
    if (!licences)
        return NULL;
    list_itr_t *at = list_iterator_create(licences);
    for (licenses_t *licence; (licence = list_next(at));) {
        pb_licence_use_t *use = PB_NEW(arena, pb_licence_use_t, licence_use);
        use->name = arena_text(arena, licence->name);
        use->count = licence->total;
        arena_append(arena, &uses, use);
    }
    list_iterator_destroy(at);
    *count = uses.count;
    return (pb_licence_use_t **)uses.items;
}

typedef struct {
    uint32_t cpus;
    uint64_t memory_mib;
    pb_gres_t **gres;
    size_t n_gres;
    bitstr_t *nodes;
} use_t;

static bool same_gres(const use_t *a, pb_gres_t **gres, size_t count)
{
    if (a->n_gres != count)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (a->gres[i]->count != gres[i]->count || strcmp(a->gres[i]->name, gres[i]->name) != 0)
            return false;
    }
    return true;
}

static use_t *use_like(arena_t *arena, arena_list_t *uses, const use_t *wanted)
{
    for (size_t i = uses->count; i > 0;
         i--) { // equal neighbours are common: check the last one first
        use_t *use = uses->items[i - 1];
        if (use->cpus == wanted->cpus && use->memory_mib == wanted->memory_mib &&
            same_gres(use, wanted->gres, wanted->n_gres))
            return use;
    }
    use_t *use = arena_take(arena, sizeof(*use));
    *use = *wanted;
    use->nodes = bit_alloc(node_record_count);
    arena_append(arena, uses, use);
    return use;
}

// Suspended until resumed by hand (gang scheduling keeps the priority): Slurm gives its cores to
// others, and keeps memory and devices for it.
static bool has_given_cores(const job_record_t *job)
{
    return IS_JOB_SUSPENDED(job) && job->priority == 0;
}

// Groups the job's nodes by equal allocations; `only` restricts the nodes.
static void set_uses(arena_t *arena, pb_allocation_t *allocation, const job_record_t *job,
                     bitstr_t *only)
{
    const struct job_resources *held = job->job_resrcs;
    arena_list_t uses = {0};
    bool coreless = has_given_cores(job);
    uint32_t at = 0;
    for (bitoff_t node = compat_next_bit(held->node_bitmap, 0); node >= 0 && at < held->nhosts;
         node = compat_next_bit(held->node_bitmap, node + 1), at++) {
        if (only && !bit_test(only, node))
            continue;
        use_t wanted = {.cpus = held->cpus && !coreless ? held->cpus[at] : 0,
                        .memory_mib = held->memory_allocated ? held->memory_allocated[at] : 0};
        wanted.gres = gres_held(arena, job, at, &wanted.n_gres);
        if (coreless && !wanted.memory_mib && !wanted.n_gres)
            continue;
        bit_set(use_like(arena, &uses, &wanted)->nodes, node);
    }
    arena_list_t messages = {0};
    for (size_t i = 0; i < uses.count; i++) {
        use_t *use = uses.items[i];
        pb_node_use_t *message = PB_NEW(arena, pb_node_use_t, node_use);
        message->nodes = nodes_text(arena, use->nodes);
        message->cpus = use->cpus;
        message->memory_mib = use->memory_mib;
        message->gres = use->gres;
        message->n_gres = use->n_gres;
        arena_append(arena, &messages, message);
        FREE_NULL_BITMAP(use->nodes);
    }
    allocation->uses = (pb_node_use_t **)messages.items;
    allocation->n_uses = messages.count;
}

bitoff_t allocation_head(const job_record_t *job)
{
    const node_record_t *host = job->batch_host ? find_node_record(job->batch_host) : NULL;
    // Not always the first one: nodes before it may have been added since.
    return host && bit_test(job->node_bitmap, host->index) ? host->index
                                                           : compat_next_bit(job->node_bitmap, 0);
}

static void set_head(arena_t *arena, pb_allocation_t *allocation, const job_record_t *job)
{
    bitoff_t head = job->node_bitmap ? allocation_head(job) : -1;
    if (head >= 0 && head != compat_next_bit(job->node_bitmap, 0))
        allocation->head = arena_text(arena, compat_node((int)head)->name);
}

pb_allocation_t *allocation_message(arena_t *arena, const job_record_t *job)
{
    pb_allocation_t *allocation = PB_NEW(arena, pb_allocation_t, allocation);
    bool completing = IS_JOB_COMPLETING(job);
    if (job->array_job_id && job->array_task_id != NO_VAL)
        allocation->number = compat_job_id(job);
    allocation->start_s = job->start_time;
    allocation->end_s = completing ? 0 : job->end_time;
    allocation->partition = arena_text(arena, job->part_ptr ? job->part_ptr->name : NULL);
    const struct job_resources *held = job->job_resrcs;
    // Slurm starts nothing on a node that is still completing.
    allocation->exclusive =
        completing || (held && (held->whole_node & WHOLE_NODE_REQUIRED) && !has_given_cores(job));
    if (!completing) {
        allocation->licences = licence_uses(arena, job->license_list, &allocation->n_licences);
        set_head(arena, allocation, job);
    }
    if (held && held->node_bitmap && (!completing || job->node_bitmap_cg)) {
        set_uses(arena, allocation, job, completing ? job->node_bitmap_cg : NULL);
    } else if (completing && job->node_bitmap_cg) {
        // Its allocation is no longer recorded.
        pb_node_use_t *use = PB_NEW(arena, pb_node_use_t, node_use);
        pb_node_use_t **uses = arena_take(arena, sizeof(*uses));
        use->nodes = nodes_text(arena, job->node_bitmap_cg);
        uses[0] = use;
        allocation->uses = uses;
        allocation->n_uses = 1;
    }
    return allocation;
}
