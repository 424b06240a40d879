/*
 * doors.h - the APIs of other sandboxes, as their clients call them: a program in, what came of it out. Their users
 * change an address and keep their clients. Off unless doors.fusion, doors.piston.
 *
 *     /fusion/           SandboxFusion: run_code, v1/ping, list_languages (doors_fusion.c); of ScaleBox, which grew out
 *                        of it, common_evaluate and common_evaluate_batch (doors_grade.c)
 *     /piston/api/v2/    Piston: runtimes, execute, packages (doors_piston.c)
 *
 * What they have in common: same tokens, jails and record as everywhere; nothing is kept between two requests. Such
 * clients count a refusal as the program's fault, so requests are not refused but wait (doors_line.h), each without a
 * thread, for at most the time after which its client would give up; then the answer is "not begun", in the form that
 * its client repeats. A program that has begun is never ended for that reason. The answer names its execution in a
 * header, X-Sallyport-Execution. A limit of time is of processor time: the wall clock gives DOORS_WALL_TIMES as much,
 * so that a busy host fails no good program.
 *
 * Facts: SandboxFusion 469de08, verl b017a83, Piston 0a844d0, open-r1 2de7e22, ScaleBox 4bcfefd; the clients'
 * rules in docs/doors.md.
 */
#pragma once

#include "cgi/http/http.h"
#include "doors_line.h"
#include "doors_repeat.h"
#include "lib/job/job.h"
#include "lib/job/job_grading.h"

#define DOORS_STREAM_MAX (1 << 20) /* bytes of each stream in an answer */
#define DOORS_WALL_TIMES 3
#define DOORS_WALL_MORE  INT64_C(7000000) /* us that the wall clock gives more at most: clients hang up after 10 s */

void doors_fusion(struct http_exchange *exchange, const char *method, const char *rest);
void doors_piston(struct http_exchange *exchange, const char *method, const char *rest);

/* The line of the server: once, where a door is open. */
int doors_open(struct server *server, struct err *err);
void doors_stop(struct server *server); /* nothing begins any more */
void doors_close(struct server *server);

/* -------- for the doors ------------------------------------------------------------------------------- */

struct doors_call;
struct door {
	const char *name;
	size_t size;   /* of call->asked, which begins as zeros */
	size_t copies; /* of what a body consists of, in call->asked */
	/* Takes the body apart, before it waits: call->asked, and how long its client waits for an answer. Negative:
	 * the reply says what is wrong. */
	int (*take)(struct doors_call *call, int64_t *ret_patience_us);
	void (*run)(struct doors_call *call);   /* has a place: runs it and makes the reply */
	void (*late)(struct reply *reply);      /* "not begun, try again" */
	void (*clear)(void *asked); /* what it holds, also of one that was not taken to its end */
};
struct doors_call {
	struct doors_waiter waiter;
	struct http_exchange exchange; /* with the two below, once it waits */
	struct request request;
	struct reply reply;
	struct request_parked parked;
	const struct door *door;
	struct buf body; /* until it is taken apart */
	void *asked;     /* the door's */
	struct doors_repeat repeat;
	char *address; /* "REMOTE_ADDR=…" */
	bool fronted;  /* by a front for workers, which gives it to another one if it is answered 503 */
	const char *params[2];
};

/* Lets a request wait for its turn and runs it. */
void doors_serve(struct http_exchange *exchange, const struct door *door);
/* Limits of a run as these APIs say them; 0 or less: the configuration's. What is above its caps is lowered to them. */
struct jail_limits doors_limits(const struct config *config, int64_t run_us, int64_t compile_us,
				int64_t memory_bytes);
/* Files that a program finds in its folder. */
struct doors_inputs {
	struct job_file files[JOB_FILES_MAX]; /* names and bytes are its own */
	size_t count;
	bool fetched;        /* what the program leaves there is asked for */
	const char *program; /* a Python program is put there, too, under this name, so that it can import them */
};
void doors_inputs_clear(struct doors_inputs *inputs);
#define auto_doors_inputs __attribute__((cleanup(doors_inputs_clear)))
/* What ends a grading early: its client leaves, or the server has waited long enough for it. */
struct job_grading_until doors_until(const struct doors_call *call);
/* Runs it, in the request's conversation if it is live, else in one of its own. *ret_job is to be released, *ret is its
 * own. ERR_CANCELLED: the client left, and the reply says so. */
int doors_run(struct doors_call *call, struct job_request *request, struct doors_inputs *inputs, struct job **ret_job,
	      const struct job_result **ret, struct err *err);
/* What the answer names: the execution, and for the log its verdict. */
void doors_name(struct doors_call *call, const char *id, enum jail_verdict verdict);
/* A program's arguments; the list of them is the caller's to free. */
int doors_arguments(struct json_object *list, struct bind_strings *ret, struct err *err);
bool doors_compiled_late(const struct jail_result *jail); /* the compile step met its limit of time */
/* A stream's first DOORS_STREAM_MAX bytes; what is not UTF-8 is U+FFFD. */
struct json_object *doors_stream(struct doors_call *call, const struct job_result *result, bool is_stderr);
struct json_object *doors_text(const char *data, size_t length);
/* A name in a list of files, below the program's folder, in the form that jobs take; NULL: it leads elsewhere. */
const char *doors_path(const char *path);
