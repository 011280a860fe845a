// SPDX-License-Identifier: GPL-2.0-or-later
#include "rules/job_limits.h"

typedef struct {
    const slurmdb_qos_rec_t *first, *second;
    const slurmdb_assoc_rec_t *assoc;
    double factor; // of the association's limits, by a QOS; not positive: none
} sources_t;

static bool has_factor(const slurmdb_qos_rec_t *qos)
{
    return qos && !fuzzy_equal(qos->limit_factor, INFINITE);
}

static sources_t sources_of(job_record_t *job)
{
    slurmdb_qos_rec_t *first = NULL, *second = NULL;
    acct_policy_set_qos_order(job, &first, &second);
    const slurmdb_qos_rec_t *of = has_factor(first) ? first : has_factor(second) ? second : NULL;
    return (sources_t){first, second, job->assoc_ptr, of ? of->limit_factor : -1};
}

static uint64_t scaled(uint64_t limit, double factor)
{
    if (factor <= 0 || limit == NO_VAL64 || limit == INFINITE64)
        return limit;
    double found = (double)limit * factor;
    return found < 9e18 ? (uint64_t)found : INFINITE64;
}

// Of the first of a job's QOSes that has one, else of its association; INFINITE64: none.
static uint64_t max_of(const sources_t *from, int kind)
{
    if (from->first && from->first->max_tres_pj_ctld[kind] != INFINITE64)
        return from->first->max_tres_pj_ctld[kind];
    if (from->second && from->second->max_tres_pj_ctld[kind] != INFINITE64)
        return from->second->max_tres_pj_ctld[kind];
    return from->assoc ? scaled(from->assoc->max_tres_ctld[kind], from->factor) : INFINITE64;
}

static uint64_t max_minutes_of(const sources_t *from, int kind)
{
    if (from->first && from->first->max_tres_mins_pj_ctld[kind] != INFINITE64)
        return from->first->max_tres_mins_pj_ctld[kind];
    if (from->second && from->second->max_tres_mins_pj_ctld[kind] != INFINITE64)
        return from->second->max_tres_mins_pj_ctld[kind];
    return from->assoc ? from->assoc->max_tres_mins_ctld[kind] : INFINITE64;
}

// The time by which Slurm multiplies the amounts: even for a running job it assumes the present
// width from the start on.
static uint64_t minutes_of(const job_record_t *job)
{
    const slurmdb_qos_rec_t *qos = job->qos_ptr;
    uint64_t minutes = job->time_limit;
    if (qos && qos->usage_factor >= 0 && (qos->flags & QOS_FLAG_USAGE_FACTOR_SAFE) &&
        (job->time_limit != INFINITE || qos->usage_factor < 1))
        minutes = (uint64_t)((double)minutes * qos->usage_factor);
    return minutes;
}

static bool is_counted(const job_record_t *job, int kind, uint64_t added)
{
    uint64_t held = job->tres_alloc_cnt[kind];
    bool free_of = job->limit_set.tres && job->limit_set.tres[kind] == ADMIN_SET_LIMIT;
    return added && added < NO_CONSUME_VAL64 && held < NO_CONSUME_VAL64 && !free_of;
}

verdict_t job_limits_judge(job_record_t *job, const uint64_t *added)
{
    assoc_mgr_lock_t locks = {.assoc = READ_LOCK, .qos = READ_LOCK, .tres = READ_LOCK};
    verdict_t verdict = APPLIED;
    if (!(accounting_enforce & ACCOUNTING_ENFORCE_LIMITS) || !job->tres_alloc_cnt || !added)
        return APPLIED;
    assoc_mgr_lock(&locks);
    sources_t from = sources_of(job);
    unsigned long long minutes = minutes_of(job);
    for (int kind = 0; kind < slurmctld_tres_cnt && is_applied(&verdict); kind++) {
        if (!is_counted(job, kind, added[kind]))
            continue;
        const char *name = assoc_mgr_tres_name_array[kind];
        unsigned long long wanted = job->tres_alloc_cnt[kind] + added[kind];
        unsigned long long maximum = max_of(&from, kind), spent = max_minutes_of(&from, kind);
        if (maximum != INFINITE64 && wanted > maximum)
            verdict = LIMITED("it would have %s=%llu, a limit in accounting (MaxTRES) lets it have "
                              "%llu",
                              name, wanted, maximum);
        else if (spent != INFINITE64 && minutes && wanted > spent / minutes)
            verdict = LIMITED("it would have %s=%llu for %llu minutes, a limit in accounting "
                              "(MaxTRESMins) lets it have %llu minutes",
                              name, wanted, minutes, spent);
    }
    assoc_mgr_unlock(&locks);
    return verdict;
}

static bool are_like(const node_record_t *one, bitstr_t *nodes)
{
    for (bitoff_t at = 0; (at = compat_next_bit(nodes, at)) >= 0; at++) {
        const node_record_t *node = compat_node((int)at);
        if (node->cpus_efctv != one->cpus_efctv || node->real_memory != one->real_memory)
            return false;
    }
    return true;
}

verdict_t job_limits_foresee(job_record_t *job, bitstr_t *added)
{
    uint64_t amounts[MAX(1, slurmctld_tres_cnt)], nodes = (uint64_t)bit_set_count(added);
    if (!job->tres_alloc_cnt || !job->node_cnt)
        return APPLIED;
    // Nodes equal to its own have the same resources; others are checked once the helper has them.
    const node_record_t *one = compat_node((int)bit_ffs(job->node_bitmap));
    bool alike = are_like(one, job->node_bitmap) && are_like(one, added);
    for (int kind = 0; kind < slurmctld_tres_cnt; kind++) {
        uint64_t held = job->tres_alloc_cnt[kind];
        amounts[kind] = alike && held < NO_CONSUME_VAL64 ? held * nodes / job->node_cnt : 0;
    }
    amounts[TRES_ARRAY_NODE] = nodes;
    amounts[TRES_ARRAY_CPU] = 0;
    for (bitoff_t at = 0; (at = compat_next_bit(added, at)) >= 0; at++)
        amounts[TRES_ARRAY_CPU] += compat_node((int)at)->cpus_efctv;
    return job_limits_judge(job, amounts);
}
