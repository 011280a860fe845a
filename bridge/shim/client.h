// SPDX-License-Identifier: GPL-2.0-or-later
// Tells the client that has loaded the SPANK plugin (sbatch, srun, salloc) further options, as if
// the user had typed them: SPANK itself has no way to. They go through the client's own reading of
// options, found by name, so that no layout of its data is relied on.
#ifndef BRIDGE_CLIENT_H
#define BRIDGE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "chunks.h"

// True in a program whose options can be set.
bool client_found(void);

// Sets options in place of those that were set here before. On a refusal, or where the user has
// set one of them to something else, writes one line and returns false.
bool client_set(const chunks_options_t *options, char *problem, size_t bytes);

// True while all options that were set here have the values they were given.
bool client_kept(char *problem, size_t bytes);

// Sets the begin time, as --fixed-start gives it; on a refusal, or where the user has set it too,
// writes one line and returns false.
bool client_begin(const char *when, char *problem, size_t bytes);

// True while the begin time is the one set here, or none was.
bool client_begin_kept(char *problem, size_t bytes);

// Names of the cluster's generic resources, separated by commas; NULL: there are none.
const char *client_generic(void);

#endif
