// SPDX-License-Identifier: Apache-2.0
// The requests of pending jobs, numbered: equal requests have one number, in every cycle.
//
// What was computed for a number (where such a job may run, for how long, on how many nodes) is
// kept, so that a cycle computes only what is new. Numbers are never reused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "common/hash_words.hpp"

namespace bridge {

struct RequestAlternative {
    int64_t class_; // a class number of the table's owner
    int64_t partition;
    int64_t time_limit_s;
    int32_t min_nodes;
    int32_t max_nodes;
};

class RequestTable {
  public:
    // The number of the request with this key.
    int64_t number(const std::vector<int64_t> &words) {
        const auto [at, is_new] =
            numbers_.try_emplace(words, static_cast<int64_t>(numbers_.size()));
        if (is_new) {
            answers_.emplace_back();
        }
        return at->second;
    }

    struct Answer {
        bool known = false;
        int64_t tasks = 0;                            // requested tasks
        int64_t features = 0;                         // the number of the feature constraint
        std::vector<RequestAlternative> alternatives; // empty: such jobs cannot run
    };
    Answer &answer(int64_t number) { return answers_[static_cast<size_t>(number)]; }
    size_t size() const { return answers_.size(); }

  private:
    std::unordered_map<std::vector<int64_t>, int64_t, HashWords> numbers_;
    std::vector<Answer> answers_;
};

// The plannable rows of one cycle and their alternatives, as columns.
struct LoweredRows {
    std::vector<int64_t> number;    // by row; -1: held by the controller
    std::vector<int64_t> held;      // rows held by the controller
    std::vector<int64_t> refused;   // rows that cannot run
    std::vector<int64_t> plannable; // rows to plan; the columns below are of these
    std::vector<int64_t> indptr{0}; // into the columns of alternatives
    std::vector<int32_t> class_;    // of this cycle, numbered by first occurrence
    std::vector<int64_t> partition;
    std::vector<int64_t> time_limit_s;
    std::vector<int32_t> min_nodes;
    std::vector<int32_t> max_nodes;
    std::vector<int64_t> classes; // the table's class of each class of the cycle

    // `same`: for each class of the table, the first class with the same nodes now.
    void add(int64_t row, const std::vector<RequestAlternative> &alternatives,
             const std::vector<int64_t> &same);

  private:
    std::vector<int32_t> local_; // by class of the table; -1: not in this cycle
};

} // namespace bridge
