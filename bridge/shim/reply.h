// SPDX-License-Identifier: GPL-2.0-or-later
// Unpacks replies of the service. What a reply holds is counted in the bytes of the wire before any
// memory is taken for it, and bounded by what was asked: two bytes can stand for a message of a
// hundred, so the length of a reply alone bounds nothing.
#ifndef BRIDGE_REPLY_H
#define BRIDGE_REPLY_H

#include <stddef.h>

#include "pb.h"

// What the service was told of.
typedef struct {
    size_t jobs;
    size_t nodes;
    size_t cpus;
    size_t name_bytes; // of all nodes' names
} reply_scale_t;

// The longest reply that is read at all.
size_t reply_most_bytes(const reply_scale_t *scale);

// NULL: refused, and `problem` says why in words. `allocator` NULL: malloc().
pb_cycle_reply_t *reply_cycle(const reply_scale_t *scale, const unsigned char *bytes, size_t count,
                              ProtobufCAllocator *allocator, char *problem, size_t problem_bytes);
pb_hello_reply_t *reply_hello(const unsigned char *bytes, size_t count,
                              ProtobufCAllocator *allocator, char *problem, size_t problem_bytes);

#endif
