/*
 * grade_apart.c - see grade_exam.h: tests in one jail, the code under test in another, and what crosses between them.
 *
 * Both talk in lines through pipes that this process holds the other ends of. The jail of the tests sends, by the first
 * letter: P the candidate's program compiled (once, before any test; Python), with which later candidates start; Q a
 * question, which goes to the candidate, whose next line is the answer; V the verdict as JSON; D the end of the tests'
 * process, after which it waits for the next task. Where the candidate has ended, the answer is "E". Lines of the
 * candidate nobody asked for are answers to later questions, or thrown away.
 *
 * While one sample is examined, the jail and the interpreter for the next one start already: the program there is the
 * same for all, and the sample's source is the first line that it reads. No two samples share a jail. Nor does the next
 * sample wait for the jail of one that has passed to end: what is still to come is what it used (grade_exam_leave).
 * In C++ and Go both are programs, which begin with their jails; P and D are not needed, but for the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "grade_exam.h"
#include "grade_pool.h"
#include "jail/client/client_runners.h"
#include "lib/base/text.h"
#include "lib/base/util.h"

#define EXAMINER_OLD_US 200000000LL /* then a new one is made */
#define LAST_WORD_US    10000000LL  /* for tests to end after the candidate has */
#define AHEAD_OLD_US    2000000LL   /* a candidate that has waited this long for its sample is not used */

#define LINE_MAX_BYTES (64 << 20) /* of a line, and of all that waits in one direction */

/* -------- the pipes ----------------------------------------------------------------------------------- */

/* Our ends of the pipes that are a program's standard input and output. Nothing waits: the caller polls both. */
struct channel {
	int in, out; /* to the program's standard input, from its standard output; -1: closed */
	struct buf to, from;
	size_t sent, taken;
};
#define CHANNEL_INIT {.in = -1, .out = -1}

static void channel_clear(struct channel *channel)
{
	close_pointer(&channel->in);
	close_pointer(&channel->out);
	buf_clear(&channel->to);
	buf_clear(&channel->from);
	*channel = (struct channel)CHANNEL_INIT;
}

/* Sends what can be sent of `to`. */
static void channel_send(struct channel *channel)
{
	while (channel->in >= 0 && channel->sent < channel->to.length) {
		ssize_t n = write(channel->in, channel->to.data + channel->sent, channel->to.length - channel->sent);

		if (n < 0 && errno == EAGAIN)
			break;
		if (n >= 0)
			channel->sent += (size_t)n;
		else if (errno != EINTR)
			fd_close(&channel->in);
	}
	if (channel->sent == channel->to.length) {
		buf_reset(&channel->to);
		channel->sent = 0;
	}
}

/* Receives what is there. The caller looks for lines afterwards: nothing else wakes its loop for them. */
static void channel_receive(struct channel *channel)
{
	char block[16384]; /* threads of the gateway have small stacks */

	while (channel->out >= 0 && !channel->from.overflow) {
		ssize_t n = read(channel->out, block, sizeof(block));

		if (n < 0 && errno == EAGAIN)
			break;
		if (n > 0)
			buf_add(&channel->from, block, (size_t)n);
		else if (n == 0 || errno != EINTR)
			fd_close(&channel->out);
	}
}

/* The next whole line with its newline, valid until the next channel_receive; NULL: not yet. */
static const char *channel_line(struct channel *channel, size_t *ret_length)
{
	const char *start = channel->from.data + channel->taken;
	const char *end = memchr(start, '\n', channel->from.length - channel->taken);

	if (!end) {
		memmove(channel->from.data, start, channel->from.length - channel->taken);
		channel->from.length -= channel->taken;
		channel->taken = 0;
		return NULL;
	}
	*ret_length = (size_t)(end - start) + 1;
	channel->taken += *ret_length;
	return start;
}

/* -------- jails --------------------------------------------------------------------------------------- */

/* A jail with a program that is to read a sample's source, or has read it. */
struct grade_candidate {
	struct jail_once once;
	struct channel channel;
	int64_t begun_us, given_us; /* when its jail was asked for, when it got its sample */
	int64_t ended_us;           /* when we heard of its end; 0: not yet */
};

struct grade_examiner {
	enum grade_tongue tongue;
	struct jail_once once;
	struct channel channel;
	int64_t made_us;
	struct buf compiled;           /* the candidate's program; empty: not yet */
	struct grade_candidate *ahead; /* for the next sample, or NULL */
};

struct talk {
	const struct grade_exam *exam;
	struct grade_examiner *examiner;
	struct grade_candidate *candidate;
	bool asked;  /* the candidate owes an answer */
	bool done;   /* the tests' process has ended */
	bool broken; /* so has the jail that it was in, or it is in no state to go on */
	struct json_object *verdict;
};

static int begin(struct jail_client *client, struct jail_once *once, const struct grade_text *text,
		 const struct grade_program *program, struct channel *channel, struct err *err)
{
	auto_close int code = memfd_with("exam", text->data, text->length);
	auto_close int errors = memfd_create("stderr", MFD_CLOEXEC);
	int in[2] = {-1, -1}, out[2] = {-1, -1}, result = 0;

	*channel = (struct channel)CHANNEL_INIT;
	buf_init(&channel->to, LINE_MAX_BYTES);
	buf_init(&channel->from, LINE_MAX_BYTES);
	if (code < 0 || errors < 0)
		result = err_errno(err, "an anonymous file");
	else if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || fcntl(in[1], F_SETFL, O_NONBLOCK) ||
		 fcntl(out[0], F_SETFL, O_NONBLOCK))
		result = err_errno(err, "making pipes");
	channel->in = in[1];
	channel->out = out[0];
	once->program.code_fd = code;
	if (program) {
		once->spec.runner = program->runner;
		once->program.code_fd = grade_program_no_code();
		once->program.entry = program->entry;
		once->files = program->files;
		once->n_files = program->count;
	}
	once->program.stdin_fd = in[0];
	once->program.stdout_fd = out[1];
	once->program.stderr_fd = errors;
	if (result == 0)
		result = jail_once_begin(client, once, err);
	fd_close(&once->program.stdin_fd);
	fd_close(&once->program.stdout_fd);
	once->program.stderr_fd = once->program.code_fd = -1;
	return result;
}

static void candidate_free(struct grade_candidate *candidate)
{
	if (!candidate)
		return;
	jail_once_clear(&candidate->once);
	channel_clear(&candidate->channel);
	free(candidate);
}

static int candidate_new(const struct grade_exam *exam, const struct grade_task *task,
			 const struct grade_program *program, struct grade_candidate **ret, struct err *err)
{
	struct grade_candidate *candidate = xcalloc(1, sizeof(*candidate));

	candidate->once.spec = (struct jail_spec){
		.runner = grade_texts[task->tongue].runner, .limits = grade_exam_limits(exam, task), .label = "sample"};
	candidate->once.spec.limits.wall_us += AHEAD_OLD_US;
	candidate->channel = (struct channel)CHANNEL_INIT;
	candidate->begun_us = clock_monotonic_us();
	const struct buf *compiled = &(*exam->examiner)->compiled;
	const struct grade_text text = compiled->length > 0 ? (struct grade_text){compiled->data, compiled->length}
							    : grade_texts[task->tongue].candidate;
	int result = begin(exam->client, &candidate->once, &text, program, &candidate->channel, err);
	if (result < 0)
		candidate_free(candidate);
	else
		*ret = candidate;
	return result;
}

void grade_examiner_free(struct grade_examiner *examiner)
{
	if (!examiner)
		return;
	candidate_free(examiner->ahead);
	jail_once_clear(&examiner->once);
	channel_clear(&examiner->channel);
	buf_clear(&examiner->compiled);
	free(examiner);
}

/* The thread's jail for tests in this language; one of tests that are a program serves one sample only. */
static int hire(const struct grade_exam *exam, const struct grade_task *task, struct err *err)
{
	struct grade_examiner *examiner = *exam->examiner;
	const struct grade_texts *texts = &grade_texts[task->tongue];
	auto_buf struct buf text = {0};

	if (examiner && examiner->tongue == task->tongue && !exam->tests && !examiner->once.over &&
	    clock_monotonic_us() - examiner->made_us < EXAMINER_OLD_US)
		return 0;
	grade_examiner_free(steal(exam->examiner));
	examiner = xcalloc(1, sizeof(*examiner));
	*examiner = (struct grade_examiner){
		.tongue = task->tongue,
		.once = {.spec = {.runner = texts->runner,
				  .limits = {.wall_us = GRADE_EXAM_WALL_US,
					     .cpu_us = GRADE_EXAM_WALL_US,
					     .cpu_percent = -1,
					     .memory_bytes = GRADE_EXAM_MEMORY,
					     .pids = 64},
				  .label = "tests"}},
		.channel = CHANNEL_INIT,
		.made_us = clock_monotonic_us(),
	};
	if (exam->tests) {
		examiner->once.spec.limits = grade_exam_limits(exam, task);
		examiner->once.spec.limits.wall_us += AHEAD_OLD_US + LAST_WORD_US;
	}
	buf_init(&examiner->compiled, LINE_MAX_BYTES);
	buf_init(&text, LINE_MAX_BYTES);
	if (texts->compiles) {
		auto_json struct json_object *candidate = json_object_new_string(texts->candidate.data);

		buf_puts(&text, "CANDIDATE = ");
		json_print(&text, candidate);
		buf_putc(&text, '\n');
	}
	buf_add(&text, texts->examiner.data, texts->examiner.length);
	const struct grade_text program = {text.data, text.length};
	int result = begin(exam->client, &examiner->once, &program, exam->tests, &examiner->channel, err);
	if (result < 0)
		grade_examiner_free(examiner);
	else
		*exam->examiner = examiner;
	return result;
}

/* -------- the talk ------------------------------------------------------------------------------------ */

static void hear_examiner(struct talk *talk)
{
	struct channel *channel = &talk->examiner->channel;
	struct buf *compiled = &talk->examiner->compiled;
	size_t length;

	channel_receive(channel);
	for (const char *line; (line = channel_line(channel, &length));) {
		if (*line == 'P') {
			auto_free uint8_t *code = xmalloc(length / 2);

			if (compiled->length == 0 && hex_decode(line + 1, length - 2, code) == 0)
				buf_add(compiled, code, length / 2 - 1);
		} else if (*line == 'Q') {
			buf_add(&talk->candidate->channel.to, line + 1, length - 1);
			talk->asked = true;
		} else if (*line == 'V') {
			json_object_put(steal(&talk->verdict));
			if (json_parse(line + 1, length - 1, &talk->verdict, NULL) < 0)
				talk->broken = true;
		} else if (*line == 'D') {
			talk->done = true;
			talk->broken = talk->broken || strncmp(line, "D0\n", length) != 0;
		}
	}
	if (!talk->done && (channel->out < 0 || channel->from.overflow || talk->examiner->once.over))
		talk->done = talk->broken = true;
}

static void note_end(struct grade_candidate *candidate)
{
	if (!candidate->ended_us)
		candidate->ended_us = clock_monotonic_us();
}

static void hear_candidate(struct talk *talk)
{
	struct channel *channel = &talk->candidate->channel;
	struct buf *to = &talk->examiner->channel.to;
	const char *line;
	size_t length;

	channel_receive(channel);
	if (channel->to.overflow || channel->from.overflow)
		fd_close(&channel->out);
	if (talk->candidate->once.over)
		note_end(talk->candidate);
	if (!talk->asked)
		return;
	if ((line = channel_line(channel, &length))) {
		buf_add(to, line, length);
		talk->asked = false;
	} else if (channel->out < 0 || talk->candidate->once.over) {
		buf_puts(to, "E\n");
		talk->asked = false;
	}
}

static struct pollfd poll_in(const struct channel *channel)
{
	return (struct pollfd){.fd = channel->from.overflow ? -1 : channel->out, .events = POLLIN};
}

static struct pollfd poll_out(const struct channel *channel)
{
	return (struct pollfd){.fd = channel->to.length > channel->sent ? channel->in : -1, .events = POLLOUT};
}

/* Until the tests' process has ended. */
static int converse(struct talk *talk, struct err *err)
{
	struct jail_client *client = talk->exam->client;

	for (;;) {
		hear_examiner(talk);
		hear_candidate(talk);
		channel_send(&talk->candidate->channel);
		channel_send(&talk->examiner->channel);
		const int64_t ended_us = talk->candidate->ended_us;
		if (talk->done)
			return 0;
		if (ended_us && clock_monotonic_us() - ended_us > LAST_WORD_US) {
			talk->broken = true;
			return 0;
		}
		struct pollfd fds[] = {
			{.fd = jail_client_fd(client), .events = jail_client_poll_events(client)},
			poll_in(&talk->candidate->channel),
			poll_out(&talk->candidate->channel),
			poll_in(&talk->examiner->channel),
			poll_out(&talk->examiner->channel),
			{.fd = jail_client_guard_fd(client), .events = POLLRDHUP},
		};
		if (poll(fds, ARRAY_SIZE(fds), ended_us ? 1000 : -1) < 0 && errno != EINTR)
			return err_errno(err, "waiting for tests");
		int result = fds[0].revents || fds[5].revents ? jail_client_dispatch(client, err) : 0;
		if (result < 0)
			return result;
	}
}

/* -------- what is said -------------------------------------------------------------------------------- */

static void put_task(struct channel *channel, const struct grade_task *task)
{
	json_print(&channel->to, task->suite);
	buf_putc(&channel->to, '\n');
}

/* Waits for the end of the candidate's jail. */
static int await_end(struct jail_client *client, struct grade_candidate *candidate, struct err *err)
{
	int result = jail_once_end(client, &candidate->once, err);

	note_end(candidate);
	if (result == 0 && candidate->once.result.verdict == JAIL_XX)
		result = err_set(err, ERR_SYSTEM, "%s", candidate->once.result.message);
	return result;
}

static void take_end(const struct grade_candidate *candidate, struct grade_exam_result *result)
{
	grade_exam_ended(&candidate->once, result);
	/* A program that waited for its sample was there before it; one whose jail was still being made began after. */
	result->wall_us = MIN(result->wall_us, candidate->ended_us - candidate->given_us);
}

/* The verdict of tests that came to one. */
static void judge(const char *end, const char *text, struct grade_exam_result *result)
{
	result->premature = false;
	result->apart = streq(end, "apart");
	if (streq(end, "passed"))
		GRADE_SAY(result, GRADE_AC, "passed");
	else if (streq(end, "wrong"))
		GRADE_SAY(result, GRADE_WA, "failed: %s", text && *text ? text : "an assertion");
	else
		GRADE_SAY(result, GRADE_RTE, "failed: %s", text ? text : "");
}

int grade_exam_leave(struct jail_client *client, struct grade_exam_result *result, struct err *err)
{
	struct grade_candidate *candidate = steal(&result->leaving);
	struct grade_exam_result end = {0};
	int failed = await_end(client, candidate, err);

	if (failed == 0) {
		take_end(candidate, &end);
		result->cpu_us = end.cpu_us;
		result->wall_us = end.wall_us;
	}
	candidate_free(candidate);
	return failed;
}

static void take_counts(struct json_object *verdict, struct grade_exam_result *result)
{
	result->tests = json_object_get_int64(json_get(verdict, "tests", json_type_int));
	result->passed = json_object_get_int64(json_get(verdict, "passed", json_type_int));
	result->base_tests = json_object_get_int64(json_get(verdict, "base_tests", json_type_int));
	result->base_passed = json_object_get_int64(json_get(verdict, "base_passed", json_type_int));
}

/* Ends the candidate where the verdict is known; only if it has passed, nobody waits for that end. */
static int part(struct talk *talk, struct grade_exam_result *result, struct err *err)
{
	const char *end = json_get_string(talk->verdict, "end");
	bool settled = end && !streq(end, "ended");

	if (!talk->candidate->once.over && (settled || talk->broken))
		jail_cancel(talk->candidate->once.jail);
	channel_clear(&talk->candidate->channel);
	take_counts(talk->verdict, result);
	if (settled && streq(end, "passed") && !talk->broken) {
		GRADE_SAY(result, GRADE_AC, "passed");
		note_end(talk->candidate);
		result->leaving = steal(&talk->candidate);
		return 0;
	}
	int failed = await_end(talk->exam->client, talk->candidate, err);
	if (failed < 0)
		return failed;
	/* The candidate is not to blame where the sandbox of the tests failed. */
	const struct jail_once *tests = &talk->examiner->once;
	if (talk->broken && tests->over && (!tests->done || tests->result.verdict == JAIL_XX))
		return err_set(err, ERR_SYSTEM, "the jail of the tests failed");
	take_end(talk->candidate, result);
	if (settled)
		judge(end, json_get_string(talk->verdict, "text"), result);
	else if (result->verdict == GRADE_JE)
		/* It closed its output and lives on, or the tests' own process failed on what it was sent. */
		GRADE_SAY(result, GRADE_RTE, "failed: the program stopped answering");
	return 0;
}

/* `program`: the sample's, where it is compiled; else NULL. */
static int talk_once(const struct grade_exam *exam, const struct grade_sample *sample,
		     const struct grade_program *program, struct grade_exam_result *result, struct err *err)
{
	const struct grade_task *task = sample->task;
	struct talk talk = {.exam = exam};
	int failed = hire(exam, task, err);

	if (failed < 0)
		return failed;
	talk.examiner = *exam->examiner;
	talk.candidate = steal(&talk.examiner->ahead);
	if (talk.candidate && ((exam->load && exam->load->tries > 0) || talk.candidate->once.over ||
			       clock_monotonic_us() - talk.candidate->begun_us >= AHEAD_OLD_US))
		candidate_free(steal(&talk.candidate));
	if (!talk.candidate && (failed = candidate_new(exam, task, program, &talk.candidate, err)) < 0)
		return failed;
	talk.candidate->given_us = clock_monotonic_us();
	if (!program) {
		auto_free char *text = grade_sample_program(sample);
		auto_json struct json_object *source = json_object_new_string(text);

		put_task(&talk.examiner->channel, task);
		json_print(&talk.candidate->channel.to, source);
		buf_putc(&talk.candidate->channel.to, '\n');
	}
	if (exam->more && !program) { /* else, or where it fails, the next one begins by itself */
		struct grade_exam first = *exam;

		first.load = NULL;
		candidate_new(&first, task, NULL, &talk.examiner->ahead, NULL);
	}
	failed = converse(&talk, err);
	if (failed == 0)
		failed = part(&talk, result, err);
	json_object_put(talk.verdict);
	candidate_free(talk.candidate);
	if (failed < 0 || talk.broken)
		grade_examiner_free(steal(exam->examiner));
	return failed;
}

void grade_exam_apart(const struct grade_exam *exam, const struct grade_sample *sample,
		      struct grade_exam_result *ret)
{
	const struct grade_task *task = sample->task;
	struct json_object *runner = jail_runner_named(exam->runners, grade_tongue_text(task->tongue));
	struct grade_exam_result result = {0};
	auto_program struct grade_program program = {0};
	bool compiles = grade_exam_compiles(task);

	if (compiles) {
		grade_exam_make(exam, sample, GRADE_CODE, &program);
		if (program.verdict != GRADE_AC) {
			GRADE_SAY(&result, program.verdict, "%s", program.message);
			*ret = result;
			return;
		}
	}
	if (!json_object_get_boolean(json_get(runner, "available", json_type_boolean))) {
		GRADE_SAY(&result, GRADE_SKIP, "the runner %s is not installed", grade_tongue_text(task->tongue));
		*ret = result;
		return;
	}
	const struct jail_limits limits = grade_exam_limits(exam, task);
	struct grade_load load = GRADE_LOAD_INIT;
	struct grade_exam timed = *exam;
	int failures = 0;

	for (;;) {
		struct grade_load next = load;
		struct err err = ERR_INIT;

		timed.load = &next;
		result = (struct grade_exam_result){0};
		grade_load_begin(&load);
		int failed = talk_once(&timed, sample, compiles ? &program : NULL, &result, &err);
		grade_load_end(&load);
		if (failed < 0 && ++failures == GRADE_TRIES) {
			GRADE_SAY(&result, GRADE_JE, "the sandbox failed: %s", err.text);
			break;
		}
		if (failed == 0 && !grade_exam_again(&limits, &load, &result))
			break;
	}
	*ret = result;
}
