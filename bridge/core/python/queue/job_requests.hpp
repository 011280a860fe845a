// SPDX-License-Identifier: Apache-2.0
// The columns of pending jobs that make up their requests, as C++ reads them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "python/views.hpp"

namespace bridge {

// One row per pending job.
struct JobRequests {
    View<int8_t> hold;
    View<int64_t> array_tasks;
    View<int64_t> array_startable;
    View<int64_t> begin;
    View<int64_t> limit;
    View<int64_t> min_nodes;
    View<int64_t> max_nodes;
    View<int64_t> minimum;
    View<int64_t> reservation;
    View<int8_t> width_rule;
    View<int64_t> tasks;
    View<int64_t> max_tasks;
    View<bool> exclusive;
    View<int64_t> per_node;
    View<int64_t> per_task;
    View<int64_t> licences;
    Objects partitions;
    Objects features;
    Objects required;
    Objects excluded;
    Objects chunks;

    JobRequests(nb::handle jobs, size_t n)
        : hold(jobs, "hold"), array_tasks(jobs, "array_tasks"),
          array_startable(jobs, "array_startable"), begin(jobs, "begin_s"),
          limit(jobs, "time_limit_s"), min_nodes(jobs, "min_nodes"), max_nodes(jobs, "max_nodes"),
          minimum(jobs, "min_time_s"), reservation(jobs, "reservation"),
          width_rule(jobs, "width_rule"), tasks(jobs, "tasks"),
          max_tasks(jobs, "max_tasks_per_node"), exclusive(jobs, "exclusive"),
          per_node(jobs, "per_node", 2), per_task(jobs, "per_task", 2),
          licences(jobs, "licences", 2), partitions(jobs, "partitions", n),
          features(jobs, "features", n), required(jobs, "required", n),
          excluded(jobs, "excluded", n), chunks(jobs, "chunks", n) {
        const auto check = [n](auto &...columns) { (columns.rows(n), ...); };
        check(hold, array_tasks, array_startable, begin, limit, min_nodes, max_nodes, minimum,
              reservation, width_rule, tasks, max_tasks, exclusive, per_node, per_task, licences);
    }

    // Whether the controller would start it if resources were free.
    bool plannable(size_t job) const {
        const int8_t why = hold.data()[job];
        const bool free = why == 0 || why == 3 || why == 7; // none, begin time, reservation
        return free && (array_tasks.data()[job] == 0 || array_startable.data()[job] > 0);
    }
};

// Writes a row of a table to words of a key; returns their end.
inline int64_t *put_row(int64_t *words, const View<int64_t> &table, size_t row) {
    return std::copy_n(table.data() + row * table.width(), table.width(), words);
}

// Appends a row of a table to the words of a key.
template <typename T> void add_row(std::vector<int64_t> &words, const View<T> &table, size_t row) {
    const T *from = table.data() + row * table.width();
    words.insert(words.end(), from, from + table.width());
}

} // namespace bridge
