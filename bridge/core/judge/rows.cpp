// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "judge/parts.hpp"

namespace bridge {
namespace {

constexpr int64_t A_YEAR_S = 365 * int64_t{86400}; // a job without any limit
constexpr int64_t FIXED_GRACE_S = 60;

bool may_be_planned(int8_t hold) {
    return hold == 0 || hold == 3 || hold == 7; // none, begin time, reservation
}

bool rule_allows(int8_t rule, int64_t width) {
    switch (rule) {
    case 1:
        return width > 0 && (width & (width - 1)) == 0;
    case 2:
        return width % 2 == 0;
    case 3:
        return width % 2 == 1;
    case 4: {
        int64_t root = 0;
        while (root * root * root < width) {
            ++root;
        }
        return root * root * root == width;
    }
    default:
        return rule == 0;
    }
}

class Rows : Judged {
  public:
    Rows(const JudgedPlan &plan, std::vector<Finding> &found)
        : Judged(plan, found), members_(plan.partitions.size()) {}

    void judge() {
        rows_of_jobs();
        for (size_t row = 0; row < plan_.n_rows; ++row) {
            if (has_start(row)) {
                times(row);
                nodes(row);
                membership(row);
            }
            tasks(row);
        }
    }

  private:
    std::vector<std::vector<uint8_t>> members_; // by partition, once requested

    int64_t width(size_t row) const { return plan_.indptr[row + 1] - plan_.indptr[row]; }

    void rows_of_jobs() {
        std::vector<int64_t> rows(plan_.n_jobs, 0);
        std::vector<int64_t> starts(plan_.n_jobs, 0);
        for (size_t row = 0; row < plan_.n_rows; ++row) {
            const bool now = plan_.start_s[row] == plan_.now;
            rows[job_of(row)] += 1;
            starts[job_of(row)] += now ? 1 : 0;
            if (!has_start(row) && width(row) > 0) {
                blame(row, Fault::NODES_WITHOUT_START);
            }
            if (!now && !plan_.reasoned[row]) {
                blame(row, Fault::NO_REASON);
            }
        }
        for (size_t job = 0; job < plan_.n_jobs; ++job) {
            const int64_t left = plan_.array_tasks[job];
            const int64_t allowed = left > 0 ? std::min(left, plan_.array_startable[job]) : 1;
            if (rows[job] == 0) {
                blame(job, Fault::NO_ROW);
            }
            if (starts[job] > allowed) {
                blame(job, Fault::TOO_MANY_STARTS, starts[job], allowed);
            }
        }
    }

    void times(size_t row) {
        const size_t job = job_of(row);
        const int64_t start = plan_.start_s[row];
        const int64_t lasts = difference(plan_.end_s[row], start);
        if (start < plan_.now) {
            blame(row, Fault::IN_THE_PAST);
        }
        if (!may_be_planned(plan_.hold[job])) {
            blame(row, Fault::HELD_BACK);
        }
        if (plan_.hold[job] == 3 && start < plan_.begin_s[job]) {
            blame(row, Fault::BEFORE_BEGIN);
        }
        int64_t maximum = NO_START;
        int64_t unasked = 0;
        if (plan_.partition[row] < 0) {
            blame(row, Fault::NO_PARTITION);
        } else {
            const auto &part = plan_.partitions[static_cast<size_t>(plan_.partition[row])];
            maximum = part.max_time_s ? part.max_time_s : NO_START;
            unasked = part.default_time_s ? part.default_time_s
                      : part.max_time_s   ? part.max_time_s
                                          : A_YEAR_S;
        }
        fixed_start(row);
        const int64_t minimum = plan_.min_time_s[job];
        int64_t length = plan_.time_limit_s[job] > 0 ? plan_.time_limit_s[job] : unasked;
        if (minimum > 0) {
            length = std::min(length, maximum);
        }
        const int64_t deadline = plan_.deadline_s[job];
        if (deadline > 0) { // the part beyond it is cut off, down to the minimum
            const int64_t shortest = minimum > 0 ? std::min(minimum, length) : length;
            if (sum(start, shortest) > deadline) {
                blame(row, Fault::AFTER_DEADLINE);
            }
            length = std::max(std::min(length, difference(deadline, start)), shortest);
        } else if (deadline == 0 && minimum > 0 && minimum <= lasts && lasts < length) {
            length = lasts; // without a deadline any limit from the minimum on is valid
        }
        if (lasts != length) {
            blame(row, Fault::WRONG_LENGTH);
        }
        if (length > maximum) {
            blame(row, Fault::PARTITION_TIME);
        }
    }

    void fixed_start(size_t row) {
        const size_t job = job_of(row);
        const int64_t at = plan_.begin_s[job] > 0 ? plan_.begin_s[job] : plan_.eligible_s[job];
        if (!plan_.fixed[job] || at <= 0) {
            return;
        }
        if (plan_.start_s[row] < at) {
            blame(row, Fault::BEFORE_FIXED);
        }
        if (plan_.start_s[row] > sum(at, at > plan_.now ? 0 : FIXED_GRACE_S)) {
            blame(row, Fault::AFTER_FIXED);
        }
    }

    void nodes(size_t row) {
        const size_t job = job_of(row);
        const int64_t n = width(row);
        if (n < plan_.min_nodes[job] || n > plan_.max_nodes[job] || n == 0) {
            blame(row, Fault::WRONG_WIDTH);
        }
        if (!rule_allows(plan_.width_rule[job], n)) {
            blame(row, Fault::WIDTH_RULE, n, plan_.width_rule[job]);
        }
    }

    const std::vector<uint8_t> &members(size_t partition) {
        std::vector<uint8_t> &found = members_[partition];
        if (found.empty()) {
            found.resize(plan_.n_nodes, 0);
            const JudgedPartition &part = plan_.partitions[partition];
            for (size_t i = 0; i < part.n_nodes; ++i) {
                found[static_cast<size_t>(part.nodes[i])] = 1;
            }
        }
        return found;
    }

    void membership(size_t row) {
        if (plan_.partition[row] < 0) {
            return;
        }
        const auto partition = static_cast<size_t>(plan_.partition[row]);
        const JudgedPartition &part = plan_.partitions[partition];
        if (!part.up) {
            blame(row, Fault::PARTITION_DOWN, plan_.partition[row]);
        }
        if (width(row) < part.min_nodes || (part.max_nodes > 0 && width(row) > part.max_nodes)) {
            blame(row, Fault::PARTITION_WIDTH, plan_.partition[row]);
        }
        if (!plan_.named[row]) {
            blame(row, Fault::PARTITION_UNNAMED, plan_.partition[row]);
        }
        const int32_t *first = plan_.nodes + plan_.indptr[row];
        const int32_t *last = plan_.nodes + plan_.indptr[row + 1];
        const std::vector<uint8_t> &inside = members(partition);
        uint8_t within = 1;
        for (const int32_t *node = first; node != last; ++node) {
            within &= inside[static_cast<size_t>(*node)];
        }
        bool fits = within != 0;
        const NodeLists &out = plan_.excluded;
        for (size_t i = out.offsets[row]; i < out.offsets[row + 1]; ++i) {
            fits &= std::find(first, last, out.nodes[i]) == last;
        }
        if (plan_.constraint[row] >= 0) {
            // A job with an "or" of features fits if all its nodes match one alternative of it.
            bool matches = false;
            for (const bool *mask : plan_.constraints[static_cast<size_t>(plan_.constraint[row])]) {
                matches |= std::all_of(first, last, [&](int32_t node) { return mask[node]; });
            }
            fits &= matches;
        }
        if (!fits) {
            blame(row, Fault::OUTSIDE);
        }
        const NodeLists &must = plan_.required;
        for (size_t i = must.offsets[row]; i < must.offsets[row + 1]; ++i) {
            if (std::find(first, last, must.nodes[i]) == last) {
                blame(row, Fault::MISSES_REQUIRED);
            }
        }
    }

    // Its nodes one by one: usable, distinct, and with tasks as requested.
    void tasks(size_t row) {
        const size_t job = job_of(row);
        const int64_t wanted = plan_.job_tasks[job];
        const int64_t bound = plan_.max_tasks_per_node[job];
        int64_t total = 0;
        bool ordered = true;
        bool usable = true;
        bool each = true;
        for (int64_t i = plan_.indptr[row]; i < plan_.indptr[row + 1]; ++i) {
            const int64_t there = plan_.tasks[i];
            total += there;
            ordered &= i == plan_.indptr[row] || plan_.nodes[i - 1] < plan_.nodes[i];
            usable &= plan_.usable[plan_.nodes[i]];
            each &= (wanted <= 0 || there >= 1) && (bound <= 0 || there <= bound);
        }
        if (!ordered) {
            blame(row, Fault::OUT_OF_ORDER);
        }
        if (!usable) {
            blame(row, Fault::UNUSABLE);
        }
        if (has_start(row) && total != wanted) {
            blame(row, Fault::WRONG_TASKS);
        }
        if (!each) {
            blame(row, Fault::TASKS_ON_NODE);
        }
    }
};

} // namespace

void judge_rows(const JudgedPlan &plan, std::vector<Finding> &found) {
    Rows(plan, found).judge();
}

} // namespace bridge
