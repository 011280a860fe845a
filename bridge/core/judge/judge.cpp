// SPDX-License-Identifier: Apache-2.0
#include "judge/judge.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace bridge {
namespace {

constexpr int64_t NO_START = std::numeric_limits<int64_t>::max(), NOT_LOOKED_FOR = -1;
constexpr int64_t A_YEAR_S = 365 * int64_t{86400}; // a job without any limit
constexpr int64_t FIXED_GRACE_S = 60;
constexpr int64_t LARGEST_SPAN_S = int64_t{1} << 40;
// Seats of a node: an exclusive holder takes all of them, a shared one takes one.
constexpr int64_t ALL_SEATS = int64_t{1} << 30;

// Instants may have any value: sums wrap, as those of columns do.
int64_t sum(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t difference(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

bool may_be_planned(int8_t hold) {
    return hold == 0 || hold == 3 || hold == 7; // none, begin time, reservation
}

bool rule_allows(int8_t rule, int64_t width) {
    switch (rule) {
    case 1:
        return width > 0 && (width & (width - 1)) == 0;
    case 2:
        return width % 2 == 0;
    case 3:
        return width % 2 == 1;
    case 4: {
        int64_t root = 0;
        while (root * root * root < width) {
            ++root;
        }
        return root * root * root == width;
    }
    default:
        return rule == 0;
    }
}

// A use of something over [begin, end), counted from now; `row` -1: a running job.
struct Use {
    int64_t begin;
    int64_t end;
    const int64_t *amounts; // null: those of the row's job, with `tasks`
    int64_t seats;
    int64_t row;
    int64_t tasks;
};

class Judge {
  public:
    explicit Judge(const JudgedPlan &plan) : plan_(plan), members_(plan.partitions.size()) {}

    std::vector<Finding> found() {
        rows_of_jobs();
        for (size_t row = 0; row < plan_.n_rows; ++row) {
            if (has_start(row)) {
                times(row);
                nodes(row);
                membership(row);
            }
            tasks(row);
        }
        node_usage();
        licence_usage();
        const auto place = [](const Finding &one) { return std::make_tuple(one.fault, one.row); };
        std::stable_sort(found_.begin(), found_.end(),
                         [&](const auto &a, const auto &b) { return place(a) < place(b); });
        found_.erase(
            std::unique(found_.begin(), found_.end(),
                        [&](const auto &a, const auto &b) { return place(a) == place(b); }),
            found_.end());
        return std::move(found_);
    }

  private:
    const JudgedPlan &plan_;
    std::vector<Finding> found_;
    std::vector<std::vector<bool>> members_; // by partition, once requested

    void blame(size_t row, Fault fault, int64_t found = 0, int64_t allowed = 0) {
        found_.push_back({fault, static_cast<int64_t>(row), found, allowed});
    }
    bool has_start(size_t row) const {
        return plan_.start_s[row] != NO_START && plan_.start_s[row] != NOT_LOOKED_FOR;
    }
    size_t job_of(size_t row) const { return static_cast<size_t>(plan_.job[row]); }
    int64_t width(size_t row) const { return plan_.indptr[row + 1] - plan_.indptr[row]; }

    void rows_of_jobs() {
        std::vector<int64_t> rows(plan_.n_jobs, 0);
        std::vector<int64_t> starts(plan_.n_jobs, 0);
        for (size_t row = 0; row < plan_.n_rows; ++row) {
            const bool now = plan_.start_s[row] == plan_.now;
            rows[job_of(row)] += 1;
            starts[job_of(row)] += now ? 1 : 0;
            if (!has_start(row) && width(row) > 0) {
                blame(row, Fault::NODES_WITHOUT_START);
            }
            if (!now && !plan_.reasoned[row]) {
                blame(row, Fault::NO_REASON);
            }
        }
        for (size_t job = 0; job < plan_.n_jobs; ++job) {
            const int64_t left = plan_.array_tasks[job];
            const int64_t allowed = left > 0 ? std::min(left, plan_.array_startable[job]) : 1;
            if (rows[job] == 0) {
                blame(job, Fault::NO_ROW);
            }
            if (starts[job] > allowed) {
                blame(job, Fault::TOO_MANY_STARTS, starts[job], allowed);
            }
        }
    }

    void times(size_t row) {
        const size_t job = job_of(row);
        const int64_t start = plan_.start_s[row];
        const int64_t lasts = difference(plan_.end_s[row], start);
        if (start < plan_.now) {
            blame(row, Fault::IN_THE_PAST);
        }
        if (!may_be_planned(plan_.hold[job])) {
            blame(row, Fault::HELD_BACK);
        }
        if (plan_.hold[job] == 3 && start < plan_.begin_s[job]) {
            blame(row, Fault::BEFORE_BEGIN);
        }
        int64_t most = NO_START;
        int64_t unasked = 0;
        if (plan_.partition[row] < 0) {
            blame(row, Fault::NO_PARTITION);
        } else {
            const auto &part = plan_.partitions[static_cast<size_t>(plan_.partition[row])];
            most = part.max_time_s ? part.max_time_s : NO_START;
            unasked = part.default_time_s ? part.default_time_s
                      : part.max_time_s   ? part.max_time_s
                                          : A_YEAR_S;
        }
        fixed_start(row);
        const int64_t least = plan_.least_time_s[job];
        int64_t length = plan_.time_limit_s[job] > 0 ? plan_.time_limit_s[job] : unasked;
        if (least > 0) {
            length = std::min(length, most);
        }
        const int64_t deadline = plan_.deadline_s[job];
        if (deadline > 0) { // the part beyond it is cut off, down to the minimum
            const int64_t shortest = least > 0 ? std::min(least, length) : length;
            if (sum(start, shortest) > deadline) {
                blame(row, Fault::AFTER_DEADLINE);
            }
            length = std::max(std::min(length, difference(deadline, start)), shortest);
        } else if (deadline == 0 && least > 0 && least <= lasts && lasts < length) {
            length = lasts; // without a deadline any limit from the minimum on is valid
        }
        if (lasts != length) {
            blame(row, Fault::WRONG_LENGTH);
        }
        if (length > most) {
            blame(row, Fault::PARTITION_TIME);
        }
    }

    void fixed_start(size_t row) {
        const size_t job = job_of(row);
        const int64_t at = plan_.begin_s[job] > 0 ? plan_.begin_s[job] : plan_.eligible_s[job];
        if (!plan_.fixed[job] || at <= 0) {
            return;
        }
        if (plan_.start_s[row] < at) {
            blame(row, Fault::BEFORE_FIXED);
        }
        if (plan_.start_s[row] > sum(at, at > plan_.now ? 0 : FIXED_GRACE_S)) {
            blame(row, Fault::AFTER_FIXED);
        }
    }

    void nodes(size_t row) {
        const size_t job = job_of(row);
        const int64_t n = width(row);
        if (n < plan_.min_nodes[job] || n > plan_.max_nodes[job] || n == 0) {
            blame(row, Fault::WRONG_WIDTH);
        }
        if (!rule_allows(plan_.width_rule[job], n)) {
            blame(row, Fault::WIDTH_RULE, n, plan_.width_rule[job]);
        }
    }

    const std::vector<bool> &members(size_t partition) {
        std::vector<bool> &found = members_[partition];
        if (found.empty()) {
            found.resize(plan_.n_nodes, false);
            const JudgedPartition &part = plan_.partitions[partition];
            for (size_t i = 0; i < part.n_nodes; ++i) {
                found[static_cast<size_t>(part.nodes[i])] = true;
            }
        }
        return found;
    }

    void membership(size_t row) {
        if (plan_.partition[row] < 0) {
            return;
        }
        const auto partition = static_cast<size_t>(plan_.partition[row]);
        const JudgedPartition &part = plan_.partitions[partition];
        if (!part.up) {
            blame(row, Fault::PARTITION_DOWN, plan_.partition[row]);
        }
        if (width(row) < part.min_nodes || (part.max_nodes > 0 && width(row) > part.max_nodes)) {
            blame(row, Fault::PARTITION_WIDTH, plan_.partition[row]);
        }
        if (!plan_.named[row]) {
            blame(row, Fault::PARTITION_UNNAMED, plan_.partition[row]);
        }
        const int32_t *first = plan_.nodes + plan_.indptr[row];
        const int32_t *last = plan_.nodes + plan_.indptr[row + 1];
        const std::vector<bool> &inside = members(partition);
        bool fits = std::all_of(first, last,
                                [&](int32_t node) { return inside[static_cast<size_t>(node)]; });
        const NodeLists &out = plan_.excluded;
        for (size_t i = out.offsets[row]; i < out.offsets[row + 1]; ++i) {
            fits &= std::find(first, last, out.nodes[i]) == last;
        }
        if (plan_.constraint[row] >= 0) {
            // A job with an "or" of features fits if all its nodes match one alternative of it.
            bool matches = false;
            for (const bool *mask : plan_.constraints[static_cast<size_t>(plan_.constraint[row])]) {
                matches |= std::all_of(first, last, [&](int32_t node) { return mask[node]; });
            }
            fits &= matches;
        }
        if (!fits) {
            blame(row, Fault::OUTSIDE);
        }
        const NodeLists &must = plan_.required;
        for (size_t i = must.offsets[row]; i < must.offsets[row + 1]; ++i) {
            if (std::find(first, last, must.nodes[i]) == last) {
                blame(row, Fault::MISSES_REQUIRED);
            }
        }
    }

    // Its nodes one by one: usable, distinct, and with tasks as requested.
    void tasks(size_t row) {
        const size_t job = job_of(row);
        const int64_t wanted = plan_.job_tasks[job];
        const int64_t bound = plan_.max_tasks_per_node[job];
        int64_t total = 0;
        bool ordered = true;
        bool usable = true;
        bool each = true;
        for (int64_t i = plan_.indptr[row]; i < plan_.indptr[row + 1]; ++i) {
            const int64_t there = plan_.tasks[i];
            total += there;
            ordered &= i == plan_.indptr[row] || plan_.nodes[i - 1] < plan_.nodes[i];
            usable &= plan_.usable[plan_.nodes[i]];
            each &= (wanted <= 0 || there >= 1) && (bound <= 0 || there <= bound);
        }
        if (!ordered) {
            blame(row, Fault::OUT_OF_ORDER);
        }
        if (!usable) {
            blame(row, Fault::UNUSABLE);
        }
        if (has_start(row) && total != wanted) {
            blame(row, Fault::WRONG_TASKS);
        }
        if (!each) {
            blame(row, Fault::TASKS_ON_NODE);
        }
    }

    // ------------------------------------------------------------ sums over time

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

    // No node is oversubscribed at any second. A node whose jobs never overlap has nothing to
    // share. Whole nodes are such, so uses are listed only for nodes on which some overlap.
    void node_usage() {
        const std::vector<size_t> by_begin = rows_with_start_by_begin();
        const std::vector<bool> shared = nodes_with_overlaps(by_begin);
        std::vector<size_t> first(plan_.n_nodes + 2, 0); // shifted by two: see below
        each_use(by_begin, shared, [&](size_t node, const Use &) { ++first[node + 2]; });
        for (size_t at = 2; at < first.size(); ++at) {
            first[at] += first[at - 1];
        }
        // While entries are written, first[node + 1] is where the node's next one goes: in the end
        // that is where those of the next node begin.
        std::vector<Use> uses(first.back());
        each_use(by_begin, shared,
                 [&](size_t node, const Use &use) { uses[first[node + 1]++] = use; });
        for (size_t node = 0; node < plan_.n_nodes; ++node) {
            if (shared[node]) {
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

    // Only nodes that the plan uses are checked. Blames rows that want more than a node has, too.
    std::vector<bool> nodes_with_overlaps(const std::vector<size_t> &by_begin) {
        std::vector<int64_t> until(plan_.n_nodes, 0);
        std::vector<bool> shared(plan_.n_nodes, false);
        std::vector<bool> used(plan_.n_nodes, false);
        const auto hold = [&](size_t node, int64_t begin, int64_t end) {
            if (begin < until[node]) {
                shared[node] = true;
            }
            until[node] = std::max(until[node], end);
        };
        for (size_t run = 0; run < plan_.n_run; ++run) {
            const int64_t end = present_use(run).end;
            for (int64_t i = plan_.run_indptr[run]; i < plan_.run_indptr[run + 1]; ++i) {
                hold(static_cast<size_t>(plan_.run_nodes[i]), 0, end);
            }
        }
        for (const size_t row : by_begin) {
            Use use = planned_use(row);
            bool too_large = false;
            for (int64_t i = plan_.indptr[row]; i < plan_.indptr[row + 1]; ++i) {
                const auto node = static_cast<size_t>(plan_.nodes[i]);
                on_node(use, static_cast<size_t>(i));
                for (size_t r = 0; r < plan_.n_res; ++r) {
                    too_large |= amount(use, r) > plan_.capacity[node * plan_.n_res + r];
                }
                used[node] = true;
                hold(node, use.begin, use.end);
            }
            if (too_large) {
                blame(row, Fault::TOO_LARGE);
            }
        }
        for (size_t node = 0; node < plan_.n_nodes; ++node) {
            shared[node] = shared[node] && used[node];
        }
        return shared;
    }

    // Every use of one of these nodes: of running jobs, then of the plan.
    template <typename Visit>
    void each_use(const std::vector<size_t> &rows, const std::vector<bool> &of, Visit visit) const {
        if (std::find(of.begin(), of.end(), true) == of.end()) {
            return;
        }
        for (size_t run = 0; run < plan_.n_run; ++run) {
            Use use = present_use(run);
            for (int64_t i = plan_.run_indptr[run]; i < plan_.run_indptr[run + 1]; ++i) {
                const auto node = static_cast<size_t>(plan_.run_nodes[i]);
                if (of[node]) {
                    use.amounts = plan_.run_use + static_cast<size_t>(i) * plan_.n_res;
                    visit(node, use);
                }
            }
        }
        for (const size_t row : rows) {
            Use use = planned_use(row);
            for (int64_t i = plan_.indptr[row]; i < plan_.indptr[row + 1]; ++i) {
                const auto node = static_cast<size_t>(plan_.nodes[i]);
                if (of[node]) {
                    on_node(use, static_cast<size_t>(i));
                    visit(node, use);
                }
            }
        }
    }

    // The same row's use of the node at this place of the columns.
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

    // Blames the rows that begin where more is used than there is. At one second: ends, then
    // running jobs, then the plan. A row that takes none of the exceeded resource is not to blame.
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

std::vector<Finding> judge(const JudgedPlan &plan) {
    return Judge(plan).found();
}

} // namespace bridge
