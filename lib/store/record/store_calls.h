/*
 * store_calls.h - running/ID.calls: what the program of a run has called so far, so that a crash leaves a trace.
 *
 * One line of JSON before a call goes out, one when it has ended; the run's secrets are masked by who writes them. As a
 * run's partial output the file survives the process that writes it, not a power cut. When the run ends orderly its
 * calls go into the record by another way and the file is removed; when its process died, what ends the row as
 * interrupted puts them there (store_instance.c).
 */
#pragma once

#include "store_tool.h"

#define STORE_CALLS_RESULT_MAX (64 * 1024) /* a larger result is not kept here */
#define STORE_CALLS_FILE_MAX   (64 << 20)  /* what comes behind it is not read */

/* running/ID.calls, made new, for appending. */
int store_calls_open(struct store *store, const char *execution, int *ret_fd, struct err *err);
/* Before it goes out: all that is known of it. `alias` is the server's. */
int store_calls_sending(int fd, const struct store_tool_call *call, const char *alias, struct err *err);
/* state, kind, is_error, result, protocol, attempts, finished_us of the call `seq`. */
int store_calls_ended(int fd, const struct store_tool_call *call, struct err *err);
/* Calls without an end have failed as "interrupted". Servers are those that were called, without their lists. */
int store_calls_read(int fd, struct store_tools *ret, struct err *err);
