// SPDX-License-Identifier: GPL-2.0-or-later
// Options of sbatch, srun and salloc for malleable jobs and power. In plugstack.conf:
//   required spank_bridge.so
// "required" makes a wrong value refuse the job. The values travel in the job's SPANK environment
// to slurmctld, where sched/bridge reads and judges them again.
#include <slurm/spank.h>
#include <stdbool.h>

#include "malleable.h"

#pragma GCC visibility push(default)
SPANK_PLUGIN(schedbridge, 1)
int slurm_spank_init(spank_t spank, int argc, char **argv);
int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv);
#pragma GCC visibility pop

// Slurm takes only negative values for a refusal; its own ESPANK_* are positive.
#define REFUSE (-1)

static malleable_t wanted;
static bool stated;

static int take(int option, const char *value, int remote)
{
    char problem[512];
    if (remote) // judged at submission
        return ESPANK_SUCCESS;
    stated = true;
    if (malleable_take(&wanted, (malleable_option_t)option, value, problem, sizeof(problem)))
        return ESPANK_SUCCESS;
    slurm_error("%s", problem);
    return REFUSE;
}

static const struct spank_option options[] = {
    {"min-nodes-invasic", "N", "least nodes the job can shrink to", 1, MALLEABLE_MIN_NODES, take},
    {"max-nodes-invasic", "N", "most nodes the job can grow to", 1, MALLEABLE_MAX_NODES_OPTION,
     take},
    {"malleable", "MIN-MAX",
     "the job can run on, and grow or shrink to, MIN to MAX nodes: short for the two options above",
     1, MALLEABLE_RANGE, take},
    {"node-constraints", "pof2|even|odd|cubic",
     "allowed numbers of nodes: powers of two, even, odd, or cubes", 1, MALLEABLE_CONSTRAINT, take},
    {"min-power", "WATTS", "least power the job draws on each node", 1, MALLEABLE_MIN_POWER, take},
    {"max-power", "WATTS", "most power the job draws on each node", 1, MALLEABLE_MAX_POWER, take},
};

int slurm_spank_init(spank_t spank, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        struct spank_option option = options[i];
        if (spank_option_register(spank, &option) != ESPANK_SUCCESS) {
            slurm_error("schedbridge: the option --%s could not be registered", option.name);
            return REFUSE;
        }
    }
    return ESPANK_SUCCESS;
}

int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv)
{
    char problem[512];
    (void)argc;
    (void)argv;
    if (!stated || spank_remote(spank) == 1)
        return ESPANK_SUCCESS;
    malleable_t together = wanted;
    if (malleable_settle(&together, problem, sizeof(problem)))
        return ESPANK_SUCCESS;
    slurm_error("%s", problem);
    return REFUSE;
}
