/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of JSON between the library and the launcher of the job. */
#define _GNU_SOURCE
#include "elastic_internal.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

int bridge_link_local(bridge_link *link, const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    link->held = 0;
    link->fd = -1;
    if (strlen(path) >= sizeof address.sun_path)
        return -1;
    strcpy(address.sun_path, path);
    link->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (link->fd >= 0 && connect(link->fd, (struct sockaddr *)&address, sizeof address) == 0)
        return 0;
    bridge_link_close(link);
    return -1;
}

int bridge_link_remote(bridge_link *link, const char *address) {
    char host[BRIDGE_TEXT];
    const char *colon = strrchr(address, ':');
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    link->held = 0;
    link->fd = -1;
    if (!colon || (size_t)(colon - address) >= sizeof host)
        return -1;
    memcpy(host, address, (size_t)(colon - address));
    host[colon - address] = 0;
    if (getaddrinfo(host, colon + 1, &hints, &found))
        return -1;
    for (struct addrinfo *one = found; one && link->fd < 0; one = one->ai_next) {
        link->fd = socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, 0);
        if (link->fd >= 0 && connect(link->fd, one->ai_addr, one->ai_addrlen))
            bridge_link_close(link);
    }
    freeaddrinfo(found);
    return link->fd < 0 ? -1 : 0;
}

void bridge_link_close(bridge_link *link) {
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
}

int bridge_link_say(bridge_link *link, const char *format, ...) {
    char line[8 * BRIDGE_TEXT];
    va_list words;
    if (link->fd < 0)
        return -1;
    va_start(words, format);
    int length = vsnprintf(line, sizeof line - 1, format, words);
    va_end(words);
    if (length < 0 || (size_t)length >= sizeof line - 1)
        return -1;
    line[length++] = '\n';
    for (int sent = 0; sent < length;) {
        ssize_t done = send(link->fd, line + sent, (size_t)(length - sent), MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            bridge_link_close(link);
            return -1;
        }
        sent += (int)done;
    }
    return 0;
}

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000L + now.tv_nsec / 1000000L;
}

int bridge_link_hear(bridge_link *link, char *line, int timeout_ms) {
    long deadline = timeout_ms > 0 ? now_ms() + timeout_ms : 0;
    while (link->fd >= 0) {
        char *end = memchr(link->buffer, '\n', link->held);
        if (end) {
            size_t length = (size_t)(end - link->buffer);
            memcpy(line, link->buffer, length);
            line[length] = 0;
            link->held -= length + 1;
            memmove(link->buffer, end + 1, link->held);
            return 1;
        }
        if (link->held == sizeof link->buffer)
            break; /* no line is so long */
        ssize_t got = recv(link->fd, link->buffer + link->held, sizeof link->buffer - link->held,
                           MSG_DONTWAIT);
        if (got > 0) {
            link->held += (size_t)got;
            continue;
        }
        if (got == 0 || (errno != EAGAIN && errno != EINTR))
            break;
        long left = deadline ? deadline - now_ms() : 0;
        if (left <= 0)
            return 0;
        struct pollfd wait = {.fd = link->fd, .events = POLLIN};
        poll(&wait, 1, (int)left);
    }
    bridge_link_close(link);
    return -1;
}

static const char *value_of(const char *line, const char *key, char opening) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\"%s\":%c", key, opening);
    const char *found = strstr(line, wanted);
    return found ? found + strlen(wanted) : NULL;
}

/* Copies a text as it is written, escapes included: it is compared with and sent back as such. */
int bridge_text(const char *line, const char *key, char *out, size_t size) {
    const char *value = value_of(line, key, '"');
    size_t length = 0;
    out[0] = 0;
    if (!value)
        return -1;
    while (value[length] && value[length] != '"')
        length += value[length] == '\\' ? 2 : 1;
    if (length >= size)
        return -1;
    memcpy(out, value, length);
    out[length] = 0;
    return 0;
}

int bridge_listed(const char *line, const char *key, const char *word) {
    char wanted[BRIDGE_TEXT];
    const char *list = value_of(line, key, '[');
    if (!list)
        return 0;
    const char *end = strchr(list, ']');
    snprintf(wanted, sizeof wanted, "\"%s\"", word);
    const char *found = strstr(list, wanted);
    return found && end && found < end;
}
