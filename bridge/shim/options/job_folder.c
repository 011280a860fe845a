// SPDX-License-Identifier: GPL-2.0-or-later
// Rules
//   1. Only root makes names in the directory of the folders, and nobody else can open it or its
//      file `steps`. So no user takes the name of another's job, and the owner of a folder is the
//      job's user.
//   2. Each step of a job has a shared lock on the byte of `steps` that has the job's number, as
//      long as its slurmstepd lives. A folder whose byte is free is of no running job.
//   3. Who changes the directory has a lock on the first byte. Folders are moved aside under it,
//      and removed afterwards by the process that moved them, or by any other once that is gone.
//   4. Slurm learns that a step has ended after its folder was removed. So a step removes at most
//      MAX_REMOVED names; the rest is left to steps that end later.
//   5. What is removed may be changed meanwhile by its user: no link is followed, no directory is
//      entered by more than one name, and what is mounted is detached, and never entered.
#include "options/job_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

// Job numbers begin at 1.
enum { DIRECTORY_BYTE = 0, TRIES = 8, MAX_REMOVED = 20000 };

static int folders_fd = -1, steps_fd = -1;
static unsigned removals_left;

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

// For names that nobody can take beforehand.
static unsigned long long random_number(void)
{
    static unsigned long long count;
    unsigned long long number = 0;
    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
        number = count++;
    return number;
}

static int detach(const char *path)
{
    return umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
}

static int detach_at(int directory, const char *name)
{
    char path[32 + NAME_MAX + 1];
    snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", directory, name);
    return detach(path);
}

// Moves aside what a user has put in the place of the directory. False: it stays there.
static bool move_squat(const char *folders)
{
    char aside[PATH_MAX];
    snprintf(aside, sizeof(aside), "%.*s.%016llx", PATH_MAX - 32, folders, random_number());
    if (!rename(folders, aside))
        return true;
    if (errno == EBUSY)
        return !detach(folders);
    return errno == ENOENT || errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR ||
           errno == EISDIR;
}

// Opens the directory.
static bool open_folders(const char *folders)
{
    for (int i = 0; i < TRIES; i++) {
        struct stat found;
        if (mkdir(folders, 0711) && errno != EEXIST)
            return false;
        folders_fd = open_directory(AT_FDCWD, folders);
        if (folders_fd >= 0 && !fstat(folders_fd, &found) && found.st_uid == geteuid())
            return !fchmod(folders_fd, 0711); // whatever the umask is
        if (folders_fd >= 0)
            close(folders_fd);
        folders_fd = -1;
        if (!move_squat(folders))
            return false;
    }
    errno = EEXIST;
    return false;
}

// Removes one name. False: it is a directory that is not empty, or (EBUSY) something mounted.
static bool remove_name(int directory, const char *name)
{
    do {
        if (!unlinkat(directory, name, 0) ||
            (errno != EBUSY && !unlinkat(directory, name, AT_REMOVEDIR)))
            return true;
        if (errno != EBUSY)
            return false;
    } while (!detach_at(directory, name));
    errno = EBUSY;
    return false;
}

static bool move_up(int directory, const char *name, int top)
{
    char number[32];
    snprintf(number, sizeof(number), "%016llx", random_number());
    return !renameat(directory, name, top, number);
}

static bool clear(int directory, int top);

static bool clear_inner(int top, const char *name)
{
    int inner = open_directory(top, name);
    if (inner < 0)
        return false;
    bool changed = clear(inner, top);
    close(inner);
    return !unlinkat(top, name, AT_REMOVEDIR) || changed;
}

// Removes what is in a directory. Full directories in those of `top` are moved up into it, and left
// for the next pass: so their depth does not matter. False: nothing was removed or moved.
static bool clear(int directory, int top)
{
    bool changed = false;
    int copy = dup(directory);
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    if (!entries) {
        if (copy >= 0)
            close(copy);
        return false;
    }
    rewinddir(entries);
    for (const struct dirent *entry; removals_left && (entry = readdir(entries));) {
        const char *name = entry->d_name;
        if (!strcmp(name, ".") || !strcmp(name, ".."))
            continue;
        removals_left--;
        if (remove_name(directory, name) ||
            (errno != EBUSY &&
             (directory == top ? clear_inner(top, name) : move_up(directory, name, top))))
            changed = true;
    }
    closedir(entries);
    return changed;
}

// Removes a folder that was moved aside; its user can no longer enter it.
static void remove_folder(const char *name)
{
    int top = open_directory(folders_fd, name);
    if (top < 0)
        return;
    if (!fchown(top, geteuid(), (gid_t)-1) && !fchmod(top, 0700))
        while (unlinkat(folders_fd, name, AT_REMOVEDIR) &&
               (errno == ENOTEMPTY || errno == EEXIST) && clear(top, top))
            ;
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
    int rc;
    snprintf(name, sizeof(name), "%u", job);
    snprintf(aside, sizeof(aside), ".ended.%d.%016llx", (int)getpid(), random_number());
    do
        rc = renameat(folders_fd, name, folders_fd, aside);
    while (rc && errno == EBUSY && !detach_at(folders_fd, name));
    return rc;
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

// The process that moved a folder aside; 0: the name is none of such a folder.
static pid_t moved_by(const char *name)
{
    int pid;
    return sscanf(name, ".ended.%d.", &pid) == 1 && pid > 0 ? pid : 0;
}

static void remove_own(const char *name)
{
    if (moved_by(name) == getpid())
        remove_folder(name);
}

static void remove_abandoned(const char *name)
{
    pid_t pid = moved_by(name);
    if (pid && kill(pid, 0) && errno == ESRCH)
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
        removals_left = MAX_REMOVED;
        each_name(remove_own);
        each_name(remove_abandoned);
    }
    if (steps_fd >= 0)
        close(steps_fd);
    if (folders_fd >= 0)
        close(folders_fd);
    steps_fd = folders_fd = -1;
}
