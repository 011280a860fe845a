// SPDX-License-Identifier: GPL-2.0-or-later
// Options of sbatch, srun and salloc for malleable jobs, power, fixed starts, chunks and shared
// nodes. In plugstack.conf:
//   required spank_bridge.so
// With "required" an invalid value refuses the job. The values travel in the job's SPANK
// environment to slurmctld, where sched/bridge checks them again. Chunks are also set in the client
// as ordinary options, so that Slurm holds an equivalent request. On the nodes each job gets a
// folder (job_folder.h); job_folders=DIR behind the plugin's name places it elsewhere.
#include <errno.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options/client.h"
#include "options/coschedule.h"
#include "options/job_folder.h"
#include "options/malleable.h"

#pragma GCC visibility push(default)
SPANK_PLUGIN(schedbridge, 1)
int slurm_spank_init(spank_t spank, int argc, char **argv);
int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv);
int slurm_spank_exit(spank_t spank, int argc, char **argv);
#pragma GCC visibility pop

// Slurm treats only negative values as a refusal; its own ESPANK_* are positive.
#define REFUSE (-1)

enum { CHUNKS = MALLEABLE_OPTIONS, PLACE, FIXED_START, COSCHEDULE, MAX_SLOWDOWN };

static malleable_t wanted;
static bool stated;
static char *chunks_text, *place_text;

static bool is_step(void)
{
    return getenv("SLURM_JOB_ID") && !strcmp(program_invocation_short_name, "srun");
}

static int take(int option, const char *value, int remote)
{
    char problem[512];
    if (remote) // checked at submission
        return ESPANK_SUCCESS;
    stated = true;
    if (malleable_take(&wanted, (malleable_option_t)option, value, problem, sizeof(problem)))
        return ESPANK_SUCCESS;
    slurm_error("%s", problem);
    return REFUSE;
}

static int refuse_pointed(const char *option, const chunks_problem_t *problem)
{
    char lines[512];
    chunks_point(problem, lines, sizeof(lines));
    slurm_error("--%s: %s", option, lines);
    return REFUSE;
}

// Sets the options for the chunks known so far; a later place changes them.
static int apply_chunks(const char *option)
{
    chunks_options_t options = {.count = 0};
    chunks_problem_t problem;
    char line[512];
    int outcome = ESPANK_SUCCESS;
    chunks_t *chunks = malloc(sizeof(*chunks));
    if (!chunks)
        return REFUSE;
    if (!chunks_read(chunks, chunks_text ? chunks_text : "ncpus=1", place_text, &problem)) {
        outcome = refuse_pointed(problem.text == place_text ? "place" : "chunks", &problem);
    } else if (!chunks_text) {
        // Only a place so far: it is checked now, and used with the chunks.
    } else if (!chunks_lower(chunks, client_generic(), &options, &problem)) {
        outcome = refuse_pointed(option, &problem);
    } else if (!client_set(&options, line, sizeof(line))) {
        slurm_error("%s", line);
        outcome = REFUSE;
    } else if (chunks_threads(chunks)) {
        snprintf(line, sizeof(line), "%u", chunks_threads(chunks));
        setenv("OMP_NUM_THREADS", line, 0);
    }
    chunks_options_free(&options);
    free(chunks);
    return outcome;
}

static int take_chunks(int option, const char *value, int remote)
{
    if (remote)
        return ESPANK_SUCCESS;
    if (is_step()) {
        slurm_error("--chunks and --place apply to jobs, not to steps of a job: give "
                    "srun --nodes and --ntasks here");
        return REFUSE;
    }
    char **text = option == CHUNKS ? &chunks_text : &place_text;
    free(*text);
    *text = strdup(value ? value : "");
    if (!*text)
        return REFUSE;
    return apply_chunks(option == CHUNKS ? "chunks" : "place");
}

static int take_fixed_start(int option, const char *value, int remote)
{
    char problem[512];
    (void)option;
    if (remote)
        return ESPANK_SUCCESS;
    if (is_step()) {
        slurm_error("--fixed-start applies to jobs, not to steps of a job");
        return REFUSE;
    }
    if (client_begin(value ? value : "", problem, sizeof(problem)))
        return ESPANK_SUCCESS;
    slurm_error("%s", problem);
    return REFUSE;
}

static int take_sharing(int option, const char *value, int remote)
{
    char problem[512];
    coschedule_t coschedule;
    uint32_t permille;
    if (remote)
        return ESPANK_SUCCESS;
    if (option == COSCHEDULE ? coschedule_read(&coschedule, value, problem, sizeof(problem))
                             : coschedule_read_slowdown(&permille, value, problem, sizeof(problem)))
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
    {"no-resize", NULL, "the job keeps the nodes that it starts on, whatever --malleable says", 0,
     MALLEABLE_NO_RESIZE, take},
    {"chunks", "N:RES=VALUE:...+...",
     "resources in chunks that are never split over nodes, as in 2:ncpus=4:mem=10gb+1:ncpus=1; "
     "instead of --nodes, --ntasks and the like",
     1, CHUNKS, take_chunks},
    {"place", "free|pack|scatter[:excl|:shared][:group=FEATURE]",
     "where the chunks may be placed: anywhere, on one node, or one on each node", 1, PLACE,
     take_chunks},
    {"fixed-start", "TIME", "start exactly then, or not at all; a time as --begin takes it", 1,
     FIXED_START, take_fixed_start},
    {"coschedule", "host|guest|both|never",
     "another job may run on this job's nodes (host), this job on another's (guest), both or "
     "never; never with --exclusive",
     1, COSCHEDULE, take_sharing},
    {"max-slowdown", "FRACTION",
     "by how much sharing may slow the job down, as 0.1 or 10%; the guest leaves before", 1,
     MAX_SLOWDOWN, take_sharing},
};

// A job's request does not apply to steps and jobs started from inside it.
static void disinherit(void)
{
    static const char *const names[] = {"chunks",      "place",        "fixed-start",
                                        "fixed_start", "no-resize",    "no_resize",
                                        "coschedule",  "max-slowdown", "max_slowdown"};
    char variable[128];
    if (!getenv("SLURM_JOB_ID"))
        return;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(variable, sizeof(variable), "SLURM_SPANK__SLURM_SPANK_OPTION_%s_%s",
                 MALLEABLE_PLUGIN, names[i]);
        unsetenv(variable);
    }
}

int slurm_spank_init(spank_t spank, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    if (spank_remote(spank) != 1)
        disinherit();
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        struct spank_option option = options[i];
        if (spank_option_register(spank, &option) != ESPANK_SUCCESS) {
            slurm_error("schedbridge: the option --%s could not be registered", option.name);
            return REFUSE;
        }
    }
    return ESPANK_SUCCESS;
}

// In slurmstepd, as root, before it starts processes. A job runs as always without a folder.
static void begin_step(spank_t spank, int argc, char **argv)
{
    static const char option[] = "job_folders=";
    const char *folders = JOB_FOLDERS;
    uint32_t job;
    uid_t uid;
    gid_t gid;
    for (int i = 0; i < argc; i++)
        if (!strncmp(argv[i], option, strlen(option)))
            folders = argv[i] + strlen(option);
    if (geteuid() || spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_UID, &uid) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_GID, &gid) != ESPANK_SUCCESS)
        return;
    const char *problem = job_folder_enter(folders, job, uid, gid);
    if (problem)
        slurm_error("schedbridge: job %u has no folder in %s: %s: %s", job, folders, problem,
                    strerror(errno));
}

int slurm_spank_exit(spank_t spank, int argc, char **argv)
{
    uint32_t job;
    (void)argc;
    (void)argv;
    if (spank_remote(spank) == 1 && spank_get_item(spank, S_JOB_ID, &job) == ESPANK_SUCCESS)
        job_folder_leave(job);
    return ESPANK_SUCCESS;
}

// Checks the numbers of nodes together, and with --nodes; refuses with one line.
static int check_widths(bool has_chunks)
{
    char problem[512];
    malleable_t together = wanted;
    uint32_t minimum, maximum;
    if (has_chunks &&
        (wanted.min_nodes || wanted.max_nodes || wanted.range_max_nodes || wanted.constraint[0])) {
        slurm_error("numbers of nodes beside --chunks: give --place=scatter or --place=pack");
        return REFUSE;
    }
    bool good = malleable_settle(&together, problem, sizeof(problem));
    // A step inherits the options of its job, but not its number of nodes.
    if (good && !is_step() && client_nodes(&minimum, &maximum))
        good = malleable_fits(&together, minimum, maximum, problem, sizeof(problem));
    if (!good) {
        slurm_error("%s", problem);
        return REFUSE;
    }
    if (together.max_nodes && !together.no_resize && !is_step() && client_shares_nodes())
        slurm_info("without --exclusive the job keeps the nodes that it starts on: only jobs that "
                   "hold whole nodes can be resized (in partitions of whole nodes all do)");
    return ESPANK_SUCCESS;
}

int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv)
{
    char problem[512];
    if (spank_remote(spank) == 1) {
        begin_step(spank, argc, argv);
        return ESPANK_SUCCESS;
    }
    if (place_text && !chunks_text) {
        slurm_error("--place=%.60s places chunks; add --chunks, as in --chunks=2:ncpus=4",
                    place_text);
        return REFUSE;
    }
    if (!client_kept(problem, sizeof(problem)) || !client_begin_kept(problem, sizeof(problem))) {
        slurm_error("%s", problem);
        return REFUSE;
    }
    return stated ? check_widths(chunks_text != NULL) : ESPANK_SUCCESS;
}
