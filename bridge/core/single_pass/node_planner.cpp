// SPDX-License-Identifier: Apache-2.0
#include "single_pass/node_planner.hpp"

#include <algorithm>

#include "common/times.hpp"

namespace bridge {

NodePlanner::NodePlanner(const NodeProblem &problem)
    : problem_(problem), classes_(problem), demands_(problem, classes_),
      timelines_(problem.n_res + 1), choice_(problem.select, classes_, timelines_),
      chosen_(problem.n_jobs), recent_(problem.n_class, RecentStarts(problem.n_res + 3)),
      node_pool_(problem.n_nodes, FREE) {
    take_running();
    take_counters();
    open_.resize(problem.n_class);
    idle_.resize(problem.n_class);
    for (size_t job = 0; job < problem.n_jobs; ++job) {
        for (auto a = static_cast<size_t>(problem.alt_indptr[job]);
             problem.exclusive[job] && a < static_cast<size_t>(problem.alt_indptr[job + 1]); ++a) {
            pool_widths_.push_back(std::max<int64_t>(demands_.widths(a).smallest(), 1));
            pool_limits_.push_back(problem.alt_time_limit_s[a]);
        }
    }
    result_.start.assign(problem.n_jobs, UNPLANNED);
    result_.alternative.assign(problem.n_jobs, -1);
    result_.blocked_by.assign(problem.n_jobs, 0);
    result_.blocked_counter.assign(problem.n_jobs, -1);
    result_.fit_now.assign(problem.n_jobs, 0);
    result_.missed_start.assign(problem.n_jobs, NEVER);
}

void NodePlanner::take_running() {
    held_until_.assign(problem_.n_nodes, 0);
    for (size_t run = 0; run < problem_.n_run; ++run) {
        const int64_t end = std::max(problem_.run_end[run], problem_.now + 1);
        for (int64_t i = problem_.run_indptr[run]; i < problem_.run_indptr[run + 1]; ++i) {
            int64_t &until = held_until_[static_cast<size_t>(problem_.run_nodes[i])];
            until = std::max(until, end);
        }
    }
}

// Nodes that are only planned as counts need no timelines.
void NodePlanner::open_timelines() {
    if (timelines_open_) {
        return;
    }
    timelines_open_ = true;
    const size_t columns = problem_.n_res + 1;
    std::vector<std::vector<Timelines::Holder>> holders(problem_.n_nodes);
    for (size_t run = 0; run < problem_.n_run; ++run) {
        const int64_t end = std::max(problem_.run_end[run], problem_.now + 1);
        for (int64_t i = problem_.run_indptr[run]; i < problem_.run_indptr[run + 1]; ++i) {
            const int64_t *use = problem_.run_use + static_cast<size_t>(i) * problem_.n_res;
            std::vector<int64_t> taken(columns, 0);
            taken[0] = problem_.run_exclusive[run] ? WHOLE : 1;
            if (!problem_.run_exclusive[run]) {
                std::copy_n(use, problem_.n_res, taken.begin() + 1);
            }
            holders[static_cast<size_t>(problem_.run_nodes[i])].push_back({end, std::move(taken)});
        }
    }
    timelines_.begin(problem_.n_nodes);
    std::vector<int64_t> amounts(columns, WHOLE);
    free_now_.resize(problem_.n_nodes * columns);
    planned_later_.assign(problem_.n_nodes, 0);
    for (size_t node = 0; node < problem_.n_nodes; ++node) {
        std::copy_n(problem_.capacity + node * problem_.n_res, problem_.n_res, amounts.begin() + 1);
        timelines_.open(node, problem_.now, amounts.data(), holders[node]);
        std::copy_n(timelines_.first(node), columns, free_now_.data() + node * columns);
    }
}

void NodePlanner::take_counters() {
    counters_.resize(problem_.n_counters);
    for (size_t k = 0; k < problem_.n_counters; ++k) {
        std::vector<CountProfile::Holder> by_end;
        for (size_t run = 0; run < problem_.n_run; ++run) {
            const int64_t held = problem_.run_counter[run * problem_.n_counters + k];
            if (held > 0) {
                by_end.push_back({problem_.run_end[run], held});
            }
        }
        std::sort(by_end.begin(), by_end.end(),
                  [](const auto &a, const auto &b) { return a.end < b.end; });
        counters_[k].reset(problem_.now, problem_.counter_capacity[k], by_end);
    }
}

NodePlanResult NodePlanner::run() {
    for (size_t job = 0; job < problem_.n_jobs; ++job) {
        plan_job(job);
    }
    write_sets();
    return std::move(result_);
}

void NodePlanner::write_sets() {
    std::vector<int64_t> widths(problem_.n_jobs);
    for (size_t job = 0; job < problem_.n_jobs; ++job) {
        widths[job] = static_cast<int64_t>(chosen_[job].size());
    }
    for (const auto &pool : pools_) {
        for (size_t b = 0; pool && b < pool->bookings().size(); ++b) {
            widths[pool->bookings()[b].job] = pool->bookings()[b].width;
        }
    }
    result_.indptr.push_back(0);
    for (const int64_t width : widths) {
        result_.indptr.push_back(result_.indptr.back() + width);
    }
    result_.nodes = Buffer<int32_t>(static_cast<size_t>(result_.indptr.back()));
    result_.tasks = Buffer<int32_t>(static_cast<size_t>(result_.indptr.back()));
    for (const auto &pool : pools_) {
        if (pool) {
            write_pool(*pool);
        }
    }
    for (size_t job = 0; job < problem_.n_jobs; ++job) {
        auto at = static_cast<size_t>(result_.indptr[job]);
        for (const Chosen &one : chosen_[job]) {
            result_.nodes[at] = one.node;
            result_.tasks[at] = one.tasks;
            ++at;
        }
    }
}

void NodePlanner::plan_job(size_t job) {
    possible_.clear();
    const auto first = static_cast<size_t>(problem_.alt_indptr[job]);
    const auto last = static_cast<size_t>(problem_.alt_indptr[job + 1]);
    for (size_t a = first; a < last; ++a) {
        int32_t counter = -1;
        const Blocked verdict = demands_.verdict(a, job, &counter);
        if (verdict == Blocked::STARTS_NOW) {
            possible_.push_back(a);
        } else if (a == first) {
            result_.blocked_by[job] = static_cast<int8_t>(verdict);
            result_.blocked_counter[job] = counter;
        }
    }
    if (possible_.empty()) {
        result_.start[job] = NEVER;
        return;
    }
    result_.blocked_by[job] = 0;
    result_.blocked_counter[job] = -1;

    const std::vector<Option> options = options_of(possible_);
    const bool held_back = problem_.not_before[job] > problem_.now;
    std::vector<Look> &looks = looks_;
    looks.clear();
    for (const Option &option : options) {
        looks.push_back(look(job, option));
        if (looks.back().why == Blocked::STARTS_NOW && !held_back &&
            problem_.alt_latest[option.alternative] >= problem_.now) {
            start_now(job, option, looks.back());
            return;
        }
    }
    size_t reported = first_in_time(job, options);
    if (reported == options.size()) {
        miss(job, options, looks);
        return;
    }
    if (problem_.beside_depth[job] || reserved_ < problem_.depth) {
        if (!book_later(job, options, &reported)) {
            miss(job, options, looks);
            return;
        }
    }
    explain(job, looks[reported]);
}

// The first option for which the first second the job may start at is not too late.
size_t NodePlanner::first_in_time(size_t job, const std::vector<Option> &options) const {
    const int64_t first = std::max(problem_.now, problem_.not_before[job]);
    const auto in_time = [&](const Option &option) {
        return problem_.alt_latest[option.alternative] >= first;
    };
    return static_cast<size_t>(std::find_if(options.begin(), options.end(), in_time) -
                               options.begin());
}

// The job has no start: nothing ever ends, or the start would be too late.
void NodePlanner::miss(size_t job, const std::vector<Option> &options,
                       const std::vector<Look> &looks) {
    const int64_t first = std::max(problem_.now, problem_.not_before[job]);
    int64_t best = NEVER;
    for (size_t i = 0; i < options.size(); ++i) {
        const int64_t start = earliest(job, options[i], first, best - 1);
        if (start < best) {
            best = start;
            result_.alternative[job] = static_cast<int32_t>(
                options[i].alternative - static_cast<size_t>(problem_.alt_indptr[job]));
            result_.blocked_counter[job] =
                looks[i].why == Blocked::COUNTER ? counter_lacking_now(job) : -1;
        }
    }
    result_.start[job] = NEVER;
    result_.missed_start[job] = best;
    result_.blocked_by[job] =
        static_cast<int8_t>(best == NEVER ? Blocked::NEVER_FREED : Blocked::TOO_LATE);
}

void NodePlanner::start_now(size_t job, const Option &option, const Look &look) {
    result_.fit_now[job] = static_cast<int32_t>(look.fit);
    commit(job, option, problem_.now, look.width, look.candidates);
}

// Searches for the earliest start over all options; false if there is none.
bool NodePlanner::book_later(size_t job, const std::vector<Option> &options, size_t *reported) {
    const bool held_back = problem_.not_before[job] > problem_.now;
    const int64_t from = held_back ? problem_.not_before[job] : problem_.now + 1;
    int64_t best = NEVER;
    for (size_t i = 0; i < options.size(); ++i) {
        const int64_t latest = std::min(best - 1, problem_.alt_latest[options[i].alternative]);
        const int64_t start = from > latest ? NEVER : earliest(job, options[i], from, latest);
        if (start < best) {
            best = start;
            *reported = i;
        }
    }
    if (best == NEVER) {
        return false;
    }
    const Option &option = options[*reported];
    const size_t a = option.alternative;
    const NodeDemand &demand = demands_.of(a);
    const int64_t limit = problem_.alt_time_limit_s[a];
    reserved_ += problem_.beside_depth[job] ? 0 : 1;
    if (option.pool >= 0) {
        commit(job, option, best, pool_width(a), {});
        return true;
    }
    // If only the order matters, the first nodes in it are enough.
    const bool first_will_do = demand.plain() && problem_.select == Select::SEQUENTIAL;
    const auto enough = static_cast<size_t>(demands_.widths(a).smallest());
    std::vector<Candidate> candidates =
        candidates_at(demand, best, limit, first_will_do ? enough : SIZE_MAX);
    const int64_t width = choice_.width(demand, demands_.widths(a), candidates, false);
    commit(job, option, best, width, std::move(candidates));
    return true;
}

void NodePlanner::commit(size_t job, const Option &option, int64_t start, int64_t width,
                         std::vector<Candidate> candidates) {
    const size_t a = option.alternative;
    const int64_t end = end_of(start, problem_.alt_time_limit_s[a]);
    result_.start[job] = start;
    result_.alternative[job] =
        static_cast<int32_t>(a - static_cast<size_t>(problem_.alt_indptr[job]));
    for (size_t k = 0; k < problem_.n_counters; ++k) {
        const int64_t wanted = problem_.job_counter[job * problem_.n_counters + k];
        if (wanted > 0) {
            counters_[k].book(start, end, wanted);
        }
    }
    if (option.pool >= 0) {
        pools_[static_cast<size_t>(option.pool)]->book({job, a, start, end, width});
        return;
    }
    const NodeDemand &demand = demands_.of(a);
    chosen_[job] = choice_.choose(demand, width, std::move(candidates), start, end);
    book_nodes(demand, start, end, chosen_[job]);
}

void NodePlanner::book_nodes(const NodeDemand &demand, int64_t start, int64_t end,
                             const std::vector<Chosen> &chosen) {
    const size_t columns = timelines_.columns();
    std::vector<int64_t> taken(columns);
    for (const Chosen &one : chosen) {
        const auto node = static_cast<size_t>(one.node);
        demand.amounts(one.tasks, taken.data());
        timelines_.book(node, start, end, taken.data());
        planned_later_[node] |= start > problem_.now ? 1 : 0;
        if (start == problem_.now) {
            std::copy_n(timelines_.first(node), columns, free_now_.data() + node * columns);
        }
    }
}

void NodePlanner::explain(size_t job, const Look &look) {
    result_.fit_now[job] = static_cast<int32_t>(look.fit);
    const bool held_back = problem_.not_before[job] > problem_.now;
    const Blocked why = held_back ? Blocked::NOT_BEFORE : look.why;
    result_.blocked_by[job] = static_cast<int8_t>(why);
    if (why == Blocked::COUNTER) {
        result_.blocked_counter[job] = counter_lacking_now(job);
    }
}

NodePlanResult plan_nodes(const NodeProblem &problem) {
    return NodePlanner(problem).run();
}

} // namespace bridge
