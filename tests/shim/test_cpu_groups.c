// SPDX-License-Identifier: GPL-2.0-or-later
// Cgroups of jobs in "cpu": in files that look like them, and in those of this machine where it has
// version 1 and lets us write there.
#include "shares/cpu_groups.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

enum { CHAINS = 20, GENERATIONS = 10, TRIES = 10000 };

static char root[64], problem[512];

static const char *in(const char *format, const char *of) {
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    int length = snprintf(path, sizeof(paths[0]), "%s/", root);
    snprintf(path + length, sizeof(paths[0]) - (size_t)length, format, of);
    return path;
}

static void shell(const char *command) {
    if (system(command) != 0) {
        fprintf(stderr, "failed: %s\n", command);
        exit(1);
    }
}

static void make(const char *file, const char *text) {
    char command[2048];
    const char *path = in("%s", file);
    snprintf(command, sizeof(command), "mkdir -p \"$(dirname '%s')\" && printf '%s' >'%s'", path,
             text, path);
    shell(command);
}

static const char *shown(const char *path) {
    static char texts[4][512];
    static int next;
    char *text = texts[next++ % 4];
    FILE *file = fopen(path, "r");
    if (!file)
        return "(no file)";
    size_t length = fread(text, 1, sizeof(texts[0]) - 1, file);
    fclose(file);
    text[length] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return text;
}

static cpu_groups_t fake(void) {
    static char cgroups[512], proc[512];
    snprintf(cgroups, sizeof(cgroups), "%s", in("cgroup%s", ""));
    snprintf(proc, sizeof(proc), "%s", in("proc%s", ""));
    return (cpu_groups_t){cgroups, proc, "n1"};
}

static void begin(void) {
    snprintf(root, sizeof(root), "/tmp/cpu-groups-XXXXXX");
    EXPECT(mkdtemp(root));
}

static void end(void) {
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", root);
    shell(command);
}

static void where_slurm_has_a_cgroup_of_the_job_nothing_is_made(void) {
    begin();
    cpu_groups_t at = fake();
    make("cgroup/cpu,cpuacct/cpu.shares", "1024");
    make("cgroup/cpu,cpuacct/slurm_n1/uid_7/job_71/step_0/cgroup.procs", "42");
    make("proc/42/cgroup", "4:cpu,cpuacct:/slurm_n1/uid_7/job_71/step_0\n1:name=systemd:/x\n");
    EXPECT(cpu_groups_enter(&at, 71, 42, problem, sizeof(problem)));
    EXPECT(access(in("%s", "cgroup/cpu,cpuacct/slurm_n1/uid_7/job_71/step_0/schedbridge_n1_job_71"),
                  F_OK));
    // Of job 7 that is not: it gets one of its own, which fails on a file system of files.
    EXPECT(!cpu_groups_enter(&at, 7, 42, problem, sizeof(problem)));
    end();
}

static void version_2_needs_none(void) {
    begin();
    cpu_groups_t at = fake();
    make("cgroup/cgroup.controllers", "cpu");
    make("proc/42/cgroup", "0::/system.slice/n1_slurmstepd.scope/job_7/step_0\n");
    EXPECT(cpu_groups_enter(&at, 7, 42, problem, sizeof(problem)));
    end();
}

static void at_the_end_of_a_job_the_others_of_its_node_have_their_full_share(void) {
    static const char *const jobs[] = {"cgroup/system.slice/n1_slurmstepd.scope/job_7",
                                       "cgroup/n1_slurmstepd.scope/job_8",
                                       "cgroup/system.slice/n2_slurmstepd.scope/job_9"};
    begin();
    cpu_groups_t at = fake();
    make("proc/self/cgroup", "0::/system.slice/slurmd.service\n");
    for (int i = 0; i < 3; i++) {
        char name[256];
        snprintf(name, sizeof(name), "%s/cpu.max", jobs[i]);
        make(name, "20000 100000");
        snprintf(name, sizeof(name), "%s/cpu.weight", jobs[i]);
        make(name, "1");
    }
    cpu_groups_release(&at);
    for (int i = 0; i < 2; i++) {
        EXPECT_TEXT(shown(in("%s/cpu.max", jobs[i])), "max");
        EXPECT_TEXT(shown(in("%s/cpu.weight", jobs[i])), "100");
        EXPECT(access(in("%s/cpu.shares", jobs[i]), F_OK)); // no file is made
    }
    EXPECT_TEXT(shown(in("%s/cpu.max", jobs[2])), "20000 100000"); // of another node
    end();
}

static void also_where_cpu_is_mounted_with_cpuacct(void) {
    begin();
    cpu_groups_t at = fake();
    make("proc/self/cgroup", "4:cpu,cpuacct:/\n");
    make("cgroup/cpu,cpuacct/cpu.shares", "1024");
    make("cgroup/cpu,cpuacct/slurm_n1/uid_7/cpu.shares", "10");
    make("cgroup/cpu,cpuacct/slurm_n1/uid_7/job_7/cpu.cfs_quota_us", "10000");
    make("cgroup/cpu,cpuacct/slurm_n2/uid_7/job_8/cpu.cfs_quota_us", "10000");
    cpu_groups_release(&at);
    EXPECT_TEXT(shown(in("cgroup/cpu,cpuacct/slurm_n1/uid_7/cpu.shares%s", "")), "1024");
    EXPECT_TEXT(shown(in("cgroup/cpu,cpuacct/slurm_n1/uid_7/job_7/cpu.cfs_quota_us%s", "")), "-1");
    EXPECT_TEXT(shown(in("cgroup/cpu,cpuacct/slurm_n2/uid_7/job_8/cpu.cfs_quota_us%s", "")),
                "10000");
    end();
}

static void what_cannot_be_done_is_said_in_a_line(void) {
    static const char *const names[] = {NULL, "", "../n1", "n*"};
    begin();
    cpu_groups_t at = fake();
    make("cgroup/cpu/cpu.shares", "1024");
    make("proc/42/cgroup", "3:cpu:/\n");
    make("cgroup/cpu/schedbridge_n1_job_7", "a file is in the way");
    EXPECT(!cpu_groups_enter(&at, 7, 42, problem, sizeof(problem)));
    EXPECT_SAYS(problem, "schedbridge_n1_job_7: Not a directory");
    for (int i = 0; i < 4; i++) {
        at.node = names[i];
        EXPECT(!cpu_groups_enter(&at, 7, 42, problem, sizeof(problem)));
        EXPECT_SAYS(problem, "name of this node");
        cpu_groups_release(&at);
    }
    end();
}

static void in_a_container_the_cgroup_is_found_below_what_is_mounted(void) {
    begin();
    cpu_groups_t at = fake();
    char line[1024];
    make("cgroup/cpu/cpu.shares", "1024");
    make("cgroup/cpu/own/schedbridge_n1_job_7/cgroup.procs", "1");
    make("proc/42/cgroup", "3:cpu:/docker/x/own\n");
    snprintf(line, sizeof(line), "29 25 0:26 /docker/x %s rw - cgroup cgroup rw\n",
             in("cgroup/cpu%s", ""));
    make("proc/self/mountinfo", line);
    EXPECT(cpu_groups_enter(&at, 7, 42, problem, sizeof(problem)));
    EXPECT_TEXT(shown(in("cgroup/cpu/own/schedbridge_n1_job_7/cgroup.procs%s", "")), "42");
    end();
}

// A job of several nodes may have no process on one of them between its steps.
static void a_later_step_leaves_alone_what_is_set_for_the_job(void) {
    static const char *const nodes[] = {"n1", "n2"};
    begin();
    cpu_groups_t at = fake();
    make("cgroup/cpu/cpu.shares", "1024");
    make("proc/42/cgroup", "3:cpu:/\n");
    for (int i = 0; i < 2; i++) {
        char procs[128], quota[128], shares[128];
        const char *format = "cgroup/cpu/schedbridge_%s_job_7/%s";
        snprintf(procs, sizeof(procs), format, nodes[i], "cgroup.procs");
        snprintf(quota, sizeof(quota), format, nodes[i], "cpu.cfs_quota_us");
        snprintf(shares, sizeof(shares), format, nodes[i], "cpu.shares");
        make(procs, i ? "" : "41\n"); // of another step
        make(quota, "20000");
        make(shares, "10");
        at.node = nodes[i];
        EXPECT(cpu_groups_enter(&at, 7, 42, problem, sizeof(problem)));
        EXPECT_TEXT(shown(in("%s", procs)), "42");
        EXPECT_TEXT(shown(in("%s", quota)), "20000");
        EXPECT_TEXT(shown(in("%s", shares)), "10");
    }
    end();
}

// ---------------------------------------------------------------- the kernel

static const cpu_groups_t real = {"/sys/fs/cgroup", "/proc", "sbtest1"};

static bool is_in(const char *pid, const char *group) {
    char path[64], text[4096];
    snprintf(path, sizeof(path), "/proc/%s/cgroup", pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    size_t length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[length] = '\0';
    return strstr(text, group) != NULL;
}

// A process that does nothing until it is in its cgroup, as slurmstepd holds a task back; then each
// of its chains forks, and its parent ends, again and again. The last of each chain says where it
// is.
static pid_t chains_of(const cpu_groups_t *at, uint32_t job, const char *group, int *results) {
    int gate[2], out[2];
    EXPECT(!pipe(gate) && !pipe(out));
    pid_t first = fork();
    if (!first) {
        char byte;
        close(gate[1]);
        (void)!read(gate[0], &byte, 1);
        signal(SIGCHLD, SIG_IGN);
        for (int i = 0; i < CHAINS; i++)
            if (!fork()) {
                for (int n = 0; n < GENERATIONS; n++)
                    if (fork())
                        _exit(0);
                (void)!write(out[1], is_in("self", group) ? "y" : "n", 1);
                _exit(0);
            }
        pause();
    }
    EXPECT(cpu_groups_enter(at, job, first, problem, sizeof(problem)));
    close(out[1]);
    (void)!write(gate[1], "", 1);
    close(gate[0]), close(gate[1]);
    *results = out[0];
    return first;
}

static void ends(pid_t first, int results) {
    char said;
    kill(first, SIGKILL);
    waitpid(first, NULL, 0);
    while (read(results, &said, 1) > 0)
        continue;
    close(results);
}

static const char *folder_of(const char *group) {
    static char path[512];
    char command[600];
    snprintf(command, sizeof(command), "find /sys/fs/cgroup/cpu -name %s", group);
    FILE *found = popen(command, "r");
    path[0] = '\0';
    if (fgets(path, sizeof(path), found))
        path[strcspn(path, "\n")] = '\0';
    pclose(found);
    return path;
}

static void set(const char *group, const char *file, const char *text) {
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", folder_of(group), file);
    FILE *to = fopen(path, "w");
    EXPECT(to && fputs(text, to) >= 0 && !fclose(to));
}

static const char *get(const char *group, const char *file) {
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", folder_of(group), file);
    return shown(path);
}

// A process leaves its cgroup a moment after it has closed its files.
static void released(const char *group) {
    for (int i = 0; i < TRIES && *folder_of(group); i++) {
        cpu_groups_release(&real);
        usleep(1000);
    }
    EXPECT_TEXT(folder_of(group), "");
}

static void every_process_of_two_jobs_starts_in_its_cgroup(void) {
    static const char *const groups[] = {"schedbridge_sbtest1_job_7", "schedbridge_sbtest1_job_8"};
    pid_t firsts[2];
    int results[2];
    for (int i = 0; i < 2; i++)
        firsts[i] = chains_of(&real, 7 + (uint32_t)i, groups[i], &results[i]);
    for (int i = 0; i < 2; i++)
        for (int n = 0; n < CHAINS; n++) {
            char said = '\0';
            EXPECT(read(results[i], &said, 1) == 1);
            EXPECT_NUMBER(said, 'y');
        }
    // The agent limits one and dies; the other ends.
    set(groups[0], "cpu.cfs_quota_us", "10000");
    set(groups[0], "cpu.shares", "10");
    ends(firsts[1], results[1]);
    cpu_groups_t other = {"/sys/fs/cgroup", "/proc", "sbtest"};
    cpu_groups_release(&other); // a job of a node with another name
    EXPECT_TEXT(get(groups[0], "cpu.cfs_quota_us"), "10000");
    released(groups[1]);
    EXPECT_TEXT(get(groups[0], "cpu.cfs_quota_us"), "-1");
    EXPECT_TEXT(get(groups[0], "cpu.shares"), "1024");
    ends(firsts[0], results[0]);
    released(groups[0]);
}

static void a_job_with_the_number_of_an_ended_one_has_its_own_share(void) {
    static const char group[] = "schedbridge_sbtest1_job_9";
    int results;
    pid_t ended = chains_of(&real, 9, group, &results);
    set(group, "cpu.cfs_quota_us", "10000");
    ends(ended, results);
    released(group); // by slurmd, at the end of the job
    pid_t first = chains_of(&real, 9, group, &results);
    EXPECT_TEXT(get(group, "cpu.cfs_quota_us"), "-1");
    ends(first, results);
    released(group);
}

static void steps_that_do_not_overlap_have_the_share_of_their_job(void) {
    static const char group[] = "schedbridge_sbtest1_job_10";
    int results;
    pid_t step = chains_of(&real, 10, group, &results);
    set(group, "cpu.cfs_quota_us", "20000");
    for (int i = 0; i < 2; i++) {
        ends(step, results);
        step = chains_of(&real, 10, group, &results);
        EXPECT_TEXT(get(group, "cpu.cfs_quota_us"), "20000");
    }
    ends(step, results);
    released(group);
}

int main(void) {
    where_slurm_has_a_cgroup_of_the_job_nothing_is_made();
    version_2_needs_none();
    at_the_end_of_a_job_the_others_of_its_node_have_their_full_share();
    also_where_cpu_is_mounted_with_cpuacct();
    what_cannot_be_done_is_said_in_a_line();
    in_a_container_the_cgroup_is_found_below_what_is_mounted();
    a_later_step_leaves_alone_what_is_set_for_the_job();
    if (access("/sys/fs/cgroup/cpu/cpu.shares", W_OK)) {
        printf("%s: no writable hierarchy cpu of cgroup v1 here: its tests are skipped\n",
               __FILE__);
    } else {
        every_process_of_two_jobs_starts_in_its_cgroup();
        a_job_with_the_number_of_an_ended_one_has_its_own_share();
        steps_that_do_not_overlap_have_the_share_of_their_job();
    }
    DONE();
}
