// SPDX-License-Identifier: Apache-2.0
// Python binding of Book: earliest starts and why not now; booking and planning, of many jobs too.
#include "python/book/book.hpp"

#include <algorithm>
#include <string>

#include "book/settle.hpp"

namespace bridge {

FoundStart PyBook::find(int64_t request, int64_t length, nb::handle terms, nb::handle earliest,
                        int64_t latest, bool last) {
    expect_request(request);
    scalar("length", length, 1);
    const std::vector<Term> held = terms_of(terms);
    const int64_t from = earliest.is_none() ? now() : nb::cast<int64_t>(earliest);
    BookFound found{NEVER, {}};
    {
        nb::gil_scoped_release release;
        found = book_->find(static_cast<int32_t>(request), length, {held.data(), held.size()}, from,
                            latest, last);
    }
    if (found.start == NEVER) {
        return std::nullopt;
    }
    MapColumns map;
    map.add(found.placed, book_->state().nodes);
    return nb::make_tuple(found.start, to_numpy(std::move(map.nodes)),
                          to_numpy(std::move(map.groups)), to_numpy(std::move(map.chunks)));
}

Tuple<Blocked, int32_t> PyBook::why(int64_t request, int64_t length, nb::handle terms,
                                    nb::handle earliest, int64_t latest) {
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

bool PyBook::book(int64_t job, int64_t request, int64_t start, int64_t length, nb::handle terms,
                  Array<int32_t> nodes, Array<int32_t> groups, Array<int32_t> chunks) {
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

void PyBook::revoke(int64_t job) {
    booked(job);
    book_->revoke(job);
}

Array<bool> PyBook::book_many(Array<int64_t> job, Array<int32_t> request, Array<int64_t> start,
                              Array<int64_t> length, Array<int64_t> indptr, Array<int32_t> nodes,
                              Array<int32_t> groups, Array<int32_t> chunks,
                              Array<int64_t> term_indptr, Array<int32_t> term_constraint,
                              Array<int64_t> term_amount, Array<int8_t> term_mode, bool forced,
                              bool stop) {
    const PlacedJobs all(*book_, job, request, start, length, indptr, nodes, groups, chunks);
    const size_t n = all.jobs.rows();
    const TermArguments terms(*book_, term_indptr, term_constraint, term_amount, term_mode, n);
    expect_all_new(all.jobs);
    for (size_t j = 0; j < n && !forced; ++j) {
        if (all.starts[j] < now()) {
            refuse("start: job " + std::to_string(all.jobs[j]) + " starts before now");
        }
    }
    Buffer<bool> booked(n);
    {
        nb::gil_scoped_release release;
        for (size_t j = 0; j < n && !(stop && j > 0 && !booked[j - 1]); ++j) {
            booked[j] = book_placed(all, j, terms.columns().of(j), forced);
        }
    }
    return to_numpy(std::move(booked));
}

PyKept PyBook::keep_many(Array<int64_t> job, Array<int32_t> request, Array<int64_t> start,
                         Array<int64_t> length, Array<int64_t> indptr, Array<int32_t> nodes,
                         Array<int32_t> groups, Array<int32_t> chunks, Array<int64_t> term_indptr,
                         Array<int32_t> term_constraint, Array<int64_t> term_amount,
                         Array<int8_t> term_mode, Array<bool> stands, Array<bool> movable,
                         int64_t first) {
    const PlacedJobs all(*book_, job, request, start, length, indptr, nodes, groups, chunks);
    const size_t n = all.jobs.rows();
    all.starts.within(now(), NEVER - 1);
    scalar("first", first, 0, static_cast<int64_t>(n));
    const TermArguments terms(*book_, term_indptr, term_constraint, term_amount, term_mode, n);
    const Column<bool> stand("stands", stands);
    stand.expect_rows(n, "like job");
    const Column<bool> may_move("movable", movable);
    may_move.expect_rows(n, "like job");
    auto j = static_cast<size_t>(first);
    Buffer<bool> kept(n);
    std::fill_n(kept.data(), n, false);
    std::vector<int64_t> starts(n, NEVER);
    std::vector<int8_t> blocked(n, static_cast<int8_t>(Blocked::NEVER_NODES));
    std::vector<int32_t> constraint(n, -1);
    {
        nb::gil_scoped_release release;
        for (; j < n; ++j) {
            expect_new(all.jobs[j]);
            kept[j] = stand[j] && book_placed(all, j, terms.columns().of(j), false);
            if (kept[j]) {
                starts[j] = all.starts[j];
                continue;
            }
            if (!may_move[j]) {
                break;
            }
            const bool last = false;
            const auto plan = bridge::plan_many(
                *book_,
                {1, all.jobs.data() + j, all.requests.data() + j, all.lengths.data() + j,
                 all.starts.data() + j, all.starts.data() + j, &last, terms.columns().from(j)},
                NEVER, true);
            starts[j] = plan.start.front();
            blocked[j] = plan.blocked_by.front();
            constraint[j] = plan.blocked_constraint.front();
        }
    }
    return {static_cast<int64_t>(j), to_numpy(std::move(kept)), to_numpy(std::move(starts)),
            to_numpy(std::move(blocked)), to_numpy(std::move(constraint))};
}

std::optional<PyKept> PyBook::settle(Array<int64_t> job, Array<int32_t> request,
                                     Array<int64_t> start, Array<int64_t> length,
                                     Array<int64_t> term_indptr, Array<int32_t> term_constraint,
                                     Array<int64_t> term_amount, Array<int8_t> term_mode,
                                     Array<bool> booked, Array<bool> unsure, Array<bool> movable,
                                     int64_t maximum) {
    const Column<int64_t> jobs("job", job);
    const size_t n = jobs.rows();
    const Column<int32_t> requests("request", request);
    requests.expect_rows(n, "like job").within(0, last_request());
    const Column<int64_t> starts("start", start);
    starts.expect_rows(n, "like job").within(now(), NEVER - 1);
    const Column<int64_t> lengths("length", length);
    lengths.expect_rows(n, "like job").at_least(1);
    const TermArguments terms(*book_, term_indptr, term_constraint, term_amount, term_mode, n);
    const Column<bool> there("booked", booked);
    there.expect_rows(n, "like job");
    const Column<bool> doubt("unsure", unsure);
    doubt.expect_rows(n, "like job");
    const Column<bool> may_move("movable", movable);
    may_move.expect_rows(n, "like job");
    scalar("maximum", maximum, 0);
    if (std::any_of(terms.columns().mode, terms.columns().mode + terms.columns().indptr[n],
                    [](int8_t mode) { return mode == static_cast<int8_t>(TermMode::CHECK); })) {
        refuse("term_mode: expected BOTH or COUNT");
    }
    for (size_t j = 0; j < n; ++j) {
        const Booking *known = book_->booking(jobs[j]);
        if (there[j] != (known != nullptr)) {
            refuse("booked: job " + std::to_string(jobs[j]) +
                   (there[j] ? " is not booked" : " is booked"));
        }
        if (known != nullptr && (known->request != requests[j] || known->start != starts[j] ||
                                 known->end != end_of(starts[j], lengths[j]))) {
            refuse("start: job " + std::to_string(jobs[j]) + " is booked otherwise");
        }
    }
    Settled settled;
    bool done = false;
    {
        nb::gil_scoped_release release;
        done = bridge::settle(*book_,
                              {{n, jobs.data(), requests.data(), lengths.data(), starts.data(),
                                starts.data(), nullptr, terms.columns()},
                               there.data(),
                               doubt.data(),
                               may_move.data()},
                              static_cast<size_t>(maximum), settled);
    }
    if (!done) {
        return std::nullopt;
    }
    Buffer<bool> kept(n);
    std::copy(settled.kept.begin(), settled.kept.end(), kept.data());
    return PyKept{static_cast<int64_t>(n), to_numpy(std::move(kept)),
                  to_numpy(std::move(settled.start)), to_numpy(std::move(settled.blocked_by)),
                  to_numpy(std::move(settled.blocked_constraint))};
}

void PyBook::book_running(Array<int64_t> job, Array<int64_t> run_indptr, Array<int32_t> run_nodes,
                          Array<int64_t> run_use, Array<int64_t> run_end, Array<bool> run_exclusive,
                          Array<int64_t> term_indptr, Array<int32_t> term_constraint,
                          Array<int64_t> term_amount, Array<int8_t> term_mode) {
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
        .within(0, MAX_AMOUNT);
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
        for (auto i = static_cast<size_t>(indptr[j]); i < static_cast<size_t>(indptr[j + 1]); ++i) {
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

PyBookPlan PyBook::plan_many(Array<int64_t> job, Array<int32_t> request, Array<int64_t> length,
                             Array<int64_t> not_before, Array<int64_t> latest, Array<bool> last,
                             Array<int64_t> term_indptr, Array<int32_t> term_constraint,
                             Array<int64_t> term_amount, Array<int8_t> term_mode, bool reasons,
                             int64_t depth) {
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
                                 {n, jobs.data(), requests.data(), lengths.data(), begins.data(),
                                  limits.data(), lasts.data(), terms.columns()},
                                 depth, reasons);
    }
    return {to_numpy(std::move(plan.start)),
            to_numpy(std::move(plan.map.indptr)),
            to_numpy(std::move(plan.map.nodes)),
            to_numpy(std::move(plan.map.groups)),
            to_numpy(std::move(plan.map.chunks)),
            to_numpy(std::move(plan.blocked_by)),
            to_numpy(std::move(plan.blocked_constraint))};
}

Array<int64_t> PyBook::replan_many(Array<int64_t> job, Array<int64_t> not_before) {
    const Column<int64_t> jobs("job", job);
    const size_t n = jobs.rows();
    const Column<int64_t> begins("not_before", not_before);
    begins.expect_rows(n, "like job");
    std::vector<Booking *> all(n);
    for (size_t j = 0; j < n; ++j) {
        all[j] = &booked(jobs[j]);
    }
    std::vector<int64_t> starts(n);
    {
        nb::gil_scoped_release release;
        for (size_t j = 0; j < n; ++j) {
            if (j + AHEAD < n) {
                prefetch(all[j + AHEAD]);
            }
            book_->replan(*all[j], begins[j]);
            starts[j] = all[j]->start;
        }
    }
    return to_numpy(std::move(starts));
}

bool PyBook::book_placed(const PlacedJobs &all, size_t j, std::vector<Term> terms, bool forced) {
    const auto first = static_cast<size_t>(all.offsets[j]);
    return book_one(all.jobs[j], all.requests[j], all.starts[j], all.lengths[j], std::move(terms),
                    all.where.data() + first, all.which.data() + first, all.many.data() + first,
                    static_cast<size_t>(all.offsets[j + 1]) - first, forced);
}

bool PyBook::book_one(int64_t job, int32_t request, int64_t start, int64_t length,
                      std::vector<Term> terms, const int32_t *nodes, const int32_t *groups,
                      const int32_t *chunks, size_t n, bool forced) {
    std::vector<Placed> placed;
    placed.reserve(n);
    for (size_t i = 0; i < n; ++i) {
        expect_placement(request, nodes[i], groups[i], chunks[i]);
        placed.push_back(
            {book_->state().nodes.position(static_cast<size_t>(nodes[i])), groups[i], chunks[i]});
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
    if (!forced && !book_->holds(request, start, length, {terms.data(), terms.size()}, placed)) {
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

} // namespace bridge
