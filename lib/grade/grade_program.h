/*
 * grade_program.h - a program made ready to run any number of times: compiled once, in a jail that sees nothing but its
 * sources.
 *
 * Languages with a build runner (jail/runners/build-NAME.json) become one executable, which then runs as the runner
 * "executable"; the build finds an entry point that somebody named in SALLYPORT_ENTRY. The others are their files and
 * an entry point. Executables are kept in a folder of the user's, named by
 * the SHA-256 of everything that went into them: sources, build runner and its version. A program may be used by
 * several threads at a time.
 */
#pragma once

#include "grade.h"
#include "grade_source.h"

struct grade_program {
	enum grade_verdict verdict; /* GRADE_AC: ready; GRADE_CE, GRADE_JE, GRADE_SKIP: `message` says why */
	char message[GRADE_MESSAGE];
	char *runner, *entry;
	char language[32];       /* the runner of its sources */
	struct jail_file *files; /* anonymous files, sealed against change */
	size_t count;
	bool compiled, from_cache;
	bool testlib; /* speaks testlib's exit codes, not 42 and 43 */
};

struct grade_maker {
	struct jail_client *client;
	struct json_object *runners; /* as jail_client_runners gives them */
	const struct grade_package *package;
	const char *cache; /* folder; NULL: nothing is kept */
	bool own; /* a program of the package's own, which scripts may build and run; not a submission */
};

/* Never fails: what is wrong with the program is its verdict. */
void grade_program_make(const struct grade_maker *maker, const struct grade_source *source, struct grade_program *ret);
void grade_program_clear(struct grade_program *program);
#define auto_program __attribute__((cleanup(grade_program_clear)))

/* -------- the programs of a package itself (grade_own.c) ---------------------------------------------- */

/* output_validator/ (2025-09) and graders/ hold one program. output_validators/ (legacy) may hold several, each a file
 * or a folder, and an output has to please all of them. A file there that is no program of its own (a header, a
 * module that another file imports, a source without main) belongs to each of them. */
#define GRADE_VALIDATORS_MAX 16
struct grade_own {
	struct grade_program validators[GRADE_VALIDATORS_MAX];
	size_t n_validators; /* 0: the default validator */
	struct grade_program grader;
	bool has_grader;
};
/* `root`: the data, a group of which wants the grader or not. An error says which program cannot be used; *ret is to be
 * cleared also then. */
struct grade_node;
int grade_own_make(const struct grade_maker *maker, const struct grade_node *root, struct grade_own *ret,
		   struct err *err);
void grade_own_clear(struct grade_own *own);

/* The environment of a package's programs: Python reads and writes integers of any length, as it did before 3.11. */
extern const char *const grade_program_env[];

/* An empty file, for jails that run a file of /data: made once, never closed. -1: there are no descriptors. */
int grade_program_no_code(void);

/* The user's folder for executables ($XDG_CACHE_HOME/sallyport/programs); the caller's, NULL: there is none. */
char *grade_program_cache(void);
