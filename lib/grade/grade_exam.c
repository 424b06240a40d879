/*
 * grade_exam.c - see grade_exam.h: the verdict of one end, and suites in one process.
 *
 * In one process the order is: the harness (jail/guest/exam/alone.*) reads the nonce from the pipe that is its standard
 * input, duplicates standard output to a descriptor of a random number, puts /dev/null and standard error in the places
 * of 0 and 1, and starts code and tests. When the tests are through, or one has failed, it writes a proof and a word to
 * that descriptor. We look for the proof at the end of what came out: what comes before it, or without it, is output of
 * the code and says nothing. Limits are those of the language, as CPU time; the wall clock has twice that and a second.
 */
#include "grade_exam.h"
#include "grade_pool.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/store/db/crypto.h"

#define DATA_BYTES   (256 << 20)
#define COMPILE_US   120000000LL
#define PIDS         64
#define NONCE        32 /* hexadecimal digits */
#define LAST_WORD    4096 /* bytes of output, in which the harness' word is */

bool grade_exam_compiles(const struct grade_task *task)
{
	return grade_texts[task->tongue].examiner.data == NULL;
}

struct jail_limits grade_exam_limits(const struct grade_exam *exam, const struct grade_task *task)
{
	double limit = exam->time_limit > 0 ? exam->time_limit
		       : task->seconds > 0    ? task->seconds
		       : grade_exam_compiles(task) ? 10 : 3;
	int64_t limit_us = (int64_t)(limit * 1e6);

	return (struct jail_limits){
		.wall_us = exam->load ? grade_load_wall(exam->load, 2 * limit_us + 1000000) : 2 * limit_us + 1000000,
		.cpu_us = limit_us,
		.cpu_percent = -1,
		.memory_bytes = GRADE_EXAM_MEMORY,
		.pids = PIDS,
		.stack_bytes = -1,
		.data_bytes = DATA_BYTES,
		.output_bytes = GRADE_EXAM_OUTPUT,
	};
}

void grade_exam_ended(const struct jail_once *once, struct grade_exam_result *result)
{
	enum grade_verdict verdict = grade_verdict_of(&once->result);
	const struct jail_usage *run = &once->result.run;

	result->cpu_us = run->cpu_user_us + run->cpu_system_us;
	result->wall_us = run->wall_us;
	if (verdict == GRADE_TLE) {
		GRADE_SAY(result, verdict, "timed out");
	} else if (verdict == GRADE_AC || once->result.verdict == JAIL_RE) {
		GRADE_SAY(result, GRADE_RTE, "failed: the program ended before the tests did, with status %d",
			       once->result.exit_code);
		result->premature = true;
	} else {
		GRADE_SAY(result, verdict, "failed: %s", once->result.message);
	}
}

bool grade_exam_again(const struct jail_limits *limits, struct grade_load *load, struct grade_exam_result *result)
{
	const struct grade_load_run run = {
		.late = result->verdict == GRADE_TLE,
		.cpu_us = result->cpu_us,
		.wall_us = result->wall_us,
		.cpu_limit_us = limits->cpu_us,
		.wall_limit_us = limits->wall_us,
	};
	enum grade_load_word word = grade_load_word(load, &run);

	if (word == GRADE_LOAD_STARVED)
		GRADE_SAY(result, GRADE_JE, GRADE_LOAD_TEXT, (double)result->cpu_us * 1e-6,
			  (double)result->wall_us * 1e-6, GRADE_LOAD_TRIES);
	else if (word == GRADE_LOAD_WAITS)
		GRADE_SAY(result, GRADE_TLE, "timed out");
	return word == GRADE_LOAD_AGAIN;
}

/* -------- in one process ------------------------------------------------------------------------------ */

/* What the harness said at the end, behind its proof: the nonce, or in an interpreter, where that could be found, the
 * hash of the nonce and of all that follows, in hexadecimal. NULL: there is none. */
static const char *find_proof(const struct grade_task *task, const char *text, size_t length, const char *nonce)
{
	const bool compiled = grade_exam_compiles(task);
	const size_t proof = compiled ? NONCE : SHA256_HEX_SIZE - 1;

	for (size_t at = length > LAST_WORD ? length - LAST_WORD : 0; at + proof < length; at++) {
		const char *said = text + at + proof;
		bool word = str_starts(said, "passed\n") || str_starts(said, "wrong\n") || str_starts(said, "error\n");
		char hash[SHA256_HEX_SIZE];

		if (!word)
			continue;
		struct sha256 *digest = sha256_new();
		sha256_add(digest, nonce, NONCE);
		sha256_add(digest, said, length - at - proof);
		sha256_finish(digest, hash);
		if (memcmp(text + at, compiled ? nonce : hash, proof) == 0)
			return said;
	}
	return NULL;
}

static void judge_alone(const struct grade_task *task, const struct jail_once *once, const char *nonce,
			struct grade_exam_result *result)
{
	auto_free char *text = NULL;
	size_t length = 0;
	enum grade_verdict verdict = grade_verdict_of(&once->result);

	grade_exam_ended(once, result);
	/* A panic is no early end. */
	result->premature = result->premature && !(task->tongue == GRADE_GO && once->result.exit_code == 2);
	if (verdict != GRADE_AC && verdict != GRADE_RTE)
		return;
	if (jail_once_output(once, 1, GRADE_EXAM_OUTPUT, &text, &length, NULL) < 0)
		return;
	const char *said = find_proof(task, text, length, nonce);
	if (!said)
		return;
	result->premature = false;
	/* "passed\n", "wrong\nTEXT", "error\nTEXT" */
	const char *why = said + strcspn(said, "\n") + 1;
	if (str_starts(said, "passed\n"))
		GRADE_SAY(result, GRADE_AC, "passed");
	else if (str_starts(said, "wrong\n"))
		GRADE_SAY(result, GRADE_WA, "failed: %s", *why ? why : "an assertion");
	else
		GRADE_SAY(result, GRADE_RTE, "failed: %s", why);
}

/* A pipe that holds the nonce, and its end. Bytes of a pipe are read once; a file could be read again. */
static int nonce_pipe(char ret_nonce[NONCE + 1])
{
	uint8_t bytes[NONCE / 2];
	int fds[2];

	random_bytes(bytes, sizeof(bytes));
	hex_encode(bytes, sizeof(bytes), ret_nonce);
	if (pipe2(fds, O_CLOEXEC))
		return -1;
	auto_close int write_end = fds[1];
	if (write_all(write_end, ret_nonce, NONCE))
		close_pointer(&fds[0]);
	return fds[0];
}

static void run_alone(const struct grade_exam *exam, const struct grade_task *task, const struct grade_program *program,
		      struct grade_exam_result *result)
{
	for (int failures = 0; failures < GRADE_TRIES; failures++) {
		char nonce[NONCE + 1];
		auto_close int input = nonce_pipe(nonce);
		auto_once struct jail_once once = {
			.spec = {.runner = program->runner,
				 .limits = grade_exam_limits(exam, task),
				 .label = "sample"},
			.program = {.code_fd = grade_program_no_code(), .entry = program->entry, .stdin_fd = input},
			.capture = true,
			.files = program->files,
			.n_files = program->count,
		};
		struct err err = ERR_INIT;

		if (jail_once(exam->client, &once, &err) == 0 && once.result.verdict != JAIL_XX)
			return judge_alone(task, &once, nonce, result);
		GRADE_SAY(result, GRADE_JE, "the sandbox failed: %s", err.code ? err.text : once.result.message);
	}
}

void grade_exam_make(const struct grade_exam *exam, const struct grade_sample *sample, enum grade_part part,
		     struct grade_program *ret)
{
	static const struct grade_package package = {
		.dir = -1, .compile_us = COMPILE_US, .compile_bytes = GRADE_EXAM_MEMORY};
	const struct grade_maker maker = {exam->client, exam->runners, &package, exam->cache, false};

	for (enum grade_headers headers = GRADE_OWN_HEADERS; headers <= GRADE_USUAL_HEADERS; headers++) {
		auto_source struct grade_source source = {0};

		grade_program_clear(ret);
		grade_compose(sample, part, headers, &source);
		if (source.count == 0)
			return GRADE_SAY(ret, GRADE_CE, "the task cannot be split");
		grade_program_make(&maker, &source, ret);
		if (ret->verdict != GRADE_CE || sample->task->tongue != GRADE_CPP)
			break;
	}
}

void grade_exam_tests(const struct grade_exam *exam, const struct grade_task *task, struct grade_program *ret)
{
	grade_exam_make(exam, &(struct grade_sample){.task = task, .text = ""}, GRADE_TESTS, ret);
}

void grade_exam_alone(const struct grade_exam *exam, const struct grade_sample *sample,
		      struct grade_exam_result *ret)
{
	struct grade_exam_result result = {.in_process = true};
	auto_program struct grade_program program = {0};
	const struct jail_limits limits = grade_exam_limits(exam, sample->task);
	struct grade_load load = GRADE_LOAD_INIT;
	struct grade_exam timed = *exam;
	bool again = true;

	grade_exam_make(exam, sample, GRADE_ALONE, &program);
	if (program.verdict != GRADE_AC)
		GRADE_SAY(&result, program.verdict, "%s", program.message);
	while (program.verdict == GRADE_AC && again) {
		struct grade_load next = load;

		timed.load = &next;
		result = (struct grade_exam_result){.in_process = true};
		grade_load_begin(&load);
		run_alone(&timed, sample->task, &program, &result);
		grade_load_end(&load);
		again = grade_exam_again(&limits, &load, &result);
	}
	*ret = result;
}
