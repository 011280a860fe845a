// SPDX-License-Identifier: GPL-2.0-or-later
// Slurm's power saving: the state of a node, and orders to power nodes down and up.
#ifndef BRIDGE_NODE_POWER_H
#define BRIDGE_NODE_POWER_H

#include "common/pb.h"
#include "common/slurm_compat.h"
#include "common/verdict.h"

// Whether Slurm can power nodes up again: without ResumeProgram they stay off.
bool nodes_can_resume(void);

// Whether it is powered down, powering down, or powering up: no job starts there yet.
bool node_is_off(const node_record_t *node);

// Whether it is powering down, and nothing else keeps jobs from it.
bool node_is_leaving(const node_record_t *node);

// Fills in the fields of the contract's Node about power saving.
void describe_node_power(pb_node_t *message, const node_record_t *node);

// The part of these fields that is not in the node's state, for its hash.
uint64_t node_power_fingerprint(const node_record_t *node);

// Powers nodes down or up. Needs LOCK_SCOPE_APPLY.
verdict_t power_nodes(const pb_power_t *wanted);

#endif
