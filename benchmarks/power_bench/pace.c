/* SPDX-License-Identifier: Apache-2.0 */
/* Linked to the example programs with -Wl,--wrap=usleep: their pause per step, which they state for
 * one node, becomes what the step takes on the present nodes by Amdahl's law.
 *
 *   PACE_SERIAL   serial fraction; without it there is no pause.
 *
 * Rules
 *   1. A step that begins late is made shorter, so that other load does not slow the program down.
 *      After a change of width the clock begins anew: what the change took is not made up for.
 *   2. Processes wait for each other by sleeping, not by polling: many run on few cores.
 *   3. At the end rank 0 says how long the steps took, from the first to the last.
 */
#include "bridge_elastic.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int __wrap_usleep(useconds_t us);

static double first_s, last_s;

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void sleep_for(double seconds) {
    struct timespec pause = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    if (seconds > 0)
        nanosleep(&pause, NULL);
}

static void tell(void) {
    printf("pace: %.3f s\n", last_s - first_s);
    fflush(stdout);
}

static void meet(MPI_Comm comm) {
    MPI_Request request;
    int met = 0;
    MPI_Ibarrier(comm, &request);
    for (;;) {
        MPI_Test(&request, &met, MPI_STATUS_IGNORE);
        if (met)
            return;
        sleep_for(0.002);
    }
}

int __wrap_usleep(useconds_t us) {
    static double due_s;
    static int before;
    const char *text = getenv("PACE_SERIAL");
    int rank, size;
    if (!text)
        return 0;
    double serial = atof(text);
    MPI_Comm_rank(bridge_comm(), &rank);
    MPI_Comm_size(bridge_comm(), &size);
    if (!before && rank == 0) {
        first_s = now_s();
        atexit(tell);
    }
    if (size != before)
        due_s = now_s();
    before = size;
    due_s += 1e-6 * us * (serial + (1 - serial) / size);
    sleep_for(due_s - now_s());
    meet(bridge_comm());
    last_s = now_s();
    return 0;
}
