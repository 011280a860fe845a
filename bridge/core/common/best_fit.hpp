// SPDX-License-Identifier: Apache-2.0
// Best fit among nodes of one rank.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

namespace bridge {

// A candidate and how well it fits; less is better, ties are broken by `second`.
template <typename Candidate> struct Scored {
    int64_t first;
    int64_t second;
    Candidate candidate;
};

// Sorts candidates that are in order of rank; equal ones keep their order.
template <typename Candidate, typename Rank>
void sort_within_ranks(std::vector<Scored<Candidate>> &scored, Rank rank) {
    for (auto from = scored.begin(); from != scored.end();) {
        const auto own = rank(from->candidate);
        const auto to = std::find_if(from, scored.end(), [&](const Scored<Candidate> &one) {
            return rank(one.candidate) != own;
        });
        std::stable_sort(from, to, [](const Scored<Candidate> &a, const Scored<Candidate> &b) {
            return std::tie(a.first, a.second) < std::tie(b.first, b.second);
        });
        from = to;
    }
}

} // namespace bridge
