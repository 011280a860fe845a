// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "judge/parts.hpp"

namespace bridge {
namespace {

constexpr int64_t LARGEST_SPAN_S = int64_t{1} << 40;
// Seats of a node: an exclusive holder takes all of them, a shared one takes one.
constexpr int64_t ALL_SEATS = int64_t{1} << 30;

// A use of something over [begin, end), counted from now; `row` -1: a running job.
struct Use {
    int64_t begin;
    int64_t end;
    const int64_t *amounts; // null: those of the row's job, with `tasks`
    int64_t seats;
    int64_t row;
    int64_t tasks;
};

class Usage : Judged {
  public:
    using Judged::Judged;

    void judge() {
        node_usage();
        licence_usage();
    }

  private:
    Use planned_use(size_t row) const {
        const int64_t begin =
            std::clamp<int64_t>(difference(plan_.start_s[row], plan_.now), 0, LARGEST_SPAN_S);
        const int64_t end = std::max(difference(plan_.end_s[row], plan_.now), begin + 1);
        return {begin,
                std::min(end, LARGEST_SPAN_S + 1),
                nullptr,
                plan_.exclusive[job_of(row)] ? ALL_SEATS : 1,
                static_cast<int64_t>(row),
                0};
    }
    // A job that is expected to have ended ends within the next second.
    Use present_use(size_t run) const {
        const int64_t end = std::max<int64_t>(difference(plan_.run_end[run], plan_.now), 1);
        return {0,       std::min(end, LARGEST_SPAN_S + 1),
                nullptr, plan_.run_exclusive[run] ? ALL_SEATS : 1,
                -1,      0};
    }

    int64_t amount(const Use &use, size_t resource) const {
        if (use.amounts != nullptr) {
            return use.amounts[resource];
        }
        const size_t at = job_of(static_cast<size_t>(use.row)) * plan_.n_res + resource;
        return plan_.per_node[at] + plan_.per_task[at] * use.tasks;
    }

    // No node is oversubscribed at any second. Uses are listed only for nodes whose jobs overlap:
    // where whole nodes are allocated, these are few.
    void node_usage() {
        const std::vector<size_t> by_begin = rows_with_start_by_begin();
        const std::vector<uint8_t> shared = nodes_with_overlaps(by_begin);
        std::vector<size_t> first(plan_.n_nodes + 2, 0); // shifted by two: see below
        each_use(by_begin, shared, [&](size_t node, const Use &) { ++first[node + 2]; });
        for (size_t at = 2; at < first.size(); ++at) {
            first[at] += first[at - 1];
        }
        // While entries are written, first[node + 1] is the place of the node's next entry; in the
        // end it is the first entry of the next node.
        std::vector<Use> uses(first.back());
        each_use(by_begin, shared,
                 [&](size_t node, const Use &use) { uses[first[node + 1]++] = use; });
        for (size_t node = 0; node < plan_.n_nodes; ++node) {
            if (shared[node] != 0) {
                sweep(uses.data() + first[node], uses.data() + first[node + 1], plan_.n_res,
                      plan_.capacity + node * plan_.n_res, Fault::NODE_OVERSUBSCRIBED);
            }
        }
    }

    std::vector<size_t> rows_with_start_by_begin() const {
        std::vector<std::pair<int64_t, size_t>> begins;
        begins.reserve(plan_.n_rows);
        for (size_t row = 0; row < plan_.n_rows; ++row) {
            if (has_start(row)) {
                begins.emplace_back(planned_use(row).begin, row);
            }
        }
        std::sort(begins.begin(), begins.end());
        std::vector<size_t> rows(begins.size());
        std::transform(begins.begin(), begins.end(), rows.begin(),
                       [](const auto &one) { return one.second; });
        return rows;
    }

    // Only nodes that the plan uses are checked. Reports rows that request more than a node has,
    // too.
    std::vector<uint8_t> nodes_with_overlaps(const std::vector<size_t> &by_begin) {
        std::vector<int64_t> until(plan_.n_nodes, 0);
        std::vector<uint8_t> shared(plan_.n_nodes, 0);
        std::vector<uint8_t> used(plan_.n_nodes, 0);
        const auto hold = [&](size_t node, int64_t begin, int64_t end) {
            shared[node] |= static_cast<uint8_t>(begin < until[node]);
            until[node] = std::max(until[node], end);
        };
        for (size_t run = 0; run < plan_.n_run; ++run) {
            const int64_t end = present_use(run).end;
            for (int64_t i = plan_.run_indptr[run]; i < plan_.run_indptr[run + 1]; ++i) {
                hold(static_cast<size_t>(plan_.run_nodes[i]), 0, end);
            }
        }
        const std::vector<int64_t> everywhere = min_capacity();
        for (const size_t row : by_begin) {
            const Use use = planned_use(row);
            for (int64_t i = plan_.indptr[row]; i < plan_.indptr[row + 1]; ++i) {
                const auto node = static_cast<size_t>(plan_.nodes[i]);
                used[node] = 1;
                hold(node, use.begin, use.end);
            }
            if (is_too_large(row, use, everywhere)) {
                blame(row, Fault::TOO_LARGE);
            }
        }
        for (size_t node = 0; node < plan_.n_nodes; ++node) {
            shared[node] &= used[node];
        }
        return shared;
    }

    // The amounts that every node has.
    std::vector<int64_t> min_capacity() const {
        std::vector<int64_t> minimum(plan_.n_res, std::numeric_limits<int64_t>::max());
        for (size_t i = 0; i < plan_.n_nodes * plan_.n_res; ++i) {
            minimum[i % plan_.n_res] = std::min(minimum[i % plan_.n_res], plan_.capacity[i]);
        }
        return minimum;
    }

    // Whether the row requests more on a node than the node has. Most rows request the same on each
    // of their nodes.
    bool is_too_large(size_t row, Use use, const std::vector<int64_t> &everywhere) const {
        bool fits_everywhere = false;
        for (int64_t i = plan_.indptr[row]; i < plan_.indptr[row + 1]; ++i) {
            const bool same = plan_.want == nullptr && i > plan_.indptr[row] &&
                              plan_.tasks[i] == plan_.tasks[i - 1];
            on_node(use, static_cast<size_t>(i));
            fits_everywhere = same ? fits_everywhere : fits(use, everywhere.data());
            if (!fits_everywhere &&
                !fits(use, plan_.capacity + static_cast<size_t>(plan_.nodes[i]) * plan_.n_res)) {
                return true;
            }
        }
        return false;
    }

    bool fits(const Use &use, const int64_t *there) const {
        bool fits = true;
        for (size_t r = 0; r < plan_.n_res; ++r) {
            fits &= amount(use, r) <= there[r];
        }
        return fits;
    }

    // Every use of one of these nodes: of running jobs, then of the plan.
    template <typename Visit>
    void each_use(const std::vector<size_t> &rows, const std::vector<uint8_t> &of,
                  Visit visit) const {
        if (std::find(of.begin(), of.end(), 1) == of.end()) {
            return;
        }
        for (size_t run = 0; run < plan_.n_run; ++run) {
            Use use = present_use(run);
            for (int64_t i = plan_.run_indptr[run]; i < plan_.run_indptr[run + 1]; ++i) {
                const auto node = static_cast<size_t>(plan_.run_nodes[i]);
                if (of[node] != 0) {
                    use.amounts = plan_.run_use + static_cast<size_t>(i) * plan_.n_res;
                    visit(node, use);
                }
            }
        }
        for (const size_t row : rows) {
            Use use = planned_use(row);
            for (int64_t i = plan_.indptr[row]; i < plan_.indptr[row + 1]; ++i) {
                const auto node = static_cast<size_t>(plan_.nodes[i]);
                if (of[node] != 0) {
                    on_node(use, static_cast<size_t>(i));
                    visit(node, use);
                }
            }
        }
    }

    // Sets the use to what the row takes at this place of the columns.
    void on_node(Use &use, size_t at) const {
        use.tasks = plan_.tasks[at];
        if (plan_.want != nullptr) {
            use.amounts = plan_.want + at * plan_.n_res;
        }
    }

    void licence_usage() {
        std::vector<Use> uses;
        const size_t n = plan_.n_licences;
        const auto add = [&](Use use, const int64_t *amounts) {
            if (std::any_of(amounts, amounts + n, [](int64_t held) { return held != 0; })) {
                use.amounts = amounts;
                use.seats = 0;
                uses.push_back(use);
            }
        };
        for (size_t run = 0; n > 0 && run < plan_.n_run; ++run) {
            add(present_use(run), plan_.run_licences + run * n);
        }
        for (size_t row = 0; n > 0 && row < plan_.n_rows; ++row) {
            if (has_start(row)) {
                add(planned_use(row), plan_.job_licences + job_of(row) * n);
            }
        }
        sweep(uses.data(), uses.data() + uses.size(), n, plan_.licence_total,
              Fault::LICENCE_OVERSUBSCRIBED);
    }

    // Blames the rows that begin where more is used than exists. Within one second, ends come
    // first, then running jobs, then the plan. A row that takes none of the exceeded resource is
    // not blamed.
    void sweep(const Use *from, const Use *to, size_t n, const int64_t *there, Fault fault) {
        struct Event {
            int64_t when;
            int64_t rank; // 0: an end, 1: of a running job, 2 and up: of the plan, by row
            const Use *use;
        };
        std::vector<Event> events;
        for (const Use *use = from; use != to; ++use) {
            events.push_back({use->begin, use->row + 2, use});
            events.push_back({use->end, 0, use});
        }
        std::sort(events.begin(), events.end(), [](const Event &a, const Event &b) {
            return std::tie(a.when, a.rank) < std::tie(b.when, b.rank);
        });
        std::vector<int64_t> taken(n, 0);
        int64_t seats = 0;
        for (const Event &event : events) {
            const Use &use = *event.use;
            const int64_t sign = event.rank == 0 ? -1 : 1;
            seats += sign * use.seats;
            bool over = use.seats > 0 && seats > ALL_SEATS;
            for (size_t k = 0; k < n; ++k) {
                const int64_t change = amount(use, k);
                taken[k] += sign * change;
                over |= change > 0 && taken[k] > there[k];
            }
            if (over && event.rank >= 2) {
                blame(static_cast<size_t>(use.row), fault);
            }
        }
    }
};

} // namespace

void judge_usage(const JudgedPlan &plan, std::vector<Finding> &found) {
    Usage(plan, found).judge();
}

} // namespace bridge
