/* SPDX-License-Identifier: Apache-2.0 */
/* MPI programs that change their number of processes while they run, over an unpatched MPI.
 *
 * The four routines of Invasive MPI as MPI_Init_adapt, MPI_Probe_adapt, MPI_Comm_adapt_begin and
 * MPI_Comm_adapt_commit, in the meaning of Chadha, John and Gerndt (2020). Without a launcher
 * (`schedbridge run`) they do nothing, and the program is rigid.
 *
 *     bridge_init_adapt(&argc, &argv, &status);
 *     bridge_share(&step, sizeof step);               what is the same in all processes
 *     bridge_keep((void **)&rows, &bytes);            what is not
 *     if (status == BRIDGE_NEW) set_up(bridge_comm()); else adapt = 1;
 *     while (step < last) {
 *         if (adapt) {
 *             bridge_adapt_begin(&phase, &window);
 *             redistribute(&window);
 *             bridge_adapt_commit();                  processes that leave do not return
 *         }
 *         compute(bridge_comm());
 *         step++;
 *         bridge_probe_adapt(&adapt);
 *     }
 *     bridge_finalize();
 *
 * All but bridge_keep, bridge_share, bridge_need and bridge_comm are collective over bridge_comm().
 * Use that communicator in place of MPI_COMM_WORLD; free what was derived from it before
 * bridge_adapt_commit. All calls come from the thread that initialised MPI.
 */
#ifndef BRIDGE_ELASTIC_H
#define BRIDGE_ELASTIC_H

#include <mpi.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The local_status of a process. */
#define BRIDGE_NEW 0 /* the program begins */
#define BRIDGE_JOINING                                                                             \
    1 /* it runs already, elsewhere or before: call bridge_adapt_begin at once                     \
       */

typedef struct bridge_window {
    MPI_Comm merged;   /* all processes of before and after */
    int before_size;   /* how many there were */
    int after_size;    /* how many there will be */
    const int *before; /* (before_size) ranks in `merged` of those that have data, in their order */
    const int *after;  /* (after_size) ranks in `merged` of those that will have it */
} bridge_window;

/* Initialises MPI unless that is done, and learns from the launcher what this process is.
 * Returns MPI_SUCCESS or an error of MPI. */
int bridge_init_adapt(int *argc, char ***argv, int *local_status);

/* The processes that compute now. Changes in bridge_adapt_commit. */
MPI_Comm bridge_comm(void);

/* Announces data of this process: a block from malloc (or NULL) and its length in bytes, both read
 * and written inside a window only. After a relaunch bridge_adapt_begin fills them in. All
 * processes announce the same blocks in the same order, before they call bridge_adapt_begin; at
 * most 32. */
int bridge_keep(void **block, size_t *bytes);

/* Announces a variable that has the same value in all processes; joining ones get it in
 * bridge_adapt_begin. At most 32. */
int bridge_share(void *address, size_t bytes);

/* Asks whether to adapt now: *adapt is 1 in all processes, or 0. Costs one broadcast of an int. */
int bridge_probe_adapt(int *adapt);

/* Opens the window. `phase`: in running processes a number of the program's own, which joining ones
 * receive. If the change was called off meanwhile, the window is one in which nothing changes. */
int bridge_adapt_begin(int *phase, bridge_window *window);

/* Redistributes `items` items of `item_bytes` each, which the processes of before hold in blocks,
 * to those of after: part p of P holds the items from items*p/P to items*(p+1)/P. `block` is from
 * malloc or NULL; in a process that will have none it becomes an empty block. */
int bridge_move_blocks(const bridge_window *window, long items, size_t item_bytes, void **block,
                       size_t *bytes);

/* Closes the window: bridge_comm() is the new communicator. Processes that leave end here with exit
 * code 0, after MPI_Finalize and what atexit() has registered. */
int bridge_adapt_commit(void);

/* Tells the scheduler how many nodes the program can use from now on. Rank 0 alone sends it. */
int bridge_need(int min_nodes, int max_nodes);

/* Ends MPI. */
int bridge_finalize(void);

#ifdef __cplusplus
}
#endif
#endif
