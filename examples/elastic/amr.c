/* SPDX-License-Identifier: Apache-2.0 */
/* Adaptive refinement: a front moves through a square of blocks, and blocks near it have finer
 * cells. The work changes by itself, so the program says how many nodes it can use (bridge_need).
 * Usage: amr STEPS [CELLS_PER_NODE [PAUSE_US]]
 * Blocks differ in size: they are dealt out in order, by cells, and the program moves them itself.
 * Blocks relax for themselves; a real program would exchange their edges here. */
#include "bridge_elastic.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIDE = 16, BLOCKS = SIDE * SIDE, REGRID = 10 };

static long step;
static int level[BLOCKS]; /* of each block, the same in all processes */
static double *cells;     /* of this process's blocks, one after the other */
static size_t bytes;

static long edge_of(int block) {
    return 4L << level[block];
}
static long size_of(int block) {
    return edge_of(block) * edge_of(block);
}

static int wanted_level(int block, long at) {
    long turn = at % 400 < 200 ? at % 200 : 200 - at % 200; /* there and back */
    double radius = SIDE * (double)turn / 200.0;
    double away = fabs(hypot(block % SIDE, block / SIDE) - radius); /* NOLINT */
    return away < 1 ? 2 : away < 2 ? 1 : 0;
}

/* (parts + 1) first blocks: each part has about as many cells as the others. */
static int *dealt(int parts) {
    int *first = malloc(((size_t)parts + 1) * sizeof *first);
    long all = 0, seen = 0;
    for (int b = 0; b < BLOCKS; b++)
        all += size_of(b);
    int part = 0;
    first[0] = 0;
    for (int b = 0; b < BLOCKS; b++) {
        while (part + 1 < parts && seen >= all * (part + 1) / parts)
            first[++part] = b;
        seen += size_of(b);
    }
    while (part < parts)
        first[++part] = BLOCKS;
    return first;
}

static int part_of(const int *ranks, int parts, int rank) {
    for (int part = 0; part < parts; part++)
        if (ranks[part] == rank)
            return part;
    return -1;
}

/* Cells of the blocks in both ranges, and where they begin in the first one. */
static void shared_cells(int begin, int end, int low, int high, int *count, int *offset) {
    *count = *offset = 0;
    for (int b = begin; b < end; b++) {
        if (b < low)
            *offset += (int)size_of(b);
        if (b >= low && b < high)
            *count += (int)size_of(b);
    }
    if (!*count)
        *offset = 0;
}

static void move(MPI_Comm comm, const int *before, int parts, const int *first, const int *after,
                 int next_parts, const int *next_first) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int was = part_of(before, parts, rank), is = part_of(after, next_parts, rank);
    int begin = was < 0 ? 0 : first[was], end = was < 0 ? 0 : first[was + 1];
    int next_begin = is < 0 ? 0 : next_first[is], next_end = is < 0 ? 0 : next_first[is + 1];
    int *lists = calloc(4 * (size_t)size, sizeof *lists);
    int *to = lists, *to_at = lists + size, *from = lists + 2 * size, *from_at = lists + 3 * size;
    for (int p = 0; p < next_parts; p++)
        shared_cells(begin, end, next_first[p], next_first[p + 1], &to[after[p]], &to_at[after[p]]);
    for (int p = 0; p < parts; p++)
        shared_cells(next_begin, next_end, first[p], first[p + 1], &from[before[p]],
                     &from_at[before[p]]);
    size_t next_bytes = 0;
    for (int b = next_begin; b < next_end; b++)
        next_bytes += (size_t)size_of(b) * sizeof *cells;
    double *next = malloc(next_bytes ? next_bytes : 1);
    MPI_Alltoallv(cells, to, to_at, MPI_DOUBLE, next, from, from_at, MPI_DOUBLE, comm);
    free(lists);
    free(cells);
    cells = next;
    bytes = next_bytes;
}

/* New levels: blocks become finer by copies, coarser by means; then they are dealt out again. */
static void regrid(void) {
    int rank, size, next[BLOCKS];
    MPI_Comm_rank(bridge_comm(), &rank);
    MPI_Comm_size(bridge_comm(), &size);
    int *first = dealt(size), *ranks = malloc((size_t)size * sizeof *ranks);
    size_t room = 0, filled = 0;
    for (int i = 0; i < size; i++)
        ranks[i] = i;
    for (int b = 0; b < BLOCKS; b++)
        next[b] = wanted_level(b, step);
    for (int b = first[rank]; b < first[rank + 1]; b++)
        room += (size_t)(16 << 2 * next[b]);
    double *made = malloc((room + 1) * sizeof *made), *old = cells;
    for (int b = first[rank]; b < first[rank + 1]; b++) {
        long edge = edge_of(b), fine = 4L << next[b];
        for (long i = 0; i < fine; i++)
            for (long j = 0; j < fine; j++) {
                double sum = 0;
                long times = fine >= edge ? 1 : edge / fine;
                for (long k = 0; k < times * times; k++) {
                    long y = fine >= edge ? i * edge / fine : i * times + k / times;
                    long x = fine >= edge ? j * edge / fine : j * times + k % times;
                    sum += old[y * edge + x];
                }
                made[filled++] = sum / (double)(times * times);
            }
        old += size_of(b);
    }
    free(cells);
    cells = made;
    bytes = filled * sizeof *cells;
    memcpy(level, next, sizeof level);
    int *next_first = dealt(size);
    move(bridge_comm(), ranks, size, first, ranks, size, next_first);
    free(first);
    free(next_first);
    free(ranks);
}

static void compute(void) {
    int rank, size;
    MPI_Comm_rank(bridge_comm(), &rank);
    MPI_Comm_size(bridge_comm(), &size);
    int *first = dealt(size);
    double *block = cells;
    for (int b = first[rank]; b < first[rank + 1]; b++) {
        long edge = edge_of(b);
        for (long i = 0; i < edge; i++)
            for (long j = 0; j < edge; j++) {
                double left = j ? block[i * edge + j - 1] : 0,
                       up = i ? block[(i - 1) * edge + j] : 0;
                block[i * edge + j] =
                    0.5 * block[i * edge + j] + 0.25 * (left + up) + 0.01 * level[b];
            }
        block += size_of(b);
    }
    free(first);
    MPI_Barrier(bridge_comm());
}

static void show_result(void) {
    int rank, size;
    MPI_Comm_rank(bridge_comm(), &rank);
    MPI_Comm_size(bridge_comm(), &size);
    int *first = dealt(size);
    uint64_t own[BLOCKS] = {0}, all[BLOCKS], hash = 0;
    const unsigned char *data = (const unsigned char *)cells;
    for (int b = first[rank]; b < first[rank + 1]; b++) {
        own[b] = 14695981039346656037u;
        for (size_t k = 0; k < (size_t)size_of(b) * sizeof *cells; k++)
            own[b] = (own[b] ^ *data++) * 1099511628211u;
    }
    MPI_Reduce(own, all, BLOCKS, MPI_UINT64_T, MPI_BXOR, 0, bridge_comm());
    for (int b = 0; b < BLOCKS; b++)
        hash = (hash ^ all[b]) * 1099511628211u;
    if (rank == 0)
        printf("amr: steps %ld hash %016llx\n", step, (unsigned long long)hash);
    free(first);
}

static void say_need(long per_node) {
    long all = 0;
    for (int b = 0; b < BLOCKS; b++)
        all += size_of(b);
    int maximum = (int)((all + per_node - 1) / per_node);
    bridge_need(1, maximum > 1 ? maximum : 1);
}

int main(int argc, char **argv) {
    int status, adapt = 0, phase = 0, rank, size;
    bridge_window window;
    bridge_init_adapt(&argc, &argv, &status);
    long steps = argc > 1 ? atol(argv[1]) : 400, per_node = argc > 2 ? atol(argv[2]) : 4000;
    bridge_share(&step, sizeof step);
    bridge_share(level, sizeof level);
    bridge_keep((void **)&cells, &bytes);
    MPI_Comm_rank(bridge_comm(), &rank);
    MPI_Comm_size(bridge_comm(), &size);
    if (status == BRIDGE_JOINING) {
        adapt = 1;
    } else {
        int *first = dealt(size);
        bytes = (size_t)(16 * (first[rank + 1] - first[rank])) * sizeof *cells;
        cells = calloc(1, bytes ? bytes : 1);
        free(first);
    }
    while (step < steps) {
        if (adapt) {
            bridge_adapt_begin(&phase, &window);
            int *first = dealt(window.before_size), *next_first = dealt(window.after_size);
            move(window.merged, window.before, window.before_size, first, window.after,
                 window.after_size, next_first);
            free(first);
            free(next_first);
            bridge_adapt_commit();
            MPI_Comm_rank(bridge_comm(), &rank);
            MPI_Comm_size(bridge_comm(), &size);
            if (rank == 0)
                printf("amr: step %ld width %d\n", step, size), fflush(stdout);
            adapt = 0;
        }
        if (step % REGRID == 0) {
            regrid();
            say_need(per_node);
        }
        compute();
        if (argc > 3)
            usleep((useconds_t)atol(argv[3]));
        step++;
        bridge_probe_adapt(&adapt);
    }
    show_result();
    free(cells);
    return bridge_finalize();
}
