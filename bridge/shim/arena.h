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

// Zeroed memory, aligned for any type; lives until arena_reset(). Ends the process when the
// machine has no memory left, as everything in slurmctld does.
void *arena_take(arena_t *arena, size_t bytes);

// Texts in here are valid UTF-8, else no peer could read the message they are part of: each byte
// that is not becomes '?'.

// A copy of text; of "" for NULL.
char *arena_text(arena_t *arena, const char *text);

// The same, cut to so many bytes.
char *arena_cut(arena_t *arena, const char *text, size_t most);

// Formats into the arena.
char *arena_format(arena_t *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Gives everything back.
void arena_reset(arena_t *arena);

// An array of pointers that grows in an arena.
typedef struct {
    void **items;
    size_t count;
    size_t room;
} arena_list_t;

void arena_append(arena_t *arena, arena_list_t *list, void *item);

#endif
