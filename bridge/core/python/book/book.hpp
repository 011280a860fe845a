// SPDX-License-Identifier: Apache-2.0
// Python binding of Book: checks arguments, turns node indices into positions and back. book.cpp
// documents its methods.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "book/batch.hpp"
#include "book/book.hpp"
#include "common/columns.hpp"

namespace bridge {

// Loops over many bookings prefetch this many ahead, so as not to wait for memory.
constexpr size_t AHEAD = 8;

inline void prefetch(const Booking *booking) {
    __builtin_prefetch(booking);
    __builtin_prefetch(reinterpret_cast<const char *>(booking) + 64);
    __builtin_prefetch(reinterpret_cast<const char *>(booking) + 128);
}

struct PyBookPlan {
    Array<int64_t> start;
    Array<int64_t> indptr;
    Array<int32_t> nodes;
    Array<int32_t> groups;
    Array<int32_t> chunks;
    Array<int8_t> blocked_by;
    Array<int32_t> blocked_constraint;
};

struct PyKept {
    int64_t done;
    Array<bool> kept;
    Array<int64_t> start;
    Array<int8_t> blocked_by;
    Array<int32_t> blocked_constraint;
};

struct PyBookings {
    Array<int64_t> job;
    Array<int32_t> request;
    Array<int64_t> start;
    Array<int64_t> end;
    Array<int64_t> indptr;
    Array<int32_t> nodes;
    Array<int32_t> groups;
    Array<int32_t> chunks;
};

// The terms of many jobs: offsets and three columns, each entry checked.
class TermArguments {
  public:
    TermArguments(const Book &book, nb::handle indptr, nb::handle constraint, nb::handle amount,
                  nb::handle mode, size_t jobs);
    TermColumns columns() const {
        return {indptr_.data(), constraint_.data(), amount_.data(), mode_.data()};
    }

  private:
    Column<int32_t> constraint_;
    Column<int64_t> amount_;
    Column<int8_t> mode_;
    Column<int64_t> indptr_;
};

// Jobs and the nodes on which they are to be booked, each entry checked.
struct PlacedJobs {
    PlacedJobs(const Book &book, nb::handle job, nb::handle request, nb::handle start,
               nb::handle length, nb::handle indptr, nb::handle nodes, nb::handle groups,
               nb::handle chunks);

    Column<int64_t> jobs;
    Column<int32_t> requests;
    Column<int64_t> starts;
    Column<int64_t> lengths;
    Column<int64_t> offsets;
    Column<int32_t> where;
    Column<int32_t> which;
    Column<int32_t> many;
};

// Start, nodes, groups and chunks, if there is a start.
using FoundStart = std::optional<Tuple<int64_t, Array<int32_t>, Array<int32_t>, Array<int32_t>>>;

class PyBook {
  public:
    // The world: nodes, classes of them, constraints, what jobs may ask for (book_world.cpp).
    PyBook(int64_t now, nb::handle capacity, nb::handle node_rank,
           const std::vector<std::pair<int64_t, nb::object>> &protections, int64_t select);
    void advance(int64_t now);
    void set_class(int64_t cls, Array<uint64_t> nodes);
    int32_t add_class(Array<uint64_t> nodes) {
        return book_->add_class(positions_of("nodes", nodes));
    }
    int32_t close(int32_t cls, int64_t start, int64_t end, Array<uint64_t> nodes);
    void reopen(int64_t closure);
    int32_t add_constraint(Array<int64_t> starts, Array<int64_t> amounts);
    void set_constraint(int64_t constraint, Array<int64_t> starts, Array<int64_t> amounts);
    int32_t add_request(Array<int64_t> count, Array<int64_t> want, Array<int32_t> cls,
                        int64_t arrangement, bool exclusive, Array<int64_t> max_per_node);

    // Jobs: searched, booked, planned (book_jobs.cpp).
    FoundStart find(int64_t request, int64_t length, nb::handle terms, nb::handle earliest,
                    int64_t latest, bool last);
    Tuple<Blocked, int32_t> why(int64_t request, int64_t length, nb::handle terms,
                                nb::handle earliest, int64_t latest);
    bool book(int64_t job, int64_t request, int64_t start, int64_t length, nb::handle terms,
              Array<int32_t> nodes, Array<int32_t> groups, Array<int32_t> chunks);
    void revoke(int64_t job);
    Array<bool> book_many(Array<int64_t> job, Array<int32_t> request, Array<int64_t> start,
                          Array<int64_t> length, Array<int64_t> indptr, Array<int32_t> nodes,
                          Array<int32_t> groups, Array<int32_t> chunks, Array<int64_t> term_indptr,
                          Array<int32_t> term_constraint, Array<int64_t> term_amount,
                          Array<int8_t> term_mode, bool forced, bool stop);
    PyKept keep_many(Array<int64_t> job, Array<int32_t> request, Array<int64_t> start,
                     Array<int64_t> length, Array<int64_t> indptr, Array<int32_t> nodes,
                     Array<int32_t> groups, Array<int32_t> chunks, Array<int64_t> term_indptr,
                     Array<int32_t> term_constraint, Array<int64_t> term_amount,
                     Array<int8_t> term_mode, Array<bool> stands, Array<bool> movable,
                     int64_t first);
    std::optional<PyKept> settle(Array<int64_t> job, Array<int32_t> request, Array<int64_t> start,
                                 Array<int64_t> length, Array<int64_t> term_indptr,
                                 Array<int32_t> term_constraint, Array<int64_t> term_amount,
                                 Array<int8_t> term_mode, Array<bool> booked, Array<bool> unsure,
                                 Array<bool> movable, int64_t maximum);
    void book_running(Array<int64_t> job, Array<int64_t> run_indptr, Array<int32_t> run_nodes,
                      Array<int64_t> run_use, Array<int64_t> run_end, Array<bool> run_exclusive,
                      Array<int64_t> term_indptr, Array<int32_t> term_constraint,
                      Array<int64_t> term_amount, Array<int8_t> term_mode);
    PyBookPlan plan_many(Array<int64_t> job, Array<int32_t> request, Array<int64_t> length,
                         Array<int64_t> not_before, Array<int64_t> latest, Array<bool> last,
                         Array<int64_t> term_indptr, Array<int32_t> term_constraint,
                         Array<int64_t> term_amount, Array<int8_t> term_mode, bool reasons,
                         int64_t depth);
    // The starts of the jobs after replanning, by which the caller sees which moved.
    Array<int64_t> replan_many(Array<int64_t> job, Array<int64_t> not_before);

    // Contents (book_answers.cpp).
    int64_t now() const { return book_->state().now; }
    size_t n_nodes() const { return book_->state().nodes.size(); }
    size_t size() const { return book_->size(); }
    int64_t given_up() const { return book_->search().given_up(); }
    bool overbooked() const { return book_->overbooked(); }
    std::tuple<Array<int64_t>, Array<int64_t>, Array<int64_t>>
    constraint_use(int64_t constraint) const;
    PyBookings bookings(Array<int64_t> job) const;
    Array<int64_t> free_at(int64_t time) const;
    std::pair<Array<int64_t>, Array<int32_t>> holders(int64_t request, nb::handle terms,
                                                      int64_t start, int64_t length);

    // Attempts that can be undone.
    int64_t mark() { return book_->mark(); }
    void undo(int64_t mark) {
        expect_mark(mark);
        book_->undo(mark);
    }
    void keep(int64_t mark) {
        expect_mark(mark);
        book_->keep(mark);
    }

  private:
    std::unique_ptr<Book> book_;
    int64_t closures_ = 0;

    bool book_placed(const PlacedJobs &all, size_t j, std::vector<Term> terms, bool forced);
    bool book_one(int64_t job, int32_t request, int64_t start, int64_t length,
                  std::vector<Term> terms, const int32_t *nodes, const int32_t *groups,
                  const int32_t *chunks, size_t n, bool forced);

    // Arguments, checked (book_arguments.cpp); each refuses with a ValueError.
    int32_t last_request() const {
        return static_cast<int32_t>(book_->state().requests.size()) - 1;
    }
    void expect_class(const char *name, int64_t cls) const {
        scalar(name, cls, 0, static_cast<int64_t>(book_->state().requests.n_classes()) - 1);
    }
    void expect_request(int64_t request) const { scalar("request", request, 0, last_request()); }
    void expect_constraint(int64_t constraint) const;
    void expect_new(int64_t job) const;
    void expect_all_new(const Column<int64_t> &jobs) const;
    Booking &booked(int64_t job) const;
    void expect_mark(int64_t mark) const;
    void expect_placement(int32_t request, int32_t node, int32_t group, int32_t chunks) const;
    std::vector<int32_t> positions_of(const char *name, nb::handle nodes) const;
    std::pair<std::vector<int64_t>, std::vector<int64_t>> steps(nb::handle starts,
                                                                nb::handle amounts) const;
    std::vector<Term> terms_of(nb::handle terms) const;
};

} // namespace bridge
