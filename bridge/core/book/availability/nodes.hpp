// SPDX-License-Identifier: Apache-2.0
// The nodes of a book: capacities, order, protected resources and classes.
//
// Inside a book a node is its *position* in the order of rank, then index. A node's amounts have a
// column per resource, a column per (protected resource, resource reserved for it), and occupancy.
// A chunk that does not use the protected resource also takes from the reserved columns, which have
// less capacity; the difference stays for the chunks that do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "common/segments.hpp"
#include "common/times.hpp"

namespace bridge {

// The amount of a resource on each node that only chunks using the protected resource may take.
struct Protection {
    size_t resource;
    std::vector<int64_t> keep; // n_nodes x n_res, by node index
};

class BookNodes {
  public:
    BookNodes(size_t n_nodes, size_t n_res, const int64_t *capacity, const int32_t *node_rank,
              const std::vector<Protection> &protections);

    size_t size() const { return index_.size(); }
    size_t n_res() const { return n_res_; }
    size_t columns() const { return n_res_ + protected_.size() + 1; }
    size_t occupancy() const { return columns() - 1; }

    // Whether nodes of one rank are ordered by best fit (Select::BEST_FIT), not by index.
    bool best_fit() const { return best_fit_; }
    void set_best_fit(bool best_fit) { best_fit_ = best_fit; }

    int32_t rank(size_t position) const { return rank_[position]; }
    int32_t index(size_t position) const { return index_[position]; }
    int32_t position(size_t index) const { return position_[index]; }

    // (columns,) the capacity of a node; all zeros, also occupancy, for one without resources.
    const int64_t *capacity(size_t position) const {
        return capacity_.data() + position * columns();
    }
    void set_capacity(size_t position, const int64_t *resources);

    // Nodes of the same type have the same capacities.
    uint32_t type(size_t position) const { return type_[position]; }
    size_t n_types() const { return types_.size(); }
    const int64_t *type_capacity(size_t type) const { return types_[type]; }

    // (columns,) the amounts that a chunk with these needs takes.
    void extend(const int64_t *resources, int64_t *amounts) const;

    // Whether a node reserves something that these amounts may not take: such a job cannot have the
    // node to itself.
    bool keeps_from(const int64_t *capacity, const int64_t *amounts) const;
    // The protected resources among these amounts, as bits.
    int64_t protected_in(const int64_t *amounts) const;

  private:
    struct Protected {
        size_t protected_resource;
        size_t resource;
        std::vector<int64_t> keep; // by position
    };
    size_t n_res_;
    bool best_fit_ = false;
    std::vector<int32_t> rank_;     // by position
    std::vector<int32_t> index_;    // by position
    std::vector<int32_t> position_; // by index
    std::vector<Protected> protected_;
    std::vector<int64_t> capacity_; // size x columns
    std::vector<uint32_t> type_;    // by position
    std::map<std::vector<int64_t>, uint32_t> type_ids_;
    std::vector<const int64_t *> types_; // into the keys of type_ids_
};

struct Interval {
    int64_t start;
    int64_t end;
};

// A set of eligible nodes, with the times in which they are closed.
class BookClass {
  public:
    BookClass(std::vector<int32_t> positions, size_t n_nodes);

    const std::vector<int32_t> &positions() const { return positions_; }
    bool has(size_t position) const { return member_[position]; }
    bool ever_closed() const { return !closed_.empty(); }

    // Replaces all closed times: by position, in any order, possibly overlapping.
    void set_closed(const std::vector<std::pair<int32_t, Interval>> &closed);

    // The earliest start >= `start`, or the latest <= `start` (at least -1), at which the node is
    // open for `length`.
    int64_t next_open(size_t position, int64_t start, int64_t length) const;
    int64_t last_open(size_t position, int64_t start, int64_t length) const;
    // The earliest second > `time` at which it closes or opens; the latest one before `time`, or
    // -1.
    int64_t change_after(size_t position, int64_t time) const;
    int64_t change_before(size_t position, int64_t time) const;

  private:
    std::vector<int32_t> positions_;
    std::vector<bool> member_;
    std::vector<std::vector<Interval>> closed_; // by position, disjoint and ascending; empty: none
};

} // namespace bridge
