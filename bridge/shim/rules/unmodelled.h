// SPDX-License-Identifier: GPL-2.0-or-later
// Requests with conditions on nodes that the wire cannot state: Slurm chooses the nodes.
#ifndef BRIDGE_UNMODELLED_H
#define BRIDGE_UNMODELLED_H

#include "common/slurm_compat.h"

// One kind of such requests, stated by the job or by one of its partitions.
typedef struct {
    const char *name; // the option or the setting that states it
    bool (*is_of_job)(const job_record_t *job);
    bool (*is_of_part)(const job_record_t *job, const part_record_t *part);
} unmodelled_kind_t;

// All kinds; the last has no name. The tests have requests of each, found by these names.
extern const unmodelled_kind_t unmodelled_kinds[];

bool job_is_of_kind(const job_record_t *job, const unmodelled_kind_t *kind);

// True if only Slurm can tell which nodes are suitable for a pending job.
bool job_is_unmodelled(const job_record_t *job);

// True if the request has conditions on its nodes together, which nodes that are added or removed
// later could break: --contiguous, numbers of nodes with features, a list of widths.
bool job_binds_its_nodes(const job_record_t *job);

// True if no other node of Slurm's table is between these, as --contiguous requires.
bool nodes_are_contiguous(bitstr_t *nodes);

#endif
