// SPDX-License-Identifier: GPL-2.0-or-later
// Memory for one message: allocated piece by piece, freed as a whole.
#ifndef BRIDGE_ARENA_H
#define BRIDGE_ARENA_H

#include <stddef.h>

typedef struct arena_block arena_block_t;

typedef struct {
    arena_block_t *blocks;
    size_t used;
    size_t size;
} arena_t;

// Zeroed memory, aligned for any type; valid until arena_reset(). Ends the process if memory is
// exhausted, as everything in slurmctld does.
void *arena_take(arena_t *arena, size_t bytes);

// Text in an arena is valid UTF-8, or no peer could read its message: invalid bytes become '?'.

// A copy of text; "" for NULL.
char *arena_text(arena_t *arena, const char *text);

// The same, cut to this many bytes.
char *arena_cut(arena_t *arena, const char *text, size_t maximum);

// Formats into the arena.
char *arena_format(arena_t *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Frees everything.
void arena_reset(arena_t *arena);

// A growing array of pointers in an arena.
typedef struct {
    void **items;
    size_t count;
    size_t room;
} arena_list_t;

void arena_append(arena_t *arena, arena_list_t *list, void *item);

#endif
