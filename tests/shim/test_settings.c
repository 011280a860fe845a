// SPDX-License-Identifier: GPL-2.0-or-later
#include "expect.h"
#include "wire/settings.h"

static char said[4096];
static int lines;

static void complain(const char *line) {
    snprintf(said, sizeof(said), "%s", line);
    lines++;
}

static settings_t read_settings(const char *parameters) {
    settings_t settings;
    said[0] = 0;
    lines = 0;
    settings_read(&settings, parameters, complain);
    return settings;
}

static void absent_words_have_defaults(void) {
    const char *empty[] = {NULL, "", "defer", "defer,bf_interval=30,batch_sched_delay=3"};
    for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
        settings_t settings = read_settings(empty[i]);
        EXPECT_NUMBER(lines, 0);
        EXPECT_TEXT(settings.socket, "/run/schedbridge/bridge.sock");
        EXPECT_TEXT(settings.address, "");
        EXPECT_NUMBER(settings.silence_s, 5);
        EXPECT_NUMBER(settings.tick_s, 10);
        EXPECT_NUMBER(settings.batch_ms, 5);
        EXPECT_NUMBER(settings.poll_ms, 10);
        EXPECT_NUMBER(settings.coschedule, COSCHEDULE_NEVER);
        EXPECT_NUMBER(settings.coschedule_scope, COSCHEDULE_SAME_USER);
    }
}

static void all_words_are_taken(void) {
    settings_t settings = read_settings("defer, bridge_socket=/tmp/s ,bridge_silence_s=7,"
                                        "bridge_tick_s=60,bridge_batch_ms=2,bridge_poll_ms=100");
    EXPECT_NUMBER(lines, 0);
    EXPECT_TEXT(settings.socket, "/tmp/s");
    EXPECT_NUMBER(settings.silence_s, 7);
    EXPECT_NUMBER(settings.tick_s, 60);
    EXPECT_NUMBER(settings.batch_ms, 2);
    EXPECT_NUMBER(settings.poll_ms, 100);
    settings = read_settings("bridge_address=node.example:7443,bridge_tls_dir=/etc/tls");
    EXPECT_NUMBER(lines, 0);
    EXPECT_TEXT(settings.address, "node.example:7443");
    EXPECT_TEXT(settings.tls_dir, "/etc/tls");
    settings = read_settings("bridge_address=[::1]:7443,bridge_tls_dir=/etc/tls");
    EXPECT_NUMBER(lines, 0);
    EXPECT_TEXT(settings.address, "[::1]:7443");
}

static void who_may_share_with_whom(void) {
    settings_t settings = read_settings("bridge_coschedule_default=both,bridge_coschedule_scope="
                                        "account");
    EXPECT_NUMBER(lines, 0);
    EXPECT_NUMBER(settings.coschedule, COSCHEDULE_BOTH);
    EXPECT_NUMBER(settings.coschedule_scope, COSCHEDULE_SAME_ACCOUNT);
    settings = read_settings("bridge_coschedule_scope=all");
    EXPECT_NUMBER(settings.coschedule_scope, COSCHEDULE_ALL);
    settings = read_settings("bridge_coschedule_default=yes");
    EXPECT_SAYS(said, "bridge_coschedule_default=yes is none of host, guest, both and never");
    EXPECT_NUMBER(settings.coschedule, COSCHEDULE_NEVER);
    settings = read_settings("bridge_coschedule_scope=everybody");
    EXPECT_SAYS(said, "using user");
    EXPECT_NUMBER(settings.coschedule_scope, COSCHEDULE_SAME_USER);
}

static void bad_words_are_said_and_have_defaults(void) {
    static const struct {
        const char *parameters, *names;
    } wrong[] = {
        {"bridge_silence_s=0", "bridge_silence_s=0"},
        {"bridge_silence_s=-1", "bridge_silence_s=-1"},
        {"bridge_silence_s=5s", "bridge_silence_s=5s"},
        {"bridge_silence_s=", "bridge_silence_s="},
        {"bridge_silence_s", "bridge_silence_s"},
        {"bridge_silence_s=99999999999999999999999", "bridge_silence_s"},
        {"bridge_tick_s=3601", "1 to 3600"},
        {"bridge_batch_ms= 5", "bridge_batch_ms"},
        {"bridge_poll_ms=0x10", "bridge_poll_ms"},
        {"bridge_sokcet=/tmp/s", "bridge_sokcet is unknown"},
        {"bridge_socket=relative/path", "not an absolute path"},
        {"bridge_socket=", "not an absolute path"},
        {"bridge_address=host", "bridge_address"},
        {"bridge_address=host:0,bridge_tls_dir=/x", "no meaning"},
        {"bridge_address=host:70000", "HOST:PORT"},
        {"bridge_address=user@host:1", "HOST:PORT"},
        {"bridge_address=host/path:1", "HOST:PORT"},
        {"bridge_address=host:7443", "needs bridge_tls_dir"},
        {"bridge_tls_dir=/etc/tls", "no meaning"},
        {"bridge_tls_dir=tls", "not an absolute path"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        settings_t settings = read_settings(wrong[i].parameters);
        EXPECT(lines >= 1);
        EXPECT_SAYS(said, wrong[i].names);
        EXPECT_SAYS(said, "SchedulerParameters");
        EXPECT(!strchr(said, '\n'));
        EXPECT_TEXT(settings.socket, "/run/schedbridge/bridge.sock");
        EXPECT_TEXT(settings.address, "");
        EXPECT_NUMBER(settings.silence_s, 5);
        EXPECT_NUMBER(settings.tick_s, 10);
        EXPECT_NUMBER(settings.batch_ms, 5);
        EXPECT_NUMBER(settings.poll_ms, 10);
        EXPECT_NUMBER(settings.coschedule, COSCHEDULE_NEVER);
        EXPECT_NUMBER(settings.coschedule_scope, COSCHEDULE_SAME_USER);
    }
}

static void a_socket_path_fills_its_room(void) {
    char parameters[300] = "bridge_socket=/";
    while (strlen(parameters) < strlen("bridge_socket=") + BRIDGE_MAX_SOCKET)
        strcat(parameters, "x");
    settings_t settings = read_settings(parameters);
    EXPECT_NUMBER(lines, 0);
    EXPECT_NUMBER(strlen(settings.socket), BRIDGE_MAX_SOCKET);
    strcat(parameters, "x");
    settings = read_settings(parameters);
    EXPECT_NUMBER(lines, 1);
    EXPECT_SAYS(said, "107 bytes");
    EXPECT_TEXT(settings.socket, "/run/schedbridge/bridge.sock");
}

static void a_user_is_named_or_numbered(void) {
    settings_t settings = read_settings("bridge_service_user=root");
    EXPECT(settings.service_named && settings.service_user == 0);
    settings = read_settings("bridge_service_user=4711");
    EXPECT(settings.service_named && settings.service_user == 4711);
    static const char *const wrong[] = {"", "nobody-knows-me", "-1", "4294967295", "12x", "12 34"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char words[100];
        snprintf(words, sizeof(words), "bridge_service_user=%s", wrong[i]);
        settings = read_settings(words);
        EXPECT_NUMBER(lines, 1);
        EXPECT_SAYS(said, "not a user of this machine");
        EXPECT(!settings.service_named);
    }
}

int main(void) {
    absent_words_have_defaults();
    all_words_are_taken();
    who_may_share_with_whom();
    bad_words_are_said_and_have_defaults();
    a_socket_path_fills_its_room();
    a_user_is_named_or_numbered();
    DONE();
}
