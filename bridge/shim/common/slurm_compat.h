// SPDX-License-Identifier: GPL-2.0-or-later
// Slurm's headers, and the differences between its versions: this plugin is written for 24.11, and
// the names below adapt it to 22.05 up to 26.05. A plugin must be compiled against exactly the
// version that loads it.
#ifndef BRIDGE_SLURM_COMPAT_H
#define BRIDGE_SLURM_COMPAT_H

#include "config.h"

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdbool.h>

#include "src/common/assoc_mgr.h"
#include "src/common/bitstring.h"
#include "src/common/hostlist.h"
#include "src/common/list.h"
#include "src/common/log.h"
#include "src/common/macros.h"
#include "src/common/node_conf.h"
#if __has_include("src/common/node_features.h")
#include "src/common/node_features.h"
#endif
#include "src/common/read_config.h"
#include "src/common/slurm_protocol_api.h"
#include "src/common/slurm_protocol_defs.h"
#include "src/common/xmalloc.h"
#include "src/common/xstring.h"

#include "src/slurmctld/acct_policy.h"
#include "src/slurmctld/fed_mgr.h"
#include "src/slurmctld/job_scheduler.h"
#include "src/slurmctld/licenses.h"
#include "src/slurmctld/locks.h"
#include "src/slurmctld/node_scheduler.h"
#include "src/slurmctld/reservation.h"
#include "src/slurmctld/slurmctld.h"
#include "src/slurmctld/state_save.h"

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
#include "src/common/job_resources.h"
#include "src/interfaces/burst_buffer.h"
#include "src/interfaces/gres.h"
#include "src/interfaces/select.h"
#else
#include "src/common/gres.h"
#include "src/common/job_resources.h"
#include "src/common/node_select.h"
#include "src/slurmctld/burst_buffer.h"
typedef struct xlist list_t;
typedef struct job_details job_details_t;
#endif

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
#include "src/common/job_state_reason.h"
#include "src/stepmgr/gres_stepmgr.h"
#include "src/stepmgr/srun_comm.h"
#else
#include "src/slurmctld/gres_ctld.h"
#include "src/slurmctld/srun_comm.h"
#endif
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
#include "src/slurmctld/proc_req.h"
#endif

// Of slurmctld's power saving; exported, but in no header.
extern bitstr_t *exc_node_bitmap;
extern bool power_save_enabled;

// ---------------------------------------------------------------- 26.05: one more lock class
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
#define COMPAT_LOCKS(conf_level, job_level, node_level, part_level, fed_level)                     \
    {.conf = conf_level, .job = job_level, .node = node_level, .part = part_level, .fed = fed_level}
static inline uint32_t compat_job_id(const job_record_t *job)
{
    return job->step_id.job_id;
}
#else
#define COMPAT_LOCKS(conf_level, job_level, node_level, part_level, fed_level)                     \
    {conf_level, job_level, node_level, part_level, fed_level}
static inline uint32_t compat_job_id(const job_record_t *job)
{
    return job->job_id;
}
#endif

// ---------------------------------------------------------------- number of tasks
// Whether the user stated the number of tasks; otherwise Slurm has derived it from the nodes.
static inline bool compat_tasks_are_stated(const job_record_t *job)
{
#ifdef JOB_NTASKS_SET
    return (job->bit_flags & JOB_NTASKS_SET) != 0;
#else
    return job->details->num_tasks && job->details->num_tasks != NO_VAL;
#endif
}

// ---------------------------------------------------------------- lists, bits, licences
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 11, 0)
typedef struct listIterator list_itr_t;
#endif

// The first set bit at or after one; -1: none.
static inline bitoff_t compat_next_bit(bitstr_t *bits, bitoff_t from)
{
    if (from >= bit_size(bits))
        return -1;
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
    return bit_ffs_from_bit(bits, from);
#else
    while (from < bit_size(bits) && !bit_test(bits, from))
        from++;
    return from < bit_size(bits) ? from : -1;
#endif
}

// The cluster's licences; *copy is to be freed.
static inline list_t *compat_licences(list_t **copy)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
    return *copy = cluster_license_copy();
#else
    *copy = NULL;
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
    return cluster_license_list;
#else
    return license_list;
#endif
#endif
}

// Licences that are in use outside the cluster.
static inline uint32_t compat_used_elsewhere(const licenses_t *licence)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
    return licence->last_deficit;
#else
    (void)licence;
    return 0;
#endif
}

#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 2, 0)
#define ESLURM_LICENSES_UNAVAILABLE -2 // not defined in this version: never returned
#endif

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
#define COMPAT_CR_MEMORY SELECT_MEMORY
#define COMPAT_CR_WHOLE_CORES (SELECT_CORE | SELECT_SOCKET)
#else
#define COMPAT_CR_MEMORY CR_MEMORY
#define COMPAT_CR_WHOLE_CORES (CR_CORE | CR_SOCKET)
#endif

// ---------------------------------------------------------------- arrays, deadlines
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
#define compat_array_post_sched(job) job_array_post_sched(job, true)
#define compat_array_split(job) job_array_split(job, true)
#else
#define compat_array_post_sched(job) job_array_post_sched(job)
#define compat_array_split(job) job_array_split(job)
#endif
#define compat_deadline_ok(job) deadline_ok(job, (char *)__func__)

// ---------------------------------------------------------------- states
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
#define compat_job_state_set(job, state) job_state_set(job, state)
#else
#define compat_job_state_set(job, state) ((job)->job_state = (state))
#endif
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 2, 0)
#define FAIL_CONSTRAINTS FAIL_BAD_CONSTRAINTS
#define WAIT_RESV_INVALID 0x7ffffffe // not defined in this version: never set
#endif
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
#define compat_reason_is_part(reason) job_state_reason_check(reason, JSR_PART)
#define compat_reason_string(reason) job_state_reason_string(reason)
#else
static inline bool compat_reason_is_part(uint32_t reason)
{
    return reason == WAIT_PART_NODE_LIMIT || reason == WAIT_PART_TIME_LIMIT ||
           reason == WAIT_PART_DOWN || reason == WAIT_PART_INACTIVE || reason == WAIT_PART_CONFIG;
}
#define compat_reason_string(reason) job_reason_string(reason)
#endif

// ---------------------------------------------------------------- partitions
static inline bool compat_limits_sockets(const part_record_t *part)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
    return part->max_cpus_per_socket != INFINITE && part->max_cpus_per_socket != NO_VAL;
#else
    (void)part;
    return false;
#endif
}

// ---------------------------------------------------------------- requests
// The allowed numbers of nodes if they are not a full range (-N 2,4); or NULL.
static inline const bitstr_t *compat_node_counts(const job_details_t *details)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
    return details->job_size_bitmap;
#else
    (void)details;
    return NULL;
#endif
}

// The QOS that a job names if they are several, by priority; or NULL.
static inline list_t *compat_qos_list(const job_record_t *job)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0)
    return job->qos_list;
#else
    (void)job;
    return NULL;
#endif
}

// ---------------------------------------------------------------- starting jobs
static inline int compat_select_nodes(job_record_t *job)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
    job_node_select_t select = {.job_ptr = job};
    return select_nodes(&select, false, false, SLURMDB_JOB_FLAG_SCHED);
#else
    return select_nodes(job, false, NULL, NULL, false, SLURMDB_JOB_FLAG_SCHED);
#endif
}

// Tasks on each of the job's nodes, in the order of the node table, as distribution "arbitrary" has
// them.
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
#define COMPAT_TASKS_ON_NODES true
#define compat_tasks_on_nodes(details) (&(details)->arbitrary_tpn)
#else
#define COMPAT_TASKS_ON_NODES false // Slurm distributes the tasks itself
static inline uint16_t **compat_tasks_on_nodes(job_details_t *details)
{
    static uint16_t *none;
    (void)details;
    return &none;
}
#endif

// ---------------------------------------------------------------- changing jobs
// Puts a running batch job back into the queue.
static inline int compat_requeue(job_record_t *job)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
    return job_requeue_internal(slurm_conf.slurm_user_id, job, false, 0);
#else
    return job_requeue(slurm_conf.slurm_user_id, job->job_id, NULL, false, 0);
#endif
}

// Names the job that update_job() is to change.
static inline void compat_update_of(job_desc_msg_t *asked, uint32_t job_id)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
    asked->step_id.job_id = job_id;
#else
    asked->job_id = job_id;
#endif
}

// The user whose groups a job runs with, if slurmctld knows it.
static inline void compat_copy_identity(job_desc_msg_t *asked, const job_record_t *job)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
    asked->id = job->id ? copy_identity(job->id) : NULL;
#else
    (void)asked, (void)job;
#endif
}

// A bitmap of exactly the named nodes; false if one is unknown.
static inline bool compat_nodes(char *names, bitstr_t **bitmap)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
    return node_name2bitmap(names, false, bitmap, NULL) == SLURM_SUCCESS;
#else
    return node_name2bitmap(names, false, bitmap) == SLURM_SUCCESS;
#endif
}

static inline void compat_set_job_tres(job_record_t *job, uint32_t nodes, uint64_t *tres)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
    gres_stepmgr_set_job_tres_cnt(job->gres_list_req, nodes, tres, true);
#else
    gres_ctld_set_job_tres_cnt(job->gres_list_req, nodes, tres, true);
#endif
}

static inline uint64_t compat_job_memory(job_record_t *job, uint64_t cpus, uint32_t nodes)
{
    bool by_user = (job->bit_flags & JOB_MEM_SET) != 0;
    uint16_t sockets = job_get_sockets_per_node(job);
    return job_get_tres_mem(job->job_resrcs, job->details->pn_min_memory, (uint32_t)cpus, nodes,
                            job->part_ptr, job->gres_list_req, by_user, sockets,
                            job->details->num_tasks);
}

// ---------------------------------------------------------------- nodes
// The node in a slot of the node table; NULL: the slot is empty.
static inline node_record_t *compat_node(int index)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(22, 5, 0)
    return node_record_table_ptr[index];
#else
    return &node_record_table_ptr[index];
#endif
}

#endif
