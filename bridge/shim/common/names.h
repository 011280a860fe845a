// SPDX-License-Identifier: GPL-2.0-or-later
// Counts the names in a hostlist without expanding it, unlike Slurm's own parser: eight bytes can
// stand for a billion names.
#ifndef BRIDGE_NAMES_H
#define BRIDGE_NAMES_H

#include <stddef.h>

#define NAMES_MAX_BYTES ((size_t)256 * 1024)

// The number of names, with repetitions; 0: empty, not a hostlist, longer than NAMES_MAX_BYTES, or
// more than `maximum` names.
size_t names_count(const char *hostlist, size_t maximum);

#endif
