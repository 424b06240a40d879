/*
 * store_failure.h - of which kind a failure is, so that equal ones are counted together: the module that is missing,
 * the call that was denied, the exception's type, else the sentence of its verdict without figures.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define STORE_FAILURE_SIZE 96
#define STORE_FAILURE_TAIL 2000 /* bytes of standard error's end that are looked at */

struct store_failure {
	const char *verdict, *message;
	const char *result; /* JSON as recorded; NULL: none */
	const char *error;  /* the end of standard error; NULL: not known */
	size_t error_length;
	bool status; /* tell exit statuses apart */
};
void store_failure_kind(const struct store_failure *failure, char ret[STORE_FAILURE_SIZE]);
