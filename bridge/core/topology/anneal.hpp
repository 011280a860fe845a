// SPDX-License-Identifier: Apache-2.0
// The TJAP paper's dynamic strategy (DCAS): annealing of runs on the sequence of idle nodes.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "topology/contiguous.hpp"

namespace bridge {

struct AnnealEffort {
    int64_t iterations = 500;
    int32_t most_removed = 2;
    double hottest = 2500, coldest = 2.5; // table I of the paper
    bool restore = true; // false: a rejected move is kept, as in the published code
    uint64_t seed = 0;
};

// A job to be put back.
struct Repair {
    const std::vector<int32_t> &idle; // positions in the sequence, ascending
    uint64_t key;                     // hash of the set of idle positions
    int32_t size;
    int64_t others;   // nodes needed by the jobs still to be put back, and their number
    int32_t n_others; //
    double done;      // share of the moves done
};

// Chooses where jobs are put back.
class Chooser {
  public:
    virtual ~Chooser() = default;
    // The idle position at which a job begins, by its index among them.
    virtual size_t first(const Repair &repair, std::mt19937_64 &random) = 0;
};

// Uniformly at random: plain annealing.
class AnywhereChooser : public Chooser {
  public:
    size_t first(const Repair &repair, std::mt19937_64 &random) override {
        return random() % repair.idle.size();
    }
};

// Jobs begin one after the other on the first idle nodes. A move removes a random number of them
// and puts them back, largest first, each as a run from the position that the chooser returns.
ContiguousPlacement contiguous_anneal(const Tree &tree, const HopMetric &metric,
                                      const IdleSequence &sequence,
                                      const std::vector<int32_t> &sizes, const AnnealEffort &effort,
                                      Chooser &chooser);

} // namespace bridge
