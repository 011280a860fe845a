// SPDX-License-Identifier: GPL-2.0-or-later
// Two jobs on the same CPUs: who may share with whom, under Slurm's own sharing.
//
// A partition in which jobs may share has OverSubscribe=YES:2. There Slurm lets a job share its
// CPUs only if details->share_res is 1: a user sets that with --oversubscribe, and this file sets
// it for jobs that it starts. So Slurm's own schedulers, in fallback, pair only jobs whose users
// wanted that; --exclusive holds (with FORCE it would not); and there are two rows, so that no
// third job of the partition fits. Jobs that share also have WHOLE_NODE_USER (--exclusive=user), so
// that Slurm puts no --oversubscribe job of another user beside them.
//
// A guest runs on some or all nodes of one host. A host holds all CPUs of all its nodes, and may
// have several guests, each on nodes of its own.
//
// All functions need LOCK_SCOPE_APPLY, those of const jobs LOCK_SCOPE_READ.
#ifndef BRIDGE_COSCHEDULING_H
#define BRIDGE_COSCHEDULING_H

#include <stdbool.h>

#include "common/slurm_compat.h"
#include "common/verdict.h"
#include "options/coschedule.h"
#include "wire/settings.h"

// Sets the site's settings; call it after they were read.
void coscheduling_configure(const settings_t *settings);

// Whether the second of two jobs can be started in a partition.
bool coscheduling_is_shared(const part_record_t *part);

// The user's choice, or the site's setting if there is none; COSCHEDULE_NEVER also for jobs that
// cannot share: with --exclusive or GRES, and running jobs that were not started to share or do not
// hold all CPUs of their nodes alone.
coschedule_t coscheduling_of(const job_record_t *job);

// The same for the service, which has rules of its own for those who state nothing:
// COSCHEDULE_UNSTATED where the site's settings decide.
coschedule_t coscheduling_told(const job_record_t *job);

// The user's bound on the slowdown, in thousandths; 0: none is stated.
uint32_t coscheduling_slowdown(const job_record_t *job);

// The running job on whose nodes a running one was started as a guest, while both run; else NULL.
job_record_t *coscheduling_host(const job_record_t *guest);

// Whether `job` may start as the guest of `host` on these of its nodes.
verdict_t coscheduling_judge(const job_record_t *job, const job_record_t *host,
                             const part_record_t *part, bitstr_t *nodes);

// Whether a job that is no guest may start on these nodes: not as the third one of a node.
verdict_t coscheduling_judge_third(const job_record_t *job, const part_record_t *part,
                                   bitstr_t *nodes);

// Whether a job that starts on these nodes without a host is to let a guest in later: it consents,
// and will hold all CPUs of nodes that are idle.
bool coscheduling_will_host(const job_record_t *job, const part_record_t *part, bitstr_t *nodes);

// Before Slurm selects nodes for a job that is to share `nodes`, and after that. `host` is NULL for
// a job that is no guest. Between the two no lock may be given.
void coscheduling_begin(job_record_t *job, const job_record_t *host, bitstr_t *nodes);
void coscheduling_end(job_record_t *job, job_record_t *host, bitstr_t *nodes, bool started);

// Notes with a job that has just started to share: its host (NULL: it has none), and what share_res
// and whole_node were before.
void coscheduling_note(job_record_t *job, job_record_t *host, uint8_t share_res,
                       uint8_t whole_node);

// Resets a job that waits again; does nothing to others.
void coscheduling_restore(job_record_t *job);

// All jobs, in fallback.
void coscheduling_restore_all(void);

#endif
