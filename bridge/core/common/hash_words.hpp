// SPDX-License-Identifier: Apache-2.0
// A hash of a sequence of numbers, for maps whose keys are such.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bridge {

struct HashWords {
    size_t operator()(const std::vector<int64_t> &words) const {
        uint64_t hash = 0x9e3779b97f4a7c15ULL;
        for (const int64_t word : words) {
            hash = (hash ^ static_cast<uint64_t>(word)) * 0xff51afd7ed558ccdULL;
            hash ^= hash >> 32;
        }
        return hash;
    }
};

} // namespace bridge
