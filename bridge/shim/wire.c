// SPDX-License-Identifier: GPL-2.0-or-later
#include "wire.h"

#include <curl/curl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framing.h"

#define SERVICE "schedbridge.v1.Scheduler"

struct wire {
    settings_t settings;
    CURL *easy;
    CURLM *multi;
    atomic_bool interrupted;
    // of the call under way
    unsigned char *reply;
    size_t reply_bytes;
    size_t reply_room;
    bool overflow;
    trailers_t trailers;
    char curl_problem[CURL_ERROR_SIZE];
};

static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
    wire_t *wire = context;
    size_t more = size * count;
    if (more > FRAME_MAX_REPLY + FRAME_BYTES - wire->reply_bytes) {
        wire->overflow = true;
        return 0; // libcurl gives up
    }
    if (wire->reply_bytes + more > wire->reply_room) {
        size_t room = wire->reply_room ? wire->reply_room : 64 * 1024;
        while (room < wire->reply_bytes + more)
            room *= 2;
        unsigned char *grown = realloc(wire->reply, room);
        if (!grown)
            return 0;
        wire->reply = grown;
        wire->reply_room = room;
    }
    memcpy(wire->reply + wire->reply_bytes, bytes, more);
    wire->reply_bytes += more;
    return more;
}

// gRPC's trailers come this way, too.
static size_t take_header(char *bytes, size_t size, size_t count, void *context)
{
    wire_t *wire = context;
    trailers_take(&wire->trailers, bytes, size * count);
    return size * count;
}

wire_t *wire_open(const settings_t *settings, char *problem, size_t problem_bytes)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        snprintf(problem, problem_bytes, "libcurl does not start");
        return NULL;
    }
    const curl_version_info_data *version = curl_version_info(CURLVERSION_NOW);
    if (!(version->features & CURL_VERSION_HTTP2) ||
        !(version->features & CURL_VERSION_UNIX_SOCKETS)) {
        snprintf(problem, problem_bytes, "libcurl %s lacks HTTP/2 or Unix sockets",
                 version->version);
        curl_global_cleanup();
        return NULL;
    }
    wire_t *wire = calloc(1, sizeof(*wire));
    if (!wire)
        abort();
    wire->settings = *settings;
    wire->easy = curl_easy_init();
    wire->multi = curl_multi_init();
    if (!wire->easy || !wire->multi) {
        snprintf(problem, problem_bytes, "libcurl gives no handle");
        wire_close(wire);
        return NULL;
    }
    return wire;
}

void wire_close(wire_t *wire)
{
    if (!wire)
        return;
    if (wire->easy)
        curl_easy_cleanup(wire->easy);
    if (wire->multi)
        curl_multi_cleanup(wire->multi);
    free(wire->reply);
    free(wire);
    curl_global_cleanup();
}

void wire_interrupt(wire_t *wire)
{
    atomic_store(&wire->interrupted, true);
    curl_multi_wakeup(wire->multi);
}

static void set_target(wire_t *wire, const char *method)
{
    const settings_t *settings = &wire->settings;
    char url[512], path[600];
    if (!settings->address[0]) {
        snprintf(url, sizeof(url), "http://localhost/%s/%s", SERVICE, method);
        curl_easy_setopt(wire->easy, CURLOPT_UNIX_SOCKET_PATH, settings->socket);
    } else {
        snprintf(url, sizeof(url), "https://%s/%s/%s", settings->address, SERVICE, method);
        snprintf(path, sizeof(path), "%s/ca.pem", settings->tls_dir);
        curl_easy_setopt(wire->easy, CURLOPT_CAINFO, path);
        curl_easy_setopt(wire->easy, CURLOPT_CAPATH, NULL);
        snprintf(path, sizeof(path), "%s/cert.pem", settings->tls_dir);
        curl_easy_setopt(wire->easy, CURLOPT_SSLCERT, path);
        snprintf(path, sizeof(path), "%s/key.pem", settings->tls_dir);
        curl_easy_setopt(wire->easy, CURLOPT_SSLKEY, path);
        curl_easy_setopt(wire->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
        curl_easy_setopt(wire->easy, CURLOPT_TCP_NODELAY, 1L);
    }
    curl_easy_setopt(wire->easy, CURLOPT_URL, url);
}

static struct curl_slist *set_call(wire_t *wire, const char *method, const unsigned char *framed,
                                   size_t framed_bytes, unsigned timeout_ms)
{
    char timeout[48];
    curl_easy_reset(wire->easy); // keeps the connection
    set_target(wire, method);
    snprintf(timeout, sizeof(timeout), "grpc-timeout: %um", timeout_ms);
    struct curl_slist *headers = NULL, *next;
    const char *const lines[] = {
        "Content-Type: application/grpc",
        "TE: trailers",
        "User-Agent: schedbridge-slurm",
        "Accept:",
        "Expect:",
        timeout,
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        next = curl_slist_append(headers, lines[i]);
        if (!next)
            abort();
        headers = next;
    }
    curl_easy_setopt(wire->easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(wire->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
    curl_easy_setopt(wire->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(wire->easy, CURLOPT_POSTFIELDS, framed);
    curl_easy_setopt(wire->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)framed_bytes);
    curl_easy_setopt(wire->easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    curl_easy_setopt(wire->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)timeout_ms);
    curl_easy_setopt(wire->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(wire->easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(wire->easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(wire->easy, CURLOPT_WRITEDATA, wire);
    curl_easy_setopt(wire->easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(wire->easy, CURLOPT_HEADERDATA, wire);
    curl_easy_setopt(wire->easy, CURLOPT_ERRORBUFFER, wire->curl_problem);
    return headers;
}

// Runs the transfer to its end; CURLE_ABORTED_BY_CALLBACK if interrupted.
static CURLcode transfer(wire_t *wire)
{
    CURLcode result = CURLE_ABORTED_BY_CALLBACK;
    if (curl_multi_add_handle(wire->multi, wire->easy) != CURLM_OK)
        return CURLE_FAILED_INIT;
    while (!atomic_load(&wire->interrupted)) {
        int running = 0, left;
        if (curl_multi_perform(wire->multi, &running) != CURLM_OK) {
            result = CURLE_FAILED_INIT;
            break;
        }
        CURLMsg *message = curl_multi_info_read(wire->multi, &left);
        if (message && message->msg == CURLMSG_DONE) {
            result = message->data.result;
            break;
        }
        if (!running || curl_multi_poll(wire->multi, NULL, 0, 1000, NULL) != CURLM_OK) {
            result = CURLE_FAILED_INIT;
            break;
        }
    }
    curl_multi_remove_handle(wire->multi, wire->easy);
    return result;
}

__attribute__((format(printf, 3, 4))) static bool fail(char *problem, size_t bytes,
                                                       const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(problem, bytes, format, args);
    va_end(args);
    return false;
}

static bool judge(wire_t *wire, CURLcode result, unsigned timeout_ms, const unsigned char **reply,
                  size_t *reply_bytes, char *problem, size_t bytes)
{
    if (wire->overflow)
        return fail(problem, bytes, "the reply is too long");
    if (result == CURLE_OPERATION_TIMEDOUT)
        return fail(problem, bytes, "no answer within %.1f s", timeout_ms / 1000.0);
    if (result == CURLE_COULDNT_CONNECT) {
        long error = 0;
        curl_easy_getinfo(wire->easy, CURLINFO_OS_ERRNO, &error);
        return fail(problem, bytes, "cannot connect to %s: %s",
                    wire->settings.address[0] ? wire->settings.address : wire->settings.socket,
                    error ? strerror((int)error) : wire->curl_problem);
    }
    if (result != CURLE_OK)
        return fail(problem, bytes, "%s",
                    wire->curl_problem[0] ? wire->curl_problem : curl_easy_strerror(result));
    long http = 0;
    curl_easy_getinfo(wire->easy, CURLINFO_RESPONSE_CODE, &http);
    if (http != 200)
        return fail(problem, bytes, "HTTP status %ld instead of 200", http);
    if (wire->trailers.status < 0)
        return fail(problem, bytes, "the reply carries no grpc-status");
    if (wire->trailers.status > 0)
        return fail(problem, bytes, "gRPC status %d: %s", wire->trailers.status,
                    wire->trailers.message[0] ? wire->trailers.message : "no message");
    const char *wrong = frame_open(wire->reply, wire->reply_bytes, reply, reply_bytes);
    return wrong ? fail(problem, bytes, "%s", wrong) : true;
}

bool wire_call(wire_t *wire, const char *method, unsigned char *framed, size_t message_bytes,
               unsigned timeout_ms, const unsigned char **reply, size_t *reply_bytes, char *problem,
               size_t problem_bytes)
{
    if (message_bytes > UINT32_MAX - FRAME_BYTES)
        return fail(problem, problem_bytes, "the message is too long");
    frame_head(framed, (uint32_t)message_bytes);
    wire->reply_bytes = 0;
    wire->overflow = false;
    wire->trailers = (trailers_t){.status = -1};
    wire->curl_problem[0] = 0;
    struct curl_slist *headers =
        set_call(wire, method, framed, message_bytes + FRAME_BYTES, timeout_ms);
    CURLcode result = transfer(wire);
    bool good = judge(wire, result, timeout_ms, reply, reply_bytes, problem, problem_bytes);
    curl_easy_reset(wire->easy); // nothing of this frame may be referred to any more
    curl_slist_free_all(headers);
    return good;
}
