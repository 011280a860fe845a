// SPDX-License-Identifier: Apache-2.0
// Checks that a plan is legal: the part of bridge/check/legality.py that concerns every row of
// every plan, computed on columns.
//
// It shares no code with the planners, so that a defect in one is not hidden by the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bridge {

// In the order of reporting. The first two concern a job, not a row.
enum class Fault : int {
    NO_ROW,
    TOO_MANY_STARTS, // with their number, and the number allowed
    NODES_WITHOUT_START,
    NO_REASON,
    IN_THE_PAST,
    HELD_BACK,
    BEFORE_BEGIN,
    NO_PARTITION,
    BEFORE_FIXED,
    AFTER_FIXED,
    AFTER_DEADLINE,
    WRONG_LENGTH,
    PARTITION_TIME,
    WRONG_WIDTH,
    WIDTH_RULE,
    OUT_OF_ORDER,
    UNUSABLE,
    PARTITION_DOWN,
    PARTITION_WIDTH,
    PARTITION_UNNAMED,
    OUTSIDE,
    MISSES_REQUIRED,
    WRONG_TASKS,
    TASKS_ON_NODE,
    TOO_LARGE,
    NODE_OVERSUBSCRIBED,
    LICENCE_OVERSUBSCRIBED,
};

struct Finding {
    Fault fault;
    int64_t row;
    int64_t found;
    int64_t allowed;
};

struct JudgedPartition {
    bool up;
    int64_t min_nodes;
    int64_t max_nodes;      // 0: no bound
    int64_t max_time_s;     // 0: no bound
    int64_t default_time_s; // 0: not stated
    const int32_t *nodes;
    size_t n_nodes;
};

// A list of node indexes for each row, mostly empty.
struct NodeLists {
    std::vector<size_t> offsets{0};
    std::vector<int64_t> nodes;
};

// Views of columns; the caller has checked that they fit together.
struct JudgedPlan {
    int64_t now;

    size_t n_jobs;
    const int64_t *array_tasks;
    const int64_t *array_startable;
    const int8_t *hold;
    const int64_t *begin_s;
    const int64_t *eligible_s;
    const int64_t *time_limit_s;
    const int64_t *min_time_s;
    const int64_t *deadline_s;
    const bool *fixed;
    const int64_t *min_nodes;
    const int64_t *max_nodes;
    const int8_t *width_rule;
    const int64_t *job_tasks;
    const int64_t *max_tasks_per_node;
    const int64_t *per_node;
    const int64_t *per_task;
    const bool *exclusive;
    const int64_t *job_licences;

    size_t n_nodes;
    size_t n_res;
    const bool *usable;
    const int64_t *capacity;
    size_t n_licences;
    const int64_t *licence_total;
    std::vector<JudgedPartition> partitions;

    size_t n_run;
    const int64_t *run_indptr;
    const int32_t *run_nodes;
    const int64_t *run_use;
    const int64_t *run_end;
    const bool *run_exclusive;
    const int64_t *run_licences;

    size_t n_rows;
    const int32_t *job;
    const int64_t *start_s;
    const int64_t *end_s;
    const int32_t *partition;
    const int64_t *indptr;
    const int32_t *nodes;
    const int32_t *tasks;
    const int64_t *want; // by node of a row: the amounts taken; null: as in the job's columns

    // By row.
    std::vector<uint8_t> reasoned;   // it gives a reason for waiting
    std::vector<uint8_t> named;      // its job named the partition
    std::vector<int32_t> constraint; // -1: none
    NodeLists required;
    NodeLists excluded;
    // The alternatives of each constraint, as node masks.
    std::vector<std::vector<const bool *>> constraints;
};

// What is wrong, by fault, then by row; each once.
std::vector<Finding> judge(const JudgedPlan &plan);

} // namespace bridge
