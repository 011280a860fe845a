// SPDX-License-Identifier: GPL-2.0-or-later
// Generic resources: of nodes, asked for by jobs, held by jobs.
#ifndef BRIDGE_GRES_H
#define BRIDGE_GRES_H

#include "arena.h"
#include "pb.h"
#include "slurm_compat.h"

pb_gres_t **gres_of_node(arena_t *arena, const node_record_t *node, size_t *count);

// The fewest nodes that can hold what the job asks for over all its nodes and tasks, at least its
// own lower bound.
uint32_t gres_least_nodes(const job_record_t *job);

// On each node. What is asked for per socket, task or job is turned into what a node needs at least
// when the job has these fewest nodes; Slurm judges the exact request when the job starts.
pb_gres_t **gres_per_node(arena_t *arena, const job_record_t *job, size_t *count);

// Held on the job's node number `at`, counted from 0.
pb_gres_t **gres_held(arena_t *arena, const job_record_t *job, uint32_t at, size_t *count);

#endif
