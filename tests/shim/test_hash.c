// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/hash.h"
#include "expect.h"

static uint64_t of_texts(const char *a, const char *b) {
    bridge_hash_t hash = BRIDGE_HASH_START;
    hash_text(&hash, a);
    hash_text(&hash, b);
    return hash_end(hash);
}

static uint64_t of_number(uint64_t number) {
    bridge_hash_t hash = BRIDGE_HASH_START;
    hash_number(&hash, number);
    return hash_end(hash);
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

int main(void) {
    // Versions are compared across restarts: the function must never change within a release.
    EXPECT(of_number(42) == of_number(42));
    EXPECT(of_texts("fast", "n1") == of_texts("fast", "n1"));
    EXPECT(of_texts("", "x") == of_texts(NULL, "x"));
    // What is moved from one field to the next is another request.
    EXPECT(of_texts("ab", "c") != of_texts("a", "bc"));
    EXPECT(of_texts("x", "") != of_texts("", "x"));
    EXPECT(of_texts("1234567", "") != of_texts("12345678", ""));
    EXPECT(hash_end(0) != 0);
    static uint64_t hashes[200000];
    size_t count = sizeof(hashes) / sizeof(hashes[0]);
    for (size_t i = 0; i < count; i++)
        hashes[i] = of_number(i);
    qsort(hashes, count, sizeof(hashes[0]), ascending);
    for (size_t i = 1; i < count; i++)
        EXPECT(hashes[i] != hashes[i - 1]);
    DONE();
}
