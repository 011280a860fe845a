// SPDX-License-Identifier: Apache-2.0
// Many jobs of a book in one call. python/book/book.cpp documents every column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "book/book.hpp"
#include "single_pass/node_problem.hpp"

namespace bridge {

struct TermColumns {
    const int64_t *indptr;
    const int32_t *constraint;
    const int64_t *amount;
    const int8_t *mode;

    std::vector<Term> of(size_t job) const;
    // Those of this job and the ones behind it.
    TermColumns from(size_t job) const { return {indptr + job, constraint, amount, mode}; }
};

struct BookJobs {
    size_t n;
    const int64_t *job;
    const int32_t *request;
    const int64_t *length;
    const int64_t *not_before;
    const int64_t *latest;
    const bool *last;
    TermColumns terms;
};

struct MapColumns {
    std::vector<int64_t> indptr{0};
    std::vector<int32_t> nodes;
    std::vector<int32_t> groups;
    std::vector<int32_t> chunks;

    void reserve(size_t jobs, size_t entries);
    void add(const std::vector<Placed> &placed, const BookNodes &nodes);
};

struct BookPlan {
    std::vector<int64_t> start;
    MapColumns map;
    std::vector<int8_t> blocked_by;
    std::vector<int32_t> blocked_constraint;
};

// Finds and books each job in order. While fewer than `depth` jobs start later than now, a job may
// start later; after that it starts now or gets no start.
BookPlan plan_many(Book &book, const BookJobs &jobs, int64_t depth, bool reasons);

// Why a request can start at no time, not even on an empty book; NOT_BEFORE: nothing forbids it.
std::pair<Blocked, int32_t> why_never(Book &book, int32_t request, Terms terms);

// Why a job does not start now, given the `start` that `find` returned; and the constraint, or -1.
std::pair<Blocked, int32_t> why_not_now(Book &book, int32_t request, int64_t length, Terms terms,
                                        int64_t not_before, int64_t latest, int64_t start);

} // namespace bridge
