/*
 * grade_package.h - a problem package in the Kattis/ICPC format: what its problem.yaml (and domjudge-problem.ini,
 * .timelimit) say.
 *
 * Read: legacy, legacy-icpc, 2023-07 and its drafts, 2025-09 and its drafts. Test data are in grade_data.h, submissions
 * in grade_source.h and grade_expect.h. Nothing of a package is run here, and links are followed only as far as they
 * stay inside of the package. Facts: the format's specification (legacy, 2023-07-draft, 2025-09).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/json.h"

#define GRADE_DOMJUDGE_INI   "domjudge-problem.ini"
#define GRADE_TIME_LIMIT_MAX 149.0 /* seconds: the jail's wall clock has twice that and a second, at most 300 */

enum grade_format { GRADE_LEGACY, GRADE_2023_07, GRADE_2025_09 };

struct grade_package {
	char *path; /* real path of the folder */
	char *name; /* its last part */
	int dir;    /* descriptor of it; -1 */
	enum grade_format format;
	bool plain_names; /* 2025-09: what has another name than its rule allows counts as not there */
	bool scoring, interactive, multipass;
	bool custom_validator; /* a validator of the package's own, where there is one */
	bool custom_score;     /* legacy: validation has "score"; later formats: any scoring problem may */
	bool minimize;         /* legacy: grading.objective is min */
	bool writing;          /* submissions may write in their working directory; later formats: allow_file_writing */
	char *validator_flags; /* legacy: for every case, before those of its group */
	double time_limit;     /* seconds; 0: from the accepted submissions */
	double time_multiplier, time_resolution;
	double too_slow; /* later formats, time limit from the submissions: so many times that what is too slow needs */
	int64_t memory_bytes, output_bytes;
	int64_t compile_us, compile_bytes;
	int64_t validation_us, validation_bytes, validation_output_bytes;
	int64_t passes;
	struct json_object *constants; /* {"name": value} or NULL */
	struct json_object *grading;   /* legacy: deprecated settings of test data in problem.yaml, or NULL */
};

int grade_package_open(const char *path, struct grade_package *ret, struct err *err);
void grade_package_clear(struct grade_package *package); /* an all-zero struct with dir -1 is fine */
#define GRADE_PACKAGE_INIT ((struct grade_package){.dir = -1})
#define auto_package __attribute__((cleanup(grade_package_clear)))

/* Is PATH (absolute, links resolved) inside of the package? */
bool grade_package_holds(const struct grade_package *package, const char *path);
/* Is a file or folder with this name, which has no slash, as if it were not there? Hidden ones are in every format. */
bool grade_package_ignores(const struct grade_package *package, const char *name);
/* Opens a file of the package for reading, following links inside of it; -1 with err. */
int grade_package_file(const struct grade_package *package, const char *path, int *ret_fd, struct err *err);
/* A YAML file of the package, with its constants replaced; ERR_NOT_FOUND: there is none. */
int grade_package_yaml(const struct grade_package *package, const char *path, struct json_object **ret,
		       struct err *err);
/* Replaces {{name}} by the package's constants; NULL: there is nothing to replace. The caller's. */
char *grade_package_constants(const struct grade_package *package, const char *text, size_t length, size_t *ret_length);

/* -------- a package as a ZIP archive (grade_zip.c) ---------------------------------------------------- */
/* The archive is not trusted: refused are names and links that lead out of the folder, special files, a name that is
 * there twice, encrypted files, and more files or bytes than the limits below. Sizes are counted as they are written,
 * whatever the archive says of itself. */
#define GRADE_ZIP_ENTRIES 65535 /* the most that an archive without the ZIP64 extension can hold */
#define GRADE_ZIP_BYTES   (2LL << 30)
#define GRADE_ZIP_MEMBER  (256LL << 20) /* bytes of one file */
#define GRADE_ZIP_DEPTH   32 /* folders below each other */

/* Is PATH a file that begins as archives do? */
bool grade_zip_is(const char *path);
/* Unpacks PATH below FOLDER, which is empty and only ours. *ret_package is the folder with problem.yaml (the
 * archive's top, called as the archive without ".zip", or the folder in it): the caller's. The files stay for the
 * caller to remove, after an error too. */
int grade_zip_unpack(const char *path, const char *folder, char **ret_package, struct err *err);
