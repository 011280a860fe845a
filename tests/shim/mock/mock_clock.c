// SPDX-License-Identifier: GPL-2.0-or-later
// The clock of the mock, linked with --wrap: no test reads the machine's.
#include "slurm_mock.h"

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
time_t __wrap_time(time_t *now);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
    int64_t us = mock.now_us + (clock == CLOCK_MONOTONIC ? 0 : mock.wall_us);
    now->tv_sec = us / 1000000;
    now->tv_nsec = us % 1000000 * 1000;
    return 0;
}

time_t __wrap_time(time_t *now) {
    time_t wall = (mock.now_us + mock.wall_us) / 1000000;
    if (now)
        *now = wall;
    return wall;
}

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left) {
    (void)left;
    mock_nothing_held("nanosleep");
    mock.now_us += wanted->tv_sec * 1000000 + wanted->tv_nsec / 1000;
    if (mock.between)
        mock.between();
    return 0;
}
