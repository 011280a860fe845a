// SPDX-License-Identifier: GPL-2.0-or-later
// sched/bridge: Slurm's scheduler is a service beside slurmctld. Entry points and the only thread.
//
// The thread detects changes, reports them to the service and carries out its decisions. While the
// service is silent, Slurm's own schedulers decide. A backup slurmctld does not load this plugin;
// if some version did, the thread would find no tables and stay idle.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/slurm_compat.h"
#include "cycle/cycle.h"
#include "cycle/epoch.h"
#include "resize/resize.h"
#include "sharing/coscheduling.h"

#define FINI_S 5
#define LONGEST_NAP_MS 100

#define EXPORTED __attribute__((visibility("default")))

EXPORTED const char plugin_name[] = "schedbridge: decisions by a service beside slurmctld";
EXPORTED const char plugin_type[] = "sched/bridge";
EXPORTED const uint32_t plugin_version = SLURM_VERSION_NUMBER;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t woken;
static pthread_t thread;
static bool running, stop, reread;
static cycle_t *bridge;

static void complain(const char *line)
{
    error("bridge: %s", line);
}

// Sleeps until the next check is due. False: the plugin is being unloaded.
static bool look_again(unsigned poll_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)poll_ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&lock);
    while (!stop && !reread && pthread_cond_timedwait(&woken, &lock, &until) != ETIMEDOUT)
        ;
    bool go_on = !stop;
    pthread_mutex_unlock(&lock);
    return go_on;
}

// Replaces the wire.
static void open_wire(cycle_t *cycle)
{
    char problem[200];
    wire_t *fresh = wire_open(&cycle->settings, problem, sizeof(problem));
    pthread_mutex_lock(&lock);
    wire_t *old = cycle->wire;
    cycle->wire = fresh;
    pthread_mutex_unlock(&lock);
    wire_close(old);
    if (!fresh)
        fallback_enter(&cycle->fallback, problem);
}

static void begin_epoch(cycle_t *cycle, const char *directory)
{
    char problem[300];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t now_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    cycle->epoch = epoch_begin(directory, now_us, problem, sizeof(problem));
    if (problem[0])
        error("bridge: %s: if the clock has been set back, the service will reject this slurmctld "
              "as an older one for a while",
              problem);
}

// The service names free nodes only; where Slurm chooses nodes, its own preemption rules apply.
static void complain_of_preemption(const char *type)
{
    if (type && type[0] && xstrcmp(type, "preempt/none"))
        error("bridge: PreemptType=%s: jobs are preempted only for jobs whose nodes Slurm chooses, "
              "not the service; set PreemptType=preempt/none (docs/ADMIN.md)",
              type);
}

// Reads the settings; reopens the wire if they have changed. False: slurmctld is shutting down.
static bool configure(cycle_t *cycle)
{
    settings_t former = cycle->settings;
    const settings_t *settings = &cycle->settings;
    if (!lock_scope_take(&cycle->locks, LOCK_SCOPE_READ))
        return false;
    char *parameters = xstrdup(slurm_conf.sched_params);
    char *state = xstrdup(slurm_conf.state_save_location);
    char *preempt = xstrdup(slurm_conf.preempt_type);
    uid_t slurm_user = slurm_conf.slurm_user_id;
    bool resizes = resize_is_permitted();
    lock_scope_give(&cycle->locks);
    settings_read(&cycle->settings, parameters, complain);
    cycle->settings.slurm_user = slurm_user;
    cycle->settings.resizes = resizes;
    coscheduling_configure(settings);
    bool defer = xstrcasestr(parameters, "defer") != NULL;
    if (!cycle->epoch)
        begin_epoch(cycle, state);
    if (!cycle->wire)
        complain_of_preemption(preempt);
    xfree(parameters);
    xfree(state);
    xfree(preempt);
    if (cycle->wire && !memcmp(&former, settings, sizeof(former)))
        return true;
    if (!defer)
        error("bridge: SchedulerParameters lacks \"defer\": srun and salloc will start jobs on "
              "their own, bypassing the service");
    if (!resizes)
        info("bridge: SchedulerParameters lacks \"permit_job_expansion\", or has "
             "\"disable_job_shrink\": running jobs keep the nodes they have");
    info("bridge: service at %s, silence %u s, tick %u s, batches of %u ms, poll every %u ms",
         settings->address[0] ? settings->address : settings->socket, settings->silence_s,
         settings->tick_s, settings->batch_ms, settings->poll_ms);
    open_wire(cycle);
    cycle_forget(cycle);
    return true;
}

static bool take_reread(void)
{
    pthread_mutex_lock(&lock);
    bool wanted = reread;
    reread = false;
    pthread_mutex_unlock(&lock);
    return wanted;
}

// Until a check may be due; not long, as Slurm's own schedulers must be kept stopped.
static unsigned nap_ms(const cycle_t *cycle)
{
    int64_t rests_ms = MIN(cycle_rests_ms(cycle), LONGEST_NAP_MS);
    return (unsigned)MAX(rests_ms, (int64_t)cycle->settings.poll_ms);
}

static void *run(void *unused)
{
    cycle_t *cycle = bridge;
    bool configured = false;
    (void)unused;
    pthread_setname_np(pthread_self(), "bridge");
    // Slurm's tables do not exist yet when init() is called.
    while (look_again(configured ? nap_ms(cycle) : 10)) {
        if (take_reread() || !configured) {
            configured = configure(cycle);
            fallback_reconfig(&cycle->fallback);
        }
        if (configured)
            fallback_tidy(&cycle->fallback, &cycle->locks);
        if (configured && cycle->wire && cycle_due(cycle))
            cycle_run(cycle);
    }
    return NULL;
}

static cycle_t *new_cycle(void)
{
    cycle_t *cycle = calloc(1, sizeof(*cycle));
    if (!cycle)
        abort();
    cycle->locks.batch_ms = 5;
    cycle->full = true;
    return cycle;
}

// The code stays mapped after an unload: a thread that could not be ended in time still runs it.
static void pin(void)
{
    Dl_info self;
    if (dladdr((void *)&plugin_version, &self) && self.dli_fname)
        (void)dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

EXPORTED int init(void)
{
    pthread_condattr_t monotonic;
    pthread_mutex_lock(&lock);
    if (running) {
        pthread_mutex_unlock(&lock);
        return SLURM_SUCCESS;
    }
    pin();
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&woken, &monotonic);
    pthread_condattr_destroy(&monotonic);
    stop = reread = false;
    bridge = new_cycle();
    if (slurmctld_config.scheduling_disabled) {
        // no_backup_scheduling, or an inactive cluster of a federation
        info("bridge: scheduling is disabled: idle");
        free(bridge);
        bridge = NULL;
    } else {
        fallback_begin(&bridge->fallback);
        running = pthread_create(&thread, NULL, run, NULL) == 0;
        if (!running) {
            error("bridge: no thread: %m");
            fallback_end(&bridge->fallback);
            free(bridge);
            bridge = NULL;
        }
    }
    bool good = running || !bridge;
    pthread_mutex_unlock(&lock);
    return good ? SLURM_SUCCESS : SLURM_ERROR;
}

EXPORTED void fini(void)
{
    struct timespec until;
    pthread_mutex_lock(&lock);
    bool was_running = running;
    running = false;
    stop = true;
    if (was_running) {
        if (bridge->wire)
            wire_interrupt(bridge->wire);
        pthread_cond_signal(&woken);
    }
    pthread_mutex_unlock(&lock);
    if (!was_running)
        return;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += FINI_S;
    if (pthread_timedjoin_np(thread, NULL, &until)) {
        error("bridge: the thread does not end within %d s: it is abandoned", FINI_S);
        pthread_detach(thread);
        slurmctld_config.scheduling_disabled = bridge->fallback.was_disabled;
        return;
    }
    fallback_end(&bridge->fallback);
    wire_close(bridge->wire);
    sent_state_clear(&bridge->sent_state);
    decision_results_clear(&bridge->results);
    free(bridge);
    bridge = NULL;
}

EXPORTED int sched_p_reconfig(void)
{
    pthread_mutex_lock(&lock);
    reread = running;
    if (running)
        pthread_cond_signal(&woken);
    pthread_mutex_unlock(&lock);
    return SLURM_SUCCESS;
}
