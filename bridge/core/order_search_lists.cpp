// SPDX-License-Identifier: Apache-2.0
#include "order_search_lists.hpp"

#include <algorithm>
#include <map>

#include "times.hpp"

namespace bridge {

ListsDecoder::ListsDecoder(const NodeProblem &problem)
    : NodePlanner(problem), possible_(problem.n_jobs),
      pool_(static_cast<size_t>(problem.alt_indptr[problem.n_jobs]), FIXED),
      pool_need_(pool_.size(), 0), floor_(pool_.size(), problem.now), tried_(problem.n_jobs),
      kept_(problem.n_jobs), at_(problem.n_jobs), taken_(timelines_.columns()) {
    for (size_t job = 0; job < problem.n_jobs; ++job) {
        for (auto a = static_cast<size_t>(problem.alt_indptr[job]);
             a < static_cast<size_t>(problem.alt_indptr[job + 1]); ++a) {
            int32_t counter = -1;
            if (wants_.verdict(a, job, &counter) == Blocked::STARTS_NOW) {
                possible_[job].push_back(a);
                exact_ &= !wants_.of(a).counters;
                floor_[a] = first_second(job);
            }
        }
    }
    if (exact_) {
        find_pools();
    }
}

// Pools must be equal or apart, and apart from all nodes that are planned by name.
void ListsDecoder::find_pools() {
    std::map<const Want *, std::vector<int32_t>> nodes_of;
    std::map<std::vector<int32_t>, int32_t> pool_of_nodes;
    std::vector<int32_t> owner(problem_.n_nodes, FREE);
    for (size_t job = 0; job < problem_.n_jobs; ++job) {
        const bool pooled = std::all_of(possible_[job].begin(), possible_[job].end(),
                                        [&](size_t a) { return may_pool(a); });
        for (const size_t a : possible_[job]) {
            const Want *want = &wants_.of(a);
            auto known = nodes_of.find(want);
            if (known == nodes_of.end()) {
                known = nodes_of.emplace(want, large_enough(*want)).first;
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
                pool_need_[a] = pool_width(a);
            }
            pool_[a] = mine;
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

int64_t ListsDecoder::first_second(size_t job) const {
    return std::max(problem_.now, problem_.not_before[job]);
}

void ListsDecoder::settle() {
    for (size_t job = 0; job < problem_.n_jobs; ++job) {
        for (const size_t a : possible_[job]) {
            floor_[a] = earliest_of(a, floor_[a], NEVER - 1);
        }
    }
}

int64_t ListsDecoder::earliest_of(size_t alternative, int64_t from, int64_t latest) {
    const int64_t length = problem_.alt_time_limit_s[alternative];
    if (pool_[alternative] >= 0) {
        return profiles_[static_cast<size_t>(pool_[alternative])].earliest(
            from, pool_need_[alternative], length, latest);
    }
    const Want &want = wants_.of(alternative);
    if (want.tasks == 0) {
        first_start_.assign(classes_.nodes(want.cls).size(), 0);
    }
    for (int64_t start = from; start <= latest;) {
        const int64_t next = want.tasks > 0 ? next_with_tasks(want, alternative, start, latest)
                                            : next_with_width(want, alternative, start, latest);
        if (next == start) {
            return start;
        }
        start = next;
    }
    return NEVER;
}

// On as many nodes as it may have.
bool ListsDecoder::start_at_once(size_t job, size_t alternative, Place &place) {
    const size_t a = alternative;
    if (floor_[a] > problem_.now || problem_.not_before[job] > problem_.now ||
        problem_.alt_latest[a] < problem_.now) {
        return false;
    }
    const int64_t length = problem_.alt_time_limit_s[a];
    const Widths &widths = wants_.widths(a);
    const Want &want = wants_.of(a);
    place.start = problem_.now;
    place.end = end_of(problem_.now, length);
    place.pool = pool_[a];
    place.alternative = a;
    if (place.pool >= 0) {
        const OrderProfile &profile = profiles_[static_cast<size_t>(place.pool)];
        const int64_t free = profile.least(place.start, place.end);
        if (free < pool_need_[a]) {
            return false;
        }
        place.width = want.tasks > 0 ? pool_need_[a] : widths.greatest(free);
        return true;
    }
    const bool first_will_do = want.plain() && problem_.select == Select::SEQUENTIAL;
    const size_t enough = first_will_do ? static_cast<size_t>(widths.most) : SIZE_MAX;
    std::vector<Candidate> candidates = candidates_at(want, place.start, length, enough);
    place.width = width_to_take(want, widths, candidates, true);
    if (place.width == -1) {
        return false;
    }
    place.chosen = choice_.choose(want, place.width, std::move(candidates), place.start, place.end);
    return true;
}

int64_t ListsDecoder::place(size_t job) {
    Place &place = tried_[job];
    place.start = NEVER;
    for (const size_t a : possible_[job]) {
        if (start_at_once(job, a, place)) {
            book(job, place, false);
            return place.start;
        }
    }
    const int64_t from =
        problem_.not_before[job] > problem_.now ? problem_.not_before[job] : problem_.now + 1;
    int64_t best = NEVER;
    for (const size_t a : possible_[job]) {
        const int64_t latest = std::min(best - 1, problem_.alt_latest[a]);
        const int64_t start = earliest_of(a, std::max(from, floor_[a]), latest);
        if (start < best) {
            best = start;
            place.alternative = a;
        }
    }
    place.start = best;
    if (best != NEVER) {
        const size_t a = place.alternative;
        const int64_t length = problem_.alt_time_limit_s[a];
        place.end = end_of(best, length);
        place.pool = pool_[a];
        if (place.pool >= 0) {
            place.width = pool_need_[a];
        } else {
            const Want &want = wants_.of(a);
            const Widths &widths = wants_.widths(a);
            const bool first_will_do = want.plain() && problem_.select == Select::SEQUENTIAL;
            const auto enough = first_will_do ? static_cast<size_t>(widths.smallest()) : SIZE_MAX;
            std::vector<Candidate> candidates = candidates_at(want, best, length, enough);
            place.width = width_to_take(want, widths, candidates, false);
            place.chosen =
                choice_.choose(want, place.width, std::move(candidates), best, place.end);
        }
    }
    book(job, place, false);
    return best;
}

bool ListsDecoder::as_kept(size_t job) const {
    const Place &tried = tried_[job];
    const Place &kept = kept_[job];
    return tried.start == kept.start &&
           (tried.start == NEVER ||
            (tried.end == kept.end && tried.pool == kept.pool && tried.width == kept.width &&
             (tried.pool >= 0 ||
              std::equal(tried.chosen.begin(), tried.chosen.end(), kept.chosen.begin(),
                         kept.chosen.end(), [](const Chosen &a, const Chosen &b) {
                             return a.node == b.node && a.tasks == b.tasks;
                         }))));
}

void ListsDecoder::keep(size_t job) {
    std::swap(kept_[job], tried_[job]);
    booked_[at_[job]].kept = true;
}

void ListsDecoder::put_back(size_t job) {
    book(job, kept_[job], true);
}

void ListsDecoder::book(size_t job, const Place &place, bool kept) {
    at_[job] = booked_.size();
    booked_.push_back({job, kept, {}});
    if (place.start == NEVER) {
        return;
    }
    if (place.pool >= 0) {
        booked_.back().booking =
            profiles_[static_cast<size_t>(place.pool)].book(place.start, place.end, place.width);
    } else {
        take(place, 1);
    }
}

void ListsDecoder::undo() {
    const Booked last = booked_.back();
    booked_.pop_back();
    const Place &place = last.kept ? kept_[last.job] : tried_[last.job];
    if (place.start == NEVER) {
        return;
    }
    if (place.pool >= 0) {
        profiles_[static_cast<size_t>(place.pool)].undo(last.booking);
    } else {
        take(place, -1);
    }
}

void ListsDecoder::take(const Place &place, int64_t sign) {
    const Want &want = wants_.of(place.alternative);
    for (const Chosen &one : place.chosen) {
        want.amounts(one.tasks, taken_.data());
        for (int64_t &amount : taken_) {
            amount *= sign;
        }
        timelines_.book(static_cast<size_t>(one.node), place.start, place.end, taken_.data());
    }
}

} // namespace bridge
