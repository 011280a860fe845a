// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/chunks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char gpu[] = "gpu";

__attribute__((format(printf, 2, 3))) static bool refuse(chunks_problem_t *problem,
                                                         const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(problem->words, sizeof(problem->words), format, args);
    va_end(args);
    problem->text = NULL;
    problem->position = 0;
    return false;
}

// ---------------------------------------------------------------- options

__attribute__((format(printf, 3, 4))) static void add(chunks_options_t *options, const char *name,
                                                      const char *format, ...)
{
    chunks_option_t *option = &options->items[options->count++];
    *option = (chunks_option_t){.name = name};
    if (!format)
        return;
    va_list args;
    va_start(args, format);
    if (vasprintf(&option->value, format, args) < 0)
        abort(); // no memory for a line of text: the client cannot go on
    va_end(args);
}

void chunks_options_free(chunks_options_t *options)
{
    for (size_t i = 0; i < options->count; i++)
        free(options->items[i].value);
    options->count = 0;
}

// Words in ascending order, without duplicates.
typedef struct {
    char *items[CHUNKS_MAX_GROUPS * 2];
    size_t count;
} words_t;

static void words_free(words_t *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->items[i]);
    words->count = 0;
}

static void words_add(words_t *words, char *word)
{
    size_t at = 0;
    if (!word)
        abort();
    while (at < words->count && strcmp(words->items[at], word) < 0)
        at++;
    if ((at < words->count && !strcmp(words->items[at], word)) ||
        words->count == sizeof(words->items) / sizeof(words->items[0])) {
        free(word);
        return;
    }
    memmove(&words->items[at + 1], &words->items[at], (words->count - at) * sizeof(char *));
    words->items[at] = word;
    words->count++;
}

static bool words_have(const words_t *words, const char *word)
{
    for (size_t i = 0; i < words->count; i++) {
        if (!strcmp(words->items[i], word))
            return true;
    }
    return false;
}

static void add_words(chunks_options_t *options, const char *name, const words_t *words,
                      const char *between)
{
    size_t bytes = 1;
    if (!words->count)
        return;
    for (size_t i = 0; i < words->count; i++)
        bytes += strlen(words->items[i]) + strlen(between);
    char *joined = calloc(1, bytes), *end = joined;
    if (!joined)
        abort();
    for (size_t i = 0; i < words->count; i++) {
        if (i)
            end = stpcpy(end, between);
        end = stpcpy(end, words->items[i]);
    }
    add(options, name, "%s", joined);
    free(joined);
}

__attribute__((format(printf, 1, 2))) static char *written(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        abort();
    va_end(args);
    return text;
}

// ---------------------------------------------------------------- amounts and features

static bool is_generic(chunks_span_t name, const char *generic)
{
    if (name.bytes == strlen(gpu) && !memcmp(name.at, gpu, name.bytes))
        return true;
    for (const char *at = generic; at && *at;) {
        size_t bytes = strcspn(at, ",");
        if (bytes == name.bytes && !memcmp(at, name.at, bytes))
            return true;
        at += bytes + (at[bytes] == ',');
    }
    return false;
}

static void features_of(const chunks_group_t *group, const char *generic, words_t *words)
{
    for (size_t i = 0; i < group->n_extras; i++) {
        const chunks_extra_t *extra = &group->extras[i];
        int bytes = (int)extra->name.bytes;
        if (extra->counted && !is_generic(extra->name, generic))
            words_add(words, written("%.*s=%u", bytes, extra->name.at, extra->number));
        else if (!extra->counted && extra->word.bytes)
            words_add(words, written("%.*s=%.*s", bytes, extra->name.at, (int)extra->word.bytes,
                                     extra->word.at));
        else if (!extra->counted)
            words_add(words, written("%.*s", bytes, extra->name.at));
    }
}

// Features that all chunks request.
static void common_features(const chunks_t *chunks, const char *generic, words_t *common)
{
    features_of(&chunks->groups[0], generic, common);
    for (size_t i = 1; i < chunks->n_groups; i++) {
        words_t own = {.count = 0};
        features_of(&chunks->groups[i], generic, &own);
        for (size_t j = common->count; j-- > 0;) {
            if (words_have(&own, common->items[j]))
                continue;
            free(common->items[j]);
            common->count--;
            memmove(&common->items[j], &common->items[j + 1], (common->count - j) * sizeof(char *));
        }
        words_free(&own);
    }
}

static uint64_t amount(const chunks_group_t *group, const char *name)
{
    for (size_t i = 0; i < group->n_extras; i++) {
        const chunks_extra_t *extra = &group->extras[i];
        if (extra->counted && extra->name.bytes == strlen(name) &&
            !memcmp(extra->name.at, name, extra->name.bytes))
            return extra->number;
    }
    return 0;
}

typedef struct {
    words_t per_node, per_task;
    uint64_t gpus;
} amounts_t;

static bool lower_amount(const chunks_t *chunks, const char *name, uint64_t size, bool one_node,
                         amounts_t *amounts, chunks_problem_t *problem)
{
    const chunks_group_t *groups = chunks->groups;
    uint64_t total = 0, first = amount(&groups[0], name), share = first * size / groups[0].ncpus;
    uint64_t n_chunks = 0;
    bool equal = true, even = true;
    for (size_t i = 0; i < chunks->n_groups; i++) {
        uint64_t each = amount(&groups[i], name);
        n_chunks += groups[i].count;
        total += groups[i].count * each;
        equal &= each == first;
        even &= each * size == share * groups[i].ncpus;
    }
    if (total > CHUNKS_MAX_NUMBER)
        return refuse(problem, "more than %u of %s in all; ask for less", CHUNKS_MAX_NUMBER, name);
    if (!total)
        return true;
    if (one_node)
        words_add(&amounts->per_node, written("%s:%llu", name, (unsigned long long)total));
    else if (chunks->arrangement == CHUNKS_SCATTER && equal)
        words_add(&amounts->per_node, written("%s:%llu", name, (unsigned long long)first));
    else if (even)
        words_add(&amounts->per_task, written("gres/%s=%llu", name, (unsigned long long)share));
    else if (!strcmp(name, gpu) && chunks->arrangement == CHUNKS_SCATTER && total < n_chunks)
        return refuse(problem, "Slurm gives GPUs on every node of a job or on none; place=pack, or "
                               "GPUs for every chunk");
    else if (!strcmp(name, gpu))
        amounts->gpus = total;
    else
        return refuse(problem,
                      "Slurm cannot give %s to some chunks only; place=pack, or place=scatter with "
                      "as many of %s in each chunk",
                      name, name);
    return true;
}

static bool lower_amounts(const chunks_t *chunks, const char *generic, uint64_t size, bool one_node,
                          amounts_t *amounts, chunks_problem_t *problem)
{
    words_t names = {.count = 0};
    bool good = true;
    for (size_t i = 0; i < chunks->n_groups; i++) {
        for (size_t j = 0; j < chunks->groups[i].n_extras; j++) {
            const chunks_extra_t *extra = &chunks->groups[i].extras[j];
            if (extra->counted && is_generic(extra->name, generic))
                words_add(&names, written("%.*s", (int)extra->name.bytes, extra->name.at));
        }
    }
    for (size_t i = 0; i < names.count && good; i++)
        good = lower_amount(chunks, names.items[i], size, one_node, amounts, problem);
    words_free(&names);
    return good;
}

// ---------------------------------------------------------------- the whole request

static bool spans_equal(chunks_span_t one, chunks_span_t other)
{
    return one.bytes == other.bytes && (!one.bytes || !memcmp(one.at, other.at, one.bytes));
}

static bool has_extra(const chunks_group_t *group, const chunks_extra_t *wanted)
{
    for (size_t i = 0; i < group->n_extras; i++) {
        const chunks_extra_t *extra = &group->extras[i];
        if (spans_equal(extra->name, wanted->name))
            return extra->counted == wanted->counted && extra->number == wanted->number &&
                   spans_equal(extra->word, wanted->word);
    }
    return false;
}

static bool one_kind(const chunks_t *chunks)
{
    const chunks_group_t *first = &chunks->groups[0];
    for (size_t i = 1; i < chunks->n_groups; i++) {
        const chunks_group_t *group = &chunks->groups[i];
        if (group->ncpus != first->ncpus || group->mem_mib != first->mem_mib ||
            group->mpiprocs != first->mpiprocs || group->ompthreads != first->ompthreads ||
            !spans_equal(group->host, first->host) || group->n_extras != first->n_extras)
            return false;
        for (size_t j = 0; j < group->n_extras; j++) {
            if (!has_extra(first, &group->extras[j]))
                return false;
        }
    }
    return true;
}

static uint32_t common_divisor(uint32_t one, uint32_t other)
{
    while (other) {
        uint32_t rest = one % other;
        one = other;
        other = rest;
    }
    return one;
}

// Sums and largest values over the chunks.
typedef struct {
    uint64_t chunks, cpus, mem_mib, max_mem_mib, max_mem_per_cpu_mib;
    uint32_t size; // CPUs of one of Slurm's tasks
    bool host;
} sums_t;

static bool sum_up(const chunks_t *chunks, sums_t *sums, chunks_problem_t *problem)
{
    memset(sums, 0, sizeof(*sums));
    for (size_t i = 0; i < chunks->n_groups; i++) {
        const chunks_group_t *group = &chunks->groups[i];
        uint32_t processes = group->mpiprocs ? group->mpiprocs : 1;
        if (group->ncpus % processes)
            return refuse(
                problem,
                "ncpus=%u is not a multiple of mpiprocs=%u; give each process as many CPUs",
                group->ncpus, group->mpiprocs);
        uint64_t per_cpu = (group->mem_mib + group->ncpus - 1) / group->ncpus;
        sums->size = common_divisor(group->ncpus / processes, sums->size);
        sums->chunks += group->count;
        sums->cpus += (uint64_t)group->count * group->ncpus;
        if (__builtin_mul_overflow(group->mem_mib, group->count, &per_cpu) ||
            __builtin_add_overflow(sums->mem_mib, per_cpu, &sums->mem_mib))
            return refuse(problem, "more memory than there could ever be; ask for less");
        per_cpu = (group->mem_mib + group->ncpus - 1) / group->ncpus;
        if (group->mem_mib > sums->max_mem_mib)
            sums->max_mem_mib = group->mem_mib;
        if (per_cpu > sums->max_mem_per_cpu_mib)
            sums->max_mem_per_cpu_mib = per_cpu;
        sums->host |= group->host.bytes > 0;
    }
    return true;
}

static void add_memory(const chunks_t *chunks, const sums_t *sums, bool one_node,
                       chunks_options_t *options)
{
    if (!sums->mem_mib)
        return;
    if (one_node)
        add(options, "mem", "%lluM", (unsigned long long)sums->mem_mib);
    else if (chunks->arrangement == CHUNKS_SCATTER)
        add(options, "mem", "%lluM", (unsigned long long)sums->max_mem_mib);
    else if (chunks->exclusive)
        add(options, "mem", "0");
    else
        add(options, "mem-per-cpu", "%lluM", (unsigned long long)sums->max_mem_per_cpu_mib);
}

static void add_licences(const chunks_t *chunks, chunks_options_t *options)
{
    words_t words = {.count = 0};
    for (size_t i = 0; i < chunks->n_licences; i++) {
        const chunks_extra_t *licence = &chunks->licences[i];
        words_add(&words,
                  written("%.*s:%u", (int)licence->name.bytes, licence->name.at, licence->number));
    }
    add_words(options, "licenses", &words, ",");
    words_free(&words);
}

bool chunks_lower(const chunks_t *chunks, const char *generic, chunks_options_t *options,
                  chunks_problem_t *problem)
{
    sums_t sums;
    amounts_t amounts = {.gpus = 0};
    words_t features = {.count = 0};
    options->count = 0;
    if (!sum_up(chunks, &sums, problem))
        return false;
    if (sums.host &&
        (!one_kind(chunks) || (chunks->arrangement == CHUNKS_SCATTER && sums.chunks > 1)))
        return refuse(problem, "host= is for chunks of one kind on one node; use features instead");
    bool one_node = chunks->arrangement == CHUNKS_PACK || sums.chunks == 1 || sums.host;
    unsigned long long nodes = one_node ? 1 : sums.chunks;
    if (!lower_amounts(chunks, generic, sums.size, one_node, &amounts, problem)) {
        words_free(&amounts.per_node);
        words_free(&amounts.per_task);
        return false;
    }
    add(options, "nodes", nodes == 1 || chunks->arrangement == CHUNKS_SCATTER ? "%llu" : "1-%llu",
        nodes);
    add(options, "ntasks", "%llu", (unsigned long long)(sums.cpus / sums.size));
    add(options, "cpus-per-task", "%u", sums.size);
    add_memory(chunks, &sums, one_node, options);
    add_words(options, "gres", &amounts.per_node, ",");
    add_words(options, "tres-per-task", &amounts.per_task, ",");
    if (amounts.gpus)
        add(options, "gpus", "%llu", (unsigned long long)amounts.gpus);
    common_features(chunks, generic, &features);
    add_words(options, "constraint", &features, "&");
    if (chunks->groups[0].host.bytes)
        add(options, "nodelist", "%.*s", (int)chunks->groups[0].host.bytes,
            chunks->groups[0].host.at);
    add_licences(chunks, options);
    if (chunks->exclusive)
        add(options, "exclusive", NULL);
    words_free(&amounts.per_node);
    words_free(&amounts.per_task);
    words_free(&features);
    return true;
}

uint32_t chunks_threads(const chunks_t *chunks)
{
    uint32_t threads = chunks->groups[0].ompthreads;
    for (size_t i = 1; i < chunks->n_groups; i++) {
        if (chunks->groups[i].ompthreads != threads)
            return 0;
    }
    return threads;
}
