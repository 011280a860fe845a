// SPDX-License-Identifier: GPL-2.0-or-later
// The allocations of running and completing jobs.
#ifndef BRIDGE_ALLOCATION_H
#define BRIDGE_ALLOCATION_H

#include "common/arena.h"
#include "common/pb.h"
#include "common/slurm_compat.h"

pb_allocation_t *allocation_message(arena_t *arena, const job_record_t *job);

// The node of a running job that it cannot give back: where its batch script runs, else the first.
bitoff_t allocation_head(const job_record_t *job);

// A hostlist of the nodes.
char *nodes_text(arena_t *arena, bitstr_t *nodes);

// A hash of the set of nodes.
uint64_t nodes_fingerprint(bitstr_t *nodes);

// Licences with their counts, as jobs, allocations and reservations report them.
pb_licence_use_t **licence_uses(arena_t *arena, list_t *licences, size_t *count);

#endif
