/*
 * grade_compare.h - the default output validator of the problem package format: token by token, with its flags.
 *
 * It runs in this process, on bytes: nothing in it interprets what a program wrote beyond tokens and numbers. Facts:
 * "Default output validator specification" of the format (legacy and 2025-09).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

struct grade_compare {
	bool case_sensitive, space_change_sensitive;
	bool has_absolute, has_relative;
	double absolute, relative;
};

/* From the validator's arguments ("float_tolerance", "1e-6", …); an unknown one is ERR_INVALID. */
int grade_compare_flags(const char *const *flags, size_t count, struct grade_compare *ret, struct err *err);

#define GRADE_COMPARE_TEXT 256
/* Is `output` a right answer? If not, ret_why says where it differs (tokens are cut and made printable). */
bool grade_compare(const struct grade_compare *how, const char *answer, size_t answer_length, const char *output,
		   size_t output_length, char ret_why[GRADE_COMPARE_TEXT]);
