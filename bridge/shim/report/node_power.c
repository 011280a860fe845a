// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/node_power.h"

#include "common/records.h"

#define NOT_AVAILABLE                                                                              \
    (NODE_STATE_DRAIN | NODE_STATE_FAIL | NODE_STATE_MAINT | NODE_STATE_REBOOT_REQUESTED |         \
     NODE_STATE_REBOOT_ISSUED)

bool nodes_can_resume(void)
{
    return slurm_conf.resume_program && slurm_conf.resume_program[0];
}

// Slurm chooses nodes of SuspendExcNodes with a count (n[1-9]:4): then none may be powered down.
static bool excluded(const node_record_t *node)
{
    if (slurm_conf.suspend_exc_nodes && strchr(slurm_conf.suspend_exc_nodes, ':'))
        return true;
    return exc_node_bitmap && bit_test(exc_node_bitmap, node->index);
}

static bool can_power_down(const node_record_t *node)
{
    return power_save_enabled && nodes_can_resume() && slurm_conf.suspend_program &&
           slurm_conf.suspend_program[0] && !excluded(node);
}

static bool is_resuming(const node_record_t *node)
{
    return IS_NODE_POWERING_UP(node) || IS_NODE_POWER_UP(node);
}

static bool is_powering_down(const node_record_t *node)
{
    return IS_NODE_POWERING_DOWN(node) || IS_NODE_POWER_DOWN(node);
}

bool node_is_off(const node_record_t *node)
{
    return IS_NODE_POWERED_DOWN(node) || is_powering_down(node) || is_resuming(node);
}

bool node_is_leaving(const node_record_t *node)
{
    return is_powering_down(node) && !IS_NODE_DOWN(node) && !IS_NODE_NO_RESPOND(node) &&
           !(node->node_state & NOT_AVAILABLE);
}

static uint32_t timeout_s(uint16_t own, uint16_t general)
{
    uint16_t found = own && own != NO_VAL16 && own != INFINITE16 ? own : general;
    return found == NO_VAL16 || found == INFINITE16 ? 0 : found;
}

static uint32_t resume_s(const node_record_t *node)
{
    uint32_t up = timeout_s(node->resume_timeout, slurm_conf.resume_timeout);
    uint32_t down = timeout_s(node->suspend_timeout, slurm_conf.suspend_timeout);
    return IS_NODE_POWERED_DOWN(node) || is_resuming(node) ? up : up + down;
}

static int64_t ready_s(const node_record_t *node)
{
    if (!is_resuming(node))
        return 0;
    // Slurm's thread has not read the order yet: boot_req_time is that of an earlier boot.
    bool ordered = IS_NODE_POWERING_UP(node) && node->boot_req_time;
    return (ordered ? node->boot_req_time : time(NULL)) + (int64_t)resume_s(node);
}

static int64_t idle_since_s(const node_record_t *node)
{
    bool idle = IS_NODE_IDLE(node) && !IS_NODE_COMPLETING(node) && !node_is_off(node);
    return idle ? MAX(node->last_busy, 0) : 0;
}

void describe_node_power(pb_node_t *message, const node_record_t *node)
{
    message->power_saving = can_power_down(node);
    message->off = nodes_can_resume() && node_is_off(node);
    if (!message->power_saving && !message->off)
        return;
    message->resume_s = resume_s(node);
    message->ready_s = message->off ? ready_s(node) : 0;
    message->idle_since_s = idle_since_s(node);
}

uint64_t node_power_fingerprint(const node_record_t *node)
{
    if (!can_power_down(node))
        return 0;
    return 1 + (uint64_t)idle_since_s(node) * 31 + (uint64_t)node->boot_req_time;
}

static bool in_use(const node_record_t *node)
{
    return !IS_NODE_IDLE(node) || IS_NODE_COMPLETING(node) || node->sus_job_cnt;
}

static bool is_as_ordered(const node_record_t *node, bool up)
{
    return up ? is_resuming(node) || !node_is_off(node) : node_is_off(node);
}

// Keeps the nodes for which the order is possible now. A node that became busy since the report
// does not cause the others to be refused; the service requests it again.
static verdict_t choose(bitstr_t *nodes, bool up)
{
    verdict_t busy = APPLIED;
    for (int i = 0; (i = bit_ffs_from_bit(nodes, i)) >= 0; i++) {
        const node_record_t *node = node_record_table_ptr[i];
        bool changes = !is_as_ordered(node, up);
        if (changes && !up && !can_power_down(node))
            return REFUSED(ESLURM_NOT_SUPPORTED, "%s may not be powered down", node->name);
        if (changes && (up ? IS_NODE_POWERED_DOWN(node) : !in_use(node)))
            continue;
        bit_clear(nodes, i);
        if (changes)
            busy = verdict_of(PB(OUTCOME__OUTCOME_BUSY), 0, "%s is %s", node->name,
                              up ? "powering down" : "in use");
    }
    return bit_ffs(nodes) < 0 ? busy : APPLIED;
}

static verdict_t carry_out(bitstr_t *nodes, bool up, const char *reason)
{
    update_node_msg_t asked;
    slurm_init_update_node_msg(&asked);
    asked.node_names = bitmap2node_name(nodes);
    asked.node_state = up ? NODE_STATE_POWER_UP : NODE_STATE_POWER_DOWN;
    int code = update_node(&asked, slurm_conf.slurm_user_id);
    info("bridge: nodes %s power %s (%.160s): %s", asked.node_names, up ? "up" : "down", reason,
         code ? slurm_strerror(code) : "done");
    xfree(asked.node_names);
    return code ? REFUSED(code, "%s", slurm_strerror(code)) : APPLIED;
}

verdict_t power_nodes(const pb_power_t *wanted)
{
    bitstr_t *nodes = NULL;
    if (!nodes_can_resume())
        return REFUSED(ESLURM_NOT_SUPPORTED, "no ResumeProgram in slurm.conf");
    if (!nodes_named(wanted->nodes, &nodes))
        return INVALID("unknown nodes: %.100s", wanted->nodes);
    verdict_t verdict = choose(nodes, wanted->up);
    if (is_applied(&verdict) && bit_ffs(nodes) >= 0)
        verdict = carry_out(nodes, wanted->up, wanted->reason);
    FREE_NULL_BITMAP(nodes);
    return verdict;
}
