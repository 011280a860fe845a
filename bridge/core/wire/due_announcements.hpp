// SPDX-License-Identifier: Apache-2.0
// Which announcements are to be sent: the rules of bridge/rpc/controller/announcements.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bridge {

// The rows of a table of announcements, one column for each job. Zeros: nothing was announced.
enum AnnouncementRow : size_t {
    ANNOUNCED_VERSION,
    ANNOUNCED_KIND,
    ANNOUNCED_START_S,
    ANNOUNCED_PARTITION,
    ANNOUNCED_NODES, // a fingerprint of the set
    ANNOUNCED_CODE,
    ANNOUNCED_WORDS, // a fingerprint of the reason's text
    ANNOUNCED_AT_S,
    ANNOUNCEMENT_ROWS
};
enum class AnnouncementKind : int64_t { NOTHING = 0, PLANNED = 1, PENDING = 2 };

// A plan of `n_rows` rows, and what was announced of its `n_jobs` jobs.
struct AnnouncedPlan {
    int64_t now_s;
    size_t n_rows;
    const int64_t *start_s;
    const int32_t *partition;
    const int64_t *indptr; // (n_rows + 1,) into `nodes`
    const int32_t *nodes;
    const int64_t *reason; // (n_rows,) positions in `code` and `words`
    const int64_t *code;
    const int64_t *words;
    const int64_t *mix; // by node: random weights, whose sum is the fingerprint of a set
    size_t n_jobs;
    const int64_t *row_of;    // by job: the row that is announced; -1: none
    const uint64_t *version;  // by job
    const int64_t *serial;    // by job
    const int64_t *announced; // (ANNOUNCEMENT_ROWS, n_jobs) last
};

struct Pauses {
    int64_t words_s; // between two announcements of which only the text of the reason differs
    int64_t prompt;  // so many jobs that only moved are announced each second
    int64_t calm_s;  // the longest interval of the others
};

struct DueAnnouncements {
    std::vector<int64_t> current; // (ANNOUNCEMENT_ROWS, n_jobs) due now
    std::vector<int64_t> jobs;    // to be announced, in order
    int64_t again_s = 0;          // until others are due; 0: there are none
};

// `in_order`: the jobs with a row, in the plan's order.
DueAnnouncements due_announcements(const AnnouncedPlan &plan, const int64_t *in_order,
                                   size_t n_in_order, const Pauses &pauses);

} // namespace bridge
