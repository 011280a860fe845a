// SPDX-License-Identifier: GPL-2.0-or-later
// Power saving, against the mock of slurmctld: what is told of nodes, and which orders are obeyed.
#include "report/node_power.h"

#include "common/lock_scope.h"
#include "expect.h"
#include "report/nodes.h"
#include "slurm_mock.h"

#define OUTCOME(name) PB(OUTCOME__OUTCOME_##name)

static void begin_saving(void) {
    mock_begin(8, 4);
    power_save_enabled = true;
    slurm_conf.resume_program = "/sbin/resume";
    slurm_conf.suspend_program = "/sbin/suspend";
    slurm_conf.resume_timeout = 60;
    slurm_conf.suspend_timeout = 30;
}

static const pb_node_t *described(arena_t *arena, int node) {
    return node_message(arena, node_record_table_ptr[node]);
}

static verdict_t order(const char *nodes, bool up) {
    pb_power_t wanted;
    schedbridge__v1__power__init(&wanted);
    wanted.nodes = (char *)nodes;
    wanted.up = up;
    wanted.reason = "test";
    lock_scope_t locks = {.batch_ms = 5};
    EXPECT(lock_scope_take(&locks, LOCK_SCOPE_APPLY));
    verdict_t verdict = power_nodes(&wanted);
    lock_scope_give(&locks);
    return verdict;
}

static void nodes_tell_whether_they_can_be_had(void) {
    static const struct {
        uint32_t flags;
        bool usable, off;
        uint32_t resume_s;
        int64_t ready_s;
    } cases[] = {
        {0, true, false, 90, 0},
        {NODE_STATE_POWER_DOWN, true, true, 90, 0},
        {NODE_STATE_POWERING_DOWN, true, true, 90, 0},
        {NODE_STATE_POWERING_DOWN | NODE_STATE_DRAIN, false, true, 90, 0},
        {NODE_STATE_POWERED_DOWN, true, true, 60, 0},
        {NODE_STATE_POWERING_UP, true, true, 60, 1060},
        // Ordered, and not taken up yet: what is noted is an earlier boot.
        {NODE_STATE_POWERED_DOWN | NODE_STATE_POWER_UP, true, true, 60, INT64_C(1795316341) + 60},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin_saving();
        arena_t arena = {0};
        node_record_t *node = node_record_table_ptr[2];
        node->node_state |= cases[i].flags;
        node->boot_req_time = 1000;
        node->last_busy = 500;
        if (cases[i].flags & (NODE_STATE_POWER_DOWN | NODE_STATE_POWERING_DOWN))
            bit_clear(avail_node_bitmap, 2);
        const pb_node_t *told = described(&arena, 2);
        EXPECT(told->power_saving);
        EXPECT_NUMBER(told->usable, cases[i].usable);
        EXPECT_NUMBER(told->off, cases[i].off);
        EXPECT_NUMBER(told->resume_s, cases[i].resume_s);
        EXPECT_NUMBER(told->ready_s, cases[i].ready_s);
        EXPECT_NUMBER(told->idle_since_s, cases[i].off ? 0 : 500);
        arena_reset(&arena);
        mock_end();
    }
}

static void partitions_may_have_their_own_times(void) {
    begin_saving();
    arena_t arena = {0};
    node_record_table_ptr[1]->resume_timeout = 600;
    node_record_table_ptr[1]->suspend_timeout = NO_VAL16;
    EXPECT_NUMBER(described(&arena, 1)->resume_s, 630);
    arena_reset(&arena);
    mock_end();
}

static void without_power_saving_nothing_is_told_and_nothing_done(void) {
    begin_saving();
    power_save_enabled = false;
    arena_t arena = {0};
    const pb_node_t *told = described(&arena, 0);
    EXPECT(!told->power_saving && !told->off && !told->resume_s && !told->idle_since_s);
    EXPECT_NUMBER(order("n1", false).outcome, OUTCOME(REFUSED));
    slurm_conf.resume_program = NULL;
    EXPECT_NUMBER(order("n1", true).outcome, OUTCOME(REFUSED));
    EXPECT_NUMBER(node_record_table_ptr[0]->node_state, NODE_STATE_IDLE);
    arena_reset(&arena);
    mock_end();
}

static void excluded_nodes_stay_on(void) {
    begin_saving();
    arena_t arena = {0};
    exc_node_bitmap = bit_alloc(node_record_count);
    bit_set(exc_node_bitmap, 3);
    EXPECT(!described(&arena, 3)->power_saving && described(&arena, 4)->power_saving);
    EXPECT_NUMBER(order("n4", false).outcome, OUTCOME(REFUSED));
    EXPECT_NUMBER(order("n5", false).outcome, OUTCOME(APPLIED));
    slurm_conf.suspend_exc_nodes = "n[1-8]:2"; // which of them, only Slurm knows
    EXPECT_NUMBER(order("n6", false).outcome, OUTCOME(REFUSED));
    arena_reset(&arena);
    mock_end();
}

static void nodes_in_use_are_not_powered_down(void) {
    begin_saving();
    node_record_table_ptr[0]->node_state = NODE_STATE_ALLOCATED;
    node_record_table_ptr[1]->node_state |= NODE_STATE_COMPLETING;
    EXPECT_NUMBER(order("n1", false).outcome, OUTCOME(BUSY));
    EXPECT_NUMBER(order("n2", false).outcome, OUTCOME(BUSY));
    EXPECT_NUMBER(order("n[1-2]", false).outcome, OUTCOME(BUSY));
    EXPECT_NUMBER(order("n[1-4]", false).outcome, OUTCOME(APPLIED)); // the others are
    for (int i = 0; i < 5; i++)
        EXPECT_NUMBER(IS_NODE_POWER_DOWN(node_record_table_ptr[i]) != 0, i == 2 || i == 3);
    EXPECT_NUMBER(node_record_table_ptr[0]->node_state, NODE_STATE_ALLOCATED);
    mock_end();
}

static void orders_are_obeyed_once(void) {
    begin_saving();
    EXPECT_NUMBER(order("n[1-2]", false).outcome, OUTCOME(APPLIED));
    EXPECT(IS_NODE_POWER_DOWN(node_record_table_ptr[0]) &&
           IS_NODE_POWER_DOWN(node_record_table_ptr[1]));
    uint32_t state = node_record_table_ptr[0]->node_state;
    EXPECT_NUMBER(order("n1", false).outcome, OUTCOME(APPLIED));
    EXPECT_NUMBER(node_record_table_ptr[0]->node_state, state);
    EXPECT_NUMBER(order("n1", true).outcome, OUTCOME(BUSY)); // it is still on its way down
    node_record_table_ptr[0]->node_state = NODE_STATE_IDLE | NODE_STATE_POWERED_DOWN;
    EXPECT_NUMBER(order("n1", true).outcome, OUTCOME(APPLIED));
    EXPECT(IS_NODE_POWER_UP(node_record_table_ptr[0]));
    EXPECT_NUMBER(order("n8", true).outcome, OUTCOME(APPLIED)); // it is on
    EXPECT_NUMBER(node_record_table_ptr[7]->node_state, NODE_STATE_IDLE);
    EXPECT_NUMBER(order("nowhere", true).outcome, OUTCOME(INVALID));
    mock_end();
}

int main(void) {
    nodes_tell_whether_they_can_be_had();
    partitions_may_have_their_own_times();
    without_power_saving_nothing_is_told_and_nothing_done();
    excluded_nodes_stay_on();
    nodes_in_use_are_not_powered_down();
    orders_are_obeyed_once();
    DONE();
}
