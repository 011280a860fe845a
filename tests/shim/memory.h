// SPDX-License-Identifier: GPL-2.0-or-later
// An allocator for protobuf-c that counts what is taken, as glibc would take it.
#ifndef TESTS_SHIM_MEMORY_H
#define TESTS_SHIM_MEMORY_H

#include <malloc.h>
#include <protobuf-c/protobuf-c.h>
#include <stdlib.h>

typedef struct {
    size_t now, maximum;
} memory_t;

static void *memory_take(void *context, size_t bytes) {
    memory_t *memory = context;
    size_t *piece = malloc(bytes + 16);
    *piece = bytes + 16;
    memory->now += bytes + 16;
    if (memory->now > memory->maximum)
        memory->maximum = memory->now;
    return (char *)piece + 16;
}

static void memory_give(void *context, void *piece) {
    memory_t *memory = context;
    if (!piece)
        return;
    size_t *head = (size_t *)(void *)((char *)piece - 16);
    memory->now -= *head;
    free(head);
}

#define MEMORY_ALLOCATOR(memory) {memory_take, memory_give, memory}

#endif
