// SPDX-License-Identifier: GPL-2.0-or-later
// The wire against peers that are absent, silent, or speak something else.
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "expect.h"
#include "wire/framing.h"
#include "wire/wire.h"

static char problem[300];
static settings_t settings;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void complain(const char *line) {
    fprintf(stderr, "%s\n", line);
    exit(1);
}

static wire_t *open_wire(void) {
    wire_t *wire = wire_open(&settings, problem, sizeof(problem));
    EXPECT(wire);
    return wire;
}

static bool call(wire_t *wire, unsigned timeout_ms) {
    unsigned char framed[FRAME_BYTES + 3] = {0};
    const unsigned char *reply;
    size_t bytes;
    problem[0] = 0;
    return wire_call(wire, "Hello", framed, 3, FRAME_MAX_REPLY, timeout_ms, &reply, &bytes, problem,
                     sizeof(problem));
}

static int listen_at(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int socket_fd = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT(socket_fd >= 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    unlink(path);
    EXPECT(bind(socket_fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    EXPECT(listen(socket_fd, 8) == 0);
    return socket_fd;
}

static void nobody_is_there(void) {
    wire_t *wire = open_wire();
    double began = seconds();
    unlink(settings.socket);
    EXPECT(!call(wire, 2000));
    EXPECT_SAYS(problem, settings.socket);
    EXPECT_SAYS(problem, "No such file");
    EXPECT(seconds() - began < 1);
    wire_close(wire);
}

static void somebody_is_silent(void) {
    wire_t *wire = open_wire();
    int listener = listen_at(settings.socket);
    double began = seconds();
    EXPECT(!call(wire, 300));
    EXPECT_SAYS(problem, "no answer within 0.3 s");
    EXPECT(seconds() - began < 2);
    wire_close(wire);
    close(listener);
}

static void *interrupt(void *wire) {
    usleep(100000);
    wire_interrupt(wire);
    return NULL;
}

static void a_call_is_interrupted(void) {
    wire_t *wire = open_wire();
    int listener = listen_at(settings.socket);
    pthread_t thread;
    double began = seconds();
    pthread_create(&thread, NULL, interrupt, wire);
    EXPECT(!call(wire, 60000));
    EXPECT(seconds() - began < 5);
    EXPECT(!call(wire, 60000)); // and every later one
    pthread_join(thread, NULL);
    wire_close(wire);
    close(listener);
}

// Takes what comes in, until the peer goes; the number of bytes is the exit status.
static pid_t listen_as(uid_t user) {
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child)
        return child;
    if (user != getuid() && setuid(user))
        _exit(255);
    int listener = listen_at(settings.socket), got = 0;
    chmod(settings.socket, 0777);
    for (int calls = 0; calls < 3; calls++) {
        char bytes[64];
        int peer = accept(listener, NULL, NULL);
        ssize_t more = read(peer, bytes, sizeof(bytes));
        got += more > 0 ? (int)more : 0;
        close(peer);
    }
    _exit(got);
}

static int call_three_times(pid_t child) {
    int status;
    wire_t *wire = open_wire();
    while (access(settings.socket, F_OK))
        usleep(1000);
    for (int calls = 0; calls < 3; calls++) {
        // Until the child listens nobody is there, which is not what is tested.
        while (!call(wire, 30000) && strstr(problem, "cannot connect"))
            usleep(1000);
        EXPECT(problem[0]);
    }
    wire_close(wire);
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status));
    EXPECT(WEXITSTATUS(status) != 255);
    return WEXITSTATUS(status);
}

// Who is root can be somebody else; who is not is somebody else for whom nobody else is trusted.
static void somebody_else_listens(void) {
    uid_t stranger = getuid() ? getuid() : 65534;
    settings_t honest = settings;
    unlink(settings.socket);
    settings.slurm_user = stranger + 1;
    EXPECT_NUMBER(call_three_times(listen_as(stranger)), 0);
    char words[100];
    snprintf(words, sizeof(words), "user %u listens", (unsigned)stranger);
    EXPECT_SAYS(problem, words);
    EXPECT_SAYS(problem, "nothing was sent");
    unlink(settings.socket);
    settings.slurm_user = stranger; // SlurmUser
    EXPECT(call_three_times(listen_as(stranger)) > 0);
    unlink(settings.socket);
    settings = honest;
    settings.slurm_user = stranger + 1;
    settings.service_named = true; // bridge_service_user
    settings.service_user = stranger;
    EXPECT(call_three_times(listen_as(stranger)) > 0);
    unlink(settings.socket);
    settings = honest;
}

static const struct {
    const char *bytes;
    size_t count;
} babble[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38},
    {"\0\0\0\4\0\0\0\0\0", 9},            // SETTINGS, and nothing more
    {"\0\0\0\4\0\0\0\0\0\0\0\1\0\4", 14}, // a cut frame
    {"\377\377\377\377\377\377\377\377\377", 9},
    {"", 0},
};

static void *babble_at(void *listener) {
    for (size_t i = 0; i < sizeof(babble) / sizeof(babble[0]); i++) {
        int peer = accept(*(int *)listener, NULL, NULL);
        if (peer < 0)
            return NULL;
        if (write(peer, babble[i].bytes, babble[i].count) < 0)
            perror("write");
        usleep(50000);
        close(peer);
    }
    return NULL;
}

static void somebody_babbles(void) {
    int listener = listen_at(settings.socket);
    pthread_t thread;
    pthread_create(&thread, NULL, babble_at, &listener);
    for (size_t i = 0; i < sizeof(babble) / sizeof(babble[0]); i++) {
        wire_t *wire = open_wire();
        EXPECT(!call(wire, 1000));
        EXPECT(problem[0]);
        wire_close(wire);
    }
    shutdown(listener, SHUT_RDWR);
    close(listener);
    pthread_join(thread, NULL);
}

int main(void) {
    char parameters[100];
    signal(SIGPIPE, SIG_IGN); // as slurmctld has it
    snprintf(parameters, sizeof(parameters), "bridge_socket=/tmp/test_wire.%d", (int)getpid());
    settings_read(&settings, parameters, complain);
    settings.slurm_user = getuid();
    nobody_is_there();
    somebody_is_silent();
    a_call_is_interrupted();
    somebody_babbles();
    somebody_else_listens();
    unlink(settings.socket);
    DONE();
}
