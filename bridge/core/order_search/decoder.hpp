// SPDX-License-Identifier: Apache-2.0
// Books jobs one after the other, as NodePlanner would, and revokes the last ones.
//
// The jobs determine which decoder is exact:
//   LISTS   every whole-node job is planned as a count, or on nodes that no other job counts. The
//           planner decides the same in any order; bookings are undone one by one.
//   PLANNER whole and shared nodes mix, or jobs request licences: the planner itself, run again
//           from the first job that changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "single_pass/node_problem.hpp"

namespace bridge {

enum class Decoding : int8_t { LISTS = 0, PLANNER = 1 };

class OrderDecoder {
  public:
    OrderDecoder() = default;
    OrderDecoder(const OrderDecoder &) = delete;
    OrderDecoder &operator=(const OrderDecoder &) = delete;
    virtual ~OrderDecoder() = default;

    virtual Decoding kind() const = 0;

    // Books a job after all that is booked; returns its start, or NEVER: then nothing is booked.
    virtual int64_t place(size_t job) = 0;
    // The start that `place` would find for a job behind the settled bookings alone.
    virtual int64_t minimum(size_t job) = 0;
    // Whether `place` put the job exactly where it was when it was last kept.
    virtual bool as_kept(size_t job) const = 0;
    // Keeps the placement that `place` found: `put_back` books it from now on.
    virtual void keep(size_t job) = 0;
    virtual void put_back(size_t job) = 0;
    // Revokes the last booking.
    virtual void undo() = 0;
    // Work done so far, in steps of about a nanosecond; the same on every machine.
    virtual int64_t steps() const = 0;
    // Settles what is booked: from now on no start precedes the one that a job has behind it.
    virtual void settle() = 0;
};

std::unique_ptr<OrderDecoder> make_decoder(const NodeProblem &problem);

} // namespace bridge
