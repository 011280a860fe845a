/* SPDX-License-Identifier: Apache-2.0 */
/* The four routines. Rank 0 alone speaks with the launcher; the others learn by broadcasts.
 *
 * Engine `join`: a window of a grow connects the running processes with a step of new ones; in that
 * of a shrink, those whose node goes leave one by one. Engine `relaunch`: processes park what they
 * keep, all of them end, and the launcher starts the program again; the window then lies in the new
 * processes (grow), or its redistribution in the old ones (shrink).
 */
#define _GNU_SOURCE

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elastic_state.h"

#define ANSWER_MS 60000 /* how long a launcher may take to come back */
#define ACCEPT_S "20"   /* after these the new processes are given up */

struct bridge_state bridge_self = {.comm = MPI_COMM_NULL, .merged = MPI_COMM_NULL};
char bridge_asked[BRIDGE_LINE];

static bridge_link launcher = {.fd = -1};
static char line[BRIDGE_LINE]; /* of rank 0: what it reads */

const char *bridge_env(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

void bridge_complain(const char *text) {
    fprintf(stderr, "bridge_elastic: rank %d: %s\n", bridge_self.rank, text);
}

/* ------------------------------------------------------------------ rank 0 and the launcher */

static void hello(int again) {
    bridge_link_say(&launcher,
                    "{\"op\":\"hello\",\"role\":\"main\",\"size\":%d,\"port\":\"%s\",\"again\":%s,"
                    "\"step\":\"%s\"}",
                    bridge_self.size, bridge_self.port, again ? "true" : "false",
                    bridge_env("SCHEDBRIDGE_ELASTIC_STEP"));
    if (again && bridge_self.outcome[0])
        bridge_link_say(&launcher, "%s", bridge_self.outcome);
}

/* Hears one line, and finds a restarted launcher again. 1: a line; 0: none in time; -1: no
 * launcher. */
static int hear(int timeout_ms, const char *repeat) {
    for (int tries = 0;; tries++) {
        int heard = bridge_link_hear(&launcher, line, timeout_ms);
        if (heard >= 0)
            return heard;
        if (tries > 20 || bridge_link_local(&launcher, bridge_env("SCHEDBRIDGE_ELASTIC")))
            return -1;
        hello(1);
        if (repeat)
            bridge_link_say(&launcher, "%s", repeat);
        if (tries)
            usleep(100000);
    }
}

static void tell(const char *outcome) {
    snprintf(bridge_self.outcome, sizeof bridge_self.outcome, "%s", outcome);
    bridge_link_say(&launcher, "%s", bridge_self.outcome);
}

void bridge_report(const char *op, const char *more) {
    char text[sizeof bridge_self.outcome];
    if (bridge_self.rank)
        return;
    snprintf(text, sizeof text, "{\"op\":\"%s\",\"id\":\"%s\"%s}", op, bridge_self.id, more);
    tell(text);
}

/* Asks for leave to begin, for the launcher may have called it off. */
static int may_begin(void) {
    char question[2 * BRIDGE_TEXT], op[32], id[BRIDGE_TEXT];
    bridge_text(bridge_asked, "id", bridge_self.id, sizeof bridge_self.id);
    snprintf(question, sizeof question, "{\"op\":\"begin\",\"id\":\"%s\"}", bridge_self.id);
    bridge_link_say(&launcher, "%s", question);
    while (hear(ANSWER_MS, question) > 0) {
        bridge_text(line, "op", op, sizeof op);
        bridge_text(line, "id", id, sizeof id);
        if (strcmp(id, bridge_self.id))
            continue;
        if (!strcmp(op, "go"))
            return 1;
        if (!strcmp(op, "no"))
            return 0;
    }
    bridge_report("cancelled", ",\"reason\":\"The launcher did not answer.\"");
    return 0;
}

int bridge_probe_adapt(int *adapt) {
    char op[32], id[BRIDGE_TEXT], wanted[BRIDGE_TEXT];
    *adapt = 0;
    if (bridge_self.engine == RIGID)
        return MPI_SUCCESS;
    if (bridge_self.joining) {
        *adapt = 1;
        return MPI_SUCCESS;
    }
    int length = 0;
    if (bridge_self.rank == 0) {
        while (hear(0, NULL) > 0) {
            bridge_text(line, "op", op, sizeof op);
            if (!strcmp(op, "adapt"))
                strcpy(bridge_asked, line);
            if (!strcmp(op, "withdraw") && !bridge_text(line, "id", id, sizeof id) &&
                !bridge_text(bridge_asked, "id", wanted, sizeof wanted) && !strcmp(id, wanted))
                bridge_asked[0] = 0;
        }
        if (bridge_asked[0] && may_begin())
            length = (int)strlen(bridge_asked) + 1;
        if (!length)
            bridge_asked[0] = 0;
    }
    MPI_Bcast(&length, 1, MPI_INT, 0, bridge_self.comm);
    if (!length)
        return MPI_SUCCESS;
    MPI_Bcast(bridge_asked, length, MPI_CHAR, 0, bridge_self.comm);
    bridge_text(bridge_asked, "id", bridge_self.id, sizeof bridge_self.id);
    *adapt = 1;
    return MPI_SUCCESS;
}

int bridge_need(int min_nodes, int max_nodes) {
    if (bridge_self.rank == 0 && bridge_self.engine != RIGID)
        bridge_link_say(&launcher, "{\"op\":\"bounds\",\"min\":%d,\"max\":%d}", min_nodes,
                        max_nodes);
    return MPI_SUCCESS;
}

/* ------------------------------------------------------------------ the beginning */

/* Errors of these calls are answers: some MPIs have none of them. */
int bridge_connect_all(int accepting, const char *port, MPI_Comm over, MPI_Comm *merged) {
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
    if (!port[0] || bridge_connect_all(accepting, port, MPI_COMM_SELF, &merged))
        return 0;
    MPI_Comm_size(merged, &size);
    MPI_Comm_disconnect(&merged);
    return size == 2;
}

void bridge_leave(void) {
    int done = 0;
    MPI_Finalized(&done);
    if (!done)
        MPI_Finalize();
    exit(0);
}

/* Another start of the program beside the first: can the two be connected, and do tasks that are
 * started together see each other? */
static void self_test(void) {
    if (bridge_self.rank == 0) {
        int joined = 0;
        if (bridge_self.size == atoi(bridge_env("SCHEDBRIDGE_ELASTIC_SIZE")))
            joined = connect_alone(0, bridge_env("SCHEDBRIDGE_ELASTIC_PORT"));
        const char *first = bridge_env("SLURM_PROCID");
        if ((!*first || !strcmp(first, "0")) &&
            !bridge_link_local(&launcher, bridge_env("SCHEDBRIDGE_ELASTIC")))
            bridge_link_say(&launcher, "{\"op\":\"tested\",\"size\":%d,\"joined\":%s}",
                            bridge_self.size, joined ? "true" : "false");
    }
    bridge_leave();
}

/* Rank 0 introduces the program. Returns its engine, or -1 if it is to end at once. */
static int introduce(void) {
    char op[32], engine[32];
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (strcmp(bridge_env("SCHEDBRIDGE_ELASTIC_ENGINE"), "relaunch") == 0 ||
        MPI_Open_port(MPI_INFO_NULL, bridge_self.port) || strpbrk(bridge_self.port, "\"\\\n"))
        bridge_self.port[0] = 0;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (bridge_link_local(&launcher, bridge_env("SCHEDBRIDGE_ELASTIC")))
        return RIGID;
    hello(0);
    while (hear(ANSWER_MS, NULL) > 0) {
        bridge_text(line, "op", op, sizeof op);
        if (!strcmp(op, "end"))
            return -1;
        if (!strcmp(op, "test"))
            connect_alone(1, bridge_self.port);
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
        if (!bridge_link_remote(&launcher, bridge_env("SCHEDBRIDGE_ELASTIC_TCP")) &&
            !bridge_link_say(&launcher, "{\"op\":\"ready\",\"id\":\"%s\",\"token\":\"%s\"}",
                             bridge_env("SCHEDBRIDGE_ELASTIC_ID"),
                             bridge_env("SCHEDBRIDGE_ELASTIC_TOKEN")) &&
            bridge_link_hear(&launcher, line, 5000) > 0)
            return;
        bridge_link_close(&launcher);
        usleep(100000);
    }
    bridge_complain("the launcher cannot be reached");
}

int bridge_init_adapt(int *argc, char ***argv, int *local_status) {
    int done = 0, provided = 0, engine = RIGID;
    MPI_Initialized(&done);
    if (!done) {
        int failed = MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
        if (failed)
            return failed;
        bridge_self.started_mpi = 1;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &bridge_self.comm);
    MPI_Comm_rank(bridge_self.comm, &bridge_self.rank);
    MPI_Comm_size(bridge_self.comm, &bridge_self.size);
    *local_status = BRIDGE_NEW;
    const char *role = bridge_env("SCHEDBRIDGE_ELASTIC_ROLE");
    if (!*bridge_env("SCHEDBRIDGE_ELASTIC"))
        return MPI_SUCCESS;
    if (!strcmp(role, "test"))
        self_test();
    if (!strcmp(role, "joiner")) {
        bridge_self.joining = 1;
        bridge_self.engine = JOIN;
        *local_status = BRIDGE_JOINING;
        MPI_Barrier(bridge_self.comm);
        if (bridge_self.rank == 0)
            say_ready();
        return MPI_SUCCESS;
    }
    if (strcmp(role, "main"))
        return MPI_SUCCESS;
    if (bridge_self.size != atoi(bridge_env("SCHEDBRIDGE_ELASTIC_SIZE"))) {
        /* Tasks that do not see each other: this MPI needs another --mpi. */
        if (!strcmp(bridge_env("SLURM_PROCID"), "0"))
            introduce();
        bridge_leave();
    }
    if (bridge_self.rank == 0)
        engine = introduce();
    MPI_Bcast(&engine, 1, MPI_INT, 0, bridge_self.comm);
    if (engine < 0)
        bridge_leave();
    bridge_self.engine = (enum bridge_engine)engine;
    if (*bridge_env("SCHEDBRIDGE_ELASTIC_PARKED") && bridge_self.engine != RIGID) {
        bridge_self.joining = 1;
        snprintf(bridge_self.parked, sizeof bridge_self.parked, "%s",
                 bridge_env("SCHEDBRIDGE_ELASTIC_PARKED"));
        snprintf(bridge_self.id, sizeof bridge_self.id, "%s", bridge_env("SCHEDBRIDGE_ELASTIC_ID"));
        *local_status = BRIDGE_JOINING;
    }
    return MPI_SUCCESS;
}

MPI_Comm bridge_comm(void) {
    return bridge_self.comm;
}

int bridge_keep(void **block, size_t *bytes) {
    if (bridge_self.blocks_count == BRIDGE_BLOCKS)
        return MPI_ERR_ARG;
    bridge_self.blocks[bridge_self.blocks_count++] = (bridge_block){block, bytes};
    return MPI_SUCCESS;
}

int bridge_share(void *address, size_t bytes) {
    if (bridge_self.shared_count == BRIDGE_BLOCKS)
        return MPI_ERR_ARG;
    bridge_self.shared[bridge_self.shared_count].address = address;
    bridge_self.shared[bridge_self.shared_count++].bytes = bytes;
    return MPI_SUCCESS;
}

int bridge_finalize(void) {
    if (bridge_self.rank == 0 && bridge_self.engine != RIGID && !bridge_self.joining)
        bridge_link_say(&launcher, "{\"op\":\"bye\"}");
    if (bridge_self.comm != MPI_COMM_NULL)
        MPI_Comm_disconnect(&bridge_self.comm);
    bridge_link_close(&launcher);
    return bridge_self.started_mpi ? MPI_Finalize() : MPI_SUCCESS;
}
