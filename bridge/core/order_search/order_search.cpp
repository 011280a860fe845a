// SPDX-License-Identifier: Apache-2.0
#include "order_search/order_search.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "common/times.hpp"
#include "order_search/bound.hpp"

namespace bridge {
namespace {

constexpr size_t MAX_EXHAUSTED = 7; // units behind the lead; 5,040 orders
constexpr uint64_t NEAR = 6;        // positions
constexpr int64_t STEPS_BETWEEN_LOOKS = 20'000;
constexpr Cost NO_LIMIT = Cost{1} << 126;
constexpr Cost BREACH = Cost{1} << 108; // a start after the job's latest one
constexpr int64_t MAX_REPAIRS = 40;     // of one order of the family
constexpr Cost MISS = Cost{1} << 100;   // a job without a start that could have one

// The cost of a wait of so many seconds, by multiplications and roots alone: these are rounded in
// the same way on every machine.
double raised(double wait, int64_t halves) {
    const double hours = wait / HOUR;
    double power = halves % 2 == 0 ? 1 : std::sqrt(hours);
    for (int64_t whole = halves / 2; whole > 0; --whole) {
        power *= hours;
    }
    return HOUR * power;
}

} // namespace

OrderSearch::OrderSearch(const NodeProblem &problem, const OrderJobs &jobs,
                         const OrderBudget &budget)
    : problem_(problem), jobs_(jobs), budget_(budget), decoder_(make_decoder(problem)),
      min_start_(problem.n_jobs, NEVER), min_cost_(problem.n_jobs, 0),
      kept_(jobs.orders, jobs.orders + jobs.n_units), start_(problem.n_jobs, NEVER),
      excess_(jobs.n_units + 1, 0), tried_start_(problem.n_jobs),
      tried_excess_(jobs.n_units + 1, 0), random_(budget.seed) {
    stack_.reserve(jobs.n_units);
}

Cost OrderSearch::cost_of(size_t job, int64_t start) const {
    if (start == NEVER) {
        return MISS;
    }
    const int64_t late = std::max<int64_t>(start - jobs_.due[job], 0);
    if (jobs_.halves == 2) {
        return Cost{jobs_.weight[job]} * late;
    }
    const auto waited = static_cast<double>(jobs_.waited[job]);
    const double more =
        raised(waited + static_cast<double>(late), jobs_.halves) - raised(waited, jobs_.halves);
    return static_cast<Cost>(static_cast<double>(jobs_.weight[job]) * more);
}

// Whether a start is later than the job's latest one, which it could keep directly behind the lead.
bool OrderSearch::breaks(size_t job, int64_t start) const {
    return start > jobs_.latest[job] && start > min_start_[job];
}

// A job that has no start even directly behind the lead costs nothing.
Cost OrderSearch::excess_of(size_t job, int64_t start) const {
    if (min_start_[job] == NEVER) {
        return 0;
    }
    return cost_of(job, start) - min_cost_[job] + (breaks(job, start) ? BREACH : 0);
}

// SplitMix64, reduced to the range by multiplication.
uint64_t OrderSearch::below(uint64_t n) {
    uint64_t z = random_ += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    z ^= z >> 31;
    return static_cast<uint64_t>((static_cast<unsigned __int128>(z) * n) >> 64);
}

bool OrderSearch::spent() {
    const int64_t steps = decoder_->steps();
    out_of_budget_ = out_of_budget_ || (budget_.effort > 0 && booked_ >= budget_.effort) ||
                     (budget_.steps > 0 && steps >= budget_.steps);
    if (!out_of_budget_ && budget_.alarm != nullptr && steps - looked_ >= STEPS_BETWEEN_LOOKS) {
        looked_ = steps;
        out_of_budget_ = budget_.alarm->rung();
    }
    return out_of_budget_;
}

void OrderSearch::find_alike() {
    std::map<std::vector<int64_t>, uint32_t> known;
    std::vector<int64_t> key;
    for (size_t unit = 0; unit < n(); ++unit) {
        const auto job = static_cast<size_t>(jobs_.unit_indptr[unit]);
        key.assign({jobs_.unit_indptr[unit + 1] - jobs_.unit_indptr[unit], jobs_.weight[job],
                    jobs_.due[job], jobs_.latest[job], jobs_.waited[job], problem_.tasks[job],
                    problem_.max_tasks_per_node[job], problem_.exclusive[job],
                    problem_.not_before[job], problem_.width_rule[job], problem_.required[job]});
        for (auto a = static_cast<size_t>(problem_.alt_indptr[job]);
             a < static_cast<size_t>(problem_.alt_indptr[job + 1]); ++a) {
            key.insert(key.end(), {problem_.alt_class[a], problem_.alt_time_limit_s[a],
                                   problem_.alt_min_nodes[a], problem_.alt_max_nodes[a],
                                   problem_.alt_latest[a]});
        }
        const auto add_row = [&](const int64_t *rows, size_t columns) {
            key.insert(key.end(), rows + job * columns, rows + (job + 1) * columns);
        };
        add_row(problem_.per_node, problem_.n_res);
        add_row(problem_.per_task, problem_.n_res);
        add_row(problem_.job_counter, problem_.n_counters);
        alike_.push_back(known.try_emplace(key, static_cast<uint32_t>(known.size())).first->second);
    }
}

// Books the lead permanently, and finds the least cost of each other job behind it.
void OrderSearch::take_lead() {
    for (size_t k = 0; k < jobs_.lead; ++k) {
        const int32_t unit = kept_[k];
        for (auto job = static_cast<size_t>(jobs_.unit_indptr[unit]);
             job < static_cast<size_t>(jobs_.unit_indptr[unit + 1]); ++job) {
            start_[job] = min_start_[job] = decoder_->place(job);
            decoder_->keep(job);
            min_cost_[job] = start_[job] == NEVER ? 0 : cost_of(job, start_[job]);
            ++booked_;
        }
        stack_.push_back(
            {unit, static_cast<int32_t>(jobs_.unit_indptr[unit + 1] - jobs_.unit_indptr[unit])});
    }
    same_ = jobs_.lead;
    decoder_->settle();
    for (size_t k = jobs_.lead; k < n(); ++k) {
        const int32_t unit = kept_[k];
        const auto first = static_cast<size_t>(jobs_.unit_indptr[unit]);
        const auto last = static_cast<size_t>(jobs_.unit_indptr[unit + 1]);
        for (size_t job = first; job < last; ++job) {
            min_start_[job] = decoder_->minimum(job);
            min_cost_[job] = min_start_[job] == NEVER ? 0 : cost_of(job, min_start_[job]);
            ++booked_;
        }
    }
}

// False if the excess is beyond the limit; the bookings then stay.
bool OrderSearch::book_unit(int32_t unit, Cost &excess, Cost limit, bool &moved) {
    stack_.push_back({unit, 0});
    const auto first = static_cast<size_t>(jobs_.unit_indptr[unit]);
    const auto last = static_cast<size_t>(jobs_.unit_indptr[unit + 1]);
    for (size_t job = first; job < last; ++job) {
        tried_start_[job] = decoder_->place(job);
        ++booked_;
        ++stack_.back().jobs;
        moved = moved || !decoder_->as_kept(job);
        excess += excess_of(job, tried_start_[job]);
        if (excess > limit || (limit != NO_LIMIT && spent())) {
            if (excess > limit && breaks(job, tried_start_[job])) {
                breach_ = stack_.size() - 1;
            }
            return false;
        }
    }
    return true;
}

void OrderSearch::unbook_unit() {
    for (int32_t job = 0; job < stack_.back().jobs; ++job) {
        decoder_->undo();
    }
    stack_.pop_back();
    same_ = std::min(same_, stack_.size());
}

// Books the first units of the kept order, and nothing else.
void OrderSearch::reach(size_t position) {
    while (stack_.size() > std::min(same_, position)) {
        unbook_unit();
    }
    for (; stack_.size() < position; ++same_) {
        const int32_t unit = kept_[stack_.size()];
        stack_.push_back(
            {unit, static_cast<int32_t>(jobs_.unit_indptr[unit + 1] - jobs_.unit_indptr[unit])});
        for (int64_t job = jobs_.unit_indptr[unit]; job < jobs_.unit_indptr[unit + 1]; ++job) {
            decoder_->put_back(static_cast<size_t>(job));
        }
    }
}

// Decodes the trial, which differs from the kept order at most in [from, to], and keeps it if its
// excess is within the limit.
bool OrderSearch::decode(size_t from, size_t to, Cost limit) {
    reach(from);
    ++decodes_;
    Cost excess = excess_[from];
    bool moved = false;
    for (size_t k = from; k < n(); ++k) {
        if (!book_unit(k <= to ? trial_[k - from] : kept_[k], excess, limit, moved)) {
            return false;
        }
        tried_excess_[k + 1] = excess;
        if (k == to && !moved) {
            keep(from, k + 1);
            return true;
        }
    }
    keep(from, n());
    return true;
}

// Keeps the trial at the positions [from, to), all of which are booked.
void OrderSearch::keep(size_t from, size_t to) {
    for (size_t k = from; k < to; ++k) {
        excess_[k + 1] = tried_excess_[k + 1];
        const int32_t unit = kept_[k] = stack_[k].unit;
        for (auto job = static_cast<size_t>(jobs_.unit_indptr[unit]);
             job < static_cast<size_t>(jobs_.unit_indptr[unit + 1]); ++job) {
            start_[job] = tried_start_[job];
            decoder_->keep(job);
        }
    }
    same_ = to;
}

// One order of the family: kept if it costs less.
bool OrderSearch::try_order(const int32_t *order) {
    const auto differs = std::mismatch(kept_.begin(), kept_.end(), order).first;
    if (differs == kept_.end()) {
        return false;
    }
    auto from = static_cast<size_t>(differs - kept_.begin());
    trial_.assign(order + from, order + n());
    std::vector<int32_t> units(order, order + n());
    for (int64_t repair = 0;; ++repair) {
        breach_ = SIZE_MAX;
        if (decode(from, n() - 1, excess_.back() - 1)) {
            return true;
        }
        if (breach_ == SIZE_MAX || breach_ == jobs_.lead || repair == MAX_REPAIRS || spent()) {
            return false;
        }
        // Half way to the lead each time, so that most of the order remains.
        const size_t to = jobs_.lead + (breach_ - jobs_.lead) / 2;
        std::rotate(units.begin() + static_cast<std::ptrdiff_t>(to),
                    units.begin() + static_cast<std::ptrdiff_t>(breach_),
                    units.begin() + static_cast<std::ptrdiff_t>(breach_ + 1));
        const auto now = std::mismatch(kept_.begin(), kept_.end(), units.begin()).first;
        if (now == kept_.end()) {
            return false;
        }
        from = static_cast<size_t>(now - kept_.begin());
        trial_.assign(units.begin() + static_cast<std::ptrdiff_t>(from), units.end());
    }
}

// Changes the order at random; kept if it costs no more.
bool OrderSearch::change() {
    const uint64_t movable = n() - jobs_.lead;
    const bool insert = below(2) == 0;
    uint64_t a = below(movable);
    uint64_t b = 0;
    if (below(2) == 0) {
        const uint64_t distance = 1 + below(std::min(NEAR, movable - 1));
        b = below(2) == 0 && a >= distance ? a - distance : a + distance;
        b = b < movable ? b : a - std::min(a, distance);
    } else {
        b = below(movable - 1);
        b += b >= a ? 1 : 0;
    }
    if (a == b) {
        return false;
    }
    const size_t low = jobs_.lead + std::min(a, b);
    const size_t high = jobs_.lead + std::max(a, b);
    const auto first = kept_.begin() + static_cast<std::ptrdiff_t>(low);
    const auto last = kept_.begin() + static_cast<std::ptrdiff_t>(high);
    if (alike_[static_cast<size_t>(*first)] == alike_[static_cast<size_t>(*last)]) {
        return false;
    }
    trial_.assign(first, last + 1);
    if (!insert) {
        std::swap(trial_.front(), trial_.back());
    } else if (a < b) {
        std::rotate(trial_.begin(), trial_.begin() + 1, trial_.end());
    } else {
        std::rotate(trial_.begin(), trial_.end() - 1, trial_.end());
    }
    return decode(low, high, excess_.back());
}

bool OrderSearch::met(double bound) const {
    double minimum = 0;
    for (size_t job = 0; job < problem_.n_jobs; ++job) {
        minimum += static_cast<double>(min_cost_[job]);
    }
    return excess_.back() == 0 || static_cast<double>(excess_.back()) + minimum <= bound;
}

Stopped OrderSearch::improve(double bound) {
    const auto patience = budget_.patience * static_cast<int64_t>(n() - jobs_.lead);
    for (int64_t since = 0; since < patience; ++since) {
        if (spent()) {
            return Stopped::BUDGET;
        }
        const Cost before = excess_.back();
        change();
        if (excess_.back() < before) {
            since = 0;
            if (met(bound)) {
                return Stopped::BOUND;
            }
        }
    }
    return out_of_budget_ ? Stopped::BUDGET : Stopped::PATIENCE;
}

// Every order of the remaining units, behind those of `path`.
void OrderSearch::exhaust(std::vector<int32_t> &path, uint64_t left, Cost excess) {
    if (left == 0) {
        best_path_ = path;
        best_excess_ = excess;
        return;
    }
    uint64_t seen = 0; // by the first of those that are alike
    for (size_t k = 0; k < n() - jobs_.lead; ++k) {
        if ((left >> k & 1) == 0 || spent()) {
            continue;
        }
        const int32_t unit = first_order_[jobs_.lead + k];
        bool again = false;
        for (size_t other = 0; other < k; ++other) {
            again |= (seen >> other & 1) != 0 &&
                     alike_[static_cast<size_t>(first_order_[jobs_.lead + other])] ==
                         alike_[static_cast<size_t>(unit)];
        }
        seen |= uint64_t{1} << k;
        if (again) {
            continue;
        }
        Cost with = excess;
        bool moved = false;
        if (book_unit(unit, with, best_excess_ - 1, moved)) {
            path.push_back(unit);
            exhaust(path, left & ~(uint64_t{1} << k), with);
            path.pop_back();
        }
        unbook_unit();
    }
}

OrderFound OrderSearch::run() {
    find_alike();
    take_lead();
    OrderFound found;
    found.decoding = decoder_->kind();
    found.stopped = Stopped::EXHAUSTED;
    found.bound = 0;
    first_order_ = kept_;
    const auto total = [&] {
        double sum = static_cast<double>(excess_.back());
        for (size_t job = 0; job < problem_.n_jobs; ++job) {
            sum += static_cast<double>(min_cost_[job]);
        }
        return sum;
    };
    trial_.assign(kept_.begin() + static_cast<std::ptrdiff_t>(jobs_.lead), kept_.end());
    if (!trial_.empty()) {
        decode(jobs_.lead, n() - 1, NO_LIMIT);
    }
    found.given_cost = total();
    const size_t movable = n() - jobs_.lead;
    const bool trivial = movable < 2 || excess_.back() == 0;
    for (size_t order = 1; !trivial && order < jobs_.n_orders && !spent(); ++order) {
        try_order(jobs_.orders + order * n());
    }
    found.family_cost = total();
    if (trivial || excess_.back() == 0) {
        found.stopped = movable < 2 ? Stopped::EXHAUSTED : Stopped::BOUND;
        found.bound = total();
    } else {
        found.bound = order_bound(problem_, jobs_, min_start_, min_cost_, start_, total());
        if (met(found.bound)) {
            found.stopped = Stopped::BOUND;
        } else if (movable <= MAX_EXHAUSTED) {
            reach(jobs_.lead);
            std::vector<int32_t> path;
            best_excess_ = excess_.back();
            exhaust(path, (uint64_t{1} << movable) - 1, excess_[jobs_.lead]);
            if (!best_path_.empty()) {
                trial_ = best_path_;
                decode(jobs_.lead, n() - 1, NO_LIMIT);
            }
            found.stopped = out_of_budget_ ? Stopped::BUDGET : Stopped::EXHAUSTED;
        } else {
            found.stopped = improve(found.bound);
        }
    }
    found.order = kept_;
    found.start = start_;
    found.cost = total();
    found.bound = std::min(found.bound, found.cost);
    found.decodes = decodes_;
    found.booked = booked_;
    found.steps = decoder_->steps();
    return found;
}

OrderFound search_orders(const NodeProblem &problem, const OrderJobs &jobs,
                         const OrderBudget &budget) {
    return OrderSearch(problem, jobs, budget).run();
}

} // namespace bridge
