/* SPDX-License-Identifier: Apache-2.0 */
/* Redistribution of what is held in blocks: one all-to-all exchange in the merged communicator. */
#include "bridge_elastic.h"

#include <stdlib.h>
#include <string.h>

static long first_of(long items, int part, int parts) {
    return (long)((__int128)items * part / parts);
}

static int part_of(const int *ranks, int size, int rank) {
    for (int part = 0; part < size; part++)
        if (ranks[part] == rank)
            return part;
    return -1;
}

/* Counts and offsets of what part [begin, end) shares with each of the other side's parts. */
static void overlaps(long items, long begin, long end, const int *ranks, int parts, int *counts,
                     int *offsets) {
    for (int part = 0; part < parts; part++) {
        long low = first_of(items, part, parts), high = first_of(items, part + 1, parts);
        low = low > begin ? low : begin;
        high = high < end ? high : end;
        counts[ranks[part]] = high > low ? (int)(high - low) : 0;
        offsets[ranks[part]] = high > low ? (int)(low - begin) : 0;
    }
}

int bridge_move_blocks(const bridge_window *window, long items, size_t item_bytes, void **block,
                       size_t *bytes) {
    int rank, size;
    MPI_Comm_rank(window->merged, &rank);
    MPI_Comm_size(window->merged, &size);
    int was = part_of(window->before, window->before_size, rank);
    int is = part_of(window->after, window->after_size, rank);
    long begin = was < 0 ? 0 : first_of(items, was, window->before_size);
    long end = was < 0 ? 0 : first_of(items, was + 1, window->before_size);
    long next_begin = is < 0 ? 0 : first_of(items, is, window->after_size);
    long next_end = is < 0 ? 0 : first_of(items, is + 1, window->after_size);
    size_t next_bytes = (size_t)(next_end - next_begin) * item_bytes;
    int *lists = calloc(4 * (size_t)size, sizeof *lists);
    void *next = malloc(next_bytes ? next_bytes : 1);
    if (!lists || !next) {
        free(lists);
        free(next);
        return MPI_ERR_NO_MEM;
    }
    int *to = lists, *to_at = lists + size, *from = lists + 2 * size, *from_at = lists + 3 * size;
    if (was >= 0)
        overlaps(items, begin, end, window->after, window->after_size, to, to_at);
    if (is >= 0)
        overlaps(items, next_begin, next_end, window->before, window->before_size, from, from_at);
    MPI_Datatype item;
    MPI_Type_contiguous((int)item_bytes, MPI_BYTE, &item);
    MPI_Type_commit(&item);
    int failed = MPI_Alltoallv(*block, to, to_at, item, next, from, from_at, item, window->merged);
    MPI_Type_free(&item);
    free(lists);
    free(*block);
    *block = next;
    *bytes = next_bytes;
    return failed;
}
