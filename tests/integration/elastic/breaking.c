/* SPDX-License-Identifier: Apache-2.0 */
/* Breaks where its first argument says: "begin" (a process fails in the window), "joiner" (a new
 * one fails before it connects), "end" (the program ends while it is asked), "phase" (a process was
 * not told the phase of the others). */
#include "bridge_elastic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int status, adapt = 0, phase = 0, step = 0;
    bridge_window window;
    const char *where = argc > 1 ? argv[1] : "";
    bridge_init_adapt(&argc, &argv, &status);
    bridge_share(&step, sizeof step);
    if (!strcmp(where, "phase") && status == BRIDGE_NEW)
        phase = 7;
    if (status == BRIDGE_JOINING) {
        if (!strcmp(where, "joiner"))
            _exit(9);
        adapt = 1;
    }
    for (; step < 300; step++) {
        if (adapt) {
            if (!strcmp(where, "begin") && status == BRIDGE_NEW)
                _exit(9);
            bridge_adapt_begin(&phase, &window);
            if (!strcmp(where, "phase") && phase != 7)
                _exit(9);
            bridge_adapt_commit();
        }
        MPI_Barrier(bridge_comm());
        usleep(20000);
        if (strcmp(where, "end"))
            bridge_probe_adapt(&adapt);
        else
            adapt = 0;
    }
    puts("breaking: ended");
    return bridge_finalize();
}
