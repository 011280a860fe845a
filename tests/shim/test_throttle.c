// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/throttle.h"
#include "expect.h"

static void a_flood_is_counted(void) {
    throttle_t throttle = {0};
    unsigned hidden, written = 0;
    for (int64_t ms = 0; ms < 60000; ms++) {
        written += throttle_allows(&throttle, 3, 1000 + ms, &hidden);
        EXPECT_NUMBER(hidden, 0);
    }
    EXPECT_NUMBER(written, 3);
    EXPECT(throttle_allows(&throttle, 3, 61000, &hidden));
    EXPECT_NUMBER(hidden, 60000 - 3);
    EXPECT(throttle_allows(&throttle, 3, 61001, &hidden));
    EXPECT_NUMBER(hidden, 0);
}

static void texts_forge_no_lines(void) {
    char line[20];
    EXPECT_TEXT(plain(line, sizeof(line), "a\nb\r\x1b[31m\t\x7f\xff"), "a?b??[31m???");
    EXPECT_TEXT(plain(line, 4, "abcdef"), "abc");
    EXPECT_TEXT(plain(line, 1, "abcdef"), "");
}

int main(void) {
    a_flood_is_counted();
    texts_forge_no_lines();
    DONE();
}
