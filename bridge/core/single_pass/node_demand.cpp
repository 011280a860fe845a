// SPDX-License-Identifier: Apache-2.0
#include "single_pass/node_demand.hpp"

#include <algorithm>
#include <unordered_map>

#include "common/hash_words.hpp"

namespace bridge {

int32_t NodeDemand::room_in(const int64_t *free, size_t type) const {
    const int32_t maximum = room[type];
    if (maximum == 0 || free[0] < one[0]) {
        return 0;
    }
    if (exclusive) {
        return maximum;
    }
    int64_t fits = maximum;
    for (size_t c = 1; c < base.size(); ++c) {
        const int64_t left = free[c] - base[c];
        if (left < 0) {
            return 0;
        }
        if (per_task[c] > 0) {
            fits = std::min(fits, left / per_task[c]);
        }
    }
    return static_cast<int32_t>(fits);
}

void NodeDemand::amounts(int64_t tasks_there, int64_t *taken) const {
    for (size_t c = 0; c < base.size(); ++c) {
        taken[c] = exclusive && c > 0 ? 0 : base[c] + tasks_there * per_task[c];
    }
}

NodeDemand NodeDemands::make(size_t job, size_t alternative) const {
    const size_t n_res = problem_.n_res;
    NodeDemand demand{};
    demand.cls = static_cast<size_t>(problem_.alt_class[alternative]);
    demand.exclusive = problem_.exclusive[job];
    demand.tasks = problem_.tasks[job];
    const int32_t cap = problem_.max_tasks_per_node[job];
    demand.max_tasks = demand.tasks == 0 ? 1
                       : cap > 0         ? std::min<int64_t>(cap, demand.tasks)
                                         : demand.tasks;
    demand.base.assign(1, demand.exclusive ? WHOLE : 1);
    demand.per_task.assign(1, 0);
    for (size_t r = 0; r < n_res; ++r) {
        demand.base.push_back(problem_.per_node[job * n_res + r]);
        demand.per_task.push_back(demand.tasks > 0 ? problem_.per_task[job * n_res + r] : 0);
    }
    demand.one.resize(n_res + 1);
    for (size_t c = 0; c <= n_res; ++c) {
        demand.one[c] = demand.base[c] + demand.per_task[c];
    }
    for (size_t k = 0; k < problem_.n_counters; ++k) {
        demand.counters |= problem_.job_counter[job * problem_.n_counters + k] > 0;
    }
    demand.uniform_room = -1;
    const std::vector<int64_t> &type_count = classes_.type_count(demand.cls);
    for (size_t type = 0; type < classes_.n_types(); ++type) {
        const int64_t *capacity = classes_.type_capacity(type);
        int64_t fits = demand.max_tasks;
        for (size_t r = 0; r < n_res; ++r) {
            const int64_t left = capacity[r] - demand.base[r + 1];
            if (left < 0) {
                fits = 0;
                break;
            }
            if (demand.per_task[r + 1] > 0) {
                fits = std::min(fits, left / demand.per_task[r + 1]);
            }
        }
        demand.room.push_back(static_cast<int32_t>(fits));
        if (fits > 0 && type_count[type] > 0) {
            demand.large_enough += type_count[type];
            demand.uniform_room = demand.uniform_room == -1 || demand.uniform_room == fits
                                      ? static_cast<int32_t>(fits)
                                      : 0;
        }
    }
    demand.uniform_room = std::max(demand.uniform_room, 0);
    demand.required_in_class = true;
    demand.required_large_enough = true;
    if (problem_.required[job] >= 0) {
        const uint64_t *cls = problem_.class_nodes + demand.cls * problem_.n_words;
        demand.required = problem_.required_nodes +
                          static_cast<size_t>(problem_.required[job]) * problem_.n_words;
        for_each_node(demand.required, problem_.n_words, [&](int32_t node) {
            demand.required_list.push_back(node);
            demand.required_in_class &= (cls[node / 64] >> (node % 64) & 1) != 0;
            demand.required_large_enough &= demand.room[classes_.type(node)] > 0;
        });
    }
    return demand;
}

NodeDemands::NodeDemands(const NodeProblem &problem, const NodeClasses &classes)
    : problem_(problem), classes_(classes) {
    std::unordered_map<std::vector<int64_t>, uint32_t, HashWords> known;
    std::vector<int64_t> key;
    const auto add_row = [&](const int64_t *rows, size_t job, size_t width) {
        key.insert(key.end(), rows + job * width, rows + (job + 1) * width);
    };
    for (size_t job = 0; job < problem.n_jobs; ++job) {
        const int64_t tasks = problem.tasks[job];
        for (auto a = static_cast<size_t>(problem.alt_indptr[job]);
             a < static_cast<size_t>(problem.alt_indptr[job + 1]); ++a) {
            key.assign(
                {problem.alt_class[a], problem.exclusive[job], tasks, problem.required[job]});
            add_row(problem.per_node, job, problem.n_res);
            add_row(problem.job_counter, job, problem.n_counters);
            if (tasks > 0) {
                key.insert(key.end(), {problem.max_tasks_per_node[job], problem.alt_min_nodes[a],
                                       problem.alt_max_nodes[a], problem.width_rule[job]});
                add_row(problem.per_task, job, problem.n_res);
            }
            const auto [at, is_new] =
                known.try_emplace(key, static_cast<uint32_t>(demands_.size()));
            if (is_new) {
                demands_.push_back(make(job, a));
            }
            NodeDemand &demand = demands_[at->second];
            const int64_t minimum = std::max<int64_t>(
                {problem.alt_min_nodes[a], 1, static_cast<int64_t>(demand.required_list.size())});
            widths_.push_back({minimum, problem.alt_max_nodes[a],
                               static_cast<WidthRule>(problem.width_rule[job])});
            demand_of_.push_back(at->second);
            demand.alternatives.push_back(a);
            if (is_new) {
                demand.holds_tasks = tasks == 0 || holds_tasks(demand, widths_.back());
            }
        }
    }
}

Dominance &NodeDemands::dominance(NodeDemand &demand) {
    if (!demand.dominance) {
        std::vector<int64_t> counts;
        std::vector<int64_t> limits;
        for (const size_t a : demand.alternatives) {
            counts.push_back(std::max<int64_t>(dominance_count(demand, a), 1));
            limits.push_back(problem_.alt_time_limit_s[a]);
        }
        demand.dominance = std::make_unique<Dominance>(counts.data(), limits.data(), counts.size());
    }
    return *demand.dominance;
}

bool NodeDemands::holds_tasks(const NodeDemand &demand, const Widths &widths) const {
    std::vector<int32_t> capacities;
    int64_t fixed_tasks = 0;
    for (const int32_t node : classes_.nodes(demand.cls)) {
        const int32_t room = demand.room[classes_.type(node)];
        if (demand.requires_node(node)) {
            fixed_tasks += room;
        } else if (room > 0) {
            capacities.push_back(room);
        }
    }
    const auto fixed = static_cast<int64_t>(demand.required_list.size());
    return width_for_tasks(widths, demand.tasks, fixed, fixed_tasks, capacities) != -1;
}

Blocked NodeDemands::verdict(size_t alternative, size_t job, int32_t *counter) const {
    const NodeDemand &demand = demands_[demand_of_[alternative]];
    const Widths &widths = widths_[alternative];
    const int64_t smallest = widths.smallest();
    const auto n_nodes = static_cast<int64_t>(classes_.nodes(demand.cls).size());
    if (!demand.required_in_class || smallest == -1 || smallest > n_nodes ||
        (demand.tasks > 0 && smallest > demand.tasks)) {
        return Blocked::NEVER_NODES;
    }
    if (!demand.required_large_enough || smallest > demand.large_enough) {
        return Blocked::NEVER_SIZE;
    }
    if (!demand.holds_tasks) {
        return Blocked::NEVER_SIZE;
    }
    const int64_t *wanted = problem_.job_counter + job * problem_.n_counters;
    for (size_t k = 0; k < problem_.n_counters; ++k) {
        if (wanted[k] > problem_.counter_capacity[k]) {
            *counter = static_cast<int32_t>(k);
            return Blocked::NEVER_COUNTER;
        }
    }
    return Blocked::STARTS_NOW;
}

} // namespace bridge
