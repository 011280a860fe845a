// SPDX-License-Identifier: Apache-2.0
#include "single_pass/recent_starts.hpp"

namespace bridge {

BRIDGE_WIDE_VECTORS int64_t RecentStarts::bound(const int64_t *amounts) const {
    int64_t best = 0;
    for (size_t from = 0; from < KEPT; from += 16) {
        int64_t bounds[16];
        for (size_t i = 0; i < 16; ++i) {
            bounds[i] = starts_[from + i];
        }
        for (size_t axis = 0; axis < axes_; ++axis) {
            const int64_t *kept = amounts_.data() + axis * KEPT + from;
            const int64_t amount = amounts[axis];
            for (size_t i = 0; i < 16; ++i) {
                bounds[i] = kept[i] <= amount ? bounds[i] : 0;
            }
        }
        for (size_t i = 0; i < 16; ++i) {
            best = std::max(best, bounds[i]);
        }
    }
    return best;
}

} // namespace bridge
