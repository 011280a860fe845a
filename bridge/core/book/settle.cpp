// SPDX-License-Identifier: Apache-2.0
#include "book/settle.hpp"

#include <algorithm>

namespace bridge {
namespace {

class Settling {
  public:
    Settling(Book &book, const Claims &claims, Settled &settled)
        : book_(book), lines_(book.state().lines), claims_(claims), settled_(settled),
          marked_(book.state().nodes.size(), false), minimum_(book.state().nodes.columns()) {}

    bool run(size_t maximum) {
        seek_short();
        for (size_t looked = 0; !due_.empty(); ++looked) {
            if (looked + due_.size() > maximum) {
                return false;
            }
            const size_t j = *due_.begin();
            due_.erase(due_.begin());
            if (!look(j)) {
                return false;
            }
        }
        return true;
    }

  private:
    Book &book_;
    NodeLines &lines_;
    const Claims &claims_;
    Settled &settled_;
    std::set<size_t> due_;         // to be examined
    std::vector<size_t> later_;    // behind the examined job, at the same time
    std::vector<bool> marked_;     // scratch, by position
    std::vector<int64_t> minimum_; // scratch, by column
    std::vector<Placed> placed_;   // scratch

    int64_t start(size_t j) const { return claims_.jobs.not_before[j]; }
    int64_t end(size_t j) const { return end_of(start(j), claims_.jobs.length[j]); }
    const Booking &booking(size_t j) const { return *book_.booking(claims_.jobs.job[j]); }

    // Jobs that are unsure, have no place, or hold a node that is overbooked at the time.
    void seek_short() {
        const size_t columns = minimum_.size();
        std::vector<Spans> spans(marked_.size());
        bool any = false;
        for (size_t p = 0; p < spans.size(); ++p) {
            for (size_t s = 0; s < lines_.segments(p); ++s) {
                const int64_t *free = lines_.free(p, s);
                if (std::any_of(free, free + columns, [](int64_t amount) { return amount < 0; })) {
                    const bool last = s + 1 == lines_.segments(p);
                    spans[p].emplace_back(lines_.begin(p, s),
                                          last ? NEVER : lines_.begin(p, s + 1));
                    any = true;
                }
            }
        }
        for (size_t j = 0; j < claims_.jobs.n; ++j) {
            if (!claims_.booked[j] || claims_.unsure[j] || (any && in_any(j, spans))) {
                due_.insert(j);
            }
        }
    }

    bool in_any(size_t j, const std::vector<Spans> &spans) const {
        const std::vector<Placed> &placed = booking(j).placed;
        return std::any_of(placed.begin(), placed.end(), [&](const Placed &one) {
            const Spans &at = spans[static_cast<size_t>(one.position)];
            return std::any_of(at.begin(), at.end(), [&](const auto &span) {
                return span.first < end(j) && start(j) < span.second;
            });
        });
    }

    // Rule 2; false: one of the cases that are not handled.
    bool look(size_t j) {
        const BookState &state = book_.state();
        const Request &request = state.requests[claims_.jobs.request[j]];
        if (request.sought.size() != 1 || (request.exclusive && state.nodes.best_fit()) ||
            (!claims_.booked[j] &&
             claims_.jobs.terms.indptr[j] != claims_.jobs.terms.indptr[j + 1])) {
            return false;
        }
        later_.clear();
        for (size_t k = j + 1; k < claims_.jobs.n; ++k) {
            if (claims_.booked[k] && start(k) < end(j) && start(j) < end(k)) {
                later_.push_back(k);
            }
        }
        if (claims_.booked[j]) {
            if (fits_where_it_is(j)) {
                return true;
            }
            if (claims_.movable[j]) {
                book_.revoke(claims_.jobs.job[j]);
            }
        }
        if (!claims_.movable[j]) {
            return false;
        }
        settled_.kept[j] = false;
        move(j, request);
        return true;
    }

    bool fits_where_it_is(size_t j) {
        const Booking &own = booking(j);
        mark(own.placed, true);
        std::vector<size_t> beside{j};
        std::copy_if(later_.begin(), later_.end(), std::back_inserter(beside), [&](size_t k) {
            const std::vector<Placed> &placed = booking(k).placed;
            return std::any_of(placed.begin(), placed.end(), [&](const Placed &one) {
                return marked_[static_cast<size_t>(one.position)];
            });
        });
        mark(own.placed, false);
        lift(beside, 1);
        const bool fits =
            book_.holds(own.request, own.start, claims_.jobs.length[j], {nullptr, 0}, own.placed);
        lift(beside, -1);
        return fits;
    }

    // Other nodes at the same time, or none. Constraints allow that time: the job was booked, and
    // none is exceeded.
    void move(size_t j, const Request &request) {
        const int64_t now = book_.state().now;
        const int32_t id = claims_.jobs.request[j];
        const int64_t length = claims_.jobs.length[j];
        lift(later_, 1);
        const bool fits = book_.search().map(id, start(j), length, placed_);
        std::pair<Blocked, int32_t> why{Blocked::NOT_BEFORE, -1};
        if (!fits) {
            why = why_never(book_, id, {nullptr, 0});
        }
        if (start(j) == now && fits) {
            why = {Blocked::STARTS_NOW, -1};
        } else if (start(j) == now && why.first == Blocked::NOT_BEFORE) {
            std::vector<Placed> unused;
            book_.search().touch();
            const bool brief = book_.search().map(id, now, 1, unused);
            why = {brief ? Blocked::PLANNED_START : Blocked::NODES_BUSY, -1};
        }
        lift(later_, -1);
        settled_.start[j] = fits ? start(j) : NEVER;
        settled_.blocked_by[j] = static_cast<int8_t>(why.first);
        settled_.blocked_constraint[j] = why.second;
        if (fits) {
            book_.book({claims_.jobs.job[j],
                        start(j),
                        end(j),
                        id,
                        request.exclusive,
                        0,
                        claims_.jobs.terms.of(j),
                        placed_,
                        {},
                        {}});
            mark(placed_, true);
            std::copy_if(later_.begin(), later_.end(), std::inserter(due_, due_.end()),
                         [&](size_t k) { return crowded(j, k); });
            mark(placed_, false);
        }
    }

    // Whether this job has made a node of a later one overbooked.
    bool crowded(size_t j, size_t k) {
        const std::vector<Placed> &placed = booking(k).placed;
        const int64_t from = std::max(start(j), start(k));
        const int64_t until = std::min(end(j), end(k));
        return std::any_of(placed.begin(), placed.end(), [&](const Placed &one) {
            const auto p = static_cast<size_t>(one.position);
            if (!marked_[p]) {
                return false;
            }
            lines_.minimum(p, from, until, minimum_.data());
            return std::any_of(minimum_.begin(), minimum_.end(),
                               [](int64_t amount) { return amount < 0; });
        });
    }

    void mark(const std::vector<Placed> &placed, bool value) {
        for (const Placed &one : placed) {
            marked_[static_cast<size_t>(one.position)] = value;
        }
    }

    void lift(const std::vector<size_t> &jobs, int64_t sign) {
        for (const size_t k : jobs) {
            book_.lift(booking(k), sign);
        }
        book_.search().touch();
    }
};

} // namespace

bool settle(Book &book, const Claims &claims, size_t maximum, Settled &settled) {
    settled.kept.assign(claims.jobs.n, true);
    settled.start.assign(claims.jobs.not_before, claims.jobs.not_before + claims.jobs.n);
    settled.blocked_by.assign(claims.jobs.n, static_cast<int8_t>(Blocked::NEVER_NODES));
    settled.blocked_constraint.assign(claims.jobs.n, -1);
    const BookState &state = book.state();
    if (std::any_of(
            state.constraints.begin(), state.constraints.end(),
            [&](const CapacityConstraint &one) { return one.exceeded(state.now, NEVER); })) {
        return false;
    }
    const int64_t mark = book.mark();
    if (!Settling(book, claims, settled).run(maximum)) {
        book.undo(mark);
        return false;
    }
    book.keep(mark);
    return true;
}

} // namespace bridge
