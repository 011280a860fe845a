/* SPDX-License-Identifier: Apache-2.0 */
/* What a process of the program knows of itself; see bridge_elastic.c. */
#ifndef BRIDGE_ELASTIC_STATE_H
#define BRIDGE_ELASTIC_STATE_H

#include "bridge_elastic.h"
#include "elastic_internal.h"

enum bridge_engine { RIGID, JOIN, RELAUNCH };
enum bridge_kind { NONE, GROW, SHRINK, RETURN, CALLED_OFF };

extern struct bridge_state {
    enum bridge_engine engine;
    enum bridge_kind window;
    int joining, started_mpi, rank, size;
    MPI_Comm comm, merged;
    char port[MPI_MAX_PORT_NAME], id[BRIDGE_TEXT], parked[BRIDGE_TEXT];
    char outcome[4 * BRIDGE_TEXT]; /* the last one, said again to a launcher that was restarted */
    int phase;                     /* of the window of a shrink */
    int leaves, leavers, before_size, after_size, *before, *after;
    bridge_block blocks[BRIDGE_BLOCKS];
    struct {
        void *address;
        size_t bytes;
    } shared[BRIDGE_BLOCKS];
    int blocks_count, shared_count;
} bridge_self;
extern char bridge_asked[BRIDGE_LINE]; /* the change that is asked for, in all processes */

const char *bridge_env(const char *name);
void bridge_complain(const char *text);
/* Rank 0 tells the launcher the result of the change; `more`: further keys, with a comma before.
 */
void bridge_report(const char *op, const char *more);
/* Connects `over` with those who accept, or connect, at this port. 0 or an error of MPI. */
int bridge_connect_all(int accepting, const char *port, MPI_Comm over, MPI_Comm *merged);
void bridge_leave(void) __attribute__((noreturn));
#endif
