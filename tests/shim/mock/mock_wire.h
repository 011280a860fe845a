// SPDX-License-Identifier: GPL-2.0-or-later
// A service for tests, in the place of wire.c: answers in the same thread, from a script.
#ifndef TESTS_SHIM_MOCK_WIRE_H
#define TESTS_SHIM_MOCK_WIRE_H

#include "common/pb.h"
#include "wire/wire.h"

typedef struct {
    unsigned hellos, cycles;
    const char *fails;      // every call fails with these words; NULL: none does
    wire_failure_t failure; // in this way
    int64_t takes_us;       // on the mock's clock
    uint64_t epoch;         // of the service
    uint64_t decided;       // the last number given to a decision
    // Writes what the reply to a cycle says; the rest of it is right unless it is changed here.
    void (*script)(const pb_cycle_request_t *request, pb_cycle_reply_t *reply);
    // Bends the packed reply; returns the number of bytes, at most `room`.
    size_t (*bend)(unsigned char *bytes, size_t count, size_t room);
    void (*meanwhile)(void); // happens in slurmctld while the service thinks
    // Of the last requests.
    pb_hello_request_t *hello;
    pb_cycle_request_t *cycle;
    const char *name, *policy; // of the service
} mock_wire_t;

extern mock_wire_t mock_wire;

void mock_wire_begin(void);
void mock_wire_end(void);

#endif
