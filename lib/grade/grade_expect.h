/*
 * grade_expect.h - what a package expects of its own submissions.
 *
 * Three sources: the folder below submissions/ (accepted, wrong_answer, …), comments in a source, which win over the
 * folder (@EXPECTED_RESULTS@:, @EXPECTED_SCORE@:, and @EXPECTED_GRADES@ for the groups in secret), and
 * submissions/submissions.yaml (2023-07 on), whose rules come on top. The format knows AC, WA, TLE and RTE: wherever
 * expectations are compared, MLE counts as RTE, PE as WA, and OLE as any of the three rejections: what writes too much
 * ends by a signal in one judge, runs on until it is too slow in the next, and is cut and compared in a third.
 */
#pragma once

#include "grade_score.h"
#include "grade_source.h"

/* What a rule of submissions.yaml says of a part of the test data (grade_expect_all_met). */
#define GRADE_PARTS_MAX 32
struct grade_expect_part {
	const char *pattern; /* "secret/group1"; the caller's document's */
	uint32_t permitted, required;
	bool has_score;
	double least, most;
	const char *message; /* that a judgemessage.txt in it has to hold; or NULL */
	bool lower_bound, upper_bound; /* of the time limit: it may not be too slow there, or has to be */
};
struct grade_expect {
	uint32_t verdicts; /* GRADE_BIT of those that are allowed; 0: nothing is expected */
	bool partial;      /* AC, with less than the full score */
	bool has_score;
	double least, most; /* the score, where has_score */
	struct grade_hint hint; /* by submissions.yaml: strings of the caller's document */
	bool lower_bound, upper_bound; /* the same for all cases, in later formats */
	struct grade_expect_part parts[GRADE_PARTS_MAX];
	size_t n_parts;
	/* What `verdicts` was made of: what each rule says of every case. It counts in the place of `verdicts` where
	 * by_case is set: there the whole has a score, and is AC with any. */
	struct grade_expect_part rules[GRADE_PARTS_MAX];
	size_t n_rules;
	bool by_case;
	uint32_t grades[GRADE_PARTS_MAX]; /* of the groups in secret, in order; it counts where there are as many */
	size_t n_grades;
};

/* `yaml`: submissions.yaml or NULL. `path` is below submissions/: "accepted/a.cpp". The strings of *ret are yaml's. */
void grade_expect_folder(struct json_object *yaml, const char *path, struct grade_expect *ret);
/* What comments in the source say; call it after grade_expect_folder. */
void grade_expect_comment(const struct grade_source *source, struct grade_expect *expect);
/* The rule by which it may not be too slow in this case; NULL: none of a part of the data. */
const struct grade_expect_part *grade_expect_lower(const struct grade_expect *expect, const char *case_name);
/* Does it have to be too slow, in this case among others? */
bool grade_expect_upper(const struct grade_expect *expect, const char *case_name);
/* Is the verdict, or what it counts as, in a set of GRADE_BITs? */
bool grade_expect_allows(uint32_t set, enum grade_verdict verdict);
/* Is the verdict (and the score, with `full` the best that there is) as expected? */
bool grade_expect_met(const struct grade_expect *expect, enum grade_verdict verdict, double score, double full);
/* Is a member of a rule a pattern for a part of the test data? */
bool grade_expect_names_part(const char *member);
/* A pattern of submissions.yaml: "*" within a name, {a,b}; it matches a path or a folder above it. */
bool grade_expect_glob(const char *pattern, const char *path);

/* What a submission did; `cases` by their index. */
struct grade_scope {
	struct grade_node *root, *const *cases;
	size_t n_cases;
	const struct grade_sheet *sheet;
	const struct grade_total *total;
};
/* Does what was run agree with the rules for parts of the test data? A rule's members "sample", "secret" and what
 * begins with "sample/" or "secret/" (a pattern as for submissions) hold for the cases and groups that they match; the
 * rules of folders and submissions hold for all cases, where expectations are compared case by case. Cases that were
 * not run say nothing: `required` counts only where all of a part was run. The first rule that does not hold goes into
 * `ret_why`. */
bool grade_expect_all_met(const struct grade_expect *expect, const struct grade_scope *scope,
			  char ret_why[GRADE_MESSAGE]);
