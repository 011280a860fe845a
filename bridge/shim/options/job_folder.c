// SPDX-License-Identifier: GPL-2.0-or-later
// Rules
//   1. Only root makes names in the directory of the folders, and nobody else can open it or its
//      file `steps`. So no user takes the name of another's job, and the owner of a folder is the
//      job's user.
//   2. Each step of a job has a shared lock on the byte of `steps` that has the job's number, as
//      long as its slurmstepd lives. A folder whose byte is free is of no running job.
//   3. Who changes the directory has a lock on the first byte. Folders are moved aside under it,
//      and removed afterwards: a user who fills his folder delays no other job.
//   4. What is removed may be changed meanwhile by its user: no link is followed, and no directory
//      is entered by more than one name.
#include "options/job_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Job numbers begin at 1.
enum { DIRECTORY_BYTE = 0, TRIES = 8, PASSES = 100000 };

static int folders_fd = -1, steps_fd = -1;

static int lock(int command, short type, off_t byte)
{
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int rc;
    do
        rc = fcntl(steps_fd, command, &range);
    while (rc && errno == EINTR);
    return rc;
}

static bool has_step(unsigned job)
{
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = job, .l_len = 1};
    return fcntl(steps_fd, F_OFD_GETLK, &range) || range.l_type != F_UNLCK;
}

static int open_directory(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// Opens the directory; what a user has put in its place is moved aside.
static bool open_folders(const char *folders)
{
    for (int i = 0; i < TRIES; i++) {
        struct stat found;
        char aside[PATH_MAX];
        if (mkdir(folders, 0711) && errno != EEXIST)
            return false;
        folders_fd = open_directory(AT_FDCWD, folders);
        if (folders_fd >= 0 && !fstat(folders_fd, &found) && found.st_uid == geteuid())
            return !fchmod(folders_fd, 0711); // whatever the umask is
        if (folders_fd >= 0)
            close(folders_fd);
        folders_fd = -1;
        snprintf(aside, sizeof(aside), "%.*s.%d.%d", PATH_MAX - 32, folders, (int)getpid(), i);
        if (rename(folders, aside) && errno != ENOENT)
            return false;
    }
    errno = EEXIST;
    return false;
}

// Removes what is in a directory. Full directories in those of `top` are moved up into it, and left
// for the next pass: so their depth does not matter.
static void clear(int directory, int top, unsigned *moved)
{
    int copy = dup(directory);
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    if (!entries) {
        if (copy >= 0)
            close(copy);
        return;
    }
    rewinddir(entries);
    for (const struct dirent *entry; (entry = readdir(entries));) {
        const char *name = entry->d_name;
        char number[32];
        int inner;
        if (!strcmp(name, ".") || !strcmp(name, "..") || !unlinkat(directory, name, 0) ||
            !unlinkat(directory, name, AT_REMOVEDIR))
            continue;
        if (directory != top) {
            snprintf(number, sizeof(number), "%u", (*moved)++);
            (void)renameat(directory, name, top, number);
        } else if ((inner = open_directory(top, name)) >= 0) {
            clear(inner, top, moved);
            close(inner);
            (void)unlinkat(top, name, AT_REMOVEDIR);
        }
    }
    closedir(entries);
}

// Removes a folder that was moved aside; its user can no longer enter it.
static void remove_folder(const char *name)
{
    unsigned moved = 0;
    int top = open_directory(folders_fd, name);
    if (top < 0)
        return;
    if (!fchown(top, geteuid(), (gid_t)-1) && !fchmod(top, 0700))
        for (int pass = 0; pass < PASSES && unlinkat(folders_fd, name, AT_REMOVEDIR) &&
                           (errno == ENOTEMPTY || errno == EEXIST);
             pass++)
            clear(top, top, &moved);
    close(top);
}

// The number in the name of a job's folder; 0: it is none.
static unsigned job_of(const char *name)
{
    char *end;
    unsigned long job = strtoul(name, &end, 10);
    return name[0] >= '1' && name[0] <= '9' && !*end && job < UINT_MAX ? (unsigned)job : 0;
}

static int move_aside(unsigned job)
{
    char name[32], aside[64];
    static unsigned count;
    snprintf(name, sizeof(name), "%u", job);
    snprintf(aside, sizeof(aside), ".ended.%d.%u", (int)getpid(), count++);
    return renameat(folders_fd, name, folders_fd, aside);
}

// Calls `what` for each name in the directory.
static void each_name(void (*what)(const char *name))
{
    int copy = dup(folders_fd);
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    if (!entries) {
        if (copy >= 0)
            close(copy);
        return;
    }
    rewinddir(entries);
    for (const struct dirent *entry; (entry = readdir(entries));)
        what(entry->d_name);
    closedir(entries);
}

static void move_ended(const char *name)
{
    unsigned job = job_of(name);
    if (job && !has_step(job))
        (void)move_aside(job);
}

static void remove_ended(const char *name)
{
    if (!strncmp(name, ".ended.", strlen(".ended.")))
        remove_folder(name);
}

static const char *make_folder(unsigned job, uid_t uid, gid_t gid)
{
    char name[32];
    snprintf(name, sizeof(name), "%u", job);
    if (!has_step(job) && move_aside(job) && errno != ENOENT)
        return "the folder of an earlier job cannot be moved";
    if (lock(F_OFD_SETLK, F_RDLCK, job))
        return "the job's lock cannot be taken";
    if (!mkdirat(folders_fd, name, 0700))
        return fchownat(folders_fd, name, uid, gid, AT_SYMLINK_NOFOLLOW)
                   ? "the job's folder cannot be given to its user"
                   : NULL;
    return errno == EEXIST ? NULL : "the job's folder cannot be made";
}

const char *job_folder_enter(const char *folders, unsigned job, uid_t uid, gid_t gid)
{
    const char *problem = "the directory cannot be made";
    if (!open_folders(folders))
        return problem;
    steps_fd = openat(folders_fd, "steps", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (steps_fd < 0)
        problem = "its file steps cannot be opened";
    else if (lock(F_OFD_SETLKW, F_WRLCK, DIRECTORY_BYTE))
        problem = "the directory cannot be locked";
    else if (!(problem = make_folder(job, uid, gid))) {
        (void)lock(F_OFD_SETLK, F_UNLCK, DIRECTORY_BYTE);
        return NULL;
    }
    int error = errno;
    job_folder_leave(0);
    errno = error;
    return problem;
}

void job_folder_leave(unsigned job)
{
    if (steps_fd >= 0 && job && !lock(F_OFD_SETLKW, F_WRLCK, DIRECTORY_BYTE)) {
        (void)lock(F_OFD_SETLK, F_UNLCK, job);
        each_name(move_ended);
        (void)lock(F_OFD_SETLK, F_UNLCK, DIRECTORY_BYTE);
        each_name(remove_ended);
    }
    if (steps_fd >= 0)
        close(steps_fd);
    if (folders_fd >= 0)
        close(folders_fd);
    steps_fd = folders_fd = -1;
}
