/*
 * bridge_question.h - calls that a person must allow: held calls on the bridge's side, questions on the side of the
 * request whose program made them.
 *
 * A provider puts a call here when the policy says `ask`. Who serves the request is woken by the descriptor, shows the
 * user what is pending and gives the answer, upon which the call goes on (bridge_again) or is refused. "For this run"
 * holds for all further calls of that tool of that server in this run, whatever their arguments.
 * Thread-safe; held by the run's tools and by the requests that ask its client.
 */
#pragma once

#include "bridge.h"

#define BRIDGE_QUESTIONS_MAX         20 /* of a run; further calls are refused */
#define BRIDGE_QUESTIONS_PENDING_MAX 8

struct bridge_questions;
/* `refusal`: why nobody can be asked, as in "this client …"; NULL: somebody can. */
struct bridge_questions *bridge_questions_new(const char *refusal);
struct bridge_questions *bridge_questions_keep(struct bridge_questions *questions);
void bridge_questions_free(struct bridge_questions *questions); /* NULL is fine */
/* Before the first call: secrets that questions do not show. NULL: none. */
struct mask;
void bridge_questions_veil(struct bridge_questions *questions, struct mask *mask);
/* Nobody can be asked any more: what is pending is refused, too. */
void bridge_questions_refuse(struct bridge_questions *questions, const char *refusal);
/* Somebody who asks a client: `fd` is readable when something was put or dropped; _heard takes that away. */
struct bridge_listener {
	struct bridge_listener *next;
	int fd;
};
int bridge_questions_listen(struct bridge_questions *questions, struct bridge_listener *listener, struct err *err);
void bridge_questions_heard(const struct bridge_listener *listener);
void bridge_questions_leave(struct bridge_questions *questions, struct bridge_listener *listener);

/* For the provider, on the bridge's thread. True: it is allowed already (`call->approval`), or nobody can be asked
 * and it is `lenient`. Otherwise the call is held,
 * or was answered with a refusal. */
bool bridge_question_put(struct bridge_questions *questions, struct bridge_call *call, const char *rule, bool lenient);
/* The call is over. True: it was pending, and the provider owes its answer. */
bool bridge_question_drop(struct bridge_questions *questions, const struct bridge_call *call);

struct bridge_question {
	int64_t number; /* the call's in its run */
	char *server, *tool, *arguments;
};
/* What is pending beyond `after`, in order; the caller's (bridge_question_list_free). */
size_t bridge_question_list(struct bridge_questions *questions, int64_t after, struct bridge_question **ret);
void bridge_question_list_free(struct bridge_question *list, size_t count);
bool bridge_question_pending(struct bridge_questions *questions, int64_t number);

enum bridge_verdict { BRIDGE_NO, BRIDGE_ONCE, BRIDGE_RUN };
/* What is not pending (any more) changes nothing. */
void bridge_question_answer(struct bridge_questions *questions, int64_t number, enum bridge_verdict verdict);
