/*
 * grade_memory.h - what an earlier, interrupted run of the same found, so that another one goes on from there.
 *
 * A result belongs to a name (a submission, a sample) and to a key: the SHA-256 of everything that it depends on, which
 * is the runners with their versions, the package or task, the program and the limits. Where one of these is another,
 * so is the key, and nothing is recalled. JE is never kept: it is tried again. The caller keeps the results.
 */
#pragma once

#include <stdbool.h>

#include "grade_judge.h"
#include "lib/store/db/crypto.h"

struct grade_memory {
	/* True and *ret (the caller's): there is a result. */
	bool (*recall)(void *arg, const char *name, const char *key, struct json_object **ret);
	/* As soon as it is there; from any thread, one call at a time. */
	void (*keep)(void *arg, const char *name, const char *key, struct json_object *result);
	void *arg;
};

/* -------- a package (grade_judge.h) ------------------------------------------------------------------- */
/* What all results of the package depend on: its files besides submissions, runners, and a limit that was given. */
int grade_memory_package(const struct grade_judge *judge, struct json_object *runners, char ret[SHA256_HEX_SIZE],
			 struct err *err);
/* The program that SOURCE is, in that package. */
void grade_memory_program(const char package[SHA256_HEX_SIZE], const struct grade_source *source,
			  char ret[SHA256_HEX_SIZE]);
/* What came of a submission, and back: false where it is not readable. */
struct json_object *grade_memory_print(const struct grade_submission *submission);
bool grade_memory_parse(const struct grade_judge *judge, struct json_object *result,
			struct grade_submission *submission);
