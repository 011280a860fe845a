// SPDX-License-Identifier: GPL-2.0-or-later
// A 64-bit hash: the same in every process, and never 0.
#ifndef BRIDGE_HASH_H
#define BRIDGE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint64_t bridge_hash_t;

#define BRIDGE_HASH_START UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t hash_mix(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    return x;
}

static inline void hash_number(bridge_hash_t *hash, uint64_t number)
{
    *hash = hash_mix(*hash ^ number) + UINT64_C(0x2545f4914f6cdd1d);
}

static inline void hash_bytes(bridge_hash_t *hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    hash_number(hash, size);
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        hash_number(hash, word);
    }
    uint64_t tail = 0;
    if (size) {
        memcpy(&tail, at, size);
        hash_number(hash, tail);
    }
}

// NULL and "" are the same.
static inline void hash_text(bridge_hash_t *hash, const char *text)
{
    hash_bytes(hash, text ? text : "", text ? strlen(text) : 0);
}

static inline uint64_t hash_end(bridge_hash_t hash)
{
    return hash ? hash : 1;
}

#endif
