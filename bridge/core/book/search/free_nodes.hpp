// SPDX-License-Identifier: Apache-2.0
// The number of nodes of a class that no job holds whole, over time: an upper bound on the nodes
// for jobs that request whole nodes, much cheaper than checking every node.
//
// A start that it rules out is impossible. It may be too high, because nodes may be shared or
// closed, and because the free nodes change from second to second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "book/availability/lines.hpp"
#include "book/search/requests.hpp"
#include "counts/count_profile.hpp"

namespace bridge {

class FreeNodes {
  public:
    // The profile of a class, made when it is first asked for; nullptr: too many classes have one.
    CountProfile *of(int32_t cls, const BookRequests &requests, const NodeLines &lines);

    // Records that a node's line gains or loses an exclusive job within [start, end). Call it
    // before the line loses amounts and after it gained them.
    void change(size_t position, int64_t start, int64_t end, int64_t sign, const NodeLines &lines,
                const BookRequests &requests);
    // Call it after all nodes of a job.
    void apply(int64_t start, int64_t end, int64_t sign);

    void trim(int64_t now);
    void drop() { kept_.clear(); }
    void drop(int32_t cls);

  private:
    static constexpr size_t MOST = 8; // every booking changes them all
    struct Kept {
        int32_t cls;
        CountProfile profile;
        int64_t nodes; // of the job that is being written
    };
    std::vector<Kept> kept_;
};

} // namespace bridge
