// SPDX-License-Identifier: Apache-2.0
#include "judge/judge.hpp"

#include <algorithm>
#include <tuple>

#include "judge/parts.hpp"

namespace bridge {

std::vector<Finding> judge(const JudgedPlan &plan) {
    std::vector<Finding> found;
    judge_rows(plan, found);
    judge_usage(plan, found);
    const auto place = [](const Finding &one) { return std::make_tuple(one.fault, one.row); };
    std::stable_sort(found.begin(), found.end(),
                     [&](const auto &a, const auto &b) { return place(a) < place(b); });
    found.erase(std::unique(found.begin(), found.end(),
                            [&](const auto &a, const auto &b) { return place(a) == place(b); }),
                found.end());
    return found;
}

} // namespace bridge
