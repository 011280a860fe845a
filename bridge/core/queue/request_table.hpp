// SPDX-License-Identifier: Apache-2.0
// What waiting jobs ask for, numbered: jobs that ask alike have one number, in every cycle.
//
// What was worked out for a number (where such a job may run, for how long, how wide) is kept, so
// that a cycle works out only what is new in it. Numbers are never reused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace bridge {

struct HashWords {
    size_t operator()(const std::vector<int64_t> &words) const {
        uint64_t hash = 0x9e3779b97f4a7c15ULL;
        for (const int64_t word : words) {
            hash = (hash ^ static_cast<uint64_t>(word)) * 0xff51afd7ed558ccdULL;
            hash ^= hash >> 32;
        }
        return hash;
    }
};

struct RequestAlternative {
    int64_t class_; // of the one who keeps the table
    int64_t partition;
    int64_t time_limit_s;
    int32_t min_nodes;
    int32_t max_nodes;
};

class RequestTable {
  public:
    // The number of a request that is told by these words.
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
        int64_t tasks = 0;                            // that are asked for
        int64_t features = 0;                         // the number of the constraint
        std::vector<RequestAlternative> alternatives; // none: such jobs cannot run
    };
    Answer &answer(int64_t number) { return answers_[static_cast<size_t>(number)]; }
    size_t size() const { return answers_.size(); }

  private:
    std::unordered_map<std::vector<int64_t>, int64_t, HashWords> numbers_;
    std::vector<Answer> answers_;
};

// The rows of one cycle that can be planned, and their alternatives, as columns.
struct LoweredRows {
    std::vector<int64_t> number;    // by row; -1: the controller holds it back
    std::vector<int64_t> held;      // rows that it holds back
    std::vector<int64_t> refused;   // rows that cannot run
    std::vector<int64_t> asked;     // the others; what follows is of them
    std::vector<int64_t> indptr{0}; // into the columns of alternatives
    std::vector<int32_t> class_;    // of this cycle: numbered as the rows come upon them
    std::vector<int64_t> partition;
    std::vector<int64_t> time_limit_s;
    std::vector<int32_t> min_nodes;
    std::vector<int32_t> max_nodes;
    std::vector<int64_t> classes; // of the cycle's, those of the table

    // `same`: of each class of the table the first that has the same nodes now.
    void add(int64_t row, const std::vector<RequestAlternative> &alternatives,
             const std::vector<int64_t> &same);

  private:
    std::vector<int32_t> local_; // by class of the table; -1: nobody came upon it
};

} // namespace bridge
