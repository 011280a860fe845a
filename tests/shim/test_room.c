// SPDX-License-Identifier: GPL-2.0-or-later
// Whether nodes are free for a job, in random worlds, against a count of CPUs that is kept by hand.
#include "random.h"
#include "rules/room.h"

#include "expect.h"
#include "slurm_mock.h"

#define NODES 8
#define CPUS 4
#define ROUNDS 4000
#define NO_PRIORITY 0

static unsigned held[NODES]; // CPUs of jobs that hold them
static unsigned seen[2][2];  // what was found, for jobs of single CPUs and of whole nodes

// A job on one or two nodes. One that is suspended by hand has none left, and one that the
// scheduler has suspended gets its CPUs back.
static void occupy(uint32_t id) {
    int node = (int)random_below(NODES);
    unsigned cpus = 1 + random_below(CPUS - 1), state = random_below(4);
    job_record_t *job = mock_job(id);
    if (held[node] + cpus > CPUS)
        return;
    mock_run(job, node, (uint16_t)cpus);
    if (node + 1 < NODES && one_in(3) && held[node + 1] + 1 <= CPUS) {
        uint16_t *both = calloc(2, sizeof(*both));
        both[0] = (uint16_t)cpus;
        both[1] = 1;
        free(job->job_resrcs->cpus);
        job->job_resrcs->cpus = both;
        job->job_resrcs->nhosts = 2;
        bit_set(job->job_resrcs->node_bitmap, node + 1);
    }
    job->job_state = state == 3   ? JOB_COMPLETE | JOB_COMPLETING
                     : state == 0 ? JOB_RUNNING
                                  : JOB_SUSPENDED;
    job->priority = state == 1 ? NO_PRIORITY : 1;
    if (state != 0 && state != 2)
        return;
    held[node] += cpus;
    if (job->job_resrcs->nhosts == 2)
        held[node + 1]++;
}

static void make_world(void) {
    mock_begin(NODES, CPUS);
    memset(held, 0, sizeof(held));
    for (uint32_t id = 2, jobs = random_below(10); id < 2 + jobs; id++)
        occupy(id);
    for (int node = 0; node < NODES; node++) {
        if (held[node] || one_in(8))
            bit_clear(idle_node_bitmap, node);
        if (one_in(12))
            bit_clear(avail_node_bitmap, node);
        if (one_in(12))
            bit_set(cg_node_bitmap, node);
        if (one_in(8))
            bit_clear(share_node_bitmap, node);
    }
}

// Node by node, as a person would look.
static bool has_room(const job_record_t *job, bitstr_t *nodes, bool whole) {
    unsigned on_each = job->details->pn_min_cpus == NO_VAL ? 1 : job->details->pn_min_cpus;
    unsigned found = 0;
    bool idle = true, open = true;
    for (int node = 0; node < NODES; node++) {
        if (!bit_test(nodes, node))
            continue;
        if (!bit_test(avail_node_bitmap, node) || bit_test(cg_node_bitmap, node))
            return false;
        idle &= bit_test(idle_node_bitmap, node) != 0;
        open &=
            bit_test(share_node_bitmap, node) && CPUS - held[node] >= on_each && held[node] < CPUS;
        found += CPUS - held[node];
    }
    return idle || (!whole && open && found >= job->details->min_cpus);
}

int main(void) {
    random_seed(30);
    for (int round = 0; round < ROUNDS; round++) {
        make_world();
        job_record_t *job = mock_job(1);
        bitstr_t *nodes = bit_alloc(NODES);
        unsigned first = random_below(NODES), width = 1 + random_below(2), kind = random_below(5);
        for (unsigned i = 0; i < width && first + i < NODES; i++)
            bit_set(nodes, (int)(first + i));
        job->details->whole_node = kind == 1 ? WHOLE_NODE_REQUIRED : 0;
        job->details->share_res = kind == 2 ? 0 : 254; // NO_VAL8: unstated
        job->part_ptr->max_share = kind == 3 ? 0 : 1;
        job->details->pn_min_cpus = one_in(3) ? NO_VAL : random_below(4);
        job->details->min_cpus = 1 + random_below(8);
        bool whole = kind == 1 || kind == 2 || kind == 3;
        bool found = nodes_have_room(job, job->part_ptr, nodes);
        EXPECT_NUMBER(found, has_room(job, nodes, whole));
        seen[whole][found]++;
        FREE_NULL_BITMAP(nodes);
        mock_end();
    }
    for (int i = 0; i < 4; i++)
        EXPECT(seen[i / 2][i % 2] > ROUNDS / 20);
    DONE();
}
