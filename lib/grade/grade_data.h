/*
 * grade_data.h - a package's test data: a tree of groups and cases, each with its settings after inheritance.
 *
 * The root is data/, its children are "sample" and "secret" (samples first), below them cases and groups in the
 * order of their names. A case is a file NAME.in with its NAME.ans. Settings come from testdata.yaml (legacy, 2023-07)
 * or test_group.yaml (2025-09), and NAME.yaml; what a group does not say it takes from its parent, key by key, as
 * problemtools does it.
 */
#pragma once

#include "grade_package.h"
#include "lib/base/bind.h"

#define GRADE_CASES_MAX 100000 /* cases of one package */
#define GRADE_DATA_DEPTH 16    /* groups below each other */

enum grade_aggregation { GRADE_SUM, GRADE_MIN, GRADE_MAX_SCORE, GRADE_AVG, GRADE_PASS_FAIL };

struct grade_settings {
	bool stop;          /* at the first rejection in this group */
	/* legacy */
	bool custom_grader; /* graders/ decides; else the flags below */
	char **grader_flags;
	bool first_error, always_accept, accept_if_any, ignore_sample;
	double accept_score, reject_score;
	double least, most; /* range; infinite where nothing was said */
	/* 2025-09 */
	double max_score;   /* infinite: unbounded */
	char **require_pass;
	/* both */
	enum grade_aggregation aggregation;
	char **validator_flags; /* ended by NULL */
	char **args;            /* of the submission */
};

struct grade_node {
	char *name; /* below data/: "secret/group1/03-small"; "" for the root */
	struct grade_node *parent;
	bool is_case;
	size_t index; /* cases: number in the order of the whole tree */
	struct grade_settings settings;
	struct grade_node **children;
	size_t count;
	char *in, *ans, *files; /* cases: paths; files: NULL, or the folder NAME.files */
};

int grade_data_read(const struct grade_package *package, struct grade_node **ret_root, struct err *err);
void grade_data_free(struct grade_node *root); /* NULL is fine */
/* All cases, in order; the array is the caller's. */
struct grade_node **grade_data_cases(struct grade_node *root, size_t *ret_count);
struct grade_node *grade_data_find(struct grade_node *root, const char *name); /* by name, or NULL */
