// SPDX-License-Identifier: GPL-2.0-or-later
#include "cycle/epoch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "schedbridge_epoch"
// The year 2200, in microseconds: beyond any valid clock.
#define BEYOND_US UINT64_C(7258118400000000)

// The last number; 0: none is stored. False: the content is invalid.
static bool read_last(const char *path, uint64_t *last)
{
    char text[32];
    *last = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return errno == ENOENT;
    ssize_t bytes = read(file, text, sizeof(text) - 1);
    int error = errno;
    close(file);
    errno = error;
    if (bytes < 0)
        return false;
    text[bytes] = 0;
    size_t digits = strspn(text, "0123456789");
    errno = EINVAL;
    if (!digits || digits > 16 || strcmp(text + digits, "\n") != 0)
        return false;
    uint64_t found = strtoull(text, NULL, 10);
    if (found >= BEYOND_US)
        return false;
    *last = found;
    return true;
}

static bool write_all(int file, const char *text, size_t bytes)
{
    ssize_t written = write(file, text, bytes);
    if (written >= 0 && (size_t)written != bytes)
        errno = ENOSPC;
    return written >= 0 && (size_t)written == bytes && fsync(file) == 0;
}

// Replaces the old file atomically: after a crash one of the two exists.
static bool write_next(const char *path, uint64_t next)
{
    char fresh[4096 + 64], text[32];
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    int bytes = snprintf(text, sizeof(text), "%" PRIu64 "\n", next);
    (void)unlink(fresh);
    int file = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return false;
    bool good = write_all(file, text, (size_t)bytes);
    int error = errno;
    close(file);
    if (good && rename(fresh, path) == 0)
        return true;
    if (good)
        error = errno;
    (void)unlink(fresh);
    errno = error;
    return false;
}

uint64_t epoch_begin(const char *directory, uint64_t now_us, char *problem, size_t problem_bytes)
{
    char path[4096];
    uint64_t last, next = now_us;
    problem[0] = 0;
    int length = snprintf(path, sizeof(path), "%s/" NAME, directory ? directory : "");
    if (!directory || !directory[0] || length < 0 || (size_t)length >= sizeof(path)) {
        snprintf(problem, problem_bytes, "no StateSaveLocation");
        return next;
    }
    if (!read_last(path, &last))
        snprintf(problem, problem_bytes, "cannot read %s: %s", path, strerror(errno));
    else if (last >= now_us)
        next = last + 1;
    if (!write_next(path, next))
        snprintf(problem, problem_bytes, "cannot write %s: %s", path, strerror(errno));
    return next;
}
