// SPDX-License-Identifier: GPL-2.0-or-later
// Unary gRPC calls to the service: HTTP/2 by libcurl, over a Unix socket or TCP with mutual TLS.
// A call never exceeds its timeout; wire_interrupt() ends it at once.
#ifndef BRIDGE_WIRE_H
#define BRIDGE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/settings.h"

typedef struct wire wire_t;

// NULL: libcurl lacks something; `problem` says what.
wire_t *wire_open(const settings_t *settings, char *problem, size_t problem_bytes);
void wire_close(wire_t *wire);

// Calls /schedbridge.v1.Scheduler/METHOD. Nothing is sent over a Unix socket before the kernel has
// confirmed that root, SlurmUser or the configured user listens there. `framed` holds FRAME_BYTES
// of space, filled in here, then the message. A reply of more than `max_bytes` is abandoned. On
// success *reply points into the wire until the next call. On failure returns false, with the
// problem as text for a log.
bool wire_call(wire_t *wire, const char *method, unsigned char *framed, size_t message_bytes,
               size_t max_bytes, unsigned timeout_ms, const unsigned char **reply,
               size_t *reply_bytes, char *problem, size_t problem_bytes);

// How the last call failed, where that matters.
typedef enum {
    WIRE_FAILED,
    WIRE_FENCED,    // a newer controller has taken over (ABORTED)
    WIRE_UNTRUSTED, // somebody else listens at the socket
    WIRE_TOO_LONG,  // the reply
} wire_failure_t;

wire_failure_t wire_failure(const wire_t *wire);

// Ends the current call of another thread, and every later one.
void wire_interrupt(wire_t *wire);

#endif
