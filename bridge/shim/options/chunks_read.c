// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/chunks.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAX_CPUS 65535
#define MAX_DIGITS 16
#define MAX_MEMORY_MIB (1ull << 40)
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define VALUE_SIGNS LETTERS DIGITS "_.-"

typedef struct {
    const char *text, *at;
    chunks_problem_t *problem;
} reader_t;

static bool is(chunks_span_t span, const char *word)
{
    return span.bytes == strlen(word) && !strncasecmp(span.at, word, span.bytes);
}

static bool same(chunks_span_t one, chunks_span_t other)
{
    return one.bytes == other.bytes && !memcmp(one.at, other.at, one.bytes);
}

static bool among(chunks_span_t span, const char *const *words)
{
    for (; *words; words++) {
        if (is(span, *words))
            return true;
    }
    return false;
}

static const char *const cpu_words[] = {"ncpus", "cores", NULL};
static const char *const reserved[] = {"ncpus",    "mem",        "vmem",  "ngpus",
                                       "mpiprocs", "ompthreads", "host",  "cores",
                                       "select",   "rset",       "place", NULL};

// ---------------------------------------------------------------- errors

__attribute__((format(printf, 3, 4))) static bool fail(reader_t *reader, const char *at,
                                                       const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(reader->problem->words, sizeof(reader->problem->words), format, args);
    va_end(args);
    reader->problem->text = reader->text;
    reader->problem->position = (size_t)(at - reader->text);
    return false;
}

static bool unexpected(reader_t *reader, const char *wanted)
{
    unsigned char sign = (unsigned char)*reader->at;
    if (!sign)
        return fail(reader, reader->at, "%s is expected, not the end", wanted);
    if (sign < ' ' || sign > '~')
        return fail(reader, reader->at, "%s is expected, not an unprintable character", wanted);
    return fail(reader, reader->at, "%s is expected, not '%c'", wanted, sign);
}

static bool twice(reader_t *reader, const char *at, chunks_span_t name)
{
    return fail(reader, at, "'%.*s' is given twice; leave out one of them", (int)name.bytes,
                name.at);
}

void chunks_point(const chunks_problem_t *problem, char *lines, size_t bytes)
{
    char shown[71];
    if (!problem->text) {
        snprintf(lines, bytes, "%s", problem->words);
        return;
    }
    size_t begin = problem->position > 50 ? problem->position - 50 : 0;
    snprintf(shown, sizeof(shown), "%s", problem->text + begin);
    for (char *sign = shown; *sign; sign++) {
        if (*sign < ' ' || *sign > '~')
            *sign = '?';
    }
    snprintf(lines, bytes, "%s\n  %s\n  %*s", problem->words, shown,
             (int)(problem->position - begin) + 1, "^");
}

// ---------------------------------------------------------------- words and numbers

static bool take(reader_t *reader, char sign)
{
    if (*reader->at != sign)
        return false;
    reader->at++;
    return true;
}

static bool take_word(reader_t *reader, const char *word)
{
    if (strncasecmp(reader->at, word, strlen(word)) != 0)
        return false;
    reader->at += strlen(word);
    return true;
}

static chunks_span_t run(const reader_t *reader, const char *signs, size_t maximum)
{
    size_t bytes = strspn(reader->at, signs);
    return (chunks_span_t){reader->at, bytes < maximum ? bytes : maximum};
}

static bool take_value(reader_t *reader, const char *what, chunks_span_t *value)
{
    *value = run(reader, VALUE_SIGNS, 64);
    if (!value->bytes)
        return unexpected(reader, what);
    reader->at += value->bytes;
    return true;
}

static bool take_name(reader_t *reader, const char *what, chunks_span_t *name)
{
    if (!strchr(LETTERS "_", *reader->at) || !*reader->at)
        return unexpected(reader, what);
    return take_value(reader, what, name);
}

static uint64_t number_of(chunks_span_t digits)
{
    uint64_t number = 0;
    for (size_t i = 0; i < digits.bytes; i++)
        number = 10 * number + (uint64_t)(digits.at[i] - '0');
    return number;
}

static bool bounded(reader_t *reader, chunks_span_t digits, uint64_t minimum, uint64_t maximum,
                    chunks_span_t what, uint32_t *number)
{
    uint64_t found = number_of(digits);
    if (found < minimum || found > maximum)
        return fail(reader, digits.at, "%.*s must be from %llu to %llu", (int)what.bytes, what.at,
                    (unsigned long long)minimum, (unsigned long long)maximum);
    reader->at = digits.at + digits.bytes;
    *number = (uint32_t)found;
    return true;
}

// A decimal number without leading zeros.
static bool is_number(chunks_span_t word)
{
    return word.bytes <= MAX_DIGITS && strspn(word.at, DIGITS) >= word.bytes &&
           (word.at[0] != '0' || word.bytes == 1);
}

static bool take_number(reader_t *reader, chunks_span_t what, uint32_t *number)
{
    char wanted[64];
    chunks_span_t digits = run(reader, DIGITS, MAX_DIGITS);
    snprintf(wanted, sizeof(wanted), "a whole number, as in %.*s=4", (int)what.bytes, what.at);
    if (!digits.bytes)
        return unexpected(reader, wanted);
    if (!bounded(reader, digits, 1, MAX_CPUS, what, number))
        return false;
    return !run(reader, VALUE_SIGNS, 1).bytes || unexpected(reader, wanted);
}

static bool take_size(reader_t *reader, uint64_t *mib)
{
    static const struct {
        const char *name;
        int shift;
    } units[] = {{"b", 0},  {"k", 10},  {"kb", 10}, {"m", 20}, {"mb", 20},
                 {"g", 30}, {"gb", 30}, {"t", 40},  {"tb", 40}};
    const char *begin = reader->at;
    chunks_span_t digits = run(reader, DIGITS, MAX_DIGITS);
    if (!digits.bytes)
        return unexpected(reader, "a size, as in mem=4gb");
    chunks_span_t unit = {begin + digits.bytes, strspn(begin + digits.bytes, LETTERS)};
    int shift = -1;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (is(unit, units[i].name))
            shift = units[i].shift;
    }
    if (shift < 0 && !unit.bytes)
        return fail(reader, unit.at, "no unit; write kb, mb, gb or tb, as in mem=4gb");
    if (shift < 0)
        return fail(reader, unit.at, "no unit '%.*s'; write kb, mb, gb or tb, as in mem=4gb",
                    unit.bytes < 16 ? (int)unit.bytes : 16, unit.at);
    unsigned __int128 size = (unsigned __int128)number_of(digits) << shift;
    size = (size + (1u << 20) - 1) >> 20;
    if (size < 1 || size > MAX_MEMORY_MIB)
        return fail(reader, begin, "a size must be from 1mb to 1048576tb");
    if ((uint64_t)size > *mib)
        *mib = (uint64_t)size;
    reader->at = unit.at + unit.bytes;
    return !run(reader, VALUE_SIGNS, 1).bytes ||
           unexpected(reader, "':' or the end of the chunk after the size");
}

// ---------------------------------------------------------------- chunks

static bool read_extra(reader_t *reader, chunks_group_t *group, chunks_span_t name)
{
    const char *value_at = reader->at;
    chunks_span_t word, gpu = {"gpu", 3};
    const char *name_at = name.at;
    if (is(name, "ngpus"))
        name = gpu;
    if (!take_value(reader, "a number, a word or true", &word))
        return false;
    bool is_gpu = same(name, gpu);
    for (size_t i = 0; i < group->n_extras; i++) {
        if (same(group->extras[i].name, name))
            return twice(reader, name_at, name);
    }
    chunks_extra_t *extra = &group->extras[group->n_extras];
    *extra = (chunks_extra_t){.name = name, .counted = is_number(word)};
    if (extra->counted) {
        if (!bounded(reader, word, is_gpu, CHUNKS_MAX_NUMBER, name, &extra->number))
            return false;
    } else if (is_gpu) {
        return fail(reader, value_at, "a number of GPUs is missing; write ngpus=2");
    } else if (is(word, "false")) {
        return fail(reader, value_at,
                    "only features that a node must have can be requested; leave it out or name "
                    "such a feature");
    } else if (!is(word, "true")) {
        extra->word = word;
    }
    group->n_extras++;
    return true;
}

// The built-in resources that a group has named, one bit each.
enum { NCPUS = 1, MEM = 2, VMEM = 4, MPIPROCS = 8, OMPTHREADS = 16, HOST = 32, NGPUS = 64 };

static unsigned built_in(chunks_span_t name)
{
    if (among(name, cpu_words))
        return NCPUS;
    for (unsigned i = 1; i < 7; i++) {
        if (is(name, reserved[i])) {
            static const unsigned bits[] = {0, MEM, VMEM, NGPUS, MPIPROCS, OMPTHREADS, HOST};
            return bits[i];
        }
    }
    return 0;
}

static bool read_resource(reader_t *reader, chunks_group_t *group, unsigned *named)
{
    chunks_span_t name;
    char wanted[96];
    if (!take_name(reader, "a resource, as in ncpus=4", &name))
        return false;
    snprintf(wanted, sizeof(wanted), "'=' and a value after '%.*s'", (int)name.bytes, name.at);
    if (!take(reader, '='))
        return unexpected(reader, wanted);
    unsigned which = built_in(name);
    if (*named & which)
        return twice(reader, name.at, name);
    for (size_t i = 0; i < group->n_extras && !which; i++) {
        if (same(group->extras[i].name, name))
            return twice(reader, name.at, name);
    }
    if (group->n_extras + (size_t)__builtin_popcount(*named & ~NGPUS) == CHUNKS_MAX_GROUPS)
        return fail(reader, name.at, "more than %d resources in a chunk; ask for less",
                    CHUNKS_MAX_GROUPS);
    *named |= which;
    switch (which) {
    case NCPUS:
        return take_number(reader, (chunks_span_t){"ncpus", 5}, &group->ncpus);
    case MEM:
    case VMEM:
        return take_size(reader, &group->mem_mib);
    case MPIPROCS:
        return take_number(reader, name, &group->mpiprocs);
    case OMPTHREADS:
        return take_number(reader, name, &group->ompthreads);
    case HOST:
        return take_value(reader, "the name of a node", &group->host);
    default:
        return read_extra(reader, group, name);
    }
}

static bool read_group(reader_t *reader, chunks_group_t *group)
{
    unsigned named = 0;
    *group = (chunks_group_t){.count = 1, .ncpus = 1};
    chunks_span_t digits = run(reader, DIGITS, MAX_DIGITS);
    if (digits.bytes) {
        chunks_span_t what = {"count of chunks", 15};
        if (!bounded(reader, digits, 1, CHUNKS_MAX_NUMBER, what, &group->count))
            return false;
        if (!take(reader, ':'))
            return true;
    }
    do {
        if (!read_resource(reader, group, &named))
            return false;
    } while (take(reader, ':'));
    return true;
}

// ---------------------------------------------------------------- job-wide items

static bool not_reserved(reader_t *reader, chunks_span_t name)
{
    return !among(name, reserved) ||
           fail(reader, name.at, "'%.*s' is not a licence; resources of a chunk are joined by ':'",
                (int)name.bytes, name.at);
}

static bool read_licence(reader_t *reader, chunks_t *chunks)
{
    const char *at = reader->at;
    chunks_span_t word;
    chunks_extra_t licence = {.counted = true, .number = 1};
    if (!take_value(reader, "place= or a licence, as in matlab=2", &licence.name) ||
        !not_reserved(reader, licence.name))
        return false;
    if (!take(reader, '='))
        return unexpected(reader, "'=' and a number of licences");
    if (!take_value(reader, "a number, or the name of a licence", &word))
        return false;
    if (is_number(word)) {
        if (!bounded(reader, word, 1, CHUNKS_MAX_NUMBER, licence.name, &licence.number))
            return false;
    } else {
        licence.name = word;
        if (!not_reserved(reader, word))
            return false;
    }
    for (size_t i = 0; i < chunks->n_licences; i++) {
        if (same(chunks->licences[i].name, licence.name))
            return twice(reader, at, licence.name);
    }
    if (chunks->n_licences == CHUNKS_MAX_GROUPS)
        return fail(reader, at, "more than %d licences; ask for less", CHUNKS_MAX_GROUPS);
    chunks->licences[chunks->n_licences++] = licence;
    return true;
}

static bool read_place(reader_t *reader, chunks_t *chunks)
{
    static const char *const exclusive[] = {"excl", "exclusive", "exclhost", NULL};
    static const char *const arrangements[] = {"free", "pack", "scatter"};
    bool arranged = false;
    do {
        chunks_span_t word;
        int arrangement = -1;
        if (!take_name(reader, "free, pack, scatter or excl", &word))
            return false;
        for (int i = 0; i < 3; i++) {
            if (is(word, arrangements[i]))
                arrangement = i;
        }
        if (arrangement >= 0) {
            if (arranged)
                return fail(reader, word.at, "give one of free, pack and scatter");
            arranged = true;
            chunks->arrangement = (chunks_arrangement_t)arrangement;
        } else if (among(word, exclusive)) {
            chunks->exclusive = true;
        } else if (is(word, "shared")) {
            chunks->shared = true;
        } else if (is(word, "group")) {
            if (chunks->group.bytes)
                return twice(reader, word.at, word);
            if (!take(reader, '='))
                return unexpected(reader, "'=' and the name of a feature, as in group=rack");
            if (!take_value(reader, "the name of a feature", &chunks->group))
                return false;
        } else {
            return fail(reader, word.at,
                        "no place '%.*s'; there are free, pack, scatter, excl, shared, group=...",
                        (int)word.bytes, word.at);
        }
        if (chunks->exclusive && chunks->shared)
            return fail(reader, word.at,
                        "excl and shared contradict each other; leave out one of them");
    } while (take(reader, ':'));
    return true;
}

// ---------------------------------------------------------------- the whole request

static bool read_chunks(reader_t *reader, chunks_t *chunks, const char **place_at)
{
    uint64_t total = 0;
    if (!take_word(reader, "select="))
        take_word(reader, "rset=");
    if (!*reader->at)
        return fail(reader, reader->at,
                    "nothing is requested; give chunks as in 2:ncpus=4:mem=8gb");
    do {
        if (chunks->n_groups == CHUNKS_MAX_GROUPS)
            return fail(reader, reader->at, "more than %d groups; join equal ones",
                        CHUNKS_MAX_GROUPS);
        if (!read_group(reader, &chunks->groups[chunks->n_groups]))
            return false;
        total += chunks->groups[chunks->n_groups++].count;
    } while (take(reader, '+'));
    while (take(reader, ',')) {
        const char *at = reader->at;
        if (!take_word(reader, "place=")) {
            if (!read_licence(reader, chunks))
                return false;
            continue;
        }
        if (*place_at)
            return fail(reader, at, "the place is given twice; leave out one of them");
        *place_at = at;
        if (!read_place(reader, chunks))
            return false;
    }
    if (*reader->at)
        return unexpected(reader, "'+', ',' or the end");
    return total <= CHUNKS_MAX_NUMBER ||
           fail(reader, reader->text, "more than %u chunks in all; ask for less",
                CHUNKS_MAX_NUMBER);
}

bool chunks_read(chunks_t *chunks, const char *text, const char *place, chunks_problem_t *problem)
{
    const char *place_at = NULL;
    reader_t reader = {.text = text, .at = text, .problem = problem};
    memset(chunks, 0, sizeof(*chunks));
    memset(problem, 0, sizeof(*problem));
    if (strlen(text) > CHUNKS_MAX_LENGTH || (place && strlen(place) > CHUNKS_MAX_LENGTH))
        return fail(&reader, text, "longer than %d characters; ask for less", CHUNKS_MAX_LENGTH);
    if (!read_chunks(&reader, chunks, &place_at))
        return false;
    if (!place || !*place)
        return true;
    if (place_at)
        return fail(&reader, place_at, "the place is given twice; leave out one of them");
    reader.text = reader.at = place;
    take_word(&reader, "place=");
    if (!read_place(&reader, chunks))
        return false;
    return !*reader.at || unexpected(&reader, "':' or the end");
}
