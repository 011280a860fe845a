// SPDX-License-Identifier: GPL-2.0-or-later
// gRPC's frame around one message: a byte that says whether it is compressed, four bytes of length
// (big endian), the message. And the two trailers that say how a call ended.
#ifndef BRIDGE_FRAMING_H
#define BRIDGE_FRAMING_H

#include <stddef.h>
#include <stdint.h>

#define FRAME_BYTES 5
// Longer replies are refused: no reply of the service needs more.
#define FRAME_MAX_REPLY ((size_t)64 * 1024 * 1024)

// Writes the frame's head in front of a message of so many bytes.
void frame_head(unsigned char head[FRAME_BYTES], uint32_t bytes);

// Finds the one message in a reply. Returns NULL, or what is wrong with the reply.
const char *frame_open(const unsigned char *reply, size_t bytes, const unsigned char **message,
                       size_t *message_bytes);

typedef struct {
    int status; // gRPC's code; -1: none came
    char message[256];
} trailers_t;

// Reads one header or trailer line; others than grpc-status and grpc-message are passed over.
void trailers_take(trailers_t *trailers, const char *line, size_t bytes);

#endif
