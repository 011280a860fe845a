// SPDX-License-Identifier: GPL-2.0-or-later
#include "expect.h"
#include "wire/framing.h"

static void a_frame_is_opened_as_it_was_closed(void) {
    static const uint32_t lengths[] = {0, 1, 255, 256, 65536, 1000003};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t bytes = FRAME_BYTES + lengths[i], found_bytes;
        unsigned char *frame = calloc(1, bytes);
        const unsigned char *found;
        frame_head(frame, lengths[i]);
        EXPECT(!frame_open(frame, bytes, &found, &found_bytes));
        EXPECT(found == frame + FRAME_BYTES);
        EXPECT_NUMBER(found_bytes, lengths[i]);
        free(frame);
    }
}

static void what_is_no_frame_is_refused(void) {
    static const struct {
        const char *bytes;
        size_t count;
        const char *why;
    } wrong[] = {
        {"", 0, "too short"},
        {"\0\0\0\0", 4, "too short"},
        {"\1\0\0\0\0", 5, "compressed"},
        {"\0\0\0\0\1", 5, "length"},
        {"\0\0\0\0\1ab", 7, "length"},
        {"\0\xff\xff\xff\xff", 5, "too long"},
        {"HTTP/1.1 400", 12, "compressed or not gRPC"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const unsigned char *message;
        size_t bytes;
        const char *why =
            frame_open((const unsigned char *)wrong[i].bytes, wrong[i].count, &message, &bytes);
        EXPECT(why);
        EXPECT_SAYS(why, wrong[i].why);
    }
}

static void trailers_are_read(void) {
    static const struct {
        const char *line;
        int status;
        const char *message;
    } cases[] = {
        {"grpc-status: 0\r\n", 0, ""},
        {"grpc-status:13\r\n", 13, ""},
        {"Grpc-Status:  7", 7, ""},
        {"grpc-status: no\r\n", 2, ""},
        {"grpc-status:\r\n", 2, ""},
        {"grpc-status: 99999999999\r\n", 2, ""},
        {"grpc-status: -1\r\n", 2, ""},
        {"grpc-statusx: 0\r\n", -1, ""},
        {"grpc-message: need%20more%0acoffee%\r\n", -1, "need more?coffee%"},
        {"grpc-message: %zz%4\r\n", -1, "%zz%4"},
        {"grpc-message: gr\xc3\xbc\xc3\x9f", -1, "gr????"},
        {"content-type: application/grpc\r\n", -1, ""},
        {"HTTP/2 200 \r\n", -1, ""},
        {"\r\n", -1, ""},
        {"", -1, ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        trailers_t trailers = {.status = -1};
        char *line = strdup(cases[i].line); // of exactly its length, for the sanitizer
        trailers_take(&trailers, line, strlen(line));
        EXPECT_NUMBER(trailers.status, cases[i].status);
        EXPECT_TEXT(trailers.message, cases[i].message);
        free(line);
    }
}

static void a_long_message_is_cut(void) {
    char line[1000] = "grpc-message: ";
    memset(line + strlen(line), 'x', 900);
    trailers_t trailers = {.status = -1};
    trailers_take(&trailers, line, strlen(line));
    EXPECT_NUMBER(strlen(trailers.message), sizeof(trailers.message) - 1);
}

int main(void) {
    a_frame_is_opened_as_it_was_closed();
    what_is_no_frame_is_refused();
    trailers_are_read();
    a_long_message_is_cut();
    DONE();
}
