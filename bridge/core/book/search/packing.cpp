// SPDX-License-Identifier: Apache-2.0
// Nodes for several groups of chunks at a given start.
//
// SCATTER, one chunk on a node: a bipartite b-matching. Nodes are taken in order, each if it
// augments the matching (a transversal matroid, so the first nodes in order are used). FREE: vector
// packing. Greedy first; then exactly, by a dynamic program over the nodes whose states are the
// chunks of each group placed so far. Dominated states are dropped, which is cheap while groups are
// few.
#include "book/search/choice.hpp"
#include "book/search/search.hpp"

#include <algorithm>
#include <numeric>

namespace bridge {
namespace {

constexpr size_t MAX_STATES = 400'000; // of one packing; beyond, the start is abandoned

// A node as a packing sees it.
struct Site {
    int32_t position;
    std::vector<int64_t> free;       // per column
    std::vector<int64_t> capacities; // per group, alone
};

struct Packing {
    std::vector<const int64_t *> demands; // per group
    std::vector<int64_t> counts;
    size_t columns;
    std::vector<Site> sites;
};

// How many chunks of a group fit into the free amounts.
int64_t fitting(const Packing &packing, size_t group, const std::vector<int64_t> &free,
                int64_t maximum) {
    const int64_t *want = packing.demands[group];
    for (size_t c = 0; c < packing.columns && maximum > 0; ++c) {
        if (want[c] > 0) {
            maximum = free[c] < want[c] ? 0 : std::min(maximum, free[c] / want[c]);
        }
    }
    return maximum;
}

void take(const Packing &packing, size_t group, int64_t chunks, std::vector<int64_t> &free) {
    for (size_t c = 0; c < packing.columns; ++c) {
        free[c] -= chunks * packing.demands[group][c];
    }
}

bool greedy(const Packing &packing, const std::vector<size_t> &dearest_first,
            std::vector<Placed> &placed) {
    std::vector<std::vector<int64_t>> free;
    for (const Site &site : packing.sites) {
        free.push_back(site.free);
    }
    for (const size_t g : dearest_first) {
        int64_t missing = packing.counts[g];
        for (size_t s = 0; s < packing.sites.size() && missing > 0; ++s) {
            const int64_t maximum = std::min(missing, packing.sites[s].capacities[g]);
            const int64_t chunks = fitting(packing, g, free[s], maximum);
            if (chunks > 0) {
                take(packing, g, chunks, free[s]);
                placed.push_back({packing.sites[s].position, static_cast<int32_t>(g),
                                  static_cast<int32_t>(chunks)});
                missing -= chunks;
            }
        }
        if (missing > 0) {
            placed.clear();
            return false;
        }
    }
    return true;
}

using Counts = std::vector<int32_t>; // chunks per group

// All maximal ways to fill one site.
void patterns_of(const Packing &packing, const Site &site, size_t group, std::vector<int64_t> &free,
                 Counts &chosen, std::vector<Counts> &patterns) {
    if (group + 1 == packing.counts.size()) {
        chosen[group] = static_cast<int32_t>(fitting(packing, group, free, site.capacities[group]));
        patterns.push_back(chosen);
        return;
    }
    const int64_t maximum = fitting(packing, group, free, site.capacities[group]);
    for (int64_t chunks = maximum; chunks >= 0; --chunks) {
        chosen[group] = static_cast<int32_t>(chunks);
        take(packing, group, chunks, free);
        patterns_of(packing, site, group + 1, free, chosen, patterns);
        take(packing, group, -chunks, free);
    }
}

bool covers(const Counts &a, const Counts &b) {
    for (size_t g = 0; g < a.size(); ++g) {
        if (a[g] < b[g]) {
            return false;
        }
    }
    return true;
}

// Drops dominated rows.
template <typename Row, typename Of> void keep_maximal(std::vector<Row> &rows, Of counts) {
    std::stable_sort(rows.begin(), rows.end(), [&](const Row &a, const Row &b) {
        return counts(a) > counts(b); // lexicographically: a row is dominated only by earlier ones
    });
    std::vector<Row> kept;
    for (Row &row : rows) {
        if (std::none_of(kept.begin(), kept.end(),
                         [&](const Row &k) { return covers(counts(k), counts(row)); })) {
            kept.push_back(std::move(row));
        }
    }
    rows = std::move(kept);
}

struct State {
    Counts placed;
    size_t parent; // in the arena
    size_t site;
};

// The exact search. Also false if abandoned.
bool every_way(const Packing &packing, std::vector<Placed> &placed, bool &given_up) {
    const size_t groups = packing.counts.size();
    Counts wanted(packing.counts.begin(), packing.counts.end());
    std::vector<std::vector<int64_t>> after(packing.sites.size() + 1,
                                            std::vector<int64_t>(groups, 0));
    for (size_t s = packing.sites.size(); s-- > 0;) {
        for (size_t g = 0; g < groups; ++g) {
            after[s][g] = after[s + 1][g] + packing.sites[s].capacities[g];
        }
    }
    std::vector<State> arena{{Counts(groups, 0), 0, 0}};
    std::vector<size_t> front{0};
    std::vector<Counts> patterns;
    for (size_t s = 0; s < packing.sites.size(); ++s) {
        const Site &site = packing.sites[s];
        if (s == 0 || site.free != packing.sites[s - 1].free ||
            site.capacities != packing.sites[s - 1].capacities) {
            patterns.clear();
            std::vector<int64_t> free(site.free);
            Counts chosen(groups, 0);
            patterns_of(packing, site, 0, free, chosen, patterns);
            keep_maximal(patterns, [](const Counts &c) -> const Counts & { return c; });
        }
        std::vector<State> next;
        for (const size_t from : front) {
            for (const Counts &pattern : patterns) {
                State state{arena[from].placed, from, s};
                bool hopeless = false;
                for (size_t g = 0; g < groups; ++g) {
                    state.placed[g] = std::min(wanted[g], state.placed[g] + pattern[g]);
                    hopeless = hopeless || state.placed[g] + after[s + 1][g] < wanted[g];
                }
                if (!hopeless) {
                    next.push_back(std::move(state));
                }
            }
            if (next.size() + arena.size() > MAX_STATES) {
                given_up = true;
                return false;
            }
        }
        keep_maximal(next, [](const State &state) -> const Counts & { return state.placed; });
        front.clear();
        for (State &state : next) {
            front.push_back(arena.size());
            arena.push_back(std::move(state));
            if (arena.back().placed != wanted) {
                continue;
            }
            for (size_t at = arena.size() - 1; at != 0; at = arena[at].parent) {
                for (size_t g = 0; g < groups; ++g) {
                    const int32_t chunks = arena[at].placed[g] - arena[arena[at].parent].placed[g];
                    if (chunks > 0) {
                        placed.push_back({packing.sites[arena[at].site].position,
                                          static_cast<int32_t>(g), chunks});
                    }
                }
            }
            return true;
        }
    }
    return false;
}

// At most one chunk on a node.
bool scatter(const Packing &packing, std::vector<Placed> &placed) {
    const size_t groups = packing.counts.size();
    std::vector<std::vector<size_t>> given(groups); // sites of each group
    const int64_t wanted =
        std::accumulate(packing.counts.begin(), packing.counts.end(), int64_t{0});
    int64_t matched = 0;
    for (size_t s = 0; s < packing.sites.size() && matched < wanted; ++s) {
        // Breadth first over groups: from those this site can serve, through sites that could serve
        // another one, to a group that still needs a chunk.
        std::vector<int64_t> came_from(groups, -2);
        std::vector<size_t> through(groups, 0);
        std::vector<size_t> reached;
        for (size_t g = 0; g < groups; ++g) {
            if (packing.sites[s].capacities[g] > 0) {
                came_from[g] = -1;
                reached.push_back(g);
            }
        }
        for (size_t i = 0; i < reached.size(); ++i) {
            const size_t g = reached[i];
            if (static_cast<int64_t>(given[g].size()) < packing.counts[g]) {
                size_t to = g;
                while (came_from[to] >= 0) {
                    const auto source = static_cast<size_t>(came_from[to]);
                    auto &sites = given[source];
                    sites.erase(std::find(sites.begin(), sites.end(), through[to]));
                    given[to].push_back(through[to]);
                    to = source;
                }
                given[to].push_back(s);
                ++matched;
                break;
            }
            for (const size_t site : given[g]) {
                for (size_t other = 0; other < groups; ++other) {
                    if (came_from[other] == -2 && packing.sites[site].capacities[other] > 0) {
                        came_from[other] = static_cast<int64_t>(g);
                        through[other] = site;
                        reached.push_back(other);
                    }
                }
            }
        }
    }
    if (matched < wanted) {
        return false;
    }
    for (size_t g = 0; g < groups; ++g) {
        for (const size_t site : given[g]) {
            placed.push_back({packing.sites[site].position, static_cast<int32_t>(g), 1});
        }
    }
    return true;
}

// Best fit, for groups whose chunks all need the same.
void sort_sites(const BookState &state, const Shape &shape, int64_t start, int64_t length,
                std::vector<Site> &sites) {
    std::vector<Seat> seats;
    for (const Site &site : sites) {
        const int64_t room = *std::max_element(site.capacities.begin(), site.capacities.end());
        seats.push_back({site.position, room});
    }
    sort_by_fit(state, shape, start, length, seats);
    std::vector<size_t> order(state.nodes.size());
    for (size_t i = 0; i < seats.size(); ++i) {
        order[static_cast<size_t>(seats[i].position)] = i;
    }
    std::sort(sites.begin(), sites.end(), [&](const Site &a, const Site &b) {
        return order[static_cast<size_t>(a.position)] < order[static_cast<size_t>(b.position)];
    });
}

} // namespace

bool BookSearch::map_groups(const Request &request, int64_t start, int64_t length,
                            std::vector<Placed> &placed) {
    const size_t groups = request.groups.size();
    Packing packing{{}, {}, state_.nodes.columns(), {}};
    for (const Group &group : request.sought) {
        packing.demands.push_back(state_.requests.shape(group.shape).want.data());
        packing.counts.push_back(group.count);
    }
    std::vector<int64_t> system(packing.columns, 0);
    for (size_t p = 0; p < state_.nodes.size(); ++p) {
        const int64_t *capacity = state_.nodes.capacity(p);
        Site site{static_cast<int32_t>(p), {}, std::vector<int64_t>(groups, 0)};
        bool any = false;
        for (size_t g = 0; g < groups; ++g) {
            const Group &sought = request.sought[g];
            if (state_.requests.may_use(sought.shape, static_cast<int32_t>(p))) {
                site.capacities[g] = room(sought, p, start, length, sought.count);
                any = any || site.capacities[g] > 0;
            }
        }
        for (size_t c = 0; c < packing.columns; ++c) {
            system[c] += capacity[c];
        }
        if (!any) {
            continue;
        }
        if (request.exclusive) {
            site.free.assign(capacity, capacity + packing.columns);
        } else {
            site.free.resize(packing.columns);
            state_.lines.minimum(p, start, end_of(start, length), site.free.data());
        }
        packing.sites.push_back(std::move(site));
    }
    placed.clear();
    bool done = false;
    const Shape &first = state_.requests.shape(request.sought.front().shape);
    const bool alike =
        std::all_of(request.sought.begin(), request.sought.end(), [&](const Group &group) {
            return state_.requests.shape(group.shape).want == first.want;
        });
    if (state_.nodes.best_fit() && alike) {
        sort_sites(state_, first, start, length, packing.sites);
    }
    if (request.arrangement == Arrangement::SCATTER) {
        done = scatter(packing, placed);
    } else {
        std::vector<size_t> dearest_first(groups);
        std::iota(dearest_first.begin(), dearest_first.end(), size_t{0});
        const auto share = [&](size_t g) {
            double maximum = 0;
            for (size_t c = 0; c < packing.columns; ++c) {
                if (system[c] > 0) {
                    maximum = std::max(maximum, static_cast<double>(packing.demands[g][c]) /
                                                    static_cast<double>(system[c]));
                }
            }
            return maximum;
        };
        std::stable_sort(dearest_first.begin(), dearest_first.end(),
                         [&](size_t a, size_t b) { return share(a) > share(b); });
        bool given_up = false;
        done = greedy(packing, dearest_first, placed) || every_way(packing, placed, given_up);
        given_up_ += given_up ? 1 : 0;
    }
    std::sort(placed.begin(), placed.end(), [](const Placed &a, const Placed &b) {
        return a.position != b.position ? a.position < b.position : a.group < b.group;
    });
    return done;
}

} // namespace bridge
