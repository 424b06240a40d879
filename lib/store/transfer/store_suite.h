/*
 * store_suite.h - a suite: recorded executions that serve as test cases, in one SQLite file.
 *
 * A suite is a bundle (store_bundle.h) with one more table: a case names an execution of the same file, whose input is
 * the case's input and whose outcome is what is expected. So a suite is checked, and imported into a store, as a bundle
 * is; store_bundle_close and store_bundle_import take it. It is changed in place, in one transaction: what is not
 * finished leaves the file as it was.
 */
#pragma once

#include "store_bundle.h"

/* Does the file begin as a SQLite database does? */
bool store_suite_is(const char *path);

/* For reading. Errors as of store_bundle_open. */
int store_suite_open(const char *path, struct store_bundle **ret, struct err *err);
/* For adding to it; made where there is none. ERR_BUSY: another process is changing it. */
int store_suite_change(const char *path, struct store_bundle **ret, struct err *err);

/* NULL: a member of a case that is there stays, a new case gets the default. */
struct store_suite_case {
	const char *id;        /* of the execution */
	const char *name;      /* default: the id */
	const char *tags;      /* JSON: an array of strings; default: empty */
	const char *compare;   /* as of replay's option; default: "default" */
	const char *normalise; /* likewise */
};
/* With the runs of its sandbox before it. Returns 1 for a new case, 0 for one that was there. */
int store_suite_add(struct store_bundle *suite, struct store *store, const struct store_suite_case *one,
		    struct err *err);
int store_suite_finish(struct store_bundle *suite, struct store *store, struct err *err);
/* In the order of names. The strings end with the call. */
int store_suite_cases(struct store_bundle *suite, int (*each)(void *arg, const struct store_suite_case *one), void *arg,
		      struct err *err);
