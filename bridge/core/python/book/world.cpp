// SPDX-License-Identifier: Apache-2.0
// Python binding of Book: nodes, classes of them and when they are closed, constraints, requests.
#include "python/book/book.hpp"

namespace bridge {

PyBook::PyBook(int64_t now, nb::handle capacity, nb::handle node_rank,
               const std::vector<std::pair<int64_t, nb::object>> &protections, int64_t select) {
    scalar("now", now, 0, NEVER - 1);
    scalar("select", select, 0, 1);
    const Column<int64_t> capacities("capacity", capacity, 2);
    capacities.within(0, MAX_AMOUNT);
    const Column<int32_t> ranks("node_rank", node_rank);
    ranks.expect_rows(capacities.rows(), "like capacity");
    const auto n_res = static_cast<int64_t>(capacities.columns());
    std::vector<Protection> kept;
    for (const auto &[resource, keep] : protections) {
        scalar("protections", resource, 0, n_res - 1);
        const Column<int64_t> amounts("protections", keep, 2);
        amounts.expect_rows(capacities.rows(), "like capacity")
            .expect_columns(capacities.columns(), "like capacity")
            .within(0, MAX_AMOUNT);
        kept.push_back(
            {static_cast<size_t>(resource),
             {amounts.data(), amounts.data() + capacities.rows() * capacities.columns()}});
    }
    book_ = std::make_unique<Book>(now, BookNodes(capacities.rows(), capacities.columns(),
                                                  capacities.data(), ranks.data(), kept));
    book_->state().nodes.set_best_fit(select == static_cast<int64_t>(Select::BEST_FIT));
}

void PyBook::advance(int64_t now) {
    scalar("now", now, this->now(), NEVER - 1);
    if (book_->marked()) {
        refuse("now: time cannot advance while a mark is set");
    }
    book_->advance(now);
}

void PyBook::set_class(int64_t cls, Array<uint64_t> nodes) {
    expect_class("cls", cls);
    const auto id = static_cast<int32_t>(cls);
    if (book_->marked()) {
        refuse("cls: a class cannot change while a mark is set");
    }
    if (book_->state().requests.cls(id).ever_closed()) {
        refuse("cls: a class with closed times cannot change");
    }
    book_->set_class(id, positions_of("nodes", nodes));
}

int32_t PyBook::close(int32_t cls, int64_t start, int64_t end, Array<uint64_t> nodes) {
    expect_class("cls", cls);
    scalar("start", start, 0, NEVER - 1);
    scalar("end", end, start + 1);
    const int32_t id = book_->close(cls, start, end, positions_of("nodes", nodes));
    ++closures_;
    return id;
}

void PyBook::reopen(int64_t closure) {
    scalar("closure", closure, 0, closures_ - 1);
    book_->reopen(static_cast<int32_t>(closure));
}

int32_t PyBook::add_constraint(Array<int64_t> starts, Array<int64_t> amounts) {
    const auto [at, what] = steps(starts, amounts);
    return book_->add_constraint(at, what);
}

void PyBook::set_constraint(int64_t constraint, Array<int64_t> starts, Array<int64_t> amounts) {
    expect_constraint(constraint);
    const auto [at, what] = steps(starts, amounts);
    book_->set_constraint(static_cast<int32_t>(constraint), at, what);
}

int32_t PyBook::add_request(Array<int64_t> count, Array<int64_t> want, Array<int32_t> cls,
                            int64_t arrangement, bool exclusive, Array<int64_t> max_per_node) {
    const Column<int64_t> counts("count", count);
    const Column<int64_t> demands("want", want, 2);
    const Column<int32_t> classes("cls", cls);
    const size_t n_res = book_->state().nodes.n_res();
    counts.within(1, BookRequests::NO_LIMIT);
    demands.expect_rows(counts.rows(), "like count")
        .expect_columns(n_res, "one per resource")
        .within(0, MAX_AMOUNT);
    classes.expect_rows(counts.rows(), "like count")
        .within(0, static_cast<int32_t>(book_->state().requests.n_classes()) - 1);
    scalar("arrangement", arrangement, 0, 2);
    scalar("count", static_cast<int64_t>(counts.rows()), 1, 64);
    std::vector<BookRequests::Asked> groups;
    for (size_t g = 0; g < counts.rows(); ++g) {
        groups.push_back({classes[g],
                          counts[g],
                          BookRequests::NO_LIMIT,
                          {demands.data() + g * n_res, demands.data() + (g + 1) * n_res}});
    }
    if (!max_per_node.is_none()) {
        const Column<int64_t> maximum("max_per_node", max_per_node);
        maximum.expect_rows(counts.rows(), "like count").within(0, BookRequests::NO_LIMIT);
        for (size_t g = 0; g < counts.rows(); ++g) {
            groups[g].max_per_node = maximum[g] == 0 ? BookRequests::NO_LIMIT : maximum[g];
        }
    }
    return book_->state().requests.add(groups, static_cast<Arrangement>(arrangement), exclusive,
                                       book_->state().nodes);
}

} // namespace bridge
