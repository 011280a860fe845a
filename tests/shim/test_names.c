// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/names.h"
#include "expect.h"

static void names_are_counted(void) {
    EXPECT_NUMBER(names_count("n1", 10), 1);
    EXPECT_NUMBER(names_count("n1,n2,big.example-3_x", 10), 3);
    EXPECT_NUMBER(names_count("n[1-3,7],big1", 10), 5);
    EXPECT_NUMBER(names_count("r[1-2]n[01-04]", 10), 8);
    EXPECT_NUMBER(names_count("r[1-2]n[01-04]x", 8), 8);
    EXPECT_NUMBER(names_count("n[000000000000000001-3]", 3), 3);
}

static void a_list_of_more_than_there_are_is_none(void) {
    EXPECT_NUMBER(names_count("n[1-3]", 2), 0);
    EXPECT_NUMBER(names_count("n1,n1,n1", 2), 0);
    EXPECT_NUMBER(names_count("r[1-2]n[01-04]", 7), 0);
    EXPECT_NUMBER(names_count("n[1-4000000000]", 100000), 0);
    EXPECT_NUMBER(names_count("n[0-999999999999999999]", SIZE_MAX), 1000000000000000000);
    EXPECT_NUMBER(names_count("a[0-999999999999999999]b[0-99]", SIZE_MAX), 0); // more than 2^64
    EXPECT_NUMBER(names_count("n1", 0), 0);
}

static void what_is_no_list_is_refused(void) {
    static const char *const wrong[] = {
        "",      ",",        "n1,",   ",n1",    "n1,,n2", "n[",    "n[]",
        "n[1",   "n[1-]",    "n[-1]", "n[3-1]", "n[1,]",  "n]",    "n[1]]",
        "n[[1]", "n[1-2-3]", "n[a]",  "n 1",    "n1\n",   "n\x80", "n[1234567890123456789]",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        EXPECT_NUMBER(names_count(wrong[i], 1000), 0);
}

static void a_long_list_is_refused(void) {
    char *list = malloc(NAMES_MAX_BYTES + 2);
    memset(list, 'n', NAMES_MAX_BYTES + 1);
    list[NAMES_MAX_BYTES + 1] = 0;
    EXPECT_NUMBER(names_count(list, 10), 0);
    list[NAMES_MAX_BYTES] = 0;
    EXPECT_NUMBER(names_count(list, 10), 1);
    free(list);
}

// The same table as the Python side is tested with.
static void the_table_holds(void) {
    FILE *file = fopen("hostlists.cases", "r");
    char line[4096];
    int cases = 0;
    EXPECT(file != NULL);
    while (fgets(line, sizeof(line), file)) {
        if (line[0] == '#' || line[0] == '\n')
            continue;
        char *names = strstr(line, " ; ");
        EXPECT(names != NULL);
        *names = 0;
        size_t count = 0;
        for (char *name = strtok(names + 3, " \n"); name; name = strtok(NULL, " \n"))
            count += strcmp(name, "!") != 0;
        if (names_count(line, 1000) != count) {
            fprintf(stderr, "%s: ", line);
            EXPECT_NUMBER(names_count(line, 1000), count);
        }
        cases++;
    }
    EXPECT(cases > 20);
    fclose(file);
}

int main(void) {
    the_table_holds();
    names_are_counted();
    a_list_of_more_than_there_are_is_none();
    what_is_no_list_is_refused();
    a_long_list_is_refused();
    DONE();
}
