// SPDX-License-Identifier: Apache-2.0
// Which of several nodes to take for a job's tasks, if their number is given.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bridge {

// The first set of so many candidates that holds the tasks, and of which no more are of a high rank
// than necessary: as few as possible of the highest one, then of the next lower one, and so on.
// Candidates are in rank order; the capacity of one (`room`) is in tasks.
class CompletableSet {
  public:
    void clear() {
        kinds_.clear();
        ranks_.clear();
    }

    // Candidates from which to choose.
    void add(int64_t rank, int64_t room, int64_t nodes) {
        if (ranks_.empty() || ranks_.back().rank != rank) {
            ranks_.push_back({rank, kinds_.size(), kinds_.size(), 0});
        }
        const auto at = kind(ranks_.back(), room);
        if (at != kinds_.end() && at->room == room) {
            at->nodes += nodes;
            return;
        }
        kinds_.insert(at, {room, nodes});
        ++ranks_.back().end;
    }

    // `width` of the candidates can hold the tasks.
    void seek(int64_t width, int64_t tasks) {
        at_ = 0;
        missing_ = tasks;
        later_ = 0;
        for (size_t r = ranks_.size(); r-- > 1;) {
            Rank &one = ranks_[r];
            one.to_take = fewest_of(one, width, tasks);
            const int64_t held = maximum(one, one.to_take);
            width -= one.to_take;
            tasks -= held;
            later_ += held;
        }
        if (!ranks_.empty()) {
            ranks_.front().to_take = width;
        }
    }

    // Whether the set has this candidate, which follows those shown so far: it has not if even the
    // later ones with the largest capacity could not make up for it.
    bool has(int64_t rank, int64_t room) {
        while (ranks_[at_].rank != rank) {
            ++at_;
            later_ -= maximum(ranks_[at_], ranks_[at_].to_take);
        }
        Rank &one = ranks_[at_];
        --kind(one, room)->nodes;
        if (one.to_take == 0) {
            return false;
        }
        const int64_t others = maximum(one, one.to_take - 1);
        if (others == TOO_FEW || room + others + later_ < missing_) {
            return false;
        }
        missing_ -= room;
        --one.to_take;
        return true;
    }

  private:
    static constexpr int64_t TOO_FEW = -1;

    struct Kind {
        int64_t room;
        int64_t nodes; // candidates not shown so far
    };

    struct Rank {
        int64_t rank;
        size_t begin; // its kinds, by descending capacity
        size_t end;
        int64_t to_take;
    };

    std::vector<Kind> kinds_;
    std::vector<Rank> ranks_;
    size_t at_ = 0;       // rank of the candidates shown
    int64_t missing_ = 0; // tasks
    int64_t later_ = 0;   // tasks that the nodes of later ranks hold at most

    // The first kind of the rank that is not larger.
    std::vector<Kind>::iterator kind(const Rank &one, int64_t room) {
        const auto begin = kinds_.begin();
        return std::lower_bound(begin + static_cast<std::ptrdiff_t>(one.begin),
                                begin + static_cast<std::ptrdiff_t>(one.end), room,
                                [](const Kind &other, int64_t its) { return other.room > its; });
    }

    // How many tasks so many nodes hold at most; TOO_FEW: there are fewer nodes.
    static int64_t maximum(const Kind *kind, const Kind *end, int64_t nodes) {
        int64_t held = 0;
        for (; nodes > 0 && kind != end; ++kind) {
            const int64_t n = std::min(nodes, kind->nodes);
            held += n * kind->room;
            nodes -= n;
        }
        return nodes > 0 ? TOO_FEW : held;
    }

    int64_t maximum(const Rank &one, int64_t nodes) const {
        return maximum(kinds_.data() + one.begin, kinds_.data() + one.end, nodes);
    }

    // How many nodes of the rank are necessary beside those of lower ranks.
    int64_t fewest_of(const Rank &one, int64_t width, int64_t tasks) const {
        std::vector<Kind> lower(kinds_.begin(),
                                kinds_.begin() + static_cast<std::ptrdiff_t>(one.begin));
        std::sort(lower.begin(), lower.end(),
                  [](const Kind &a, const Kind &b) { return a.room > b.room; });
        int64_t available = 0;
        for (const Kind &kind : lower) {
            available += kind.nodes;
        }
        int64_t nodes = std::max<int64_t>(width - available, 0);
        while (nodes < width && maximum(lower.data(), lower.data() + lower.size(), width - nodes) +
                                        maximum(one, nodes) <
                                    tasks) {
            ++nodes;
        }
        return nodes;
    }
};

// The candidates of such a set. The first `fixed` ones are taken in any case; the others are in
// rank order.
template <typename Candidate, typename Rank>
std::vector<Candidate> first_completable(const std::vector<Candidate> &candidates, size_t fixed,
                                         int64_t width, int64_t tasks, Rank rank) {
    std::vector<Candidate> taken(candidates.begin(),
                                 candidates.begin() + static_cast<std::ptrdiff_t>(fixed));
    for (const Candidate &candidate : taken) {
        tasks -= candidate.room;
    }
    CompletableSet set;
    for (size_t i = fixed; i < candidates.size(); ++i) {
        set.add(rank(candidates[i]), candidates[i].room, 1);
    }
    set.seek(width - static_cast<int64_t>(fixed), tasks);
    for (size_t i = fixed; static_cast<int64_t>(taken.size()) < width; ++i) {
        if (set.has(rank(candidates[i]), candidates[i].room)) {
            taken.push_back(candidates[i]);
        }
    }
    return taken;
}

} // namespace bridge
