// SPDX-License-Identifier: Apache-2.0
// The two halves of the judge, and what they share.
#pragma once

#include <limits>

#include "judge/judge.hpp"

namespace bridge {

constexpr int64_t NO_START = std::numeric_limits<int64_t>::max(), NOT_LOOKED_FOR = -1;

// Instants may have any value: sums wrap, as those of columns do.
inline int64_t sum(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t difference(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

// A plan, and what was found wrong with it.
class Judged {
  public:
    Judged(const JudgedPlan &plan, std::vector<Finding> &found) : plan_(plan), found_(found) {}

  protected:
    const JudgedPlan &plan_;
    std::vector<Finding> &found_;

    void blame(size_t row, Fault fault, int64_t found = 0, int64_t allowed = 0) {
        found_.push_back({fault, static_cast<int64_t>(row), found, allowed});
    }
    bool has_start(size_t row) const {
        return plan_.start_s[row] != NO_START && plan_.start_s[row] != NOT_LOOKED_FOR;
    }
    size_t job_of(size_t row) const { return static_cast<size_t>(plan_.job[row]); }
};

// Each job and each row by itself: times, nodes, partition, tasks.
void judge_rows(const JudgedPlan &plan, std::vector<Finding> &found);

// All rows together: nothing is oversubscribed at any second.
void judge_usage(const JudgedPlan &plan, std::vector<Finding> &found);

} // namespace bridge
