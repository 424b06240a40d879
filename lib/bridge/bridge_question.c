/*
 * bridge_question.c - see bridge_question.h.
 *
 * Locks are taken in the order bridge, questions, answers: a provider comes with the bridge's, and bridge_again and
 * bridge_answer need the last only. A call lives until its provider has answered it, so an entry never dangles: who
 * takes it off the list owes the answer.
 */
#include "bridge_question.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>

#include "lib/base/mask.h"
#include "lib/base/util.h"

struct entry {
	struct entry *next;
	struct bridge_call *call;
	int64_t since_us;
};
struct grant {
	struct grant *next;
	const struct upstream_list *list; /* held by the run */
	char *tool;
};
struct bridge_questions {
	_Atomic int references;
	pthread_mutex_t lock;
	struct bridge_listener *listeners;
	char *refusal;
	struct mask *mask; /* of the run's secrets; NULL: none */
	struct entry *first;
	struct grant *grants;
	size_t asked, pending;
};

struct bridge_questions *bridge_questions_new(const char *refusal)
{
	struct bridge_questions *questions = xcalloc(1, sizeof(*questions));

	questions->references = 1;
	questions->refusal = refusal ? xstrdup(refusal) : NULL;
	pthread_mutex_init(&questions->lock, NULL);
	return questions;
}

struct bridge_questions *bridge_questions_keep(struct bridge_questions *questions)
{
	questions->references++;
	return questions;
}

void bridge_questions_free(struct bridge_questions *questions)
{
	if (!questions || --questions->references > 0)
		return;
	while (questions->grants) {
		struct grant *grant = questions->grants;

		questions->grants = grant->next;
		free(grant->tool);
		free(grant);
	}
	pthread_mutex_destroy(&questions->lock);
	mask_free(questions->mask);
	free(questions->refusal);
	free(questions);
}

void bridge_questions_veil(struct bridge_questions *questions, struct mask *mask)
{
	questions->mask = mask_keep(mask);
}

int bridge_questions_listen(struct bridge_questions *questions, struct bridge_listener *listener, struct err *err)
{
	listener->fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK); /* something may be there already */
	if (listener->fd < 0)
		return err_errno(err, "cannot make an eventfd");
	pthread_mutex_lock(&questions->lock);
	listener->next = questions->listeners;
	questions->listeners = listener;
	pthread_mutex_unlock(&questions->lock);
	return 0;
}

void bridge_questions_heard(const struct bridge_listener *listener)
{
	eventfd_t ignored;

	eventfd_read(listener->fd, &ignored);
}

void bridge_questions_leave(struct bridge_questions *questions, struct bridge_listener *listener)
{
	pthread_mutex_lock(&questions->lock);
	for (struct bridge_listener **link = &questions->listeners; *link; link = &(*link)->next) {
		if (*link == listener) {
			*link = listener->next;
			break;
		}
	}
	pthread_mutex_unlock(&questions->lock);
	fd_close(&listener->fd);
}

/* Under the lock. */
static void wake(const struct bridge_questions *questions)
{
	for (const struct bridge_listener *one = questions->listeners; one; one = one->next)
		eventfd_write(one->fd, 1);
}

static const char *tool_of(const struct bridge_call *call)
{
	return call->tool ? call->tool->name : call->uri;
}

/* -------- answers ------------------------------------------------------------------------------------- */

static void refuse(struct bridge_call *call, const char *kind, const char *text)
{
	bridge_answer(call, &(struct bridge_answer){.kind = kind,
						    .text = text,
						    .decision = "ask",
						    .rule = call->approval.rule,
						    .decided_by = call->approval.by[0] ? call->approval.by : NULL,
						    .approval_us = call->approval.us});
}

static void refuse_unasked(struct bridge_call *call, const char *why)
{
	auto_free char *text = xasprintf("this call needs the user's approval, and %s (%s)", why, call->approval.rule);

	refuse(call, "approval", text);
}

/* Under the lock; the caller's. */
static struct entry *take(struct bridge_questions *questions, struct entry **link)
{
	struct entry *entry = *link;

	*link = entry->next;
	questions->pending--;
	return entry;
}

static void decide(struct entry *entry, enum bridge_verdict verdict)
{
	static const char *const by[] = {"user: no", "user: once", "user: for this run"};
	struct bridge_call *call = entry->call;

	call->approval.given = verdict != BRIDGE_NO;
	call->approval.us = clock_monotonic_us() - entry->since_us;
	snprintf(call->approval.by, sizeof(call->approval.by), "%s", by[verdict]);
	if (verdict == BRIDGE_NO)
		refuse(call, "denied", "the user did not allow this call");
	else
		bridge_again(call);
	free(entry);
}

/* From now on the tool is allowed, and what is pending of it. Under the lock. */
static void grant(struct bridge_questions *questions, const struct bridge_call *call)
{
	struct grant *new = xcalloc(1, sizeof(*new));

	*new = (struct grant){.next = questions->grants, .list = call->list, .tool = xstrdup(tool_of(call))};
	questions->grants = new;
	for (struct entry **link = &questions->first; *link;) {
		if ((*link)->call->list == call->list && streq(tool_of((*link)->call), tool_of(call)))
			decide(take(questions, link), BRIDGE_RUN);
		else
			link = &(*link)->next;
	}
}

void bridge_question_answer(struct bridge_questions *questions, int64_t number, enum bridge_verdict verdict)
{
	pthread_mutex_lock(&questions->lock);
	for (struct entry **link = &questions->first; *link; link = &(*link)->next) {
		if ((*link)->call->seq != number)
			continue;
		if (verdict == BRIDGE_RUN)
			grant(questions, (*link)->call);
		else
			decide(take(questions, link), verdict);
		break;
	}
	pthread_mutex_unlock(&questions->lock);
}

void bridge_questions_refuse(struct bridge_questions *questions, const char *refusal)
{
	pthread_mutex_lock(&questions->lock);
	if (!questions->refusal)
		questions->refusal = xstrdup(refusal);
	while (questions->first) {
		struct entry *entry = take(questions, &questions->first);

		refuse_unasked(entry->call, refusal);
		free(entry);
	}
	wake(questions);
	pthread_mutex_unlock(&questions->lock);
}

/* -------- questions ----------------------------------------------------------------------------------- */

bool bridge_question_put(struct bridge_questions *questions, struct bridge_call *call, const char *rule, bool lenient)
{
	snprintf(call->approval.rule, sizeof(call->approval.rule), "%s", rule);
	pthread_mutex_lock(&questions->lock);
	const struct grant *grant = questions->grants;

	while (grant && !(grant->list == call->list && streq(grant->tool, tool_of(call))))
		grant = grant->next;
	const bool allowed = grant != NULL || (questions->refusal && lenient);

	if (allowed) {
		call->approval.given = true;
		snprintf(call->approval.by, sizeof(call->approval.by), "%s",
			 grant ? "user: for this run" : "nobody: no user to ask");
	} else if (questions->refusal) {
		refuse_unasked(call, questions->refusal);
	} else if (questions->asked >= BRIDGE_QUESTIONS_MAX || questions->pending >= BRIDGE_QUESTIONS_PENDING_MAX) {
		refuse_unasked(call, "this run has put too many questions");
	} else {
		struct entry **link = &questions->first, *entry = xcalloc(1, sizeof(*entry));

		*entry = (struct entry){.call = call, .since_us = clock_monotonic_us()};
		while (*link)
			link = &(*link)->next;
		*link = entry;
		questions->asked++;
		questions->pending++;
		bridge_hold(call);
		wake(questions);
	}
	pthread_mutex_unlock(&questions->lock);
	return allowed;
}

bool bridge_question_drop(struct bridge_questions *questions, const struct bridge_call *call)
{
	bool found = false;

	pthread_mutex_lock(&questions->lock);
	struct entry **link = &questions->first;

	while (*link && (*link)->call != call)
		link = &(*link)->next;
	if (*link) {
		free(take(questions, link));
		found = true;
		wake(questions);
	}
	pthread_mutex_unlock(&questions->lock);
	return found;
}

/* A copy that may be shown. */
static char *shown(const struct bridge_questions *questions, const char *text)
{
	struct buf copy;

	buf_init(&copy, SIZE_MAX);
	mask_bytes(questions->mask, text, strlen(text), &copy);
	return buf_steal(&copy, NULL);
}

size_t bridge_question_list(struct bridge_questions *questions, int64_t after, struct bridge_question **ret)
{
	size_t count = 0;

	*ret = xcalloc(BRIDGE_QUESTIONS_PENDING_MAX, sizeof(**ret));
	pthread_mutex_lock(&questions->lock);
	for (const struct entry *entry = questions->first; entry; entry = entry->next) {
		if (entry->call->seq <= after)
			continue;
		(*ret)[count++] = (struct bridge_question){.number = entry->call->seq,
							   .server = xstrdup(entry->call->list->server->name),
							   .tool = shown(questions, tool_of(entry->call)),
							   .arguments = shown(questions, entry->call->arguments)};
	}
	pthread_mutex_unlock(&questions->lock);
	return count;
}

void bridge_question_list_free(struct bridge_question *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(list[i].server);
		free(list[i].tool);
		free(list[i].arguments);
	}
	free(list);
}

bool bridge_question_pending(struct bridge_questions *questions, int64_t number)
{
	pthread_mutex_lock(&questions->lock);
	const struct entry *entry = questions->first;

	while (entry && entry->call->seq != number)
		entry = entry->next;
	pthread_mutex_unlock(&questions->lock);
	return entry;
}
