// SPDX-License-Identifier: GPL-2.0-or-later
// Two jobs on the same CPUs: which jobs may share, and how Slurm is made to allow it.
//
// A partition in which jobs may share has OverSubscribe=YES:2. There a job shares its CPUs only if
// details->share_res is 1: a user sets that with --oversubscribe, and this file sets it for the
// jobs that it starts to share. Hence Slurm's own schedulers, in fallback, pair only jobs whose
// users requested that; --exclusive is respected (with FORCE it would not be); and as there are two
// rows, no third job of the partition fits. Jobs that share also have WHOLE_NODE_USER
// (--exclusive=user), so that Slurm places no --oversubscribe job of another user beside them.
//
// A guest runs on some or all nodes of one host. A host holds all CPUs of all its nodes, and may
// have several guests, each on different nodes.
//
// All functions need LOCK_SCOPE_APPLY, those of const jobs LOCK_SCOPE_READ.
#ifndef BRIDGE_COSCHEDULING_H
#define BRIDGE_COSCHEDULING_H

#include <stdbool.h>

#include "common/slurm_compat.h"
#include "common/verdict.h"
#include "options/coschedule.h"
#include "wire/settings.h"

// Applies the site's settings; call it after they were read.
void coscheduling_configure(const settings_t *settings);

// Whether the second of two jobs can be started in a partition.
bool coscheduling_is_shared(const part_record_t *part);

// The user's choice, or the site's setting if there is none. COSCHEDULE_NEVER also for jobs that
// cannot share: those with --exclusive or GRES, and running jobs that were not started to share or
// do not hold all CPUs of their nodes.
coschedule_t coscheduling_of(const job_record_t *job);

// The same for the service, which has its own rules for jobs that state nothing:
// COSCHEDULE_UNSTATED where the site's setting decides.
coschedule_t coscheduling_told(const job_record_t *job);

// The user's bound on the slowdown, in thousandths; 0: none is stated.
uint32_t coscheduling_slowdown(const job_record_t *job);

// The host of a running guest, while both run; else NULL.
job_record_t *coscheduling_host(const job_record_t *guest);

// Whether `job` may start as a guest of `host` on these of the host's nodes.
verdict_t coscheduling_judge(const job_record_t *job, const job_record_t *host,
                             const part_record_t *part, bitstr_t *nodes);

// Whether a job that is no guest may start on these nodes: not as the third job on a node.
verdict_t coscheduling_judge_third(const job_record_t *job, const part_record_t *part,
                                   bitstr_t *nodes);

// Whether a job that starts on these nodes without a host can have a guest later: it consents, the
// nodes are idle, and it will hold all their CPUs.
bool coscheduling_will_host(const job_record_t *job, const part_record_t *part, bitstr_t *nodes);

// Call these before and after Slurm selects nodes for a job that is to share `nodes`, without
// releasing the locks in between. `host` is NULL for a job that is no guest.
void coscheduling_begin(job_record_t *job, const job_record_t *host, bitstr_t *nodes);
void coscheduling_end(job_record_t *job, job_record_t *host, bitstr_t *nodes, bool started);

// Writes the note of a job that has just started to share: its host (NULL: none), and the previous
// values of share_res and whole_node.
void coscheduling_note(job_record_t *job, job_record_t *host, uint8_t share_res,
                       uint8_t whole_node);

// Whether a guest has ended or waits again, and its host does not know yet (`hosting.h`). Needs the
// jobs for reading.
bool coscheduling_has_left(const job_record_t *job);

// Ends the time that the host of such a guest counts, if it was the last one.
void coscheduling_leave(job_record_t *job);

// The same for all jobs.
void coscheduling_leave_all(void);

// Resets a job that is pending again; does nothing to others.
void coscheduling_restore(job_record_t *job);

// The same for all jobs; for the fallback.
void coscheduling_restore_all(void);

#endif
