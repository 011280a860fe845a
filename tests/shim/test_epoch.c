// SPDX-License-Identifier: GPL-2.0-or-later
#include <sys/stat.h>
#include <unistd.h>

#include "cycle/epoch.h"
#include "expect.h"

#define NOW UINT64_C(1795316341000000)

static char directory[] = "/tmp/test_epoch.XXXXXX", path[100], problem[300];

static uint64_t begin(uint64_t now_us) {
    return epoch_begin(directory, now_us, problem, sizeof(problem));
}

static void put(const char *text) {
    FILE *file = fopen(path, "w");
    EXPECT(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void epochs_grow_whatever_the_clock_says(void) {
    EXPECT_NUMBER(begin(NOW), NOW);
    EXPECT_TEXT(problem, "");
    EXPECT_NUMBER(begin(NOW), NOW + 1);
    EXPECT_NUMBER(begin(NOW - 3600000000), NOW + 2); // an hour back
    EXPECT_NUMBER(begin(5), NOW + 3);                // a clock without a battery
    EXPECT_TEXT(problem, "");
    EXPECT_NUMBER(begin(NOW + 1000), NOW + 1000);
    struct stat file;
    EXPECT(stat(path, &file) == 0);
    EXPECT_NUMBER(file.st_mode & 0777, 0600);
}

static void a_damaged_file_is_named_and_replaced(void) {
    static const char *const texts[] = {
        "", "x\n", "-5\n", "17953163410000001\n", "12", "9999999999999999\n", "1\n2\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        put(texts[i]);
        EXPECT_NUMBER(begin(NOW), NOW);
        EXPECT_SAYS(problem, path);
        EXPECT_NUMBER(begin(NOW), NOW + 1);
        EXPECT_TEXT(problem, "");
    }
}

static void a_directory_that_is_not_there_is_named(void) {
    EXPECT_NUMBER(epoch_begin("/nowhere", NOW, problem, sizeof(problem)), NOW);
    EXPECT_SAYS(problem, "cannot write /nowhere/");
    EXPECT_SAYS(problem, "No such file");
    EXPECT_NUMBER(epoch_begin(NULL, NOW, problem, sizeof(problem)), NOW);
    EXPECT_SAYS(problem, "StateSaveLocation");
    EXPECT_NUMBER(epoch_begin("", NOW, problem, sizeof(problem)), NOW);
    EXPECT_SAYS(problem, "StateSaveLocation");
}

static void a_link_is_not_followed(void) {
    char other[120];
    snprintf(other, sizeof(other), "%s/other", directory);
    unlink(path);
    EXPECT(symlink(other, path) == 0);
    EXPECT_NUMBER(begin(NOW), NOW);
    EXPECT_SAYS(problem, "cannot read");
    EXPECT(access(other, F_OK) != 0);
}

int main(void) {
    EXPECT(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/schedbridge_epoch", directory);
    epochs_grow_whatever_the_clock_says();
    a_damaged_file_is_named_and_replaced();
    a_directory_that_is_not_there_is_named();
    a_link_is_not_followed();
    unlink(path);
    rmdir(directory);
    DONE();
}
