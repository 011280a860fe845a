// SPDX-License-Identifier: Apache-2.0
#include "book_facts.hpp"

#include <algorithm>

namespace bridge {
namespace {

constexpr size_t MOST_SINCE = 4096; // rises

} // namespace

int64_t Facts::Known::next_open(int64_t time) const {
    if (time >= bound) {
        return time;
    }
    for (const auto &[from, until] : open) {
        if (time < until) {
            return std::max(time, from);
        }
    }
    return bound;
}

void Facts::look_up(const int64_t *want, int64_t count, int64_t length, const Rises &rises,
                    int64_t lifted_from, int64_t lifted_until, int64_t now, int64_t latest,
                    Known &known) {
    known.open.clear();
    known.bound = now;
    const int64_t enough = latest == NEVER ? NEVER : latest + 1;
    Entry *best = nullptr;
    for (Entry &entry : entries_) {
        if (std::min(entry.bound, enough) < known.bound) {
            break; // the rest says less still
        }
        if (best != nullptr && std::min(entry.bound, enough) == known.bound &&
            entry.rises <= best->rises) {
            continue;
        }
        const int64_t *amounts = amounts_.data() + entry.row * stride_;
        bool more = amounts[0] <= count && amounts[1] <= length;
        for (size_t c = 0; more && c + 2 < stride_; ++c) {
            more = amounts[c + 2] <= want[c];
        }
        if (more) {
            best = &entry;
            known.bound = std::min(entry.bound, enough);
        }
    }
    if (best == nullptr) {
        return;
    }
    best->used = uses_++;
    const auto open = [&](int64_t from, int64_t until) {
        const int64_t begin = std::max(now, first_reaching(from, best->length));
        const int64_t end = std::min(until, known.bound);
        if (begin < end &&
            (known.open.empty() || known.open.back() != std::make_pair(begin, end))) {
            known.open.emplace_back(begin, end);
        }
    };
    if (lifted_from != NEVER) {
        open(lifted_from, lifted_until);
    }
    for (size_t i = best->rises; i < rises.count(); ++i) {
        open(rises[i].from, rises[i].until);
    }
    std::sort(known.open.begin(), known.open.end());
    size_t kept = 0;
    for (const auto &window : known.open) {
        if (kept > 0 && window.first <= known.open[kept - 1].second) {
            known.open[kept - 1].second = std::max(known.open[kept - 1].second, window.second);
        } else {
            known.open[kept++] = window;
        }
    }
    known.open.resize(kept);
}

void Facts::learn(const int64_t *want, int64_t count, int64_t length, int64_t bound,
                  const Rises &rises) {
    drop_old(rises);
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
        const auto oldest =
            std::min_element(entries_.begin(), entries_.end(),
                             [](const Entry &x, const Entry &y) { return x.used < y.used; });
        row = oldest->row;
        entries_.erase(oldest);
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
    entries_.insert(place, {bound, rises.count(), length, row, uses_++});
}

// Forgets what so many rises have followed that reading them takes longer than a search.
void Facts::drop_old(const Rises &rises) {
    size_t kept = 0;
    std::vector<int64_t> packed;
    const auto is_old = [&](const Entry &entry) {
        return rises.count() - entry.rises > MOST_SINCE;
    };
    if (std::none_of(entries_.begin(), entries_.end(), is_old)) {
        return;
    }
    for (const Entry &entry : entries_) {
        if (!is_old(entry)) {
            const auto from = amounts_.begin() + static_cast<std::ptrdiff_t>(entry.row * stride_);
            packed.insert(packed.end(), from, from + static_cast<std::ptrdiff_t>(stride_));
            entries_[kept] = entry;
            entries_[kept].row = kept;
            ++kept;
        }
    }
    entries_.resize(kept);
    amounts_ = std::move(packed);
}

void Windows::close(int64_t since, int64_t till) {
    if (till <= since) {
        return;
    }
    size_t i = 0;
    while (i < MOST && until_[i] <= since) {
        ++i;
    }
    if (i < MOST && from_[i] < since) { // what is before it stays
        if (till < until_[i]) {
            if (from_[MOST - 1] != NEVER) {
                return;
            }
            for (size_t j = MOST - 1; j > i; --j) {
                from_[j] = from_[j - 1];
                until_[j] = until_[j - 1];
            }
            until_[i] = since;
            from_[i + 1] = till;
            return;
        }
        until_[i++] = since;
    }
    size_t past = i;
    while (past < MOST && until_[past] <= till && from_[past] != NEVER) {
        ++past;
    }
    if (past < MOST && from_[past] < till) {
        from_[past] = till;
    }
    for (; past < MOST; ++i, ++past) {
        from_[i] = from_[past];
        until_[i] = until_[past];
    }
    for (; i < MOST; ++i) {
        from_[i] = until_[i] = NEVER;
    }
}

void Windows::open(int64_t since, int64_t till) {
    std::array<int64_t, MOST + 1> from;
    std::array<int64_t, MOST + 1> until;
    size_t n = 0;
    size_t i = 0;
    for (; i < MOST && from_[i] != NEVER && until_[i] < since; ++i, ++n) {
        from[n] = from_[i];
        until[n] = until_[i];
    }
    for (; i < MOST && from_[i] != NEVER && from_[i] <= till; ++i) {
        since = std::min(since, from_[i]);
        till = std::max(till, until_[i]);
    }
    from[n] = since;
    until[n++] = till;
    for (; i < MOST && from_[i] != NEVER; ++i, ++n) {
        from[n] = from_[i];
        until[n] = until_[i];
    }
    if (n > MOST) { // the two that are nearest become one
        size_t nearest = 1;
        for (size_t j = 2; j < n; ++j) {
            if (from[j] - until[j - 1] < from[nearest] - until[nearest - 1]) {
                nearest = j;
            }
        }
        until[nearest - 1] = until[nearest];
        for (size_t j = nearest + 1; j < n; ++j) {
            from[j - 1] = from[j];
            until[j - 1] = until[j];
        }
        --n;
    }
    for (i = 0; i < MOST; ++i) {
        from_[i] = i < n ? from[i] : NEVER;
        until_[i] = i < n ? until[i] : NEVER;
    }
}

} // namespace bridge
