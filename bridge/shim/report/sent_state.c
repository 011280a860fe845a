// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/sent_state.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

#define MIN_ROOM 1024

void sent_state_clear(sent_state_t *sent_state)
{
    uint32_t scan = sent_state->scan;
    free(sent_state->jobs);
    free(sent_state->nodes);
    memset(sent_state, 0, sizeof(*sent_state));
    sent_state->scan = scan;
}

static size_t slot(const sent_state_t *sent_state, uint32_t job_id)
{
    size_t at = hash_mix(job_id) & (sent_state->room - 1);
    while (sent_state->jobs[at].job_id && sent_state->jobs[at].job_id != job_id)
        at = (at + 1) & (sent_state->room - 1);
    return at;
}

static void resize(sent_state_t *sent_state, size_t room)
{
    sent_job_t *old = sent_state->jobs;
    size_t old_room = sent_state->room;
    sent_state->jobs = calloc(room, sizeof(*sent_state->jobs));
    if (!sent_state->jobs)
        abort();
    sent_state->room = room;
    for (size_t i = 0; i < old_room; i++) {
        if (old[i].job_id)
            sent_state->jobs[slot(sent_state, old[i].job_id)] = old[i];
    }
    free(old);
}

sent_job_t *sent_state_find(sent_state_t *sent_state, uint32_t job_id)
{
    if (!sent_state->room || !job_id)
        return NULL;
    sent_job_t *job = &sent_state->jobs[slot(sent_state, job_id)];
    return job->job_id ? job : NULL;
}

sent_job_t *sent_state_put(sent_state_t *sent_state, uint32_t job_id, bool *made)
{
    if (2 * (sent_state->count + 1) > sent_state->room)
        resize(sent_state, sent_state->room ? 2 * sent_state->room : MIN_ROOM);
    sent_job_t *job = &sent_state->jobs[slot(sent_state, job_id)];
    *made = !job->job_id;
    if (*made) {
        *job = (sent_job_t){.job_id = job_id};
        sent_state->count++;
    }
    return job;
}

void sent_state_untell(sent_state_t *sent_state)
{
    for (size_t i = 0; i < sent_state->room; i++) {
        sent_job_t *job = &sent_state->jobs[i];
        if (job->job_id && job->told == sent_state->scan) {
            job->fingerprint = 0; // the hash of nothing
            job->told = 0;
        }
        if (job->job_id && job->ended == sent_state->scan)
            job->ended = 0;
    }
}

void sent_state_sweep(sent_state_t *sent_state, sent_state_gone_t gone, void *context)
{
    size_t left = 0;
    for (size_t i = 0; i < sent_state->room; i++) {
        sent_job_t *job = &sent_state->jobs[i];
        if (!job->job_id)
            continue;
        if (job->scan == sent_state->scan)
            left++;
        else
            gone(job, context);
    }
    if (left == sent_state->count)
        return;
    // Holes would end probe sequences: the table is rebuilt.
    sent_job_t *old = sent_state->jobs;
    size_t old_room = sent_state->room;
    size_t room = MIN_ROOM;
    while (room < 4 * left)
        room *= 2;
    sent_state->jobs = calloc(room, sizeof(*sent_state->jobs));
    if (!sent_state->jobs)
        abort();
    sent_state->room = room;
    sent_state->count = left;
    for (size_t i = 0; i < old_room; i++) {
        if (old[i].job_id && old[i].scan == sent_state->scan)
            sent_state->jobs[slot(sent_state, old[i].job_id)] = old[i];
    }
    free(old);
}
