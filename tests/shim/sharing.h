// SPDX-License-Identifier: GPL-2.0-or-later
// Hosts and guests in the mock of slurmctld.
#ifndef SHARING_H
#define SHARING_H

#include "applying.h"
#include "sharing/coscheduling.h"
#include "slurm_launch.h"

#define OPTION "_SLURM_SPANK_OPTION_schedbridge_"
#define UNSTATED 254 // NO_VAL8: the user said nothing of sharing

static Schedbridge__V1__Requeue requeues[MAX_CASES];
static Schedbridge__V1__Extend extensions[MAX_CASES];
static settings_t settings;

static inline void begin_shared(void) {
    begin();
    settings = (settings_t){.coschedule = COSCHEDULE_NEVER};
    coscheduling_configure(&settings);
    ((part_record_t *)part_list->items[0])->max_share = 2;
    mock.requeue_code = 0;
}

// A waiting job of all four CPUs of a node.
static inline job_record_t *consenting(uint32_t id, const char *consent) {
    job_record_t *job = waiting(id);
    job->details->share_res = UNSTATED;
    job->details->requeue = 1;
    job->details->num_tasks = job->details->min_cpus = 4;
    job->spank_job_env = calloc(3, sizeof(char *));
    if (consent) {
        job->spank_job_env_size = 2;
        job->spank_job_env[0] = xstrdup_printf(OPTION "coschedule=%s", consent);
        job->spank_job_env[1] = xstrdup(OPTION "max_slowdown=7.5%");
    }
    return job;
}

// Slurm gives it what it asks for.
static inline void fill(job_record_t *job) {
    for (uint32_t i = 0; i < job->job_resrcs->nhosts; i++)
        job->job_resrcs->cpus[i] = 4;
}

static inline job_record_t *host_on(uint32_t id, const char *nodes) {
    job_record_t *job = consenting(id, "host");
    start(job, nodes);
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    fill(job);
    return job;
}

// On n[1-3], so that it can have several guests.
static inline job_record_t *wide_host(uint32_t id) {
    job_record_t *job = consenting(id, "host");
    job->details->num_tasks = job->details->min_cpus = 12;
    job->details->min_nodes = job->details->max_nodes = 3;
    start(job, "n[1-3]");
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    fill(job);
    return job;
}

static inline void start_guest(job_record_t *guest, const job_record_t *host, const char *nodes) {
    static char number[16];
    snprintf(number, sizeof(number), "%u", host ? host->job_id : 99);
    start(guest, nodes)->host_job_id = number;
    EXPECT(apply());
}

static inline job_record_t *guest_of(uint32_t id, const job_record_t *host) {
    job_record_t *job = consenting(id, "guest");
    start_guest(job, host, host->nodes);
    expect_result(0, APPLIED, "");
    fill(job);
    return job;
}

static inline void requeue(const job_record_t *job, const char *reason) {
    Schedbridge__V1__Requeue *message = &requeues[count];
    schedbridge__v1__requeue__init(message);
    message->reason = (char *)reason;
    pb_decision_t *decision = decide(job);
    decision->action_case = PB(DECISION__ACTION_REQUEUE);
    decision->requeue = message;
    EXPECT(apply());
}

static inline void extend(const job_record_t *job, int64_t total_s) {
    Schedbridge__V1__Extend *message = &extensions[count];
    schedbridge__v1__extend__init(message);
    message->total_s = total_s;
    pb_decision_t *decision = decide(job);
    decision->action_case = PB(DECISION__ACTION_EXTEND);
    decision->extend = message;
    EXPECT(apply());
}

static inline job_record_t *host_of(const job_record_t *guest) {
    EXPECT(lock_scope_take(&locks, LOCK_SCOPE_READ));
    job_record_t *host = coscheduling_host(guest);
    lock_scope_give(&locks);
    return host;
}

static inline void finish(job_record_t *job) {
    mock_idle(job);
    job->job_state = JOB_COMPLETE;
}

#endif
