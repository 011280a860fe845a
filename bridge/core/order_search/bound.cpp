// SPDX-License-Identifier: Apache-2.0
#include "order_search/bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/times.hpp"
#include "order_search/order_search.hpp"
#include "single_pass/node_classes.hpp"
#include "single_pass/widths.hpp"

namespace bridge {
namespace {

constexpr size_t BUCKETS = 48;
constexpr size_t STEPS = 16;
constexpr double WORK = 600e3;   // job-bucket pairs visited, over all steps
constexpr double CAUTION = 1e-9; // of the bound, for rounding

// A job as one resource sees it; times from now.
struct RelaxedJob {
    double weight;
    double due;
    double minimum; // its earliest start
    double length;  // the shortest possible
    double amount;  // the least it takes
    bool fixed;     // it starts at `minimum`
};

// Prices by bucket, [edge_[b], edge_[b + 1]); 0 after the last.
class LagrangianBound {
  public:
    LagrangianBound(std::vector<RelaxedJob> relaxed, std::vector<double> edges,
                    std::vector<double> capacity)
        : jobs_(std::move(relaxed)), edge_(std::move(edges)), capacity_(std::move(capacity)),
          price_(capacity_.size(), 0), used_(capacity_.size(), 0) {}

    void begin_with_fluid_prices();

    // The bound at the present prices; records the use of each bucket at these.
    double bound();

    // Raises the price of oversubscribed buckets and lowers that of undersubscribed ones.
    void step(double gap);

  private:
    std::vector<RelaxedJob> jobs_;
    std::vector<double> edge_;
    std::vector<double> capacity_; // by bucket: amount times seconds
    std::vector<double> price_;
    std::vector<double> used_;
    std::vector<double> sum_; // of price times seconds, up to each edge

    size_t bucket_at(double time) const {
        return static_cast<size_t>(std::upper_bound(edge_.begin(), edge_.end(), time) -
                                   edge_.begin()) -
               1;
    }
    double spent_until(double time, size_t hint) const {
        if (hint >= price_.size()) {
            return sum_.back();
        }
        return sum_[hint] + price_[hint] * (time - edge_[hint]);
    }
    double worth(const RelaxedJob &job, double start, size_t from, size_t to) const {
        return job.weight * std::max(start - job.due, 0.0) +
               job.amount * (spent_until(start + job.length, to) - spent_until(start, from));
    }
    double best_start(const RelaxedJob &job, double *start) const;
    void use(const RelaxedJob &job, double start);
};

// Fluid jobs are served one after the other with all capacity; the price falls by a job's cost per
// work while it is served, and is zero once all are.
void LagrangianBound::begin_with_fluid_prices() {
    struct Served {
        double ratio;
        double work;
    };
    std::vector<Served> order;
    for (const RelaxedJob &job : jobs_) {
        if (job.amount > 0 && !job.fixed) {
            const double work = job.amount * job.length;
            order.push_back({job.weight / work, work});
        }
    }
    std::sort(order.begin(), order.end(),
              [](const Served &a, const Served &b) { return a.ratio > b.ratio; });
    std::vector<double> until(order.size(), edge_.back()); // when each has been served
    size_t bucket = 0;
    double left = capacity_[0];
    for (size_t k = 0; k < order.size() && bucket < capacity_.size(); ++k) {
        double work = order[k].work;
        while (work > left && ++bucket < capacity_.size()) {
            work -= left;
            left = capacity_[bucket];
        }
        if (bucket < capacity_.size()) {
            left -= work;
            const double share = capacity_[bucket] > 0 ? 1 - left / capacity_[bucket] : 1;
            until[k] = edge_[bucket] + share * (edge_[bucket + 1] - edge_[bucket]);
        }
    }
    std::vector<double> price(order.size() + 1, 0); // when k jobs have been served
    for (size_t k = order.size(); k-- > 0;) {
        const double before = k > 0 ? until[k - 1] : 0;
        price[k] = price[k + 1] + order[k].ratio * (until[k] - before);
    }
    size_t k = 0;
    for (size_t b = 0; b < price_.size(); ++b) {
        const double middle = (edge_[b] + edge_[b + 1]) / 2;
        while (k < order.size() && until[k] < middle) {
            ++k;
        }
        price_[b] = k < order.size() ? price[k + 1] + order[k].ratio * (until[k] - middle) : 0;
    }
}

double LagrangianBound::best_start(const RelaxedJob &job, double *start) const {
    double best = std::numeric_limits<double>::infinity();
    const auto offer = [&](double at) {
        const double worth_there = worth(job, at, bucket_at(at), bucket_at(at + job.length));
        if (worth_there < best) {
            best = worth_there;
            *start = at;
        }
    };
    offer(job.minimum);
    if (job.fixed) {
        return best;
    }
    if (job.due > job.minimum) {
        offer(job.due);
    }
    // Between bends of the price's sum, at either end of the job, its worth is linear.
    const size_t n = edge_.size();
    size_t end = bucket_at(job.minimum + job.length);
    for (size_t b = bucket_at(job.minimum) + 1; b < n; ++b) {
        while (end + 1 < n && edge_[end + 1] <= edge_[b] + job.length) {
            ++end;
        }
        const double value = worth(job, edge_[b], b, end);
        if (value < best) {
            best = value;
            *start = edge_[b];
        }
        if (job.weight * std::max(edge_[b] - job.due, 0.0) >= best) {
            break;
        }
    }
    size_t begin = bucket_at(job.minimum);
    for (size_t e = bucket_at(job.minimum + job.length) + 1; e < n; ++e) {
        const double at = edge_[e] - job.length;
        while (begin + 1 < n && edge_[begin + 1] <= at) {
            ++begin;
        }
        const double value = worth(job, at, begin, e);
        if (value < best) {
            best = value;
            *start = at;
        }
        if (job.weight * std::max(at - job.due, 0.0) >= best) {
            break;
        }
    }
    return best;
}

void LagrangianBound::use(const RelaxedJob &job, double start) {
    const double end = std::min(start + job.length, edge_.back());
    for (size_t b = bucket_at(start); b < price_.size() && edge_[b] < end; ++b) {
        used_[b] += job.amount * (std::min(end, edge_[b + 1]) - std::max(start, edge_[b]));
    }
}

double LagrangianBound::bound() {
    sum_.assign(1, 0);
    double income = 0;
    for (size_t b = 0; b < price_.size(); ++b) {
        sum_.push_back(sum_.back() + price_[b] * (edge_[b + 1] - edge_[b]));
        income += price_[b] * capacity_[b];
        used_[b] = 0;
    }
    double sum = 0;
    for (const RelaxedJob &job : jobs_) {
        double start = job.minimum;
        sum += best_start(job, &start);
        use(job, start);
    }
    return sum - income - CAUTION * (sum + income);
}

void LagrangianBound::step(double gap) {
    double norm = 0;
    for (size_t b = 0; b < price_.size(); ++b) {
        const double off = used_[b] - capacity_[b];
        norm += price_[b] > 0 || off > 0 ? off * off / (edge_[b + 1] - edge_[b]) : 0;
    }
    for (size_t b = 0; norm > 0 && b < price_.size(); ++b) {
        const double off = used_[b] - capacity_[b];
        price_[b] = std::max(0.0, price_[b] + gap / norm * off / (edge_[b + 1] - edge_[b]));
    }
}

// The window's jobs and what they take of each resource; the last column counts whole nodes.
class Resources {
  public:
    explicit Resources(const NodeProblem &problem) : problem_(problem) {
        inside_.assign(problem.n_nodes, false);
        for (int64_t a = 0; a < problem.alt_indptr[problem.n_jobs]; ++a) {
            const uint64_t *words =
                problem.class_nodes + static_cast<size_t>(problem.alt_class[a]) * problem.n_words;
            for_each_node(words, problem.n_words,
                          [&](int32_t node) { inside_[static_cast<size_t>(node)] = true; });
        }
    }

    size_t columns() const { return problem_.n_res + 1; }

    // The least a job takes of a resource.
    double amount(size_t job, size_t column) const {
        const bool whole = column == problem_.n_res;
        if (whole && !problem_.exclusive[job]) {
            return 0;
        }
        double minimum = std::numeric_limits<double>::infinity();
        for (auto a = static_cast<size_t>(problem_.alt_indptr[job]);
             a < static_cast<size_t>(problem_.alt_indptr[job + 1]); ++a) {
            const Widths widths{problem_.alt_min_nodes[a], problem_.alt_max_nodes[a],
                                static_cast<WidthRule>(problem_.width_rule[job])};
            const auto nodes = static_cast<double>(std::max<int64_t>(widths.smallest(), 0));
            if (whole) {
                minimum = std::min(minimum, nodes);
                continue;
            }
            const size_t at = job * problem_.n_res + column;
            const auto wanted = nodes * static_cast<double>(problem_.per_node[at]) +
                                static_cast<double>(problem_.tasks[job]) *
                                    static_cast<double>(problem_.per_task[at]);
            const double held =
                problem_.exclusive[job] ? nodes * smallest_node(a, column) : double{0};
            minimum = std::min(minimum, std::max(wanted, held));
        }
        return minimum;
    }

    // The free amounts of a resource as steps: the increase at each instant. Times from now.
    std::vector<std::pair<double, double>> steps(size_t column) const {
        const bool whole = column == problem_.n_res;
        const size_t n_res = problem_.n_res;
        std::vector<std::pair<double, double>> found;
        double all = 0;
        std::vector<double> size(problem_.n_nodes, 0);
        for (size_t node = 0; node < problem_.n_nodes; ++node) {
            size[node] = !inside_[node] ? 0
                         : whole        ? 1
                                 : static_cast<double>(problem_.capacity[node * n_res + column]);
            all += size[node];
        }
        found.emplace_back(0, all);
        std::vector<int64_t> held_until(whole ? problem_.n_nodes : 0, 0);
        for (size_t run = 0; run < problem_.n_run; ++run) {
            const int64_t end = std::max(problem_.run_end[run], problem_.now + 1);
            for (int64_t i = problem_.run_indptr[run]; i < problem_.run_indptr[run + 1]; ++i) {
                const auto node = static_cast<size_t>(problem_.run_nodes[i]);
                if (!inside_[node]) {
                    continue;
                }
                if (whole) {
                    held_until[node] = std::max(held_until[node], end);
                    continue;
                }
                const double taken =
                    problem_.run_exclusive[run]
                        ? size[node]
                        : static_cast<double>(
                              problem_.run_use[static_cast<size_t>(i) * n_res + column]);
                add(found, end, taken);
            }
        }
        for (size_t node = 0; node < held_until.size(); ++node) {
            if (held_until[node] > 0) {
                add(found, held_until[node], 1);
            }
        }
        std::sort(found.begin() + 1, found.end());
        return found;
    }

  private:
    const NodeProblem &problem_;
    std::vector<bool> inside_;

    void add(std::vector<std::pair<double, double>> &steps, int64_t end, double taken) const {
        if (taken > 0) {
            steps.front().second -= taken;
            if (end != NEVER) {
                steps.emplace_back(static_cast<double>(end - problem_.now), taken);
            }
        }
    }
    double smallest_node(size_t alternative, size_t column) const {
        const uint64_t *words =
            problem_.class_nodes +
            static_cast<size_t>(problem_.alt_class[alternative]) * problem_.n_words;
        int64_t minimum = std::numeric_limits<int64_t>::max();
        for_each_node(words, problem_.n_words, [&](int32_t node) {
            minimum = std::min(
                minimum, problem_.capacity[static_cast<size_t>(node) * problem_.n_res + column]);
        });
        return minimum == std::numeric_limits<int64_t>::max() ? 0 : static_cast<double>(minimum);
    }
};

// Evenly chosen instants at which something begins or ends, from 0 on.
std::vector<double> edges_of(const std::vector<RelaxedJob> &relaxed,
                             const std::vector<double> &starts,
                             const std::vector<std::pair<double, double>> &steps) {
    std::vector<double> all{0};
    for (size_t i = 0; i < relaxed.size(); ++i) {
        all.push_back(starts[i]);
        all.push_back(starts[i] + relaxed[i].length);
    }
    const double horizon = *std::max_element(all.begin(), all.end());
    for (const auto &step : steps) {
        if (step.first < horizon) {
            all.push_back(step.first);
        }
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    if (all.size() <= BUCKETS + 1) {
        return all;
    }
    std::vector<double> chosen;
    for (size_t i = 0; i <= BUCKETS; ++i) {
        chosen.push_back(all[i * (all.size() - 1) / BUCKETS]);
    }
    return chosen;
}

std::vector<double> capacity_of(const std::vector<double> &edges,
                                const std::vector<std::pair<double, double>> &steps) {
    std::vector<double> capacity(edges.size() - 1, 0);
    for (const auto &[time, more] : steps) {
        for (size_t b = 0; b < capacity.size(); ++b) {
            capacity[b] += more * std::max(0.0, edges[b + 1] - std::max(edges[b], time));
        }
    }
    return capacity;
}

} // namespace

double order_bound(const NodeProblem &problem, const OrderJobs &jobs,
                   const std::vector<int64_t> &min_start, const std::vector<Cost> &min_cost,
                   const std::vector<int64_t> &start, double cost) {
    std::vector<bool> leads(problem.n_jobs, false);
    for (size_t k = 0; k < jobs.lead; ++k) {
        const int32_t unit = jobs.orders[k];
        for (int64_t job = jobs.unit_indptr[unit]; job < jobs.unit_indptr[unit + 1]; ++job) {
            leads[static_cast<size_t>(job)] = true;
        }
    }
    std::vector<size_t> counted;
    std::vector<RelaxedJob> relaxed;
    std::vector<double> starts;
    double alone = 0;  // every job at its least start
    double beyond = 0; // what is not in the tangents
    const auto from_now = [&](int64_t time) { return static_cast<double>(time - problem.now); };
    for (size_t job = 0; job < problem.n_jobs; ++job) {
        if (min_start[job] == NEVER || start[job] == NEVER) {
            continue;
        }
        int64_t length = NEVER;
        for (int64_t a = problem.alt_indptr[job]; a < problem.alt_indptr[job + 1]; ++a) {
            length = std::min(length, problem.alt_time_limit_s[a]);
        }
        counted.push_back(job);
        starts.push_back(from_now(start[job]));
        const double minimum = from_now(leads[job] ? start[job] : min_start[job]);
        auto weight = static_cast<double>(jobs.weight[job]);
        double due = from_now(jobs.due[job]);
        if (jobs.halves > 2) { // a convex cost lies above its tangent at the least start
            const double wait =
                static_cast<double>(jobs.waited[job]) + std::max(minimum - due, 0.0);
            weight *= static_cast<double>(jobs.halves) / 2 *
                      std::pow(wait / HOUR, static_cast<double>(jobs.halves) / 2 - 1);
            due = minimum;
            beyond += static_cast<double>(min_cost[job]);
        }
        relaxed.push_back({weight, due, minimum, static_cast<double>(length), 0, leads[job]});
        alone += relaxed.back().weight * std::max(relaxed.back().minimum - relaxed.back().due, 0.0);
    }
    double best = alone - CAUTION * alone;
    const Resources resources(problem);
    for (size_t column = 0; !relaxed.empty() && column < resources.columns(); ++column) {
        double wanted = 0;
        for (size_t i = 0; i < relaxed.size(); ++i) {
            relaxed[i].amount = resources.amount(counted[i], column);
            wanted += relaxed[i].amount;
        }
        if (wanted == 0) {
            continue;
        }
        const auto steps = resources.steps(column);
        std::vector<double> edges = edges_of(relaxed, starts, steps);
        if (edges.size() < 2) {
            continue;
        }
        std::vector<double> capacity = capacity_of(edges, steps);
        LagrangianBound relaxation(relaxed, std::move(edges), std::move(capacity));
        relaxation.begin_with_fluid_prices();
        const double pairs = 2.0 * BUCKETS * static_cast<double>(relaxed.size());
        const auto maximum = static_cast<size_t>(std::clamp(WORK / pairs, 1.0, double{STEPS}));
        double pace = 1;
        double here = -std::numeric_limits<double>::infinity();
        for (size_t at = 0; at < maximum; ++at) {
            const double bound = relaxation.bound();
            pace = bound > here ? pace : pace / 2;
            here = std::max(here, bound);
            if (at + 1 < maximum) {
                relaxation.step(pace * std::max(cost - beyond - bound, 0.0));
            }
        }
        best = std::max(best, here);
    }
    return best + beyond - CAUTION * beyond;
}

} // namespace bridge
