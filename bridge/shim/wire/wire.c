// SPDX-License-Identifier: GPL-2.0-or-later
#include "wire/wire.h"

#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "wire/framing.h"

#define SERVICE "schedbridge.v1.Scheduler"
// gRPC status of a call by a controller that has been replaced.
#define ABORTED 10
// A buffer that a long reply needed is not kept for short ones.
#define KEPT_BYTES ((size_t)1024 * 1024)
#define QUEUE_RETRY_MS 10

struct wire {
    settings_t settings;
    CURL *easy;
    CURLM *multi;
    atomic_bool interrupted;
    // of the call under way
    unsigned char *reply;
    size_t reply_bytes;
    size_t reply_room;
    size_t max_bytes;
    int64_t until_ms;
    int connect_error;
    wire_failure_t failure;
    uid_t listener;       // the untrusted listener
    int file;             // the last socket
    bool connects_itself; // libcurl connects despite its settings
    bool overflow;
    trailers_t trailers;
    char curl_problem[CURL_ERROR_SIZE];
};

static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
    wire_t *wire = context;
    size_t more = size * count;
    if (more > wire->max_bytes - wire->reply_bytes) {
        wire->overflow = true;
        return 0; // libcurl gives up
    }
    if (wire->reply_bytes + more > wire->reply_room) {
        size_t room = wire->reply_room ? wire->reply_room : 64 * 1024;
        while (room < wire->reply_bytes + more)
            room *= 2;
        if (room > wire->max_bytes)
            room = wire->max_bytes;
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

// ---------------------------------------------------------------- the Unix socket

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool is_trusted(const settings_t *settings, uid_t user)
{
    return user == 0 || user == settings->slurm_user ||
           (settings->service_named && user == settings->service_user);
}

// Connects without blocking; retries while the listener's queue is full. Returns 0 or an errno.
static int connect_in_time(const wire_t *wire, int file, const struct sockaddr *address,
                           socklen_t bytes)
{
    while (connect(file, address, bytes)) {
        if (errno != EAGAIN && errno != EINTR)
            return errno;
        if (atomic_load(&wire->interrupted) || now_ms() >= wire->until_ms)
            return ETIMEDOUT;
        poll(NULL, 0, QUEUE_RETRY_MS);
    }
    return 0;
}

// Asks the kernel which user called listen() at the other end.
static bool judge_peer(wire_t *wire)
{
    struct ucred peer;
    socklen_t bytes = sizeof(peer);
    if (getsockopt(wire->file, SOL_SOCKET, SO_PEERCRED, &peer, &bytes)) {
        wire->connect_error = errno;
        return false;
    }
    if (is_trusted(&wire->settings, peer.uid))
        return true;
    wire->failure = WIRE_UNTRUSTED;
    wire->listener = peer.uid;
    return false;
}

// libcurl's socket callback: returns a socket that is connected, with a known peer, before libcurl
// can write.
static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    wire_t *wire = context;
    (void)purpose;
    wire->file = socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                        address->protocol);
    if (wire->file < 0)
        return CURL_SOCKET_BAD;
    if (wire->connects_itself)
        return wire->file;
    wire->connect_error = connect_in_time(wire, wire->file, &address->addr, address->addrlen);
    if (!wire->connect_error && judge_peer(wire))
        return wire->file;
    close(wire->file);
    return CURL_SOCKET_BAD;
}

static int is_connected(void *context, curl_socket_t file, curlsocktype purpose)
{
    (void)context;
    (void)file;
    (void)purpose;
    return CURL_SOCKOPT_ALREADY_CONNECTED;
}

#if LIBCURL_VERSION_NUM >= 0x075000
// libcurl 7.88 connects in any case, but writes nothing before this callback.
static int may_write(void *context, char *there, char *here, int port_there, int port_here)
{
    (void)there;
    (void)here;
    (void)port_there;
    (void)port_here;
    return judge_peer(context) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}
#endif

static void set_socket(wire_t *wire)
{
    curl_easy_setopt(wire->easy, CURLOPT_UNIX_SOCKET_PATH, wire->settings.socket);
    curl_easy_setopt(wire->easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(wire->easy, CURLOPT_OPENSOCKETDATA, wire);
#if LIBCURL_VERSION_NUM >= 0x075000
    if (wire->connects_itself) {
        curl_easy_setopt(wire->easy, CURLOPT_PREREQFUNCTION, may_write);
        curl_easy_setopt(wire->easy, CURLOPT_PREREQDATA, wire);
        return;
    }
#endif
    curl_easy_setopt(wire->easy, CURLOPT_SOCKOPTFUNCTION, is_connected);
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
#if LIBCURL_VERSION_NUM >= 0x075000
    wire->connects_itself = version->version_num >= 0x075800 && version->version_num < 0x080000;
#endif
    wire->easy = curl_easy_init();
    wire->multi = curl_multi_init();
    if (!wire->easy || !wire->multi) {
        snprintf(problem, problem_bytes, "libcurl returned no handle");
        wire_close(wire);
        return NULL;
    }
    curl_multi_setopt(wire->multi, CURLMOPT_MAXCONNECTS, 1L);
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
        set_socket(wire);
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
    if (wire->overflow) {
        wire->failure = WIRE_TOO_LONG;
        return fail(problem, bytes, "a reply of more than %zu bytes", wire->max_bytes);
    }
    if (wire->failure == WIRE_UNTRUSTED)
        return fail(problem, bytes,
                    "user %u listens at %s, who is neither root nor SlurmUser nor "
                    "bridge_service_user: nothing was sent",
                    (unsigned)wire->listener, wire->settings.socket);
    if (result == CURLE_OPERATION_TIMEDOUT)
        return fail(problem, bytes, "no answer within %.1f s", timeout_ms / 1000.0);
    if (result == CURLE_COULDNT_CONNECT) {
        long error = wire->connect_error;
        if (!error)
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
        return fail(problem, bytes, "the reply has no grpc-status");
    if (wire->trailers.status == ABORTED)
        wire->failure = WIRE_FENCED;
    if (wire->trailers.status > 0)
        return fail(problem, bytes, "gRPC status %d: %s", wire->trailers.status,
                    wire->trailers.message[0] ? wire->trailers.message : "no message");
    const char *wrong = frame_open(wire->reply, wire->reply_bytes, reply, reply_bytes);
    return wrong ? fail(problem, bytes, "%s", wrong) : true;
}

bool wire_call(wire_t *wire, const char *method, unsigned char *framed, size_t message_bytes,
               size_t max_bytes, unsigned timeout_ms, const unsigned char **reply,
               size_t *reply_bytes, char *problem, size_t problem_bytes)
{
    if (message_bytes > UINT32_MAX - FRAME_BYTES)
        return fail(problem, problem_bytes, "the message is too long");
    frame_head(framed, (uint32_t)message_bytes);
    wire->reply_bytes = 0;
    if (wire->reply_room > KEPT_BYTES) {
        free(wire->reply);
        wire->reply = NULL;
        wire->reply_room = 0;
    }
    wire->max_bytes = (max_bytes < FRAME_MAX_REPLY ? max_bytes : FRAME_MAX_REPLY) + FRAME_BYTES;
    wire->until_ms = now_ms() + timeout_ms;
    wire->connect_error = 0;
    wire->failure = WIRE_FAILED;
    wire->overflow = false;
    wire->trailers = (trailers_t){.status = -1};
    wire->curl_problem[0] = 0;
    struct curl_slist *headers =
        set_call(wire, method, framed, message_bytes + FRAME_BYTES, timeout_ms);
    CURLcode result = transfer(wire);
    bool good = judge(wire, result, timeout_ms, reply, reply_bytes, problem, problem_bytes);
    curl_easy_reset(wire->easy); // nothing may refer to this frame any more
    curl_slist_free_all(headers);
    return good;
}

wire_failure_t wire_failure(const wire_t *wire)
{
    return wire->failure;
}
