// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/malleable.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY_PREFIX "_SLURM_SPANK_OPTION_" MALLEABLE_PLUGIN "_"

const char *const malleable_names[MALLEABLE_OPTIONS] = {
    [MALLEABLE_MIN_NODES] = "min-nodes-invasic",
    [MALLEABLE_MAX_NODES_OPTION] = "max-nodes-invasic",
    [MALLEABLE_RANGE] = "malleable",
    [MALLEABLE_CONSTRAINT] = "node-constraints",
    [MALLEABLE_MIN_POWER] = "min-power",
    [MALLEABLE_MAX_POWER] = "max-power",
    [MALLEABLE_NO_RESIZE] = "no-resize",
};

static const char *const constraints[] = {"pof2", "even", "odd", "cubic"};

// A decimal number from 1 to most that ends exactly at `end`; 0: it is not.
static uint32_t number(const char *text, const char *end, uint32_t maximum)
{
    uint64_t value = 0;
    if (text == end)
        return 0;
    for (; text < end; text++) {
        if (!isdigit((unsigned char)*text))
            return 0;
        value = 10 * value + (uint64_t)(*text - '0');
        if (value > maximum)
            return 0;
    }
    return (uint32_t)value;
}

static bool take_number(uint32_t *to, malleable_option_t option, const char *value,
                        uint32_t maximum, const char *what, char *problem, size_t bytes)
{
    *to = number(value, value + strlen(value), maximum);
    if (!*to)
        snprintf(problem, bytes,
                 "--%s=%.40s: give a whole number of %s from 1 to %u, for instance --%s=4",
                 malleable_names[option], value, what, maximum, malleable_names[option]);
    return *to != 0;
}

// Slurm gives an option without a value the text of a null pointer, or none.
static bool take_flag(bool *to, malleable_option_t option, const char *value, char *problem,
                      size_t bytes)
{
    *to = !value[0] || !strcmp(value, "(null)");
    if (!*to)
        snprintf(problem, bytes, "--%s=%.40s: give it without a value", malleable_names[option],
                 value);
    return *to;
}

static bool take_range(malleable_t *malleable, const char *value, char *problem, size_t bytes)
{
    const char *dash = strchr(value, '-');
    uint32_t minimum = dash ? number(value, dash, MALLEABLE_MAX_NODES) : 0;
    uint32_t maximum = dash ? number(dash + 1, value + strlen(value), MALLEABLE_MAX_NODES) : 0;
    if (!minimum || !maximum || minimum > maximum) {
        snprintf(problem, bytes,
                 "--malleable=%.40s: give the least and the most nodes as MIN-MAX, from 1 to %u, "
                 "the smaller one first, for instance --malleable=2-8",
                 value, MALLEABLE_MAX_NODES);
        return false;
    }
    malleable->range_min_nodes = minimum;
    malleable->range_max_nodes = maximum;
    return true;
}

static bool take_constraint(malleable_t *malleable, const char *value, char *problem, size_t bytes)
{
    for (size_t i = 0; i < sizeof(constraints) / sizeof(constraints[0]); i++) {
        if (!strcmp(value, constraints[i])) {
            strcpy(malleable->constraint, value);
            return true;
        }
    }
    snprintf(problem, bytes,
             "--node-constraints=%.40s: give one of pof2 (1, 2, 4, 8 ...), even, odd or cubic "
             "(1, 8, 27 ...)",
             value);
    return false;
}

bool malleable_take(malleable_t *malleable, malleable_option_t option, const char *value,
                    char *problem, size_t bytes)
{
    if (!value)
        value = "";
    switch (option) {
    case MALLEABLE_MIN_NODES:
        return take_number(&malleable->min_nodes, option, value, MALLEABLE_MAX_NODES, "nodes",
                           problem, bytes);
    case MALLEABLE_MAX_NODES_OPTION:
        return take_number(&malleable->max_nodes, option, value, MALLEABLE_MAX_NODES, "nodes",
                           problem, bytes);
    case MALLEABLE_RANGE:
        return take_range(malleable, value, problem, bytes);
    case MALLEABLE_CONSTRAINT:
        return take_constraint(malleable, value, problem, bytes);
    case MALLEABLE_MIN_POWER:
        return take_number(&malleable->min_power_w, option, value, MALLEABLE_MAX_POWER_W,
                           "watts per node", problem, bytes);
    case MALLEABLE_MAX_POWER:
        return take_number(&malleable->max_power_w, option, value, MALLEABLE_MAX_POWER_W,
                           "watts per node", problem, bytes);
    case MALLEABLE_NO_RESIZE:
        return take_flag(&malleable->no_resize, option, value, problem, bytes);
    case MALLEABLE_OPTIONS:
        break;
    }
    return false;
}

static bool agrees(uint32_t *with, uint32_t range, malleable_option_t option, char *problem,
                   size_t bytes)
{
    if (range && *with && *with != range) {
        snprintf(problem, bytes,
                 "--malleable gives %u nodes where --%s gives %u: give only one of the two forms",
                 range, malleable_names[option], *with);
        return false;
    }
    if (range)
        *with = range;
    return true;
}

bool malleable_allows(const malleable_t *malleable, uint32_t nodes)
{
    if (!nodes)
        return false;
    if (!strcmp(malleable->constraint, "pof2"))
        return (nodes & (nodes - 1)) == 0;
    if (!strcmp(malleable->constraint, "even"))
        return nodes % 2 == 0;
    if (!strcmp(malleable->constraint, "odd"))
        return nodes % 2 == 1;
    if (!strcmp(malleable->constraint, "cubic")) {
        uint64_t edge = 1;
        while (edge * edge * edge < nodes)
            edge++;
        return edge * edge * edge == nodes;
    }
    return true;
}

static bool some_count_is_allowed(const malleable_t *malleable)
{
    if (!malleable->constraint[0] || !malleable->max_nodes)
        return true;
    uint32_t minimum = malleable->min_nodes ? malleable->min_nodes : 1;
    for (uint32_t nodes = minimum; nodes <= malleable->max_nodes; nodes++) {
        if (malleable_allows(malleable, nodes))
            return true;
    }
    return false;
}

// The first allowed number from `from` to `to`, upwards or downwards; 0: none.
static uint32_t allowed_between(const malleable_t *malleable, uint32_t from, uint32_t to)
{
    for (uint32_t nodes = from; nodes; nodes += from <= to ? 1 : -1) {
        if (malleable_allows(malleable, nodes))
            return nodes;
        if (nodes == to)
            break;
    }
    return 0;
}

static const char *constraint_words(const malleable_t *malleable)
{
    const char *name = malleable->constraint;
    return !strcmp(name, "pof2") ? "a power of two" : !strcmp(name, "cubic") ? "a cube" : name;
}

bool malleable_fits(const malleable_t *malleable, uint32_t minimum, uint32_t maximum, char *problem,
                    size_t bytes)
{
    uint32_t low = malleable->min_nodes ? malleable->min_nodes : 1;
    uint32_t high = malleable->max_nodes ? malleable->max_nodes : MALLEABLE_MAX_NODES;
    uint32_t from = minimum > low ? minimum : low;
    uint32_t to = maximum && maximum < high ? maximum : high;
    char given[32], range[64] = "", rather[64] = "";
    if (from <= to && allowed_between(malleable, from, to))
        return true;
    if (minimum == maximum)
        snprintf(given, sizeof(given), "%u", minimum);
    else
        snprintf(given, sizeof(given), "%u-%u", minimum, maximum);
    if (malleable->max_nodes)
        snprintf(range, sizeof(range), "%u to %u%s", low, high,
                 malleable->constraint[0] ? ", " : "");
    else if (malleable->min_nodes)
        snprintf(range, sizeof(range), "at least %u%s", low, malleable->constraint[0] ? ", " : "");
    uint32_t below =
        minimum > low ? allowed_between(malleable, minimum < high ? minimum : high, low) : 0;
    uint32_t above = maximum && maximum < high
                         ? allowed_between(malleable, maximum > low ? maximum : low, high)
                         : 0;
    if (below && above)
        snprintf(rather, sizeof(rather), "--nodes=%u or --nodes=%u", below, above);
    else
        snprintf(rather, sizeof(rather), "--nodes=%u", below ? below : above);
    snprintf(problem, bytes,
             "--nodes=%s: the job may run on other numbers of nodes only (%s%s): give %s, or leave "
             "--nodes out",
             given, range, constraint_words(malleable), rather);
    return false;
}

bool malleable_settle(malleable_t *malleable, char *problem, size_t bytes)
{
    if (!agrees(&malleable->min_nodes, malleable->range_min_nodes, MALLEABLE_MIN_NODES, problem,
                bytes) ||
        !agrees(&malleable->max_nodes, malleable->range_max_nodes, MALLEABLE_MAX_NODES_OPTION,
                problem, bytes))
        return false;
    if (malleable->max_nodes && malleable->min_nodes > malleable->max_nodes) {
        snprintf(problem, bytes,
                 "--min-nodes-invasic=%u is more than --max-nodes-invasic=%u: exchange them or "
                 "raise the upper one",
                 malleable->min_nodes, malleable->max_nodes);
        return false;
    }
    if (malleable->max_power_w && malleable->min_power_w > malleable->max_power_w) {
        snprintf(problem, bytes,
                 "--min-power=%u is more than --max-power=%u: exchange them or raise the upper one",
                 malleable->min_power_w, malleable->max_power_w);
        return false;
    }
    if (!some_count_is_allowed(malleable)) {
        snprintf(
            problem, bytes,
            "--node-constraints=%s: no number of nodes from %u to %u is %s; widen the range or "
            "choose another constraint",
            malleable->constraint, malleable->min_nodes ? malleable->min_nodes : 1,
            malleable->max_nodes, constraint_words(malleable));
        return false;
    }
    return true;
}

// Compares an option's name with its form in an environment variable.
static bool same_name(const char *option, const char *variable, size_t bytes)
{
    if (strlen(option) != bytes)
        return false;
    for (size_t i = 0; i < bytes; i++) {
        if ((option[i] == '-' ? '_' : option[i]) != variable[i])
            return false;
    }
    return true;
}

const char *malleable_entry_value(const char *entry, const char *option)
{
    if (!strncmp(entry, "SPANK_", 6))
        entry += 6;
    if (strncmp(entry, ENTRY_PREFIX, sizeof(ENTRY_PREFIX) - 1) != 0)
        return NULL;
    entry += sizeof(ENTRY_PREFIX) - 1;
    const char *equals = strchr(entry, '=');
    return equals && same_name(option, entry, (size_t)(equals - entry)) ? equals + 1 : NULL;
}

bool malleable_take_entry(malleable_t *malleable, const char *entry, bool *ours, char *problem,
                          size_t bytes)
{
    *ours = false;
    for (int option = 0; option < MALLEABLE_OPTIONS; option++) {
        const char *value = malleable_entry_value(entry, malleable_names[option]);
        if (value) {
            *ours = true;
            return malleable_take(malleable, (malleable_option_t)option, value, problem, bytes);
        }
    }
    return true;
}
