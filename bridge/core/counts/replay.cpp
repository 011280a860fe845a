// SPDX-License-Identifier: Apache-2.0
//
// Every pass has the outcome of planning the queue from scratch with plan_counts, in one of three
// ways:
//
// * depth 0 or 1: free nodes only increase over time, except for the reservation of the head of the
//   queue. So two numbers decide on a later job: the nodes free now, and, if it would still run at
//   the head's start, the nodes that the head leaves free then.
// * depth >= all jobs: if the running jobs ended when expected and arrivals joined the end of the
//   queue, planning again would find the same starts (earlier jobs see only bookings that never
//   moved them), so the plan is kept and extended. After an early end it is made again.
// * otherwise: made again at every event.
#include "counts/replay.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <queue>

#include "common/times.hpp"
#include "counts/counts.hpp"

namespace bridge {
namespace {

class ReplayLoop {
  public:
    ReplayLoop(const Trace &trace, int64_t capacity, int64_t depth)
        : trace_(trace), capacity_(capacity), depth_(depth), free_(capacity),
          plan_(capacity, trace.count, trace.time_limit, depth > 1 ? trace.n : 0) {
        result_.start.assign(trace.n, NEVER);
        result_.promises.assign(trace.n, Promise{});
        rank_jobs();
    }

    ReplayResult run() {
        const auto clock = [] { return std::chrono::steady_clock::now(); };
        size_t next = 0;
        while (next < arrivals_.size() || !ends_.empty()) {
            now_ = NEVER;
            if (!ends_.empty()) {
                now_ = ends_.top().first;
            }
            if (next < arrivals_.size()) {
                now_ = std::min(now_, trace_.submit[arrivals_[next]]);
            }
            while (!ends_.empty() && ends_.top().first == now_) {
                finish(ends_.top().second);
                ends_.pop();
            }
            for (; next < arrivals_.size() && trace_.submit[arrivals_[next]] == now_; ++next) {
                arrive(arrivals_[next]);
            }
            if (!queue_.empty()) {
                const auto before = clock();
                pass();
                result_.decision_ns.push_back(
                    std::chrono::duration_cast<std::chrono::nanoseconds>(clock() - before).count());
                listen();
            }
        }
        return std::move(result_);
    }

  private:
    struct Running {
        int64_t end; // as expected
        int64_t count;
        uint32_t job;
        bool operator<(const Running &other) const {
            return end != other.end ? end < other.end : job < other.job;
        }
    };
    struct Waiting {
        int32_t count;
        uint32_t job;
        int64_t limit;
    };
    using End = std::pair<int64_t, uint32_t>;

    const Trace &trace_;
    int64_t capacity_;
    int64_t depth_;
    int64_t now_ = 0;
    int64_t free_;
    std::vector<uint32_t> arrivals_; // that can ever run, by arrival
    std::vector<uint32_t> rank_;     // a job's position in queue order
    std::vector<Waiting> queue_;
    std::vector<int64_t> planned_; // parallel to queue_ except for depth 0 and 1
    std::vector<Running> running_; // by expected end
    std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
    CountPlan plan_;
    std::vector<CountProfile::Holder> holders_;
    bool plan_holds_ = false;
    ReplayResult result_;

    void rank_jobs() {
        std::vector<uint32_t> sorted(trace_.n);
        std::iota(sorted.begin(), sorted.end(), 0);
        const auto by_arrival = [&](uint32_t a, uint32_t b) {
            return trace_.submit[a] < trace_.submit[b];
        };
        std::stable_sort(sorted.begin(), sorted.end(), by_arrival);
        for (const uint32_t job : sorted) {
            if (trace_.count[job] <= capacity_) {
                arrivals_.push_back(job);
            }
        }
        if (trace_.order != nullptr) {
            std::stable_sort(sorted.begin(), sorted.end(), [&](uint32_t a, uint32_t b) {
                return trace_.order[a] < trace_.order[b];
            });
        }
        rank_.resize(trace_.n);
        for (size_t i = 0; i < sorted.size(); ++i) {
            rank_[sorted[i]] = static_cast<uint32_t>(i);
        }
    }

    void arrive(uint32_t job) {
        const Waiting waiting{static_cast<int32_t>(trace_.count[job]), job, trace_.time_limit[job]};
        const auto at = std::upper_bound(
            queue_.begin(), queue_.end(), waiting,
            [&](const Waiting &a, const Waiting &b) { return rank_[a.job] < rank_[b.job]; });
        if (at != queue_.end()) {
            plan_holds_ = false;
        }
        queue_.insert(at, waiting);
    }

    void finish(uint32_t job) {
        const int64_t expected = end_of(result_.start[job], trace_.time_limit[job]);
        const Running key{expected, 0, job};
        running_.erase(std::lower_bound(running_.begin(), running_.end(), key));
        free_ += trace_.count[job];
        plan_holds_ = plan_holds_ && expected == now_;
    }

    void start(const Waiting &waiting) {
        result_.start[waiting.job] = now_;
        free_ -= waiting.count;
        const Running running{end_of(now_, waiting.limit), waiting.count, waiting.job};
        running_.insert(std::upper_bound(running_.begin(), running_.end(), running), running);
        ends_.emplace(now_ + trace_.runtime[waiting.job], waiting.job);
    }

    void pass() {
        if (depth_ <= 1) {
            pass_easy();
        } else if (depth_ >= static_cast<int64_t>(trace_.n)) {
            pass_conservative();
        } else {
            pass_anew();
        }
    }

    // Starts the jobs for which `may_start` holds, in order, and removes them from the queue.
    template <typename MayStart> void start_where(size_t from, MayStart may_start) {
        size_t kept = from;
        for (size_t i = from; i < queue_.size(); ++i) {
            if (may_start(i)) {
                start(queue_[i]);
            } else {
                if (kept != i) {
                    queue_[kept] = queue_[i];
                }
                ++kept;
            }
        }
        queue_.resize(kept);
    }

    void pass_easy() {
        size_t head = 0;
        while (head < queue_.size() && queue_[head].count <= free_) {
            start(queue_[head]);
            ++head;
        }
        queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(head));
        if (queue_.empty() || free_ <= 0) {
            return;
        }
        int64_t shadow = NEVER; // when the head starts
        int64_t extra = 0;      // nodes that it leaves free then
        if (depth_ == 1) {
            int64_t free_then = free_;
            size_t i = 0;
            while (i < running_.size() && free_then < queue_[0].count) {
                shadow = std::max(running_[i].end, now_ + 1);
                for (; i < running_.size() && std::max(running_[i].end, now_ + 1) == shadow; ++i) {
                    free_then += running_[i].count;
                }
            }
            extra = free_then - queue_[0].count;
        }
        size_t first = 1;
        while (first < queue_.size() && queue_[first].count > free_) {
            ++first;
        }
        start_where(first, [&](size_t i) {
            const Waiting &waiting = queue_[i];
            if (waiting.count > free_) {
                return false;
            }
            if (end_of(now_, waiting.limit) > shadow) {
                if (waiting.count > extra) {
                    return false;
                }
                extra -= waiting.count;
            }
            return true;
        });
    }

    void begin_plan() {
        holders_.clear();
        for (const Running &running : running_) {
            holders_.push_back({running.end, running.count});
        }
        plan_.begin(now_, holders_);
    }

    void pass_anew() {
        begin_plan();
        planned_.clear();
        int64_t reserved = 0;
        start_where(0, [&](size_t i) {
            const int64_t at = plan_.place(queue_[i].count, queue_[i].limit, 0, reserved < depth_);
            if (at == now_) {
                return true;
            }
            planned_.push_back(at);
            reserved += at != UNPLANNED ? 1 : 0;
            return false;
        });
    }

    void pass_conservative() {
        // An overrunning job is assumed to end a second from now, at every pass.
        const bool overrun = !running_.empty() && running_.front().end <= now_;
        if (!plan_holds_ || overrun) {
            begin_plan();
            planned_.clear();
        } else {
            plan_.advance(now_);
        }
        plan_holds_ = true;
        for (size_t i = planned_.size(); i < queue_.size(); ++i) {
            planned_.push_back(plan_.place(queue_[i].count, queue_[i].limit, 0, true));
        }
        start_where(0, [&](size_t i) { return planned_[i] == now_; });
        planned_.erase(std::remove(planned_.begin(), planned_.end(), now_), planned_.end());
    }

    // Records the announcements; not part of a decision, so it is not timed as one.
    void listen() {
        if (depth_ > 1) {
            for (size_t i = 0; i < queue_.size(); ++i) {
                announce(queue_[i].job, planned_[i]);
            }
        } else if (depth_ == 1 && !queue_.empty()) {
            announce(queue_[0].job, head_start());
        }
    }

    // Backfilled jobs leave what the head needs at its start, so the head is still the one for
    // which the pass planned.
    int64_t head_start() const {
        int64_t free_then = free_;
        for (const Running &running : running_) {
            free_then += running.count;
            if (free_then >= queue_[0].count) {
                return std::max(running.end, now_ + 1);
            }
        }
        return NEVER;
    }

    void announce(uint32_t job, int64_t at) {
        if (at == UNPLANNED || at == NEVER) {
            return;
        }
        Promise &promise = result_.promises[job];
        const bool first = promise.first_start == 0;
        const int64_t shift = first ? 0 : at - promise.last_start;
        if (first) {
            promise.first_start = at;
            promise.first_said = now_;
        } else if (shift == 0) {
            return;
        }
        promise.last_start = at;
        promise.last_said = now_;
        promise.changes += shift != 0 ? 1 : 0;
        promise.later += std::max<int64_t>(shift, 0);
        promise.earlier -= std::min<int64_t>(shift, 0);
    }
};

} // namespace

ReplayResult replay_counts(const Trace &trace, int64_t capacity, int64_t depth) {
    return ReplayLoop(trace, capacity, depth).run();
}

} // namespace bridge
