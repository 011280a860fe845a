// SPDX-License-Identifier: GPL-2.0-or-later
// What the service was told last, so that only changes are sent. An entry for each job that the
// service knows or shall know; a hash for each node and for each list that is replaced whole.
//
// A scan marks what it sees. Hashes become valid when the service has answered: on any failure
// everything is sent anew, so nothing has to be undone. What a scan found and is not sent yet is
// found again by the next one (sent_state_untell).
#ifndef BRIDGE_SENT_STATE_H
#define BRIDGE_SENT_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t job_id; // Slurm's own number; 0: the slot is empty
    uint32_t array_job_id;
    uint32_t array_task_id; // with array_job_id: UINT32_MAX for the unstarted tasks
    uint32_t scan;          // the last scan that saw it
    uint64_t print;         // hash of all that is sent, before it is put into words
    int64_t tested_ms;      // when Slurm's own tests were made last
    uint8_t hold;           // what they said
    char hold_text[96];
    uint32_t word;  // Slurm's reason for the last start that it refused; 0: it has no word for it
    bool announced; // its start_time is the bridge's announcement
    bool sent;      // the service knows it
    uint8_t state, found; // as the service knows it; as the last scan found it
    uint32_t told;        // the scan that found it new or changed last; 0: that was not sent
    uint32_t ended;       // the scan that found that it has ended; 0: none did
} sent_job_t;

typedef struct {
    sent_job_t *jobs; // open addressing, size a power of two
    size_t room;
    size_t count;
    uint32_t scan;
    uint64_t *nodes; // by Slurm's node index; 0: not sent
    size_t n_nodes;
    uint64_t node_names; // hash of all names in order
    uint64_t partitions, reservations, licences;
} sent_state_t;

void sent_state_clear(sent_state_t *sent_state);

sent_job_t *sent_state_find(sent_state_t *sent_state, uint32_t job_id);

// Finds or makes; *made tells which. Pointers into the sent state end with the next call of this.
sent_job_t *sent_state_put(sent_state_t *sent_state, uint32_t job_id, bool *made);

// What the present scan found of jobs is not told now: the next one shall find it, too.
void sent_state_untell(sent_state_t *sent_state);

typedef void (*sent_state_gone_t)(const sent_job_t *job, void *context);

// Forgets all jobs that the present scan did not see, telling of each.
void sent_state_sweep(sent_state_t *sent_state, sent_state_gone_t gone, void *context);

#endif
