// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/snapshot.h"

#include <stdlib.h>

#include "common/hash.h"
#include "common/records.h"
#include "common/slurm_compat.h"
#include "report/jobs.h"
#include "report/nodes.h"
#include "resize/expand.h"
#include "rules/examine.h"
#include "rules/raised_limit.h"
#include "sharing/coscheduling.h"

// Job numbers found in one pass, and those that need an examination.
typedef struct {
    uint32_t *ids;
    size_t count, room;
} numbers_t;

typedef struct {
    snapshot_t *snapshot;
    sent_state_t *sent_state;
    numbers_t *numbers;
    bool strays, some_left;
} scan_t;

static void numbers_add(numbers_t *numbers, uint32_t id)
{
    if (numbers->count == numbers->room) {
        numbers->room = numbers->room ? 2 * numbers->room : 1024;
        numbers->ids = realloc(numbers->ids, numbers->room * sizeof(*numbers->ids));
        if (!numbers->ids)
            abort();
    }
    numbers->ids[numbers->count++] = id;
}

// Reports once that a known job has ended. Slurm purges ended jobs after MinJobAge; jobs that come
// and go between two scans are not reported.
static void note_end(const scan_t *scan, const job_record_t *job)
{
    if (!job_has_ended(job))
        return;
    sent_job_t *entry = sent_state_find(scan->sent_state, compat_job_id(job));
    if (!entry || !entry->sent || entry->ended)
        return;
    entry->ended = scan->sent_state->scan;
    arena_append(&scan->snapshot->arena, &scan->snapshot->ended,
                 job_ended_message(&scan->snapshot->arena, job));
}

static int collect(void *record, void *context)
{
    scan_t *scan = context;
    const job_record_t *job = record;
    scan->strays |= expand_is_stray(job);
    scan->some_left |= coscheduling_has_left(job);
    if (job_wire_state(job) != PB(JOB_STATE__JOB_STATE_UNSPECIFIED))
        numbers_add(scan->numbers, compat_job_id(job));
    note_end(scan, job);
    return 0;
}

static void remove_job(snapshot_t *snapshot, const sent_job_t *entry)
{
    if (entry->sent)
        arena_append(&snapshot->arena, &snapshot->removed_jobs,
                     job_wire_id(&snapshot->arena, entry->job_id, entry->array_job_id,
                                 entry->array_task_id));
}

// The entry of a job; a job with a new name (the last task of an array) gets a new one.
static sent_job_t *entry_of(snapshot_t *snapshot, sent_state_t *sent_state, const job_record_t *job)
{
    bool made;
    sent_job_t *entry = sent_state_put(sent_state, compat_job_id(job), &made);
    bool renamed =
        entry->array_job_id != job->array_job_id || entry->array_task_id != job->array_task_id;
    if (!made && renamed)
        remove_job(snapshot, entry);
    if (made || renamed) {
        *entry = (sent_job_t){.job_id = compat_job_id(job),
                              .array_job_id = job->array_job_id,
                              .array_task_id = job->array_task_id,
                              .announced = !made && entry->announced,
                              .ended = made ? 0 : entry->ended};
    }
    entry->scan = sent_state->scan;
    return entry;
}

static void note_begin(snapshot_t *snapshot, const job_record_t *job)
{
    time_t begin = job->details->begin_time;
    if (examine_cleaning(job))
        begin = MAX(begin, snapshot->now + 1);
    if (begin > snapshot->now && (!snapshot->next_s || begin < snapshot->next_s))
        snapshot->next_s = begin;
}

static void report(snapshot_t *snapshot, const job_record_t *job, sent_job_t *entry)
{
    snapshot->limited |= entry->hold == PB(HOLD__HOLD_LIMIT);
    uint64_t fingerprint = job_fingerprint(job, entry, snapshot->now);
    if (entry->sent && entry->fingerprint == fingerprint)
        return;
    int state = job_wire_state(job);
    if (entry->told)
        entry->state = entry->found;
    // A job that started or has just ended frees nothing yet; one that ended earlier has changed.
    snapshot->pressing |=
        !entry->sent || state == PB(JOB_STATE__JOB_STATE_PENDING) || state == entry->state;
    entry->fingerprint = fingerprint;
    entry->sent = true;
    entry->found = (uint8_t)state;
    entry->told = entry->scan;
    arena_append(&snapshot->arena, &snapshot->jobs,
                 job_message(&snapshot->arena, job, entry, snapshot->now));
}

// First pass, under read locks: reports jobs that need no examination and collects the rest.
static bool read_jobs(snapshot_t *snapshot, sent_state_t *sent_state, lock_scope_t *locks,
                      const numbers_t *numbers, numbers_t *doubtful)
{
    int64_t now_ms = clock_ms();
    bool interrupted;
    for (size_t i = 0; i < numbers->count; i++) {
        if (i % 16 == 15 && !lock_scope_breathe(locks, &interrupted))
            return false;
        const job_record_t *job = find_job_record(numbers->ids[i]);
        if (!job || job_wire_state(job) == PB(JOB_STATE__JOB_STATE_UNSPECIFIED))
            continue;
        sent_job_t *entry = entry_of(snapshot, sent_state, job);
        if (job_wire_state(job) != PB(JOB_STATE__JOB_STATE_PENDING)) {
            report(snapshot, job, entry);
            continue;
        }
        note_begin(snapshot, job);
        if (!entry->sent || entry->fingerprint != job_fingerprint(job, entry, snapshot->now) ||
            examine_needed(job, entry, now_ms))
            numbers_add(doubtful, numbers->ids[i]);
    }
    return true;
}

// Second pass, under the locks of Slurm's own scheduler: examines, then reports.
static bool examine_jobs(snapshot_t *snapshot, sent_state_t *sent_state, lock_scope_t *locks,
                         const numbers_t *doubtful)
{
    bool interrupted;
    if (!doubtful->count)
        return true;
    if (!lock_scope_take(locks, LOCK_SCOPE_APPLY))
        return false;
    int64_t now_ms = clock_ms();
    for (size_t i = 0; i < doubtful->count; i++) {
        if (i % 4 == 3 && !lock_scope_breathe(locks, &interrupted))
            return false;
        job_record_t *job = find_job_record(doubtful->ids[i]);
        if (!job || job_wire_state(job) != PB(JOB_STATE__JOB_STATE_PENDING)) {
            snapshot->again = true; // ended or started since the first pass
            continue;
        }
        if (examine_split(job)) {
            snapshot->again = true; // its records have changed
            continue;
        }
        sent_job_t *entry = entry_of(snapshot, sent_state, job);
        raised_limit_restore(job);
        coscheduling_restore(job);
        if (examine(job, entry, now_ms))
            report(snapshot, job, entry);
        else
            snapshot->again = true; // it has ended
    }
    lock_scope_give(locks);
    return true;
}

static void gone(const sent_job_t *entry, void *context)
{
    remove_job(context, entry);
}

static bool take_jobs(snapshot_t *snapshot, sent_state_t *sent_state, lock_scope_t *locks)
{
    numbers_t numbers = {0}, doubtful = {0};
    scan_t scan = {.snapshot = snapshot, .sent_state = sent_state, .numbers = &numbers};
    sent_state->scan++;
    bool good = lock_scope_take(locks, LOCK_SCOPE_READ);
    if (good) {
        list_for_each_ro(job_list, collect, &scan);
        good = read_jobs(snapshot, sent_state, locks, &numbers, &doubtful);
        if (good)
            lock_scope_give(locks);
    }
    if (good && scan.some_left && lock_scope_take(locks, LOCK_SCOPE_APPLY)) {
        coscheduling_leave_all();
        snapshot->again = true; // their hosts were reported before
        lock_scope_give(locks);
    }
    if (good && scan.strays && lock_scope_take(locks, LOCK_SCOPE_APPLY)) {
        expand_clear_strays();
        lock_scope_give(locks);
    }
    good = good && examine_jobs(snapshot, sent_state, locks, &doubtful);
    if (good)
        sent_state_sweep(sent_state, gone, snapshot);
    free(numbers.ids);
    free(doubtful.ids);
    return good;
}

static uint64_t names_fingerprint(void)
{
    bridge_hash_t hash = BRIDGE_HASH_START;
    for (int i = 0; i < node_record_count; i++) {
        const node_record_t *node = compat_node(i);
        hash_text(&hash, node ? node->name : NULL);
    }
    return hash_end(hash);
}

// Nodes are added and removed by configuration (and by `scontrol create node`).
static void renumber_nodes(snapshot_t *snapshot, sent_state_t *sent_state)
{
    uint64_t names = names_fingerprint();
    if (sent_state->node_names == names && sent_state->n_nodes == (size_t)node_record_count)
        return;
    snapshot->renumbered = sent_state->n_nodes > 0;
    free(sent_state->nodes);
    sent_state->nodes = calloc((size_t)node_record_count + 1, sizeof(*sent_state->nodes));
    if (!sent_state->nodes)
        abort();
    sent_state->n_nodes = (size_t)node_record_count;
    sent_state->node_names = names;
}

static void take_nodes(snapshot_t *snapshot, sent_state_t *sent_state)
{
    renumber_nodes(snapshot, sent_state);
    snapshot->scale.nodes = sent_state->n_nodes;
    for (size_t i = 0; i < sent_state->n_nodes; i++) {
        const node_record_t *node = compat_node((int)i);
        if (!node || !node->name || IS_NODE_FUTURE(node))
            continue;
        snapshot->scale.cpus += node->cpus_efctv;
        snapshot->scale.name_bytes += strlen(node->name) + 1;
        uint64_t fingerprint = node_fingerprint(node);
        if (fingerprint == sent_state->nodes[i])
            continue;
        sent_state->nodes[i] = fingerprint;
        arena_append(&snapshot->arena, &snapshot->nodes, node_message(&snapshot->arena, node));
    }
}

// True if the list has changed since it was last sent.
static bool changed(arena_t *arena, const ProtobufCMessage *message, uint64_t *known)
{
    size_t bytes = protobuf_c_message_get_packed_size(message);
    uint8_t *packed = arena_take(arena, bytes);
    protobuf_c_message_pack(message, packed);
    bridge_hash_t hash = BRIDGE_HASH_START;
    hash_bytes(&hash, packed, bytes);
    uint64_t fingerprint = hash_end(hash);
    bool is_new = fingerprint != *known;
    *known = fingerprint;
    return is_new;
}

static bool take_machine(snapshot_t *snapshot, sent_state_t *sent_state, lock_scope_t *locks)
{
    arena_t *arena = &snapshot->arena;
    if (!lock_scope_take(locks, LOCK_SCOPE_READ))
        return false;
    take_nodes(snapshot, sent_state);
    pb_partitions_t *partitions = partitions_message(arena);
    pb_reservations_t *reservations = reservations_message(arena, snapshot->now, &snapshot->next_s);
    pb_licences_t *licences = licences_message(arena);
    lock_scope_give(locks);
    if (changed(arena, &partitions->base, &sent_state->partitions))
        snapshot->partitions = partitions;
    if (changed(arena, &reservations->base, &sent_state->reservations))
        snapshot->reservations = reservations;
    if (changed(arena, &licences->base, &sent_state->licences))
        snapshot->licences = licences;
    return true;
}

bool snapshot_take(snapshot_t *snapshot, sent_state_t *sent_state, lock_scope_t *locks)
{
    snapshot->now = time(NULL);
    snapshot->scale = (reply_scale_t){0};
    return take_machine(snapshot, sent_state, locks) && take_jobs(snapshot, sent_state, locks);
}

bool snapshot_has_news(const snapshot_t *snapshot)
{
    return snapshot->jobs.count || snapshot->removed_jobs.count || snapshot->ended.count ||
           snapshot->nodes.count || snapshot->partitions || snapshot->reservations ||
           snapshot->licences;
}

bool snapshot_can_wait(const snapshot_t *snapshot)
{
    return !snapshot->pressing && !snapshot->removed_jobs.count && !snapshot->nodes.count &&
           !snapshot->partitions && !snapshot->reservations && !snapshot->licences;
}

void snapshot_fill(snapshot_t *snapshot, pb_cycle_request_t *request)
{
    request->now_s = snapshot->now;
    request->jobs = (pb_job_t **)snapshot->jobs.items;
    request->n_jobs = snapshot->jobs.count;
    request->removed_jobs = (char **)snapshot->removed_jobs.items;
    request->n_removed_jobs = snapshot->removed_jobs.count;
    request->ended = (pb_ended_job_t **)snapshot->ended.items;
    request->n_ended = snapshot->ended.count;
    request->nodes = (pb_node_t **)snapshot->nodes.items;
    request->n_nodes = snapshot->nodes.count;
    request->partitions = snapshot->partitions;
    request->reservations = snapshot->reservations;
    request->licences = snapshot->licences;
}

void snapshot_clear(snapshot_t *snapshot)
{
    arena_reset(&snapshot->arena);
    *snapshot = (snapshot_t){0};
}
