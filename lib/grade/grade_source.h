/*
 * grade_source.h - the files of one program of a package (a submission, a validator, a grader) and the language they
 * are in.
 *
 * A program is a file or a folder. Its language is that of the runner which knows the files' extensions; its entry
 * point is what submissions.yaml names, else `__main__.*`, `main.*`, `entrypoint.*`, else the only or the first source.
 * Where a build runner makes one program of all sources, it gets the name that submissions.yaml has, and finds the
 * entry point by itself where there is none.
 * The package's include/default and include/LANGUAGE are laid over it, and {{constants}} are replaced. Nothing else of
 * the package is ever part of a program: neither a compiler nor a run can see the answers.
 */
#pragma once

#include <sys/types.h>

#include "grade_package.h"

#define GRADE_SOURCE_FILES 1024       /* files of one program */
#define GRADE_SOURCE_BYTES (64 << 20) /* of all of them */

struct grade_file {
	char *name; /* below the program's folder */
	mode_t mode;
	char *data;
	size_t length;
};
struct grade_source {
	char *name;        /* how it is called: the path that it was read from, as the caller names it */
	char *runner;      /* the language's runner; NULL: no runner knows the extensions */
	char *extension;   /* of the files that no runner knows: what is missing */
	char *script;      /* a validator or grader: "run", or a script without extension; NULL: neither */
	struct grade_file *files;
	size_t count;
	size_t entry; /* index of the entry point */
	char *said;   /* the entry point that somebody named: a file, or in Java and C# a class; NULL: nobody did */
	const char *library; /* a compiled language's last argument, "-lcrypto"; or NULL */
	char *wrapper;       /* g++ runs its parts by this command, with commas between its words; or NULL */
};

/* What somebody says of a program; NULL: it is found out. */
struct grade_hint {
	const char *language, *entry;
};
/* `runners`: as jail_client_runners gives them. `package` NULL: the files may lie anywhere. ERR_NOT_FOUND: no files. */
int grade_source_read(const struct grade_package *package, struct json_object *runners, const char *path,
		      const struct grade_hint *hint, struct grade_source *ret, struct err *err);
/* Lays include/ over a submission. */
int grade_source_include(const struct grade_package *package, struct grade_source *source, struct err *err);
void grade_source_clear(struct grade_source *source);
#define auto_source __attribute__((cleanup(grade_source_clear)))
/* Could it be a code of the format's languages (python3), known here or not? A name for people (Python 3) is none. */
bool grade_source_is_language(const char *text);
/* Is a file of that program in this language's sources (by its extension)? */
bool grade_source_is_code(struct json_object *runner, const char *name);
/* The file of this name, or NULL. */
struct grade_file *grade_source_file(const struct grade_source *source, const char *name);
/* Does the file, or any file, hold this text? */
bool grade_file_contains(const struct grade_file *file, const char *text);
bool grade_source_contains(const struct grade_source *source, const char *text);
/* Does the file name another one as programs name their parts: "import PART", "from PART", "./PART"? */
bool grade_file_names(const struct grade_file *file, const char *other);
/* Is it a character of names in programs? */
bool grade_source_in_name(char c);
