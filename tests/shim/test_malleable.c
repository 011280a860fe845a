// SPDX-License-Identifier: GPL-2.0-or-later
#include "expect.h"
#include "options/malleable.h"

static char problem[512];

// Takes "option=value option=value ..."; true if all of it is accepted.
static bool accept(const char *words, malleable_t *malleable) {
    char *copy = strdup(words), *rest = NULL;
    bool good = true;
    memset(malleable, 0, sizeof(*malleable));
    problem[0] = 0;
    for (char *word = strtok_r(copy, " ", &rest); word && good; word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        *equals = 0;
        int option = 0;
        while (option < MALLEABLE_OPTIONS && strcmp(malleable_names[option], word) != 0)
            option++;
        EXPECT(option < MALLEABLE_OPTIONS);
        good = malleable_take(malleable, (malleable_option_t)option, equals + 1, problem,
                              sizeof(problem));
    }
    free(copy);
    return good && malleable_settle(malleable, problem, sizeof(problem));
}

static void right_values_are_taken(void) {
    malleable_t found;
    EXPECT(accept("malleable=2-8 node-constraints=pof2", &found));
    EXPECT_NUMBER(found.min_nodes, 2);
    EXPECT_NUMBER(found.max_nodes, 8);
    EXPECT_TEXT(found.constraint, "pof2");
    EXPECT(accept("min-nodes-invasic=3", &found));
    EXPECT_NUMBER(found.min_nodes, 3);
    EXPECT_NUMBER(found.max_nodes, 0);
    EXPECT(accept("min-power=100 max-power=100", &found));
    EXPECT_NUMBER(found.min_power_w, 100);
    EXPECT(accept("malleable=2-4 min-nodes-invasic=2 max-nodes-invasic=4", &found));
    EXPECT(!found.no_resize);
    EXPECT(accept("malleable=1-4 no-resize=", &found));
    EXPECT(found.no_resize);
    EXPECT(accept("malleable=1000000-1000000", &found));
    EXPECT(accept("node-constraints=cubic max-nodes-invasic=1", &found));
}

static void wrong_values_are_named_and_mended(void) {
    static const struct {
        const char *words, *names, *mends;
    } wrong[] = {
        {"min-nodes-invasic=0", "--min-nodes-invasic=0", "from 1 to"},
        {"min-nodes-invasic=", "--min-nodes-invasic=", "whole number"},
        {"min-nodes-invasic=+4", "--min-nodes-invasic=+4", "whole number"},
        {"max-nodes-invasic=1000001", "1000001", "1000000"},
        {"max-nodes-invasic=18446744073709551617", "--max-nodes-invasic", "whole number"},
        {"max-nodes-invasic=4x", "4x", "--max-nodes-invasic=4"},
        {"malleable=4", "--malleable=4", "MIN-MAX"},
        {"malleable=-4", "--malleable=-4", "MIN-MAX"},
        {"malleable=4-", "--malleable=4-", "MIN-MAX"},
        {"malleable=8-2", "--malleable=8-2", "smaller one first"},
        {"malleable=1-2-3", "--malleable=1-2-3", "MIN-MAX"},
        {"node-constraints=POF2", "--node-constraints=POF2", "pof2"},
        {"node-constraints=", "--node-constraints=", "cubic"},
        {"min-power=-5", "--min-power=-5", "watts"},
        {"max-power=1e3", "--max-power=1e3", "watts"},
        {"min-nodes-invasic=5 max-nodes-invasic=4", "--min-nodes-invasic=5",
         "--max-nodes-invasic=4"},
        {"min-power=5 max-power=4", "--min-power=5", "--max-power=4"},
        {"malleable=2-4 max-nodes-invasic=5", "--malleable", "only one"},
        {"malleable=5-7 node-constraints=pof2", "--node-constraints=pof2", "widen"},
        {"malleable=3-3 node-constraints=even", "--node-constraints=even", "from 3 to 3"},
        {"malleable=9-26 node-constraints=cubic", "--node-constraints=cubic", "a cube"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        malleable_t found;
        EXPECT(!accept(wrong[i].words, &found));
        EXPECT_SAYS(problem, wrong[i].names);
        EXPECT_SAYS(problem, wrong[i].mends);
        EXPECT(!strchr(problem, '\n'));
    }
}

static void a_number_of_nodes_that_is_not_allowed_is_refused(void) {
    static const struct {
        const char *words;
        uint32_t minimum, maximum;
        const char *rather; // NULL: it is allowed
    } cases[] = {
        {"malleable=1-8 node-constraints=pof2", 3, 3, "give --nodes=2 or --nodes=4, or leave"},
        {"malleable=1-8 node-constraints=pof2", 3, 3, "--nodes=3:"},
        {"malleable=1-8 node-constraints=pof2", 3, 3, "(1 to 8, a power of two)"},
        {"malleable=1-8 node-constraints=pof2", 5, 7, "--nodes=5-7:"},
        {"malleable=1-8 node-constraints=pof2", 5, 7, "give --nodes=4 or --nodes=8, or leave"},
        {"malleable=1-8 node-constraints=pof2", 3, 4, NULL},
        {"malleable=1-8 node-constraints=pof2", 1, 0, NULL},
        {"malleable=2-7 node-constraints=pof2", 5, 5, "give --nodes=4, or leave"},
        {"malleable=2-8", 1, 1, "give --nodes=2, or leave"},
        {"malleable=2-8", 1, 1, "(2 to 8)"},
        {"malleable=2-8", 9, 16, "give --nodes=8, or leave"},
        {"malleable=2-8", 9, 0, "give --nodes=8, or leave"},
        {"malleable=2-8", 1, 16, NULL},
        {"malleable=2-8", 8, 8, NULL},
        {"malleable=3-3", 5, 5, "give --nodes=3, or leave"},
        {"min-nodes-invasic=4", 2, 3, "give --nodes=4, or leave"},
        {"min-nodes-invasic=4", 2, 3, "(at least 4)"},
        {"max-nodes-invasic=4", 6, 6, "give --nodes=4, or leave"},
        {"node-constraints=even", 3, 3, "give --nodes=2 or --nodes=4, or leave"},
        {"node-constraints=cubic", 2, 7, "give --nodes=1 or --nodes=8, or leave"},
        {"node-constraints=odd", 4, 5, NULL},
        {"min-power=90", 3, 3, NULL},
        {"malleable=1-4 no-resize=", 5, 5, "give --nodes=4, or leave"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        malleable_t found;
        EXPECT(accept(cases[i].words, &found));
        bool good =
            malleable_fits(&found, cases[i].minimum, cases[i].maximum, problem, sizeof(problem));
        EXPECT(good == (cases[i].rather == NULL));
        if (cases[i].rather)
            EXPECT_SAYS(problem, cases[i].rather);
    }
}

static void a_long_value_is_cut_in_the_message(void) {
    char value[5000];
    malleable_t found = {0};
    memset(value, 'x', sizeof(value) - 1);
    value[sizeof(value) - 1] = 0;
    for (int option = 0; option < MALLEABLE_OPTIONS; option++) {
        EXPECT(
            !malleable_take(&found, (malleable_option_t)option, value, problem, sizeof(problem)));
        EXPECT(strlen(problem) < 250);
    }
    EXPECT(!malleable_take(&found, MALLEABLE_RANGE, NULL, problem, sizeof(problem)));
}

// The same table as service, kernels and checker are tested with.
static void constraints_allow_their_numbers(void) {
    FILE *file = fopen("widths.cases", "r");
    char line[4096];
    int rules = 0;
    EXPECT(file != NULL);
    while (fgets(line, sizeof(line), file)) {
        if (line[0] == '#')
            continue;
        char *allowed = strstr(line, " ; ");
        EXPECT(allowed != NULL);
        *allowed = 0;
        malleable_t malleable = {0};
        if (strcmp(line, "any") != 0)
            EXPECT(
                malleable_take(&malleable, MALLEABLE_CONSTRAINT, line, problem, sizeof(problem)));
        char *next = strtok(allowed + 3, " \n");
        for (uint32_t nodes = 0; nodes <= 64; nodes++) {
            bool listed = next && (uint32_t)atoi(next) == nodes;
            EXPECT(malleable_allows(&malleable, nodes) == listed);
            if (listed)
                next = strtok(NULL, " \n");
        }
        EXPECT(next == NULL);
        rules++;
    }
    EXPECT_NUMBER(rules, 5);
    fclose(file);
}

static void entries_of_the_environment_are_read(void) {
    static const struct {
        const char *entry;
        bool ours, good;
    } cases[] = {
        {"_SLURM_SPANK_OPTION_schedbridge_min_nodes_invasic=4", true, true},
        {"SPANK__SLURM_SPANK_OPTION_schedbridge_min_nodes_invasic=4", true, true},
        {"_SLURM_SPANK_OPTION_schedbridge_node_constraints=even", true, true},
        {"_SLURM_SPANK_OPTION_schedbridge_node_constraints=prime", true, false},
        {"_SLURM_SPANK_OPTION_schedbridge_malleable=", true, false},
        {"_SLURM_SPANK_OPTION_schedbridge_malleable", false, true},
        {"_SLURM_SPANK_OPTION_schedbridge_other=4", false, true},
        {"_SLURM_SPANK_OPTION_another_malleable=x", false, true},
        {"PATH=/bin", false, true},
        {"SPANK_", false, true},
        {"", false, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        malleable_t malleable = {0};
        bool ours = true;
        char *entry = strdup(cases[i].entry);
        EXPECT_NUMBER(malleable_take_entry(&malleable, entry, &ours, problem, sizeof(problem)),
                      cases[i].good);
        EXPECT_NUMBER(ours, cases[i].ours);
        free(entry);
    }
}

int main(void) {
    right_values_are_taken();
    wrong_values_are_named_and_mended();
    a_number_of_nodes_that_is_not_allowed_is_refused();
    a_long_value_is_cut_in_the_message();
    constraints_allow_their_numbers();
    entries_of_the_environment_are_read();
    DONE();
}
