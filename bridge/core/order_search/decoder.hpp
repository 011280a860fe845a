// SPDX-License-Identifier: Apache-2.0
// Books jobs one after the other, as NodePlanner would, and takes the last ones back.
//
// Which decoder is exact depends on the jobs alone:
//   LISTS   every whole-node job is planned as a count, or on nodes that no other job can count:
//   the
//           planner decides the same in any order. Bookings are undone one by one.
//   PLANNER whole and shared nodes mix, or licences are asked for: the planner itself, run anew
//   from
//           the first job that changed.
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

    // Books a job behind what is booked; its start, or NEVER: then it takes no place.
    virtual int64_t place(size_t job) = 0;
    // The start that `place` would find for a job, if what is settled were all that is booked.
    virtual int64_t least(size_t job) = 0;
    // Whether `place` put the job exactly where it was when it was kept last.
    virtual bool as_kept(size_t job) const = 0;
    // What `place` did with the job is what `put_back` does from now on.
    virtual void keep(size_t job) = 0;
    virtual void put_back(size_t job) = 0;
    // Takes the job booked last back.
    virtual void undo() = 0;
    // What was done so far, in steps of about a nanosecond: the same on every machine.
    virtual int64_t steps() const = 0;
    // What is booked stays: from now on no start comes before the one it has behind that.
    virtual void settle() = 0;
};

std::unique_ptr<OrderDecoder> make_decoder(const NodeProblem &problem);

} // namespace bridge
