// SPDX-License-Identifier: Apache-2.0
// Arguments and result of plan_nodes: views of columns, and vectors. node_problem.py documents
// every column. Two-dimensional columns are row-major.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/buffer.hpp"

namespace bridge {

enum class Select : int { SEQUENTIAL = 0, BEST_FIT = 1 };

enum class WidthRule : int8_t { ANY = 0, POWER_OF_TWO = 1, EVEN = 2, ODD = 3, CUBIC = 4 };

enum class Blocked : int8_t {
    STARTS_NOW = 0,
    NEVER_NODES = 1,
    NEVER_SIZE = 2,
    NEVER_COUNTER = 3,
    NEVER_FREED = 4,
    NOT_BEFORE = 5,
    NODES_BUSY = 6,
    BLACKOUT = 7,
    COUNTER = 8,
    PLANNED_START = 9,
    TOO_LATE = 10,
};

struct NodeProblem {
    int64_t now;
    int64_t depth;
    Select select;

    size_t n_nodes;
    size_t n_res;
    size_t n_words;
    const int64_t *capacity;
    const int32_t *node_rank;

    size_t n_run;
    const int64_t *run_indptr;
    const int32_t *run_nodes;
    const int64_t *run_use;
    const int64_t *run_end;
    const bool *run_exclusive;
    const int64_t *run_counter;

    size_t n_class;
    const uint64_t *class_nodes;
    size_t n_blackouts;
    const int32_t *blackout_class;
    const int64_t *blackout_start;
    const int64_t *blackout_end;
    const uint64_t *blackout_nodes;

    size_t n_counters;
    const int64_t *counter_capacity;
    const int64_t *job_counter;

    size_t n_jobs;
    const int64_t *alt_indptr;
    const int32_t *alt_class;
    const int64_t *alt_time_limit_s;
    const int32_t *alt_min_nodes;
    const int32_t *alt_max_nodes;
    const int64_t *alt_latest;

    const int64_t *per_node;
    const int32_t *tasks;
    const int64_t *per_task;
    const int32_t *max_tasks_per_node;
    const bool *exclusive;
    const int64_t *not_before;
    const bool *beside_depth;
    const int8_t *width_rule;
    const int32_t *required;
    size_t n_required;
    const uint64_t *required_nodes;
};

struct NodePlanResult {
    std::vector<int64_t> start;
    std::vector<int32_t> alternative;
    std::vector<int64_t> indptr;
    Buffer<int32_t> nodes;
    Buffer<int32_t> tasks;
    std::vector<int8_t> blocked_by;
    std::vector<int32_t> blocked_counter;
    std::vector<int32_t> fit_now;
    std::vector<int64_t> missed_start;
};

NodePlanResult plan_nodes(const NodeProblem &problem);

// Calls `visit(node)` for every member of a bitset, ascending.
template <typename Visit> void for_each_node(const uint64_t *words, size_t n_words, Visit visit) {
    for (size_t word = 0; word < n_words; ++word) {
        for (uint64_t bits = words[word]; bits != 0; bits &= bits - 1) {
            visit(static_cast<int32_t>(word * 64 + static_cast<size_t>(__builtin_ctzll(bits))));
        }
    }
}

} // namespace bridge
