/*
 * doors_grade.h - a request of ScaleBox' common_evaluate or common_evaluate_batch, taken apart. Both take the cases in
 * either form: a list of objects, or one object of lists. Unknown members are passed over.
 */
#pragma once

#include "doors_fusion.h"

struct grade_body {
	struct json_object *document, *asked;
	struct json_object *shown; /* of each case, what the answer says of it */
	const char *language;
	char *code;
	double compile_seconds, run_seconds, total_seconds;
	int64_t memory_bytes;
};

/* Negative: the reply says what is wrong. *ret is to be cleared in either case. */
int doors_grade_body(struct doors_call *call, struct grade_body *ret);
void doors_grade_clear(struct grade_body *body);
