// SPDX-License-Identifier: GPL-2.0-or-later
// Slurm's power saving: what is known of a node, and orders to power nodes down and up.
#ifndef BRIDGE_NODE_POWER_H
#define BRIDGE_NODE_POWER_H

#include "common/pb.h"
#include "common/slurm_compat.h"
#include "common/verdict.h"

// Whether Slurm can power nodes up again: without ResumeProgram those that are off stay so.
bool nodes_can_resume(void);

// It is powered down, on the way there, or on the way up: no job starts there yet.
bool node_is_off(const node_record_t *node);

// It is on its way down, and nothing else keeps jobs from it.
bool node_is_leaving(const node_record_t *node);

// Fills in what the contract's Node says of power saving.
void describe_node_power(pb_node_t *message, const node_record_t *node);

// What of that is not in the node's state already, for its print.
uint64_t node_power_print(const node_record_t *node);

// Powers nodes down or up. Needs LOCK_SCOPE_APPLY.
verdict_t power_nodes(const pb_power_t *wanted);

#endif
