// SPDX-License-Identifier: GPL-2.0-or-later
// Numbers that only look random: the same in every run with the same seed.
#ifndef TESTS_SHIM_RANDOM_H
#define TESTS_SHIM_RANDOM_H

#include <stdint.h>

static unsigned long long random_state = 1;

static inline uint64_t random_bits(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static inline unsigned random_below(unsigned bound) {
    return (unsigned)(random_bits() >> 33) % bound;
}

static inline int one_in(unsigned bound) {
    return random_below(bound) == 0;
}

static inline void random_seed(unsigned long long seed) {
    random_state = seed * 2654435761ULL + 1;
}

#endif
