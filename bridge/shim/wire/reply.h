// SPDX-License-Identifier: GPL-2.0-or-later
// Unpacks replies of the service. The parts of a reply are counted in its encoding before memory is
// allocated, and are bounded by what was requested: two bytes can stand for a message of a hundred,
// so the length of a reply does not bound its memory.
#ifndef BRIDGE_REPLY_H
#define BRIDGE_REPLY_H

#include <stddef.h>

#include "common/pb.h"

// The numbers of objects in the report.
typedef struct {
    size_t jobs;
    size_t nodes;
    size_t cpus;
    size_t name_bytes; // of all nodes' names
} reply_scale_t;

// The longest reply that is read.
size_t reply_max_bytes(const reply_scale_t *scale);

// NULL: refused, with the reason in `problem`. `allocator` NULL: malloc().
pb_cycle_reply_t *reply_cycle(const reply_scale_t *scale, const unsigned char *bytes, size_t count,
                              ProtobufCAllocator *allocator, char *problem, size_t problem_bytes);
pb_hello_reply_t *reply_hello(const unsigned char *bytes, size_t count,
                              ProtobufCAllocator *allocator, char *problem, size_t problem_bytes);

#endif
