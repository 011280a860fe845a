// SPDX-License-Identifier: GPL-2.0-or-later
// What an administrator can set, as words of SchedulerParameters in slurm.conf:
//   bridge_socket=PATH       the service's Unix socket
//   bridge_address=HOST:PORT and bridge_tls_dir=DIR   instead: TCP with mutual TLS; the directory
//                            holds ca.pem, cert.pem and key.pem
//   bridge_service_user=USER whose service is trusted at the socket, beside root's and SlurmUser's
//   bridge_silence_s=N       fall back to Slurm's backfill after so many seconds without an answer
//   bridge_tick_s=N          call the service at least this often
//   bridge_batch_ms=N        hold Slurm's locks no longer than this at a time
//   bridge_poll_ms=N         look for changes this often
//   bridge_coschedule_default=host|guest|both|never   for jobs without --coschedule
//   bridge_coschedule_scope=user|account|all   whose jobs may share CPUs with one another
#ifndef BRIDGE_SETTINGS_H
#define BRIDGE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "options/coschedule.h"

#define BRIDGE_MAX_SOCKET 107 // Linux: sun_path with its final 0

typedef enum {
    COSCHEDULE_SAME_USER,
    COSCHEDULE_SAME_ACCOUNT,
    COSCHEDULE_ALL,
} coschedule_scope_t;

typedef struct {
    char socket[BRIDGE_MAX_SOCKET + 1];
    char address[256]; // empty: use the socket
    char tls_dir[512];
    uid_t slurm_user;   // SlurmUser; not one of the words
    bool resizes;       // jobs may grow and shrink while they run; not one of the words
    bool service_named; // bridge_service_user is set, to this:
    uid_t service_user;
    unsigned silence_s;
    unsigned tick_s;
    unsigned batch_ms;
    unsigned poll_ms;
    coschedule_t coschedule; // of jobs that state nothing
    coschedule_scope_t coschedule_scope;
} settings_t;

// Called for every invalid setting, with one line.
typedef void (*settings_complain_t)(const char *line);

// Reads the words that begin with "bridge_"; invalid and absent ones get their defaults. Looks up
// the user, which may take long: call it without locks.
void settings_read(settings_t *settings, const char *parameters, settings_complain_t complain);

#endif
