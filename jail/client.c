/*
 * client.c - the client's side of the jailer: verbs become packets, events become callbacks.
 *
 * Everything is one list of jails and one queue of packets. A verb is queued and sent at once as far as the socket takes it; what
 * does not fit waits for the caller's poll loop (jail_client_poll_events asks for POLLOUT then). Events name their jail by number; an
 * event of a jail that was closed meanwhile is dropped with its descriptors.
 *
 * A jail is freed only by jail_close, which may be called inside its own callbacks: dispatch looks it up again by number and never
 * touches it after a callback.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/util.h"
#include "jail.h"
#include "wire.h"

#define JAILER_FD 3 /* where a private jailer finds its client */
#define DOCUMENT_MAX (4 * 1024 * 1024)

extern char **environ;

struct jail {
	struct jail *next;
	struct jail_client *client;
	int64_t number;
	struct jail_events events;
	void *arg;
	size_t runs, collects; /* asked for and not answered yet */
	bool failed;
};

struct jail_client {
	int socket;
	pid_t jailer; /* private one, or 0 */
	struct wire_queue queue;
	struct jail *jails;
	int64_t next_number;
	bool lost;
	bool held; /* dispatch reads no further message */
	struct json_object *document; /* answer to info or runners */
	bool document_wanted;
};

static struct jail_client *client_new(int socket, pid_t jailer)
{
	struct jail_client *client = xcalloc(1, sizeof(*client));

	client->socket = socket;
	client->jailer = jailer;
	wire_queue_init(&client->queue);
	return client;
}

int jail_client_connect(const char *socket_path, struct jail_client **ret, struct err *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(socket_path) >= sizeof(address.sun_path))
		return err_set(err, ERR_INVALID, "the path of the jailer's socket is longer than %zu bytes: %s", sizeof(address.sun_path) - 1,
			       socket_path);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
	auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_errno(err, "making a socket for the jailer");
	if (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		int code = errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN ? ERR_UNAVAILABLE : ERR_SYSTEM;

		return err_set(err, code, "no jailer answers at %s (%s): start sallyport-jailer, or leave jailer.socket empty", socket_path,
			       strerror(errno));
	}
	*ret = client_new(steal_fd(&fd), 0);
	return 0;
}

int jail_client_spawn(const char *jailer_program, const char *config_path, struct jail_client **ret, struct err *err)
{
	int pair[2];
	char fd_text[16];

	snprintf(fd_text, sizeof(fd_text), "%d", JAILER_FD);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return err_errno(err, "making a socket for the jailer");
	auto_close int ours = pair[0];
	auto_close int theirs = pair[1];
	const char *argv[] = {jailer_program, "--fd", fd_text, config_path ? "--config" : NULL, config_path, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, theirs, JAILER_FD);
	/* A process group of its own: Ctrl-C on our terminal is ours to turn into jail_cancel. */
	posix_spawnattr_t attributes;
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
	pid_t pid;
	/* posix_spawn's argv is not const for historical reasons; it does not write. */
	char **argv_plain;
	__builtin_memcpy(&argv_plain, &(const char *const *){argv}, sizeof(argv_plain));
	int result = posix_spawn(&pid, jailer_program, &actions, &attributes, argv_plain, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	if (result) {
		errno = result;
		return err_errno(err, "starting the jailer %s", jailer_program);
	}
	if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
		return err_errno(err, "preparing the jailer's socket");
	*ret = client_new(steal_fd(&ours), pid);
	return 0;
}

void jail_client_free(struct jail_client *client)
{
	if (!client)
		return;
	while (client->jails) {
		struct jail *jail = client->jails;

		client->jails = jail->next;
		free(jail);
	}
	wire_queue_clear(&client->queue);
	close(client->socket);
	/* A private jailer ends when its connection does. */
	while (client->jailer > 0 && waitpid(client->jailer, NULL, 0) < 0 && errno == EINTR)
		;
	json_put_pointer(&client->document);
	free(client);
}

int jail_client_fd(const struct jail_client *client)
{
	return client->socket;
}

short jail_client_poll_events(const struct jail_client *client)
{
	return (short)(POLLIN | (client->queue.first ? POLLOUT : 0));
}

/* Queues and sends what the socket takes. A connection that is gone is seen by the next dispatch, which tells every jail. */
static int client_send(struct jail_client *client, struct json_object *head, const char *const *strings, size_t n_strings, const int *fds,
		       size_t n_fds, struct err *err)
{
	int result = wire_queue_add(&client->queue, head, strings, n_strings, fds, n_fds, err);

	if (!result)
		wire_queue_flush(&client->queue, client->socket, NULL);
	return result;
}

static struct jail *find_jail(struct jail_client *client, int64_t number)
{
	struct jail *jail = client->jails;

	while (jail && jail->number != number)
		jail = jail->next;
	return jail;
}

int jail_open(struct jail_client *client, const struct jail_spec *spec, const struct jail_events *events, void *arg, struct jail **ret,
	      struct err *err)
{
	if (client->lost)
		return err_set(err, ERR_UNAVAILABLE, "the connection to the jailer is lost");
	struct jail *jail = xcalloc(1, sizeof(*jail));

	*jail = (struct jail){.next = client->jails, .client = client, .number = client->next_number, .events = *events, .arg = arg};
	client->next_number = client->next_number == INT32_MAX ? 0 : client->next_number + 1;
	struct json_object *head = wire_head_jail("verb", "open", jail->number);
	json_add_string(head, "runner", spec->runner);
	if (spec->label)
		json_add_string(head, "label", spec->label);
	json_add_bool(head, "network", spec->network);
	json_add(head, "limits", bind_print(wire_limits_table, &spec->limits));
	int result = client_send(client, head, NULL, 0, NULL, 0, err);
	if (result) {
		free(jail);
		return result;
	}
	client->jails = jail;
	*ret = jail;
	return 0;
}

static int dup_fd(int fd, int *ret, struct err *err)
{
	*ret = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return *ret < 0 ? err_errno(err, "duplicating a descriptor for the jailer") : 0;
}

static int fill_batch(struct jail *jail, const struct jail_file *files, size_t count, struct err *err)
{
	struct json_object *head = wire_head_jail("verb", "fill", jail->number), *list = json_object_new_array();
	const char *names[JAIL_BATCH_FILES];
	int fds[JAIL_BATCH_FILES];

	json_add(head, "files", list);
	for (size_t i = 0; i < count; i++) {
		struct json_object *file = json_object_new_object();

		json_add_int(file, "mode", files[i].mode);
		json_add_int(file, "mtime_us", files[i].mtime_us);
		json_object_array_add(list, file);
		names[i] = files[i].name;
		if (dup_fd(files[i].fd, &fds[i], err)) {
			while (i > 0)
				close(fds[--i]);
			json_object_put(head);
			return -ERR_SYSTEM;
		}
	}
	return client_send(jail->client, head, names, count, fds, count, err);
}

int jail_fill(struct jail *jail, const struct jail_file *files, size_t count, struct err *err)
{
	size_t begin = 0, bytes = 0;

	for (size_t i = 0; i < count; i++)
		if (strlen(files[i].name) > JAIL_NAME_MAX)
			return err_set(err, ERR_INVALID, "the name of a file is longer than %d bytes", JAIL_NAME_MAX);
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(files[i].name) + 1;

		if (i - begin == JAIL_BATCH_FILES || bytes + length > WIRE_NAMES_MAX) {
			int result = fill_batch(jail, files + begin, i - begin, err);

			if (result)
				return result;
			begin = i;
			bytes = 0;
		}
		bytes += length;
	}
	return begin < count ? fill_batch(jail, files + begin, count - begin, err) : 0;
}

static size_t count_strings(const char *const *strings, size_t *bytes)
{
	size_t n = 0;

	for (; strings && strings[n]; n++)
		*bytes += strlen(strings[n]) + 1;
	return n;
}

int jail_run(struct jail *jail, const struct jail_program *program, struct err *err)
{
	size_t bytes = 0, n_args = count_strings(program->args, &bytes), n_env = count_strings(program->env, &bytes);
	const int given[] = {program->code_fd, program->stdin_fd, program->stdout_fd, program->stderr_fd};
	int fds[ARRAY_SIZE(given)];
	size_t n_fds = 0;

	if (bytes > JAIL_ARGUMENTS_MAX)
		return err_set(err, ERR_LIMIT, "arguments and environment are longer than %d bytes together", JAIL_ARGUMENTS_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(given); i++)
		if (given[i] >= 0 && dup_fd(given[i], &fds[n_fds++], err)) {
			while (--n_fds > 0)
				close(fds[n_fds - 1]);
			return -ERR_SYSTEM;
		}
	struct json_object *head = wire_head_jail("verb", "run", jail->number);
	json_add_int(head, "args", (int64_t)n_args);
	json_add_int(head, "env", (int64_t)n_env);
	json_add_bool(head, "stdin", program->stdin_fd >= 0);
	json_add_bool(head, "stdout", program->stdout_fd >= 0);
	json_add_bool(head, "stderr", program->stderr_fd >= 0);
	auto_free const char **strings = xcalloc(n_args + n_env + 1, sizeof(*strings));
	for (size_t i = 0; i < n_args; i++)
		strings[i] = program->args[i];
	for (size_t i = 0; i < n_env; i++)
		strings[n_args + i] = program->env[i];
	int result = client_send(jail->client, head, strings, n_args + n_env, fds, n_fds, err);
	if (!result)
		jail->runs++;
	return result;
}

void jail_cancel(struct jail *jail)
{
	client_send(jail->client, wire_head_jail("verb", "cancel", jail->number), NULL, 0, NULL, 0, NULL);
}

int jail_collect(struct jail *jail, struct err *err)
{
	int result = client_send(jail->client, wire_head_jail("verb", "collect", jail->number), NULL, 0, NULL, 0, err);

	if (!result)
		jail->collects++;
	return result;
}

void jail_close(struct jail *jail)
{
	if (!jail)
		return;
	struct jail **link = &jail->client->jails;
	while (*link != jail)
		link = &(*link)->next;
	*link = jail->next;
	client_send(jail->client, wire_head_jail("verb", "close", jail->number), NULL, 0, NULL, 0, NULL);
	free(jail);
}

/* --- events --------------------------------------------------------------------------------------------------------------------- */
static void event_done(struct jail *jail, const struct wire_event *event)
{
	struct jail_result result = {.exit_code = -1};
	struct err err = ERR_INIT;

	if (jail_result_parse(event->result, &result, &err)) {
		result = (struct jail_result){.verdict = JAIL_XX, .exit_code = -1};
		snprintf(result.message, sizeof(result.message), "The jailer's answer cannot be read: %.200s.", err.text);
	}
	if (jail->runs)
		jail->runs--;
	if (jail->events.done)
		jail->events.done(jail->arg, &result);
	jail_result_clear(&result);
}

/* Descriptors stand in the message in the order of the files that carry one. */
static void event_files(struct jail_client *client, int64_t number, const struct wire_event *event, struct wire_message *message)
{
	const struct wire_change *files = event->files.items;
	size_t next_fd = 0;

	for (size_t i = 0; i < event->files.count; i++) {
		struct jail *jail = find_jail(client, number); /* a callback may have closed it */
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

static int take_document(struct jail_client *client, struct wire_message *message, struct err *err)
{
	auto_free char *text = NULL;
	size_t length;

	if (message->n_fds != 1 || !client->document_wanted)
		return err_set(err, ERR_INTERNAL, "the jailer sent a document that nobody asked for");
	if (lseek(message->fds[0], 0, SEEK_SET) < 0 || read_fd(message->fds[0], DOCUMENT_MAX, &text, &length, err))
		return err_wrap(err, "reading the jailer's answer");
	client->document_wanted = false;
	return json_parse(text, length, &client->document, err);
}

static int handle(struct jail_client *client, struct wire_message *message, struct err *err)
{
	struct wire_event event;

	if (wire_event_parse(message, &event, err))
		return err_wrap(err, "the jailer's answer");
	struct jail *jail = find_jail(client, event.jail);
	int result = 0;

	if (streq(event.event, "document"))
		result = take_document(client, message, err);
	else if (streq(event.event, "error"))
		result = err_set(err, wire_err_code(event.code), "the jailer refuses the connection: %s", event.text ? event.text : "");
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
	} else if (streq(event.event, "failed"))
		event_failed(jail, &event);
	wire_event_clear(&event);
	return result;
}

/* The connection is of no use any more: every jail hears of it once, as header jail.h promises. */
static void lose(struct jail_client *client, const struct err *why)
{
	client->lost = true;
	for (struct jail *jail = client->jails; jail;) {
		if (jail->failed) {
			jail = jail->next;
			continue;
		}
		if (jail->runs && jail->events.done) {
			struct jail_result result = {.verdict = JAIL_XX, .exit_code = -1};

			snprintf(result.message, sizeof(result.message), "The jailer ended while the program was running.");
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

int jail_client_dispatch(struct jail_client *client, struct err *err)
{
	struct err why = ERR_INIT;
	int result = client->lost ? err_set(&why, ERR_UNAVAILABLE, "the connection to the jailer is lost") : 0;

	if (!result) {
		result = wire_queue_flush(&client->queue, client->socket, &why);
		result = result == -ERR_BUSY ? 0 : result;
	}
	/* Read also when sending failed: the last answers may still be there. */
	client->held = false;
	while (!client->held) {
		auto_message struct wire_message message = {.bytes = NULL};
		int got = client->lost ? -ERR_BUSY : wire_receive(client->socket, &message, &why);

		if (!got)
			got = handle(client, &message, &why);
		if (got == -ERR_BUSY)
			break;
		if (got) {
			result = got;
			break;
		}
	}
	if (!result)
		return 0;
	if (why.code != ERR_DENIED)
		why.code = ERR_UNAVAILABLE;
	lose(client, &why);
	if (err)
		*err = why;
	return -(int)why.code;
}

static int wait_event(struct jail_client *client, struct err *err)
{
	struct pollfd poller = {.fd = client->socket, .events = jail_client_poll_events(client)};

	if (poll(&poller, 1, -1) < 0 && errno != EINTR)
		return err_errno(err, "waiting for the jailer");
	return jail_client_dispatch(client, err);
}

static int ask(struct jail_client *client, const char *verb, struct json_object **ret, struct err *err)
{
	if (client->lost)
		return err_set(err, ERR_UNAVAILABLE, "the connection to the jailer is lost");
	client->document_wanted = true;
	int result = client_send(client, wire_head("verb", verb), NULL, 0, NULL, 0, err);
	while (!result && client->document_wanted)
		result = wait_event(client, err);
	if (!result)
		*ret = steal(&client->document);
	return result;
}

int jail_client_info(struct jail_client *client, struct json_object **ret, struct err *err)
{
	return ask(client, "info", ret, err);
}

int jail_client_runners(struct jail_client *client, struct json_object **ret, struct err *err)
{
	return ask(client, "runners", ret, err);
}

int jail_client_wait(struct jail_client *client, struct jail *jail, struct err *err)
{
	int64_t number = jail->number;
	int result = 0;

	while (!result && (jail = find_jail(client, number)) && (jail->runs || jail->collects))
		result = wait_event(client, err);
	return result;
}
