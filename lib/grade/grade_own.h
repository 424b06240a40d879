/*
 * grade_own.h - the programs of a package itself: its output validators and its grader, made ready.
 *
 * output_validator/ (2025-09) and graders/ hold one program. output_validators/ (legacy) may hold several, each a file
 * or a folder, and an output has to please all of them. What lies there and is no program of its own (a header, a
 * module that another file imports, a source without main) belongs to each of them.
 */
#pragma once

#include "grade_data.h"
#include "grade_program.h"

#define GRADE_VALIDATORS_MAX 16

struct grade_own {
	struct grade_program validators[GRADE_VALIDATORS_MAX];
	size_t n_validators; /* 0: the default validator */
	struct grade_program grader;
	bool has_grader;
};
/* `root`: the data, a group of which wants the grader or not. An error says which program cannot be used; *ret is to be
 * cleared also then. */
int grade_own_make(const struct grade_maker *maker, const struct grade_node *root, struct grade_own *ret,
		   struct err *err);
void grade_own_clear(struct grade_own *own);
