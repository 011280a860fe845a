/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cluster benchmarks do to slurmctld, through libslurm, as a user's programs would.
 *
 *   probe submit < JOBS
 *       submits every job at its instant; prints "job ID CALLED_NS RETURNED_NS" per job
 *   probe deep PARTITION BOUND_S SHORTEST_S SEED QUERY_HZ SUBMIT_HZ CANCEL_HZ < JOBS
 *       takes the partition down, submits as above, takes it up again, then for at most BOUND_S and
 *       at least SHORTEST_S seconds watches how many of those jobs have an announced start while
 *       three open-loop streams ask for single jobs, submit held ones and cancel pending ones; as
 *       root, into the default partition; prints, besides the "job" lines,
 *         before ANNOUNCED PENDING          while the partition is down
 *         up NS                             when the call that takes it up was begun
 *         seen NS ANNOUNCED PENDING MS      one look at the queue, begun at NS, taking MS
 *         took KIND SCHEDULED_NS US ERRNO   one call of a stream; US from its scheduled instant
 *         plan ID NODES START_S LIMIT_MIN STATE   every pending or running job at the end
 *
 * A line of JOBS: AT_US NODES LIMIT_MIN COMMAND..., AT_US counted from the start of the program (a
 * job whose instant has passed is submitted at once). All jobs take whole nodes.
 *
 * All instants are CLOCK_REALTIME, so that they compare with slurmctld's log on the same machine.
 * A stream's calls are spread over one slot each at a random place in it, and late calls count from
 * the instant they should have begun: a controller that answers nobody for a second is charged for
 * every call of that second.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#define NS_PER_S 1000000000LL
#define WORKERS 8        /* calls of one stream that may be under way together */
#define MAX_CALLS 100000 /* of one stream; more than any run asks for */

/* Announcements may follow the plan at some distance; what is announced is judged after it. */
#define SETTLED_S 15

static atomic_bool stopped;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void sleep_until(int64_t when_ns) {
    struct timespec t = {when_ns / NS_PER_S, when_ns % NS_PER_S};
    while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

/* Submits one batch job; returns its id, or 0 with errno set by libslurm. */
static uint32_t submit(uint32_t nodes, uint32_t limit_min, const char *command, bool held) {
    char script[1024];
    char *environment[] = {"PATH=/usr/bin:/bin"};
    job_desc_msg_t job;
    submit_response_msg_t *answer = NULL;
    uint32_t job_id = 0;

    snprintf(script, sizeof(script), "#!/bin/sh\n%s\n", command);
    slurm_init_job_desc_msg(&job);
    job.name = "probe";
    job.user_id = getuid();
    job.group_id = getgid();
    job.work_dir = "/";
    job.script = script;
    job.std_in = job.std_out = job.std_err = "/dev/null";
    job.environment = environment;
    job.env_size = 1;
    job.min_nodes = job.max_nodes = nodes;
    job.num_tasks = job.min_cpus = nodes;
    job.shared = JOB_SHARED_NONE;
    job.time_limit = limit_min;
    if (held)
        job.priority = 0;
    if (slurm_submit_batch_job(&job, &answer) == SLURM_SUCCESS && answer)
        job_id = answer->job_id;
    if (answer)
        slurm_free_submit_response_response_msg(answer);
    return job_id;
}

/* Ids of the submitted jobs, in order; the deep queue's streams pick from them. */
static uint32_t *ids;
static size_t n_ids;

static int submit_all(void) {
    char *line = NULL;
    size_t room = 0, id_room = 0;
    int64_t begin_ns = now_ns();

    while (getline(&line, &room, stdin) > 0) {
        int64_t at_us, called_ns;
        uint32_t nodes, limit_min, job_id;
        int command = 0;

        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%" SCNd64 " %" SCNu32 " %" SCNu32 " %n", &at_us, &nodes, &limit_min,
                   &command) != 3 ||
            !command) {
            fprintf(stderr, "probe: not AT_US NODES LIMIT_MIN COMMAND: %s\n", line);
            return 2;
        }
        sleep_until(begin_ns + at_us * 1000);
        called_ns = now_ns();
        if (!(job_id = submit(nodes, limit_min, line + command, false))) {
            fprintf(stderr, "probe: job %zu refused: %s\n", n_ids + 1, slurm_strerror(errno));
            return 1;
        }
        printf("job %" PRIu32 " %" PRId64 " %" PRId64 "\n", job_id, called_ns, now_ns());
        if (n_ids == id_room) {
            id_room = id_room ? 2 * id_room : 1024;
            if (!(ids = realloc(ids, id_room * sizeof(*ids))))
                return 1;
        }
        ids[n_ids++] = job_id;
    }
    free(line);
    return 0;
}

/* ------------------------------------------------------------------ open-loop streams */

typedef struct {
    const char *kind;
    int (*call)(uint32_t job_id);
    int n_calls;
    int64_t *scheduled_ns;
    uint32_t *targets;
    int64_t *latency_ns; /* -1: never made, because the measurement ended first */
    int *error;
    atomic_int next;
    pthread_t workers[WORKERS];
} stream_t;

static int call_query(uint32_t job_id) {
    job_info_msg_t *answer = NULL;
    int rc = slurm_load_job(&answer, job_id, 0);
    int error = rc ? errno : 0;
    if (answer)
        slurm_free_job_info_msg(answer);
    /* A cancelled job that was forgotten meanwhile is an answer, too. */
    return error == ESLURM_INVALID_JOB_ID ? 0 : error;
}

static int call_submit(uint32_t job_id) {
    (void)job_id;
    return submit(1, 10, "true", true) ? 0 : errno;
}

static int call_cancel(uint32_t job_id) {
    int rc = slurm_kill_job(job_id, SIGKILL, 0);
    int error = rc ? errno : 0;
    return error == ESLURM_ALREADY_DONE || error == ESLURM_INVALID_JOB_ID ? 0 : error;
}

static void *work(void *argument) {
    stream_t *stream = argument;
    int i;

    while ((i = atomic_fetch_add(&stream->next, 1)) < stream->n_calls) {
        int64_t when_ns = stream->scheduled_ns[i], nap_ns;

        // In short naps, so that the end of the measurement is noticed.
        while ((nap_ns = now_ns() + NS_PER_S / 10) < when_ns && !atomic_load(&stopped))
            sleep_until(nap_ns);
        if (atomic_load(&stopped))
            break;
        sleep_until(when_ns);
        stream->error[i] = stream->call(stream->targets[i]);
        stream->latency_ns[i] = now_ns() - stream->scheduled_ns[i];
    }
    return NULL;
}

static void start(stream_t *stream, double hz, double seconds, unsigned short random[3]) {
    double slot_ns = hz > 0 ? NS_PER_S / hz : 0;
    int64_t begin_ns = now_ns();

    stream->n_calls = hz * seconds < MAX_CALLS ? (int)(hz * seconds) : MAX_CALLS;
    stream->scheduled_ns = calloc(stream->n_calls + 1, sizeof(int64_t));
    stream->latency_ns = calloc(stream->n_calls + 1, sizeof(int64_t));
    stream->targets = calloc(stream->n_calls + 1, sizeof(uint32_t));
    stream->error = calloc(stream->n_calls + 1, sizeof(int));
    if (!stream->scheduled_ns || !stream->latency_ns || !stream->targets || !stream->error)
        abort();
    for (int i = 0; i < stream->n_calls; i++) {
        stream->scheduled_ns[i] = begin_ns + (int64_t)((i + erand48(random)) * slot_ns);
        stream->targets[i] = ids[(size_t)(erand48(random) * n_ids)];
        stream->latency_ns[i] = -1;
    }
    for (int w = 0; w < WORKERS; w++)
        if (pthread_create(&stream->workers[w], NULL, work, stream))
            abort();
}

/* Prints the stream's calls; one that was due at `end_ns` but not yet begun, because all workers
 * were waiting for answers, counts with the time it had waited until then. */
static void finish(stream_t *stream, int64_t end_ns) {
    for (int w = 0; w < WORKERS; w++)
        pthread_join(stream->workers[w], NULL);
    for (int i = 0; i < stream->n_calls; i++) {
        if (stream->latency_ns[i] < 0 && stream->scheduled_ns[i] < end_ns)
            stream->latency_ns[i] = end_ns - stream->scheduled_ns[i];
        if (stream->latency_ns[i] >= 0)
            printf("took %s %" PRId64 " %" PRId64 " %d\n", stream->kind, stream->scheduled_ns[i],
                   stream->latency_ns[i] / 1000, stream->error[i]);
    }
}

/* ------------------------------------------------------------------ the queue, seen from outside
 */

/* Counts the submitted jobs that still wait and those of them with an announced start; with `print`
 * also lists what waits and runs. Returns 0, or an errno of libslurm. */
static int look(bool print, uint32_t *announced, uint32_t *pending) {
    job_info_msg_t *all = NULL;

    if (slurm_load_jobs(0, &all, SHOW_ALL))
        return errno;
    *announced = *pending = 0;
    for (uint32_t i = 0; i < all->record_count; i++) {
        slurm_job_info_t *job = &all->job_array[i];
        uint32_t state = job->job_state & JOB_STATE_BASE;
        bool ours = job->job_id >= ids[0] && job->job_id <= ids[n_ids - 1];

        if (state == JOB_PENDING && ours) {
            ++*pending;
            *announced += job->start_time > 0;
        }
        if (print && ((state == JOB_PENDING && ours) || state == JOB_RUNNING))
            printf("plan %" PRIu32 " %" PRIu32 " %" PRId64 " %" PRIu32 " %s\n", job->job_id,
                   job->num_nodes, (int64_t)job->start_time, job->time_limit,
                   state == JOB_PENDING ? "pending" : "running");
    }
    slurm_free_job_info_msg(all);
    return 0;
}

/* Looks ever more seldom, because each look makes slurmctld copy the whole queue. */
static void watch(double bound_s, double shortest_s) {
    int64_t begin_ns = now_ns(), pause_ns = NS_PER_S / 10;
    int64_t longest_ns = n_ids > 2000 ? 5 * NS_PER_S : NS_PER_S;
    uint32_t announced, pending;
    bool complete = false;

    while (!complete && now_ns() < begin_ns + (int64_t)(bound_s * NS_PER_S)) {
        int64_t look_ns = now_ns();
        int error = look(false, &announced, &pending);

        if (error) {
            fprintf(stderr, "probe: queue not shown: %s\n", slurm_strerror(error));
        } else {
            printf("seen %" PRId64 " %" PRIu32 " %" PRIu32 " %.1f\n", look_ns, announced, pending,
                   (now_ns() - look_ns) / 1e6);
            fflush(stdout);
            complete = announced == pending;
        }
        if (!complete)
            sleep_until(now_ns() + pause_ns);
        pause_ns = pause_ns * 2 < longest_ns ? pause_ns * 2 : longest_ns;
    }
    sleep_until(begin_ns + (int64_t)(shortest_s * NS_PER_S));
}

/* Whether jobs of a partition may start; they can be submitted in any case. */
static int set_partition(char *name, uint16_t state) {
    update_part_msg_t partition;

    slurm_init_part_desc_msg(&partition);
    partition.name = name;
    partition.state_up = state;
    if (!slurm_update_partition(&partition))
        return 0;
    fprintf(stderr, "probe: partition %s: %s\n", name, slurm_strerror(errno));
    return 1;
}

static int deep(char **argv) {
    char *partition = argv[0];
    double bound_s = atof(argv[1]), shortest_s = atof(argv[2]);
    unsigned short random[3] = {(unsigned short)atoi(argv[3]), 0x5bd1, 0xe995};
    stream_t query = {.kind = "query", .call = call_query};
    stream_t submission = {.kind = "submit", .call = call_submit};
    stream_t cancellation = {.kind = "cancel", .call = call_cancel};
    uint32_t announced, pending;
    double longest_s = bound_s > shortest_s ? bound_s : shortest_s;
    int64_t end_ns;
    int rc = set_partition(partition, PARTITION_DOWN);

    if (rc || (rc = submit_all()))
        return rc;
    if (!n_ids || look(false, &announced, &pending))
        return 1;
    printf("before %" PRIu32 " %" PRIu32 "\nup %" PRId64 "\n", announced, pending, now_ns());
    if (set_partition(partition, PARTITION_UP))
        return 1;
    start(&query, atof(argv[4]), longest_s, random);
    start(&submission, atof(argv[5]), longest_s, random);
    start(&cancellation, atof(argv[6]), longest_s, random);
    watch(bound_s, shortest_s);
    end_ns = now_ns();
    atomic_store(&stopped, true);
    finish(&query, end_ns);
    finish(&submission, end_ns);
    finish(&cancellation, end_ns);
    sleep(SETTLED_S);
    return look(true, &announced, &pending) ? 1 : 0;
}

int main(int argc, char **argv) {
    slurm_init(NULL);
    if (argc == 2 && !strcmp(argv[1], "submit"))
        return submit_all();
    if (argc == 9 && !strcmp(argv[1], "deep"))
        return deep(argv + 2);
    fprintf(stderr, "usage: probe submit < JOBS | probe deep PARTITION BOUND_S SHORTEST_S SEED "
                    "QUERY_HZ SUBMIT_HZ CANCEL_HZ < JOBS\n");
    return 2;
}
