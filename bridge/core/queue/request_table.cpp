// SPDX-License-Identifier: Apache-2.0
#include "queue/request_table.hpp"

namespace bridge {

void LoweredRows::add(int64_t row, const std::vector<RequestAlternative> &alternatives,
                      const std::vector<int64_t> &same) {
    if (alternatives.empty()) {
        refused.push_back(row);
        return;
    }
    plannable.push_back(row);
    for (const RequestAlternative &one : alternatives) {
        const int64_t class_now = same[static_cast<size_t>(one.class_)];
        const auto at = static_cast<size_t>(class_now);
        if (at >= local_.size()) {
            local_.resize(at + 1, -1);
        }
        if (local_[at] < 0) {
            local_[at] = static_cast<int32_t>(classes.size());
            classes.push_back(class_now);
        }
        class_.push_back(local_[at]);
        partition.push_back(one.partition);
        time_limit_s.push_back(one.time_limit_s);
        min_nodes.push_back(one.min_nodes);
        max_nodes.push_back(one.max_nodes);
    }
    indptr.push_back(static_cast<int64_t>(class_.size()));
}

} // namespace bridge
