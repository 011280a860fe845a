// SPDX-License-Identifier: GPL-2.0-or-later
// The time limits of a job's partition, QOS and association.
#ifndef BRIDGE_WALL_LIMIT_H
#define BRIDGE_WALL_LIMIT_H

#include "common/slurm_compat.h"

// The longest time limit of the job in this partition, in minutes; INFINITE: none. Slurm itself
// checks a limit that the plugin raises against the partition's only.
uint32_t longest_minutes(const job_record_t *job, const part_record_t *part);

// The same over all partitions that the job asks for, without those partitions' own MaxTime.
uint32_t longest_minutes_anywhere(const job_record_t *job);

#endif
