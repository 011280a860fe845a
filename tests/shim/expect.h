// SPDX-License-Identifier: GPL-2.0-or-later
// A check that says where it failed and with what; a failed one ends the suite at once.
#ifndef TESTS_SHIM_EXPECT_H
#define TESTS_SHIM_EXPECT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define EXPECT_NUMBER(found, wanted)                                                               \
    do {                                                                                           \
        long long found_ = (long long)(found), wanted_ = (long long)(wanted);                      \
        if (found_ != wanted_) {                                                                   \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #found, found_,   \
                    wanted_);                                                                      \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define EXPECT_TEXT(found, wanted)                                                                 \
    do {                                                                                           \
        const char *found_ = (found), *wanted_ = (wanted);                                         \
        if (strcmp(found_, wanted_) != 0) {                                                        \
            fprintf(stderr, "%s:%d: %s is \"%s\", not \"%s\"\n", __FILE__, __LINE__, #found,       \
                    found_, wanted_);                                                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define EXPECT_SAYS(found, part)                                                                   \
    do {                                                                                           \
        const char *found_ = (found), *part_ = (part);                                             \
        if (!strstr(found_, part_)) {                                                              \
            fprintf(stderr, "%s:%d: \"%s\" does not say \"%s\"\n", __FILE__, __LINE__, found_,     \
                    part_);                                                                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define DONE()                                                                                     \
    do {                                                                                           \
        printf("%s: passed\n", __FILE__);                                                          \
        return 0;                                                                                  \
    } while (0)

#endif
