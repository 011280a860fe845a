// SPDX-License-Identifier: Apache-2.0
// Special times, and arithmetic that respects them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

// Also compiles a hot function for wider vectors; the loader picks a version.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define BRIDGE_WIDE_VECTORS __attribute__((target_clones("avx2", "default"), flatten))
#else
#define BRIDGE_WIDE_VECTORS
#endif

namespace bridge {

constexpr int64_t NEVER = std::numeric_limits<int64_t>::max();
constexpr int64_t UNPLANNED = -1;
constexpr int64_t UNLIMITED = std::numeric_limits<int64_t>::max();

// The end of something that begins at `start` and takes `length` >= 0: NEVER on overflow.
inline int64_t end_of(int64_t start, int64_t length) {
    return start > NEVER - length ? NEVER : start + length;
}

} // namespace bridge
