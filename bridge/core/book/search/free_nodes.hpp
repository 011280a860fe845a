// SPDX-License-Identifier: Apache-2.0
// How many nodes of a class no job holds whole, over time: a bound on what jobs that want whole
// nodes can get, for far less than a look at every node.
//
// It is never too low: a time that it rules out is impossible. It may be too high, as nodes may be
// shared or closed, and are not the same ones from second to second.
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

    // What a node's line gains or loses for an exclusive job within [start, end): to be called
    // before it loses that, and after it has gained it.
    void change(size_t position, int64_t start, int64_t end, int64_t sign, const NodeLines &lines,
                const BookRequests &requests);
    // After all nodes of a job.
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
