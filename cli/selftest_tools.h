/*
 * selftest_tools.h - for probes with tools=1: a bridge with one run, whose server "own" has the tools `echo`, which
 * answers with its arguments, and `never`, which does not answer.
 */
#pragma once

#include <stdint.h>

#include "lib/base/err.h"

#define SELFTEST_CALLS 100 /* the run's limit */

struct selftest_tools;
int selftest_tools_open(struct selftest_tools **ret, struct err *err);
int selftest_tools_socket(const struct selftest_tools *tools); /* for jail_program.tools_fd */
/* Ends the run and gives it back (NULL is fine): how many calls came to its server. */
int64_t selftest_tools_close(struct selftest_tools *tools);
