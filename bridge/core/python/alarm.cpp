// SPDX-License-Identifier: Apache-2.0
// The alarm that services pass to kernels: the only clock in this library on which a result may
// depend.
#include "python/module.hpp"

#include <chrono>

#include "common/alarm.hpp"
#include "common/columns.hpp"

namespace bridge {
namespace {

using Clock = std::chrono::steady_clock;

class ClockAlarm : public Alarm {
  public:
    explicit ClockAlarm(int64_t after_us) : until_(Clock::now() + microseconds(after_us)) {}
    bool rung() const override { return Clock::now() >= until_; }

  private:
    using microseconds = std::chrono::microseconds;
    Clock::time_point until_;
};

} // namespace

void define_alarm(nb::module_ &m) {
    using namespace nb::literals;
    nb::class_<Alarm>(m, "Alarm", "Becomes true at some time, and remains true.")
        .def("rung", &Alarm::rung, "Whether it is true.");
    nb::class_<ClockAlarm, Alarm>(m, "ClockAlarm",
                                  "An alarm by the wall clock, for services and benchmarks only.")
        .def(
            "__init__",
            [](ClockAlarm *self, int64_t after_us) {
                scalar("after_us", after_us, 0, int64_t{1} << 50);
                new (self) ClockAlarm(after_us);
            },
            "after_us"_a, R"(Becomes true this many microseconds from now.

Raises:
    ValueError: it lies in the past, or years away.)");
}

} // namespace bridge
