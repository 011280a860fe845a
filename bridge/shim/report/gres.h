// SPDX-License-Identifier: GPL-2.0-or-later
// Generic resources of nodes, requests and allocations.
#ifndef BRIDGE_GRES_H
#define BRIDGE_GRES_H

#include "common/arena.h"
#include "common/pb.h"
#include "common/slurm_compat.h"

pb_gres_t **gres_of_node(arena_t *arena, const node_record_t *node, size_t *count);

// The fewest nodes that can satisfy the request over all nodes and tasks, at least the job's own
// lower bound.
uint32_t gres_min_nodes(const job_record_t *job);

// Per node. Requests per socket, task or job are lowered to the minimum that a node needs when the
// job has these fewest nodes; Slurm checks the exact request at the start.
pb_gres_t **gres_per_node(arena_t *arena, const job_record_t *job, size_t *count);

// Held on the job's node number `at`, counted from 0.
pb_gres_t **gres_held(arena_t *arena, const job_record_t *job, uint32_t at, size_t *count);

#endif
