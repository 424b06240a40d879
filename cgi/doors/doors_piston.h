/*
 * doors_piston.h - a request of Piston's execute, taken apart. Unknown members are passed over.
 */
#pragma once

#include "doors.h"
#include "doors_version.h"

struct piston_body {
	struct json_object *document, *files, *args;
	const char *language, *version;
	struct json_object *input;
	char runner[32], found[DOORS_VERSION_SIZE]; /* name and version of what runs it */
	bool compiled, grades;
	int64_t run_us, compile_us, memory_bytes;
};

/* Negative: the reply says what is wrong. The document is the caller's in either case. */
int doors_piston_body(struct doors_call *call, struct piston_body *ret);
/* The status with {"message"}; negative. */
int doors_piston_refuse(struct reply *reply, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
struct json_object *doors_piston_file(const struct piston_body *body, const char *name); /* of this name, or NULL */
/* One of `files`, whose number is for errors. Name and bytes are the caller's. */
int doors_piston_decode(struct json_object *file, size_t number, struct job_file *ret, struct err *err);
void doors_piston_failure(struct reply *reply, const struct err *err);
void doors_piston_late(struct reply *reply); /* "not begun" */

/* -------- languages that grade (doors_piston_graded.c) ------------------------------------------------ */

#define DOORS_GRADED_VERSION "1.0.0"
#define DOORS_GRADED_IOI     "cms_ioi"
struct doors_graded {
	const char *name, *runner;
};
extern const struct doors_graded doors_graded[]; /* ended by {0} */
void doors_piston_grade(struct doors_call *call, const struct piston_body *body);
