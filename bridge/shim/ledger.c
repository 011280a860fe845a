// SPDX-License-Identifier: GPL-2.0-or-later
#include "ledger.h"

#include <stdlib.h>
#include <string.h>

#include "hash.h"

#define LEAST_ROOM 1024

void ledger_clear(ledger_t *ledger)
{
    uint32_t scan = ledger->scan;
    free(ledger->jobs);
    free(ledger->nodes);
    memset(ledger, 0, sizeof(*ledger));
    ledger->scan = scan;
}

static size_t slot(const ledger_t *ledger, uint32_t job_id)
{
    size_t at = hash_mix(job_id) & (ledger->room - 1);
    while (ledger->jobs[at].job_id && ledger->jobs[at].job_id != job_id)
        at = (at + 1) & (ledger->room - 1);
    return at;
}

static void resize(ledger_t *ledger, size_t room)
{
    ledger_job_t *old = ledger->jobs;
    size_t old_room = ledger->room;
    ledger->jobs = calloc(room, sizeof(*ledger->jobs));
    if (!ledger->jobs)
        abort();
    ledger->room = room;
    for (size_t i = 0; i < old_room; i++) {
        if (old[i].job_id)
            ledger->jobs[slot(ledger, old[i].job_id)] = old[i];
    }
    free(old);
}

ledger_job_t *ledger_find(ledger_t *ledger, uint32_t job_id)
{
    if (!ledger->room || !job_id)
        return NULL;
    ledger_job_t *job = &ledger->jobs[slot(ledger, job_id)];
    return job->job_id ? job : NULL;
}

ledger_job_t *ledger_put(ledger_t *ledger, uint32_t job_id, bool *made)
{
    if (2 * (ledger->count + 1) > ledger->room)
        resize(ledger, ledger->room ? 2 * ledger->room : LEAST_ROOM);
    ledger_job_t *job = &ledger->jobs[slot(ledger, job_id)];
    *made = !job->job_id;
    if (*made) {
        *job = (ledger_job_t){.job_id = job_id};
        ledger->count++;
    }
    return job;
}

void ledger_untell(ledger_t *ledger)
{
    for (size_t i = 0; i < ledger->room; i++) {
        ledger_job_t *job = &ledger->jobs[i];
        if (job->job_id && job->told == ledger->scan) {
            job->print = 0; // the hash of nothing
            job->told = 0;
        }
        if (job->job_id && job->ended == ledger->scan)
            job->ended = 0;
    }
}

void ledger_sweep(ledger_t *ledger, ledger_gone_t gone, void *context)
{
    size_t left = 0;
    for (size_t i = 0; i < ledger->room; i++) {
        ledger_job_t *job = &ledger->jobs[i];
        if (!job->job_id)
            continue;
        if (job->scan == ledger->scan)
            left++;
        else
            gone(job, context);
    }
    if (left == ledger->count)
        return;
    // Holes would break the search for what lies behind them: the table is written anew.
    ledger_job_t *old = ledger->jobs;
    size_t old_room = ledger->room;
    size_t room = LEAST_ROOM;
    while (room < 4 * left)
        room *= 2;
    ledger->jobs = calloc(room, sizeof(*ledger->jobs));
    if (!ledger->jobs)
        abort();
    ledger->room = room;
    ledger->count = left;
    for (size_t i = 0; i < old_room; i++) {
        if (old[i].job_id && old[i].scan == ledger->scan)
            ledger->jobs[slot(ledger, old[i].job_id)] = old[i];
    }
    free(old);
}
