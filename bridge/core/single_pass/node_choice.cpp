// SPDX-License-Identifier: Apache-2.0
#include "single_pass/node_choice.hpp"

#include <algorithm>

#include "common/best_fit.hpp"
#include "common/completable.hpp"

namespace bridge {
int64_t width_to_take(const NodeDemand &demand, const Widths &widths,
                      const std::vector<Candidate> &candidates, bool widest) {
    size_t fixed = 0;
    int64_t fixed_tasks = 0;
    static thread_local std::vector<int32_t> others;
    others.clear();
    if (demand.tasks > 0 || demand.required != nullptr) {
        for (const Candidate &candidate : candidates) {
            if (demand.requires_node(candidate.node)) {
                ++fixed;
                fixed_tasks += candidate.room;
            } else if (demand.tasks > 0) {
                others.push_back(candidate.room);
            }
        }
    }
    if (fixed < demand.required_list.size()) {
        return -1;
    }
    if (demand.tasks > 0) {
        return width_for_tasks(widths, demand.tasks, static_cast<int64_t>(fixed), fixed_tasks,
                               others);
    }
    const auto available = static_cast<int64_t>(candidates.size());
    if (widest) {
        return widths.greatest(available);
    }
    const int64_t smallest = widths.smallest();
    return smallest <= available ? smallest : -1;
}

int64_t NodeChoice::width(const NodeDemand &demand, const Widths &widths,
                          const std::vector<Candidate> &candidates, bool widest) const {
    const int64_t fewest = width_to_take(demand, widths, candidates, widest);
    if (fewest == -1 || demand.tasks == 0 || demand.required != nullptr ||
        classes_.rank(candidates.front().node) == classes_.rank(candidates.back().node)) {
        return fewest;
    }
    static thread_local std::vector<RankedCapacity> capacities;
    capacities.clear();
    for (const Candidate &candidate : candidates) {
        capacities.push_back({classes_.rank(candidate.node), candidate.room, 1});
    }
    return width_by_rank(widths, demand.tasks, fewest, capacities);
}

// Among nodes of the same rank.
void NodeChoice::sort_by_fit(const NodeDemand &demand, std::vector<Candidate> &candidates,
                             int64_t start, int64_t end) const {
    std::vector<Scored<Candidate>> scored;
    scored.reserve(candidates.size());
    std::vector<int64_t> free(timelines_.columns());
    std::vector<int64_t> taken(timelines_.columns());
    for (const Candidate &candidate : candidates) {
        const auto node = static_cast<size_t>(candidate.node);
        if (demand.exclusive) {
            const int64_t busy = timelines_.busy_from(node, end);
            scored.push_back({classes_.size_score(candidate.node),
                              busy == NEVER ? NEVER : busy - end, candidate});
            continue;
        }
        timelines_.minimum(node, start, end, free.data());
        demand.amounts(demand.tasks > 0 ? candidate.room : 0, taken.data());
        for (size_t c = 0; c < free.size(); ++c) {
            free[c] -= taken[c];
        }
        scored.push_back({classes_.left_score(candidate.node, free.data() + 1), 0, candidate});
    }
    sort_within_ranks(scored, [&](const Candidate &one) { return classes_.rank(one.node); });
    for (size_t i = 0; i < scored.size(); ++i) {
        candidates[i] = scored[i].candidate;
    }
}

std::vector<Chosen> NodeChoice::choose(const NodeDemand &demand, int64_t width,
                                       std::vector<Candidate> candidates, int64_t start,
                                       int64_t end) const {
    if (select_ == Select::BEST_FIT) {
        sort_by_fit(demand, candidates, start, end);
    }
    if (demand.required != nullptr) {
        std::stable_partition(candidates.begin(), candidates.end(),
                              [&](const Candidate &c) { return demand.requires_node(c.node); });
    }
    if (demand.tasks > 0) {
        candidates =
            first_completable(candidates, demand.required_list.size(), width, demand.tasks,
                              [&](const Candidate &one) { return classes_.rank(one.node); });
    }
    candidates.resize(static_cast<size_t>(width));
    return spread(demand, candidates);
}

std::vector<Chosen> NodeChoice::spread(const NodeDemand &demand,
                                       const std::vector<Candidate> &taken) {
    std::vector<Chosen> chosen;
    chosen.reserve(taken.size());
    int64_t left = demand.tasks - static_cast<int64_t>(taken.size()); // beyond one on every node
    for (const Candidate &candidate : taken) {
        const int64_t more = demand.tasks > 0 ? std::min<int64_t>(left, candidate.room - 1) : 0;
        chosen.push_back({candidate.node, demand.tasks > 0 ? static_cast<int32_t>(1 + more) : 0});
        left -= more;
    }
    std::sort(chosen.begin(), chosen.end(),
              [](const Chosen &a, const Chosen &b) { return a.node < b.node; });
    return chosen;
}

} // namespace bridge
