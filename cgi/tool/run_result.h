/*
 * run_result.h - what a client gets of a finished run: text for the model, structuredContent, images.
 *
 * isError exactly when the verdict is not OK. Bytes that are not UTF-8 are shown as \xNN. Images (by the media type
 * that the store found by magic bytes) come inline within the caps below, never cut; everything else as URL.
 */
#pragma once

#include "lib/job/job.h"
#include "tools.h"

#define RUN_ARGS_MAX      1024 /* arguments of a program … */
#define RUN_VARIABLES_MAX 1024 /* … and variables; all of their bytes have a cap in lib/job, too */

#define RUN_IMAGE_MAX  (512 * 1024)      /* one image inline, bytes of the file */
#define RUN_IMAGES_MAX (2 * 1024 * 1024) /* all images of a call */

/* The first revision whose clients know resource_link blocks; older ones have the text. */
#define RUN_LINKS_SINCE "2025-06-18"

typedef void run_result_maker(const struct tool_call *call, const struct job_result *result, struct tool_result *ret);
/* Runs the request to its end, while the client hears of its progress, and lets `make` say what came of it; or makes a
 * task of it. */
int run_result_of(struct tool_call *call, const struct job_request *request, run_result_maker *make,
		  struct tool_result *ret, struct err *err);
/* As execute_code of the set "isolator" answers: the two streams under marks, a failure before them. */
void run_result_make_isolator(const struct tool_call *call, const struct job_result *result, struct tool_result *ret);
void run_result_make(const struct tool_call *call, const struct job_result *result, struct tool_result *ret);

#define RUN_USAGE_SCHEMA                                                                                               \
	"\"wall_us\":{\"type\":\"integer\",\"description\":\"Wall clock time, microseconds\"},"                        \
	"\"cpu_us\":{\"type\":\"integer\",\"description\":\"CPU time of all its processes, microseconds\"},"           \
	"\"cpu_user_us\":{\"type\":\"integer\",\"description\":\"of it outside of the kernel\"},"                      \
	"\"cpu_system_us\":{\"type\":\"integer\",\"description\":\"of it in the kernel\"},"                            \
	"\"memory_peak_bytes\":{\"type\":\"integer\",\"description\":\"Most memory in use at once\"},"                 \
	"\"rss_peak_bytes\":{\"type\":\"integer\",\"description\":\"of its largest process; 0 unknown\"},"             \
	"\"pids_peak\":{\"type\":\"integer\",\"description\":\"Most processes and threads at once; 0 unknown\"},"      \
	"\"pids_hits\":{\"type\":\"integer\",\"description\":\"Times that the limit of processes refused one\"},"      \
	"\"switches_voluntary\":{\"type\":\"integer\",\"description\":\"Context switches because it waited\"},"        \
	"\"switches_forced\":{\"type\":\"integer\",\"description\":\"because others had their turn\"}"
#define RUN_USAGE_REQUIRED                                                                                             \
	"\"wall_us\",\"cpu_us\",\"cpu_user_us\",\"cpu_system_us\",\"memory_peak_bytes\",\"rss_peak_bytes\","           \
	"\"pids_peak\",\"pids_hits\",\"switches_voluntary\",\"switches_forced\""
#define RUN_FILES_SCHEMA                                                                                               \
	"{\"type\":\"array\",\"items\":{\"type\":\"object\",\"additionalProperties\":false,"                           \
	"\"required\":[\"name\",\"url\",\"size\",\"media_type\"],\"properties\":{"                                     \
	"\"name\":{\"type\":\"string\"},\"url\":{\"type\":\"string\"},\"size\":{\"type\":\"integer\"},"                \
	"\"media_type\":{\"type\":\"string\"}}}}"
#define RUN_RESULT_SCHEMA                                                                                              \
	"{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"execution_id\",\"verdict\",\"message\","  \
	"\"language\",\"exit_code\",\"signal\",\"stdout\",\"stderr\",\"stdout_truncated\",\"stderr_truncated\","       \
	"\"oom_killed\",\"setup_us\",\"warm\",\"files\"," RUN_USAGE_REQUIRED "],\"properties\":{"                      \
	"\"execution_id\":{\"type\":\"string\",\"description\":\"Under this id the run is recorded\"},"                \
	"\"verdict\":{\"type\":\"string\",\"enum\":[\"OK\",\"RE\",\"SG\",\"TO\",\"ML\",\"OL\",\"CE\",\"CX\",\"XX\"],"  \
	"\"description\":\"OK; RE exit code not 0; SG ended by a signal; TO time; ML memory; OL output; CE compile "   \
	"step failed; CX cancelled; XX the sandbox failed\"},"                                                         \
	"\"message\":{\"type\":\"string\",\"description\":\"The verdict as a sentence\"},"                             \
	"\"limit\":{\"type\":\"string\",\"description\":\"Which limit was hit\"},"                                     \
	"\"step\":{\"type\":\"string\",\"description\":\"XX: what of the sandbox failed\"},"                           \
	"\"oom_killed\":{\"type\":\"boolean\"},\"setup_us\":{\"type\":\"integer\",\"description\":\"Making the "       \
	"sandbox, microseconds\"},"                                                                                    \
	"\"warm\":{\"type\":\"boolean\",\"description\":\"The interpreter was running already\"},"                     \
	"\"language\":{\"type\":\"string\"},"                                                                          \
	"\"exit_code\":{\"type\":[\"integer\",\"null\"]},\"signal\":{\"type\":[\"integer\",\"null\"]},"                \
	"\"stdout\":{\"type\":\"string\"},\"stderr\":{\"type\":\"string\"},"                                           \
	"\"stdout_truncated\":{\"type\":\"boolean\"},\"stderr_truncated\":{\"type\":\"boolean\"}," RUN_USAGE_SCHEMA    \
	",\"compile\":{\"type\":\"object\",\"additionalProperties\":false,"                                            \
	"\"required\":[" RUN_USAGE_REQUIRED "],\"properties\":{" RUN_USAGE_SCHEMA "}},"                                \
	"\"session\":{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"sandbox_id\",\"number\"],"    \
	"\"properties\":{"                                                                                             \
	"\"sandbox_id\":{\"type\":\"string\",\"description\":\"Runs with the same id shared one sandbox\"},"           \
	"\"number\":{\"type\":\"integer\",\"description\":\"Of this run in its sandbox, from 1 on\"},"                 \
	"\"message\":{\"type\":\"string\",\"description\":\"What became of its state\"}}},"                            \
	"\"denied\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"additionalProperties\":false,"                \
	"\"required\":[\"name\",\"number\"],\"properties\":{\"name\":{\"type\":\"string\"},\"number\":{\"type\":"      \
	"\"integer\"}}},"                                                                                              \
	"\"description\":\"System calls that the sandbox refused\"},"                                                  \
	"\"network\":{\"type\":\"object\",\"additionalProperties\":false,"                                             \
	"\"required\":[\"connections\",\"bytes_in\",\"bytes_out\",\"unrouted\",\"denied\"],\"properties\":{"           \
	"\"connections\":{\"type\":\"integer\"},\"bytes_in\":{\"type\":\"integer\"},\"bytes_out\":{\"type\":"          \
	"\"integer\"},"                                                                                                \
	"\"unrouted\":{\"type\":\"integer\",\"description\":\"Attempts to reach addresses directly, which all "        \
	"fail\"},"                                                                                                     \
	"\"denied\":{\"type\":\"array\",\"description\":\"What could not be reached, and "                             \
	"why\",\"items\":{\"type\":\"object\","                                                                        \
	"\"additionalProperties\":false,\"required\":[\"host\",\"port\",\"reason\"],\"properties\":{\"host\":{"        \
	"\"type\":\"string\"},"                                                                                        \
	"\"port\":{\"type\":\"integer\"},\"reason\":{\"type\":\"string\"}}}}}},"                                       \
	"\"files\":{\"type\":\"object\",\"additionalProperties\":false,"                                               \
	"\"required\":[\"created\",\"changed\",\"deleted\",\"not_kept\"],\"properties\":{"                             \
	"\"created\":" RUN_FILES_SCHEMA ",\"changed\":" RUN_FILES_SCHEMA ","                                           \
	"\"deleted\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"                                            \
	"\"not_kept\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"additionalProperties\":false,"              \
	"\"required\":[\"name\",\"reason\"],\"properties\":{\"name\":{\"type\":\"string\"},"                           \
	"\"reason\":{\"type\":\"string\"}}}}}}}}"
