// SPDX-License-Identifier: Apache-2.0
// The TJAP paper's dynamic strategy (DCAS): annealing of runs on the sequence of what is idle then.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "topology/contiguous.hpp"

namespace bridge {

struct AnnealEffort {
    int64_t iterations = 500;
    int32_t most_removed = 2;
    double hottest = 2500, coldest = 2.5; // of the paper, table I
    bool restore = true;                  // false: a rejected move stays, as in the published code
    uint64_t seed = 0;
};

// A job that is to be put back.
struct Repair {
    const std::vector<int32_t> &idle; // positions in the sequence, ascending
    uint64_t key;                     // of which positions are idle: equal sets have equal keys
    int32_t size;
    int64_t others;   // nodes that the jobs still out want, and how many those are
    int32_t n_others; //
    double done;      // part of the moves that is over
};

// Says where jobs are put back.
class Chooser {
  public:
    virtual ~Chooser() = default;
    // Which of the idle positions a job begins at, by its rank among them.
    virtual size_t first(const Repair &repair, std::mt19937_64 &random) = 0;
};

// Anywhere, with equal chances: plain annealing.
class AnywhereChooser : public Chooser {
  public:
    size_t first(const Repair &repair, std::mt19937_64 &random) override {
        return random() % repair.idle.size();
    }
};

// Jobs begin one after the other on the first idle nodes. A move takes a random number of them out
// and puts them back, largest first, each as a run from where the chooser says.
ContiguousPlacement contiguous_anneal(const Tree &tree, const HopMetric &metric,
                                      const IdleSequence &sequence,
                                      const std::vector<int32_t> &sizes, const AnnealEffort &effort,
                                      Chooser &chooser);

} // namespace bridge
