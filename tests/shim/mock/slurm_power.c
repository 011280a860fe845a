// SPDX-License-Identifier: GPL-2.0-or-later
// What the mock of slurmctld does when nodes are powered down and up.
#include "slurm_mock.h"

void slurm_init_update_node_msg(update_node_msg_t *message) {
    *message = (update_node_msg_t){.node_state = NO_VAL};
}

// Of update_node only what power saving asks of it, as Slurm 24.11 does it.
int update_node(update_node_msg_t *message, uid_t user) {
    bitstr_t *nodes = NULL;
    bool up = message->node_state == NODE_STATE_POWER_UP;
    if (user != slurm_conf.slurm_user_id || (!up && message->node_state != NODE_STATE_POWER_DOWN) ||
        node_name2bitmap(message->node_names, false, &nodes, NULL))
        return ESLURM_NOT_SUPPORTED;
    for (int i = 0; i < node_record_count; i++) {
        if (!bit_test(nodes, i))
            continue;
        node_record_table_ptr[i]->node_state |= message->node_state;
        if (!up)
            bit_clear(avail_node_bitmap, i);
    }
    FREE_NULL_BITMAP(nodes);
    return SLURM_SUCCESS;
}
