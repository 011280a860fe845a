// SPDX-License-Identifier: Apache-2.0
// The earliest start.
#include "book/search/search.hpp"

#include <algorithm>

namespace bridge {
namespace {

constexpr size_t MAX_BOUNDS_BYTES = size_t{48} << 20;
constexpr size_t MAX_RISES_EACH = 64; // per node; after more, its bounds are worth little
constexpr size_t MAX_LACKS_BYTES = size_t{16} << 20;

} // namespace

void BookSearch::forget() {
    touch();
    bounds_.clear();
    bounds_bytes_ = 0;
    lacks_.clear();
    lacks_bytes_ = 0;
    for (SearchCache &cache : caches_) {
        cache.clear();
    }
    for (SearchCache &cache : of_request_) {
        cache.clear();
    }
}

SearchCache &BookSearch::cache(std::vector<SearchCache> &all, size_t id, size_t columns) {
    while (all.size() <= id) {
        all.emplace_back(columns);
    }
    return all[id];
}

// Kept from the second search on, as bounds are.
Lack *BookSearch::lacks_for(const Shape &shape) {
    const auto id = static_cast<size_t>(shape.lacks);
    if (id >= lacks_.size()) {
        lacks_.resize(id + 1);
    }
    if (!lacks_[id].sought) {
        lacks_[id].sought = true;
        return nullptr;
    }
    if (lacks_[id].at.empty()) {
        const size_t bytes = state_.nodes.size() * sizeof(Lack);
        if (lacks_bytes_ + bytes > MAX_LACKS_BYTES) {
            lacks_.clear();
            lacks_bytes_ = 0;
            return nullptr;
        }
        lacks_bytes_ += bytes;
        lacks_[id].at.resize(state_.nodes.size());
        lacks_[id].rises = state_.rises.count();
    }
    lacks_[id].take_in(state_.rises);
    return lacks_[id].at.data();
}

// Bounds by node are kept from the second search on: many requests are searched only once.
NodeBounds *BookSearch::bounds_for(int32_t shape, int64_t length) {
    const auto [at, is_new] = bounds_.try_emplace({shape, length});
    if (is_new) {
        return nullptr;
    }
    NodeBounds &bounds = at->second;
    if (bounds.at.empty()) {
        const size_t bytes = state_.nodes.size() * sizeof(Windows);
        if (bounds_bytes_ + bytes > MAX_BOUNDS_BYTES) {
            bounds_.clear();
            bounds_bytes_ = 0;
            return nullptr;
        }
        bounds_bytes_ += bytes;
        bounds.at.resize(state_.nodes.size());
        for (const int32_t p : state_.requests.shape(shape).positions()) {
            bounds.at[static_cast<size_t>(p)] = Windows(state_.now);
        }
        bounds.rises = state_.rises.count();
    }
    if (state_.rises.count() - bounds.rises > MAX_RISES_EACH * state_.nodes.size()) {
        for (const int32_t p : state_.requests.shape(shape).positions()) {
            bounds.at[static_cast<size_t>(p)] = Windows(state_.now);
        }
        bounds.rises = state_.rises.count();
    }
    for (; bounds.rises < state_.rises.count(); ++bounds.rises) {
        const Rises::Rise &rise = state_.rises[bounds.rises];
        if (state_.requests.may_use(shape, rise.position)) {
            bounds.at[static_cast<size_t>(rise.position)].open(first_reaching(rise.from, length),
                                                               rise.until);
        }
    }
    return &bounds;
}

int64_t BookSearch::maximum(const Group &sought, size_t position) {
    const int64_t holds =
        state_.requests.maximum(sought.shape, state_.nodes.type(position), state_.nodes);
    return std::min(holds, sought.max_per_node);
}

int64_t Openings::next(int64_t time) const {
    for (;;) {
        const int64_t open = answer->next_open(time);
        if (open > latest) {
            return open;
        }
        time = whole.next(open, length, latest);
        if (time == open || time > latest) {
            return time;
        }
    }
}

WholeNodes BookSearch::whole_nodes(const Group &sought) {
    const Shape &shape = state_.requests.shape(sought.shape);
    if (!shape.exclusive || shape.classes.size() != 1 || sought.max_per_node == 0) {
        return {nullptr, 0};
    }
    const int64_t each = std::min(sought.max_per_node, sought.count);
    return {state_.free_nodes.of(shape.classes.front(), state_.requests, state_.lines),
            (sought.count + each - 1) / each};
}

// The earliest start of one chunk on one node; one after `latest` may be too early (NEVER is
// exact).
int64_t BookSearch::next_start(const Group &sought, const Shape &shape, size_t position,
                               int64_t from, int64_t length, int64_t latest, Lack *lack) {
    int64_t start = lack == nullptr ? from : lack->after(from);
    if (start == NEVER || maximum(sought, position) == 0) {
        return NEVER;
    }
    while (start <= latest) {
        start = state_.lines.next_fit(position, shape.line_need(), start, length, latest,
                                      shape.rough_need(), lack);
        if (start > latest || start == NEVER) {
            return lack == nullptr ? start : lack->after(start);
        }
        const int64_t open = state_.requests.next_open(shape, position, start, length);
        if (open == start) {
            return start;
        }
        start = open;
    }
    return start;
}

// The same, using and extending what is known.
int64_t BookSearch::next_start(const Group &sought, const Shape &shape, size_t position,
                               int64_t from, int64_t length, int64_t latest, Windows *known,
                               Lack *lack) {
    if (known == nullptr) {
        return next_start(sought, shape, position, from, length, latest, lack);
    }
    int64_t start = known->next(from);
    while (start <= latest && start != NEVER) {
        const int64_t limit = std::min(latest, known->end(start) - 1);
        const int64_t fits = next_start(sought, shape, position, start, length, limit, lack);
        if (fits <= limit) {
            start = fits;
            break;
        }
        start = known->next(fits);
    }
    known->close(from, start);
    return start;
}

// The earliest start of one chunk on any node, on the first one if there are several.
int64_t BookSearch::next_single(const Group &sought, int64_t length, int64_t from, int64_t latest,
                                const std::vector<int32_t> &positions, NodeBounds *bounds,
                                Lack *lacks, Lifted lifted) {
    const Shape &shape = state_.requests.shape(sought.shape);
    int64_t best = NEVER;
    int32_t where = -1;
    const auto offer = [&](int32_t p, int64_t lower, Windows *known, Lack *lack) {
        const int64_t limit = best == NEVER ? latest : p < where ? best : best - 1;
        if (lower > limit) {
            return;
        }
        const int64_t start =
            next_start(sought, shape, static_cast<size_t>(p), lower, length, limit, known, lack);
        if (start <= limit && start != NEVER) {
            best = start;
            where = p;
        }
    };
    const auto lack_of = [&](int32_t p) { return lacks == nullptr ? nullptr : lacks + p; };
    if (lifted.placed != nullptr) {
        const int64_t reaching = std::max(from, first_reaching(lifted.from, length));
        for (const Placed &placed : *lifted.placed) {
            if (state_.requests.may_use(sought.shape, placed.position)) {
                const auto p = static_cast<size_t>(placed.position);
                const int64_t known =
                    bounds == nullptr ? from : std::min(bounds->at[p].next(from), reaching);
                offer(placed.position, known, nullptr, nullptr);
            }
        }
    }
    if (bounds == nullptr) {
        for (const int32_t p : positions) {
            offer(p, from, nullptr, lack_of(p));
            if (best == from && where <= p) {
                break;
            }
        }
    } else {
        first_.clear();
        size_t first = 0;
        for (const int32_t p : positions) {
            first_.push_back(bounds->at[static_cast<size_t>(p)].next(from));
            first = first_.back() < first_[first] ? first_.size() - 1 : first;
        }
        const auto look = [&](size_t i) {
            const int32_t p = positions[i];
            offer(p, first_[i], &bounds->at[static_cast<size_t>(p)], lack_of(p));
        };
        if (!first_.empty()) {
            look(first);
        }
        for (size_t i = 0; i < first_.size(); ++i) {
            if (first_[i] <= std::min(best, latest) && i != first) {
                look(i);
            }
        }
    }
    found_ = {best, length, sought, where};
    return best;
}

// Whether a search without results for each node should use the summary. It is kept while there are
// many such searches, as every booking then costs more.
bool BookSearch::keeps_summary(const Shape &shape, bool known) {
    constexpr size_t FEW_NODES = 64;
    // With fewer jobs than nodes, lines are short.
    const auto worth_it = std::max<int64_t>(512, static_cast<int64_t>(shape.positions().size()));
    constexpr int64_t NOT_WORTH_IT = -512;
    if (known) {
        if (summary_worth_ > NOT_WORTH_IT && --summary_worth_ == NOT_WORTH_IT) {
            state_.lines.drop_spans();
        }
        return false;
    }
    if (shape.positions().size() < FEW_NODES) {
        return false;
    }
    if (summary_worth_ < worth_it) {
        ++summary_worth_;
    }
    const RangeSummary &summary = state_.lines.range_summary();
    if (summary.kept() ? summary.is_late(state_.now) || summary.outgrown()
                       : summary_worth_ >= worth_it) {
        state_.lines.summarize(state_.now);
    }
    return summary.kept();
}

// The same, range by range, looking only at nodes on which it may start there.
int64_t BookSearch::next_by_ranges(const Group &sought, int64_t length, int64_t from,
                                   int64_t latest, Lack *lacks, const Openings &openings) {
    const Shape &shape = state_.requests.shape(sought.shape);
    const RangeSummary &summary = state_.lines.range_summary();
    const int64_t each = std::min(sought.max_per_node, sought.count);
    const auto minimum = static_cast<size_t>((sought.count + each - 1) / each); // nodes
    int64_t time = from;
    while (time <= latest && time < summary.end()) {
        const int64_t until = std::min(end_of(latest, 1), summary.range_end(time));
        if (summary.mark(shape.line_need(), length, time, until, minimum - 1, marks_) >= minimum) {
            RangeSummary::list(marks_, marked_);
            if (shape.positions().size() < state_.nodes.size()) {
                marked_.erase(std::remove_if(marked_.begin(), marked_.end(),
                                             [&](int32_t p) {
                                                 return !state_.requests.may_use(sought.shape, p);
                                             }),
                              marked_.end());
            }
            state_.lines.warm(marked_, time);
            const int64_t start =
                sought.count == 1
                    ? next_single(sought, length, time, until - 1, marked_, nullptr, lacks, {})
                    : next_several(sought, length, time, until - 1, marked_, nullptr, lacks, {},
                                   openings);
            if (start != NEVER) {
                return start;
            }
        }
        time = openings.next(until);
    }
    if (time > latest) {
        return NEVER;
    }
    return sought.count == 1
               ? next_single(sought, length, time, latest, shape.positions(), nullptr, lacks, {})
               : next_several(sought, length, time, latest, shape.positions(), nullptr, lacks, {},
                              openings);
}

int64_t BookSearch::start_on(int32_t id, size_t position, int64_t length, int64_t from,
                             int64_t latest) {
    int64_t best = NEVER;
    for (const Group &sought : state_.requests[id].sought) {
        if (!state_.requests.may_use(sought.shape, static_cast<int32_t>(position))) {
            continue;
        }
        const Shape &shape = state_.requests.shape(sought.shape);
        NodeBounds *bounds = bounds_for(sought.shape, length);
        Lack *lacks = lacks_for(shape);
        const int64_t start = next_start(sought, shape, position, from, length, latest,
                                         bounds == nullptr ? nullptr : &bounds->at[position],
                                         lacks == nullptr ? nullptr : lacks + position);
        if (start <= latest && start != NEVER) {
            best = latest = start;
        }
    }
    return best;
}

int64_t BookSearch::next_of(const Group &sought, int32_t cache_id, int64_t length, int64_t from,
                            int64_t latest, Lifted lifted) {
    const Shape &shape = state_.requests.shape(sought.shape);
    if (sought.max_per_node == 0 || from > latest) {
        return NEVER;
    }
    const WholeNodes whole = whole_nodes(sought);
    NodeBounds *bounds = bounds_for(sought.shape, length);
    // In a replan they would exclude few nodes and cost more than they save.
    Lack *lacks = lifted.placed == nullptr ? lacks_for(shape) : nullptr;
    if (sought.count == 1 && bounds != nullptr) {
        keeps_summary(shape, true);
        from = whole.next(from, length, latest);
        return from > latest ? NEVER
                             : next_single(sought, length, from, latest, shape.positions(), bounds,
                                           lacks, lifted);
    }
    SearchCache &cache =
        this->cache(caches_, static_cast<size_t>(cache_id), state_.nodes.columns());
    cache.look_up(shape.want.data(), sought.count, length, state_.rises, lifted.from, lifted.until,
                  state_.now, latest, answer_);
    if (lifted.chances != nullptr) {
        answer_.only_within(*lifted.chances, latest);
    }
    int64_t begin = answer_.next_open(from);
    const bool learns = begin == answer_.next_open(state_.now) && !lifted.by_constraints;
    if (begin > latest) {
        return NEVER;
    }
    const Openings openings{&answer_, whole, length, latest};
    begin = openings.next(begin);
    int64_t start = NEVER;
    if (begin > latest) {
        // too few nodes are free at any time
    } else if (keeps_summary(shape, bounds != nullptr)) {
        start = next_by_ranges(sought, length, begin, latest, lacks, openings);
    } else if (sought.count == 1) {
        start =
            next_single(sought, length, begin, latest, shape.positions(), bounds, lacks, lifted);
    } else {
        start = next_several(sought, length, begin, latest, shape.positions(), bounds, lacks,
                             lifted, openings);
    }
    if (learns) {
        const int64_t bound = start == NEVER && latest != NEVER ? latest + 1 : start;
        cache.learn(shape.want.data(), sought.count, length, bound, state_.rises);
    }
    return start;
}

int64_t BookSearch::next_on_nodes(int32_t id, int64_t length, int64_t from, int64_t latest,
                                  Lifted lifted) {
    const Request &request = state_.requests[id];
    if (request.sought.size() == 1) {
        return next_of(request.sought.front(), request.cache_ids.front(), length, from, latest,
                       lifted);
    }
    lifted.chances = nullptr; // they do not apply to one kind of chunks alone
    SearchCache &cache = this->cache(of_request_, static_cast<size_t>(id), 0);
    SearchCache::Answer answer;
    cache.look_up(nullptr, 0, length, state_.rises, lifted.from, lifted.until, state_.now, latest,
                  answer);
    int64_t start = answer.next_open(from);
    const bool learns = start == answer.next_open(state_.now);
    std::vector<Placed> unused;
    while (start <= latest && start != NEVER) {
        const int64_t before = start;
        for (size_t g = 0; g < request.sought.size() && start <= latest; ++g) {
            start = next_of(request.sought[g], request.cache_ids[g], length, start, latest, lifted);
        }
        if (start == before) { // each group alone fits here
            if (map_groups(request, start, length, unused)) {
                break;
            }
            start = answer.next_open(change_after(request, start));
        }
    }
    if (start > latest) {
        start = NEVER;
    }
    if (learns) {
        const int64_t bound = start == NEVER && latest != NEVER ? latest + 1 : start;
        cache.learn(nullptr, 0, length, bound, state_.rises);
    }
    return start;
}

int64_t BookSearch::change_after(const Request &request, int64_t time) const {
    int64_t change = NEVER;
    for (const Group &sought : request.sought) {
        const Shape &shape = state_.requests.shape(sought.shape);
        for (const int32_t p : shape.positions()) {
            change = std::min(change, state_.lines.change_after(static_cast<size_t>(p), time));
            for (const int32_t c : shape.classes) {
                change = std::min(
                    change, state_.requests.cls(c).change_after(static_cast<size_t>(p), time));
            }
        }
    }
    return change;
}

int64_t BookSearch::earliest_start(int32_t request, int64_t length, Terms terms, int64_t from,
                                   int64_t latest, Lifted lifted) {
    int64_t start = std::max(from, state_.now);
    for (int64_t on_nodes = -1; start <= latest && start != NEVER;) {
        int64_t before = -1;
        while (start != before && start <= latest) { // the constraints hold it here
            before = start;
            for (const Term &term : terms) {
                if (term.mode != TermMode::COUNT && start <= latest) {
                    start = state_.constraints[static_cast<size_t>(term.constraint)].next_fit(
                        term.amount, start, length, latest);
                }
            }
        }
        if (start == on_nodes || start > latest) {
            break;
        }
        on_nodes = next_on_nodes(request, length, start, latest, lifted);
        if (on_nodes == start) {
            break;
        }
        start = on_nodes;
    }
    return start > latest ? NEVER : start;
}

} // namespace bridge
