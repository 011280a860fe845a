// SPDX-License-Identifier: GPL-2.0-or-later
// How many names a hostlist means, found without writing them out: Slurm's own parser would, and
// eight bytes can mean a billion names.
#ifndef BRIDGE_NAMES_H
#define BRIDGE_NAMES_H

#include <stddef.h>

#define NAMES_MAX_BYTES ((size_t)256 * 1024)

// The number of names, each counted as often as it is said; 0: it is empty or no hostlist, longer
// than NAMES_MAX_BYTES, or means more than `most` names.
size_t names_count(const char *hostlist, size_t most);

#endif
