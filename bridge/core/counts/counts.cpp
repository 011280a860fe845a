// SPDX-License-Identifier: Apache-2.0
#include "counts/counts.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "common/time_order.hpp"
#include "common/times.hpp"

namespace bridge {

int64_t CountPlan::place(int64_t count, int64_t limit, int64_t not_before, bool may_wait) {
    if (count > capacity_) {
        return NEVER;
    }
    const bool held_back = not_before > now_;
    if (!may_wait) {
        if (held_back) {
            return UNPLANNED;
        }
        const CountProfile::Fit fit = profile_.earliest(now_, count, limit, now_);
        if (fit.start == NEVER) {
            return UNPLANNED;
        }
        profile_.book(fit, end_of(fit.start, limit), count);
        return fit.start;
    }
    const int64_t from = std::max({now_, not_before, dominance_.bound(count, limit)});
    const CountProfile::Fit fit =
        from == NEVER ? CountProfile::Fit{NEVER, {}} : profile_.earliest(from, count, limit);
    if (!held_back && fit.start > now_) { // a start at now_ adds no bound
        dominance_.record(count, limit, fit.start);
    }
    if (fit.start != NEVER) {
        profile_.book(fit, end_of(fit.start, limit), count);
    }
    return fit.start;
}

void plan_counts(int64_t now, int64_t capacity, std::vector<CountProfile::Holder> running,
                 const CountJobs &jobs, int64_t depth, int64_t *start) {
    std::sort(running.begin(), running.end(),
              [](const auto &a, const auto &b) { return a.end < b.end; });
    CountPlan plan(capacity, jobs.count, jobs.time_limit, depth > 0 ? jobs.n : 0);
    plan.begin(now, running);
    int64_t reserved = 0;
    for (size_t j = 0; j < jobs.n; ++j) {
        start[j] =
            plan.place(jobs.count[j], jobs.time_limit[j], jobs.not_before[j], reserved < depth);
        if (start[j] > now && start[j] != NEVER) {
            ++reserved;
        }
    }
}

namespace {

// The free nodes as a bitset, with the first word that may be nonzero.
class FreeNodes {
  public:
    explicit FreeNodes(size_t n_nodes) : words_((n_nodes + 63) / 64, ~uint64_t{0}), n_(n_nodes) {
        if (n_nodes % 64 != 0) {
            words_.back() = (uint64_t{1} << (n_nodes % 64)) - 1;
        }
    }
    size_t size() const { return n_; }
    void give(const int32_t *nodes, size_t n) {
        for (size_t i = 0; i < n; ++i) {
            const auto word = static_cast<size_t>(nodes[i]) / 64;
            words_[word] |= uint64_t{1} << (nodes[i] % 64);
            lowest_ = std::min(lowest_, word);
        }
        n_ += n;
    }
    void take(size_t n, int32_t *nodes) {
        n_ -= n;
        size_t word = lowest_;
        for (; n > 0; ++word) {
            uint64_t bits = words_[word];
            for (; bits != 0 && n > 0; --n, bits &= bits - 1) {
                *nodes++ =
                    static_cast<int32_t>(word * 64 + static_cast<size_t>(__builtin_ctzll(bits)));
            }
            words_[word] = bits;
            if (bits != 0) {
                break;
            }
        }
        lowest_ = word;
    }
    void remove(int32_t node) {
        uint64_t &word = words_[static_cast<size_t>(node) / 64];
        const uint64_t bit = uint64_t{1} << (node % 64);
        n_ -= (word & bit) != 0 ? 1 : 0;
        word &= ~bit;
    }

  private:
    std::vector<uint64_t> words_;
    size_t n_;
    size_t lowest_ = 0;
};

} // namespace

void map_counts(size_t n_nodes, size_t n_jobs, const int64_t *start, const int64_t *end,
                const int64_t *count, const std::vector<NodeHolder> &running,
                int32_t *const *into) {
    std::vector<uint32_t> jobs;
    std::vector<int64_t> starts;
    std::vector<int64_t> ends;
    for (size_t j = 0; j < n_jobs; ++j) {
        if (start[j] != UNPLANNED && start[j] != NEVER) {
            jobs.push_back(static_cast<uint32_t>(j));
            starts.push_back(start[j]);
            ends.push_back(end[j]);
        }
    }
    const std::vector<uint32_t> by_start = time_order(starts);
    const std::vector<uint32_t> by_end = time_order(ends);

    // Several running jobs may hold one node: it is free when the last of them ends.
    std::vector<int64_t> held_until(n_nodes, INT64_MIN);
    for (const NodeHolder &holder : running) {
        for (size_t i = 0; i < holder.n; ++i) {
            int64_t &until = held_until[static_cast<size_t>(holder.nodes[i])];
            until = std::max(until, holder.end);
        }
    }
    FreeNodes free(n_nodes);
    std::vector<int32_t> held;
    for (size_t node = 0; node < n_nodes; ++node) {
        if (held_until[node] != INT64_MIN) {
            free.remove(static_cast<int32_t>(node));
            held.push_back(static_cast<int32_t>(node));
        }
    }
    std::sort(held.begin(), held.end(), [&](int32_t a, int32_t b) {
        return held_until[static_cast<size_t>(a)] < held_until[static_cast<size_t>(b)];
    });

    size_t next_end = 0;
    size_t next_held = 0;
    for (const uint32_t at : by_start) {
        const size_t j = jobs[at];
        const int64_t time = starts[at];
        for (; next_held < held.size() && held_until[static_cast<size_t>(held[next_held])] <= time;
             ++next_held) {
            free.give(&held[next_held], 1);
        }
        for (; next_end < by_end.size() && ends[by_end[next_end]] <= time; ++next_end) {
            const size_t ended = jobs[by_end[next_end]];
            free.give(into[ended], static_cast<size_t>(count[ended]));
        }
        if (static_cast<size_t>(count[j]) > free.size()) {
            throw std::invalid_argument("count: job " + std::to_string(j) + " requests " +
                                        std::to_string(count[j]) + " nodes at " +
                                        std::to_string(time) + " s, when " +
                                        std::to_string(free.size()) + " are free");
        }
        free.take(static_cast<size_t>(count[j]), into[j]);
    }
}

} // namespace bridge
