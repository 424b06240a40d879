/*
 * grade_expect.h - what a package expects of its own submissions.
 *
 * Three sources: the folder below submissions/ (accepted, wrong_answer, …), a comment @EXPECTED_RESULTS@: (and
 * @EXPECTED_SCORE@:) in a source, which wins over the folder, and submissions/submissions.yaml (2023-07 on), whose
 * rules come on top. MLE counts as RTE wherever expectations are compared.
 */
#pragma once

#include "grade.h"
#include "grade_source.h"

/* What a rule of submissions.yaml says of a part of the test data (grade_scope.h). */
#define GRADE_PARTS_MAX 32
struct grade_expect_part {
	const char *pattern; /* "secret/group1"; the caller's document's */
	uint32_t permitted, required;
	bool has_score;
	double least, most;
};
struct grade_expect {
	uint32_t verdicts; /* GRADE_BIT of those that are allowed; 0: nothing is expected */
	bool partial;      /* AC, with less than the full score */
	bool has_score;
	double least, most; /* the score, where has_score */
	struct grade_hint hint; /* by submissions.yaml: strings of the caller's document */
	bool no_lower_limit, no_upper_limit; /* not used for the time limit */
	struct grade_expect_part parts[GRADE_PARTS_MAX];
	size_t n_parts;
};

/* `yaml`: submissions.yaml or NULL. `path` is below submissions/: "accepted/a.cpp". The strings of *ret are yaml's. */
void grade_expect_folder(struct json_object *yaml, const char *path, struct grade_expect *ret);
/* What comments in the source say; call it after grade_expect_folder. */
void grade_expect_comment(const struct grade_source *source, struct grade_expect *expect);
/* Is the verdict (and the score, with `full` the best that there is) as expected? */
bool grade_expect_met(const struct grade_expect *expect, enum grade_verdict verdict, double score, double full);
/* A pattern of submissions.yaml: "*" within a name, {a,b}; it matches a path or a folder above it. */
bool grade_expect_glob(const char *pattern, const char *path);
