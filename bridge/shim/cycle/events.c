// SPDX-License-Identifier: GPL-2.0-or-later
#include "cycle/events.h"

#include "common/hash.h"
#include "common/slurm_compat.h"
#include "report/allocation.h"

static void hash_nodes(bridge_hash_t *hash, bitstr_t *nodes)
{
    hash_number(hash, nodes ? nodes_fingerprint(nodes) : 0);
}

uint64_t events_fingerprint(void)
{
    static const slurmctld_lock_t read_nodes =
        COMPAT_LOCKS(NO_LOCK, NO_LOCK, READ_LOCK, NO_LOCK, NO_LOCK);
    bridge_hash_t hash = BRIDGE_HASH_START;
    hash_number(&hash, slurmctld_diag_stats.jobs_submitted);
    hash_number(&hash, slurmctld_diag_stats.jobs_completed);
    hash_number(&hash, slurmctld_diag_stats.jobs_canceled);
    hash_number(&hash, slurmctld_diag_stats.jobs_failed);
    hash_number(&hash, (uint64_t)last_job_update);
    hash_number(&hash, (uint64_t)last_node_update);
    hash_number(&hash, (uint64_t)last_part_update);
    hash_number(&hash, (uint64_t)last_resv_update);
    hash_number(&hash, (uint64_t)last_license_update);
    hash_number(&hash, (uint64_t)slurm_conf.last_update);
    lock_slurmctld(read_nodes);
    hash_nodes(&hash, avail_node_bitmap);
    hash_nodes(&hash, cg_node_bitmap);
    hash_nodes(&hash, idle_node_bitmap);
    unlock_slurmctld(read_nodes);
    return hash_end(hash);
}

time_t events_latest(void)
{
    time_t latest = last_job_update;
    latest = MAX(latest, last_node_update);
    latest = MAX(latest, last_part_update);
    latest = MAX(latest, last_resv_update);
    return MAX(latest, last_license_update);
}
