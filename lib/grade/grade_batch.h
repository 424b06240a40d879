/*
 * grade_batch.h - one program against the cases that came with it, as graders send them over HTTP: made once, a jail of
 * its own for each case, and what each came to.
 *
 * What is asked is one JSON object, so that it can be recorded and graded again:
 *
 *     {"kind": "stdin", "cases": [{"input": TEXT, "output": TEXT}]}
 *     {"kind": "call", "function": NAME, "cases": [{"input": ARGUMENTS, "output": VALUE}]}      Python
 *     {"kind": "tests", "task": {}}      a task with tests that are code, as grade_format.h knows them
 *
 * and for each kind "total_us" (no case begins later than that) and "all": true, or the first case that fails is the
 * last. Of standard input besides:
 *
 *     "name", "files": {NAME: TEXT}, "option"    its file's name, what is compiled with it, an option of the compiler
 *     "words": true     outputs are compared word by word, exactly
 *     "judge": {"language", "code", "name", "files", "option", "always", "scores"}
 *
 * The judge is a program of the problem's that decides about outputs: in a jail of its own, with the files stdin.txt,
 * stdout.txt (what is expected) and answer.txt. Its exit status 0 accepts; where it "scores", its arguments are these
 * three files, and it prints a number, of which 1 is the most. Unless "always", an output that is as expected does not
 * need it.
 */
#pragma once

#include <stdatomic.h>

#include "grade_exam.h"

#define GRADE_BATCH_CASES  10000
#define GRADE_BATCH_STREAM (1 << 20)  /* bytes of a stream that a result has; of all streams: */
#define GRADE_BATCH_BYTES  (32 << 20)

struct grade_batch {
	struct jail_client *client;
	struct json_object *runners; /* as jail_client_runners gives them */
	const char *language;        /* a runner's name */
	const char *code;
	struct json_object *asked;
	struct jail_limits limits; /* of each case, all set */
	const atomic_bool *over;   /* no case begins any more; NULL */
};
struct grade_batch_case {
	enum grade_verdict verdict;
	char message[GRADE_MESSAGE];
	bool ran;                      /* as a program of its own: the next members are the run's */
	enum jail_verdict end;
	int exit_code, signal;
	char *out, *err; /* the beginnings; NULL: nothing */
	char *score;     /* what a judge that scores printed; NULL: there was none. Its words are the message */
	size_t out_length, err_length;
	int64_t wall_us, cpu_us, memory_bytes;
};
struct grade_batch_result {
	enum grade_verdict verdict; /* of the first case that failed; GRADE_CE, GRADE_JE, GRADE_SKIP: no case ran */
	char message[GRADE_MESSAGE];
	bool compiled;
	bool stopped, late; /* not all cases ran, because it was over, or the whole time was */
	bool left;          /* … or nobody waits for it (jail_client_guard): the rest says nothing */
	int64_t make_us;        /* to make the program */
	struct grade_batch_case *cases; /* those that ran, in their order */
	size_t count, passed;
};

/* ERR_INVALID: what is asked is not as above. What goes wrong otherwise is the result's verdict. The caller clears
 * *ret, also then. */
int grade_batch(const struct grade_batch *batch, struct grade_batch_result *ret, struct err *err);
void grade_batch_clear(struct grade_batch_result *result);
#define auto_batch __attribute__((cleanup(grade_batch_clear)))
/* The same as it is recorded: a line of JSON a case, without times and what differs from run to run. */
void grade_batch_print(const struct grade_batch_result *result, struct buf *ret);
