// SPDX-License-Identifier: Apache-2.0
// Sorts many instants: by digits, without comparing.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace bridge {

// The positions of instants in ascending order; equal ones keep their order. O(n) for instants
// within some years.
inline std::vector<uint32_t> time_order(const std::vector<int64_t> &times) {
    constexpr unsigned BITS = 11;
    constexpr size_t DIGITS = size_t{1} << BITS;
    constexpr size_t FEW = 256;
    std::vector<uint32_t> order(times.size());
    std::iota(order.begin(), order.end(), 0);
    if (times.size() < FEW) {
        std::stable_sort(order.begin(), order.end(),
                         [&](uint32_t a, uint32_t b) { return times[a] < times[b]; });
        return order;
    }
    const auto [minimum, greatest] = std::minmax_element(times.begin(), times.end());
    const auto base = static_cast<uint64_t>(*minimum);
    const uint64_t span = static_cast<uint64_t>(*greatest) - base;
    std::vector<uint32_t> next(order.size());
    for (unsigned shift = 0; shift < 64 && span >> shift != 0; shift += BITS) {
        const auto digit = [&](uint32_t at) {
            return (static_cast<uint64_t>(times[at]) - base) >> shift & (DIGITS - 1);
        };
        std::array<uint32_t, DIGITS> place{};
        for (const uint32_t at : order) {
            ++place[digit(at)];
        }
        uint32_t sum = 0;
        for (uint32_t &one : place) {
            sum += std::exchange(one, sum);
        }
        for (const uint32_t at : order) {
            next[place[digit(at)]++] = at;
        }
        order.swap(next);
    }
    return order;
}

} // namespace bridge
