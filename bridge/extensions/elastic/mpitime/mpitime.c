// SPDX-License-Identifier: Apache-2.0
// Measures the time that a program spends in MPI, for any MPI and without its headers: LD_PRELOAD.
//
// One page per process, in the folder of its job (page.h). Without the folder,
// or if the page cannot be made, nothing is measured and the program runs as always. Programs
// without MPI make no page.
//
// How: each wrapper takes 14 longs and passes them on. The bindings in question take integers and
// pointers only, 14 at most, so handles of any kind go through unread. Works with the calling
// conventions of x86-64 and AArch64.
//
// Counted is the thread that initialised MPI, from the end of MPI_Init to the end of MPI_Finalize.
// A call within a call (Fortran bindings, collectives) counts once.
#define _GNU_SOURCE
#include "page.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "the wrappers know the calling conventions of x86-64 and AArch64 only"
#endif

#define PARAMETERS                                                                                 \
    long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k,        \
        long l, long m, long n
#define ARGUMENTS a, b, c, d, e, f, g, h, i, j, k, l, m, n
#define THREAD static _Thread_local __attribute__((tls_model("initial-exec")))
#define EXPORTED __attribute__((visibility("default")))

typedef long mpi_function(PARAMETERS);

// Of no MPI's success; for a function that this MPI does not have.
enum { ERROR_OTHER = 16 };

static struct page *page;
static char path[256];
static bool closed;
THREAD bool counted;
THREAD bool inside;

// ------------------------------------------------------------------ the page

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// A child has its parent's page mapped; it makes its own at its first call.
static void forked(void) {
    page = NULL;
    closed = false;
    counted = inside = false;
}

static uint32_t number(const char *name) {
    const char *value = getenv(name);
    return value ? (uint32_t)strtoul(value, NULL, 10) : UINT32_MAX;
}

static struct page *make_page(void) {
    static bool registered;
    const char *folders = getenv("SCHEDBRIDGE_JOB_FOLDERS"), *job = getenv("SLURM_JOB_ID");
    if (!job || !*job || job[strspn(job, "0123456789")])
        return NULL;
    int length = snprintf(path, sizeof path, "%s/%s/mpi.%u",
                          folders && *folders ? folders : JOB_FOLDERS, job, (unsigned)getpid());
    if (length < 0 || (size_t)length >= sizeof path)
        return NULL;
    (void)unlink(path); // of a program that this process was before exec, or of an old process
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return NULL;
    void *made = MAP_FAILED;
    if (posix_fallocate(file, 0, PAGE_BYTES) == 0) // a full file system must not raise SIGBUS
        made = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (made == MAP_FAILED) {
        (void)unlink(path);
        return NULL;
    }
    if (!registered && pthread_atfork(NULL, NULL, forked) != 0) {
        munmap(made, PAGE_BYTES);
        (void)unlink(path);
        return NULL;
    }
    registered = true;
    struct page *fresh = made;
    fresh->version = PAGE_VERSION;
    fresh->pid = (uint32_t)getpid();
    snprintf(fresh->job, sizeof fresh->job, "%s", job);
    fresh->step = number("SLURM_STEP_ID");
    fresh->task = number("SLURM_PROCID");
    fresh->begin_ns = now_ns();
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(fresh->magic, PAGE_MAGIC, sizeof fresh->magic);
    return fresh;
}

// Makes the page; this thread is the one that counts.
static void begin(void) {
    if (closed || page)
        return;
    int saved = errno;
    page = make_page();
    closed = page == NULL;
    counted = page != NULL;
    errno = saved;
}

static void finish(void) {
    if (!page || page->pid != (uint32_t)getpid())
        return;
    int saved = errno;
    closed = true;
    page = NULL; // stays mapped: another thread may be in a call
    (void)unlink(path);
    errno = saved;
}

__attribute__((destructor)) static void at_exit(void) {
    finish();
}

// ------------------------------------------------------------------ the real functions

struct wanted {
    const char *name, *other;
    void *found;
};

static void *in(void *scope, const struct wanted *wanted) {
    void *found = dlsym(scope, wanted->name);
    return found ? found : dlsym(scope, wanted->other);
}

static int look(struct dl_phdr_info *info, size_t size, void *data) {
    struct wanted *wanted = data;
    const char *slash = strrchr(info->dlpi_name, '/');
    (void)size;
    if (!slash || strncmp(slash + 1, "libmpi", 6) != 0)
        return 0;
    void *library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (library) {
        wanted->found = in(library, wanted);
        dlclose(library);
    }
    return wanted->found != NULL;
}

static long missing(PARAMETERS) {
    (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g;
    (void)h, (void)i, (void)j, (void)k, (void)l, (void)m, (void)n;
    return ERROR_OTHER;
}

// The next one of this name, which may be that of another tool. Programs that load MPI while they
// run (Python) have it outside of the global scope: it is among the loaded libraries.
static mpi_function *find(const char *name, const char *other) {
    struct wanted wanted = {name, other, NULL};
    int saved = errno;
    wanted.found = in(RTLD_NEXT, &wanted);
    if (!wanted.found)
        dl_iterate_phdr(look, &wanted);
    (void)dlerror();
    errno = saved;
    return wanted.found ? (mpi_function *)wanted.found : missing;
}

// ------------------------------------------------------------------ the wrappers

static inline struct page *enter(uint64_t *since) {
    if (inside)
        return NULL;
    if (!page)
        begin();
    struct page *mine = page;
    if (!mine || !counted)
        return NULL;
    inside = true;
    *since = now_ns();
    mine->in_since_ns = *since;
    return mine;
}

static inline void leave(struct page *mine, uint64_t since) {
    if (!mine)
        return;
    mine->in_since_ns = 0;
    mine->mpi_ns += now_ns() - since;
    mine->calls++;
    inside = false;
}

#define REAL(name, other)                                                                          \
    static mpi_function *known;                                                                    \
    mpi_function *real = __atomic_load_n(&known, __ATOMIC_RELAXED);                                \
    if (!real) {                                                                                   \
        real = find(#name, #other);                                                                \
        __atomic_store_n(&known, real, __ATOMIC_RELAXED);                                          \
    }

#define WRAPPER(name, other)                                                                       \
    EXPORTED long name(PARAMETERS) {                                                               \
        REAL(name, other)                                                                          \
        uint64_t since = 0;                                                                        \
        struct page *mine = enter(&since);                                                         \
        long result = real(ARGUMENTS);                                                             \
        leave(mine, since);                                                                        \
        return result;                                                                             \
    }

#define AT_INIT(name, other)                                                                       \
    EXPORTED long name(PARAMETERS) {                                                               \
        REAL(name, other)                                                                          \
        bool outer = inside;                                                                       \
        inside = true;                                                                             \
        long result = real(ARGUMENTS);                                                             \
        inside = outer;                                                                            \
        if (!outer)                                                                                \
            begin();                                                                               \
        return result;                                                                             \
    }

#define AT_END(name, other)                                                                        \
    EXPORTED long name(PARAMETERS) {                                                               \
        REAL(name, other)                                                                          \
        uint64_t since = 0;                                                                        \
        struct page *mine = enter(&since);                                                         \
        long result = real(ARGUMENTS);                                                             \
        leave(mine, since);                                                                        \
        finish();                                                                                  \
        return result;                                                                             \
    }

#define CALL(name, fortran)                                                                        \
    WRAPPER(MPI_##name, PMPI_##name)                                                               \
    WRAPPER(mpi_##fortran##_, pmpi_##fortran##_)

#include "functions.def"

AT_INIT(MPI_Init, PMPI_Init)
AT_INIT(mpi_init_, pmpi_init_)
AT_INIT(MPI_Init_thread, PMPI_Init_thread)
AT_INIT(mpi_init_thread_, pmpi_init_thread_)
AT_END(MPI_Finalize, PMPI_Finalize)
AT_END(mpi_finalize_, pmpi_finalize_)
