// SPDX-License-Identifier: Apache-2.0
// The free amounts on each node, from now on.
//
// A node's timeline is `Segments` whose bookings are never revoked. Column 0 is *occupancy*: a node
// has WHOLE of it, a shared holder takes 1 and an exclusive one takes WHOLE. So exclusivity is an
// amount like any other, and an exclusive holder need not take the resources themselves. Columns 1
// and up are the resources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/segments.hpp"
#include "common/times.hpp"

namespace bridge {

// Amounts needed at each second; only the first `columns` matter.
struct Need {
    const int64_t *amounts;
    size_t columns;
};

class Timelines {
  public:
    explicit Timelines(size_t columns) : columns_(columns) {}

    // Allocates timelines for this many nodes.
    void begin(size_t n_nodes) { nodes_.resize(n_nodes); }

    size_t columns() const { return columns_; }

    struct Holder {
        int64_t end; // > now
        std::vector<int64_t> taken;
    };

    // Begins a node's timeline: `amounts` from `now` on, less what holders keep until they end.
    // Sorts the holders.
    void open(size_t node, int64_t now, const int64_t *amounts, std::vector<Holder> &holders);

    // The earliest start in [from, latest] at which the need is free for `length`, or NEVER.
    int64_t next_fit(size_t node, Need need, int64_t from, int64_t length, int64_t latest) const;

    // The least free amount in [start, end), per column.
    void minimum(size_t node, int64_t start, int64_t end, int64_t *amounts) const;

    // The first second >= `time` at which the node is in use, or NEVER.
    int64_t busy_from(size_t node, int64_t time) const;

    // Takes amounts, one per column, from [start, end).
    void book(size_t node, int64_t start, int64_t end, const int64_t *amounts);

    // Copies the timeline of a node with the same columns.
    void copy(const Timelines &other, size_t from, size_t to) { nodes_[to] = other.nodes_[from]; }

    // Appends the timeline to `numbers`; equal timelines append the same.
    void append(size_t node, std::vector<int64_t> &numbers) const {
        const Segments &line = nodes_[node];
        numbers.insert(numbers.end(), line.begin.begin(), line.begin.end());
        numbers.insert(numbers.end(), line.free.begin(), line.free.end());
    }

    // The free amounts at the timeline's first second.
    const int64_t *first(size_t node) const { return nodes_[node].free.data(); }

  private:
    size_t columns_;
    std::vector<Segments> nodes_;
};

} // namespace bridge
