// SPDX-License-Identifier: Apache-2.0
// Whether somebody waits for an answer now.
//
// Kernels are bounded by steps that they count, so that the same question has the same answer on
// any machine at any load. None of them looks at a clock. Who lives by one hands an alarm in, and
// takes what there is when it rings.
#pragma once

namespace bridge {

class Alarm {
  public:
    Alarm() = default;
    Alarm(const Alarm &) = delete;
    Alarm &operator=(const Alarm &) = delete;
    virtual ~Alarm() = default;

    // Once it has rung it goes on ringing.
    virtual bool rung() const = 0;
};

} // namespace bridge
