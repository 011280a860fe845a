// SPDX-License-Identifier: GPL-2.0-or-later
#include "decisions/actions.h"

#include "decisions/announce.h"
#include "decisions/reserve.h"
#include "decisions/start.h"
#include "report/node_power.h"
#include "resize/progress.h"
#include "resize/resize.h"
#include "sharing/extend.h"
#include "sharing/requeue.h"

#define MAX_ACTIONS 16

static verdict_t carry_out_start(job_record_t *job, sent_job_t *entry,
                                 const pb_decision_t *decision)
{
    verdict_t verdict = start_job(job, decision->start);
    announce_refusal(job, entry, verdict.word);
    return verdict;
}

static verdict_t carry_out_planned_start(job_record_t *job, sent_job_t *entry,
                                         const pb_decision_t *decision)
{
    return announce_start(job, entry, decision->planned_start);
}

static verdict_t carry_out_pending(job_record_t *job, sent_job_t *entry,
                                   const pb_decision_t *decision)
{
    return announce_pending(job, entry, decision->pending);
}

static verdict_t carry_out_resize(job_record_t *job, sent_job_t *entry,
                                  const pb_decision_t *decision)
{
    (void)entry;
    return resize_job(job, decision->resize, start_job);
}

static verdict_t carry_out_progress(job_record_t *job, sent_job_t *entry,
                                    const pb_decision_t *decision)
{
    (void)entry;
    return show_progress(job, decision->progress);
}

static verdict_t carry_out_requeue(job_record_t *job, sent_job_t *entry,
                                   const pb_decision_t *decision)
{
    (void)entry;
    return sharing_requeue(job, decision->requeue);
}

static verdict_t carry_out_extend(job_record_t *job, sent_job_t *entry,
                                  const pb_decision_t *decision)
{
    (void)entry;
    return extend_host(job, decision->extend);
}

static verdict_t carry_out_reserve(job_record_t *job, sent_job_t *entry,
                                   const pb_decision_t *decision)
{
    (void)job, (void)entry;
    return reserve(decision->reserve);
}

static verdict_t carry_out_unreserve(job_record_t *job, sent_job_t *entry,
                                     const pb_decision_t *decision)
{
    (void)job, (void)entry;
    return unreserve(decision->unreserve);
}

static verdict_t carry_out_power(job_record_t *job, sent_job_t *entry,
                                 const pb_decision_t *decision)
{
    (void)job, (void)entry;
    return power_nodes(decision->power);
}

#define ACTION(name) [PB(DECISION__ACTION_##name)]

static const action_t actions[MAX_ACTIONS] = {
    ACTION(START) = {"start", PENDING_JOB, carry_out_start},
    ACTION(PLANNED_START) = {"planned_start", PENDING_JOB, carry_out_planned_start},
    ACTION(PENDING) = {"pending_reason", PENDING_JOB, carry_out_pending},
    ACTION(RESIZE) = {"resize", RUNNING_JOB, carry_out_resize},
    ACTION(PROGRESS) = {"progress", RUNNING_JOB, carry_out_progress},
    ACTION(RESERVE) = {"reserve", NO_JOB, carry_out_reserve},
    ACTION(UNRESERVE) = {"reserve", NO_JOB, carry_out_unreserve},
    ACTION(POWER) = {"power", NO_JOB, carry_out_power},
    ACTION(REQUEUE) = {"share", RUNNING_JOB, carry_out_requeue},
    ACTION(EXTEND) = {"extend", RUNNING_JOB, carry_out_extend},
};

// Features beyond the original form of the table's actions.
static const char *const details[] = {"reserve_licences", "choice"};

const action_t *action_of(const pb_decision_t *decision)
{
    unsigned which = (unsigned)decision->action_case;
    return which < MAX_ACTIONS && actions[which].carry_out ? &actions[which] : NULL;
}

char **action_features(bool resizes, size_t *count)
{
    static char *features[MAX_ACTIONS + sizeof(details) / sizeof(details[0])];
    *count = 0;
    for (size_t i = 0; i < MAX_ACTIONS; i++) {
        const char *feature = actions[i].feature;
        bool known = *count && feature && !strcmp(features[*count - 1], feature);
        bool barred = !resizes && i == PB(DECISION__ACTION_RESIZE);
        if (feature && !known && !barred)
            features[(*count)++] = (char *)feature;
    }
    for (size_t i = 0; i < sizeof(details) / sizeof(details[0]); i++)
        features[(*count)++] = (char *)details[i];
    return features;
}
