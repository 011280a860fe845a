// SPDX-License-Identifier: GPL-2.0-or-later
// gRPC's frame around one message: a byte for compression, four bytes of length (big endian), the
// message. And the two trailers with the status of a call.
#ifndef BRIDGE_FRAMING_H
#define BRIDGE_FRAMING_H

#include <stddef.h>
#include <stdint.h>

#define FRAME_BYTES 5
// Longer replies are refused; the service never needs them.
#define FRAME_MAX_REPLY ((size_t)64 * 1024 * 1024)

// Writes the frame header in front of a message of this many bytes.
void frame_head(unsigned char head[FRAME_BYTES], uint32_t bytes);

// Finds the only message in a reply. Returns NULL, or what is wrong with the reply.
const char *frame_open(const unsigned char *reply, size_t bytes, const unsigned char **message,
                       size_t *message_bytes);

typedef struct {
    int status; // gRPC status code; -1: none received
    char message[256];
} trailers_t;

// Reads one header or trailer line; ignores all but grpc-status and grpc-message.
void trailers_take(trailers_t *trailers, const char *line, size_t bytes);

#endif
