// SPDX-License-Identifier: Apache-2.0
#include "book_facts.hpp"

#include <algorithm>

namespace bridge {

void Rises::push(int32_t position, int64_t from, int64_t until) {
    while (!lows_.empty() && lows_.back().from >= from) {
        lows_.pop_back();
    }
    lows_.push_back({log_.size(), from});
    log_.push_back({position, from, until});
}

int64_t Rises::earliest_since(size_t count) const {
    const auto low = std::lower_bound(lows_.begin(), lows_.end(), count,
                                      [](const Low &a, size_t at) { return a.at < at; });
    return low == lows_.end() ? NEVER : low->from;
}

void Rises::clear() {
    log_.clear();
    lows_.clear();
}

int64_t Facts::bound(const int64_t *want, int64_t count, int64_t length, const Rises &rises,
                     int64_t also_from, int64_t now) const {
    int64_t best = now;
    for (const Entry &entry : entries_) {
        if (entry.bound <= best) {
            break; // the rest is lower still
        }
        const int64_t *amounts = amounts_.data() + entry.row * stride_;
        bool more = amounts[0] <= count && amounts[1] <= length;
        for (size_t c = 0; more && c + 2 < stride_; ++c) {
            more = amounts[c + 2] <= want[c];
        }
        if (more) {
            const int64_t from = std::min(also_from, rises.earliest_since(entry.rises));
            best = std::max(best, std::min(entry.bound, first_reaching(from, entry.length)));
        }
    }
    return best;
}

void Facts::learn(const int64_t *want, int64_t count, int64_t length, int64_t bound,
                  const Rises &rises) {
    settle(rises);
    size_t row = entries_.size();
    size_t kept = 0;
    for (size_t i = 0; i < entries_.size(); ++i) { // drop what the new entry says as well
        const int64_t *amounts = amounts_.data() + entries_[i].row * stride_;
        bool implied = entries_[i].bound <= bound && amounts[0] >= count && amounts[1] >= length;
        for (size_t c = 0; implied && c + 2 < stride_; ++c) {
            implied = amounts[c + 2] >= want[c];
        }
        if (implied) {
            row = entries_[i].row;
            continue;
        }
        if (kept != i) {
            entries_[kept] = entries_[i];
        }
        ++kept;
    }
    if (kept + 1 < entries_.size()) { // rows have come apart from entries: close the gaps
        std::vector<int64_t> packed;
        packed.reserve((kept + 1) * stride_);
        for (size_t i = 0; i < kept; ++i) {
            const auto from =
                amounts_.begin() + static_cast<std::ptrdiff_t>(entries_[i].row * stride_);
            packed.insert(packed.end(), from, from + static_cast<std::ptrdiff_t>(stride_));
            entries_[i].row = i;
        }
        amounts_ = std::move(packed);
        row = kept;
    } else if (kept == KEPT) {
        row = entries_.back().row;
        --kept;
    }
    entries_.resize(kept);
    if (amounts_.size() < (row + 1) * stride_) {
        amounts_.resize((row + 1) * stride_);
    }
    int64_t *amounts = amounts_.data() + row * stride_;
    amounts[0] = count;
    amounts[1] = length;
    std::copy_n(want, stride_ - 2, amounts + 2);
    const auto place =
        std::lower_bound(entries_.begin(), entries_.end(), bound,
                         [](const Entry &a, int64_t value) { return a.bound > value; });
    entries_.insert(place, {bound, rises.count(), length, row});
}

// Writes into the entries what the rises since have made of them, so that those that say little by
// now are the first to go.
void Facts::settle(const Rises &rises) {
    bool sorted = true;
    for (size_t i = 0; i < entries_.size(); ++i) {
        Entry &entry = entries_[i];
        const int64_t from = rises.earliest_since(entry.rises);
        entry.bound = std::min(entry.bound, first_reaching(from, entry.length));
        entry.rises = rises.count();
        sorted = sorted && (i == 0 || entries_[i - 1].bound >= entry.bound);
    }
    if (!sorted) {
        std::stable_sort(entries_.begin(), entries_.end(),
                         [](const Entry &a, const Entry &b) { return a.bound > b.bound; });
    }
}

} // namespace bridge
