// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/client.h"

#include <dlfcn.h>
#include <getopt.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Slurm's functions on options (src/common/slurm_opt.h); `opt` is the client's own data.
typedef struct {
    void *opt;
    struct option *(*table_create)(void *opt, char **letters);
    void (*table_destroy)(struct option *table);
    int (*process)(void *opt, int option, const char *value, bool by_env, bool early);
    bool (*isset)(void *opt, const char *name);
    bool (*reset)(void *opt, const char *name);
    char *(*get)(void *opt, const char *name);
    bool (*typed)(void *opt, int option);
} client_t;

// Options that the chunks set, or that make no sense beside them.
static const char *const instead[] = {"nodes",
                                      "ntasks",
                                      "cpus-per-task",
                                      "ntasks-per-node",
                                      "ntasks-per-socket",
                                      "ntasks-per-core",
                                      "ntasks-per-gpu",
                                      "mincpus",
                                      "gres",
                                      "gpus",
                                      "gpus-per-node",
                                      "gpus-per-task",
                                      "gpus-per-socket",
                                      "cpus-per-gpu",
                                      "tres-per-task",
                                      "mem-per-gpu",
                                      "overcommit",
                                      "nodelist"};

// The options set here, as the client writes them.
static struct {
    const char *name;
    char *written;
} ours[CHUNKS_MAX_OPTIONS];
static size_t n_ours;

static bool find(client_t *client)
{
    client->opt = dlsym(RTLD_DEFAULT, "opt");
    client->table_create = dlsym(RTLD_DEFAULT, "slurm_option_table_create");
    client->table_destroy = dlsym(RTLD_DEFAULT, "slurm_option_table_destroy");
    client->process = dlsym(RTLD_DEFAULT, "slurm_process_option");
    client->isset = dlsym(RTLD_DEFAULT, "slurm_option_isset");
    client->reset = dlsym(RTLD_DEFAULT, "slurm_option_reset");
    client->get = dlsym(RTLD_DEFAULT, "slurm_option_get");
    client->typed = dlsym(RTLD_DEFAULT, "slurm_option_set_by_cli");
    return client->opt && client->table_create && client->table_destroy && client->process &&
           client->isset && client->reset && client->get && client->typed;
}

bool client_found(void)
{
    client_t client;
    return find(&client);
}

static char *current(const client_t *client, const char *name)
{
    // Slurm's own allocator gives it; a few bytes, for the life of a command.
    char *found = client->isset(client->opt, name) ? client->get(client->opt, name) : NULL;
    return strdup(found ? found : "");
}

static void forget(const client_t *client)
{
    for (size_t i = 0; i < n_ours; i++) {
        client->reset(client->opt, ours[i].name);
        free(ours[i].written);
    }
    n_ours = 0;
}

static bool set_one(const client_t *client, const struct option *table,
                    const chunks_option_t *option, char *problem, size_t bytes)
{
    const struct option *entry = table;
    while (entry->name && strcmp(entry->name, option->name) != 0)
        entry++;
    if (!entry->name) {
        snprintf(problem, bytes,
                 "--chunks: this version of Slurm has no --%s=%.60s, which they need", option->name,
                 option->value ? option->value : "");
        return false;
    }
    if (client->typed(client->opt, entry->val)) {
        snprintf(problem, bytes, "--chunks mean --%s=%.60s, but --%s is given, too: leave out one",
                 option->name, option->value ? option->value : "", option->name);
        return false;
    }
    // Values from SBATCH_... variables are overridden, as by a typed option.
    if (client->process(client->opt, entry->val, option->value, false, false) != 0) {
        snprintf(problem, bytes, "--chunks: Slurm refuses --%s=%.100s, which they mean",
                 option->name, option->value ? option->value : "");
        return false;
    }
    ours[n_ours].name = entry->name;
    ours[n_ours++].written = current(client, option->name);
    return true;
}

bool client_set(const chunks_options_t *options, char *problem, size_t bytes)
{
    client_t client;
    char *letters = NULL;
    if (!find(&client)) {
        snprintf(problem, bytes,
                 "--chunks: this command cannot express them; state them "
                 "with --nodes, --ntasks and --cpus-per-task");
        return false;
    }
    forget(&client);
    struct option *table = client.table_create(client.opt, &letters);
    bool good = table != NULL;
    for (size_t i = 0; i < options->count && good; i++)
        good = set_one(&client, table, &options->items[i], problem, bytes);
    if (table)
        client.table_destroy(table);
    return good;
}

static bool is_ours(const char *name)
{
    for (size_t i = 0; i < n_ours; i++) {
        if (!strcmp(ours[i].name, name))
            return true;
    }
    return false;
}

bool client_kept(char *problem, size_t bytes)
{
    client_t client;
    if (!n_ours || !find(&client))
        return true;
    for (size_t i = 0; i < n_ours; i++) {
        char *now = current(&client, ours[i].name);
        // Slurm itself adds the CPUs of a task to the task's needs.
        bool same = !strcmp(ours[i].name, "tres-per-task") ? strstr(now, ours[i].written) != NULL
                                                           : !strcmp(now, ours[i].written);
        if (!same && now[0])
            snprintf(problem, bytes,
                     "--chunks mean --%s=%.60s, but --%s=%.60s is given, too: leave out one",
                     ours[i].name, ours[i].written, ours[i].name, now);
        else if (!same)
            snprintf(problem, bytes,
                     "--chunks mean --%s=%.60s, which another option replaces: leave that out",
                     ours[i].name, ours[i].written);
        free(now);
        if (!same)
            return false;
    }
    for (size_t i = 0; i < sizeof(instead) / sizeof(instead[0]); i++) {
        if (!is_ours(instead[i]) && client.isset(client.opt, instead[i])) {
            snprintf(problem, bytes, "--%s beside --chunks: state it in the chunks", instead[i]);
            return false;
        }
    }
    return true;
}

// The begin time that --fixed-start has set, as the client writes it; NULL: none.
static char *begin_written;

bool client_begin(const char *when, char *problem, size_t bytes)
{
    client_t client;
    char *letters = NULL;
    if (!find(&client)) {
        snprintf(problem, bytes, "--fixed-start: this command has no begin time to set");
        return false;
    }
    struct option *table = client.table_create(client.opt, &letters);
    const struct option *entry = table;
    while (entry && entry->name && strcmp(entry->name, "begin") != 0)
        entry++;
    bool good = entry && entry->name != NULL;
    if (!good) {
        snprintf(problem, bytes, "--fixed-start: this command has no begin time to set");
    } else if (!begin_written && client.typed(client.opt, entry->val)) {
        snprintf(problem, bytes,
                 "--fixed-start sets the time at which the job begins: leave out --begin");
        good = false;
    } else if (client.process(client.opt, entry->val, when, false, false) != 0) {
        snprintf(problem, bytes,
                 "--fixed-start=%.60s: give a time as --begin takes it, for instance "
                 "--fixed-start=18:00 or --fixed-start=2026-12-24T18:00",
                 when);
        good = false;
    } else {
        free(begin_written);
        begin_written = current(&client, "begin");
    }
    if (table)
        client.table_destroy(table);
    return good;
}

bool client_begin_kept(char *problem, size_t bytes)
{
    client_t client;
    if (!begin_written || !find(&client))
        return true;
    char *now = current(&client, "begin");
    bool same = !strcmp(now, begin_written);
    if (!same)
        snprintf(problem, bytes,
                 "--fixed-start sets the time at which the job begins: leave out --begin");
    free(now);
    return same;
}

bool client_nodes(uint32_t *min, uint32_t *max)
{
    client_t client;
    if (!find(&client))
        return false;
    char *stated = current(&client, "nodes"), rest[2] = "";
    int count = sscanf(stated, "%u-%u%1s", min, max, rest);
    if (count == 1) {
        *max = *min;
        count = sscanf(stated, "%u%1s", min, rest) == 1 ? 2 : 0;
    }
    free(stated);
    return count == 2;
}

bool client_shares_nodes(void)
{
    client_t client;
    if (!find(&client))
        return false;
    char *stated = current(&client, "exclusive");
    bool whole = !strcmp(stated, "exclusive") || !strcmp(stated, "topo");
    free(stated);
    return !whole;
}

const char *client_generic(void)
{
    const slurm_conf_t *conf = dlsym(RTLD_DEFAULT, "slurm_conf");
    return conf ? conf->gres_plugins : NULL;
}
