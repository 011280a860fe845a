// SPDX-License-Identifier: Apache-2.0
// The part of ListsDecoder that does not depend on individual nodes.
#include "order_search/lists.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "common/times.hpp"

namespace bridge {
namespace {

constexpr int64_t OF_A_JOB = 80, OF_A_PIECE = 160; // steps: to place it, to book or unbook it

} // namespace

ListsDecoder::ListsDecoder(const NodeProblem &problem)
    : NodePlanner(problem), possible_(problem.n_jobs),
      pool_(static_cast<size_t>(problem.alt_indptr[problem.n_jobs]), FIXED),
      shape_(pool_.size(), 0), tried_(problem.n_jobs), kept_(problem.n_jobs), at_(problem.n_jobs),
      taken_(timelines_.columns()), free_(timelines_.columns()) {
    bool apart = false;
    bool named = false;
    for (size_t job = 0; job < problem.n_jobs; ++job) {
        for (auto a = static_cast<size_t>(problem.alt_indptr[job]);
             a < static_cast<size_t>(problem.alt_indptr[job + 1]); ++a) {
            int32_t counter = -1;
            if (demands_.verdict(a, job, &counter) == Blocked::STARTS_NOW) {
                possible_[job].push_back(a);
                exact_ &= !demands_.of(a).counters;
                apart |= demands_.of(a).required != nullptr ||
                         classes_.has_blackouts(demands_.of(a).cls);
            }
        }
    }
    if (exact_) {
        find_pools();
    }
    if (!exact_) {
        return;
    }
    for (size_t job = 0; job < problem.n_jobs; ++job) {
        for (const size_t a : possible_[job]) {
            named |= pool_[a] == FIXED;
        }
    }
    if (named) {
        open_timelines();
        groups_ = std::make_unique<NodeGroups>(problem, classes_, timelines_, apart);
    }
    find_shapes();
}

// Pools must be equal or disjoint, and disjoint from all nodes planned individually.
void ListsDecoder::find_pools() {
    std::map<const NodeDemand *, std::vector<int32_t>> nodes_of;
    std::map<std::vector<int32_t>, int32_t> pool_of_nodes;
    std::vector<int32_t> owner(problem_.n_nodes, FREE);
    for (size_t job = 0; job < problem_.n_jobs; ++job) {
        const bool pooled = std::all_of(possible_[job].begin(), possible_[job].end(),
                                        [&](size_t a) { return may_pool(a); });
        for (const size_t a : possible_[job]) {
            const NodeDemand *demand = &demands_.of(a);
            auto known = nodes_of.find(demand);
            const bool seen = known != nodes_of.end();
            if (!seen) {
                known = nodes_of.emplace(demand, large_enough(*demand)).first;
            }
            const std::vector<int32_t> &nodes = known->second;
            int32_t mine = FIXED;
            if (pooled) {
                const auto [at, is_new] =
                    pool_of_nodes.try_emplace(nodes, static_cast<int32_t>(profiles_.size()));
                mine = at->second;
                if (is_new) {
                    std::vector<int64_t> until;
                    for (const int32_t node : nodes) {
                        until.push_back(held_until_[static_cast<size_t>(node)]);
                    }
                    profiles_.emplace_back();
                    profiles_.back().reset(problem_.now, std::move(until));
                }
            }
            pool_[a] = mine;
            if (seen && owner[static_cast<size_t>(nodes.front())] == mine) {
                continue;
            }
            for (const int32_t node : nodes) {
                int32_t &of_node = owner[static_cast<size_t>(node)];
                exact_ &= of_node == FREE || of_node == mine;
                of_node = mine;
            }
            if (!exact_) {
                return;
            }
        }
    }
}

void ListsDecoder::find_shapes() {
    std::map<std::tuple<const void *, int64_t, int64_t, int64_t, int8_t, int64_t>, uint32_t> known;
    for (size_t job = 0; job < problem_.n_jobs; ++job) {
        for (const size_t a : possible_[job]) {
            const NodeDemand &demand = demands_.of(a);
            const Widths &widths = demands_.widths(a);
            const bool pooled = pool_[a] >= 0;
            const int64_t width = pooled ? pool_width(a) : widths.smallest();
            const bool counted = demand.tasks > 0 && !pooled;
            const auto key = std::make_tuple(
                pooled ? static_cast<const void *>(&profiles_[static_cast<size_t>(pool_[a])])
                       : static_cast<const void *>(&demand),
                width, problem_.alt_time_limit_s[a], counted ? widths.maximum : 0,
                counted ? static_cast<int8_t>(widths.rule) : int8_t{0},
                counted ? widths.minimum : 0);
            const auto [at, is_new] = known.try_emplace(key, static_cast<uint32_t>(shapes_.size()));
            shape_[a] = at->second;
            if (is_new) {
                shapes_.push_back({job, a, pool_[a], width, problem_.alt_time_limit_s[a], {}});
            }
        }
    }
    for (Shape &shape : shapes_) {
        for (uint32_t other = 0; other < shapes_.size(); ++other) {
            if (no_larger(shapes_[other], shape)) {
                shape.smaller.push_back(other);
            }
        }
    }
    floor_.assign(shapes_.size(), problem_.now);
    bound_.assign(shapes_.size(), problem_.now);
}

// Whether `a` fits wherever `b` fits.
bool ListsDecoder::no_larger(const Shape &a, const Shape &b) {
    if (&a == &b) {
        return true;
    }
    if (a.pool != b.pool || a.length > b.length) {
        return false;
    }
    if (a.pool >= 0) {
        return a.width <= b.width;
    }
    const NodeDemand &one = demands_.of(a.alternative);
    const NodeDemand &two = demands_.of(b.alternative);
    if (one.cls != two.cls || one.exclusive != two.exclusive || one.required != nullptr ||
        two.required != nullptr || (one.tasks > 0) != (two.tasks > 0)) {
        return false;
    }
    for (size_t c = 0; c < one.base.size(); ++c) {
        if (one.base[c] > two.base[c] || one.per_task[c] > two.per_task[c]) {
            return false;
        }
    }
    if (one.tasks == 0) {
        return a.width <= b.width;
    }
    const auto max_tasks = [&](const Shape &shape) {
        const int32_t maximum = problem_.max_tasks_per_node[shape.job];
        return maximum > 0 ? maximum : INT32_MAX;
    };
    const Widths &narrow = demands_.widths(a.alternative);
    const Widths &wide = demands_.widths(b.alternative);
    return one.tasks <= two.tasks && narrow.rule == WidthRule::ANY && wide.rule == WidthRule::ANY &&
           narrow.minimum <= wide.minimum && narrow.maximum >= wide.maximum &&
           max_tasks(a) >= max_tasks(b);
}

int64_t ListsDecoder::bound_of(uint32_t shape) const {
    int64_t bound = floor_[shape];
    for (const uint32_t other : shapes_[shape].smaller) {
        bound = std::max(bound, bound_[other]);
    }
    return bound;
}

int64_t ListsDecoder::steps() const {
    int64_t steps = steps_;
    for (const OrderProfile &profile : profiles_) {
        steps += 2 * profile.steps();
    }
    return steps;
}

void ListsDecoder::settle() {
    for (uint32_t shape = 0; shape < shapes_.size(); ++shape) {
        floor_[shape] = earliest_of(shapes_[shape].alternative, bound_of(shape), NEVER - 1);
    }
}

int64_t ListsDecoder::minimum(size_t job) {
    int64_t minimum = NEVER;
    for (const size_t a : possible_[job]) {
        const int64_t from = std::max(problem_.not_before[job], floor_[shape_[a]]);
        const int64_t latest = std::min(minimum - 1, problem_.alt_latest[a]);
        if (from <= latest) {
            minimum = std::min(minimum, problem_.not_before[job] > problem_.now
                                            ? earliest_of(a, from, latest)
                                            : from);
        }
    }
    return minimum;
}

int64_t ListsDecoder::earliest_of(size_t alternative, int64_t from, int64_t latest) {
    const Shape &shape = shapes_[shape_[alternative]];
    if (from > latest) {
        return NEVER;
    }
    if (shape.pool >= 0) {
        return profiles_[static_cast<size_t>(shape.pool)].earliest(from, shape.width, shape.length,
                                                                   latest);
    }
    const bool tasks = demands_.of(alternative).tasks > 0;
    for (int64_t start = from; start <= latest;) {
        const int64_t next = tasks ? next_with_candidates(alternative, start, latest)
                                   : next_with_groups(alternative, start, latest);
        if (next == start) {
            return start;
        }
        start = next;
    }
    return NEVER;
}

// On as many nodes as it may have.
bool ListsDecoder::start_at_once(size_t job, size_t alternative, Placement &place) {
    const size_t a = alternative;
    if (problem_.not_before[job] > problem_.now || problem_.alt_latest[a] < problem_.now ||
        bound_of(shape_[a]) > problem_.now) {
        return false;
    }
    const int64_t length = problem_.alt_time_limit_s[a];
    const Widths &widths = demands_.widths(a);
    const NodeDemand &demand = demands_.of(a);
    place.start = problem_.now;
    place.end = end_of(problem_.now, length);
    place.alternative = a;
    if (pool_[a] >= 0) {
        const OrderProfile &profile = profiles_[static_cast<size_t>(pool_[a])];
        const int64_t need = shapes_[shape_[a]].width;
        const int64_t free = profile.minimum(place.start, place.end);
        if (free < need) {
            return false;
        }
        place.width = demand.tasks > 0 ? need : widths.greatest(free);
        return true;
    }
    find_candidates(demand, place.start, length);
    const int64_t width = width_of_candidates(demand, widths, true);
    if (width == -1) {
        return false;
    }
    choose_candidates(demand, width, place);
    return true;
}

int64_t ListsDecoder::place(size_t job) {
    steps_ += OF_A_JOB;
    Placement &place = tried_[job];
    for (const size_t a : possible_[job]) {
        if (start_at_once(job, a, place)) {
            book(job, place, false);
            return place.start;
        }
    }
    const int64_t from = std::max(problem_.not_before[job], problem_.now + 1);
    int64_t best = NEVER;
    for (const size_t a : possible_[job]) {
        const int64_t latest = std::min(best - 1, problem_.alt_latest[a]);
        const int64_t start = earliest_of(a, std::max(from, bound_of(shape_[a])), latest);
        if (start < best) {
            best = start;
            place.alternative = a;
        }
    }
    place.start = best;
    if (best != NEVER) {
        const size_t a = place.alternative;
        place.end = end_of(best, problem_.alt_time_limit_s[a]);
        place.width = shapes_[shape_[a]].width;
        if (pool_[a] < 0) {
            const NodeDemand &demand = demands_.of(a);
            find_candidates(demand, best, problem_.alt_time_limit_s[a]);
            choose_candidates(demand, width_of_candidates(demand, demands_.widths(a), false),
                              place);
        }
    }
    book(job, place, false);
    return best;
}

bool ListsDecoder::as_kept(size_t job) const {
    const Placement &tried = tried_[job];
    const Placement &kept = kept_[job];
    if (tried.start != kept.start || tried.start == NEVER) {
        return tried.start == kept.start;
    }
    return tried.alternative == kept.alternative &&
           (pool_[tried.alternative] >= 0 ? tried.width == kept.width
                                          : tried.pieces == kept.pieces);
}

void ListsDecoder::keep(size_t job) {
    std::swap(kept_[job], tried_[job]);
    booked_[at_[job]].kept = true;
}

void ListsDecoder::put_back(size_t job) {
    book(job, kept_[job], true);
}

void ListsDecoder::book(size_t job, const Placement &place, bool kept) {
    at_[job] = booked_.size();
    booked_.push_back({job, kept, {}, 0, UINT32_MAX, 0});
    if (place.start == NEVER) {
        return;
    }
    Booked &booked = booked_.back();
    if (problem_.not_before[job] <= problem_.now && place.start > problem_.now) {
        booked.shape = shape_[place.alternative];
        booked.bound = bound_[booked.shape];
        bound_[booked.shape] = std::max(booked.bound, place.start);
    }
    const int32_t pool = pool_[place.alternative];
    if (pool >= 0) {
        booked.booking =
            profiles_[static_cast<size_t>(pool)].book(place.start, place.end, place.width);
        return;
    }
    booked.groups = groups_->size();
    const NodeDemand &demand = demands_.of(place.alternative);
    for (const NodeGroups::Piece &piece : place.pieces) {
        demand.amounts(piece.tasks, taken_.data());
        groups_->book(piece, place.start, place.end, taken_.data());
        steps_ += OF_A_PIECE;
    }
}

void ListsDecoder::undo() {
    const Booked booked = booked_.back();
    booked_.pop_back();
    const Placement &place = booked.kept ? kept_[booked.job] : tried_[booked.job];
    if (place.start == NEVER) {
        return;
    }
    if (booked.shape != UINT32_MAX) {
        bound_[booked.shape] = booked.bound;
    }
    const int32_t pool = pool_[place.alternative];
    if (pool >= 0) {
        profiles_[static_cast<size_t>(pool)].undo(booked.booking);
        return;
    }
    const NodeDemand &demand = demands_.of(place.alternative);
    for (const NodeGroups::Piece &piece : place.pieces) {
        demand.amounts(piece.tasks, taken_.data());
        groups_->unbook(piece, place.start, place.end, taken_.data());
        steps_ += OF_A_PIECE;
    }
    groups_->join(booked.groups);
}

} // namespace bridge
