// SPDX-License-Identifier: GPL-2.0-or-later
#include "cycle/fallback.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "common/slurm_compat.h"
#include "sharing/coscheduling.h"
#include "sharing/extend.h"

// A backfill pass that was running when it was stopped ends within this time (bf_max_time is 30 s
// by default).
#define TIDY_FOR_MS 60000
#define TIDY_EVERY_MS 1000

static void tidy_from_now(fallback_t *fallback)
{
    fallback->tidy_ms = clock_ms();
    fallback->tidied_ms = fallback->tidy_ms + TIDY_FOR_MS;
}

void fallback_begin(fallback_t *fallback)
{
    *fallback = (fallback_t){.was_disabled = slurmctld_config.scheduling_disabled};
    slurmctld_config.scheduling_disabled = true;
    tidy_from_now(fallback); // slurmctld keeps the marks over a restart
}

// PluginDir may name several directories.
static void *open_backfill(void)
{
    void *plugin = NULL;
    char *rest = NULL;
    char *dirs = xstrdup(slurm_conf.plugindir);
    for (char *dir = strtok_r(dirs, ":", &rest); dir && !plugin; dir = strtok_r(NULL, ":", &rest)) {
        char *path = xstrdup_printf("%s/sched_backfill.so", dir);
        plugin = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
        xfree(path);
    }
    xfree(dirs);
    return plugin;
}

// Calls an entry point of the backfill plugin.
static bool call_backfill(const fallback_t *fallback, const char *name)
{
    int (*entry)(void) = NULL;
    *(void **)&entry = fallback->backfill ? dlsym(fallback->backfill, name) : NULL;
    if (!entry)
        return false;
    (void)entry(); // fini() returns nothing: the register is ignored
    return true;
}

void fallback_enter(fallback_t *fallback, const char *reason)
{
    if (fallback->active)
        return;
    fallback->active = true;
    fallback->times++;
    fallback->since_ms = clock_ms();
    snprintf(fallback->reason, sizeof(fallback->reason), "%s", reason);
    error(
        "bridge: falling back to Slurm's own backfill until the service answers; it is silent: %s",
        reason);
    slurmctld_config.scheduling_disabled = false; // backfill does not start while it is set
    if (!fallback->backfill) {
        fallback->backfill = open_backfill();
        if (!call_backfill(fallback, "init"))
            error("bridge: cannot load sched_backfill.so from %s: only Slurm's main scheduler "
                  "is left",
                  slurm_conf.plugindir);
    }
    schedule(true);
}

void fallback_leave(fallback_t *fallback)
{
    if (!fallback->active)
        return;
    double seconds = (double)(clock_ms() - fallback->since_ms) / 1000.0;
    slurmctld_config.scheduling_disabled = true;
    fallback->active = false;
    fallback->past_s += seconds;
    tidy_from_now(fallback);
    info("bridge: the service answers again after %.1f s: it schedules", seconds);
}

void fallback_assert(const fallback_t *fallback)
{
    if (!fallback->active)
        slurmctld_config.scheduling_disabled = true;
}

void fallback_tidy(fallback_t *fallback, lock_scope_t *locks)
{
    int64_t now_ms = clock_ms();
    if (now_ms < fallback->tidy_ms ||
        (!fallback->active && fallback->tidy_ms > fallback->tidied_ms))
        return;
    fallback->tidy_ms = now_ms + TIDY_EVERY_MS;
    if (!lock_scope_take(locks, LOCK_SCOPE_APPLY))
        return;
    if (fallback->active) {
        coscheduling_restore_all(); // before Slurm starts those that wait again
        extend_hosts_in_fallback(time(NULL));
        lock_scope_give(locks);
        return;
    }
    for (int i = 0; i < node_record_count; i++) {
        node_record_t *node = compat_node(i);
        if (node && IS_NODE_PLANNED(node)) {
            node->node_state &= ~NODE_STATE_PLANNED;
            last_node_update = time(NULL);
        }
    }
    lock_scope_give(locks);
}

double fallback_seconds(const fallback_t *fallback)
{
    return fallback->past_s +
           (fallback->active ? (double)(clock_ms() - fallback->since_ms) / 1000.0 : 0);
}

void fallback_reconfig(const fallback_t *fallback)
{
    call_backfill(fallback, "sched_p_reconfig");
}

void fallback_end(fallback_t *fallback)
{
    if (fallback->backfill) {
        call_backfill(fallback, "fini");
        dlclose(fallback->backfill);
    }
    slurmctld_config.scheduling_disabled = fallback->was_disabled;
    fallback->backfill = NULL;
    fallback->active = false;
}
