/*
 * server.c - see server.h.
 *
 * One verb, one function, found by name in a table. Answers go through the client's queue. The files of a collection are opened and sent
 * batch by batch as the client reads them, so that thousands of files never mean thousands of open descriptors.
 *
 * A client is freed only by server_tick, between events: a callback that finds the connection broken just marks it.
 */
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../lib/log.h"
#include "../lib/util.h"
#include "../lib/version.h"
#include "limits.h"
#include "wire.h"

struct server_jail {
	struct server_jail *next;
	struct server_client *client;
	int64_t number;
	struct cell *cell;
	const struct data_change *changes; /* a collection that is being sent */
	size_t n_changes, next_change;
	bool collecting;
};

struct server_client {
	struct server_client *next;
	struct server *server;
	struct loop_watch watch;
	struct wire_queue queue;
	struct server_jail *jails;
	bool wants_runners;
	bool gone;
};

static void send_head(struct server_client *client, struct json_object *head)
{
	wire_queue_add(&client->queue, head, NULL, 0, NULL, 0, NULL);
}

static void jail_remove(struct server_jail *jail)
{
	struct server_jail **link = &jail->client->jails;

	while (*link != jail)
		link = &(*link)->next;
	*link = jail->next;
	if (jail->cell)
		cell_destroy(jail->cell);
	free(jail);
}

static void send_failed(struct server_client *client, int64_t number, const struct err *why)
{
	struct json_object *head = wire_head_jail("event", "failed", number);

	json_add_string(head, "code", err_info(why->code)->name);
	json_add_string(head, "text", why->text);
	if (why->member[0])
		json_add_string(head, "member", why->member);
	send_head(client, head);
}

/* --- what cells tell -------------------------------------------------------------------------------------------------------------- */
static void on_output(void *arg, int64_t stdout_bytes, int64_t stderr_bytes)
{
	struct server_jail *jail = arg;

	if (jail->client->queue.count > 0)
		return; /* a slow reader gets the next one */
	struct json_object *head = wire_head_jail("event", "output", jail->number);
	json_add_int(head, "stdout_bytes", stdout_bytes);
	json_add_int(head, "stderr_bytes", stderr_bytes);
	send_head(jail->client, head);
}

static void on_done(void *arg, const struct jail_result *result)
{
	struct server_jail *jail = arg;
	struct json_object *head = wire_head_jail("event", "done", jail->number);

	json_add(head, "result", jail_result_print(result));
	send_head(jail->client, head);
}

static void on_failed(void *arg, const struct err *why)
{
	struct server_jail *jail = arg;

	send_failed(jail->client, jail->number, why);
	jail_remove(jail);
}

static void on_collect(void *arg, const struct data_change *changes, size_t count)
{
	struct server_jail *jail = arg;

	jail->changes = changes;
	jail->n_changes = count;
	jail->next_change = 0;
	jail->collecting = true;
}

static const struct cell_events events = {.output = on_output, .done = on_done, .failed = on_failed, .collect = on_collect};

static struct json_object *print_change(const struct data_change *change, enum jail_change_kind kind, const char *reason)
{
	struct json_object *object = json_object_new_object();

	json_add_string(object, "kind", wire_change_kinds[kind]);
	json_add_int(object, "mode", change->entry->mode & 0777);
	json_add_int(object, "mtime_us", change->entry->mtime_us);
	json_add_int(object, "size", change->entry->size);
	if (reason)
		json_add_string(object, "reason", reason);
	return object;
}

/* The next batch of a collection, or its end. */
static void send_batch(struct server_jail *jail)
{
	struct json_object *head = wire_head_jail("event", "files", jail->number), *list = json_object_new_array();
	const char *names[JAIL_BATCH_FILES];
	int fds[JAIL_BATCH_FILES];
	size_t n = 0, n_fds = 0, bytes = 0;

	json_add(head, "files", list);
	for (; n < JAIL_BATCH_FILES && jail->next_change < jail->n_changes; jail->next_change++) {
		const struct data_change *change = &jail->changes[jail->next_change];
		enum jail_change_kind kind = change->kind;
		const char *reason = change->entry->unkept;

		bytes += strlen(change->entry->name) + 1;
		if (bytes > WIRE_NAMES_MAX)
			break;
		if (kind <= JAIL_FILE_CHANGED) {
			fds[n_fds] = data_open(cell_data(jail->cell), change->entry);
			if (fds[n_fds] < 0) {
				kind = JAIL_FILE_NOT_KEPT;
				reason = "cannot be opened";
			} else {
				n_fds++;
			}
		}
		json_object_array_add(list, print_change(change, kind, reason));
		names[n++] = change->entry->name;
	}
	if (n) {
		wire_queue_add(&jail->client->queue, head, names, n, fds, n_fds, NULL);
		return;
	}
	json_object_put(head);
	jail->collecting = false;
	send_head(jail->client, wire_head_jail("event", "collected", jail->number));
	cell_collected(jail->cell);
}

/* --- verbs ------------------------------------------------------------------------------------------------------------------------- */
static struct server_jail *find(struct server_client *client, int64_t number)
{
	struct server_jail *jail = client->jails;

	while (jail && jail->number != number)
		jail = jail->next;
	return jail;
}

static int do_open(struct server_client *client, struct server_jail *jail, const struct wire_request *request, struct wire_message *message,
		   struct err *err)
{
	struct server *server = client->server;
	struct runner *runner = runners_find(server->runners, request->runner);
	struct jail_limits limits;

	(void)message;
	if (jail)
		return err_set(err, ERR_CONFLICT, "there is a jail of that number already");
	if (!runner)
		return err_member(err, "runner", "there is no runner %s", request->runner);
	if (!runner->interpreter)
		return err_set(err, ERR_UNAVAILABLE, "%s is not available on this server: %s", runner->name, runner->install);
	if (request->network)
		return err_set(err, ERR_UNAVAILABLE, "there is no network here: run without it");
	int result = limits_resolve(&server->config->limits, &request->limits, &limits, err);
	if (result)
		return result;
	jail = xcalloc(1, sizeof(*jail));
	*jail = (struct server_jail){.next = client->jails, .client = client, .number = request->jail};
	client->jails = jail;
	result = cell_open(server->cells, runner, &limits, request->label, &events, jail, &jail->cell, err);
	if (result)
		jail_remove(jail);
	return result;
}

/* Segments that are not empty, "." or "..": the kernel would refuse the rest as well, but not in words. */
static int check_name(const char *name, struct err *err)
{
	for (const char *p = name;; p++) {
		size_t n = strcspn(p, "/");

		if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return err_set(err, ERR_INVALID, "a file's name must be a relative path without empty, \".\" and \"..\" parts");
		p += n;
		if (*p == '\0')
			return p - name > JAIL_NAME_MAX ? err_set(err, ERR_INVALID, "a file's name is longer than %d bytes", JAIL_NAME_MAX) : 0;
	}
}

static int do_fill(struct server_client *client, struct server_jail *jail, const struct wire_request *request, struct wire_message *message,
		   struct err *err)
{
	(void)client;
	for (size_t i = 0; i < request->files.count; i++) {
		struct stat st;
		int result = check_name(message->strings[i], err);

		if (result)
			return result;
		if (fstat(message->fds[i], &st) || !S_ISREG(st.st_mode))
			return err_set(err, ERR_INVALID, "the content of a file must be a regular file");
	}
	return cell_fill(jail->cell, message, &request->files, err);
}

static bool is_null_device(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

/* What may stand behind a program's descriptors. Input goes to the guest itself: neither a terminal nor a socket, and a file only as
 * a copy. Output is written by us: nothing that can block. */
static int check_stream(int fd, bool input, struct err *err)
{
	struct stat st;

	if (fd < 0)
		return 0;
	if (fstat(fd, &st))
		return err_errno(err, "looking at a descriptor");
	if (S_ISREG(st.st_mode) || is_null_device(&st) || (input && S_ISFIFO(st.st_mode)))
		return 0;
	if (input)
		return err_set(err, ERR_INVALID, "standard input must be a file or a pipe, not a terminal or socket");
	return err_set(err, ERR_INVALID, "standard output and error must be files, not pipes, terminals or sockets");
}

static int do_run(struct server_client *client, struct server_jail *jail, const struct wire_request *request, struct wire_message *message,
		  struct err *err)
{
	struct cell_program program = {
		.args = message->strings,
		.n_args = (size_t)request->args,
		.env = message->strings + request->args,
		.n_env = (size_t)request->env,
	};
	size_t next = 0;

	(void)client;
	for (size_t i = 0; i < program.n_env; i++)
		if (!strchr(program.env[i], '=') || program.env[i][0] == '=')
			return err_set(err, ERR_INVALID, "an environment variable must be NAME=value");
	struct stat st;
	if (fstat(message->fds[0], &st) || !S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "the source must be a regular file");
	program.code_fd = wire_take_fd(message, next++);
	program.stdin_fd = request->stdin_given ? wire_take_fd(message, next++) : -1;
	program.stdout_fd = request->stdout_given ? wire_take_fd(message, next++) : -1;
	program.stderr_fd = request->stderr_given ? wire_take_fd(message, next++) : -1;
	int result = check_stream(program.stdin_fd, true, err);
	if (!result)
		result = check_stream(program.stdout_fd, false, err);
	if (!result)
		result = check_stream(program.stderr_fd, false, err);
	if (!result)
		return cell_run(jail->cell, &program, err);
	const int given[] = {program.code_fd, program.stdin_fd, program.stdout_fd, program.stderr_fd};
	for (size_t i = 0; i < ARRAY_SIZE(given); i++)
		if (given[i] >= 0)
			close(given[i]);
	return result;
}

static int do_collect(struct server_client *client, struct server_jail *jail, const struct wire_request *request, struct wire_message *message,
		      struct err *err)
{
	(void)client;
	(void)request;
	(void)message;
	return cell_collect(jail->cell, err);
}

static int do_cancel(struct server_client *client, struct server_jail *jail, const struct wire_request *request, struct wire_message *message,
		     struct err *err)
{
	(void)client;
	(void)request;
	(void)message;
	(void)err;
	cell_cancel(jail->cell);
	return 0;
}

static int do_close(struct server_client *client, struct server_jail *jail, const struct wire_request *request, struct wire_message *message,
		    struct err *err)
{
	(void)client;
	(void)request;
	(void)message;
	(void)err;
	jail_remove(jail);
	return 0;
}

static int send_document(struct server_client *client, struct json_object *document, struct err *err)
{
	auto_json struct json_object *owned = document;
	auto_buf struct buf text;

	buf_init(&text, 4 << 20);
	json_print(&text, owned);
	int fd = memfd_with("document", text.data, text.length);
	if (fd < 0)
		return err_errno(err, "making a document");
	return wire_queue_add(&client->queue, wire_head("event", "document"), NULL, 0, &fd, 1, err);
}

static int do_info(struct server_client *client, struct server_jail *jail, const struct wire_request *request, struct wire_message *message,
		   struct err *err)
{
	struct server *server = client->server;
	struct json_object *info = json_object_new_object();
	struct utsname kernel;

	(void)jail;
	(void)request;
	(void)message;
	uname(&kernel);
	json_add_string(info, "mode", identity_mode_text(server->identity->mode));
	json_add_string(info, "cgroup", cgroup_kind(server->cells->cgroup));
	json_add_bool(info, "weaker_limits", streq(cgroup_kind(server->cells->cgroup), "none"));
	json_add_string(info, "kernel", kernel.release);
	json_add_string(info, "architecture", kernel.machine);
	json_add_string(info, "version", SALLYPORT_VERSION);
	json_add_int(info, "pid", getpid());
	json_add_int(info, "instance", server->identity->instance);
	json_add_bool(info, "network", false);
	json_add_int(info, "jails", server->config->jailer.jails);
	json_add_int(info, "jails_open", (int64_t)server->cells->count);
	json_add(info, "limits", limits_print(&server->config->limits));
	return send_document(client, info, err);
}

/* Answered by tick_client, when the versions are known. */
static int do_runners(struct server_client *client, struct server_jail *jail, const struct wire_request *request, struct wire_message *message,
		      struct err *err)
{
	(void)jail;
	(void)request;
	(void)message;
	(void)err;
	client->wants_runners = true;
	return 0;
}

static const struct {
	const char *verb;
	int (*run)(struct server_client *client, struct server_jail *jail, const struct wire_request *request, struct wire_message *message,
		   struct err *err);
	bool needs_jail;
} verbs[] = {
	{"open", do_open, false},      {"fill", do_fill, true},   {"run", do_run, true},   {"cancel", do_cancel, true},
	{"collect", do_collect, true}, {"close", do_close, true}, {"info", do_info, false}, {"runners", do_runners, false},
};

static int dispatch(struct server_client *client, struct wire_message *message, struct err *err)
{
	struct wire_request request;
	struct err refusal = ERR_INIT;
	int result = wire_request_parse(message, &request, err);

	if (result)
		return result; /* the two sides do not speak the same language: the connection ends */
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (!streq(verbs[i].verb, request.verb))
			continue;
		struct server_jail *jail = request.jail >= 0 ? find(client, request.jail) : NULL;

		/* A jail that failed meanwhile is unknown here; its client knows why. */
		if (!jail && verbs[i].needs_jail)
			continue;
		result = verbs[i].run(client, jail, &request, message, &refusal);
		jail = request.jail >= 0 ? find(client, request.jail) : NULL;
		if (result && request.jail >= 0) {
			send_failed(client, request.jail, &refusal);
			if (jail && refusal.code != ERR_CONFLICT)
				jail_remove(jail);
		}
	}
	wire_request_clear(&request);
	return 0;
}

/* --- connections ---------------------------------------------------------------------------------------------------------------------- */
static bool blocked(const struct server_client *client)
{
	size_t held = 0;

	for (struct server_jail *jail = client->jails; jail; jail = jail->next)
		held += cell_held_fds(jail->cell);
	return client->queue.count >= SERVER_QUEUE_MAX || held >= SERVER_HELD_FDS;
}

static void refuse_connection(struct server_client *client, const struct err *why)
{
	struct json_object *head = wire_head("event", "error");

	json_add_string(head, "code", err_info(why->code)->name);
	json_add_string(head, "text", why->text);
	send_head(client, head);
	wire_queue_flush(&client->queue, client->watch.fd, NULL);
	log_event(LOG_WARN, "client refused", "why", why->text, NULL);
	client->gone = true;
}

static void client_ready(struct loop_watch *watch, uint32_t events_seen)
{
	struct server_client *client = loop_owner(watch, struct server_client, watch);
	struct err err = ERR_INIT;

	(void)events_seen;
	while (!client->gone && !blocked(client)) {
		auto_message struct wire_message message = {.bytes = NULL};
		int result = wire_receive(watch->fd, &message, &err);

		if (result == -ERR_BUSY)
			break;
		if (result == -ERR_UNAVAILABLE)
			client->gone = true;
		else if (result || dispatch(client, &message, &err))
			refuse_connection(client, &err);
	}
	if (events_seen & (EPOLLHUP | EPOLLERR))
		client->gone = true;
}

void server_add(struct server *server, int fd)
{
	struct server_client *client = xcalloc(1, sizeof(*client));

	client->server = server;
	client->watch = LOOP_WATCH_INIT;
	wire_queue_init(&client->queue);
	if (server->n_clients == SERVER_CLIENTS_MAX || fcntl(fd, F_SETFL, O_NONBLOCK) ||
	    loop_add(server->cells->loop, &client->watch, fd, EPOLLIN, client_ready)) {
		log_event(LOG_WARN, "connection refused", "why", "too many connections", NULL);
		close(fd);
		free(client);
		return;
	}
	client->next = server->clients;
	server->clients = client;
	server->n_clients++;
}

static void drop(struct server *server, struct server_client **link)
{
	struct server_client *client = *link;
	int fd = client->watch.fd;

	*link = client->next;
	server->n_clients--;
	while (client->jails)
		jail_remove(client->jails);
	loop_remove(server->cells->loop, &client->watch);
	close(fd);
	wire_queue_clear(&client->queue);
	free(client);
	server->gone = server->private;
}

static void tick_client(struct server_client *client)
{
	const struct probe *probe = client->server->probe;
	struct err err = ERR_INIT;

	if (client->wants_runners && (!probe || probe->done)) {
		client->wants_runners = false;
		send_document(client, runners_print(client->server->runners), &err);
	}
	int result = wire_queue_flush(&client->queue, client->watch.fd, &err);

	/* The next batch of files only when the last one went: that bounds the open descriptors. */
	for (struct server_jail *jail = client->jails, *next; jail && !result; jail = next) {
		next = jail->next;
		while (!result && jail->collecting) {
			send_batch(jail);
			result = wire_queue_flush(&client->queue, client->watch.fd, &err);
		}
	}
	if (!result)
		result = wire_queue_flush(&client->queue, client->watch.fd, &err);
	if (result == -ERR_UNAVAILABLE)
		client->gone = true;
	uint32_t wanted = (blocked(client) ? 0 : EPOLLIN) | (client->queue.first ? EPOLLOUT : 0);
	loop_change(client->server->cells->loop, &client->watch, wanted);
}

void server_tick(struct server *server)
{
	for (struct server_client **link = &server->clients; *link;) {
		if (!(*link)->gone)
			tick_client(*link);
		if ((*link)->gone)
			drop(server, link);
		else
			link = &(*link)->next;
	}
}

void server_clear(struct server *server)
{
	while (server->clients)
		drop(server, &server->clients);
}
