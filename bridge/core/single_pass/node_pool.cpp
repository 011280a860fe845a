// SPDX-License-Identifier: Apache-2.0
#include "single_pass/node_pool.hpp"

#include <algorithm>

#include "counts/counts.hpp"

namespace bridge {

NodePool::NodePool(int64_t now, std::vector<int32_t> members,
                   const std::vector<int64_t> &held_until, const std::vector<int64_t> &widths,
                   const std::vector<int64_t> &limits)
    : now_(now), given_order_(std::move(members)), members_(given_order_),
      dominance_(widths.data(), limits.data(), widths.size()) {
    std::sort(members_.begin(), members_.end());
    std::vector<CountProfile::Holder> by_end;
    for (size_t place = 0; place < given_order_.size(); ++place) {
        const int64_t until = held_until[static_cast<size_t>(given_order_[place])];
        if (until > now) {
            held_.emplace_back(until, static_cast<int32_t>(place));
            by_end.push_back({until, 1});
        }
    }
    std::sort(by_end.begin(), by_end.end(),
              [](const auto &a, const auto &b) { return a.end < b.end; });
    profile_.reset(now, static_cast<int64_t>(given_order_.size()), by_end);
    free_now_ = static_cast<int64_t>(given_order_.size() - held_.size());
}

void NodePool::book(const Booking &booking) {
    profile_.book(booking.start, booking.end, booking.width);
    free_now_ -= booking.start == now_ ? booking.width : 0;
    bookings_.push_back(booking);
}

void NodePool::map(const std::vector<int32_t *> &into) const {
    std::vector<int64_t> start;
    std::vector<int64_t> end;
    std::vector<int64_t> width;
    for (const Booking &booking : bookings_) {
        start.push_back(booking.start);
        end.push_back(booking.end);
        width.push_back(booking.width);
    }
    std::vector<NodeHolder> running;
    for (const auto &[until, place] : held_) {
        running.push_back({until, &place, 1});
    }
    map_counts(given_order_.size(), bookings_.size(), start.data(), end.data(), width.data(),
               running, into.data());
    for (size_t b = 0; b < bookings_.size(); ++b) { // indexes so far
        for (int64_t i = 0; i < width[b]; ++i) {
            into[b][i] = given_order_[static_cast<size_t>(into[b][i])];
        }
    }
}

} // namespace bridge
