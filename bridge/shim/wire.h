// SPDX-License-Identifier: GPL-2.0-or-later
// Unary gRPC calls to the service: HTTP/2 by libcurl, over a Unix socket or TCP with mutual TLS.
// A call never lasts longer than its time; wire_interrupt() ends it at once.
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

// Calls /schedbridge.v1.Scheduler/METHOD. `framed` holds FRAME_BYTES of room, then the message; the
// room is filled in here. On success *reply points into the wire until the next call. On failure
// returns false, and the problem in words for a log.
bool wire_call(wire_t *wire, const char *method, unsigned char *framed, size_t message_bytes,
               unsigned timeout_ms, const unsigned char **reply, size_t *reply_bytes, char *problem,
               size_t problem_bytes);

// Ends the call that is under way in another thread, and every later one.
void wire_interrupt(wire_t *wire);

#endif
