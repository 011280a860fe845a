/* SPDX-License-Identifier: Apache-2.0 */
/* The four routines. Rank 0 alone speaks with the launcher; the others learn by broadcasts.
 *
 * Engine `join`: a window of a grow connects the running processes with a step of new ones; in that
 * of a shrink, those whose node goes leave one by one. Engine `relaunch`: processes park what they
 * keep, all of them end, and the launcher starts the program anew; the window then lies in the new
 * processes (grow), or its redistribution in the old ones (shrink).
 */
#define _GNU_SOURCE
#include "bridge_elastic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elastic_internal.h"

#define ANSWER_MS 60000 /* how long a launcher may take to come back */
#define ACCEPT_S "20"   /* after these the new processes are given up */

enum engine { RIGID, JOIN, RELAUNCH };
enum window { NONE, GROW, SHRINK, RETURN, CALLED_OFF };

static struct {
    enum engine engine;
    enum window window;
    int joining, started_mpi, rank, size;
    MPI_Comm comm, merged;
    char port[MPI_MAX_PORT_NAME], id[BRIDGE_TEXT], parked[BRIDGE_TEXT];
    char outcome[4 * BRIDGE_TEXT]; /* the last one, said again to a launcher that was restarted */
    int leaves, leavers, before_size, after_size, *before, *after;
    bridge_block blocks[BRIDGE_BLOCKS];
    struct {
        void *address;
        size_t bytes;
    } shared[BRIDGE_BLOCKS];
    int blocks_count, shared_count;
} self = {.comm = MPI_COMM_NULL, .merged = MPI_COMM_NULL};

static bridge_link launcher = {.fd = -1};
static char line[BRIDGE_LINE];  /* of rank 0: what it reads */
static char asked[BRIDGE_LINE]; /* of all: the change that is asked for */

static const char *env(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

static void complain(const char *text) {
    fprintf(stderr, "bridge_elastic: rank %d: %s\n", self.rank, text);
}

/* ------------------------------------------------------------------ rank 0 and the launcher */

static void hello(int again) {
    bridge_link_say(&launcher,
                    "{\"op\":\"hello\",\"role\":\"main\",\"size\":%d,\"port\":\"%s\",\"again\":%s}",
                    self.size, self.port, again ? "true" : "false");
    if (again && self.outcome[0])
        bridge_link_say(&launcher, "%s", self.outcome);
}

/* Hears one line, and finds a restarted launcher again. 1: a line; 0: none in time; -1: no
 * launcher. */
static int hear(int timeout_ms, const char *repeat) {
    for (int tries = 0;; tries++) {
        int heard = bridge_link_hear(&launcher, line, timeout_ms);
        if (heard >= 0)
            return heard;
        if (tries > 20 || bridge_link_local(&launcher, env("SCHEDBRIDGE_ELASTIC")))
            return -1;
        hello(1);
        if (repeat)
            bridge_link_say(&launcher, "%s", repeat);
        if (tries)
            usleep(100000);
    }
}

static void tell(const char *outcome) {
    snprintf(self.outcome, sizeof self.outcome, "%s", outcome);
    bridge_link_say(&launcher, "%s", self.outcome);
}

static void report(const char *op, const char *more) {
    char text[sizeof self.outcome];
    if (self.rank)
        return;
    snprintf(text, sizeof text, "{\"op\":\"%s\",\"id\":\"%s\"%s}", op, self.id, more);
    tell(text);
}

/* Asks for leave to begin, for the launcher may have called it off. */
static int may_begin(void) {
    char question[2 * BRIDGE_TEXT], op[32], id[BRIDGE_TEXT];
    bridge_text(asked, "id", self.id, sizeof self.id);
    snprintf(question, sizeof question, "{\"op\":\"begin\",\"id\":\"%s\"}", self.id);
    bridge_link_say(&launcher, "%s", question);
    while (hear(ANSWER_MS, question) > 0) {
        bridge_text(line, "op", op, sizeof op);
        bridge_text(line, "id", id, sizeof id);
        if (strcmp(id, self.id))
            continue;
        if (!strcmp(op, "go"))
            return 1;
        if (!strcmp(op, "no"))
            return 0;
    }
    report("cancelled", ",\"reason\":\"The launcher did not answer.\"");
    return 0;
}

int bridge_probe_adapt(int *adapt) {
    char op[32], id[BRIDGE_TEXT], wanted[BRIDGE_TEXT];
    *adapt = 0;
    if (self.engine == RIGID)
        return MPI_SUCCESS;
    if (self.joining) {
        *adapt = 1;
        return MPI_SUCCESS;
    }
    int length = 0;
    if (self.rank == 0) {
        while (hear(0, NULL) > 0) {
            bridge_text(line, "op", op, sizeof op);
            if (!strcmp(op, "adapt"))
                strcpy(asked, line);
            if (!strcmp(op, "withdraw") && !bridge_text(line, "id", id, sizeof id) &&
                !bridge_text(asked, "id", wanted, sizeof wanted) && !strcmp(id, wanted))
                asked[0] = 0;
        }
        if (asked[0] && may_begin())
            length = (int)strlen(asked) + 1;
        if (!length)
            asked[0] = 0;
    }
    MPI_Bcast(&length, 1, MPI_INT, 0, self.comm);
    if (!length)
        return MPI_SUCCESS;
    MPI_Bcast(asked, length, MPI_CHAR, 0, self.comm);
    bridge_text(asked, "id", self.id, sizeof self.id);
    *adapt = 1;
    return MPI_SUCCESS;
}

int bridge_need(int min_nodes, int max_nodes) {
    if (self.rank == 0 && self.engine != RIGID)
        bridge_link_say(&launcher, "{\"op\":\"bounds\",\"min\":%d,\"max\":%d}", min_nodes,
                        max_nodes);
    return MPI_SUCCESS;
}

/* ------------------------------------------------------------------ the beginning */

/* Errors of these calls are answers: some MPIs have none of them. */
static int connect_all(int accepting, const char *port, MPI_Comm over, MPI_Comm *merged) {
    MPI_Comm inter = MPI_COMM_NULL;
    MPI_Info info;
    int failed;
    MPI_Comm_set_errhandler(over, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (accepting) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "timeout", ACCEPT_S);
        failed = MPI_Comm_accept((char *)port, info, 0, over, &inter);
        MPI_Info_free(&info);
    } else {
        failed = MPI_Comm_connect((char *)port, MPI_INFO_NULL, 0, over, &inter);
    }
    if (!failed)
        failed = MPI_Intercomm_merge(inter, !accepting, merged);
    if (inter != MPI_COMM_NULL)
        MPI_Comm_disconnect(&inter);
    MPI_Comm_set_errhandler(over, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    return failed;
}

static int connect_alone(int accepting, const char *port) {
    MPI_Comm merged = MPI_COMM_NULL;
    int size = 0;
    if (!port[0] || connect_all(accepting, port, MPI_COMM_SELF, &merged))
        return 0;
    MPI_Comm_size(merged, &size);
    MPI_Comm_disconnect(&merged);
    return size == 2;
}

static void leave(void) {
    int done = 0;
    MPI_Finalized(&done);
    if (!done)
        MPI_Finalize();
    exit(0);
}

/* Another start of the program beside the first: can the two be connected, and do tasks that are
 * started together see each other? */
static void self_test(void) {
    if (self.rank == 0) {
        int joined = 0;
        if (self.size == atoi(env("SCHEDBRIDGE_ELASTIC_SIZE")))
            joined = connect_alone(0, env("SCHEDBRIDGE_ELASTIC_PORT"));
        const char *first = env("SLURM_PROCID");
        if ((!*first || !strcmp(first, "0")) &&
            !bridge_link_local(&launcher, env("SCHEDBRIDGE_ELASTIC")))
            bridge_link_say(&launcher, "{\"op\":\"tested\",\"size\":%d,\"joined\":%s}", self.size,
                            joined ? "true" : "false");
    }
    leave();
}

/* Rank 0 introduces the program. Returns its engine, or -1 if it is to end at once. */
static int introduce(void) {
    char op[32], engine[32];
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (strcmp(env("SCHEDBRIDGE_ELASTIC_ENGINE"), "relaunch") == 0 ||
        MPI_Open_port(MPI_INFO_NULL, self.port) || strpbrk(self.port, "\"\\\n"))
        self.port[0] = 0;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (bridge_link_local(&launcher, env("SCHEDBRIDGE_ELASTIC")))
        return RIGID;
    hello(0);
    while (hear(ANSWER_MS, NULL) > 0) {
        bridge_text(line, "op", op, sizeof op);
        if (!strcmp(op, "end"))
            return -1;
        if (!strcmp(op, "test"))
            connect_alone(1, self.port);
        if (!strcmp(op, "start")) {
            bridge_text(line, "engine", engine, sizeof engine);
            return !strcmp(engine, "join") ? JOIN : RELAUNCH;
        }
    }
    return RIGID;
}

/* The launcher answers when it has written down that these processes are there. */
static void say_ready(void) {
    for (int tries = 0; tries < 20; tries++) {
        if (!bridge_link_remote(&launcher, env("SCHEDBRIDGE_ELASTIC_TCP")) &&
            !bridge_link_say(&launcher, "{\"op\":\"ready\",\"id\":\"%s\",\"token\":\"%s\"}",
                             env("SCHEDBRIDGE_ELASTIC_ID"), env("SCHEDBRIDGE_ELASTIC_TOKEN")) &&
            bridge_link_hear(&launcher, line, 5000) > 0)
            return;
        bridge_link_close(&launcher);
        usleep(100000);
    }
    complain("the launcher cannot be reached");
}

int bridge_init_adapt(int *argc, char ***argv, int *local_status) {
    int done = 0, provided = 0, engine = RIGID;
    MPI_Initialized(&done);
    if (!done) {
        int failed = MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
        if (failed)
            return failed;
        self.started_mpi = 1;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &self.comm);
    MPI_Comm_rank(self.comm, &self.rank);
    MPI_Comm_size(self.comm, &self.size);
    *local_status = BRIDGE_NEW;
    const char *role = env("SCHEDBRIDGE_ELASTIC_ROLE");
    if (!*env("SCHEDBRIDGE_ELASTIC"))
        return MPI_SUCCESS;
    if (!strcmp(role, "test"))
        self_test();
    if (!strcmp(role, "joiner")) {
        self.joining = 1;
        self.engine = JOIN;
        *local_status = BRIDGE_JOINING;
        MPI_Barrier(self.comm);
        if (self.rank == 0)
            say_ready();
        return MPI_SUCCESS;
    }
    if (strcmp(role, "main"))
        return MPI_SUCCESS;
    if (self.size != atoi(env("SCHEDBRIDGE_ELASTIC_SIZE"))) {
        /* Tasks that do not see each other: this MPI needs another --mpi. */
        if (!strcmp(env("SLURM_PROCID"), "0"))
            introduce();
        leave();
    }
    if (self.rank == 0)
        engine = introduce();
    MPI_Bcast(&engine, 1, MPI_INT, 0, self.comm);
    if (engine < 0)
        leave();
    self.engine = (enum engine)engine;
    if (*env("SCHEDBRIDGE_ELASTIC_PARKED") && self.engine != RIGID) {
        self.joining = 1;
        snprintf(self.parked, sizeof self.parked, "%s", env("SCHEDBRIDGE_ELASTIC_PARKED"));
        snprintf(self.id, sizeof self.id, "%s", env("SCHEDBRIDGE_ELASTIC_ID"));
        *local_status = BRIDGE_JOINING;
    }
    return MPI_SUCCESS;
}

MPI_Comm bridge_comm(void) {
    return self.comm;
}

int bridge_keep(void **block, size_t *bytes) {
    if (self.blocks_count == BRIDGE_BLOCKS)
        return MPI_ERR_ARG;
    self.blocks[self.blocks_count++] = (bridge_block){block, bytes};
    return MPI_SUCCESS;
}

int bridge_share(void *address, size_t bytes) {
    if (self.shared_count == BRIDGE_BLOCKS)
        return MPI_ERR_ARG;
    self.shared[self.shared_count].address = address;
    self.shared[self.shared_count++].bytes = bytes;
    return MPI_SUCCESS;
}

/* ------------------------------------------------------------------ the window */

static size_t shared_bytes(void) {
    size_t bytes = 0;
    for (int i = 0; i < self.shared_count; i++)
        bytes += self.shared[i].bytes;
    return bytes;
}

static void shared_copy(char *all, int out) {
    for (int i = 0; i < self.shared_count; all += self.shared[i++].bytes)
        out ? memcpy(all, self.shared[i].address, self.shared[i].bytes)
            : memcpy(self.shared[i].address, all, self.shared[i].bytes);
}

static void *room(size_t bytes) {
    void *got = calloc(1, bytes ? bytes : 1);
    if (!got) {
        complain("no memory");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return got;
}

/* Phase and shared variables of `root` reach all of `comm`. */
static void spread(int root, int *phase, MPI_Comm comm) {
    size_t bytes = shared_bytes();
    char *all = room(bytes);
    shared_copy(all, 1);
    MPI_Bcast(phase, 1, MPI_INT, root, comm);
    MPI_Bcast(all, (int)bytes, MPI_BYTE, root, comm);
    shared_copy(all, 0);
    free(all);
}

static int park(int rank, int size, int phase) {
    size_t bytes = shared_bytes();
    char *all = room(bytes);
    bridge_slab slab = {.rank = rank, .size = size, .phase = phase, .blocks = self.blocks_count};
    slab.shared = bytes;
    shared_copy(all, 1);
    int failed = bridge_park(self.parked, &slab, all, self.blocks);
    free(all);
    return failed;
}

static void maps(int before, int after) {
    free(self.before);
    free(self.after);
    self.before_size = before;
    self.after_size = after;
    self.before = room(sizeof(int) * (size_t)before);
    self.after = room(sizeof(int) * (size_t)after);
    for (int i = 0; i < before; i++)
        self.before[i] = i;
    for (int i = 0; i < after; i++)
        self.after[i] = i;
}

static void called_off(const char *why) {
    char more[BRIDGE_TEXT];
    snprintf(more, sizeof more, ",\"reason\":\"%s\"", why);
    report("cancelled", more);
    self.window = CALLED_OFF;
    self.merged = self.comm;
    maps(self.size, self.size);
}

static void begin_join(int *phase) {
    const char *port = self.joining ? env("SCHEDBRIDGE_ELASTIC_PORT") : self.port;
    int was = self.joining ? 0 : self.size;
    self.window = GROW;
    if (connect_all(!self.joining, port, self.comm, &self.merged)) {
        if (self.joining)
            leave();
        called_off("The new processes did not connect.");
        return;
    }
    MPI_Bcast(&was, 1, MPI_INT, 0, self.merged);
    int all = 0;
    MPI_Comm_size(self.merged, &all);
    maps(was, all);
    spread(0, phase, self.merged);
}

static void begin_leaving(void) {
    int *leaving = room(sizeof(int) * (size_t)self.size), stay = 0;
    size_t bytes = 0, most = 0;
    self.leaves = bridge_listed(asked, "remove", bridge_node());
    MPI_Allgather(&self.leaves, 1, MPI_INT, leaving, 1, MPI_INT, self.comm);
    self.window = SHRINK;
    self.merged = self.comm;
    maps(self.size, self.size);
    for (int i = 0; i < self.size; i++)
        if (!leaving[i])
            self.after[stay++] = i;
    free(leaving);
    self.after_size = stay;
    self.leavers = self.size - stay;
    if (self.engine == JOIN)
        return;
    /* Whoever stays will park its part of all data. */
    for (int i = 0; i < self.blocks_count; i++)
        bytes += *self.blocks[i].bytes;
    MPI_Allreduce(&bytes, &most, sizeof bytes, MPI_BYTE, MPI_BOR,
                  self.comm); /* at least the most */
    int ok = self.leaves || bridge_room(self.parked, most * 4 * (size_t)self.size / (size_t)stay);
    MPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, self.comm);
    if (!ok)
        called_off("There is no room to keep the data in memory.");
}

static void end_parked(void) {
    MPI_Barrier(self.comm);
    report("parked", "");
    leave();
}

static void begin_parking(int phase) {
    int failed = park(self.rank, self.size, phase), any = 0;
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MIN, self.comm);
    if (!any)
        end_parked();
    bridge_drop(self.parked);
    called_off("The data could not be kept in memory.");
}

/* After a relaunch: those that find data are the processes of before. */
static void begin_returned(int *phase) {
    bridge_slab slab = {.blocks = self.blocks_count, .shared = shared_bytes()};
    char *all = room(slab.shared);
    int found = bridge_unpark(self.parked, &slab, all, self.blocks);
    int mine[2] = {found > 0 ? slab.rank : -1, found > 0 ? slab.size : 0};
    int *each = room(sizeof mine * (size_t)self.size), parts = 0, size = 0;
    if (found > 0) {
        shared_copy(all, 0);
        *phase = slab.phase;
    }
    free(all);
    MPI_Allgather(mine, 2, MPI_INT, each, 2, MPI_INT, self.comm);
    for (int i = 0; i < self.size; i++)
        size = each[2 * i + 1] > size ? each[2 * i + 1] : size;
    maps(size, self.size);
    for (int i = 0; i < self.size; i++)
        if (each[2 * i] >= 0 && each[2 * i] < size)
            self.before[each[2 * i]] = i, parts++;
    free(each);
    if (found < 0 || parts != size || size == 0) {
        complain("data of before the relaunch is missing");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    self.window = RETURN;
    self.merged = self.comm;
    spread(self.before[0], phase, self.comm);
}

int bridge_adapt_begin(int *phase, bridge_window *window) {
    char kind[32] = "";
    bridge_text(asked, "kind", kind, sizeof kind);
    if (!self.joining && self.engine == RELAUNCH)
        bridge_text(asked, "park", self.parked, sizeof self.parked);
    if (self.engine == RIGID || (!self.joining && !asked[0])) {
        self.window = CALLED_OFF;
        self.merged = self.comm;
        maps(self.size, self.size);
    } else if (self.joining && self.engine == RELAUNCH) {
        begin_returned(phase);
    } else if (self.joining || (self.engine == JOIN && !strcmp(kind, "grow"))) {
        begin_join(phase);
    } else if (!strcmp(kind, "shrink")) {
        begin_leaving();
    } else {
        begin_parking(*phase);
    }
    asked[0] = 0;
    *window =
        (bridge_window){self.merged, self.before_size, self.after_size, self.before, self.after};
    return MPI_SUCCESS;
}

/* The launcher sees by this connection when the process is gone. */
static void say_leaving(void) {
    bridge_link link = {.fd = -1};
    if (!bridge_link_remote(&link, env("SCHEDBRIDGE_ELASTIC_TCP")))
        bridge_link_say(&link, "{\"op\":\"leaving\",\"id\":\"%s\",\"token\":\"%s\"}", self.id,
                        env("SCHEDBRIDGE_ELASTIC_TOKEN"));
}

static void commit_leaving(void) {
    MPI_Comm old = self.comm;
    char more[64];
    if (self.engine == RELAUNCH) {
        int rank = 0;
        while (rank < self.after_size && self.after[rank] != self.rank)
            rank++;
        int failed = self.leaves ? 0 : park(rank, self.after_size, 0);
        if (failed) {
            complain("the data could not be kept in memory");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        end_parked();
    }
    if (self.leaves)
        say_leaving();
    MPI_Comm_split(old, self.leaves ? MPI_UNDEFINED : 0, self.rank, &self.comm);
    MPI_Comm_disconnect(&old);
    if (self.leaves)
        leave();
    snprintf(more, sizeof more, ",\"left\":%d", self.leavers);
    report("done", more);
}

int bridge_adapt_commit(void) {
    switch (self.window) {
    case GROW:
        MPI_Comm_disconnect(&self.comm);
        self.comm = self.merged;
        break;
    case SHRINK:
        commit_leaving();
        break;
    case RETURN:
        MPI_Barrier(self.comm);
        bridge_drop(self.parked);
        break;
    default:
        break;
    }
    MPI_Comm_rank(self.comm, &self.rank);
    MPI_Comm_size(self.comm, &self.size);
    if (self.window == GROW || self.window == RETURN)
        report("done", ",\"left\":0");
    self.window = NONE;
    self.joining = 0;
    self.merged = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

int bridge_finalize(void) {
    if (self.rank == 0 && self.engine != RIGID && !self.joining)
        bridge_link_say(&launcher, "{\"op\":\"bye\"}");
    if (self.comm != MPI_COMM_NULL)
        MPI_Comm_disconnect(&self.comm);
    bridge_link_close(&launcher);
    return self.started_mpi ? MPI_Finalize() : MPI_SUCCESS;
}
