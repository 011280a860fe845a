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

// Capacities of nodes, in tasks.
class Capacities {
  public:
    void add(int64_t room) { ++nodes_[room]; }

    void remove(int64_t room) {
        const auto at = nodes_.find(room);
        if (--at->second == 0) {
            nodes_.erase(at);
        }
    }

    // How many tasks so many of the nodes hold at most; -1: there are fewer nodes.
    int64_t maximum(int64_t nodes) const {
        int64_t held = 0;
        for (auto next = nodes_.begin(); nodes > 0; ++next) {
            if (next == nodes_.end()) {
                return -1;
            }
            const int64_t n = std::min(nodes, next->second);
            held += n * next->first;
            nodes -= n;
        }
        return held;
    }

  private:
    std::map<int64_t, int64_t, std::greater<>> nodes_; // by capacity
};

// Candidates of one rank, of which so many are taken.
struct RankToTake {
    size_t begin;
    size_t end;
    Capacities capacities;
    int64_t nodes;
};

// How many nodes of each rank to take: as few as possible of the highest one, then of the next
// lower one, and so on. `width` of the candidates from `fixed` on, which are in rank order, can
// hold the missing tasks.
template <typename Candidate, typename Rank>
std::vector<RankToTake> fewest_of_high_ranks(const std::vector<Candidate> &candidates, size_t fixed,
                                             int64_t width, int64_t missing, Rank rank) {
    std::vector<RankToTake> ranks;
    for (size_t i = fixed; i < candidates.size(); ++i) {
        if (ranks.empty() || rank(candidates[i]) != rank(candidates[i - 1])) {
            ranks.push_back({i, i, {}, 0});
        }
        ranks.back().capacities.add(candidates[i].room);
        ranks.back().end = i + 1;
    }
    if (ranks.size() == 1) {
        ranks.front().nodes = width;
        return ranks;
    }
    Capacities lower;
    for (size_t i = fixed; i < candidates.size(); ++i) {
        lower.add(candidates[i].room);
    }
    for (auto one = ranks.rbegin(); one != ranks.rend(); ++one) {
        for (size_t i = one->begin; i < one->end; ++i) {
            lower.remove(candidates[i].room);
        }
        for (; one->nodes < width; ++one->nodes) {
            const int64_t others = lower.maximum(width - one->nodes);
            if (others >= 0 && others + one->capacities.maximum(one->nodes) >= missing) {
                break;
            }
        }
        missing -= one->capacities.maximum(one->nodes);
        width -= one->nodes;
    }
    return ranks;
}

// The first candidates in order that can be completed to `width` nodes holding `tasks`, of which no
// more are of a high rank than necessary: a candidate is skipped if even the later ones with the
// largest capacity could not make up for it. The first `fixed` ones are taken in any case; the
// others are in rank order. `room` of a candidate is its capacity in tasks.
template <typename Candidate, typename Rank>
std::vector<Candidate> first_completable(const std::vector<Candidate> &candidates, size_t fixed,
                                         int64_t width, int64_t tasks, Rank rank) {
    std::vector<Candidate> taken(candidates.begin(),
                                 candidates.begin() + static_cast<std::ptrdiff_t>(fixed));
    int64_t missing = tasks;
    for (const Candidate &candidate : taken) {
        missing -= candidate.room;
    }
    std::vector<RankToTake> ranks =
        fewest_of_high_ranks(candidates, fixed, width - static_cast<int64_t>(fixed), missing, rank);
    int64_t later = 0; // tasks that the nodes of later ranks hold at most
    for (const RankToTake &one : ranks) {
        later += one.capacities.maximum(one.nodes);
    }
    for (RankToTake &one : ranks) {
        later -= one.capacities.maximum(one.nodes);
        for (size_t i = one.begin; one.nodes > 0 && i < one.end; ++i) {
            const Candidate &candidate = candidates[i];
            one.capacities.remove(candidate.room);
            const int64_t others = one.capacities.maximum(one.nodes - 1);
            if (others >= 0 && candidate.room + others + later >= missing) {
                taken.push_back(candidate);
                missing -= candidate.room;
                --one.nodes;
            }
        }
    }
    return taken;
}

} // namespace bridge
