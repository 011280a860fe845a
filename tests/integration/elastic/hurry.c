/* SPDX-License-Identifier: Apache-2.0 */
/* Linked to the programs of these tests: their pauses end for good once a file exists. So a program
 * lasts for as long as a test looks at it, on any machine, and no longer. */
#include <stdlib.h>
#include <unistd.h>

int __real_usleep(useconds_t us);
int __wrap_usleep(useconds_t us);

int __wrap_usleep(useconds_t us) {
    const char *file = getenv("HURRY");
    return file && access(file, F_OK) == 0 ? 0 : __real_usleep(us);
}
