/* SPDX-License-Identifier: Apache-2.0 */
/* Heat in a square plate by Jacobi's method; rows are held in blocks, one per process.
 * Usage: heat ROWS COLUMNS STEPS [PROBE_EVERY [PAUSE_US]]
 * The last line is bit-identical at any widths. */
#include "bridge_elastic.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long rows, columns, step;
static double *plate; /* this process's rows */
static size_t bytes;

static void compute(void) {
    MPI_Comm comm = bridge_comm();
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    long first = rows * rank / size, mine = rows * (rank + 1) / size - first;
    double *above = calloc((size_t)columns, sizeof *above);
    double *below = calloc((size_t)columns, sizeof *below);
    double *next = malloc(bytes ? bytes : 1);
    int up = rank ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(plate, (int)columns, MPI_DOUBLE, up, 0, below, (int)columns, MPI_DOUBLE, down, 0,
                 comm, MPI_STATUS_IGNORE);
    MPI_Sendrecv(plate + (mine - 1) * columns, (int)columns, MPI_DOUBLE, down, 1, above,
                 (int)columns, MPI_DOUBLE, up, 1, comm, MPI_STATUS_IGNORE);
    for (long i = 0; i < mine; i++) {
        const double *north = i ? plate + (i - 1) * columns : above;
        const double *south = i + 1 < mine ? plate + (i + 1) * columns : below;
        const double *here = plate + i * columns;
        int edge = first + i == 0 || first + i == rows - 1;
        for (long j = 0; j < columns; j++)
            next[i * columns + j] = edge || j == 0 || j == columns - 1
                                        ? here[j]
                                        : 0.25 * (north[j] + south[j] + here[j - 1] + here[j + 1]);
    }
    memcpy(plate, next, bytes);
    free(above);
    free(below);
    free(next);
}

static void set_up(void) {
    int rank, size;
    MPI_Comm_rank(bridge_comm(), &rank);
    MPI_Comm_size(bridge_comm(), &size);
    long first = rows * rank / size, mine = rows * (rank + 1) / size - first;
    bytes = (size_t)(mine * columns) * sizeof *plate;
    plate = malloc(bytes ? bytes : 1);
    for (long i = 0; i < mine; i++)
        for (long j = 0; j < columns; j++)
            plate[i * columns + j] = first + i == 0 ? 100 + 0.1 * (double)(j % 7) : 0;
}

/* A hash over all rows in their order, and the sum of each row's middle value. */
static void show_result(void) {
    int rank, size;
    MPI_Comm_rank(bridge_comm(), &rank);
    MPI_Comm_size(bridge_comm(), &size);
    long mine = rows * (rank + 1) / size - rows * rank / size;
    uint64_t *each = calloc((size_t)rows + 1, sizeof *each);
    int *counts = calloc(2 * (size_t)size, sizeof *counts);
    for (int i = 0; i < size; i++) {
        counts[i] = (int)(rows * (i + 1) / size - rows * i / size);
        counts[size + i] = (int)(rows * i / size);
    }
    uint64_t *own = calloc((size_t)mine + 1, sizeof *own);
    for (long i = 0; i < mine; i++) {
        const unsigned char *data = (const unsigned char *)(plate + i * columns);
        own[i] = 14695981039346656037u;
        for (size_t k = 0; k < (size_t)columns * sizeof *plate; k++)
            own[i] = (own[i] ^ data[k]) * 1099511628211u;
    }
    MPI_Gatherv(own, (int)mine, MPI_UINT64_T, each, counts, counts + size, MPI_UINT64_T, 0,
                bridge_comm());
    uint64_t hash = 0;
    for (long i = 0; i < rows; i++)
        hash = (hash ^ each[i]) * 1099511628211u;
    if (rank == 0)
        printf("heat: steps %ld hash %016llx\n", step, (unsigned long long)hash);
    free(each);
    free(own);
    free(counts);
}

int main(int argc, char **argv) {
    int status, adapt = 0, phase = 0, size, rank;
    bridge_window window;
    bridge_init_adapt(&argc, &argv, &status);
    if (argc < 4) {
        fprintf(stderr, "usage: heat ROWS COLUMNS STEPS [PROBE_EVERY [PAUSE_US]]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    rows = atol(argv[1]), columns = atol(argv[2]);
    long steps = atol(argv[3]), every = argc > 4 ? atol(argv[4]) : 10;
    useconds_t pause = argc > 5 ? (useconds_t)atol(argv[5]) : 0;
    bridge_share(&step, sizeof step);
    bridge_keep((void **)&plate, &bytes);
    if (status == BRIDGE_NEW)
        set_up();
    else
        adapt = 1;
    while (step < steps) {
        if (adapt) {
            bridge_adapt_begin(&phase, &window);
            bridge_move_blocks(&window, rows, (size_t)columns * sizeof *plate, (void **)&plate,
                               &bytes);
            bridge_adapt_commit();
            MPI_Comm_size(bridge_comm(), &size);
            MPI_Comm_rank(bridge_comm(), &rank);
            if (rank == 0)
                printf("heat: step %ld width %d\n", step, size), fflush(stdout);
            adapt = 0;
        }
        compute();
        if (pause)
            usleep(pause);
        step++;
        if (step % every == 0)
            bridge_probe_adapt(&adapt);
    }
    show_result();
    free(plate);
    return bridge_finalize();
}
