// SPDX-License-Identifier: GPL-2.0-or-later
#include <ctype.h>

#include "expect.h"
#include "options/chunks.h"

static chunks_t chunks;
static chunks_problem_t problem;

static char *trimmed(char *text) {
    while (isspace((unsigned char)*text))
        text++;
    for (char *end = text + strlen(text); end > text && isspace((unsigned char)end[-1]);)
        *--end = 0;
    return text;
}

// The options in one line; false: refused.
static bool say(const char *text, const char *place, char *line, size_t bytes) {
    chunks_options_t options = {.count = 0};
    if (!chunks_read(&chunks, text, place, &problem) ||
        !chunks_lower(&chunks, "gpu,fpga", &options, &problem))
        return false;
    size_t used = 0;
    for (size_t i = 0; i < options.count; i++) {
        const chunks_option_t *option = &options.items[i];
        used +=
            (size_t)snprintf(line + used, bytes - used, "%s--%s%s%s", i ? " " : "", option->name,
                             option->value ? "=" : "", option->value ? option->value : "");
        EXPECT(used < bytes);
    }
    chunks_options_free(&options);
    return true;
}

// The same table as the Python side is tested with.
static void the_table_holds(void) {
    FILE *file = fopen("chunks.cases", "r");
    char line[4096], said[4096];
    int cases = 0;
    EXPECT(file != NULL);
    while (fgets(line, sizeof(line), file)) {
        if (line[0] == '#' || line[0] == '\n')
            continue;
        char *place = strchr(line, ';'), *wanted = place ? strchr(place + 1, ';') : NULL;
        EXPECT(wanted != NULL);
        *place++ = 0;
        *wanted++ = 0;
        char *text = trimmed(line);
        place = trimmed(place);
        wanted = trimmed(wanted);
        cases++;
        if (wanted[0] != '!') {
            if (!say(text, place, said, sizeof(said))) {
                fprintf(stderr, "%s; %s: %s\n", text, place, problem.words);
                exit(1);
            }
            EXPECT_TEXT(said, wanted);
            continue;
        }
        if (say(text, place, said, sizeof(said))) {
            fprintf(stderr, "%s; %s: taken, %s\n", text, place, said);
            exit(1);
        }
        EXPECT(problem.words[0]);
        unsigned position = (unsigned)atoi(strchr(wanted, ' '));
        if (!position) {
            EXPECT(problem.text == NULL);
            continue;
        }
        EXPECT(problem.text == (wanted[1] == 'c' ? text : place));
        if (problem.position + 1 != position) {
            fprintf(stderr, "%s; %s: ", text, place);
            EXPECT_NUMBER(problem.position + 1, position);
        }
    }
    EXPECT(cases > 60);
    fclose(file);
}

static void problems_are_pointed_at(void) {
    char lines[512];
    EXPECT(!chunks_read(&chunks, "2:ncpus=4:mem=10+ncpus=1", NULL, &problem));
    chunks_point(&problem, lines, sizeof(lines));
    EXPECT_TEXT(lines, "no unit; write kb, mb, gb or tb, as in mem=4gb\n"
                       "  2:ncpus=4:mem=10+ncpus=1\n"
                       "                  ^");
    char far[1000] = "";
    for (int i = 0; i < 60; i++)
        strcat(far, "ncpus=1+");
    strcat(far, "ncpus=\x01\xff");
    EXPECT(!chunks_read(&chunks, far, NULL, &problem));
    chunks_point(&problem, lines, sizeof(lines));
    char *shown = strchr(lines, '\n') + 1, *caret = strchr(shown, '\n') + 1;
    EXPECT(shown[strchr(caret, '^') - caret] == '?');
}

static void size_is_bounded(void) {
    static char text[CHUNKS_MAX_LENGTH + 2];
    memset(text, '1', sizeof(text) - 1);
    EXPECT(!chunks_read(&chunks, text, NULL, &problem));
    EXPECT_SAYS(problem.words, "4096");
    EXPECT(!chunks_read(&chunks, "ncpus=1", text, &problem));
    text[0] = 0;
    for (int i = 0; i <= CHUNKS_MAX_GROUPS; i++)
        strcat(text, i ? "+ncpus=1" : "ncpus=1");
    EXPECT(!chunks_read(&chunks, text, NULL, &problem));
    EXPECT_SAYS(problem.words, "64 groups");
    text[0] = 0;
    for (int i = 0; i <= CHUNKS_MAX_GROUPS; i++)
        sprintf(text + strlen(text), "%sr%d=1", i ? ":" : "", i);
    EXPECT(!chunks_read(&chunks, text, NULL, &problem));
    EXPECT_SAYS(problem.words, "64 resources");
    strcpy(text, "ncpus=1");
    for (int i = 0; i <= CHUNKS_MAX_GROUPS; i++)
        sprintf(text + strlen(text), ",l%d=1", i);
    EXPECT(!chunks_read(&chunks, text, NULL, &problem));
    EXPECT_SAYS(problem.words, "64 licences");
}

// Pieces of the language in any order: nothing but true or a problem within the text.
static void anything_is_survived(unsigned rounds) {
    static const char *const pieces[] = {
        "ncpus=", "mem=",   "place=", "select=", "free",      "scatter",
        "excl",   "group=", "ngpus=", "gpu=",    "host=",     ":",
        "+",      ",",      "=",      "1",       "0",         "4gb",
        "true",   "x",      "\xc3",   " ",       "mpiprocs=", "9999999999999999999"};
    static char said[1 << 16];
    srand(1);
    for (unsigned round = 0; round < rounds; round++) {
        char text[256] = "", place[256] = "";
        for (int i = rand() % 14; i > 0; i--)
            strcat(text, pieces[(size_t)rand() % (sizeof(pieces) / sizeof(pieces[0]))]);
        for (int i = rand() % 5; i > 0; i--)
            strcat(place, pieces[(size_t)rand() % (sizeof(pieces) / sizeof(pieces[0]))]);
        char lines[512];
        if (say(text, place, said, sizeof(said)))
            continue;
        EXPECT(problem.words[0]);
        EXPECT(!problem.text || problem.position <= strlen(problem.text));
        chunks_point(&problem, lines, sizeof(lines));
    }
}

static void threads_are_told_where_all_agree(void) {
    EXPECT(chunks_read(&chunks, "ncpus=2:ompthreads=2+ncpus=4:ompthreads=2", NULL, &problem));
    EXPECT_NUMBER(chunks_threads(&chunks), 2);
    EXPECT(chunks_read(&chunks, "ncpus=2:ompthreads=2+ncpus=4", NULL, &problem));
    EXPECT_NUMBER(chunks_threads(&chunks), 0);
}

int main(int argc, char **argv) {
    the_table_holds();
    problems_are_pointed_at();
    size_is_bounded();
    threads_are_told_where_all_agree();
    anything_is_survived(argc > 1 ? (unsigned)atoi(argv[1]) : 20000);
    DONE();
}
