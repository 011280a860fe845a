// SPDX-License-Identifier: GPL-2.0-or-later
// The epoch of the controller. It grows with every start, even if the clock was set back in
// between: the last one is stored in StateSaveLocation, which a backup controller shares.
#ifndef BRIDGE_EPOCH_H
#define BRIDGE_EPOCH_H

#include <stddef.h>
#include <stdint.h>

// Unix time in microseconds, or one more than the last number if that is greater. Read and write
// errors are described in `problem` (else empty); then the clock alone is used.
uint64_t epoch_begin(const char *directory, uint64_t now_us, char *problem, size_t problem_bytes);

#endif
