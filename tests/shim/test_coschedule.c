// SPDX-License-Identifier: GPL-2.0-or-later
// --coschedule and --max-slowdown as users write them.
#include "options/coschedule.h"

#include <string.h>

#include "expect.h"

static void consent_is_one_of_four_words(void) {
    static const char *const words[] = {"host", "guest", "both", "never"};
    char problem[512];
    for (int i = 0; i < 4; i++) {
        coschedule_t found = COSCHEDULE_UNSTATED;
        EXPECT(coschedule_read(&found, words[i], problem, sizeof(problem)));
        EXPECT_NUMBER(found, i + 1);
        EXPECT_NUMBER(coschedule_hosts(found), i == 0 || i == 2);
        EXPECT_NUMBER(coschedule_is_guest(found), i == 1 || i == 2);
    }
}

static void anything_else_is_refused_with_a_line(void) {
    static const char *const wrong[] = {"", "Host", "hosts", "host,guest", "1", NULL};
    char problem[512];
    for (int i = 0; i < 6; i++) {
        coschedule_t found = COSCHEDULE_UNSTATED;
        EXPECT(!coschedule_read(&found, wrong[i], problem, sizeof(problem)));
        EXPECT_SAYS(problem, "both or never");
        EXPECT_NUMBER(found, COSCHEDULE_UNSTATED);
    }
}

static void slowdowns_are_fractions_or_percentages(void) {
    static const struct {
        const char *value;
        uint32_t permille;
    } cases[] = {{"0.1", 100}, {".05", 50},  {"1", 1000},    {"1.000", 1000}, {"0.001", 1},
                 {"10%", 100}, {"7.5%", 75}, {"100%", 1000}, {"0.1%", 1},     {"1.%", 10}};
    char problem[512];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t found = 0;
        EXPECT(coschedule_read_slowdown(&found, cases[i].value, problem, sizeof(problem)));
        EXPECT_NUMBER(found, cases[i].permille);
    }
}

static void other_slowdowns_are_refused_with_a_line(void) {
    static const char *const wrong[] = {"",
                                        "0",
                                        "0%",
                                        "-0.1",
                                        "1.001",
                                        "101%",
                                        "0.0001",
                                        "10 %",
                                        "x",
                                        ".",
                                        "%",
                                        "1e-1",
                                        "10",
                                        "0.01%",
                                        "0..1",
                                        "nan",
                                        "99999999999999999999%",
                                        NULL};
    char problem[512];
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        uint32_t found = 7;
        EXPECT(!coschedule_read_slowdown(&found, wrong[i], problem, sizeof(problem)));
        EXPECT_SAYS(problem, "--max-slowdown=10%");
        EXPECT_NUMBER(found, 7);
    }
}

int main(void) {
    consent_is_one_of_four_words();
    anything_else_is_refused_with_a_line();
    slowdowns_are_fractions_or_percentages();
    other_slowdowns_are_refused_with_a_line();
    DONE();
}
