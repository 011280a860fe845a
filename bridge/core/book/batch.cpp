// SPDX-License-Identifier: Apache-2.0
#include "book/batch.hpp"

#include <algorithm>

namespace bridge {

std::vector<Term> TermColumns::of(size_t job) const {
    std::vector<Term> terms;
    for (int64_t t = indptr[job]; t < indptr[job + 1]; ++t) {
        terms.push_back({constraint[t], amount[t], static_cast<TermMode>(mode[t])});
    }
    return terms;
}

void MapColumns::reserve(size_t jobs, size_t entries) {
    indptr.reserve(indptr.size() + jobs);
    nodes.reserve(nodes.size() + entries);
    groups.reserve(groups.size() + entries);
    chunks.reserve(chunks.size() + entries);
}

void MapColumns::add(const std::vector<Placed> &placed, const BookNodes &all) {
    const size_t first = nodes.size();
    nodes.resize(first + placed.size());
    groups.resize(nodes.size());
    chunks.resize(nodes.size());
    for (size_t i = 0; i < placed.size(); ++i) {
        nodes[first + i] = all.index(static_cast<size_t>(placed[i].position));
        groups[first + i] = placed[i].group;
        chunks[first + i] = placed[i].chunks;
    }
    indptr.push_back(static_cast<int64_t>(nodes.size()));
}

namespace {

// Whether the nodes that satisfy a predicate could ever hold this many chunks.
template <typename Open> bool holds_some_day(Book &book, const Group &sought, Open open) {
    int64_t missing = sought.count;
    for (const int32_t p : book.state().requests.shape(sought.shape).positions()) {
        if (missing > 0 && open(static_cast<size_t>(p))) {
            missing -= std::min(missing, book.search().maximum(sought, static_cast<size_t>(p)));
        }
    }
    return missing == 0;
}

// Whether the nodes that are free at this second would hold a request, counting only those that
// stay open for this long; 0: ignoring closed times. Checked group by group.
bool free_now(Book &book, const Request &request, int64_t open_for) {
    BookState &state = book.state();
    for (const Group &sought : request.sought) {
        const Shape &shape = state.requests.shape(sought.shape);
        int64_t missing = sought.count;
        for (const int32_t position : shape.positions()) {
            const auto p = static_cast<size_t>(position);
            const int64_t maximum = std::min(missing, book.search().maximum(sought, p));
            if (maximum <= 0 || (open_for > 0 && state.requests.next_open(shape, p, state.now,
                                                                          open_for) != state.now)) {
                continue;
            }
            const LineNeed need = shape.line_need();
            missing -= shape.exclusive
                           ? (state.lines.next_fit(p, need, state.now, 1, state.now) == state.now)
                                 ? maximum
                                 : 0
                           : state.lines.room(p, need, state.now, 1, maximum).times;
        }
        if (missing > 0) {
            return false;
        }
    }
    return true;
}

// Whether any class of a request is closed at some time.
bool ever_closed(const BookState &state, const Request &request) {
    for (const Group &sought : request.sought) {
        for (const int32_t c : state.requests.shape(sought.shape).classes) {
            if (state.requests.cls(c).ever_closed()) {
                return true;
            }
        }
    }
    return false;
}

} // namespace

std::pair<Blocked, int32_t> why_never(Book &book, int32_t id, Terms terms) {
    BookState &state = book.state();
    for (const Group &sought : state.requests[id].sought) {
        const Shape &shape = state.requests.shape(sought.shape);
        const auto nodes = static_cast<int64_t>(shape.positions().size());
        if (nodes == 0 || (sought.max_per_node < BookRequests::NO_LIMIT &&
                           nodes * sought.max_per_node < sought.count)) {
            return {Blocked::NEVER_NODES, -1};
        }
        if (!holds_some_day(book, sought, [](size_t) { return true; })) {
            return {Blocked::NEVER_SIZE, -1};
        }
    }
    for (const Term &term : terms) {
        if (term.mode != TermMode::COUNT &&
            !state.constraints[static_cast<size_t>(term.constraint)].ever_holds(term.amount)) {
            return {Blocked::NEVER_COUNTER, term.constraint};
        }
    }
    return {Blocked::NOT_BEFORE, -1};
}

std::pair<Blocked, int32_t> why_not_now(Book &book, int32_t id, int64_t length, Terms terms,
                                        int64_t not_before, int64_t latest, int64_t start) {
    BookState &state = book.state();
    BookSearch &search = book.search();
    if (start == state.now) {
        return {Blocked::STARTS_NOW, -1};
    }
    const Request &request = state.requests[id];
    if (start == NEVER) {
        const auto never = why_never(book, id, terms);
        if (never.first != Blocked::NOT_BEFORE) {
            return never;
        }
        if (latest == NEVER) {
            return {Blocked::NEVER_FREED, -1};
        }
    }
    const int64_t now = state.now;
    if (not_before > now) {
        return {Blocked::NOT_BEFORE, -1};
    }
    const bool closed = ever_closed(state, request);
    if (search.next_on_nodes(id, 1, now, now) != now) {
        return {closed && free_now(book, request, 0) ? Blocked::BLACKOUT : Blocked::NODES_BUSY, -1};
    }
    if (search.next_on_nodes(id, length, now, now) != now) {
        const bool closes = closed && !free_now(book, request, length);
        return {closes ? Blocked::BLACKOUT : Blocked::PLANNED_START, -1};
    }
    for (const Term &term : terms) {
        if (term.mode != TermMode::COUNT &&
            state.constraints[static_cast<size_t>(term.constraint)].next_fit(term.amount, now,
                                                                             length, now) != now) {
            return {Blocked::COUNTER, term.constraint};
        }
    }
    return {Blocked::PLANNED_START, -1};
}

BookPlan plan_many(Book &book, const BookJobs &jobs, int64_t depth, bool reasons) {
    BookPlan plan;
    int64_t reserved = 0;
    const int64_t now = book.state().now;
    plan.start.reserve(jobs.n);
    for (size_t j = 0; j < jobs.n; ++j) {
        std::vector<Term> held = jobs.terms.of(j);
        const Terms terms{held.data(), held.size()};
        const int32_t request = jobs.request[j];
        const int64_t length = jobs.length[j];
        const int64_t latest = reserved < depth ? jobs.latest[j] : std::min(jobs.latest[j], now);
        BookFound found =
            book.find(request, length, terms, jobs.not_before[j], latest, jobs.last[j]);
        reserved += found.start != NEVER && found.start > now ? 1 : 0;
        plan.start.push_back(found.start);
        plan.map.add(found.placed, book.state().nodes);
        if (reasons) {
            const auto [why, constraint] =
                why_not_now(book, request, length, terms, jobs.not_before[j], latest, found.start);
            plan.blocked_by.push_back(static_cast<int8_t>(why));
            plan.blocked_constraint.push_back(constraint);
        }
        if (found.start != NEVER) {
            const Searched searched =
                jobs.last[j] ? Searched{} : book.searched(jobs.not_before[j], held);
            book.book({jobs.job[j],
                       found.start,
                       end_of(found.start, length),
                       request,
                       book.state().requests[request].exclusive,
                       0,
                       std::move(held),
                       std::move(found.placed),
                       {},
                       searched});
        }
    }
    return plan;
}

} // namespace bridge
