// SPDX-License-Identifier: Apache-2.0
// A hash of a sequence of numbers, for maps with such keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bridge {

struct HashWords {
    size_t operator()(const std::vector<int64_t> &words) const {
        // Each word has its own factor, so that products do not wait for each other.
        uint64_t hash = words.size();
        uint64_t factor = 0x9e3779b97f4a7c15ULL;
        for (const int64_t word : words) {
            hash += (static_cast<uint64_t>(word) ^ (factor >> 32)) * (factor | 1);
            factor += 0xd1b54a32d192ed03ULL;
        }
        hash = (hash ^ (hash >> 32)) * 0xff51afd7ed558ccdULL;
        return hash ^ (hash >> 32);
    }
};

} // namespace bridge
