// SPDX-License-Identifier: Apache-2.0
#include "counts/count_profile.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

namespace bridge {
namespace {

// The last i in [from, to) with values[i] < bound, or less than `from`. Blocks of eight, to
// vectorise.
inline int last_below_in(const int32_t *values, int from, int to, int32_t bound) {
    int i = to;
    for (; i - 8 >= from; i -= 8) {
        int32_t any = 0;
        for (int k = 1; k <= 8; ++k) {
            any |= values[i - k] < bound ? 1 : 0;
        }
        if (any) {
            break;
        }
    }
    --i;
    while (i >= from && values[i] >= bound) {
        --i;
    }
    return i;
}

inline int first_at_least(const int32_t *values, int from, int to, int32_t bound) {
    int i = from;
    for (; i + 8 <= to; i += 8) {
        int32_t any = 0;
        for (int k = 0; k < 8; ++k) {
            any |= values[i + k] >= bound ? 1 : 0;
        }
        if (any) {
            break;
        }
    }
    while (i < to && values[i] < bound) {
        ++i;
    }
    return i;
}

constexpr int NEAR = 8;

struct Range {
    int32_t minimum;
    int32_t greatest;
};

inline Range subtract_range(int32_t *values, int from, int to, int32_t count) {
    int32_t minimum = INT32_MAX;
    int32_t greatest = INT32_MIN;
    for (int i = from; i < to; ++i) {
        const int32_t value = values[i] - count;
        values[i] = value;
        minimum = value < minimum ? value : minimum;
        greatest = value > greatest ? value : greatest;
    }
    return {minimum, greatest};
}

inline int32_t greatest_of(const int32_t *values, int to) {
    int32_t greatest = INT32_MIN;
    for (int i = 0; i < to; ++i) {
        greatest = values[i] > greatest ? values[i] : greatest;
    }
    return greatest;
}

// The first i in [0, n) with begins[i] > time, or n; branch-free, because the outcome is random.
inline int upper_bound(const int64_t *begins, int n, int64_t time) {
    int base = 0;
    while (n > 0) {
        const int half = n >> 1;
        const bool right = begins[base + half] <= time;
        base = right ? base + half + 1 : base;
        n = right ? n - half - 1 : half;
    }
    return base;
}

} // namespace

std::unique_ptr<CountProfile::Block> CountProfile::new_block() {
    if (spare_.empty()) {
        return std::unique_ptr<Block>(new Block); // deliberately uninitialised
    }
    std::unique_ptr<Block> block = std::move(spare_.back());
    spare_.pop_back();
    return block;
}

void CountProfile::append(int64_t begin, int64_t free) {
    const auto value = static_cast<int32_t>(free);
    if (blocks_.empty() || summaries_.back().slots == BLOCK / 2) {
        begins_.push_back(begin);
        summaries_.push_back({value, value, 0, 0});
        blocks_.push_back(new_block());
    }
    Summary &summary = summaries_.back();
    blocks_.back()->begin[summary.slots] = begin;
    blocks_.back()->free[summary.slots] = value;
    ++summary.slots;
    summary.minimum = std::min(summary.minimum, value);
    summary.greatest = std::max(summary.greatest, value);
}

void CountProfile::reset(const std::vector<std::pair<int64_t, int64_t>> &steps) {
    begins_.clear();
    summaries_.clear();
    blocks_.clear();
    for (const auto &[begin, free] : steps) {
        append(begin, free);
    }
}

void CountProfile::trim(int64_t now) {
    while (begins_.size() > 1 && begins_[1] <= now) {
        drop_block(0);
    }
}

void CountProfile::reset(int64_t now, int64_t capacity) {
    reset(now, capacity, {});
}

void CountProfile::reset(int64_t now, int64_t capacity, const std::vector<Holder> &by_end) {
    for (auto &block : blocks_) {
        spare_.push_back(std::move(block));
    }
    begins_.clear();
    summaries_.clear();
    blocks_.clear();
    int64_t free = capacity;
    for (const Holder &holder : by_end) {
        free -= holder.count;
    }
    int64_t begin = now;
    for (size_t i = 0; i < by_end.size();) {
        const int64_t end = std::max(by_end[i].end, now + 1);
        int64_t freed = 0;
        for (; i < by_end.size() && std::max(by_end[i].end, now + 1) == end; ++i) {
            freed += by_end[i].count;
        }
        if (freed == 0) {
            continue;
        }
        append(begin, free);
        free += freed;
        begin = end;
    }
    if (begin != NEVER) {
        append(begin, free);
    }
}

CountProfile::Position CountProfile::locate(int64_t time) const {
    const size_t block =
        static_cast<size_t>(upper_bound(begins_.data(), static_cast<int>(begins_.size()), time)) -
        1;
    return {block, upper_bound(blocks_[block]->begin, summaries_[block].slots, time) - 1};
}

BRIDGE_WIDE_VECTORS CountProfile::Fit CountProfile::earliest(int64_t from, int64_t count,
                                                             int64_t length, int64_t latest,
                                                             int64_t until) const {
    const auto wanted = static_cast<int32_t>(count);
    Position at = locate(from);
    int64_t start = from;
    if (start > latest || (latest == from && lacks(at, wanted))) {
        return {NEVER, at};
    }
    // All slots in [at, done) have enough. The window is searched from its end: the last slot with
    // too little determines the next window, so no slot is visited twice and most are not visited
    // at all.
    Position done = at;
    for (;;) {
        const Position stop = first_from(done, std::min(end_of(start, length), until));
        const Position lacking = last_below(done, stop, wanted);
        if (lacking.slot < 0) {
            return {start, at};
        }
        at = {lacking.block, lacking.slot + 1};
        if (at.slot == summaries_[at.block].slots) {
            at = {at.block + 1, 0};
        }
        if (at.block == blocks_.size()) {
            return {NEVER, at};
        }
        if (at.block > stop.block || (at.block == stop.block && at.slot >= stop.slot)) {
            at = first_with(at, wanted);
            if (at.block == blocks_.size()) {
                return {NEVER, at};
            }
            done = at;
        } else {
            done = stop;
        }
        start = blocks_[at.block]->begin[at.slot];
        if (start > latest) {
            return {NEVER, at};
        }
    }
}

// The first slot from `from` on with at least `wanted`; past the last block if there is none.
CountProfile::Position CountProfile::first_with(Position from, int32_t wanted) const {
    for (Position at = from; at.block < blocks_.size(); at = {at.block + 1, 0}) {
        const Summary &summary = summaries_[at.block];
        if (summary.greatest >= wanted) {
            const int found = first_at_least(blocks_[at.block]->free, at.slot, summary.slots,
                                             wanted + summary.owed);
            if (found < summary.slots) {
                return {at.block, found};
            }
        }
    }
    return {blocks_.size(), 0};
}

bool CountProfile::lacks(Position at, int32_t wanted) const {
    return blocks_[at.block]->free[at.slot] < wanted + summaries_[at.block].owed;
}

// The first slot from `from` on that begins at or after `time`; the end of the last block if none
// does (nothing begins at NEVER).
CountProfile::Position CountProfile::first_from(Position from, int64_t time) const {
    size_t block = from.block;
    while (block_end(block) < time) {
        ++block;
    }
    const int slots = summaries_[block].slots;
    const int low = block == from.block ? from.slot : 0;
    const int64_t *begins = blocks_[block]->begin + low;
    if (low + NEAR < slots && begins[NEAR] >= time) { // most windows are short
        int before = 0;
        for (int k = 0; k < NEAR; ++k) {
            before += begins[k] < time ? 1 : 0;
        }
        return {block, low + before};
    }
    return {block, low + upper_bound(begins, slots - low, time - 1)};
}

// The last slot in [from, to) with less than `wanted`; slot -1 if there is none.
CountProfile::Position CountProfile::last_below(Position from, Position to, int32_t wanted) const {
    for (size_t block = to.block;; --block) {
        const Summary &summary = summaries_[block];
        if (summary.minimum < wanted) {
            const int low = block == from.block ? from.slot : 0;
            const int high = block == to.block ? to.slot : summary.slots;
            const int found = last_below_in(blocks_[block]->free, low, high, wanted + summary.owed);
            if (found >= low) {
                return {block, found};
            }
        }
        if (block == from.block) {
            return {block, -1};
        }
    }
}

// The least free amount in [start, end) in the order of `before`, if that comes before `found`; the
// search may stop once `enough` does not come before what is found. `bound` is a block's least.
template <typename Before>
int64_t CountProfile::extreme(int64_t start, int64_t end, int64_t found, int64_t enough,
                              int32_t Summary::*bound, Before before) const {
    Position at = locate(start);
    for (; at.block < blocks_.size() && begins_[at.block] < end && before(enough, found);
         ++at.block, at.slot = 0) {
        const Summary &summary = summaries_[at.block];
        if (!before(summary.*bound, found)) {
            continue;
        }
        const Block &block = *blocks_[at.block];
        const int stop = block_end(at.block) <= end
                             ? summary.slots
                             : upper_bound(block.begin, summary.slots, end - 1);
        for (int i = at.slot; i < stop; ++i) {
            found = std::min<int64_t>(found, block.free[i] - summary.owed, before);
        }
    }
    return found;
}

int64_t CountProfile::minimum(int64_t start, int64_t end, int64_t enough) const {
    return extreme(start, end, INT64_MAX, enough, &Summary::minimum, std::less<int64_t>());
}

int64_t CountProfile::greatest(int64_t start, int64_t end) const {
    return extreme(start, end, INT64_MIN, INT64_MAX, &Summary::greatest, std::greater<int64_t>());
}

void CountProfile::split_block(size_t block) {
    auto upper = new_block();
    Block &lower = *blocks_[block];
    Summary &summary = summaries_[block];
    const int kept = summary.slots / 2;
    const int moved = summary.slots - kept;
    std::memcpy(upper->begin, lower.begin + kept, sizeof(int64_t) * static_cast<size_t>(moved));
    std::memcpy(upper->free, lower.free + kept, sizeof(int32_t) * static_cast<size_t>(moved));
    summary.slots = kept;
    Summary upper_summary{0, 0, summary.owed, moved};
    for (auto [values, part] : {std::pair{lower.free, &summary}, {upper->free, &upper_summary}}) {
        const auto [minimum, greatest] = std::minmax_element(values, values + part->slots);
        part->minimum = *minimum - part->owed;
        part->greatest = *greatest - part->owed;
    }
    const auto next = static_cast<std::ptrdiff_t>(block) + 1;
    begins_.insert(begins_.begin() + next, upper->begin[0]);
    summaries_.insert(summaries_.begin() + next, upper_summary);
    blocks_.insert(blocks_.begin() + next, std::move(upper));
}

void CountProfile::drop_block(size_t block) {
    const auto at = static_cast<std::ptrdiff_t>(block);
    spare_.push_back(std::move(blocks_[block]));
    begins_.erase(begins_.begin() + at);
    summaries_.erase(summaries_.begin() + at);
    blocks_.erase(blocks_.begin() + at);
}

// Inserts the slot at `at`, whose block may be the end of it. `free` is a stored value (with the
// block's `owed` included) that already occurs in the block.
CountProfile::Position CountProfile::insert_slot(Position at, int64_t begin, int32_t free) {
    if (summaries_[at.block].slots == BLOCK) {
        split_block(at.block);
        const int kept = summaries_[at.block].slots;
        if (at.slot > kept) {
            at = {at.block + 1, at.slot - kept};
        }
    }
    Block &block = *blocks_[at.block];
    Summary &summary = summaries_[at.block];
    const auto moved = static_cast<size_t>(summary.slots - at.slot);
    std::memmove(block.begin + at.slot + 1, block.begin + at.slot, sizeof(int64_t) * moved);
    std::memmove(block.free + at.slot + 1, block.free + at.slot, sizeof(int32_t) * moved);
    block.begin[at.slot] = begin;
    block.free[at.slot] = free;
    ++summary.slots;
    return at;
}

void CountProfile::remove_slot(Position at) {
    Block &block = *blocks_[at.block];
    Summary &summary = summaries_[at.block];
    --summary.slots;
    if (summary.slots == 0) {
        drop_block(at.block);
        return;
    }
    const auto moved = static_cast<size_t>(summary.slots - at.slot);
    std::memmove(block.begin + at.slot, block.begin + at.slot + 1, sizeof(int64_t) * moved);
    std::memmove(block.free + at.slot, block.free + at.slot + 1, sizeof(int32_t) * moved);
    if (at.slot == 0) {
        begins_[at.block] = block.begin[0];
    }
}

// The summaries are not updated: they still bound what is left, which is enough for a search.
void CountProfile::merge_with_previous(Position at) {
    Position previous = at;
    if (at.slot > 0) {
        --previous.slot;
    } else if (at.block > 0) {
        --previous.block;
        previous.slot = summaries_[previous.block].slots - 1;
    } else {
        return;
    }
    const int32_t value = blocks_[at.block]->free[at.slot] - summaries_[at.block].owed;
    if (blocks_[previous.block]->free[previous.slot] - summaries_[previous.block].owed == value) {
        remove_slot(at);
    }
}

BRIDGE_WIDE_VECTORS void CountProfile::subtract(size_t block, int from, int to, int32_t count) {
    Summary &summary = summaries_[block];
    if (from == 0 && to == summary.slots) {
        summary.owed += count;
        summary.minimum -= count;
        summary.greatest -= count;
        return;
    }
    int32_t *values = blocks_[block]->free;
    const Range range = subtract_range(values, from, to, count);
    summary.minimum = std::min(summary.minimum, range.minimum - summary.owed);
    if (count < 0) {
        const auto [minimum, greatest] = std::minmax_element(values, values + summary.slots);
        summary.minimum = *minimum - summary.owed;
        summary.greatest = *greatest - summary.owed;
    } else if (range.greatest + count - summary.owed >= summary.greatest) {
        summary.greatest = greatest_of(values, summary.slots) - summary.owed;
    }
}

void CountProfile::book(const Fit &fit, int64_t end, int64_t count) {
    Position first = fit.place;
    const int64_t start = fit.start;
    if (blocks_[first.block]->begin[first.slot] < start) {
        const int32_t value = blocks_[first.block]->free[first.slot];
        first = insert_slot({first.block, first.slot + 1}, start, value);
    }
    // The slot that contains the end; it is split there if it begins earlier.
    Position last = first;
    while (block_end(last.block) < end) {
        ++last.block;
    }
    if (block_end(last.block) > end) {
        last.slot = upper_bound(blocks_[last.block]->begin, summaries_[last.block].slots, end - 1);
        const bool cut = last.slot == summaries_[last.block].slots ||
                         blocks_[last.block]->begin[last.slot] != end;
        if (cut) {
            const size_t blocks = blocks_.size();
            last = insert_slot(last, end, blocks_[last.block]->free[last.slot - 1]);
            if (blocks_.size() != blocks) {
                first = locate(start);
            }
        }
    } else { // the next block begins at the end, or nothing does
        last = {last.block + 1, 0};
    }
    const auto taken = static_cast<int32_t>(count);
    for (size_t block = first.block; block <= last.block && block < blocks_.size(); ++block) {
        const int from = block == first.block ? first.slot : 0;
        const int to = block == last.block ? last.slot : summaries_[block].slots;
        if (from < to) {
            subtract(block, from, to, taken);
        }
    }
    if (last.block < blocks_.size()) {
        merge_with_previous(last);
    }
    merge_with_previous(first);
}

size_t CountProfile::size() const {
    size_t slots = 0;
    for (const Summary &summary : summaries_) {
        slots += static_cast<size_t>(summary.slots);
    }
    return slots;
}

} // namespace bridge
