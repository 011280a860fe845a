// SPDX-License-Identifier: GPL-2.0-or-later
#include "wire/settings.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SOCKET "/run/schedbridge/bridge.sock"

typedef struct {
    const char *name;
    unsigned minimum, maximum, standard;
    size_t at;
} number_t;

static const number_t numbers[] = {
    {"bridge_silence_s", 1, 3600, 5, offsetof(settings_t, silence_s)},
    {"bridge_tick_s", 1, 3600, 10, offsetof(settings_t, tick_s)},
    {"bridge_batch_ms", 1, 1000, 5, offsetof(settings_t, batch_ms)},
    {"bridge_poll_ms", 1, 1000, 10, offsetof(settings_t, poll_ms)},
};

#define N_NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

__attribute__((format(printf, 2, 3))) static void complain_of(settings_complain_t complain,
                                                              const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    complain(line);
}

static bool take_number(settings_t *settings, const char *name, const char *value,
                        settings_complain_t complain)
{
    for (size_t i = 0; i < N_NUMBERS; i++) {
        const number_t *number = &numbers[i];
        if (strcmp(name, number->name) != 0)
            continue;
        char *end = NULL;
        errno = 0;
        unsigned long found = isdigit((unsigned char)value[0]) ? strtoul(value, &end, 10) : 0;
        if (!end || *end || errno || found < number->minimum || found > number->maximum)
            complain_of(complain,
                        "SchedulerParameters: %s=%s is not a whole number from %u to %u; "
                        "using %u",
                        name, value, number->minimum, number->maximum, number->standard);
        else
            *(unsigned *)((char *)settings + number->at) = (unsigned)found;
        return true;
    }
    return false;
}

static void take_path(char *to, size_t size, const char *name, const char *value,
                      settings_complain_t complain)
{
    if (value[0] != '/')
        complain_of(complain, "SchedulerParameters: %s=%s is not an absolute path; using %s", name,
                    value, *to ? to : "the socket");
    else if (strlen(value) >= size)
        complain_of(complain,
                    "SchedulerParameters: %s is longer than the %zu bytes such a path may have; "
                    "using %s",
                    name, size - 1, *to ? to : "the socket");
    else
        memcpy(to, value, strlen(value) + 1);
}

// A name or a number. Unknown users are not trusted.
static void take_user(settings_t *settings, const char *value, settings_complain_t complain)
{
    char *end = NULL, room[16384];
    struct passwd entry, *found = NULL;
    errno = 0;
    unsigned long number = isdigit((unsigned char)value[0]) ? strtoul(value, &end, 10) : 0;
    settings->service_named = true;
    if (end && !*end && !errno && number < UINT32_MAX)
        settings->service_user = (uid_t)number;
    else if (value[0] && !getpwnam_r(value, &entry, room, sizeof(room), &found) && found)
        settings->service_user = entry.pw_uid;
    else {
        settings->service_named = false;
        complain_of(complain,
                    "SchedulerParameters: bridge_service_user=%.64s is not a user of this machine; "
                    "trusting root and SlurmUser only",
                    value);
    }
}

static bool valid_address(const char *address)
{
    const char *colon = strrchr(address, ':');
    if (!colon || colon == address || !isdigit((unsigned char)colon[1]) || strlen(colon) > 6)
        return false;
    // The address becomes part of a URL and must not change its structure.
    if (strspn(address, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_[]:") !=
        strlen(address))
        return false;
    char *end;
    unsigned long port = strtoul(colon + 1, &end, 10);
    return !*end && port > 0 && port < 65536;
}

static void take_coschedule(settings_t *settings, const char *value, settings_complain_t complain)
{
    char problem[8];
    if (!coschedule_read(&settings->coschedule, value, problem, sizeof(problem)))
        complain_of(complain,
                    "SchedulerParameters: bridge_coschedule_default=%.40s is none of host, guest, "
                    "both and never; using never",
                    value);
}

static void take_scope(settings_t *settings, const char *value, settings_complain_t complain)
{
    static const char *const scopes[] = {"user", "account", "all"};
    for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
        if (!strcmp(value, scopes[i])) {
            settings->coschedule_scope = (coschedule_scope_t)i;
            return;
        }
    }
    complain_of(complain,
                "SchedulerParameters: bridge_coschedule_scope=%.40s is none of user, account and "
                "all; using user",
                value);
}

static void take(settings_t *settings, const char *name, const char *value,
                 settings_complain_t complain)
{
    if (take_number(settings, name, value, complain))
        return;
    if (!strcmp(name, "bridge_socket"))
        take_path(settings->socket, sizeof(settings->socket), name, value, complain);
    else if (!strcmp(name, "bridge_tls_dir"))
        take_path(settings->tls_dir, sizeof(settings->tls_dir), name, value, complain);
    else if (!strcmp(name, "bridge_service_user"))
        take_user(settings, value, complain);
    else if (!strcmp(name, "bridge_coschedule_default"))
        take_coschedule(settings, value, complain);
    else if (!strcmp(name, "bridge_coschedule_scope"))
        take_scope(settings, value, complain);
    else if (strcmp(name, "bridge_address") != 0)
        complain_of(
            complain,
            "SchedulerParameters: %.64s is unknown; known are bridge_socket, bridge_address, "
            "bridge_tls_dir, bridge_service_user, bridge_silence_s, bridge_tick_s, "
            "bridge_batch_ms, bridge_poll_ms, bridge_coschedule_default and "
            "bridge_coschedule_scope",
            name);
    else if (strlen(value) >= sizeof(settings->address) || !valid_address(value))
        complain_of(complain,
                    "SchedulerParameters: bridge_address=%.200s is not HOST:PORT; using the socket",
                    value);
    else
        memcpy(settings->address, value, strlen(value) + 1);
}

void settings_read(settings_t *settings, const char *parameters, settings_complain_t complain)
{
    memset(settings, 0, sizeof(*settings));
    settings->coschedule = COSCHEDULE_NEVER;
    settings->coschedule_scope = COSCHEDULE_SAME_USER;
    strcpy(settings->socket, DEFAULT_SOCKET);
    for (size_t i = 0; i < N_NUMBERS; i++)
        *(unsigned *)((char *)settings + numbers[i].at) = numbers[i].standard;

    char *words = strdup(parameters ? parameters : "");
    if (!words)
        return;
    char *rest = NULL;
    for (char *word = strtok_r(words, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        while (isspace((unsigned char)*word))
            word++;
        for (size_t n = strlen(word); n && isspace((unsigned char)word[n - 1]); n--)
            word[n - 1] = 0;
        if (strncmp(word, "bridge_", 7) != 0)
            continue;
        char *equals = strchr(word, '=');
        if (equals)
            *equals = 0;
        take(settings, word, equals ? equals + 1 : "", complain);
    }
    free(words);

    if (settings->address[0] && !settings->tls_dir[0]) {
        complain("SchedulerParameters: bridge_address needs bridge_tls_dir (TCP without mutual TLS "
                 "is not offered); using the socket");
        settings->address[0] = 0;
    } else if (settings->tls_dir[0] && !settings->address[0]) {
        complain("SchedulerParameters: bridge_tls_dir has no meaning without bridge_address; using "
                 "the socket");
        settings->tls_dir[0] = 0;
    }
}
