// SPDX-License-Identifier: GPL-2.0-or-later
// The options --chunks and --place: their syntax, and the equivalent ordinary options of Slurm.
// bridge/planning/requests/chunks.py and bridge/slurm/request.py do the same in Python and explain
// the rules; tests/shim/chunks.cases tests both.
#ifndef BRIDGE_CHUNKS_H
#define BRIDGE_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHUNKS_MAX_LENGTH 4096
#define CHUNKS_MAX_GROUPS 64
#define CHUNKS_MAX_NUMBER (1u << 20)
#define CHUNKS_MAX_OPTIONS 12

// A part of the text that was read, which must outlive it.
typedef struct {
    const char *at;
    size_t bytes;
} chunks_span_t;

// A resource with a number or a word (empty: "true").
typedef struct {
    chunks_span_t name, word;
    bool counted;
    uint32_t number;
} chunks_extra_t;

typedef struct {
    uint32_t count, ncpus, mpiprocs, ompthreads;
    uint64_t mem_mib;
    chunks_span_t host;
    chunks_extra_t extras[CHUNKS_MAX_GROUPS];
    size_t n_extras;
} chunks_group_t;

typedef enum { CHUNKS_FREE, CHUNKS_PACK, CHUNKS_SCATTER } chunks_arrangement_t;

typedef struct {
    chunks_group_t groups[CHUNKS_MAX_GROUPS];
    size_t n_groups;
    chunks_extra_t licences[CHUNKS_MAX_GROUPS];
    size_t n_licences;
    chunks_arrangement_t arrangement;
    bool exclusive, shared;
    chunks_span_t group;
} chunks_t;

// An error: the character and the text (NULL: none) where it is, and how to correct it.
typedef struct {
    const char *text;
    size_t position;
    char words[200];
} chunks_problem_t;

// Reads a request. `place` may be NULL.
bool chunks_read(chunks_t *chunks, const char *text, const char *place, chunks_problem_t *problem);

// Formats an error for a terminal: the message, the text, and a caret under the character.
void chunks_point(const chunks_problem_t *problem, char *lines, size_t bytes);

typedef struct {
    const char *name;
    char *value; // NULL: the option takes none
} chunks_option_t;

typedef struct {
    chunks_option_t items[CHUNKS_MAX_OPTIONS];
    size_t count;
} chunks_options_t;

// Options of sbatch without the two dashes. `generic`: the cluster's generic resources, separated
// by commas; NULL: there are none.
bool chunks_lower(const chunks_t *chunks, const char *generic, chunks_options_t *options,
                  chunks_problem_t *problem);

void chunks_options_free(chunks_options_t *options);

// Threads of each process if all chunks agree; 0: not stated.
uint32_t chunks_threads(const chunks_t *chunks);

#endif
