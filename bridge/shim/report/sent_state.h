// SPDX-License-Identifier: GPL-2.0-or-later
// The state that the service has, so that only changes are sent: an entry for each job that the
// service knows or will know, a hash for each node and for each list that is sent whole.
//
// A scan marks what it sees. Hashes become valid when the service has answered. On any failure
// everything is sent again, so nothing has to be undone. Changes that were found but not sent are
// found again by the next scan (sent_state_untell).
#ifndef BRIDGE_SENT_STATE_H
#define BRIDGE_SENT_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t job_id; // Slurm's own number; 0: the slot is empty
    uint32_t array_job_id;
    uint32_t array_task_id; // with array_job_id; UINT32_MAX for the unstarted tasks
    uint32_t scan;          // the last scan that saw it
    uint64_t fingerprint;   // hash of all fields sent, before encoding
    int64_t tested_ms;      // time of Slurm's last tests of the job
    uint8_t hold;           // their result
    char hold_text[96];
    uint32_t word;        // Slurm's reason for the last start that it refused; 0: none
    bool announced;       // its start_time is an announcement of the bridge
    bool sent;            // the service has it
    uint8_t state, found; // as sent; as found by the last scan
    uint32_t told;        // the scan that last found it new or changed; 0: that was not sent
    uint32_t ended;       // the scan that found that it has ended; 0: none
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

// Finds or creates an entry; *made tells which. Pointers into the sent state are valid until the
// next call of this.
sent_job_t *sent_state_put(sent_state_t *sent_state, uint32_t job_id, bool *made);

// Discards the changes that the present scan found in jobs, so that the next one finds them again.
void sent_state_untell(sent_state_t *sent_state);

typedef void (*sent_state_gone_t)(const sent_job_t *job, void *context);

// Removes all jobs that the present scan did not see, and reports each.
void sent_state_sweep(sent_state_t *sent_state, sent_state_gone_t gone, void *context);

#endif
