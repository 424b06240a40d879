/*
 * client_events.c - events of the jailer become callbacks; waiting and asking. See client.c.
 *
 * Events name their jail by number; an event of a jail that was closed meanwhile is dropped with its descriptors. A
 * jail is freed only by jail_close, which may be called inside its own callbacks: dispatch looks it up again by number
 * and never touches it after one.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "client_internal.h"
#include "lib/base/util.h"

#define DOCUMENT_MAX (4 * 1024 * 1024)

short jail_client_poll_events(const struct jail_client *client)
{
	return (short)(POLLIN | (client->queue.first ? POLLOUT : 0));
}

int client_send(struct jail_client *client, struct json_object *head, const struct wire_parts *parts, struct err *err)
{
	int result = wire_queue_add(&client->queue, head, parts, err);

	if (result == 0)
		wire_queue_flush(&client->queue, client->socket, NULL);
	return result;
}

struct jail *client_find(struct jail_client *client, int64_t number)
{
	struct jail *jail = client->jails;

	while (jail && jail->number != number)
		jail = jail->next;
	return jail;
}

static void event_done(struct jail *jail, const struct wire_event *event)
{
	struct jail_result result = {.exit_code = -1};
	struct err err = ERR_INIT;

	if (jail_result_parse(event->result, &result, &err) < 0) {
		result = (struct jail_result){.verdict = JAIL_XX, .exit_code = -1};
		snprintf(result.message, sizeof(result.message), "The jailer's answer cannot be read: %.200s.",
			 err.text);
	}
	if (jail->runs)
		jail->runs--;
	if (jail->events.done)
		jail->events.done(jail->arg, &result);
	jail_result_clear(&result);
}

/* Descriptors are in the message in the order of the files that carry one. */
static void event_files(struct jail_client *client, int64_t number, const struct wire_event *event,
			struct wire_message *message)
{
	const struct wire_change *files = event->files.items;
	size_t next_fd = 0;

	for (size_t i = 0; i < event->files.count; i++) {
		struct jail *jail = client_find(client, number); /* a callback may have closed it */
		struct jail_change change = {
			.name = message->strings[i],
			.mode = (uint32_t)files[i].mode,
			.mtime_us = files[i].mtime_us,
			.size = files[i].size,
			.fd = -1,
			.reason = files[i].reason,
		};

		while (!streq(wire_change_kinds[change.kind], files[i].kind))
			change.kind++;
		if (!jail || !jail->events.file)
			return;
		if (change.kind <= JAIL_FILE_CHANGED && next_fd < message->n_fds)
			change.fd = wire_take_fd(message, next_fd++);
		jail->events.file(jail->arg, &change);
	}
}

static void fail_jail(struct jail *jail, const struct err *why)
{
	jail->failed = true;
	jail->runs = jail->collects = 0;
	if (jail->events.failed)
		jail->events.failed(jail->arg, why);
}

static void event_failed(struct jail *jail, const struct wire_event *event)
{
	struct err why = ERR_INIT;

	err_set(&why, wire_err_code(event->code), "%s", event->text ? event->text : "the jailer does not say why");
	if (event->member)
		snprintf(why.member, sizeof(why.member), "%s", event->member);
	fail_jail(jail, &why);
}

static const char *const state_texts[] = {
#define STATE_TEXT(constant, name) [JAIL_STATE_##constant] = (name),
	JAIL_STATES_EACH(STATE_TEXT)
#undef STATE_TEXT
};

const char *jail_state_text(enum jail_state state)
{
	return state_texts[state];
}

static int take_document(struct jail_client *client, struct wire_message *message, struct err *err)
{
	auto_json struct json_object *document = NULL;
	auto_free char *text = NULL;
	struct err why = ERR_INIT;
	size_t length;
	int result;

	if (message->n_fds != 1 || lseek(message->fds[0], 0, SEEK_SET) < 0)
		result = err_set(&why, ERR_INTERNAL, "the jailer sent a document without its text");
	else if ((result = read_fd(message->fds[0], DOCUMENT_MAX, &text, &length, &why)) < 0)
		err_wrap(&why, "reading the jailer's answer");
	else
		result = json_parse(text, length, &document, &why);
	if (client->known && json_object_is_type(document, json_type_array)) {
		void (*known)(void *arg, struct json_object *runners) = client->known;

		client->known = NULL;
		known(client->known_arg, steal(&document));
		return 0;
	}
	if (client->pinged_us) {
		/* A sign of life that cannot be read is one all the same. */
		struct json_object *states = document ? json_get(document, "states", json_type_object) : NULL;

		client->pinged_us = 0;
		for (int state = 0; states && state < JAIL_STATES; state++)
			client->census.count[state] =
				json_object_get_int64(json_get(states, state_texts[state], json_type_int));
		return 0;
	}
	if (!client->document_wanted)
		return err_set(err, ERR_INTERNAL, "the jailer sent an unrequested document");
	client->document_wanted = false;
	client->document = steal(&document);
	if (result < 0 && err)
		*err = why;
	return result;
}

static int handle(struct jail_client *client, struct wire_message *message, struct err *err)
{
	struct wire_event event;

	if (wire_event_parse(message, &event, err) < 0)
		return err_wrap(err, "the jailer's answer");
	struct jail *jail = client_find(client, event.jail);
	int result = 0;

	if (streq(event.event, "document"))
		result = take_document(client, message, err);
	else if (streq(event.event, "error"))
		result = err_set(err, wire_err_code(event.code), "the jailer refuses the connection: %s",
				 event.text ? event.text : "");
	else if (!jail || jail->failed)
		; /* closed meanwhile */
	else if (streq(event.event, "output") && jail->events.output)
		jail->events.output(jail->arg, event.stdout_bytes, event.stderr_bytes);
	else if (streq(event.event, "done"))
		event_done(jail, &event);
	else if (streq(event.event, "files"))
		event_files(client, event.jail, &event, message);
	else if (streq(event.event, "collected")) {
		if (jail->collects)
			jail->collects--;
		if (jail->events.collected)
			jail->events.collected(jail->arg);
	} else if (streq(event.event, "failed")) {
		event_failed(jail, &event);
	}
	wire_event_clear(&event);
	return result;
}

/* The connection is of no use any more: every jail hears of it once, as header jail.h promises. */
static void lose(struct jail_client *client, const struct err *why, bool ended)
{
	client->lost = true;
	for (struct jail *jail = client->jails; jail;) {
		if (jail->failed) {
			jail = jail->next;
			continue;
		}
		if (jail->runs && jail->events.done) {
			struct jail_result result = {.verdict = JAIL_XX, .exit_code = -1};

			if (ended)
				snprintf(result.message, sizeof(result.message),
					 "The jailer ended while the program was running.");
			else
				snprintf(result.message, sizeof(result.message),
					 "The connection to the jailer failed while the program was running: %.150s.",
					 why->text);
			jail->failed = true;
			jail->runs = jail->collects = 0;
			jail->events.done(jail->arg, &result);
		} else {
			fail_jail(jail, why);
		}
		jail = client->jails; /* the callback may have closed any of them */
	}
}

void jail_client_hold(struct jail_client *client)
{
	client->held = true;
}

void jail_client_guard(struct jail_client *client, int fd)
{
	client->guard_fd = fd;
}

int jail_client_guard_fd(const struct jail_client *client)
{
	return client->guard_fd;
}

bool jail_client_left(const struct jail_client *client)
{
	struct pollfd poller = {.fd = client->guard_fd, .events = POLLRDHUP};

	return client->guard_fd >= 0 && poll(&poller, 1, 0) == 1;
}

/* Everything that is there, or up to an event that is held. */
static int receive(struct jail_client *client, struct err *err)
{
	int result = 0;

	client->held = false;
	while (result == 0 && !client->held) {
		auto_message struct wire_message message = {.bytes = NULL};

		result = wire_receive(client->socket, &message, err);
		if (result == 0)
			result = handle(client, &message, err);
		else if (result == -ERR_BUSY)
			return 0;
	}
	return result;
}

int jail_client_dispatch(struct jail_client *client, struct err *err)
{
	struct err why = ERR_INIT;
	int result = client->lost ? err_set(&why, ERR_UNAVAILABLE, "the connection to the jailer is lost") : 0;

	if (result == 0 && jail_client_left(client))
		result = err_set(&why, ERR_DENIED, "nobody waits for it any more");
	if (result == 0) {
		result = wire_queue_flush(&client->queue, client->socket, &why);
		result = result == -ERR_BUSY ? 0 : result;
	}
	/* Read also when sending failed: the last answers may still be there. */
	const int got = client->lost ? 0 : receive(client, &why);

	result = got < 0 ? got : result;
	if (result == 0)
		return 0;
	if (result == -ERR_UNAVAILABLE && client->private)
		err_set(&why, ERR_UNAVAILABLE, "the private jailer has ended: it says why on standard error");
	if (why.code != ERR_DENIED)
		why.code = ERR_UNAVAILABLE;
	lose(client, &why, result == -ERR_UNAVAILABLE);
	if (err)
		*err = why;
	return -(int)why.code;
}

static int wait_event(struct jail_client *client, int timeout_ms, struct err *err)
{
	struct pollfd pollers[] = {{.fd = client->socket, .events = jail_client_poll_events(client)},
				   {.fd = client->guard_fd, .events = POLLRDHUP}};

	if (poll(pollers, ARRAY_SIZE(pollers), timeout_ms) < 0 && errno != EINTR)
		return err_errno(err, "waiting for the jailer");
	return jail_client_dispatch(client, err);
}

/* A jailer that hangs takes connections, too: the kernel does that for it. */
static int ask(struct jail_client *client, enum wire_verb verb, bool known, int seconds, struct json_object **ret,
	       struct err *err)
{
	struct json_object *head = wire_head_verb(verb, -1);
	int64_t until_us = clock_monotonic_us() + seconds * 1000000LL, left_us;

	if (known)
		json_add_bool(head, "known", true);
	client->document_wanted = true;
	int result = client_send(client, head, NULL, err);
	while (result == 0 && client->document_wanted && (left_us = until_us - clock_monotonic_us()) > 0)
		result = wait_event(client, (int)(left_us / 1000) + 1, err);
	if (result == 0 && client->document_wanted) {
		jail_client_kill(client);
		result = err_set(err, ERR_UNAVAILABLE,
				 "the jailer does not answer (%s) within %d s: look at its log, or restart it",
				 wire_verb_text(verb), seconds);
	}
	if (result == 0)
		*ret = steal(&client->document);
	return result;
}

int jail_client_info(struct jail_client *client, struct json_object **ret, struct err *err)
{
	return ask(client, WIRE_INFO, false, JAIL_ANSWER_SECONDS, ret, err);
}

int jail_client_runners(struct jail_client *client, struct json_object **ret, struct err *err)
{
	return ask(client, WIRE_RUNNERS, false, JAIL_RUNNERS_SECONDS, ret, err);
}

int jail_client_runners_known(struct jail_client *client, struct json_object **ret, struct err *err)
{
	return ask(client, WIRE_RUNNERS, true, JAIL_ANSWER_SECONDS, ret, err);
}

int jail_client_runners_follow(struct jail_client *client, void (*known)(void *arg, struct json_object *runners),
			       void *arg, struct err *err)
{
	client->known = known;
	client->known_arg = arg;
	return client_send(client, wire_head_verb(WIRE_RUNNERS, -1), NULL, err);
}

int jail_client_wait(struct jail_client *client, struct jail *jail, struct err *err)
{
	int64_t number = jail->number;
	int result = 0;

	while (result == 0 && (jail = client_find(client, number)) && (jail->runs || jail->collects))
		result = wait_event(client, -1, err);
	return result;
}

int jail_client_ping(struct jail_client *client, struct err *err)
{
	if (client->pinged_us || client->lost)
		return 0;
	client->pinged_us = clock_monotonic_us();
	return client_send(client, wire_head_verb(WIRE_INFO, -1), NULL, err);
}

const struct jail_census *jail_client_census(const struct jail_client *client)
{
	return &client->census;
}

int64_t jail_client_pinged_us(const struct jail_client *client)
{
	return client->pinged_us;
}

void jail_client_kill(struct jail_client *client)
{
	if (client->jailer > 0)
		kill(client->jailer, SIGKILL);
}
