/* SPDX-License-Identifier: Apache-2.0 */
/* Pi by random points: the smallest elastic program. Its state is two shared numbers.
 * Usage: pi ROUNDS POINTS [PAUSE_US]
 * Point i depends on its number alone, so the number of hits is the same at any widths. */
#include "bridge_elastic.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static uint64_t mixed(uint64_t x) { /* splitmix64 */
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static int64_t hits_in(int64_t begin, int64_t end) {
    int64_t hits = 0;
    for (int64_t i = begin; i < end; i++) {
        uint64_t bits = mixed((uint64_t)i);
        double x = (double)(bits >> 32) / 4294967296.0, y = (double)(uint32_t)bits / 4294967296.0;
        hits += x * x + y * y < 1;
    }
    return hits;
}

int main(int argc, char **argv) {
    int status, adapt, phase = 0, rank, size;
    int64_t round = 0, hits = 0;
    bridge_window window;
    bridge_init_adapt(&argc, &argv, &status);
    int64_t rounds = argc > 1 ? atoll(argv[1]) : 100, points = argc > 2 ? atoll(argv[2]) : 100000;
    bridge_share(&round, sizeof round);
    bridge_share(&hits, sizeof hits);
    adapt = status == BRIDGE_JOINING;
    while (round < rounds) {
        if (adapt) {
            bridge_adapt_begin(&phase, &window);
            bridge_adapt_commit(); /* a joining process needs only shared variables */
            adapt = 0;
            MPI_Comm_rank(bridge_comm(), &rank);
            MPI_Comm_size(bridge_comm(), &size);
            if (rank == 0)
                printf("pi: round %lld width %d\n", (long long)round, size);
            fflush(stdout);
        }
        MPI_Comm_rank(bridge_comm(), &rank);
        MPI_Comm_size(bridge_comm(), &size);
        int64_t base = round * points;
        int64_t mine = hits_in(base + points * rank / size, base + points * (rank + 1) / size), all;
        MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, bridge_comm());
        hits += all;
        round++;
        if (argc > 3)
            usleep((useconds_t)atol(argv[3]));
        bridge_probe_adapt(&adapt);
    }
    MPI_Comm_rank(bridge_comm(), &rank);
    if (rank == 0)
        printf("pi: hits %lld pi %.12f\n", (long long)hits,
               4.0 * (double)hits / (double)(rounds * points));
    return bridge_finalize();
}
