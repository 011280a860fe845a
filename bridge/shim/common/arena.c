// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)64 * 1024)
#define ALIGNMENT 16

struct arena_block {
    arena_block_t *next;
    _Alignas(ALIGNMENT) char bytes[];
};

void *arena_take(arena_t *arena, size_t bytes)
{
    bytes = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (!arena->blocks || arena->size - arena->used < bytes) {
        size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        arena_block_t *block = calloc(1, sizeof(*block) + size);
        if (!block)
            abort();
        block->next = arena->blocks;
        arena->blocks = block;
        arena->size = size;
        arena->used = 0;
    }
    void *piece = arena->blocks->bytes + arena->used;
    arena->used += bytes;
    return piece;
}

// The length of the UTF-8 character that begins here; 0: none does.
static size_t character(const unsigned char *at)
{
    static const uint32_t minimum[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t bytes = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    if (bytes < 2)
        return bytes;
    if (at[0] > 0xf4)
        return 0;
    uint32_t code = at[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xc0) != 0x80) // the final 0 is no continuation
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    bool surrogate = code >= 0xd800 && code < 0xe000;
    return code < minimum[bytes] || code > 0x10ffff || surrogate ? 0 : bytes;
}

static char *readable(char *text)
{
    for (unsigned char *at = (unsigned char *)text; *at;) {
        size_t bytes = character(at);
        if (!bytes)
            *at = '?';
        at += bytes ? bytes : 1;
    }
    return text;
}

char *arena_text(arena_t *arena, const char *text)
{
    if (!text || !*text)
        return (char *)""; // protobuf-c recognises the default value by content, not by address
    size_t bytes = strlen(text) + 1;
    return readable(memcpy(arena_take(arena, bytes), text, bytes));
}

char *arena_cut(arena_t *arena, const char *text, size_t maximum)
{
    size_t bytes = text ? strnlen(text, maximum) : 0;
    if (!bytes)
        return arena_text(arena, NULL);
    return readable(memcpy(arena_take(arena, bytes + 1), text, bytes)); // what is taken is zeroed
}

char *arena_format(arena_t *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        return (char *)"";
    char *text = arena_take(arena, (size_t)length + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return readable(text);
}

void arena_reset(arena_t *arena)
{
    while (arena->blocks) {
        arena_block_t *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
    arena->used = arena->size = 0;
}

void arena_append(arena_t *arena, arena_list_t *list, void *item)
{
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 8;
        void **items = arena_take(arena, room * sizeof(*items));
        if (list->count)
            memcpy(items, list->items, list->count * sizeof(*items));
        list->items = items;
        list->room = room;
    }
    list->items[list->count++] = item;
}
