// SPDX-License-Identifier: GPL-2.0-or-later
#include "wire/framing.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

void frame_head(unsigned char head[FRAME_BYTES], uint32_t bytes)
{
    head[0] = 0;
    for (int i = 1; i < FRAME_BYTES; i++)
        head[i] = (unsigned char)(bytes >> (8 * (FRAME_BYTES - 1 - i)));
}

const char *frame_open(const unsigned char *reply, size_t bytes, const unsigned char **message,
                       size_t *message_bytes)
{
    if (bytes < FRAME_BYTES)
        return "the reply is too short";
    if (reply[0] != 0)
        return "the reply is compressed or not gRPC";
    uint32_t length = 0;
    for (int i = 1; i < FRAME_BYTES; i++)
        length = length << 8 | reply[i];
    if (length > FRAME_MAX_REPLY)
        return "the reply is too long";
    if (length != bytes - FRAME_BYTES)
        return "the reply's length is wrong";
    *message = reply + FRAME_BYTES;
    *message_bytes = length;
    return NULL;
}

static int hex(unsigned char c)
{
    if (isdigit(c))
        return c - '0';
    return isxdigit(c) ? tolower(c) - 'a' + 10 : -1;
}

// Undoes percent-encoding; unprintable bytes become '?', as the text is logged.
static void decode(char *to, size_t room, const char *from, size_t bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < bytes && n + 1 < room; i++) {
        unsigned char c = (unsigned char)from[i];
        if (c == '%' && i + 2 < bytes && hex((unsigned char)from[i + 1]) >= 0 &&
            hex((unsigned char)from[i + 2]) >= 0) {
            c = (unsigned char)(hex((unsigned char)from[i + 1]) * 16 +
                                hex((unsigned char)from[i + 2]));
            i += 2;
        }
        to[n++] = isascii(c) && isprint(c) ? (char)c : '?';
    }
    to[n] = 0;
}

void trailers_take(trailers_t *trailers, const char *line, size_t bytes)
{
    static const char status[] = "grpc-status:", message[] = "grpc-message:";
    while (bytes && isspace((unsigned char)line[bytes - 1]))
        bytes--;
    const char *value = memchr(line, ':', bytes);
    if (!value)
        return;
    size_t name_bytes = (size_t)(++value - line);
    size_t value_bytes = bytes - name_bytes;
    while (value_bytes && isspace((unsigned char)*value)) {
        value++;
        value_bytes--;
    }
    if (name_bytes == sizeof(status) - 1 && !strncasecmp(line, status, name_bytes)) {
        int code = 0;
        if (!value_bytes || value_bytes > 3)
            code = 2; // gRPC's UNKNOWN
        for (size_t i = 0; i < value_bytes && value_bytes <= 3; i++) {
            if (!isdigit((unsigned char)value[i])) {
                code = 2;
                break;
            }
            code = 10 * code + value[i] - '0';
        }
        trailers->status = code;
    } else if (name_bytes == sizeof(message) - 1 && !strncasecmp(line, message, name_bytes)) {
        decode(trailers->message, sizeof(trailers->message), value, value_bytes);
    }
}
