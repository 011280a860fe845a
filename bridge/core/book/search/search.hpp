// SPDX-License-Identifier: Apache-2.0
// When and where a request can start: the search of a book.
//
// Rules:
// 1. Exact: a start is skipped only if no mapping exists there. Candidates are the first start
//    allowed and the times at which something ends or opens (for the latest start: the last one
//    allowed, and those from which the job ends as something begins).
// 2. Nodes are taken in order of rank, then by fit (best fit) or index. One group of chunks takes
//    the fewest nodes that hold it, as in the single pass.
// 3. Several groups on shared nodes are a packing problem: first greedily, with the most demanding
//    chunks (largest share of the system) on the first nodes; if that fails, exactly
//    (packing.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "book/availability/capacity_constraint.hpp"
#include "book/availability/lines.hpp"
#include "book/availability/nodes.hpp"
#include "book/search/free_nodes.hpp"
#include "book/search/requests.hpp"
#include "book/search/search_cache.hpp"

namespace bridge {

enum class TermMode : int8_t { BOTH = 0, COUNT = 1, CHECK = 2 };

struct Term {
    int32_t constraint;
    int64_t amount;
    TermMode mode;
};

struct Terms {
    const Term *at;
    size_t n;

    const Term *begin() const { return at; }
    const Term *end() const { return at + n; }
};

// A node that holds chunks of a group during a job.
struct Seat {
    int32_t position;
    int64_t room; // capacity in chunks, at least one
};

// Chunks of one group on one node; group RAW: amounts without a request.
struct Placed {
    int32_t position;
    int32_t group;
    int32_t chunks;
};

// The state that searches read. Code that gives amounts back must push a rise.
struct BookState {
    int64_t now;
    BookNodes nodes;
    NodeLines lines;
    BookRequests requests;
    std::vector<CapacityConstraint> constraints;
    std::vector<uint64_t> constraint_rises; // by constraint: how often amounts were given back
    Rises rises;
    FreeNodes free_nodes{};
};

// The demand of a request for whole nodes of one class: a number of nodes at the same time.
struct WholeNodes {
    FreeNodes::Kept *free; // nullptr: another kind of request
    int64_t nodes;

    // The earliest start in [from, latest] at which enough may be free, or NEVER.
    int64_t next(int64_t from, int64_t length, int64_t latest) const {
        return free == nullptr ? from : free->profile.earliest(from, nodes, length, latest).start;
    }
    // Whether enough may be free at some start in [from, until); from `end` on, enough are free.
    bool any(int64_t from, int64_t length, int64_t until, int64_t end) const {
        return free == nullptr || free->starts.any(free->profile, nodes, length, from, until, end);
    }
};

// The starts in a search that may be possible.
struct Openings {
    const SearchCache::Answer *answer;
    WholeNodes whole;
    int64_t length;
    int64_t latest;

    // The earliest one >= `time`; one after `latest` may be too early.
    int64_t next(int64_t time) const;
};

// Something given back for the duration of one search.
struct Lifted {
    int64_t from = NEVER;
    int64_t until = NEVER;
    const std::vector<Placed> *placed = nullptr;
    const Spans *chances = nullptr; // the only times at which a start may be possible, if given
    bool by_constraints = false;    // constraints may be what excludes other times
};

// The time from which each part of a sweep may fit something. Few parts matter at a time, so long
// sweeps also keep the least time of each block of parts.
class Due {
  public:
    void clear() {
        times_.clear();
        minimum_.clear();
    }
    void add(int64_t time) { times_.push_back(time); }
    void set(size_t i, int64_t time) {
        times_[i] = time;
        if (!minimum_.empty()) {
            minimum_[i / BLOCK] = min_of(i / BLOCK);
        }
    }
    // The first part from `i` on that is due before `until`; the number of parts if none is.
    size_t next(size_t i, int64_t until) const {
        if (!minimum_.empty()) {
            return next_in_blocks(i, until);
        }
        while (i < times_.size() && times_[i] >= until) {
            ++i;
        }
        return i;
    }
    // A time by which at least `n` are due; blocks are kept from then on.
    int64_t by_when(int64_t n);

  private:
    static constexpr size_t BLOCK = 32;
    std::vector<int64_t> times_;
    std::vector<int64_t> minimum_; // by block; empty: not kept
    std::vector<int64_t> sorted_;  // scratch

    size_t next_in_blocks(size_t i, int64_t until) const;
    int64_t min_of(size_t block) const;
};

class BookSearch {
  public:
    explicit BookSearch(BookState &state) : state_(state) {}

    // The earliest start in [from, latest], or NEVER; the latest in [earliest, from], or -1.
    int64_t earliest_start(int32_t request, int64_t length, Terms terms, int64_t from,
                           int64_t latest, Lifted lifted = {});
    int64_t latest_start(int32_t request, int64_t length, Terms terms, int64_t from,
                         int64_t earliest);

    // The same, without constraints.
    int64_t next_on_nodes(int32_t request, int64_t length, int64_t from, int64_t latest,
                          Lifted lifted = {});

    // The earliest start in [from, latest] at which a node holds a chunk of a request, or NEVER.
    int64_t start_on(int32_t request, size_t position, int64_t length, int64_t from,
                     int64_t latest);

    // Nodes for a request at a start; false if there are none.
    bool map(int32_t request, int64_t start, int64_t length, std::vector<Placed> &placed);

    WholeNodes whole_nodes(const Group &sought);

    // How many chunks fit on a node at a start, at most `maximum`.
    int64_t room(const Group &sought, size_t position, int64_t start, int64_t length,
                 int64_t maximum);
    // On an empty node.
    int64_t maximum(const Group &sought, size_t position);

    // Drops what is known; to be called when nodes gain capacity.
    void forget();
    // Something was booked or given back: the last mapping found is stale.
    void touch() { found_.start = -1; }

    // Starts at which the packing was abandoned as too large.
    int64_t given_up() const { return given_up_; }

  private:
    BookState &state_;
    int64_t given_up_ = 0;

    // What earlier searches found.
    struct BoundsKey {
        int32_t shape;
        int64_t length;
        bool operator==(const BoundsKey &other) const {
            return shape == other.shape && length == other.length;
        }
    };
    struct BoundsHash {
        size_t operator()(const BoundsKey &key) const {
            return (static_cast<size_t>(key.shape) * 0x9E3779B97F4A7C15u) ^
                   (static_cast<size_t>(key.length) * 0xC2B2AE3D27D4EB4Fu);
        }
    };
    std::unordered_map<BoundsKey, NodeBounds, BoundsHash> bounds_;
    size_t bounds_bytes_ = 0;
    std::vector<Lacks> lacks_; // by Shape::lacks
    size_t lacks_bytes_ = 0;
    std::vector<SearchCache> caches_;     // by Request::cache_ids
    std::vector<SearchCache> of_request_; // by request: (length) only, for those of several groups

    // One node's part in a sweep for several chunks.
    struct Part {
        int32_t position;
        int64_t maximum;
        int64_t room;
        int64_t same_until;
        int64_t rise;
        bool lifted; // what is known of it does not hold for this search
    };
    std::vector<Part> parts_;
    std::vector<int32_t> lifted_; // scratch: positions
    Due due_;
    std::vector<std::pair<int64_t, int64_t>> gains_;
    std::vector<int64_t> first_;
    std::vector<Seat> seats_;    // scratch: of the last mapping of one group
    SearchCache::Answer answer_; // of one sought group

    int64_t summary_worth_ = 0;   // how much more often spans would have helped than not
    std::vector<uint8_t> marks_;  // scratch, by position
    std::vector<int32_t> marked_; // scratch

    // The result of the last search for one sought group; its mapping is known.
    struct Found {
        int64_t start = -1;
        int64_t length = 0;
        Group sought{};
        int32_t position = -1; // of a single chunk; several are in parts_
    };
    Found found_;

    NodeBounds *bounds_for(int32_t shape, int64_t length);
    Lack *lacks_for(const Shape &shape); // by position
    SearchCache &cache(std::vector<SearchCache> &all, size_t id, size_t columns);
    int64_t next_start(const Group &sought, const Shape &shape, size_t position, int64_t from,
                       int64_t length, int64_t latest, Lack *lack);
    int64_t next_start(const Group &sought, const Shape &shape, size_t position, int64_t from,
                       int64_t length, int64_t latest, Windows *known, Lack *lack);
    int64_t last_start(const Group &sought, const Shape &shape, size_t position, int64_t from,
                       int64_t length, int64_t earliest);
    int64_t next_of(const Group &sought, int32_t cache_id, int64_t length, int64_t from,
                    int64_t latest, Lifted lifted);
    int64_t next_single(const Group &sought, int64_t length, int64_t from, int64_t latest,
                        const std::vector<int32_t> &positions, NodeBounds *bounds, Lack *lacks,
                        Lifted lifted);
    int64_t next_several(const Group &sought, int64_t length, int64_t from, int64_t latest,
                         const std::vector<int32_t> &positions, NodeBounds *bounds, Lack *lacks,
                         Lifted lifted, const Openings &openings);
    bool keeps_summary(const Shape &shape, bool known);
    int64_t next_by_ranges(const Group &sought, int64_t length, int64_t from, int64_t latest,
                           Lack *lacks, const Openings &openings);
    void look(Part &part, const Group &sought, int64_t start, int64_t length, int64_t latest,
              Windows *known, Lack *lack);
    int64_t last_of(const Group &sought, int64_t length, int64_t from, int64_t earliest);
    int64_t last_on_nodes(int32_t request, int64_t length, int64_t from, int64_t earliest);
    int64_t change_after(const Request &request, int64_t time) const;
    int64_t change_before(const Request &request, int64_t time, int64_t length) const;
    bool seat_first(const Group &sought, int64_t start, int64_t length);
    bool seat_fewest(const Group &sought, int64_t start, int64_t length);
    bool map_one(const Request &request, int64_t start, int64_t length,
                 std::vector<Placed> &placed);
    bool map_groups(const Request &request, int64_t start, int64_t length,
                    std::vector<Placed> &placed);
};

} // namespace bridge
