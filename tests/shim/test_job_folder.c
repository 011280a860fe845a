// SPDX-License-Identifier: GPL-2.0-or-later
// Folders of jobs: who owns them, who can spoil them, and what is left.
#include "options/job_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

enum { ALICE = 61001, BOB = 61002 };

static char folders[64], parent[32];
static bool may_unmount = true;

static const char *at(const char *name) {
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", folders, name);
    return path;
}

static bool is_there(const char *name) {
    struct stat found;
    return !lstat(at(name), &found);
}

// A step of a job, which lives until it is told to end, or is killed.
typedef struct {
    pid_t pid;
    int end;
} step_t;

// From here on the process can unmount nothing, and has a second of CPU time.
static void confine(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct held[_LINUX_CAPABILITY_U32S_3];
    struct rlimit second = {1, 1};
    if (syscall(SYS_capget, &header, held))
        abort();
    held[0].effective &= ~(1u << CAP_SYS_ADMIN);
    if (syscall(SYS_capset, &header, held) || setrlimit(RLIMIT_CPU, &second))
        abort();
}

static step_t begin(unsigned job, uid_t user) {
    int ready[2], end[2];
    char byte = 0;
    if (pipe2(ready, O_CLOEXEC) || pipe2(end, O_CLOEXEC))
        abort();
    pid_t pid = fork();
    if (!pid) {
        close(end[1]);
        byte = !job_folder_enter(folders, job, user, user);
        if (!may_unmount)
            confine();
        if (write(ready[1], &byte, 1) == 1 && read(end[0], &byte, 1) == 1)
            job_folder_leave(job);
        _exit(0);
    }
    close(ready[1]);
    close(end[0]);
    EXPECT(read(ready[0], &byte, 1) == 1 && byte);
    close(ready[0]);
    return (step_t){pid, end[1]};
}

static void finish(step_t step, bool killed) {
    int status;
    if (killed)
        kill(step.pid, SIGKILL);
    else if (write(step.end, "x", 1) != 1)
        abort();
    waitpid(step.pid, &status, 0);
    EXPECT(killed || (WIFEXITED(status) && !WEXITSTATUS(status)));
    close(step.end);
}

// What a shell of a user answers.
static int as(uid_t user, const char *command) {
    int status;
    pid_t pid = fork();
    if (!pid) {
        if (chdir(access(folders, F_OK) ? parent : folders) || setgid(user) || setuid(user))
            _exit(99);
        execl("/bin/sh", "sh", "-e", "-c", command, (char *)NULL);
        _exit(98);
    }
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
}

static bool is_tidy(void) {
    return !as(0, "test -z \"$(ls -A | grep -vx steps)\"");
}

static void test_each_user_writes_into_his_own_folder_alone(void) {
    step_t first = begin(7, ALICE), second = begin(8, BOB);
    struct stat found;
    EXPECT(!stat(at("7"), &found) && found.st_uid == ALICE && (found.st_mode & 07777) == 0700);
    EXPECT(!stat(at("8"), &found) && found.st_uid == BOB && (found.st_mode & 07777) == 0700);
    EXPECT(!as(ALICE, "echo 0.5 > 7/progress"));
    EXPECT(!as(BOB, "echo 0.5 > 8/progress"));
    EXPECT(as(BOB, "echo 0.5 2>&- > 7/progress"));
    EXPECT(as(BOB, "ls 7 2>&-"));
    EXPECT(as(BOB, "mkdir 9 2>&-"));
    EXPECT(as(BOB, "mv 8 9 2>&-"));
    EXPECT(as(BOB, ": 2>&- < steps"));
    EXPECT(as(BOB, "ls . 2>&-"));
    finish(first, false);
    EXPECT(!is_there("7") && is_there("8"));
    finish(second, false);
    EXPECT(!is_there("8"));
}

static void test_a_folder_lives_as_long_as_the_job_has_a_step(void) {
    step_t batch = begin(7, ALICE), step = begin(7, ALICE), other = begin(8, BOB);
    EXPECT(!as(ALICE, "echo 0.5 > 7/progress"));
    finish(step, false);
    EXPECT(is_there("7/progress"));
    finish(other, false);
    EXPECT(is_there("7/progress"));
    finish(batch, true); // nobody has tidied up
    EXPECT(is_there("7/progress"));
    step_t again = begin(7, BOB); // the number is given out again
    struct stat found;
    EXPECT(!is_there("7/progress"));
    EXPECT(!stat(at("7"), &found) && found.st_uid == BOB);
    finish(again, false);
    EXPECT(!is_there("7"));
    finish(begin(9, ALICE), true);
    EXPECT(is_there("9"));
    finish(begin(8, BOB), false); // the next step to end tidies up
    EXPECT(!is_there("9"));
}

static void test_nothing_of_ended_jobs_is_left_whatever_its_name(void) {
    step_t step = begin(7, ALICE);
    struct stat kept;
    char outside[64];
    snprintf(outside, sizeof(outside), "%s/outside", parent);
    EXPECT(!mkdir(outside, 0755));
    EXPECT(!as(ALICE,
               "cd 7; touch 61001.7.new .hidden -- -rf 'a b'; mkfifo pipe; mkdir 0 1 .ended.1;"
               "touch 0/x .ended.1/x; mkdir -p closed/in; chmod 0 closed;"
               "ln -s ../../outside link; i=0;"
               "while [ $i -lt 300 ]; do mkdir -p d/d/d; cd d; i=$((i + 1)); done"));
    finish(step, false);
    EXPECT(!is_there("7"));
    EXPECT(!lstat(outside, &kept));
    EXPECT(!rmdir(outside));
    EXPECT(is_tidy());
}

static void test_a_directory_that_a_user_made_first_is_moved_aside(void) {
    char command[256];
    EXPECT(!unlink(at("steps")) && !rmdir(folders));
    for (int i = 0; i < 3; i++) {
        static const char *const squats[] = {"mkdir -p %s/7", "ln -s /tmp %s", "touch %s"};
        snprintf(command, sizeof(command), squats[i], folders);
        EXPECT(!as(BOB, command));
        step_t step = begin(7, ALICE);
        struct stat found;
        EXPECT(!lstat(folders, &found) && S_ISDIR(found.st_mode) && !found.st_uid);
        EXPECT(!stat(at("7"), &found) && found.st_uid == ALICE);
        finish(step, false);
        EXPECT(!unlink(at("steps")) && !rmdir(folders));
    }
}

static void test_a_step_removes_its_own_and_what_nobody_else_removes(void) {
    step_t own = begin(7, ALICE), other = begin(8, BOB);
    step_t gone = begin(9, BOB);
    char living[64], abandoned[64], reused[64];
    finish(gone, true);
    snprintf(living, sizeof(living), ".ended.%d.1", (int)other.pid);
    snprintf(abandoned, sizeof(abandoned), ".ended.%d.0", (int)gone.pid);
    snprintf(reused, sizeof(reused), ".ended.%d.0", (int)own.pid); // of an earlier such process
    EXPECT(!mkdir(at(living), 0700) && !mkdir(at(abandoned), 0700) && !mkdir(at(reused), 0700));
    EXPECT(!as(0, "for each in .ended.*; do touch $each/x; done"));
    finish(own, false);
    EXPECT(!is_there("7") && !is_there("9") && !is_there(abandoned) && !is_there(reused));
    EXPECT(is_there(living) && is_there("8"));
    finish(other, false);
    EXPECT(is_tidy());
}

static void test_a_very_full_folder_delays_no_step_and_is_removed_by_several(void) {
    step_t full = begin(7, ALICE), other = begin(8, BOB);
    EXPECT(!as(ALICE, "cd 7; mkdir d; cd d; seq 25000 | xargs touch"));
    EXPECT(!as(BOB, "echo 0.5 > 8/progress"));
    finish(full, false);
    EXPECT(!is_there("7"));
    EXPECT(!as(0, "left=$(find .ended.* -type f | wc -l); test $left -gt 0 -a $left -lt 5100"));
    finish(other, false);
    EXPECT(is_tidy());
}

static void test_what_is_mounted_in_a_folder_is_detached(void) {
    char kept[64];
    snprintf(kept, sizeof(kept), "%s/kept", parent);
    if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
        printf("job_folder: nothing can be mounted here, so mounts are not tested\n");
        return;
    }
    step_t first = begin(7, ALICE), second = begin(8, BOB);
    EXPECT(!mkdir(kept, 0755) && !as(0, "touch ../kept/x"));
    EXPECT(!as(ALICE, "mkdir -p 7/d/d/mounted; touch 7/file"));
    EXPECT(!mount(kept, at("7/d/d/mounted"), NULL, MS_BIND, NULL));
    EXPECT(!mount(at("steps"), at("7/file"), NULL, MS_BIND, NULL));
    EXPECT(!mount(kept, at("8"), NULL, MS_BIND, NULL)); // over the whole folder
    finish(first, false);
    finish(second, false);
    EXPECT(is_tidy() && is_there("../kept/x"));

    may_unmount = false;
    first = begin(7, ALICE), second = begin(8, BOB);
    EXPECT(!as(ALICE, "mkdir -p 7/d 7/e/f; touch 7/x 7/e/f/x"));
    EXPECT(!mount(kept, at("7/d"), NULL, MS_BIND, NULL));
    finish(first, false); // in less than a second
    finish(second, false);
    EXPECT(!is_there("7") && !is_there("8") && is_there("../kept/x"));
    EXPECT(!as(0, "test \"$(ls -A .ended.*)\" = d"));
    may_unmount = true;
    finish(begin(8, BOB), false);
    EXPECT(is_tidy() && !as(0, "rm -r ../kept"));
}

static void test_no_name_that_a_user_takes_keeps_the_directory_from_being_made(void) {
    static const char *const squats[] = {"mkdir -p folders/7", "touch folders"};
    for (int i = 0; i < 2; i++) {
        char command[256];
        snprintf(command, sizeof(command),
                 "seq -f folders.%%.0f.0/x $$ $(($$ + 200)) | xargs mkdir -p; %s", squats[i]);
        EXPECT(!as(BOB, command));
        step_t first = begin(7, ALICE), second = begin(8, BOB);
        EXPECT(is_there("7") && is_there("8"));
        finish(first, false);
        finish(second, false);
        EXPECT(!unlink(at("steps")) && !rmdir(folders));
    }
}

int main(void) {
    if (geteuid()) {
        printf("job_folder: not run, needs root\n");
        return 0;
    }
    snprintf(parent, sizeof(parent), "/tmp/job_folder.XXXXXX");
    if (!mkdtemp(parent) || chmod(parent, 01777))
        return 1;
    snprintf(folders, sizeof(folders), "%s/folders", parent);
    test_each_user_writes_into_his_own_folder_alone();
    test_a_folder_lives_as_long_as_the_job_has_a_step();
    test_nothing_of_ended_jobs_is_left_whatever_its_name();
    test_a_step_removes_its_own_and_what_nobody_else_removes();
    test_a_very_full_folder_delays_no_step_and_is_removed_by_several();
    test_what_is_mounted_in_a_folder_is_detached();
    test_a_directory_that_a_user_made_first_is_moved_aside();
    test_no_name_that_a_user_takes_keeps_the_directory_from_being_made();
    EXPECT(!as(0, "rm -rf folders.*") && !rmdir(parent));
    DONE();
}
