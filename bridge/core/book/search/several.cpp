// SPDX-License-Identifier: Apache-2.0
// The earliest start of several chunks on several nodes.
#include "book/search/search.hpp"

#include <algorithm>

namespace bridge {
namespace {

// From this many parts on, an index of the parts that are due next pays.
constexpr int MANY_SWEEPS = 8;

// The smallest time up to `latest` by which gains add up to the amount needed; later gains
// are dropped.
class Enough {
  public:
    Enough(std::vector<std::pair<int64_t, int64_t>> &heap, int64_t needed, int64_t latest)
        : heap_(heap), needed_(needed), latest_(latest) {
        heap_.clear();
    }
    // NEVER while they do not.
    int64_t time() const { return sum_ >= needed_ ? heap_.front().first : NEVER; }
    // Reduces the amount needed by what is already there, which is less than all.
    void has(int64_t gain) {
        needed_ -= gain;
        trim();
    }
    void add(int64_t time, int64_t gain) {
        if (gain <= 0 || time > latest_ || time >= this->time()) {
            return;
        }
        heap_.emplace_back(time, gain);
        std::push_heap(heap_.begin(), heap_.end());
        sum_ += gain;
        trim();
    }

  private:
    std::vector<std::pair<int64_t, int64_t>> &heap_; // latest first
    int64_t needed_;
    int64_t latest_;
    int64_t sum_ = 0;

    void trim() {
        while (!heap_.empty() && sum_ - heap_.front().second >= needed_) {
            sum_ -= heap_.front().second;
            std::pop_heap(heap_.begin(), heap_.end());
            heap_.pop_back();
        }
    }
};

} // namespace

size_t Due::next_in_blocks(size_t i, int64_t until) const {
    while (i < times_.size()) {
        if (minimum_[i / BLOCK] >= until) {
            i = (i / BLOCK + 1) * BLOCK;
        } else if (times_[i] < until) {
            return i;
        } else {
            ++i;
        }
    }
    return times_.size();
}

int64_t Due::min_of(size_t block) const {
    const auto first = times_.begin() + static_cast<std::ptrdiff_t>(block * BLOCK);
    const auto n = static_cast<std::ptrdiff_t>(std::min(BLOCK, times_.size() - block * BLOCK));
    return *std::min_element(first, first + n);
}

int64_t Due::by_when(int64_t n) {
    if (minimum_.empty()) {
        for (size_t block = 0; block * BLOCK < times_.size(); ++block) {
            minimum_.push_back(min_of(block));
        }
    }
    if (n > static_cast<int64_t>(minimum_.size())) {
        return NEVER;
    }
    sorted_ = minimum_;
    const auto nth = sorted_.begin() + n - 1;
    std::nth_element(sorted_.begin(), nth, sorted_.end());
    return *nth;
}

// Brings a node's part up to date for starts from `start` on.
void BookSearch::look(Part &part, const Group &sought, int64_t start, int64_t length,
                      int64_t latest, Windows *known, Lack *lack) {
    const Shape &shape = state_.requests.shape(sought.shape);
    const auto p = static_cast<size_t>(part.position);
    const int64_t fits = next_start(sought, shape, p, start, length, latest, known, lack);
    if (fits != start) {
        part.room = 0;
        part.same_until = part.rise = fits;
        return;
    }
    const int64_t maximum = shape.exclusive ? 1 : part.maximum;
    const NodeLines::Room room = state_.lines.room(p, shape.line_need(), start, length, maximum);
    part.room = shape.exclusive ? part.maximum : room.times;
    part.same_until = room.same_until;
    part.rise = room.rise;
    for (const int32_t c : shape.classes) { // until the next closed time becomes relevant
        const int64_t closes = state_.requests.cls(c).change_after(p, end_of(start, length) - 1);
        if (closes != NEVER) {
            part.same_until = std::min(part.same_until, first_reaching(closes, length));
        }
    }
}

// The earliest start of several chunks: a sweep that jumps to the first time by which enough more
// chunks can fit.
int64_t BookSearch::next_several(const Group &sought, int64_t length, int64_t from, int64_t latest,
                                 const std::vector<int32_t> &positions, NodeBounds *bounds,
                                 Lack *lacks, Lifted lifted, const Openings &openings) {
    touch(); // parts_ now belong to this search
    parts_.clear();
    const int64_t reaching =
        lifted.placed == nullptr ? NEVER : std::max(from, first_reaching(lifted.from, length));
    lifted_.clear();
    if (lifted.placed != nullptr && bounds != nullptr) {
        for (const Placed &placed : *lifted.placed) {
            lifted_.push_back(placed.position);
        }
        std::sort(lifted_.begin(), lifted_.end());
    }
    auto own = lifted_.cbegin();
    int64_t together = 0;
    for (const int32_t p : positions) {
        int64_t first = bounds == nullptr ? from : bounds->at[static_cast<size_t>(p)].next(from);
        while (own != lifted_.cend() && *own < p) {
            ++own;
        }
        const bool is_lifted = own != lifted_.cend() && *own == p;
        first = is_lifted ? std::min(first, reaching) : first;
        if (first > latest) {
            continue; // it does not matter
        }
        const int64_t maximum =
            std::min(this->maximum(sought, static_cast<size_t>(p)), sought.count);
        if (maximum > 0) {
            together += maximum;
            parts_.push_back({p, maximum, 0, first, first, is_lifted});
        }
    }
    if (together < sought.count) {
        return NEVER;
    }
    due_.clear();
    for (const Part &part : parts_) {
        due_.add(part.rise);
    }
    int sweeps = 0;
    for (int64_t start = from; start <= latest && start != NEVER;) {
        int64_t held = 0; // at the start
        Enough enough(gains_, sought.count, latest);
        // Gains after that time do not matter.
        const int64_t bound =
            ++sweeps < MANY_SWEEPS
                ? end_of(latest, 1)
                : std::min(end_of(latest, 1),
                           end_of(std::max(start, due_.by_when(sought.count)), 1));
        int64_t until = bound;
        for (size_t i = due_.next(0, until); i < parts_.size(); i = due_.next(i + 1, until)) {
            Part &part = parts_[i];
            if (part.same_until <= start) {
                const auto p = static_cast<size_t>(part.position);
                look(part, sought, start, length, std::min(latest, enough.time() - 1),
                     part.lifted || bounds == nullptr ? nullptr : &bounds->at[p],
                     part.lifted || lacks == nullptr ? nullptr : lacks + p);
                due_.set(i, part.room > 0 ? start : part.rise);
            }
            held += part.room;
            if (held >= sought.count) {
                found_ = {start, length, sought, -1};
                return start;
            }
            enough.has(part.room);
            enough.add(part.rise, part.maximum - part.room);
            until = std::min(bound, enough.time());
        }
        start = until == NEVER ? NEVER : openings.next(until);
    }
    return NEVER;
}

} // namespace bridge
