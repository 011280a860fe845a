// SPDX-License-Identifier: GPL-2.0-or-later
// Nodes, and the lists that are always sent whole: partitions, reservations, licences. All
// functions need Slurm's locks, at least for reading.
#ifndef BRIDGE_NODES_H
#define BRIDGE_NODES_H

#include "common/arena.h"
#include "common/pb.h"
#include "common/slurm_compat.h"

// Hash of all reported fields of a node.
uint64_t node_fingerprint(const node_record_t *node);

pb_node_t *node_message(arena_t *arena, const node_record_t *node);

pb_partitions_t *partitions_message(arena_t *arena);

// Sets *next_s to the first time after `now` at which a reservation begins or ends; 0: none.
pb_reservations_t *reservations_message(arena_t *arena, time_t now, time_t *next_s);

pb_licences_t *licences_message(arena_t *arena);

#endif
