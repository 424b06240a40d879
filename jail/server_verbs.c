/*
 * server_verbs.c - what a client can ask for: one function do_VERB for each verb of wire.h's table; and the events of
 * its jails.
 *
 * Everything that comes over the wire is checked here before a cell sees it: that the runner and the limits are
 * allowed, that names are relative, and that descriptors are of a kind that can neither block the jailer nor give the
 * guest more than their bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/base/version.h"
#include "server_internal.h"

#define SERVICE_US (INT64_C(10) * 365 * 24 * 3600 * 1000000) /* no service lives so long */

void server_send(struct server_client *client, struct json_object *head)
{
	wire_queue_add(&client->queue, head, NULL, NULL);
}

void server_jail_remove(struct server_jail *jail)
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
	server_send(client, head);
}

static void on_output(void *arg, int64_t stdout_bytes, int64_t stderr_bytes)
{
	struct server_jail *jail = arg;

	if (jail->client->queue.count > 0)
		return; /* a slow reader gets the next one */
	struct json_object *head = wire_head_jail("event", "output", jail->number);
	json_add_int(head, "stdout_bytes", stdout_bytes);
	json_add_int(head, "stderr_bytes", stderr_bytes);
	server_send(jail->client, head);
}

static void on_done(void *arg, const struct jail_result *result)
{
	struct server_jail *jail = arg;
	struct json_object *head = wire_head_jail("event", "done", jail->number);

	json_add(head, "result", jail_result_print(result));
	server_send(jail->client, head);
}

static void on_failed(void *arg, const struct err *why)
{
	struct server_jail *jail = arg;

	send_failed(jail->client, jail->number, why);
	server_jail_remove(jail);
}

static void on_collect(void *arg, const struct data_change *changes, size_t count)
{
	struct server_jail *jail = arg;

	jail->changes = changes;
	jail->n_changes = count;
	jail->next_change = 0;
	jail->collecting = true;
}

static const struct cell_callbacks callbacks = {
	.output = on_output, .done = on_done, .failed = on_failed, .collect = on_collect};

/* -------- verbs --------------------------------------------------------------------------------------- */
static struct server_jail *find(struct server_client *client, int64_t number)
{
	struct server_jail *jail = client->jails;

	while (jail && jail->number != number)
		jail = jail->next;
	return jail;
}

/* What a handler has to do. */
struct server_request {
	struct server_client *client;
	struct server_jail *jail; /* NULL: the client has none of that number; open may set it */
	const struct wire_request *request;
	struct wire_message *message;
	struct err err; /* why it was refused, if it was */
};

/* A client chooses among the operator's folders and names none of its own. */
static int check_open(const struct server *server, const struct runner *runner, const struct wire_request *request,
		      struct err *err)
{
	const struct bind_strings *folders = &server->config->upstream.binds;

	if (!runner)
		return err_member(err, "runner", "unknown runner %s", request->runner);
	if (!runner->interpreter)
		return err_set(err, ERR_UNAVAILABLE, "%s is not available on this server: %s", runner->name,
			       runner->install);
	if (request->network && !net_allowed(server->cells->net))
		return err_set(err, ERR_UNAVAILABLE, NET_REFUSED);
	if (request->service != runner->service)
		return err_member(err, "service", "%s: %s", runner->name,
				  runner->service ? "is for services" : "is not for services");
	if (request->binds_given && !request->service)
		return err_member(err, "binds", "is for services");
	for (size_t i = 0; i < request->binds.count; i++)
		if (!bind_strings_has(folders, request->binds.items[i]))
			return err_member(err, "binds", "%s is not a folder of upstream.binds",
					  request->binds.items[i]);
	return 0;
}

static int do_open(struct server_request *asked)
{
	const struct wire_request *request = asked->request;
	struct server *server = asked->client->server;
	struct runner *runner = runners_find(server->runners, request->runner);
	struct err *err = &asked->err;
	struct jail_limits limits;

	if (asked->jail)
		return err_set(err, ERR_CONFLICT, "this jail number is already in use");
	int result = check_open(server, runner, request, err);
	if (result == 0)
		result = limits_resolve(&server->config->limits, &request->limits, &limits, err);
	if (result < 0)
		return result;
	if (runner->service)
		limits.wall_us = limits.cpu_us = SERVICE_US;
	struct server_jail *jail = xcalloc(1, sizeof(*jail));
	*jail = (struct server_jail){.next = asked->client->jails, .client = asked->client, .number = request->jail};
	asked->client->jails = jail;
	struct cell_request wanted = {
		.runner = runner,
		.limits = &limits,
		.network = request->network,
		.hosts = &request->hosts,
		.binds = request->binds_given ? &request->binds : NULL,
		.live = request->live,
		.background = request->background,
		.label = request->label,
		.callbacks = &callbacks,
		.arg = jail,
	};
	/* Whether it is new enough has to be known, too, where every runner is asked. */
	wanted.fingerprint = request->fingerprint || (server->versions->all && runner->version_least);
	if (wanted.fingerprint && !runner->asked)
		runner->awaited = runner->version.count > 0;
	result = cell_open(server->cells, &wanted, &jail->cell, err);
	if (result < 0)
		server_jail_remove(jail);
	return result;
}

/* Segments that are not empty, "." or "..": the kernel would refuse the rest as well, but without a message. */
static int check_name(const char *name, struct err *err)
{
	for (const char *p = name;; p++) {
		size_t n = strcspn(p, "/");

		if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return err_set(err, ERR_INVALID,
				       "a file's name must be a relative path without empty, \".\" and \"..\" parts");
		p += n;
		if (*p == '\0')
			return p - name > JAIL_NAME_MAX
				       ? err_set(err, ERR_INVALID, "a file's name is longer than %d bytes",
						 JAIL_NAME_MAX)
				       : 0;
	}
}

static int do_fill(struct server_request *asked)
{
	const struct bind_objects *files = &asked->request->files;

	for (size_t i = 0; i < files->count; i++) {
		struct stat st;
		int result = check_name(asked->message->strings[i], &asked->err);

		if (result < 0)
			return result;
		if (fstat(asked->message->fds[i], &st) || !S_ISREG(st.st_mode))
			return err_set(&asked->err, ERR_INVALID, "the content of a file must be a regular file");
	}
	return cell_queue_fill(asked->jail->cell, asked->message, asked->request, &asked->err);
}

static int do_remove(struct server_request *asked)
{
	for (size_t i = 0; i < asked->message->n_strings; i++) {
		int result = check_name(asked->message->strings[i], &asked->err);

		if (result < 0)
			return result;
	}
	return cell_queue_remove(asked->jail->cell, asked->message, &asked->err);
}

static bool is_pipe(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* What a program's descriptors may be. Input goes to the guest itself: neither a terminal nor a socket, and a
 * file only as a copy. Output to files is written by us, a pipe goes to the guest: we write to nothing that can block.
 */
static int check_stream(int fd, bool input, struct err *err)
{
	struct stat st;

	if (fd < 0)
		return 0;
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fstat(fd, &st))
		return err_errno(err, "looking at a descriptor");
	/* Else the sandbox would fail later, at the first byte. */
	if (flags & O_PATH || (flags & O_ACCMODE) == (input ? O_WRONLY : O_RDONLY))
		return err_set(err, ERR_INVALID,
			       input ? "standard input must be open for reading"
				     : "standard output and error must be open for writing");
	if (S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode) ||
	    (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))) /* /dev/null */
		return 0;
	if (input)
		return err_set(err, ERR_INVALID, "standard input must be a file or a pipe, not a terminal or socket");
	return err_set(err, ERR_INVALID, "standard output and error must be files or pipes, not terminals or sockets");
}

/* Init binds it: what is bound or connected already would fail there. */
static int check_tools(int fd, struct err *err)
{
	struct sockaddr_un bound;
	int domain = -1, type = -1;
	socklen_t size = sizeof(domain), length = sizeof(bound);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) || domain != AF_UNIX ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) || type != SOCK_STREAM ||
	    getsockname(fd, (struct sockaddr *)&bound, &length) || length != sizeof(bound.sun_family) ||
	    getpeername(fd, (struct sockaddr *)&bound, &length) == 0)
		return err_set(err, ERR_INVALID, "the tools' socket must be a fresh unix stream socket");
	return 0;
}

static int check_program(const struct cell *cell, const struct cell_program *program, struct err *err)
{
	struct stat st;

	for (size_t i = 0; i < program->n_env; i++)
		if (!strchr(program->env[i], '=') || program->env[i][0] == '=')
			return err_set(err, ERR_INVALID, "an environment variable must be NAME=value");
	if (fstat(program->code_fd, &st) || !S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "the source must be a regular file");
	int result = check_stream(program->stdin_fd, true, err);
	if (result == 0)
		result = check_stream(program->stdout_fd, false, err);
	if (result == 0)
		result = check_stream(program->stderr_fd, false, err);
	if (result == 0 && program->tools)
		result = check_tools(program->tools_fd, err);
	if (result < 0)
		return result;
	if (cell_driven(cell) &&
	    (is_pipe(program->stdin_fd) || is_pipe(program->stdout_fd) || is_pipe(program->stderr_fd)))
		return err_set(err, ERR_INVALID,
			       "standard input and output of a live sandbox that keeps its interpreter must be files, "
			       "not pipes");
	return 0;
}

/* Where it starts, and what it may change there. */
static int check_place(const struct cell *cell, const struct cell_program *program, struct err *err)
{
	if (program->read_only && cell_lasts(cell))
		return err_member(err, "read_only", "is not for a live sandbox");
	if (program->cwd && program->cwd[0] != '/')
		return err_member(err, "cwd", "must be an absolute path");
	if (program->cwd && cell_driven(cell))
		return err_member(err, "cwd", "is not for a live sandbox that keeps its interpreter");
	return 0;
}

/* The descriptors of a message come in this order, without those that were not given. */
static int do_run(struct server_request *asked)
{
	const struct wire_request *request = asked->request;
	const struct config_limits *limits = &asked->client->server->config->limits;
	struct wire_message *message = asked->message;
	size_t next = 0;
	struct cell_program program = {
		.args = message->strings,
		.n_args = (size_t)request->args,
		.env = message->strings + request->args,
		.n_env = (size_t)request->env,
		.entry = request->entry,
		.code_fd = wire_take_fd(message, next++),
	};

	program.stdin_fd = request->stdin_given ? wire_take_fd(message, next++) : -1;
	program.stdout_fd = request->stdout_given ? wire_take_fd(message, next++) : -1;
	program.stderr_fd = request->stderr_given ? wire_take_fd(message, next++) : -1;
	program.tools = request->tools;
	program.display = request->display;
	program.read_only = request->read_only;
	program.cwd = request->cwd;
	program.clock_us = request->clock_us;
	program.wall_us = request->wall_us;
	program.tools_fd = request->tools ? wire_take_fd(message, next++) : -1;
	int result = check_program(asked->jail->cell, &program, &asked->err);
	if (result == 0)
		result = check_place(asked->jail->cell, &program, &asked->err);
	if (result == 0 && program.wall_us > limits->wall_seconds_max * LIMIT_SECONDS)
		result = err_member(&asked->err, "time_us", "is more than this server allows, %lld s",
				    (long long)limits->wall_seconds_max);
	if (result == 0)
		return cell_queue_run(asked->jail->cell, &program, &asked->err);
	const int given[] = {program.code_fd, program.stdin_fd, program.stdout_fd, program.stderr_fd, program.tools_fd};
	for (size_t i = 0; i < ARRAY_SIZE(given); i++)
		close_pointer(&given[i]);
	return result;
}

static int do_collect(struct server_request *asked)
{
	return cell_queue_collect(asked->jail->cell, &asked->err);
}

static int do_wait(struct server_request *asked)
{
	cell_wait(asked->jail->cell, asked->request->waits, asked->request->credit_us);
	return 0;
}

static int do_cancel(struct server_request *asked)
{
	cell_cancel(asked->jail->cell);
	return 0;
}

static int do_close(struct server_request *asked)
{
	server_jail_remove(asked->jail);
	return 0;
}

int server_send_document(struct server_client *client, struct json_object *document, struct err *err)
{
	auto_json struct json_object *owned = document;
	auto_buf struct buf text;

	buf_init(&text, 4 << 20);
	json_print(&text, owned);
	int fd = memfd_with("document", text.data, text.length);
	if (fd < 0)
		return err_errno(err, "making a document");
	return wire_queue_add(&client->queue, wire_head("event", "document"),
			      &(struct wire_parts){.fds = &fd, .n_fds = 1}, err);
}

static int do_info(struct server_request *asked)
{
	struct server *server = asked->client->server;
	struct json_object *info = json_object_new_object(), *states = json_object_new_object();
	struct json_object *warm = json_object_new_object();
	const struct template *template = &server->cells->template;
	struct jail_census census;
	struct utsname kernel;

	uname(&kernel);
	json_add_int(warm, "wanted", cells_join_wanted(server->cells));
	json_add_int(warm, "templates", template->started);
	json_add_int(warm, "joined", template->joined);
	json_add_int(warm, "target", (int64_t)pool_target(&server->cells->pool));
	json_add_int(warm, "waiting", (int64_t)cells_joined(server->cells));
	cells_census(server->cells, &census);
	for (int state = 0; state < JAIL_STATES; state++)
		json_add_int(states, jail_state_text((enum jail_state)state), census.count[state]);
	json_add_string(info, "mode", identity_mode_text(server->identity->mode));
	json_add_string(info, "cgroup", cgroup_kind(server->cells->cgroup));
	json_add_bool(info, "weaker_limits", streq(cgroup_kind(server->cells->cgroup), "none"));
	json_add_string(info, "kernel", kernel.release);
	json_add_string(info, "architecture", kernel.machine);
	json_add_int(info, "landlock", server->cells->landlock_abi);
	json_add_string(info, "version", SALLYPORT_VERSION);
	json_add_int(info, "pid", getpid());
	json_add_int(info, "instance", server->identity->instance);
	json_add_bool(info, "network", net_allowed(server->cells->net));
	json_add_bool(info, "live", !cgroup_cannot_freeze(server->cells->cgroup));
	json_add_int(info, "probes", server->versions->begun);
	json_add_int(info, "jails", server->config->jailer.jails);
	json_add_int(info, "jails_open", (int64_t)server->cells->count);
	json_add(info, "states", states);
	json_add(info, "warm", warm);
	json_add(info, "limits", limits_print(&server->config->limits));
	return server_send_document(asked->client, info, &asked->err);
}

/* Answered by tick_client when all versions are known, or now. */
static int do_runners(struct server_request *asked)
{
	if (asked->request->known)
		return server_send_document(asked->client, runners_print(asked->client->server->runners), &asked->err);
	asked->client->wants_runners = true;
	return 0;
}

#define HANDLER(constant, name, table, needs_jail) [WIRE_##constant] = do_##name,
static int (*const handlers[WIRE_VERBS])(struct server_request *asked) = {WIRE_VERBS_EACH(HANDLER)};

int server_dispatch(struct server_client *client, struct wire_message *message, struct err *err)
{
	struct wire_request request;
	int result = wire_request_parse(message, &request, err);

	if (result < 0)
		return result; /* the two sides do not speak the same language: the connection ends */
	struct server_request asked = {
		.client = client, .jail = find(client, request.jail), .request = &request, .message = message};
	/* A jail that failed meanwhile is unknown here; its client knows why. */
	if (asked.jail || !wire_verb_needs_jail(request.verb))
		result = handlers[request.verb](&asked);
	if (result < 0 && request.jail >= 0) {
		struct server_jail *jail = find(client, request.jail); /* it may have gone meanwhile */

		send_failed(client, request.jail, &asked.err);
		if (jail && asked.err.code != ERR_CONFLICT)
			server_jail_remove(jail);
	}
	wire_request_clear(&request);
	return 0;
}
