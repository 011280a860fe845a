/* SPDX-License-Identifier: Apache-2.0 */
/* What bridge_elastic.f90 calls: communicators as Fortran knows them, the window's maps by copy. */
#include "bridge_elastic.h"

#include <string.h>

static bridge_window window;

int bridge_f_init(int *status);
int bridge_f_comm(void);
int bridge_f_begin(int *phase, int *merged, int *before, int *after);
void bridge_f_maps(int *before, int *after);
int bridge_f_move(long items, size_t item_bytes, void **block, size_t *bytes);

int bridge_f_init(int *status) {
    return bridge_init_adapt(NULL, NULL, status);
}

int bridge_f_comm(void) {
    return (int)MPI_Comm_c2f(bridge_comm());
}

int bridge_f_begin(int *phase, int *merged, int *before, int *after) {
    int failed = bridge_adapt_begin(phase, &window);
    *merged = (int)MPI_Comm_c2f(window.merged);
    *before = window.before_size;
    *after = window.after_size;
    return failed;
}

void bridge_f_maps(int *before, int *after) {
    memcpy(before, window.before, (size_t)window.before_size * sizeof *before);
    memcpy(after, window.after, (size_t)window.after_size * sizeof *after);
}

int bridge_f_move(long items, size_t item_bytes, void **block, size_t *bytes) {
    return bridge_move_blocks(&window, items, item_bytes, block, bytes);
}
