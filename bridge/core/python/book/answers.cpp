// SPDX-License-Identifier: Apache-2.0
// Python binding of Book: bookings, free amounts, use of constraints, who holds what.
#include "python/book/book.hpp"

#include <algorithm>

namespace bridge {

std::tuple<Array<int64_t>, Array<int64_t>, Array<int64_t>>
PyBook::constraint_use(int64_t constraint) const {
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
    return {to_numpy(std::move(begin)), to_numpy(std::move(amount)), to_numpy(std::move(used))};
}

PyBookings PyBook::bookings(Array<int64_t> job) const {
    std::vector<const Booking *> all;
    if (job.is_none()) {
        all = book_->in_order();
    } else {
        const Column<int64_t> jobs("job", job);
        all.reserve(jobs.rows());
        for (size_t j = 0; j < jobs.rows(); ++j) {
            all.push_back(&booked(jobs[j]));
        }
    }
    const size_t n = all.size();
    std::vector<int64_t> jobs(n);
    std::vector<int32_t> requests(n);
    std::vector<int64_t> starts(n);
    std::vector<int64_t> ends(n);
    size_t entries = 0;
    for (size_t j = 0; j < n; ++j) {
        if (j + AHEAD < n) {
            prefetch(all[j + AHEAD]);
        }
        jobs[j] = all[j]->job;
        requests[j] = all[j]->request;
        starts[j] = all[j]->start;
        ends[j] = all[j]->end;
        entries += all[j]->placed.size();
    }
    MapColumns map;
    map.reserve(n, entries);
    for (size_t j = 0; j < n; ++j) {
        if (j + AHEAD < n) {
            __builtin_prefetch(all[j + AHEAD]->placed.data());
        }
        map.add(all[j]->placed, book_->state().nodes);
    }
    return {to_numpy(std::move(jobs)),       to_numpy(std::move(requests)),
            to_numpy(std::move(starts)),     to_numpy(std::move(ends)),
            to_numpy(std::move(map.indptr)), to_numpy(std::move(map.nodes)),
            to_numpy(std::move(map.groups)), to_numpy(std::move(map.chunks))};
}

Array<int64_t> PyBook::free_at(int64_t time) const {
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
    return nb::cast(
        nb::ndarray<nb::numpy, int64_t, nb::ndim<2>>(kept->data(), {nodes.size(), n_res}, owner));
}

std::pair<Array<int64_t>, Array<int32_t>> PyBook::holders(int64_t request, nb::handle terms,
                                                          int64_t start, int64_t length) {
    expect_request(request);
    scalar("start", start, now(), NEVER - 1);
    scalar("length", length, 1);
    const std::vector<Term> held = terms_of(terms);
    Book::Holders found =
        book_->holders(static_cast<int32_t>(request), {held.data(), held.size()}, start, length);
    return {to_numpy(std::move(found.jobs)), to_numpy(std::move(found.constraints))};
}

} // namespace bridge
