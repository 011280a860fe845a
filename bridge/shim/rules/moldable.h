// SPDX-License-Identifier: GPL-2.0-or-later
// Waiting malleable jobs that may start on another number of nodes than they ask for.
#ifndef BRIDGE_MOLDABLE_H
#define BRIDGE_MOLDABLE_H

#include "common/slurm_compat.h"

// True if every width that a job allows fits the rest of its request: a batch job of whole nodes
// whose number of tasks follows from its nodes. With --ntasks it does not, nor with named nodes,
// GRES or chunks.
bool job_is_moldable(const job_record_t *job);

// The parts of a request that count all nodes together.
typedef struct {
    uint32_t num_tasks, min_cpus, orig_min_cpus;
} molded_t;

molded_t molded_of(const job_details_t *details);
void molded_restore(job_details_t *details, const molded_t *molded);

// The same for another number of nodes; nothing changes for a job that is not moldable.
void molded_fit(const job_record_t *job, uint32_t nodes);

// The time limit that a job asks for in a partition, in minutes; INFINITE: none.
uint32_t asked_minutes(const job_record_t *job, const part_record_t *part);

// The longest time limit, in minutes, of a moldable job that starts on fewer nodes than requested:
// the requested node-minutes, but no more than partition, QOS and association allow. 0: its own.
uint32_t molded_minutes(const job_record_t *job, const part_record_t *part, uint32_t nodes);

// The minimum number of nodes on which its QOS and association allow a moldable job these
// node-minutes.
uint32_t molded_min_nodes(const job_record_t *job);

#endif
