// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/verdict.h"

#include <stdarg.h>
#include <stdio.h>

verdict_t verdict_of(pb_outcome_t outcome, int code, const char *format, ...)
{
    verdict_t verdict = {.outcome = outcome, .code = code};
    va_list args;
    va_start(args, format);
    vsnprintf(verdict.text, sizeof(verdict.text), format, args);
    va_end(args);
    return verdict;
}
