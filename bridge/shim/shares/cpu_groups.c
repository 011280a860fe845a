// SPDX-License-Identifier: GPL-2.0-or-later
#include "shares/cpu_groups.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "schedbridge_"

// The agent removes a cgroup that is empty: between mkdir and the first process it may.
enum { TRIES = 3 };

static const char *const hierarchies[] = {"cpu", "cpu,cpuacct", "cpuacct,cpu"};

typedef struct {
    char text[PATH_MAX];
} path_t;

__attribute__((format(printf, 2, 3))) static bool path_set(path_t *path, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    int length = vsnprintf(path->text, sizeof(path->text), format, words);
    va_end(words);
    return length >= 0 && (size_t)length < sizeof(path->text);
}

// Writes a file that exists; errno tells why it failed.
static bool put(const char *folder, const char *name, const char *text)
{
    path_t path;
    if (!path_set(&path, "%s/%s", folder, name))
        return false;
    int file = open(path.text, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return false;
    size_t length = strlen(text);
    bool done = write(file, text, length) == (ssize_t)length;
    int error = errno;
    close(file);
    errno = error;
    return done;
}

// No quota and the kernel's own weight; of either version, files that do not exist are left out.
static void settle_full(const char *folder)
{
    put(folder, "cpu.cfs_quota_us", "-1");
    put(folder, "cpu.shares", "1024");
    put(folder, "cpu.max", "max");
    put(folder, "cpu.weight", "100");
}

// Where the controller cpu of version 1 is mounted.
static bool find_hierarchy(const cpu_groups_t *at, path_t *found)
{
    for (size_t i = 0; i < sizeof(hierarchies) / sizeof(hierarchies[0]); i++) {
        path_t file;
        if (path_set(&file, "%s/%s/cpu.shares", at->cgroups, hierarchies[i]) &&
            !access(file.text, F_OK))
            return path_set(found, "%s/%s", at->cgroups, hierarchies[i]);
    }
    return false;
}

static bool lists_cpu(char *controllers)
{
    char *rest = NULL;
    for (char *each = strtok_r(controllers, ",", &rest); each; each = strtok_r(NULL, ",", &rest))
        if (!strcmp(each, "cpu"))
            return true;
    return false;
}

// The cgroup "cpu" of a process as the kernel names it.
static bool named(const cpu_groups_t *at, const char *pid, path_t *found)
{
    path_t file;
    if (!path_set(&file, "%s/%s/cgroup", at->proc, pid))
        return false;
    FILE *lines = fopen(file.text, "re");
    if (!lines)
        return false;
    bool done = false;
    char line[PATH_MAX + 256];
    while (!done && fgets(line, sizeof(line), lines)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path = '\0';
        done = lists_cpu(controllers + 1) && path_set(found, "%s", path + 1);
    }
    fclose(lines);
    return done;
}

// Which cgroup is mounted as the hierarchy: in a container it may be one below the root.
static void mounted(const cpu_groups_t *at, const path_t *hierarchy, path_t *found)
{
    path_t file;
    path_set(found, "/");
    if (!path_set(&file, "%s/self/mountinfo", at->proc))
        return;
    FILE *lines = fopen(file.text, "re");
    if (!lines)
        return;
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, lines) >= 0) {
        char *words[5], *rest = NULL;
        int count = 0;
        for (char *each = strtok_r(line, " ", &rest); each && count < 5;
             each = strtok_r(NULL, " ", &rest))
            words[count++] = each;
        if (count == 5 && !strcmp(words[4], hierarchy->text)) {
            path_set(found, "%s", words[3]);
            break;
        }
    }
    free(line);
    fclose(lines);
}

static bool is_folder(const char *path)
{
    struct stat found;
    return !stat(path, &found) && S_ISDIR(found.st_mode);
}

// The directory of the cgroup "cpu" of a process.
static bool find_cgroup(const cpu_groups_t *at, const char *pid, path_t *found)
{
    path_t hierarchy, name, base;
    if (!find_hierarchy(at, &hierarchy) || !named(at, pid, &name) || strstr(name.text, "/.."))
        return false;
    mounted(at, &hierarchy, &base);
    size_t length = strlen(base.text);
    if (length > 1 && !strncmp(name.text, base.text, length) &&
        (name.text[length] == '/' || !name.text[length]) &&
        path_set(found, "%s%s", hierarchy.text, name.text + length) && is_folder(found->text))
        return true;
    if (path_set(found, "%s%s", hierarchy.text, name.text) && is_folder(found->text))
        return true;
    return path_set(found, "%s", hierarchy.text);
}

// Whether Slurm's own directories of jobs are a part of this path.
static bool is_slurms(const char *path, uint32_t job)
{
    char part[32];
    snprintf(part, sizeof(part), "/job_%u", job);
    for (const char *found = strstr(path, part); found; found = strstr(found + 1, part))
        if (found[strlen(part)] == '/' || !found[strlen(part)])
            return true;
    return false;
}

// A cgroup of ours as part of a path: processes that an older agent has moved, or slurmd when it
// was started by a job. Jobs are beside it.
static void leave_ours(path_t *path)
{
    char *last = strrchr(path->text, '/');
    if (last && !strncmp(last + 1, PREFIX, strlen(PREFIX)))
        *last = '\0';
}

static bool has_plain_name(const cpu_groups_t *at)
{
    return at->node && *at->node && !strpbrk(at->node, "/*?[]\\");
}

static bool fail(char *problem, size_t size, const char *path)
{
    snprintf(problem, size, "%.200s: %s", path, strerror(errno));
    return false;
}

bool cpu_groups_enter(const cpu_groups_t *at, uint32_t job, pid_t pid, char *problem, size_t size)
{
    path_t own;
    char number[16];
    snprintf(number, sizeof(number), "%d", pid);
    *problem = '\0';
    if (!has_plain_name(at)) {
        snprintf(problem, size, "the name of this node is not known");
        return false;
    }
    if (!find_cgroup(at, number, &own) || is_slurms(own.text, job))
        return true;
    leave_ours(&own);
    size_t length = strlen(own.text);
    int more = snprintf(own.text + length, sizeof(own.text) - length, "/" PREFIX "%s_job_%u",
                        at->node, job);
    if (more < 0 || (size_t)more >= sizeof(own.text) - length) {
        errno = ENAMETOOLONG;
        return fail(problem, size, own.text);
    }
    for (int i = 0; i < TRIES; i++) {
        if (mkdir(own.text, 0755) && errno != EEXIST)
            return fail(problem, size, own.text);
        // One that is there already is empty between steps, and keeps what was set for the job.
        if (put(own.text, "cgroup.procs", number))
            return true;
        if (errno != ENOENT && errno != ENODEV)
            break;
    }
    return fail(problem, size, own.text);
}

__attribute__((format(printf, 2, 3))) static void each_of(void (*act)(const char *),
                                                          const char *format, ...)
{
    path_t pattern;
    glob_t found = {.gl_pathc = 0};
    va_list words;
    va_start(words, format);
    int length = vsnprintf(pattern.text, sizeof(pattern.text), format, words);
    va_end(words);
    if (length < 0 || (size_t)length >= sizeof(pattern.text))
        return;
    if (!glob(pattern.text, GLOB_NOSORT, NULL, &found))
        for (size_t i = 0; i < found.gl_pathc; i++)
            act(found.gl_pathv[i]);
    globfree(&found);
}

static void remove_or_settle(const char *folder)
{
    if (rmdir(folder))
        settle_full(folder);
}

void cpu_groups_release(const cpu_groups_t *at)
{
    path_t path;
    if (!has_plain_name(at))
        return;
    if (find_cgroup(at, "self", &path)) {
        leave_ours(&path);
        each_of(remove_or_settle, "%s/" PREFIX "%s_job_*", path.text, at->node);
    }
    const char *node = at->node;
    if (find_hierarchy(at, &path)) { // where it is mounted together with cpuacct
        each_of(settle_full, "%s/slurm_%s/uid_*", path.text, node);
        each_of(settle_full, "%s/slurm_%s/uid_*/job_*", path.text, node);
        each_of(settle_full, "%s/slurm/uid_*", path.text);
        each_of(settle_full, "%s/slurm/uid_*/job_*", path.text);
    }
    const char *const slices[] = {"", "/system.slice"};
    for (size_t i = 0; i < sizeof(slices) / sizeof(slices[0]); i++) {
        each_of(settle_full, "%s%s/%s_slurmstepd.scope/job_*", at->cgroups, slices[i], node);
        each_of(settle_full, "%s%s/slurmstepd.scope/job_*", at->cgroups, slices[i]);
    }
}
