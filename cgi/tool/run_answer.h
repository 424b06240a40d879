/*
 * run_answer.h - structuredContent of a run, and the output schema that describes it: one table for both.
 *
 * The fields of the jail's result come from jail_result_table (jail/client/result.c); here is what lib/job and the
 * gateway add.
 */
#pragma once

#include "cgi/http/server.h"
#include "lib/job/job.h"

extern const struct bind run_answer_table[]; /* view JAIL_ANSWER */
struct json_object *run_answer(const struct server *server, const struct job_result *result); /* the caller's */

#define RUN_TEXT_FORM (1u << 8) /* view of a file: name and url, as the system had it that tools.text imitates */
struct json_object *run_answer_file(const struct server *server, const struct job_result *result,
				    const struct store_file *file, unsigned view); /* the caller's */
