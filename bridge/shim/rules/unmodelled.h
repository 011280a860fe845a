// SPDX-License-Identifier: GPL-2.0-or-later
// Requests with conditions on nodes that the wire cannot state: Slurm chooses the nodes.
#ifndef BRIDGE_UNMODELLED_H
#define BRIDGE_UNMODELLED_H

#include "common/slurm_compat.h"

// True if only Slurm can tell which nodes are suitable for a pending job.
bool job_is_unmodelled(const job_record_t *job);

// True if the request has conditions on its nodes together, which nodes that are added or removed
// later could break: --contiguous, numbers of nodes with features, a list of widths.
bool job_binds_its_nodes(const job_record_t *job);

// True if no other node of Slurm's table is between these, as --contiguous requires.
bool nodes_are_contiguous(bitstr_t *nodes);

#endif
