/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the library share. */
#ifndef BRIDGE_ELASTIC_INTERNAL_H
#define BRIDGE_ELASTIC_INTERNAL_H

#include <stddef.h>

#define BRIDGE_LINE 65536
#define BRIDGE_TEXT 512
#define BRIDGE_BLOCKS 32

/* lines.c: lines of JSON to and from the launcher. The launcher writes compact JSON whose texts
 * hold no unescaped quotes, so a key is found by its quotes and colon. */
typedef struct bridge_link {
    int fd;
    size_t held;
    char buffer[BRIDGE_LINE];
} bridge_link;

int bridge_link_local(bridge_link *link, const char *path);
int bridge_link_remote(bridge_link *link, const char *address);
void bridge_link_close(bridge_link *link);
int bridge_link_say(bridge_link *link, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* 1: a line is in `line`; 0: none within the time; -1: the launcher is gone. */
int bridge_link_hear(bridge_link *link, char *line, int timeout_ms);
int bridge_text(const char *line, const char *key, char *out, size_t size);
int bridge_listed(const char *line, const char *key, const char *word);

/* parked.c: blocks of memory that outlive their process, in files of a memory file system. */
typedef struct bridge_block {
    void **block;
    size_t *bytes;
} bridge_block;

typedef struct bridge_slab {
    char magic[8];
    int rank, size, phase, blocks;
    size_t shared;
} bridge_slab;

int bridge_park(const char *folder, const bridge_slab *slab, const void *shared,
                const bridge_block *blocks);
/* 1: read; 0: there is none; -1: there is one that cannot be used. */
int bridge_unpark(const char *folder, bridge_slab *slab, void *shared, const bridge_block *blocks);
void bridge_drop(const char *folder);
int bridge_room(const char *folder, size_t bytes);

const char *bridge_node(void);
#endif
