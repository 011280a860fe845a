// SPDX-License-Identifier: Apache-2.0
// Book as Python sees it: checks arguments, turns node indices into positions and back.
#include "python/module.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>

#include "book/batch.hpp"
#include "book/book.hpp"
#include "common/columns.hpp"

namespace bridge {
namespace {

constexpr int64_t MOST_AMOUNT = int64_t{1} << 40;

template <typename T> nb::object out(std::vector<T> values) {
    return nb::cast(to_numpy(std::move(values)));
}

struct PyBookPlan {
    nb::object start;
    nb::object indptr;
    nb::object nodes;
    nb::object groups;
    nb::object chunks;
    nb::object blocked_by;
    nb::object blocked_constraint;
};

struct PyBookings {
    nb::object job;
    nb::object request;
    nb::object start;
    nb::object end;
    nb::object indptr;
    nb::object nodes;
    nb::object groups;
    nb::object chunks;
};

// The terms of many jobs: offsets and three columns, each entry checked.
class TermArguments {
  public:
    TermArguments(const Book &book, nb::handle indptr, nb::handle constraint, nb::handle amount,
                  nb::handle mode, size_t jobs)
        : constraint_("term_constraint", constraint), amount_("term_amount", amount),
          mode_("term_mode", mode), indptr_("term_indptr", indptr) {
        constraint_.within(0, static_cast<int32_t>(book.state().constraints.size()) - 1);
        amount_.expect_rows(constraint_.rows(), "like term_constraint").within(0, MOST_AMOUNT);
        mode_.expect_rows(constraint_.rows(), "like term_constraint").within(0, 2);
        indptr_.expect_rows(jobs + 1, "one more than job")
            .expect_offsets(constraint_.rows(), "term_constraint");
    }
    TermColumns columns() const {
        return {indptr_.data(), constraint_.data(), amount_.data(), mode_.data()};
    }

  private:
    Column<int32_t> constraint_;
    Column<int64_t> amount_;
    Column<int8_t> mode_;
    Column<int64_t> indptr_;
};

class PyBook {
  public:
    PyBook(int64_t now, nb::handle capacity, nb::handle node_rank,
           const std::vector<std::pair<int64_t, nb::object>> &protections, int64_t select) {
        scalar("now", now, 0, NEVER - 1);
        scalar("select", select, 0, 1);
        const Column<int64_t> capacities("capacity", capacity, 2);
        capacities.within(0, MOST_AMOUNT);
        const Column<int32_t> ranks("node_rank", node_rank);
        ranks.expect_rows(capacities.rows(), "like capacity");
        const auto n_res = static_cast<int64_t>(capacities.columns());
        std::vector<Protection> kept;
        for (const auto &[resource, keep] : protections) {
            scalar("protections", resource, 0, n_res - 1);
            const Column<int64_t> amounts("protections", keep, 2);
            amounts.expect_rows(capacities.rows(), "like capacity")
                .expect_columns(capacities.columns(), "like capacity")
                .within(0, MOST_AMOUNT);
            kept.push_back(
                {static_cast<size_t>(resource),
                 {amounts.data(), amounts.data() + capacities.rows() * capacities.columns()}});
        }
        book_ = std::make_unique<Book>(now, BookNodes(capacities.rows(), capacities.columns(),
                                                      capacities.data(), ranks.data(), kept));
        book_->state().nodes.set_best_fit(select == static_cast<int64_t>(Select::BEST_FIT));
    }

    int64_t now() const { return book_->state().now; }
    size_t n_nodes() const { return book_->state().nodes.size(); }
    size_t size() const { return book_->size(); }
    int64_t given_up() const { return book_->search().given_up(); }

    void advance(int64_t now) {
        scalar("now", now, this->now(), NEVER - 1);
        if (book_->marked()) {
            refuse("now: time cannot advance while a mark is set");
        }
        book_->advance(now);
    }

    int32_t add_class(nb::handle nodes) { return book_->add_class(positions_of("nodes", nodes)); }
    int32_t close(int32_t cls, int64_t start, int64_t end, nb::handle nodes) {
        expect_class("cls", cls);
        scalar("start", start, 0, NEVER - 1);
        scalar("end", end, start + 1);
        const int32_t id = book_->close(cls, start, end, positions_of("nodes", nodes));
        ++closures_;
        return id;
    }
    void reopen(int64_t closure) {
        scalar("closure", closure, 0, closures_ - 1);
        book_->reopen(static_cast<int32_t>(closure));
    }
    nb::object set_capacity(int64_t node, nb::handle amounts) {
        scalar("node", node, 0, static_cast<int64_t>(n_nodes()) - 1);
        const Column<int64_t> row("amounts", amounts);
        row.expect_rows(book_->state().nodes.n_res(), "one per resource").within(0, MOST_AMOUNT);
        const auto position = book_->state().nodes.position(static_cast<size_t>(node));
        return out(book_->set_capacity(static_cast<size_t>(position), row.data()));
    }
    int32_t add_constraint(nb::handle starts, nb::handle amounts) {
        const auto [at, what] = steps(starts, amounts);
        return book_->add_constraint(at, what);
    }
    nb::object set_constraint(int64_t constraint, nb::handle starts, nb::handle amounts) {
        expect_constraint(constraint);
        const auto [at, what] = steps(starts, amounts);
        return out(book_->set_constraint(static_cast<int32_t>(constraint), at, what));
    }
    std::tuple<nb::object, nb::object, nb::object> constraint_use(int64_t constraint) const {
        expect_constraint(constraint);
        std::vector<int64_t> begin;
        std::vector<int64_t> amount;
        std::vector<int64_t> used;
        for (const CapacityConstraint::Slot &slot :
             book_->state().constraints[static_cast<size_t>(constraint)].slots()) {
            begin.push_back(slot.begin);
            amount.push_back(slot.amount);
            used.push_back(slot.used);
        }
        return {out(std::move(begin)), out(std::move(amount)), out(std::move(used))};
    }

    int32_t add_request(nb::handle count, nb::handle want, nb::handle cls, int64_t arrangement,
                        bool exclusive, nb::handle most_per_node) {
        const Column<int64_t> counts("count", count);
        const Column<int64_t> wants("want", want, 2);
        const Column<int32_t> classes("cls", cls);
        const size_t n_res = book_->state().nodes.n_res();
        counts.within(1, BookRequests::NO_LIMIT);
        wants.expect_rows(counts.rows(), "like count")
            .expect_columns(n_res, "one per resource")
            .within(0, MOST_AMOUNT);
        classes.expect_rows(counts.rows(), "like count")
            .within(0, static_cast<int32_t>(book_->state().requests.n_classes()) - 1);
        scalar("arrangement", arrangement, 0, 2);
        scalar("count", static_cast<int64_t>(counts.rows()), 1, 64);
        std::vector<BookRequests::Asked> groups;
        for (size_t g = 0; g < counts.rows(); ++g) {
            groups.push_back({classes[g],
                              counts[g],
                              BookRequests::NO_LIMIT,
                              {wants.data() + g * n_res, wants.data() + (g + 1) * n_res}});
        }
        if (!most_per_node.is_none()) {
            const Column<int64_t> most("most_per_node", most_per_node);
            most.expect_rows(counts.rows(), "like count").within(0, BookRequests::NO_LIMIT);
            for (size_t g = 0; g < counts.rows(); ++g) {
                groups[g].most_per_node = most[g] == 0 ? BookRequests::NO_LIMIT : most[g];
            }
        }
        return book_->state().requests.add(groups, static_cast<Arrangement>(arrangement), exclusive,
                                           book_->state().nodes);
    }

    nb::object find(int64_t request, int64_t length, nb::handle terms, nb::handle earliest,
                    int64_t latest, bool last) {
        expect_request(request);
        scalar("length", length, 1);
        const std::vector<Term> held = terms_of(terms);
        const int64_t from = earliest.is_none() ? now() : nb::cast<int64_t>(earliest);
        BookFound found{NEVER, {}};
        {
            nb::gil_scoped_release release;
            found = book_->find(static_cast<int32_t>(request), length, {held.data(), held.size()},
                                from, latest, last);
        }
        if (found.start == NEVER) {
            return nb::none();
        }
        MapColumns map;
        map.add(found.placed, book_->state().nodes);
        return nb::make_tuple(found.start, out(std::move(map.nodes)), out(std::move(map.groups)),
                              out(std::move(map.chunks)));
    }

    nb::object why(int64_t request, int64_t length, nb::handle terms, nb::handle earliest,
                   int64_t latest) {
        expect_request(request);
        scalar("length", length, 1);
        const std::vector<Term> held = terms_of(terms);
        const Terms given{held.data(), held.size()};
        const int64_t from = earliest.is_none() ? now() : nb::cast<int64_t>(earliest);
        const auto id = static_cast<int32_t>(request);
        const BookFound found = book_->find(id, length, given, from, latest, false);
        const auto [blocked, constraint] =
            why_not_now(*book_, id, length, given, from, latest, found.start);
        return nb::make_tuple(blocked, constraint);
    }

    bool book(int64_t job, int64_t request, int64_t start, int64_t length, nb::handle terms,
              nb::handle nodes, nb::handle groups, nb::handle chunks) {
        expect_new(job);
        expect_request(request);
        scalar("start", start, now(), NEVER - 1);
        scalar("length", length, 1);
        const Column<int32_t> where("nodes", nodes);
        const Column<int32_t> which("groups", groups);
        const Column<int32_t> many("chunks", chunks);
        which.expect_rows(where.rows(), "like nodes");
        many.expect_rows(where.rows(), "like nodes");
        return book_one(job, static_cast<int32_t>(request), start, length, terms_of(terms),
                        where.data(), which.data(), many.data(), where.rows(), false);
    }
    void revoke(int64_t job) {
        expect_booked(job);
        book_->revoke(job);
    }
    nb::object set_end(int64_t job, int64_t end) {
        expect_booked(job);
        scalar("end", end, book_->booking(job)->start + 1);
        return out(book_->set_end(job, end));
    }

    nb::object book_many(nb::handle job, nb::handle request, nb::handle start, nb::handle length,
                         nb::handle indptr, nb::handle nodes, nb::handle groups, nb::handle chunks,
                         nb::handle term_indptr, nb::handle term_constraint, nb::handle term_amount,
                         nb::handle term_mode, bool forced, bool stop) {
        const Column<int64_t> jobs("job", job);
        const size_t n = jobs.rows();
        const Column<int32_t> requests("request", request);
        requests.expect_rows(n, "like job").within(0, last_request());
        const Column<int64_t> starts("start", start);
        starts.expect_rows(n, "like job").within(0, NEVER - 1);
        const Column<int64_t> lengths("length", length);
        lengths.expect_rows(n, "like job").at_least(1);
        const Column<int32_t> where("nodes", nodes);
        const Column<int32_t> which("groups", groups);
        const Column<int32_t> many("chunks", chunks);
        which.expect_rows(where.rows(), "like nodes");
        many.expect_rows(where.rows(), "like nodes");
        const Column<int64_t> offsets("indptr", indptr);
        offsets.expect_rows(n + 1, "one more than job").expect_offsets(where.rows(), "nodes");
        const TermArguments terms(*book_, term_indptr, term_constraint, term_amount, term_mode, n);
        expect_all_new(jobs);
        for (size_t j = 0; j < n; ++j) {
            if (!forced && starts[j] < now()) {
                refuse("start: job " + std::to_string(jobs[j]) + " starts before now");
            }
            for (auto i = static_cast<size_t>(offsets[j]); i < static_cast<size_t>(offsets[j + 1]);
                 ++i) {
                expect_placement(requests[j], where[i], which[i], many[i]);
            }
        }
        Buffer<bool> booked(n);
        {
            nb::gil_scoped_release release;
            for (size_t j = 0; j < n && !(stop && j > 0 && !booked[j - 1]); ++j) {
                const auto first = static_cast<size_t>(offsets[j]);
                booked[j] =
                    book_one(jobs[j], requests[j], starts[j], lengths[j], terms.columns().of(j),
                             where.data() + first, which.data() + first, many.data() + first,
                             static_cast<size_t>(offsets[j + 1]) - first, forced);
            }
        }
        return nb::cast(to_numpy(std::move(booked)));
    }

    void book_running(nb::handle job, nb::handle run_indptr, nb::handle run_nodes,
                      nb::handle run_use, nb::handle run_end, nb::handle run_exclusive,
                      nb::handle term_indptr, nb::handle term_constraint, nb::handle term_amount,
                      nb::handle term_mode) {
        const Column<int64_t> jobs("job", job);
        const size_t n = jobs.rows();
        const Column<int32_t> nodes("run_nodes", run_nodes);
        nodes.within(0, static_cast<int32_t>(n_nodes()) - 1);
        const Column<int64_t> indptr("run_indptr", run_indptr);
        indptr.expect_rows(n + 1, "one more than job").expect_offsets(nodes.rows(), "run_nodes");
        const size_t n_res = book_->state().nodes.n_res();
        const Column<int64_t> uses("run_use", run_use, 2);
        uses.expect_rows(nodes.rows(), "like run_nodes")
            .expect_columns(n_res, "one per resource")
            .within(0, MOST_AMOUNT);
        const Column<int64_t> ends("run_end", run_end);
        ends.expect_rows(n, "like job");
        const Column<bool> whole("run_exclusive", run_exclusive);
        whole.expect_rows(n, "like job");
        const TermArguments terms(*book_, term_indptr, term_constraint, term_amount, term_mode, n);
        expect_all_new(jobs);
        const BookNodes &all = book_->state().nodes;
        const size_t columns = all.columns();
        for (size_t j = 0; j < n; ++j) {
            Booking booking{jobs[j],  now(), std::max(ends[j], now() + 1), -1,
                            whole[j], 0,     terms.columns().of(j),        {},
                            {},       {}};
            for (auto i = static_cast<size_t>(indptr[j]); i < static_cast<size_t>(indptr[j + 1]);
                 ++i) {
                booking.placed.push_back({all.position(static_cast<size_t>(nodes[i])), -1, 1});
                std::vector<int64_t> amounts(columns, 0);
                all.extend(uses.data() + i * n_res, amounts.data());
                if (whole[j]) {
                    std::fill(amounts.begin(), amounts.end(), 0);
                    amounts.back() = WHOLE;
                }
                booking.raw.insert(booking.raw.end(), amounts.begin(), amounts.end());
            }
            book_->book(std::move(booking));
        }
    }

    PyBookPlan plan_many(nb::handle job, nb::handle request, nb::handle length,
                         nb::handle not_before, nb::handle latest, nb::handle last,
                         nb::handle term_indptr, nb::handle term_constraint, nb::handle term_amount,
                         nb::handle term_mode, bool reasons, int64_t depth) {
        scalar("depth", depth, 0);
        const Column<int64_t> jobs("job", job);
        const size_t n = jobs.rows();
        const Column<int32_t> requests("request", request);
        requests.expect_rows(n, "like job").within(0, last_request());
        const Column<int64_t> lengths("length", length);
        lengths.expect_rows(n, "like job").at_least(1);
        const Column<int64_t> begins("not_before", not_before);
        begins.expect_rows(n, "like job");
        const Column<int64_t> limits("latest", latest);
        limits.expect_rows(n, "like job");
        const Column<bool> lasts("last", last);
        lasts.expect_rows(n, "like job");
        const TermArguments terms(*book_, term_indptr, term_constraint, term_amount, term_mode, n);
        expect_all_new(jobs);
        BookPlan plan;
        {
            nb::gil_scoped_release release;
            plan = bridge::plan_many(*book_,
                                     {n, jobs.data(), requests.data(), lengths.data(),
                                      begins.data(), limits.data(), lasts.data(), terms.columns()},
                                     depth, reasons);
        }
        return {out(std::move(plan.start)),
                out(std::move(plan.map.indptr)),
                out(std::move(plan.map.nodes)),
                out(std::move(plan.map.groups)),
                out(std::move(plan.map.chunks)),
                out(std::move(plan.blocked_by)),
                out(std::move(plan.blocked_constraint))};
    }

    // Starts of the jobs after replanning; the caller sees by them who moved.
    nb::object replan_many(nb::handle job, nb::handle not_before) {
        const Column<int64_t> jobs("job", job);
        const size_t n = jobs.rows();
        const Column<int64_t> begins("not_before", not_before);
        begins.expect_rows(n, "like job");
        for (size_t j = 0; j < n; ++j) {
            expect_booked(jobs[j]);
        }
        std::vector<int64_t> starts(n);
        {
            nb::gil_scoped_release release;
            for (size_t j = 0; j < n; ++j) {
                book_->replan(jobs[j], begins[j]);
                starts[j] = book_->booking(jobs[j])->start;
            }
        }
        return out(std::move(starts));
    }

    PyBookings bookings(nb::handle job) const {
        std::vector<const Booking *> all;
        if (job.is_none()) {
            all = book_->in_order();
        } else {
            const Column<int64_t> jobs("job", job);
            for (size_t j = 0; j < jobs.rows(); ++j) {
                expect_booked(jobs[j]);
                all.push_back(book_->booking(jobs[j]));
            }
        }
        std::vector<int64_t> jobs;
        std::vector<int32_t> requests;
        std::vector<int64_t> starts;
        std::vector<int64_t> ends;
        MapColumns map;
        for (const Booking *booking : all) {
            jobs.push_back(booking->job);
            requests.push_back(booking->request);
            starts.push_back(booking->start);
            ends.push_back(booking->end);
            map.add(booking->placed, book_->state().nodes);
        }
        return {out(std::move(jobs)),       out(std::move(requests)),   out(std::move(starts)),
                out(std::move(ends)),       out(std::move(map.indptr)), out(std::move(map.nodes)),
                out(std::move(map.groups)), out(std::move(map.chunks))};
    }

    nb::object free_at(int64_t time) const {
        scalar("time", time, now());
        const BookNodes &nodes = book_->state().nodes;
        const size_t n_res = nodes.n_res();
        auto *kept = new std::vector<int64_t>(nodes.size() * n_res, 0);
        nb::capsule owner(kept,
                          [](void *p) noexcept { delete static_cast<std::vector<int64_t> *>(p); });
        for (size_t p = 0; p < nodes.size(); ++p) {
            const int64_t *free = book_->state().lines.free_at(p, time);
            if (free[nodes.occupancy()] > 0) {
                std::copy_n(free, n_res,
                            kept->begin() + static_cast<std::ptrdiff_t>(
                                                static_cast<size_t>(nodes.index(p)) * n_res));
            }
        }
        return nb::cast(nb::ndarray<nb::numpy, int64_t, nb::ndim<2>>(kept->data(),
                                                                     {nodes.size(), n_res}, owner));
    }

    nb::object booked_on(nb::handle nodes, int64_t start, int64_t end) const {
        std::vector<bool> member(n_nodes(), false);
        for (const int32_t p : positions_of("nodes", nodes)) {
            member[static_cast<size_t>(p)] = true;
        }
        return out(book_->booked_on(member, start, end));
    }
    std::pair<nb::object, nb::object> holders(int64_t request, nb::handle terms, int64_t start,
                                              int64_t length) {
        expect_request(request);
        scalar("start", start, now(), NEVER - 1);
        scalar("length", length, 1);
        const std::vector<Term> held = terms_of(terms);
        Book::Holders found = book_->holders(static_cast<int32_t>(request),
                                             {held.data(), held.size()}, start, length);
        return {out(std::move(found.jobs)), out(std::move(found.constraints))};
    }

    bool overbooked() const { return book_->overbooked(); }

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

    int32_t last_request() const {
        return static_cast<int32_t>(book_->state().requests.size()) - 1;
    }
    void expect_class(const char *name, int64_t cls) const {
        scalar(name, cls, 0, static_cast<int64_t>(book_->state().requests.n_classes()) - 1);
    }
    void expect_request(int64_t request) const { scalar("request", request, 0, last_request()); }
    void expect_constraint(int64_t constraint) const {
        scalar("constraint", constraint, 0,
               static_cast<int64_t>(book_->state().constraints.size()) - 1);
    }
    void expect_new(int64_t job) const {
        if (book_->booking(job) != nullptr) {
            refuse("job: " + std::to_string(job) + " is booked already");
        }
    }
    void expect_all_new(const Column<int64_t> &jobs) const {
        std::vector<int64_t> sorted(jobs.data(), jobs.data() + jobs.rows());
        std::sort(sorted.begin(), sorted.end());
        for (size_t j = 0; j < sorted.size(); ++j) {
            expect_new(sorted[j]);
            if (j > 0 && sorted[j] == sorted[j - 1]) {
                refuse("job: " + std::to_string(sorted[j]) + " occurs twice");
            }
        }
    }
    void expect_booked(int64_t job) const {
        if (book_->booking(job) == nullptr) {
            refuse("job: " + std::to_string(job) + " is not booked");
        }
    }
    void expect_mark(int64_t mark) const {
        if (mark < 0 || mark >= book_->marks()) {
            refuse("mark: " + std::to_string(mark) + " is not set");
        }
    }
    void expect_placement(int32_t request, int32_t node, int32_t group, int32_t chunks) const {
        const auto groups = static_cast<int64_t>(book_->state().requests[request].groups.size());
        scalar("nodes", node, 0, static_cast<int64_t>(n_nodes()) - 1);
        scalar("groups", group, 0, groups - 1);
        scalar("chunks", chunks, 1);
    }

    std::vector<int32_t> positions_of(const char *name, nb::handle nodes) const {
        const Column<uint64_t> words(name, nodes);
        const size_t n = n_nodes();
        words.expect_rows((n + 63) / 64, "one bit per node");
        std::vector<int32_t> positions;
        for (size_t i = 0; i < words.rows() * 64; ++i) {
            if ((words[i / 64] >> (i % 64) & 1) != 0) {
                if (i >= n) {
                    refuse(std::string(name) + ": has a bit beyond the last node");
                }
                positions.push_back(book_->state().nodes.position(i));
            }
        }
        std::sort(positions.begin(), positions.end());
        return positions;
    }
    std::pair<std::vector<int64_t>, std::vector<int64_t>> steps(nb::handle starts,
                                                                nb::handle amounts) const {
        const Column<int64_t> at("starts", starts);
        const Column<int64_t> what("amounts", amounts);
        what.expect_rows(at.rows(), "like starts");
        if (at.rows() == 0) {
            refuse("starts: a constraint has one step at least");
        }
        for (size_t i = 0; i < at.rows(); ++i) {
            if (i > 0 && at[i] <= at[i - 1]) {
                refuse("starts: not ascending at position " + std::to_string(i));
            }
            if (what[i] < 0 || (what[i] > (int64_t{1} << 60) && what[i] != UNBOUNDED)) {
                refuse("amounts: " + std::to_string(what[i]) + " at position " + std::to_string(i) +
                       " is neither within 0 and 2**60 nor unbounded");
            }
        }
        return {{at.data(), at.data() + at.rows()}, {what.data(), what.data() + what.rows()}};
    }
    std::vector<Term> terms_of(nb::handle terms) const {
        if (terms.is_none()) {
            return {};
        }
        const auto given = nb::cast<std::tuple<nb::object, nb::object, nb::object>>(terms);
        const Column<int32_t> constraint("terms", std::get<0>(given));
        std::vector<int64_t> offsets{0, static_cast<int64_t>(constraint.rows())};
        const nb::object indptr = out(std::move(offsets));
        return TermArguments(*book_, indptr, std::get<0>(given), std::get<1>(given),
                             std::get<2>(given), 1)
            .columns()
            .of(0);
    }

    bool book_one(int64_t job, int32_t request, int64_t start, int64_t length,
                  std::vector<Term> terms, const int32_t *nodes, const int32_t *groups,
                  const int32_t *chunks, size_t n, bool forced) {
        std::vector<Placed> placed;
        placed.reserve(n);
        for (size_t i = 0; i < n; ++i) {
            expect_placement(request, nodes[i], groups[i], chunks[i]);
            placed.push_back({book_->state().nodes.position(static_cast<size_t>(nodes[i])),
                              groups[i], chunks[i]});
        }
        const auto order = [](const Placed &a, const Placed &b) {
            return a.position != b.position ? a.position < b.position : a.group < b.group;
        };
        if (!std::is_sorted(placed.begin(), placed.end(), order)) {
            std::sort(placed.begin(), placed.end(), order);
        }
        for (size_t i = 1; i < placed.size(); ++i) {
            if (!order(placed[i - 1], placed[i])) {
                refuse("nodes: node " +
                       std::to_string(
                           book_->state().nodes.index(static_cast<size_t>(placed[i].position))) +
                       " occurs twice for one group of job " + std::to_string(job));
            }
        }
        if (!forced &&
            !book_->holds(request, start, length, {terms.data(), terms.size()}, placed)) {
            return false;
        }
        const bool exclusive = book_->state().requests[request].exclusive;
        book_->book({job,
                     start,
                     end_of(start, length),
                     request,
                     exclusive,
                     0,
                     std::move(terms),
                     std::move(placed),
                     {},
                     {}});
        return true;
    }
};

} // namespace

void define_book(nb::module_ &m) {
    using namespace nb::literals;
    nb::enum_<Arrangement>(m, "Arrangement", nb::is_arithmetic())
        .value("FREE", Arrangement::FREE)
        .value("PACK", Arrangement::PACK)
        .value("SCATTER", Arrangement::SCATTER);
    nb::enum_<TermMode>(m, "TermMode", nb::is_arithmetic())
        .value("BOTH", TermMode::BOTH)
        .value("COUNT", TermMode::COUNT)
        .value("CHECK", TermMode::CHECK);
    nb::class_<PyBookPlan>(m, "BookPlan")
        .def_ro("start", &PyBookPlan::start)
        .def_ro("indptr", &PyBookPlan::indptr)
        .def_ro("nodes", &PyBookPlan::nodes)
        .def_ro("groups", &PyBookPlan::groups)
        .def_ro("chunks", &PyBookPlan::chunks)
        .def_ro("blocked_by", &PyBookPlan::blocked_by)
        .def_ro("blocked_constraint", &PyBookPlan::blocked_constraint);
    nb::class_<PyBookings>(m, "Bookings")
        .def_ro("job", &PyBookings::job)
        .def_ro("request", &PyBookings::request)
        .def_ro("start", &PyBookings::start)
        .def_ro("end", &PyBookings::end)
        .def_ro("indptr", &PyBookings::indptr)
        .def_ro("nodes", &PyBookings::nodes)
        .def_ro("groups", &PyBookings::groups)
        .def_ro("chunks", &PyBookings::chunks);
    nb::class_<PyBook>(m, "Book")
        .def(nb::init<int64_t, nb::handle, nb::handle,
                      const std::vector<std::pair<int64_t, nb::object>> &, int64_t>(),
             "now"_a, "capacity"_a, "node_rank"_a,
             "protections"_a = std::vector<std::pair<int64_t, nb::object>>(), "select"_a = 0)
        .def_prop_ro("now", &PyBook::now)
        .def_prop_ro("n_nodes", &PyBook::n_nodes)
        .def_prop_ro("given_up", &PyBook::given_up)
        .def("__len__", &PyBook::size)
        .def("advance", &PyBook::advance, "now"_a)
        .def("add_class", &PyBook::add_class, "nodes"_a)
        .def("close", &PyBook::close, "cls"_a, "start"_a, "end"_a, "nodes"_a)
        .def("reopen", &PyBook::reopen, "closure"_a)
        .def("set_capacity", &PyBook::set_capacity, "node"_a, "amounts"_a)
        .def("add_constraint", &PyBook::add_constraint, "starts"_a, "amounts"_a)
        .def("set_constraint", &PyBook::set_constraint, "constraint"_a, "starts"_a, "amounts"_a)
        .def("constraint_use", &PyBook::constraint_use, "constraint"_a)
        .def("add_request", &PyBook::add_request, "count"_a, "want"_a, "cls"_a, "arrangement"_a = 0,
             "exclusive"_a = false, "most_per_node"_a = nb::none())
        .def("find", &PyBook::find, "request"_a, "length"_a, "terms"_a = nb::none(),
             "earliest"_a = nb::none(), "latest"_a = NEVER, "last"_a = false)
        .def("why", &PyBook::why, "request"_a, "length"_a, "terms"_a = nb::none(),
             "earliest"_a = nb::none(), "latest"_a = NEVER)
        .def("book", &PyBook::book, "job"_a, "request"_a, "start"_a, "length"_a, "terms"_a,
             "nodes"_a, "groups"_a, "chunks"_a)
        .def("revoke", &PyBook::revoke, "job"_a)
        .def("set_end", &PyBook::set_end, "job"_a, "end"_a)
        .def("book_many", &PyBook::book_many, nb::kw_only(), "job"_a, "request"_a, "start"_a,
             "length"_a, "indptr"_a, "nodes"_a, "groups"_a, "chunks"_a, "term_indptr"_a,
             "term_constraint"_a, "term_amount"_a, "term_mode"_a, "forced"_a = false,
             "stop"_a = false)
        .def("book_running", &PyBook::book_running, nb::kw_only(), "job"_a, "run_indptr"_a,
             "run_nodes"_a, "run_use"_a, "run_end"_a, "run_exclusive"_a, "term_indptr"_a,
             "term_constraint"_a, "term_amount"_a, "term_mode"_a)
        .def("plan_many", &PyBook::plan_many, nb::kw_only(), "job"_a, "request"_a, "length"_a,
             "not_before"_a, "latest"_a, "last"_a, "term_indptr"_a, "term_constraint"_a,
             "term_amount"_a, "term_mode"_a, "reasons"_a = true, "depth"_a = NEVER)
        .def("replan_many", &PyBook::replan_many, "job"_a, "not_before"_a)
        .def("bookings", &PyBook::bookings, "job"_a = nb::none())
        .def("free_at", &PyBook::free_at, "time"_a)
        .def("booked_on", &PyBook::booked_on, "nodes"_a, "start"_a, "end"_a)
        .def("holders", &PyBook::holders, "request"_a, "terms"_a, "start"_a, "length"_a)
        .def("overbooked", &PyBook::overbooked)
        .def("mark", &PyBook::mark)
        .def("undo", &PyBook::undo, "mark"_a)
        .def("keep", &PyBook::keep, "mark"_a);
}

} // namespace bridge
