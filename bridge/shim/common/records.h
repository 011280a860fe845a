// SPDX-License-Identifier: GPL-2.0-or-later
// Jobs and nodes that the service names, and the options with which a job was submitted, in Slurm's
// records. All functions need Slurm's locks, at least for reading.
#ifndef BRIDGE_RECORDS_H
#define BRIDGE_RECORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/arena.h"
#include "common/slurm_compat.h"
#include "options/malleable.h"

// The record with this id; NULL: none.
job_record_t *job_by_wire_id(const char *id);

// "1234", for a task of an array "1234_5".
char *job_wire_id(arena_t *arena, uint32_t job_id, uint32_t array_job_id, uint32_t array_task_id);

// True for the record of an array's unstarted tasks.
bool job_is_array_head(const job_record_t *job);

// The job's malleable options. False, with a message, if a client submitted invalid ones.
bool job_malleable(const job_record_t *job, malleable_t *malleable, char *problem, size_t bytes);

// The value that the user gave to an option of the SPANK plugin; NULL: none.
const char *job_option(const job_record_t *job, const char *option);

// A bitmap of exactly the nodes in a hostlist from the wire. False, without a bitmap: it is empty,
// not a hostlist, longer than the list of all nodes, or names an unknown node.
bool nodes_named(const char *names, bitstr_t **nodes);

// Whether some node is in both.
bool nodes_overlap(bitstr_t *a, bitstr_t *b);

#endif
