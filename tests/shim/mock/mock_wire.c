// SPDX-License-Identifier: GPL-2.0-or-later
#include "mock_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slurm_mock.h"
#include "wire/framing.h"

#define ROOM ((size_t)1024 * 1024)

struct wire {
    unsigned char *reply;
};

mock_wire_t mock_wire;

void mock_wire_begin(void) {
    mock_wire = (mock_wire_t){.epoch = 7, .name = "service", .policy = "policy"};
}

static void forget_requests(void) {
    if (mock_wire.hello)
        schedbridge__v1__hello_request__free_unpacked(mock_wire.hello, NULL);
    if (mock_wire.cycle)
        schedbridge__v1__cycle_request__free_unpacked(mock_wire.cycle, NULL);
    mock_wire.hello = NULL;
    mock_wire.cycle = NULL;
}

void mock_wire_end(void) {
    forget_requests();
    mock_wire = (mock_wire_t){0};
}

wire_t *wire_open(const settings_t *settings, char *problem, size_t problem_bytes) {
    (void)settings;
    (void)problem;
    (void)problem_bytes;
    return calloc(1, sizeof(wire_t));
}

void wire_close(wire_t *wire) {
    if (wire)
        free(wire->reply);
    free(wire);
}

void wire_interrupt(wire_t *wire) {
    (void)wire;
}

wire_failure_t wire_failure(const wire_t *wire) {
    (void)wire;
    return mock_wire.failure;
}

// ---------------------------------------------------------------- what a real peer would not read

static void check_text(const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    while (*at) {
        int more = *at < 0x80                  ? 0
                   : *at >= 0xc2 && *at < 0xe0 ? 1
                   : *at >= 0xe0 && *at < 0xf0 ? 2
                                               : 3;
        if (*at > 0xf4 || (*at >= 0x80 && *at < 0xc2)) {
            fprintf(stderr, "mock of the service: a text that is not UTF-8: %s\n", text);
            abort();
        }
        for (at++; more; more--, at++) {
            if ((*at & 0xc0) != 0x80) {
                fprintf(stderr, "mock of the service: a text that is not UTF-8: %s\n", text);
                abort();
            }
        }
    }
}

// Every text of a message and of those in it.
static void check_texts(const ProtobufCMessage *message) {
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        const void *at = (const char *)message + field->offset;
        bool many = field->label == PROTOBUF_C_LABEL_REPEATED;
        size_t count = 1;
        if (many)
            memcpy(&count, (const char *)message + field->quantifier_offset, sizeof(count));
        if (field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        void *const *items = many ? *(void *const *const *)at : at;
        for (size_t k = 0; k < count; k++) {
            if (items[k] && field->type == PROTOBUF_C_TYPE_STRING)
                check_text(items[k]);
            else if (items[k])
                check_texts(items[k]);
        }
    }
}

// ---------------------------------------------------------------- the service

static size_t answer_hello(unsigned char *to) {
    pb_hello_reply_t reply = SCHEDBRIDGE__V1__HELLO_REPLY__INIT;
    mock_wire.hellos++;
    reply.wire_version = 1;
    reply.service = (char *)mock_wire.name;
    reply.policy = (char *)mock_wire.policy;
    reply.service_epoch = mock_wire.epoch;
    return protobuf_c_message_pack(&reply.base, to);
}

static size_t answer_cycle(unsigned char *to) {
    pb_cycle_reply_t reply = SCHEDBRIDGE__V1__CYCLE_REPLY__INIT;
    mock_wire.cycles++;
    reply.generation = mock_wire.cycle->generation;
    reply.service_epoch = mock_wire.epoch;
    if (mock_wire.script)
        mock_wire.script(mock_wire.cycle, &reply);
    if (protobuf_c_message_get_packed_size(&reply.base) > ROOM)
        abort();
    return protobuf_c_message_pack(&reply.base, to);
}

bool wire_call(wire_t *wire, const char *method, unsigned char *framed, size_t message_bytes,
               size_t max_bytes, unsigned timeout_ms, const unsigned char **reply,
               size_t *reply_bytes, char *problem, size_t problem_bytes) {
    const unsigned char *message = framed + FRAME_BYTES;
    mock_nothing_held("a call to the service");
    forget_requests();
    if (!strcmp(method, "Hello"))
        mock_wire.hello = schedbridge__v1__hello_request__unpack(NULL, message_bytes, message);
    else
        mock_wire.cycle = schedbridge__v1__cycle_request__unpack(NULL, message_bytes, message);
    if (!mock_wire.hello && !mock_wire.cycle)
        abort();
    check_texts(mock_wire.hello ? &mock_wire.hello->base : &mock_wire.cycle->base);
    mock.now_us += mock_wire.takes_us;
    if (mock_wire.meanwhile)
        mock_wire.meanwhile();
    if (mock_wire.fails || mock_wire.takes_us / 1000 > timeout_ms) {
        snprintf(problem, problem_bytes, "%s", mock_wire.fails ? mock_wire.fails : "too late");
        return false;
    }
    static unsigned char bytes[ROOM];
    size_t count = mock_wire.hello ? answer_hello(bytes) : answer_cycle(bytes);
    if (mock_wire.bend)
        count = mock_wire.bend(bytes, count, ROOM);
    free(wire->reply);
    wire->reply = malloc(count + 1); // as long as it is: a sanitizer sees who reads on
    memcpy(wire->reply, bytes, count);
    if (count > max_bytes) {
        snprintf(problem, problem_bytes, "a reply of more than %zu bytes", max_bytes);
        return false;
    }
    *reply = wire->reply;
    *reply_bytes = count;
    return true;
}
