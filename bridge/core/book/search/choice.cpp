// SPDX-License-Identifier: Apache-2.0
#include "book/search/choice.hpp"

#include <algorithm>

#include "common/best_fit.hpp"
#include "common/completable.hpp"
#include "single_pass/widths.hpp"

namespace bridge {
namespace {

// Shares are in 2**-20.
int64_t share(int64_t amount, int64_t of) {
    return of > 0 ? (amount << 20) / of : 0;
}

// The first second >= `time` at which the node is in use, or NEVER.
int64_t busy_from(const BookState &state, size_t position, int64_t time) {
    const NodeLines &lines = state.lines;
    const size_t occupancy = state.nodes.occupancy();
    for (size_t s = 0; s < lines.segments(position); ++s) {
        const bool ends = s + 1 < lines.segments(position) && lines.begin(position, s + 1) <= time;
        if (!ends && lines.free(position, s)[occupancy] < WHOLE) {
            return std::max(time, lines.begin(position, s));
        }
    }
    return NEVER;
}

} // namespace

void sort_by_fit(const BookState &state, const Shape &shape, int64_t start, int64_t length,
                 std::vector<Seat> &seats) {
    const size_t n_res = state.nodes.n_res();
    const int64_t end = end_of(start, length);
    std::vector<int64_t> greatest(n_res, 0);
    for (size_t p = 0; shape.exclusive && p < state.nodes.size(); ++p) {
        for (size_t r = 0; r < n_res; ++r) {
            greatest[r] = std::max(greatest[r], state.nodes.capacity(p)[r]);
        }
    }
    std::vector<Scored<Seat>> scored;
    scored.reserve(seats.size());
    std::vector<int64_t> free(state.nodes.columns());
    for (const Seat &seat : seats) {
        const auto p = static_cast<size_t>(seat.position);
        const int64_t *capacity = state.nodes.capacity(p);
        Scored<Seat> one{0, 0, seat};
        if (shape.exclusive) {
            for (size_t r = 0; r < n_res; ++r) {
                one.first += share(capacity[r], greatest[r]);
            }
            const int64_t busy = busy_from(state, p, end);
            one.second = busy == NEVER ? NEVER : busy - end;
        } else {
            state.lines.minimum(p, start, end, free.data());
            for (size_t r = 0; r < n_res; ++r) {
                one.first += share(free[r] - seat.room * shape.want[r], capacity[r]);
            }
        }
        scored.push_back(one);
    }
    sort_within_ranks(scored, [&](const Seat &seat) {
        return state.nodes.rank(static_cast<size_t>(seat.position));
    });
    std::transform(scored.begin(), scored.end(), seats.begin(),
                   [](const Scored<Seat> &one) { return one.candidate; });
}

std::vector<Seat> fewest_seats(const BookState &state, const std::vector<Seat> &seats,
                               int64_t chunks) {
    std::vector<RankedCapacity> capacities;
    capacities.reserve(seats.size());
    for (const Seat &seat : seats) {
        capacities.push_back({state.nodes.rank(static_cast<size_t>(seat.position)),
                              static_cast<int32_t>(seat.room), 1});
    }
    const int64_t width = width_by_rank({1, chunks, WidthRule::ANY}, chunks, 1, capacities);
    return first_completable(seats, 0, width, chunks, [&](const Seat &seat) {
        return state.nodes.rank(static_cast<size_t>(seat.position));
    });
}

} // namespace bridge
