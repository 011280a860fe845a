// SPDX-License-Identifier: Apache-2.0
// The free amount of one counted resource, from now on.
//
// A sorted sequence of slots (begin, free), each lasting until the next one begins, kept in blocks
// of up to 256 slots. A block knows its least and greatest free amount, and holds one amount that
// is still to be subtracted from all its slots; so a search skips blocks, and a booking changes the
// slots of at most two. Equal neighbours are merged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/times.hpp"

namespace bridge {

class CountProfile {
  public:
    // The place of a slot: valid until the profile changes.
    struct Position {
        size_t block;
        int slot;
    };
    struct Fit {
        int64_t start;
        Position place;
    };
    struct Holder {
        int64_t end;
        int64_t count;
    };

    // All of `capacity` is free from `now` on.
    void reset(int64_t now, int64_t capacity);

    // As above, less holders that begin at or before `now`, sorted by ascending end. Ends that are
    // not in the future become now + 1. O(holders).
    void reset(int64_t now, int64_t capacity, const std::vector<Holder> &by_end);

    // Amounts that change: (time, amount from then on), ascending times, at least one.
    void reset(const std::vector<std::pair<int64_t, int64_t>> &steps);

    // Drops most of what lies before `now`.
    void trim(int64_t now);

    int64_t begin() const { return begins_.front(); }

    // The earliest start in [from, latest] at which `count` is free for `length`, or up to `until`
    // if that comes first; start NEVER if there is none. `from` must not precede the profile's
    // begin.
    Fit earliest(int64_t from, int64_t count, int64_t length, int64_t latest = NEVER - 1,
                 int64_t until = NEVER) const;

    // Takes `count` from [fit.start, end); gives it back if it is negative. `fit.place` must be the
    // slot that contains fit.start.
    void book(const Fit &fit, int64_t end, int64_t count);

    // The same; `start` must not precede the profile's begin.
    void book(int64_t start, int64_t end, int64_t count) {
        book({start, locate(start)}, end, count);
    }

    // The least free amount in [start, end); the search may stop at the first amount <= `enough`.
    int64_t minimum(int64_t start, int64_t end, int64_t enough = INT64_MIN) const;

    // The greatest free amount in [start, end), which must not be empty.
    int64_t greatest(int64_t start, int64_t end) const;

    // The number of slots, for tests and tuning.
    size_t size() const;

  private:
    static constexpr int BLOCK = 256;
    struct Block {
        int64_t begin[BLOCK];
        int32_t free[BLOCK]; // less `owed` of the block's summary
    };
    struct Summary {
        int32_t minimum;  // true value, with `owed` subtracted
        int32_t greatest; // likewise
        int32_t owed;
        int32_t slots;
    };

    // Parallel arrays in time order: searches read `begins_` and `summaries_`, rarely the blocks.
    std::vector<int64_t> begins_;
    std::vector<Summary> summaries_;
    std::vector<std::unique_ptr<Block>> blocks_;
    std::vector<std::unique_ptr<Block>> spare_;

    Position locate(int64_t time) const;
    bool lacks(Position at, int32_t wanted) const;
    Position first_with(Position from, int32_t wanted) const;
    Position first_from(Position from, int64_t time) const;
    Position last_below(Position from, Position to, int32_t wanted) const;
    template <typename Before>
    int64_t extreme(int64_t start, int64_t end, int64_t found, int64_t enough,
                    int32_t Summary::*bound, Before before) const;
    int64_t block_end(size_t block) const {
        return block + 1 < begins_.size() ? begins_[block + 1] : NEVER;
    }
    void append(int64_t begin, int64_t free);
    std::unique_ptr<Block> new_block();
    void drop_block(size_t block);
    void split_block(size_t block);
    Position insert_slot(Position at, int64_t begin, int32_t free);
    void remove_slot(Position at);
    void merge_with_previous(Position at);
    void subtract(size_t block, int from, int to, int32_t count);
};

} // namespace bridge
