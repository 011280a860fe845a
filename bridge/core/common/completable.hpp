// SPDX-License-Identifier: Apache-2.0
// Which of several nodes to take for a job's tasks, if their number is given.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace bridge {

// The first candidates in order that can be completed to `width` nodes holding `tasks`: a candidate
// is skipped if even the later ones with the largest capacity could not make up for it. The first
// `fixed` ones are taken in any case. `room` of a candidate is its capacity in tasks.
template <typename Candidate>
std::vector<Candidate> first_completable(const std::vector<Candidate> &candidates, size_t fixed,
                                         int64_t width, int64_t tasks) {
    std::vector<Candidate> taken(candidates.begin(),
                                 candidates.begin() + static_cast<std::ptrdiff_t>(fixed));
    int64_t missing = tasks;
    for (const Candidate &candidate : taken) {
        missing -= candidate.room;
    }
    std::map<int64_t, int64_t, std::greater<>>
        capacities_after; // capacity in tasks -> number of nodes
    for (size_t i = fixed; i < candidates.size(); ++i) {
        ++capacities_after[candidates[i].room];
    }
    int64_t to_take = width - static_cast<int64_t>(fixed);
    for (size_t i = fixed; to_take > 0; ++i) {
        const Candidate &candidate = candidates[i];
        const auto at = capacities_after.find(candidate.room);
        if (--at->second == 0) {
            capacities_after.erase(at);
        }
        int64_t others = to_take - 1;
        int64_t maximum = candidate.room;
        for (auto next = capacities_after.begin(); others > 0 && next != capacities_after.end();
             ++next) {
            const int64_t n = std::min(others, next->second);
            maximum += n * next->first;
            others -= n;
        }
        if (others == 0 && maximum >= missing) {
            taken.push_back(candidate);
            missing -= candidate.room;
            --to_take;
        }
    }
    return taken;
}

} // namespace bridge
