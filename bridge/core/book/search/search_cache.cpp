// SPDX-License-Identifier: Apache-2.0
#include "book/search/search_cache.hpp"

#include <algorithm>

namespace bridge {
namespace {

constexpr size_t MAX_SINCE = 4096; // rises
constexpr size_t MAX_OPEN = 64;    // windows; beyond, the last ones become one

// Adds [from, until) to disjoint, ascending spans.
void unite(Spans &spans, int64_t from, int64_t until) {
    const auto first =
        std::lower_bound(spans.begin(), spans.end(), from,
                         [](const auto &span, int64_t time) { return span.second < time; });
    auto past = first;
    for (; past != spans.end() && past->first <= until; ++past) {
        from = std::min(from, past->first);
        until = std::max(until, past->second);
    }
    if (past == first) {
        spans.insert(first, {from, until});
    } else {
        *first = {from, until};
        spans.erase(first + 1, past);
    }
    if (spans.size() > MAX_OPEN) {
        spans[MAX_OPEN - 1].second = spans.back().second;
        spans.pop_back();
    }
}

} // namespace

int64_t SearchCache::Answer::next_open(int64_t time) const {
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

void SearchCache::Answer::only_within(const Spans &spans, int64_t latest) {
    within_.clear();
    for (const auto &[from, until] : spans) {
        int64_t time = within_.empty() ? from : std::max(from, within_.back().second);
        while ((time = next_open(time)) < until) {
            int64_t end = until;
            for (const auto &[opens, closes] : open) {
                if (time < bound && opens <= time && time < closes) {
                    end = std::min(end, closes);
                }
            }
            within_.emplace_back(time, end);
            time = end;
        }
    }
    open.swap(within_);
    bound = end_of(latest, 1);
}

void SearchCache::look_up(const int64_t *want, int64_t count, int64_t length, const Rises &rises,
                          int64_t lifted_from, int64_t lifted_until, int64_t now, int64_t latest,
                          Answer &answer) {
    drop_old(rises);
    answer.open.clear();
    answer.bound = now;
    const int64_t enough = latest == NEVER ? NEVER : latest + 1;
    Entry *best = nullptr;
    for (Entry &entry : entries_) {
        if (std::min(entry.bound, enough) < answer.bound) {
            break; // the rest implies less
        }
        if (best != nullptr && std::min(entry.bound, enough) == answer.bound &&
            since_[entry.row].rises <= since_[best->row].rises) {
            continue;
        }
        if (entry.length > length || entry.count > count) {
            continue;
        }
        const int64_t *amounts = amounts_.data() + entry.row * columns_;
        bool more = true;
        for (size_t c = 0; more && c < columns_; ++c) {
            more = amounts[c] <= want[c];
        }
        if (more) {
            best = &entry;
            answer.bound = std::min(entry.bound, enough);
        }
    }
    if (best == nullptr) {
        return;
    }
    best->used = uses_++;
    Since &since = since_[best->row];
    for (; since.taken < rises.count(); ++since.taken) {
        const Rises::Rise &rise = rises[since.taken];
        unite(since.open, first_reaching(rise.from, best->length), rise.until);
    }
    for (const auto &[from, until] : since.open) {
        if (from >= answer.bound) {
            break;
        }
        if (until > now) {
            answer.open.emplace_back(std::max(now, from), std::min(until, answer.bound));
        }
    }
    if (lifted_from != NEVER) {
        const int64_t from = std::max(now, first_reaching(lifted_from, best->length));
        const int64_t until = std::min(lifted_until, answer.bound);
        if (from < until) {
            unite(answer.open, from, until);
        }
    }
}

void SearchCache::learn(const int64_t *want, int64_t count, int64_t length, int64_t bound,
                        const Rises &rises) {
    const auto later = [](const Entry &a, int64_t value) { return a.bound > value; };
    const auto first = std::lower_bound(entries_.begin(), entries_.end(), bound, later);
    const auto implied = [&](const Entry &entry) { // implied by the new entry
        if (entry.length < length || entry.count < count) {
            return false;
        }
        const int64_t *amounts = amounts_.data() + entry.row * columns_;
        for (size_t c = 0; c < columns_; ++c) {
            if (amounts[c] < want[c]) {
                return false;
            }
        }
        free_rows_.push_back(entry.row);
        return true;
    };
    entries_.erase(std::remove_if(first, entries_.end(), implied), entries_.end());
    if (entries_.size() == KEPT) {
        const auto oldest =
            std::min_element(entries_.begin(), entries_.end(),
                             [](const Entry &x, const Entry &y) { return x.used < y.used; });
        free_rows_.push_back(oldest->row);
        entries_.erase(oldest);
    }
    if (free_rows_.empty()) {
        free_rows_.push_back(static_cast<uint32_t>(entries_.size())); // all before are in use
        since_.resize(entries_.size() + 1);
        amounts_.resize((entries_.size() + 1) * columns_);
    }
    const uint32_t row = free_rows_.back();
    free_rows_.pop_back();
    std::copy_n(want, columns_, amounts_.data() + row * columns_);
    const auto place = std::lower_bound(entries_.begin(), entries_.end(), bound, later);
    entries_.insert(place, {bound, length, count, uses_++, row});
    since_[row] = {rises.count(), rises.count(), {}};
}

// Drops results followed by so many rises that reading them takes longer than a search.
void SearchCache::drop_old(const Rises &rises) {
    if (rises.count() - oldest_ <= MAX_SINCE) {
        return;
    }
    oldest_ = rises.count();
    const auto is_old = [&](const Entry &entry) {
        if (rises.count() - since_[entry.row].taken > MAX_SINCE) {
            free_rows_.push_back(entry.row);
            return true;
        }
        oldest_ = std::min(oldest_, since_[entry.row].taken);
        return false;
    };
    entries_.erase(std::remove_if(entries_.begin(), entries_.end(), is_old), entries_.end());
}

void Windows::close(int64_t since, int64_t till) {
    if (till <= since) {
        return;
    }
    size_t i = 0;
    while (i < MAX && until_[i] <= since) {
        ++i;
    }
    if (i < MAX && from_[i] < since) { // the part before it stays
        if (till < until_[i]) {
            if (from_[MAX - 1] != NEVER) {
                return;
            }
            for (size_t j = MAX - 1; j > i; --j) {
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
    while (past < MAX && until_[past] <= till && from_[past] != NEVER) {
        ++past;
    }
    if (past < MAX && from_[past] < till) {
        from_[past] = till;
    }
    for (; past < MAX; ++i, ++past) {
        from_[i] = from_[past];
        until_[i] = until_[past];
    }
    for (; i < MAX; ++i) {
        from_[i] = until_[i] = NEVER;
    }
}

void Windows::open(int64_t since, int64_t till) {
    std::array<int64_t, MAX + 1> from;
    std::array<int64_t, MAX + 1> until;
    size_t n = 0;
    size_t i = 0;
    for (; i < MAX && from_[i] != NEVER && until_[i] < since; ++i, ++n) {
        from[n] = from_[i];
        until[n] = until_[i];
    }
    for (; i < MAX && from_[i] != NEVER && from_[i] <= till; ++i) {
        since = std::min(since, from_[i]);
        till = std::max(till, until_[i]);
    }
    from[n] = since;
    until[n++] = till;
    for (; i < MAX && from_[i] != NEVER; ++i, ++n) {
        from[n] = from_[i];
        until[n] = until_[i];
    }
    if (n > MAX) { // the two nearest become one
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
    for (i = 0; i < MAX; ++i) {
        from_[i] = i < n ? from[i] : NEVER;
        until_[i] = i < n ? until[i] : NEVER;
    }
}

} // namespace bridge
