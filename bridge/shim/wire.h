// SPDX-License-Identifier: GPL-2.0-or-later
// Unary gRPC calls to the service: HTTP/2 by libcurl, over a Unix socket or TCP with mutual TLS.
// A call never exceeds its timeout; wire_interrupt() ends it at once.
#ifndef BRIDGE_WIRE_H
#define BRIDGE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "settings.h"

typedef struct wire wire_t;

// NULL: libcurl cannot do what is needed; `problem` says what.
wire_t *wire_open(const settings_t *settings, char *problem, size_t problem_bytes);
void wire_close(wire_t *wire);

// Calls /schedbridge.v1.Scheduler/METHOD. Not a byte is sent over a Unix socket before the kernel
// has said that root, SlurmUser or the user of the settings listens there. `framed` holds
// FRAME_BYTES of room, then the message; the room is filled in here. A reply of more than
// `most_bytes` is given up. On success *reply points into the wire until the next call. On failure
// returns false, and the problem in words for a log.
bool wire_call(wire_t *wire, const char *method, unsigned char *framed, size_t message_bytes,
               size_t most_bytes, unsigned timeout_ms, const unsigned char **reply,
               size_t *reply_bytes, char *problem, size_t problem_bytes);

// How the last call failed, where that is not all the same.
typedef enum {
    WIRE_FAILED,
    WIRE_FENCED,    // a newer controller has taken over (ABORTED)
    WIRE_UNTRUSTED, // somebody else listens at the socket
    WIRE_TOO_LONG,  // the reply
} wire_failure_t;

wire_failure_t wire_failure(const wire_t *wire);

// Ends the call that is under way in another thread, and every later one.
void wire_interrupt(wire_t *wire);

#endif
