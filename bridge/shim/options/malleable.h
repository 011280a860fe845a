// SPDX-License-Identifier: GPL-2.0-or-later
// Syntax and checks of the options of malleable jobs. The SPANK plugin reads them at submission;
// the scheduler plugin, which must not trust clients, reads them again.
#ifndef BRIDGE_MALLEABLE_H
#define BRIDGE_MALLEABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MALLEABLE_MAX_NODES 1000000
#define MALLEABLE_MAX_POWER_W 1000000

typedef enum {
    MALLEABLE_MIN_NODES,
    MALLEABLE_MAX_NODES_OPTION,
    MALLEABLE_RANGE,
    MALLEABLE_CONSTRAINT,
    MALLEABLE_MIN_POWER,
    MALLEABLE_MAX_POWER,
    MALLEABLE_NO_RESIZE,
    MALLEABLE_OPTIONS,
} malleable_option_t;

// The long option of sbatch, without the two dashes.
extern const char *const malleable_names[MALLEABLE_OPTIONS];

typedef struct {
    uint32_t min_nodes, max_nodes;             // 0: not stated
    uint32_t range_min_nodes, range_max_nodes; // by --malleable; 0: not stated
    char constraint[8];                        // "", "pof2", "even", "odd" or "cubic"
    uint32_t min_power_w, max_power_w;         // 0: not stated
    bool no_resize;                            // keeps the nodes that it starts on
} malleable_t;

// Reads one option's value. If it is invalid, prints one line for the user and returns false.
bool malleable_take(malleable_t *malleable, malleable_option_t option, const char *value,
                    char *problem, size_t problem_bytes);

// Checks the options together and stores the range in min_nodes and max_nodes. If they contradict
// each other, prints one line for the user and returns false.
bool malleable_settle(malleable_t *malleable, char *problem, size_t problem_bytes);

// True if a job under this constraint may have this many nodes.
bool malleable_allows(const malleable_t *malleable, uint32_t nodes);

// Checks the number of nodes that a job requests (-N) against the settled options: it can start
// only on a number from `minimum` to `maximum` (0: not bounded) that they allow. If there is none,
// prints one line for the user and returns false.
bool malleable_fits(const malleable_t *malleable, uint32_t minimum, uint32_t maximum, char *problem,
                    size_t problem_bytes);

#define MALLEABLE_PLUGIN "schedbridge"

// Reads "_SLURM_SPANK_OPTION_schedbridge_min_nodes_invasic=4" as SPANK leaves it in a job's
// environment (with or without a leading "SPANK_"). Sets *ours if the entry is one of ours; returns
// false, with a message, if its value is invalid.
bool malleable_take_entry(malleable_t *malleable, const char *entry, bool *ours, char *problem,
                          size_t problem_bytes);

// The value of an option of this plugin in such an entry; NULL: another entry.
const char *malleable_entry_value(const char *entry, const char *option);

#endif
