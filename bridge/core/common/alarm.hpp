// SPDX-License-Identifier: Apache-2.0
// Tells a kernel to return its best answer now.
//
// Kernels count steps and read no clock, so that the same problem has the same answer on any
// machine under any load. A caller with a deadline passes an alarm.
#pragma once

namespace bridge {

class Alarm {
  public:
    Alarm() = default;
    Alarm(const Alarm &) = delete;
    Alarm &operator=(const Alarm &) = delete;
    virtual ~Alarm() = default;

    // Once true, it stays true.
    virtual bool rung() const = 0;
};

} // namespace bridge
