/* SPDX-License-Identifier: Apache-2.0 */
/* The window: who takes part, what reaches new processes, and who leaves. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elastic_state.h"

static size_t shared_bytes(void) {
    size_t bytes = 0;
    for (int i = 0; i < bridge_self.shared_count; i++)
        bytes += bridge_self.shared[i].bytes;
    return bytes;
}

static void shared_copy(char *all, int out) {
    for (int i = 0; i < bridge_self.shared_count; all += bridge_self.shared[i++].bytes)
        out ? memcpy(all, bridge_self.shared[i].address, bridge_self.shared[i].bytes)
            : memcpy(bridge_self.shared[i].address, all, bridge_self.shared[i].bytes);
}

static void *room(size_t bytes) {
    void *got = calloc(1, bytes ? bytes : 1);
    if (!got) {
        bridge_complain("no memory");
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
    bridge_slab slab = {
        .rank = rank, .size = size, .phase = phase, .blocks = bridge_self.blocks_count};
    slab.shared = bytes;
    shared_copy(all, 1);
    int failed = bridge_park(bridge_self.parked, &slab, all, bridge_self.blocks);
    free(all);
    return failed;
}

static void maps(int before, int after) {
    free(bridge_self.before);
    free(bridge_self.after);
    bridge_self.before_size = before;
    bridge_self.after_size = after;
    bridge_self.before = room(sizeof(int) * (size_t)before);
    bridge_self.after = room(sizeof(int) * (size_t)after);
    for (int i = 0; i < before; i++)
        bridge_self.before[i] = i;
    for (int i = 0; i < after; i++)
        bridge_self.after[i] = i;
}

static void called_off(const char *why) {
    char more[BRIDGE_TEXT];
    snprintf(more, sizeof more, ",\"reason\":\"%s\"", why);
    bridge_report("cancelled", more);
    bridge_self.window = CALLED_OFF;
    bridge_self.merged = bridge_self.comm;
    maps(bridge_self.size, bridge_self.size);
}

static void begin_join(int *phase) {
    const char *port =
        bridge_self.joining ? bridge_env("SCHEDBRIDGE_ELASTIC_PORT") : bridge_self.port;
    int was = bridge_self.joining ? 0 : bridge_self.size;
    bridge_self.window = GROW;
    if (bridge_connect_all(!bridge_self.joining, port, bridge_self.comm, &bridge_self.merged)) {
        if (bridge_self.joining)
            bridge_leave();
        called_off("The new processes did not connect.");
        return;
    }
    MPI_Bcast(&was, 1, MPI_INT, 0, bridge_self.merged);
    int all = 0;
    MPI_Comm_size(bridge_self.merged, &all);
    maps(was, all);
    spread(0, phase, bridge_self.merged);
}

static void begin_leaving(int phase) {
    int *leaving = room(sizeof(int) * (size_t)bridge_self.size), stay = 0;
    uint64_t bytes = 0;
    bridge_self.leaves = bridge_listed(bridge_asked, "remove", bridge_node());
    MPI_Allgather(&bridge_self.leaves, 1, MPI_INT, leaving, 1, MPI_INT, bridge_self.comm);
    bridge_self.window = SHRINK;
    bridge_self.phase = phase;
    bridge_self.merged = bridge_self.comm;
    maps(bridge_self.size, bridge_self.size);
    for (int i = 0; i < bridge_self.size; i++)
        if (!leaving[i])
            bridge_self.after[stay++] = i;
    free(leaving);
    bridge_self.after_size = stay;
    bridge_self.leavers = bridge_self.size - stay;
    if (bridge_self.engine == JOIN)
        return;
    /* Whoever stays will park its part of all data, and so will the others on its node. */
    for (int i = 0; i < bridge_self.blocks_count; i++)
        bytes += *bridge_self.blocks[i].bytes;
    MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_UINT64_T, MPI_SUM, bridge_self.comm);
    int tasks = atoi(bridge_env("SLURM_STEP_TASKS_PER_NODE"));
    bytes = bytes / (uint64_t)stay * (uint64_t)(tasks > 1 ? tasks : 1);
    int ok = bridge_self.leaves || bridge_room(bridge_self.parked, bytes + bytes / 8);
    MPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, bridge_self.comm);
    if (!ok)
        called_off("There is no room to keep the data in memory.");
}

static void end_parked(void) {
    MPI_Barrier(bridge_self.comm);
    bridge_report("parked", "");
    bridge_leave();
}

static void begin_parking(int phase) {
    int failed = park(bridge_self.rank, bridge_self.size, phase), any = 0;
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MIN, bridge_self.comm);
    if (!any)
        end_parked();
    bridge_drop(bridge_self.parked);
    called_off("The data could not be kept in memory.");
}

/* After a relaunch: those that find data are the processes of before. */
static void begin_returned(int *phase) {
    bridge_slab slab = {.blocks = bridge_self.blocks_count, .shared = shared_bytes()};
    char *all = room(slab.shared);
    int found = bridge_unpark(bridge_self.parked, &slab, all, bridge_self.blocks);
    int mine[2] = {found > 0 ? slab.rank : -1, found > 0 ? slab.size : 0};
    int *each = room(sizeof mine * (size_t)bridge_self.size), parts = 0, size = 0;
    if (found > 0) {
        shared_copy(all, 0);
        *phase = slab.phase;
    }
    free(all);
    MPI_Allgather(mine, 2, MPI_INT, each, 2, MPI_INT, bridge_self.comm);
    for (int i = 0; i < bridge_self.size; i++)
        size = each[2 * i + 1] > size ? each[2 * i + 1] : size;
    maps(size, bridge_self.size);
    for (int i = 0; i < bridge_self.size; i++)
        if (each[2 * i] >= 0 && each[2 * i] < size)
            bridge_self.before[each[2 * i]] = i, parts++;
    free(each);
    if (found < 0 || parts != size || size == 0) {
        bridge_complain("data of before the relaunch is missing");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    bridge_self.window = RETURN;
    bridge_self.merged = bridge_self.comm;
    spread(bridge_self.before[0], phase, bridge_self.comm);
}

int bridge_adapt_begin(int *phase, bridge_window *window) {
    char kind[32] = "";
    bridge_text(bridge_asked, "kind", kind, sizeof kind);
    if (!bridge_self.joining && bridge_self.engine == RELAUNCH)
        bridge_text(bridge_asked, "park", bridge_self.parked, sizeof bridge_self.parked);
    if (bridge_self.engine == RIGID || (!bridge_self.joining && !bridge_asked[0])) {
        bridge_self.window = CALLED_OFF;
        bridge_self.merged = bridge_self.comm;
        maps(bridge_self.size, bridge_self.size);
    } else if (bridge_self.joining && bridge_self.engine == RELAUNCH) {
        begin_returned(phase);
    } else if (bridge_self.joining || (bridge_self.engine == JOIN && !strcmp(kind, "grow"))) {
        begin_join(phase);
    } else if (!strcmp(kind, "shrink")) {
        begin_leaving(*phase);
    } else {
        begin_parking(*phase);
    }
    bridge_asked[0] = 0;
    *window = (bridge_window){bridge_self.merged, bridge_self.before_size, bridge_self.after_size,
                              bridge_self.before, bridge_self.after};
    return MPI_SUCCESS;
}

/* The launcher sees by this connection when the process is gone. */
static void say_leaving(void) {
    bridge_link link = {.fd = -1};
    if (!bridge_link_remote(&link, bridge_env("SCHEDBRIDGE_ELASTIC_TCP")))
        bridge_link_say(&link, "{\"op\":\"leaving\",\"id\":\"%s\",\"token\":\"%s\"}",
                        bridge_self.id, bridge_env("SCHEDBRIDGE_ELASTIC_TOKEN"));
}

static void commit_leaving(void) {
    MPI_Comm old = bridge_self.comm;
    char more[64];
    if (bridge_self.engine == RELAUNCH) {
        int rank = 0;
        while (rank < bridge_self.after_size && bridge_self.after[rank] != bridge_self.rank)
            rank++;
        int failed = bridge_self.leaves ? 0 : park(rank, bridge_self.after_size, bridge_self.phase);
        if (failed) {
            bridge_complain("the data could not be kept in memory");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        end_parked();
    }
    if (bridge_self.leaves)
        say_leaving();
    MPI_Comm_split(old, bridge_self.leaves ? MPI_UNDEFINED : 0, bridge_self.rank,
                   &bridge_self.comm);
    MPI_Comm_disconnect(&old);
    if (bridge_self.leaves)
        bridge_leave();
    snprintf(more, sizeof more, ",\"left\":%d", bridge_self.leavers);
    bridge_report("done", more);
}

int bridge_adapt_commit(void) {
    switch (bridge_self.window) {
    case GROW:
        MPI_Comm_disconnect(&bridge_self.comm);
        bridge_self.comm = bridge_self.merged;
        break;
    case SHRINK:
        commit_leaving();
        break;
    case RETURN:
        /* All have their data. It is dropped once the launcher was told: until then it may start
         * the program again, and that would find nothing. */
        MPI_Barrier(bridge_self.comm);
        bridge_report("done", ",\"left\":0");
        MPI_Barrier(bridge_self.comm);
        bridge_drop(bridge_self.parked);
        break;
    default:
        break;
    }
    MPI_Comm_rank(bridge_self.comm, &bridge_self.rank);
    MPI_Comm_size(bridge_self.comm, &bridge_self.size);
    if (bridge_self.window == GROW)
        bridge_report("done", ",\"left\":0");
    bridge_self.window = NONE;
    bridge_self.joining = 0;
    bridge_self.merged = MPI_COMM_NULL;
    return MPI_SUCCESS;
}
