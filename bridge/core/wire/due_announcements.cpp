// SPDX-License-Identifier: Apache-2.0
#include "wire/due_announcements.hpp"

#include <algorithm>

#include "common/times.hpp"

namespace bridge {
namespace {

constexpr size_t COMPARED = ANNOUNCED_WORDS; // a change in a row before it is announced at once

int64_t distance(int64_t a, int64_t b) {
    const auto wrapped = static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
    return wrapped < 0 ? -wrapped : wrapped;
}

int64_t remainder(int64_t value, int64_t divisor) {
    const int64_t left = value % divisor;
    return left < 0 ? left + divisor : left;
}

class Due {
  public:
    Due(const AnnouncedPlan &plan, const Pauses &pauses)
        : plan_(plan), pauses_(pauses),
          due_{std::vector<int64_t>(ANNOUNCEMENT_ROWS * plan.n_jobs), {}, 0} {}

    DueAnnouncements find(const int64_t *in_order, size_t n) {
        for (size_t job = 0; job < plan_.n_jobs; ++job) {
            write(job);
        }
        int64_t moved = 0;
        int64_t again_s = pauses_.calm_s;
        bool any_waits = false;
        for (size_t i = 0; i < n; ++i) {
            const auto job = static_cast<size_t>(in_order[i]);
            if (!differs(job)) {
                continue;
            }
            const bool only_moved = now(ANNOUNCED_VERSION, job) == then(ANNOUNCED_VERSION, job) &&
                                    now(ANNOUNCED_KIND, job) == then(ANNOUNCED_KIND, job);
            moved += only_moved ? 1 : 0;
            const int64_t wait_s = only_moved ? wait(job, moved) : 0;
            if (wait_s == 0) {
                due_.jobs.push_back(in_order[i]);
            } else {
                any_waits = true;
                again_s = std::min(again_s, wait_s);
            }
        }
        due_.again_s = any_waits ? again_s : 0;
        return std::move(due_);
    }

  private:
    const AnnouncedPlan &plan_;
    const Pauses &pauses_;
    DueAnnouncements due_;

    int64_t now(size_t row, size_t job) const { return due_.current[row * plan_.n_jobs + job]; }
    int64_t then(size_t row, size_t job) const { return plan_.announced[row * plan_.n_jobs + job]; }

    void set(size_t row, size_t job, int64_t value) {
        due_.current[row * plan_.n_jobs + job] = value;
    }

    void write(size_t job) {
        set(ANNOUNCED_AT_S, job, plan_.now_s);
        set(ANNOUNCED_VERSION, job, static_cast<int64_t>(plan_.version[job]));
        set(ANNOUNCED_PARTITION, job, -1);
        if (plan_.row_of[job] < 0) {
            return;
        }
        const auto row = static_cast<size_t>(plan_.row_of[job]);
        const auto reason = static_cast<size_t>(plan_.reason[row]);
        set(ANNOUNCED_CODE, job, plan_.code[reason]);
        set(ANNOUNCED_WORDS, job, plan_.words[reason]);
        const int64_t start_s = plan_.start_s[row];
        if (start_s == NEVER || start_s == UNPLANNED) {
            set(ANNOUNCED_KIND, job, static_cast<int64_t>(AnnouncementKind::PENDING));
            return;
        }
        set(ANNOUNCED_KIND, job, static_cast<int64_t>(AnnouncementKind::PLANNED));
        set(ANNOUNCED_START_S, job, start_s);
        set(ANNOUNCED_PARTITION, job, plan_.partition[row]);
        uint64_t sum = 0;
        for (int64_t i = plan_.indptr[row]; i < plan_.indptr[row + 1]; ++i) {
            sum += static_cast<uint64_t>(plan_.mix[plan_.nodes[i]]);
        }
        set(ANNOUNCED_NODES, job, static_cast<int64_t>(sum));
    }

    bool differs(size_t job) const {
        for (size_t row = 0; row < COMPARED; ++row) {
            if (now(row, job) != then(row, job)) {
                return true;
            }
        }
        // Also backwards: the clock may have been set.
        return now(ANNOUNCED_WORDS, job) != then(ANNOUNCED_WORDS, job) &&
               distance(plan_.now_s, then(ANNOUNCED_AT_S, job)) >= pauses_.words_s;
    }

    // Seconds until a start that has only moved may be announced; 0: at once. Intervals of length n
    // begin at the instants t for which t plus the job's serial is a multiple of n.
    int64_t wait(size_t job, int64_t moved) const {
        int64_t pause_s = 1;
        if (moved > pauses_.prompt) {
            const int64_t lead_s =
                std::min(now(ANNOUNCED_START_S, job), then(ANNOUNCED_START_S, job)) - plan_.now_s;
            pause_s = std::clamp<int64_t>(lead_s / 100, 1, pauses_.calm_s);
        }
        const int64_t announced_s = then(ANNOUNCED_AT_S, job);
        const int64_t left_s = pause_s - remainder(plan_.now_s + plan_.serial[job], pause_s);
        const bool too_soon =
            announced_s <= plan_.now_s && plan_.now_s + left_s - announced_s <= pause_s;
        return too_soon ? left_s : 0; // else the clock was set back, or the interval is over
    }
};

} // namespace

DueAnnouncements due_announcements(const AnnouncedPlan &plan, const int64_t *in_order,
                                   size_t n_in_order, const Pauses &pauses) {
    return Due(plan, pauses).find(in_order, n_in_order);
}

} // namespace bridge
