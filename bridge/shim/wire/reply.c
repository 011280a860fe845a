// SPDX-License-Identifier: GPL-2.0-or-later
#include "wire/reply.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/names.h"
#include "wire/framing.h"

#define MIB ((size_t)1024 * 1024)
#define HELLO_BYTES ((size_t)64 * 1024)
// Most decisions without a job, beside those about jobs.
#define ORDERS 1024
// Largest size of a text, and of the parts of a decision that do not grow with the cluster.
#define TEXT_BYTES NAMES_MAX_BYTES
#define DECISION_BYTES (2 * TEXT_BYTES)
// No message of the wire has more fields, or is nested deeper.
#define MAX_FIELDS 64
#define MAX_DEPTH 8
// Most fields of a newer service that this plugin does not know, per message.
#define UNKNOWN_FIELDS 2

enum { VARINT, FIXED64, BYTES, FIXED32 = 5 };

typedef struct {
    size_t decisions, decision_bytes;
    size_t places;   // node uses and task counts: each represents at least one CPU
    size_t messages; // in all
    // counted
    size_t n_decisions, n_places, n_messages, n_unknown;
    char *problem;
    size_t problem_bytes;
} walk_t;

// Saturating addition: the scale comes from Slurm's tables, which may hold any number.
static size_t plus(size_t a, size_t b)
{
    return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}

static size_t times(size_t a, size_t b)
{
    return a && b > SIZE_MAX / a ? SIZE_MAX : a * b;
}

static size_t max_decisions(const reply_scale_t *scale)
{
    // An announcement and a start for each job, a start for each CPU (tasks of arrays).
    return plus(plus(times(2, scale->jobs), scale->cpus), ORDERS);
}

size_t reply_max_bytes(const reply_scale_t *scale)
{
    size_t each = plus(512, scale->name_bytes);
    size_t all = plus(MIB, times(max_decisions(scale), each));
    return all < FRAME_MAX_REPLY ? all : FRAME_MAX_REPLY;
}

__attribute__((format(printf, 2, 3))) static bool refuse(walk_t *walk, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(walk->problem, walk->problem_bytes, format, args);
    va_end(args);
    return false;
}

static bool not_understood(walk_t *walk)
{
    return refuse(walk, "the reply is not understood");
}

// ---------------------------------------------------------------- bytes

static bool take_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 70 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        if (shift < 64)
            *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

static bool skip(const uint8_t **at, const uint8_t *end, size_t bytes)
{
    if ((size_t)(end - *at) < bytes)
        return false;
    *at += bytes;
    return true;
}

typedef struct {
    unsigned number, wire;
    const uint8_t *value; // of BYTES
    size_t bytes;
} part_t;

static bool take_part(const uint8_t **at, const uint8_t *end, part_t *part)
{
    uint64_t key, length;
    if (!take_varint(at, end, &key) || key >> 3 == 0 || key >> 3 > 0x1fffffff)
        return false;
    part->number = (unsigned)(key >> 3);
    part->wire = (unsigned)(key & 7);
    switch (part->wire) {
    case VARINT:
        return take_varint(at, end, &length);
    case FIXED64:
        return skip(at, end, 8);
    case FIXED32:
        return skip(at, end, 4);
    case BYTES:
        if (!take_varint(at, end, &length) || length > (uint64_t)(end - *at))
            return false;
        part->value = *at;
        part->bytes = (size_t)length;
        *at += part->bytes;
        return true;
    default: // groups are obsolete
        return false;
    }
}

// ---------------------------------------------------------------- messages

static bool count_places(walk_t *walk, size_t more)
{
    walk->n_places = plus(walk->n_places, more);
    return walk->n_places <= walk->places ||
           refuse(walk, "the reply names CPUs more than %zu times", walk->places);
}

static bool count_message(walk_t *walk, const ProtobufCMessageDescriptor *kind, size_t bytes)
{
    if (++walk->n_messages > walk->messages)
        return refuse(walk, "the reply holds more than %zu parts", walk->messages);
    if (kind == &schedbridge__v1__node_use__descriptor)
        return count_places(walk, 1);
    if (kind != &schedbridge__v1__decision__descriptor)
        return true;
    if (++walk->n_decisions > walk->decisions)
        return refuse(walk, "the reply holds more than %zu decisions", walk->decisions);
    return bytes <= walk->decision_bytes ||
           refuse(walk, "a decision of %zu bytes: longer than %zu", bytes, walk->decision_bytes);
}

// The number of values in a part of a repeated field.
static size_t values(const part_t *part)
{
    size_t count = 0;
    if (part->wire != BYTES)
        return 1;
    for (size_t i = 0; i < part->bytes; i++)
        count += !(part->value[i] & 0x80);
    return count;
}

static bool walk_message(walk_t *walk, const ProtobufCMessageDescriptor *kind, const uint8_t *at,
                         size_t bytes, unsigned depth)
{
    const uint8_t *end = at + bytes;
    unsigned fields = 0;
    uint64_t seen = 0; // single messages by target: protobuf-c would merge repetitions
    if (depth > MAX_DEPTH)
        return not_understood(walk);
    if (!count_message(walk, kind, bytes))
        return false;
    while (at < end) {
        part_t part = {0};
        if (!take_part(&at, end, &part))
            return not_understood(walk);
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(kind, part.number);
        if (!field) {
            walk->n_unknown++;
        } else if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
            if (part.wire != BYTES)
                return not_understood(walk);
            if (!walk_message(walk, field->descriptor, part.value, part.bytes, depth + 1))
                return false;
            unsigned place = field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF ? field->quantifier_offset
                                                                        : field->offset;
            uint64_t bit = UINT64_C(1) << (place / sizeof(void *) % 64);
            if (field->label != PROTOBUF_C_LABEL_REPEATED && seen & bit)
                return not_understood(walk);
            seen |= bit;
        } else if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_BYTES) {
            if (part.wire == BYTES && part.bytes > TEXT_BYTES)
                return refuse(walk, "a text of %zu bytes: longer than %zu", part.bytes, TEXT_BYTES);
        } else if (field->label == PROTOBUF_C_LABEL_REPEATED &&
                   !count_places(walk, values(&part))) {
            return false;
        }
        bool many = field && field->label == PROTOBUF_C_LABEL_REPEATED;
        if ((!many || field->type == PROTOBUF_C_TYPE_STRING) && ++fields > MAX_FIELDS)
            return not_understood(walk);
    }
    return true;
}

static ProtobufCMessage *unpack(walk_t *walk, const ProtobufCMessageDescriptor *kind,
                                const unsigned char *bytes, size_t count,
                                ProtobufCAllocator *allocator)
{
    if (!walk_message(walk, kind, bytes, count, 0))
        return NULL;
    if (walk->n_unknown > MAX_FIELDS + UNKNOWN_FIELDS * walk->n_messages) {
        refuse(walk, "the reply holds %zu fields that this plugin does not know", walk->n_unknown);
        return NULL;
    }
    ProtobufCMessage *message = protobuf_c_message_unpack(kind, allocator, count, bytes);
    if (!message)
        not_understood(walk);
    return message;
}

pb_cycle_reply_t *reply_cycle(const reply_scale_t *scale, const unsigned char *bytes, size_t count,
                              ProtobufCAllocator *allocator, char *problem, size_t problem_bytes)
{
    walk_t walk = {.decisions = max_decisions(scale), .problem = problem};
    walk.problem_bytes = problem_bytes;
    walk.decision_bytes =
        plus(DECISION_BYTES, plus(times(4, scale->name_bytes), times(64, scale->nodes)));
    walk.places = plus(scale->cpus, scale->nodes);
    walk.messages = plus(MAX_FIELDS, plus(times(3, walk.decisions), times(2, walk.places)));
    if (count > reply_max_bytes(scale)) {
        refuse(&walk, "a reply of %zu bytes: longer than %zu", count, reply_max_bytes(scale));
        return NULL;
    }
    return (pb_cycle_reply_t *)unpack(&walk, &schedbridge__v1__cycle_reply__descriptor, bytes,
                                      count, allocator);
}

pb_hello_reply_t *reply_hello(const unsigned char *bytes, size_t count,
                              ProtobufCAllocator *allocator, char *problem, size_t problem_bytes)
{
    walk_t walk = {.messages = 1, .problem = problem, .problem_bytes = problem_bytes};
    if (count > HELLO_BYTES) {
        refuse(&walk, "a reply of %zu bytes: longer than %zu", count, HELLO_BYTES);
        return NULL;
    }
    return (pb_hello_reply_t *)unpack(&walk, &schedbridge__v1__hello_reply__descriptor, bytes,
                                      count, allocator);
}
