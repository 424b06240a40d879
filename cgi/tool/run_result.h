/*
 * run_result.h - what a client gets of a finished run: text for the model (run_text.h), images, details.
 *
 * isError exactly when the verdict is not OK. Bytes that are not UTF-8 are shown as \xNN. Images (by the media type
 * that the store found by magic bytes) come inline as run_pictures.h says, never cut; everything else as URL.
 */
#pragma once

#include "lib/job/job.h"
#include "tool_common.h"

#define RUN_SERVERS_MAX   16
#define RUN_ARGS_MAX      1024 /* arguments of a program … */
#define RUN_VARIABLES_MAX 1024 /* … and variables; all of their bytes have a cap in lib/job, too */

typedef void run_result_maker(const struct tool_call *call, const struct job_result *result, struct tool_result *ret);
/* Runs the request to its end, while the client hears of its progress, and lets `make` say what came of it; or makes a
 * task of it. */
int run_result_of(struct tool_call *call, const struct job_request *request, run_result_maker *maker,
		  struct tool_result *ret, struct err *err);
/* Before anything else of a call whose run may ask the client back: 1: it brought the answer and is done (or asks
 * again); 0: it is a new call. `hash`: job_request.key_hash of the run's. */
int run_result_again(struct tool_call *call, const char *hash, run_result_maker *maker, struct tool_result *ret,
		     struct err *err);
/* As execute_code of the set "isolator" answers: the two streams under marks, a failure before them. */
void run_result_make_isolator(const struct tool_call *call, const struct job_result *result, struct tool_result *ret);
/* As the set "interpreter" answers: all in one block. */
void run_result_make_interpreter(const struct tool_call *call, const struct job_result *result,
				 struct tool_result *ret);
/* As the set "bridge" answers (run_python_answer.h). */
void run_result_make_bridge(const struct tool_call *call, const struct job_result *result, struct tool_result *ret);
void run_result_make(const struct tool_call *call, const struct job_result *result, struct tool_result *ret);
