/* SPDX-License-Identifier: Apache-2.0 */
/* Data that outlives its process: one file per process, in the memory of its node.
 * The folder is the user's own, and named by the launcher; the file is named by node and local
 * rank, so the i-th process of a node finds what the i-th one left. */
#define _GNU_SOURCE
#include "elastic_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const char MAGIC[8] = "BRSLAB1";

const char *bridge_node(void) {
    static char name[256];
    const char *node = getenv("SLURMD_NODENAME");
    if (node && *node)
        return node;
    if (!name[0])
        gethostname(name, sizeof name - 1);
    return name;
}

static void path_of(const char *folder, char *path, size_t size) {
    const char *local = getenv("SLURM_LOCALID");
    snprintf(path, size, "%s/%s.%s", folder, bridge_node(), local ? local : "0");
}

/* Another user's folder of this name, which anybody may make, is not entered. */
static int ours(const char *folder) {
    struct stat found;
    return lstat(folder, &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == geteuid();
}

static int write_all(int fd, const void *data, size_t bytes) {
    for (const char *next = data; bytes;) {
        ssize_t done = write(fd, next, bytes);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return -1;
        next += done;
        bytes -= (size_t)done;
    }
    return 0;
}

static int read_all(int fd, void *data, size_t bytes) {
    for (char *next = data; bytes;) {
        ssize_t done = read(fd, next, bytes);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return -1;
        next += done;
        bytes -= (size_t)done;
    }
    return 0;
}

int bridge_park(const char *folder, const bridge_slab *slab, const void *shared,
                const bridge_block *blocks) {
    char path[2 * BRIDGE_TEXT];
    bridge_slab head = *slab;
    path_of(folder, path, sizeof path);
    if (mkdir(folder, 0700) && errno != EEXIST)
        return -1;
    if (!ours(folder))
        return -1;
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    memcpy(head.magic, MAGIC, sizeof MAGIC);
    int bad = write_all(fd, &head, sizeof head) || write_all(fd, shared, head.shared);
    for (int i = 0; i < head.blocks && !bad; i++)
        bad = write_all(fd, blocks[i].bytes, sizeof(size_t)) ||
              write_all(fd, *blocks[i].block, *blocks[i].block ? *blocks[i].bytes : 0);
    if (close(fd) || bad) {
        unlink(path);
        return -1;
    }
    return 0;
}

int bridge_unpark(const char *folder, bridge_slab *slab, void *shared, const bridge_block *blocks) {
    char path[2 * BRIDGE_TEXT];
    bridge_slab head;
    path_of(folder, path, sizeof path);
    if (access(path, F_OK))
        return 0;
    int fd = ours(folder) ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (fd < 0)
        return -1;
    int bad = read_all(fd, &head, sizeof head) || memcmp(head.magic, MAGIC, sizeof MAGIC) ||
              head.blocks != slab->blocks || head.shared != slab->shared ||
              read_all(fd, shared, head.shared);
    for (int i = 0; i < head.blocks && !bad; i++) {
        size_t bytes = 0;
        bad = read_all(fd, &bytes, sizeof bytes);
        if (bad)
            break;
        void *block = realloc(*blocks[i].block, bytes ? bytes : 1);
        if (!block) {
            bad = 1;
            break;
        }
        *blocks[i].block = block;
        *blocks[i].bytes = bytes;
        bad = read_all(fd, block, bytes);
    }
    close(fd);
    *slab = head;
    return bad ? -1 : 1;
}

void bridge_drop(const char *folder) {
    char path[2 * BRIDGE_TEXT];
    path_of(folder, path, sizeof path);
    if (!ours(folder))
        return;
    unlink(path);
    rmdir(folder); /* the last one of the node succeeds */
}

int bridge_room(const char *folder, size_t bytes) {
    char parent[BRIDGE_TEXT];
    struct statvfs free_space;
    snprintf(parent, sizeof parent, "%s", folder);
    char *cut = strrchr(parent, '/');
    if (cut && cut != parent)
        *cut = 0;
    return statvfs(parent, &free_space) == 0 &&
           (double)free_space.f_bavail * (double)free_space.f_frsize > (double)bytes;
}
