// SPDX-License-Identifier: GPL-2.0-or-later
// Sets further options in the client that has loaded the SPANK plugin (sbatch, srun, salloc), as if
// the user had typed them; SPANK itself cannot. They go through the client's own option parser,
// which is found by name, so that no data layout of the client is assumed.
#ifndef BRIDGE_CLIENT_H
#define BRIDGE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options/chunks.h"

// True in a program whose options can be set.
bool client_found(void);

// Replaces the options set here before. If an option is refused, or the user has set it to another
// value, prints one line and returns false.
bool client_set(const chunks_options_t *options, char *problem, size_t bytes);

// True while all options set here have their values.
bool client_kept(char *problem, size_t bytes);

// Sets the begin time, as --fixed-start gives it. If it is refused, or the user has set it too,
// prints one line and returns false.
bool client_begin(const char *when, char *problem, size_t bytes);

// True while the begin time is the one set here, or none was set.
bool client_begin_kept(char *problem, size_t bytes);

// The number of nodes that the user requests (--nodes), at least and at most. False: none is
// stated, or not as a range.
bool client_nodes(uint32_t *min, uint32_t *max);

// True unless the user requests whole nodes (--exclusive).
bool client_shares_nodes(void);

// The cluster's generic resources, separated by commas; NULL: there are none.
const char *client_generic(void);

#endif
