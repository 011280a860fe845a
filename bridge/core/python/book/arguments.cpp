// SPDX-License-Identifier: Apache-2.0
// Python binding of Book: checks of jobs, marks, placements, sets of nodes, steps and terms.
#include "python/book/book.hpp"

#include <algorithm>
#include <string>

namespace bridge {

TermArguments::TermArguments(const Book &book, nb::handle indptr, nb::handle constraint,
                             nb::handle amount, nb::handle mode, size_t jobs)
    : constraint_("term_constraint", constraint), amount_("term_amount", amount),
      mode_("term_mode", mode), indptr_("term_indptr", indptr) {
    constraint_.within(0, static_cast<int32_t>(book.state().constraints.size()) - 1);
    amount_.expect_rows(constraint_.rows(), "like term_constraint").within(0, MAX_AMOUNT);
    mode_.expect_rows(constraint_.rows(), "like term_constraint").within(0, 2);
    indptr_.expect_rows(jobs + 1, "one more than job")
        .expect_offsets(constraint_.rows(), "term_constraint");
}

void PyBook::expect_constraint(int64_t constraint) const {
    scalar("constraint", constraint, 0,
           static_cast<int64_t>(book_->state().constraints.size()) - 1);
}

void PyBook::expect_new(int64_t job) const {
    if (book_->booking(job) != nullptr) {
        refuse("job: " + std::to_string(job) + " is booked already");
    }
}

void PyBook::expect_all_new(const Column<int64_t> &jobs) const {
    std::vector<int64_t> sorted(jobs.data(), jobs.data() + jobs.rows());
    std::sort(sorted.begin(), sorted.end());
    for (size_t j = 0; j < sorted.size(); ++j) {
        expect_new(sorted[j]);
        if (j > 0 && sorted[j] == sorted[j - 1]) {
            refuse("job: " + std::to_string(sorted[j]) + " occurs twice");
        }
    }
}

Booking &PyBook::booked(int64_t job) const {
    Booking *found = book_->booking(job);
    if (found == nullptr) {
        refuse("job: " + std::to_string(job) + " is not booked");
    }
    return *found;
}

void PyBook::expect_mark(int64_t mark) const {
    if (mark < 0 || mark >= book_->marks()) {
        refuse("mark: " + std::to_string(mark) + " is not set");
    }
}

PlacedJobs::PlacedJobs(const Book &book, nb::handle job, nb::handle request, nb::handle start,
                       nb::handle length, nb::handle indptr, nb::handle nodes, nb::handle groups,
                       nb::handle chunks)
    : jobs("job", job), requests("request", request), starts("start", start),
      lengths("length", length), offsets("indptr", indptr), where("nodes", nodes),
      which("groups", groups), many("chunks", chunks) {
    const size_t n = jobs.rows();
    requests.expect_rows(n, "like job")
        .within(0, static_cast<int32_t>(book.state().requests.size()) - 1);
    starts.expect_rows(n, "like job").within(0, NEVER - 1);
    lengths.expect_rows(n, "like job").at_least(1);
    which.expect_rows(where.rows(), "like nodes").at_least(0);
    many.expect_rows(where.rows(), "like nodes").at_least(1);
    where.within(0, static_cast<int32_t>(book.state().nodes.size()) - 1);
    offsets.expect_rows(n + 1, "one more than job").expect_offsets(where.rows(), "nodes");
    for (size_t j = 0; j < n; ++j) {
        const size_t groups_of = book.state().requests[requests[j]].groups.size();
        for (auto i = static_cast<size_t>(offsets[j]); i < static_cast<size_t>(offsets[j + 1]);
             ++i) {
            scalar("groups", which[i], 0, static_cast<int64_t>(groups_of) - 1);
        }
    }
}

void PyBook::expect_placement(int32_t request, int32_t node, int32_t group, int32_t chunks) const {
    const auto groups = static_cast<int64_t>(book_->state().requests[request].groups.size());
    scalar("nodes", node, 0, static_cast<int64_t>(n_nodes()) - 1);
    scalar("groups", group, 0, groups - 1);
    scalar("chunks", chunks, 1);
}

std::vector<int32_t> PyBook::positions_of(const char *name, nb::handle nodes) const {
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

std::pair<std::vector<int64_t>, std::vector<int64_t>> PyBook::steps(nb::handle starts,
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

std::vector<Term> PyBook::terms_of(nb::handle terms) const {
    if (terms.is_none()) {
        return {};
    }
    const auto given = nb::cast<std::tuple<nb::object, nb::object, nb::object>>(terms);
    const Column<int32_t> constraint("terms", std::get<0>(given));
    std::vector<int64_t> offsets{0, static_cast<int64_t>(constraint.rows())};
    const nb::object indptr = to_numpy(std::move(offsets));
    return TermArguments(*book_, indptr, std::get<0>(given), std::get<1>(given), std::get<2>(given),
                         1)
        .columns()
        .of(0);
}

} // namespace bridge
