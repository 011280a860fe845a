// SPDX-License-Identifier: GPL-2.0-or-later
// Texts of users go into messages that their reader refuses whole for one byte that is not UTF-8.
#include "common/arena.h"
#include "expect.h"

static const char *const pairs[][2] = {
    {"plain", "plain"},
    {"", ""},
    {"gr\xc3\xbc\xc3\x9f"
     "e \xe2\x82\xac \xf0\x9f\x98\x80",
     "gr\xc3\xbc\xc3\x9f"
     "e \xe2\x82\xac \xf0\x9f\x98\x80"},
    {"\xff", "?"},
    {"a\xc3", "a?"},
    {"a\xe2\x82", "a??"},
    {"\x80z", "?z"},
    {"\xc0\xaf", "??"}, // longer than needed
    {"\xe0\x80\xaf", "???"},
    {"\xed\xa0\x80", "???"},      // half of a pair
    {"\xf4\x90\x80\x80", "????"}, // beyond the last character
    {"\xf8\x88\x80\x80\x80", "?????"},
};

static void texts_are_readable(void) {
    arena_t arena = {0};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        EXPECT_TEXT(arena_text(&arena, pairs[i][0]), pairs[i][1]);
        EXPECT_TEXT(arena_cut(&arena, pairs[i][0], 1000), pairs[i][1]);
        EXPECT_TEXT(arena_format(&arena, "%s", pairs[i][0]), pairs[i][1]);
    }
    EXPECT_TEXT(arena_text(&arena, NULL), "");
    arena_reset(&arena);
}

static void texts_are_cut(void) {
    arena_t arena = {0};
    EXPECT_TEXT(arena_cut(&arena, "abcdef", 3), "abc");
    EXPECT_TEXT(arena_cut(&arena, "ab\xc3\xbc", 3), "ab?"); // not in the middle of a character
    EXPECT_TEXT(arena_cut(&arena, NULL, 3), "");
    EXPECT_TEXT(arena_cut(&arena, "abc", 0), "");
    arena_reset(&arena);
}

int main(void) {
    texts_are_readable();
    texts_are_cut();
    DONE();
}
