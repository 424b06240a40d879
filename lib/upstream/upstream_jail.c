/*
 * upstream_jail.c - see upstream_jail.h.
 *
 * A server that keeps its /data has the folder of upstream_data.h from before its jail is opened until the jail's files
 * were collected. Its next process waits for that: a start that finds the folder taken tries again in each turn. A
 * server that is to end is closed when its files are stored, or after STORE_SECONDS.
 */
#include "upstream_jail.h"

#include <fcntl.h>

#include <string.h>
#include <unistd.h>

#include "jail/client/jail.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "upstream_data.h"

#define MEBI          (INT64_C(1) << 20)
#define PIDS          64
#define STORE_SECONDS 10    /* for the end of a server that keeps its /data, and for storing it */
#define RETRY_US      50000 /* between two looks at a folder that is taken */
#define START "exec \"$@\"\n" /* of the runner for any program: its arguments are the command */

struct jails {
	const struct config *config;
	struct jail_client *client; /* NULL: not connected */
	struct jailed *first;
};
struct jailed {
	struct jailed *next;
	struct pipe_wire *wire;
	const struct upstream_server *server;
	char *owner;
	struct jail *jail;          /* NULL: none yet, it waits for its /data */
	struct upstream_data *data; /* NULL: not kept */
	int fds[3];                 /* while it waits: the program's ends */
	int64_t until_us;           /* it is to end, and may store so long; 0: it is not */
	bool hard, over;
};

static bool keeps(const struct upstream_server *server)
{
	return server->data == UPSTREAM_DATA_KEEP;
}

/* Is the end of it still waited for, because something of it is to be kept? */
static bool storing(const struct jailed *jailed)
{
	return jailed->data != NULL && !jailed->over &&
	       (jailed->until_us == 0 || clock_monotonic_us() < jailed->until_us);
}

static const char *runner_of(const char *command)
{
	const char *slash = strrchr(command, '/'), *name = slash != NULL ? slash + 1 : command;

	if (streq(name, "node") || streq(name, "nodejs"))
		return "stdio-server-node";
	if (str_starts(name, "python"))
		return "stdio-server-python";
	return "stdio-server";
}

static void jail_failed(void *arg, const struct err *err)
{
	struct jailed *jailed = arg;

	jailed->over = true;
	if (jailed->data != NULL)
		log_event(LOG_ERROR, "an upstream server's files are as they were at its start", "server",
			  jailed->server->name, "why", err->text, NULL);
	pipe_failed(jailed->wire, err->text);
}

static void jail_done(void *arg, const struct jail_result *result)
{
	struct jailed *jailed = arg;
	/* Cancelled: by us, behind the end of its output. */
	auto_free char *why = result->verdict == JAIL_OK || result->verdict == JAIL_CX
				      ? xstrdup("the program ended")
				      : xasprintf("the program ended: %s", result->message);

	jailed->over = jailed->data == NULL; /* else jail_collected comes */
	pipe_failed(jailed->wire, why);
}

static void jail_file(void *arg, const struct jail_change *change)
{
	const struct jailed *jailed = arg;

	upstream_data_change(jailed->data, change);
}

static void jail_collected(void *arg)
{
	struct jailed *jailed = arg;
	struct err err = ERR_INIT;

	jailed->over = true;
	if (upstream_data_commit(jailed->data, &err) < 0)
		log_event(LOG_ERROR, "an upstream server's files are as they were at its start", "server",
			  jailed->server->name, "why", err.text, NULL);
}

static int run_program(struct jailed *jailed, const struct upstream_server *server, const int fds[3], struct err *err)
{
	bool any = streq(runner_of(server->command), "stdio-server");
	auto_free const char **args = xcalloc(server->args.count + 2, sizeof(*args));
	char **env = xcalloc(server->env.count + 1, sizeof(*env));
	auto_close int code = memfd_with("start", START, strlen(START));
	size_t n = 0;
	int result;

	if (any)
		args[n++] = server->command;
	for (size_t i = 0; i < server->args.count; i++)
		args[n++] = server->args.items[i];
	for (size_t i = 0; i < server->env.count; i++)
		env[i] = xasprintf("%s=%s", server->env.keys[i], server->env.values[i]);
	const struct jail_program program = {
		.code_fd = code,
		.args = args,
		.cwd = server->cwd,
		.env = (const char *const *)env,
		.stdin_fd = fds[0],
		.stdout_fd = fds[1],
		.stderr_fd = fds[2],
		.tools_fd = -1,
	};

	result = code < 0 ? err_errno(err, "memfd_create") : jail_run(jailed->jail, &program, err);
	for (char **variable = env; *variable != NULL; variable++) {
		explicit_bzero(*variable, strlen(*variable));
		free(*variable);
	}
	free(env);
	return result;
}

/* Its jail, what it kept, its program, and what it is to keep. */
static int open_jail(struct jailed *jailed, const int fds[3], struct err *err)
{
	static const struct jail_events events = {
		.done = jail_done, .failed = jail_failed, .file = jail_file, .collected = jail_collected};
	static const struct jail_events no_files = {.done = jail_done, .failed = jail_failed};
	const struct upstream_server *server = jailed->server;
	struct jails *jails = jailed->wire->loop->jails;
	auto_free char *label = xasprintf("upstream %.40s", server->name);
	const struct jail_spec spec = {
		.runner = runner_of(server->command),
		.limits = {.memory_bytes = server->memory_mb * MEBI,
			   .pids = PIDS,
			   .data_inodes = MIN(UPSTREAM_DATA_INODES, jails->config->limits.data_inodes)},
		.network = server->network.count > 0,
		.hosts = server->network,
		.binds = server->names_binds ? &server->binds : NULL,
		.service = true,
		.label = label,
	};

	if (jails->client == NULL && jail_client_dial(jails->config, &jails->client, 1, err) < 0)
		return err_wrap(err, "connecting to the jailer");
	int result = jail_open(jails->client, &spec, jailed->data != NULL ? &events : &no_files, jailed, &jailed->jail,
			       err);

	if (result == 0 && jailed->data != NULL)
		result = upstream_data_fill(jailed->data, jailed->jail, err);
	if (result == 0)
		result = run_program(jailed, server, fds, err);
	if (result == 0 && jailed->data != NULL)
		result = jail_collect(jailed->jail, err); /* when the program has ended */
	return result;
}

/* ERR_BUSY: another process of the server has its /data. */
static int begin(struct jailed *jailed, const int fds[3], struct err *err)
{
	const char *data_dir = jailed->wire->loop->config->data_dir;
	int result = 0;

	if (keeps(jailed->server))
		result = upstream_data_open(data_dir, jailed->server->name, jailed->owner, &jailed->data, err);
	return result < 0 ? result : open_jail(jailed, fds, err);
}

static void close_ends(struct jailed *jailed)
{
	for (size_t i = 0; i < ARRAY_SIZE(jailed->fds); i++)
		fd_close(&jailed->fds[i]);
}

static void free_jailed(struct jailed *jailed)
{
	struct jails *jails = jailed->wire->loop->jails;

	for (struct jailed **at = &jails->first; *at != NULL; at = &(*at)->next)
		if (*at == jailed) {
			*at = jailed->next;
			break;
		}
	if (jails->client != NULL)
		jail_close(jailed->jail);
	close_ends(jailed);
	upstream_data_close(jailed->data);
	free(jailed->owner);
	free(jailed);
}

static int jail_start(struct pipe_wire *wire, const struct upstream_server *server, const int fds[3], struct err *err)
{
	struct jails *jails = wire->loop->jails;
	struct jailed *jailed = xcalloc(1, sizeof(*jailed));
	int result;

	*jailed = (struct jailed){.next = jails->first,
				  .wire = wire,
				  .server = server,
				  .owner = xstrdup(wire->connection->owner),
				  .fds = {-1, -1, -1}};
	jails->first = jailed;
	result = begin(jailed, fds, err);
	if (result == 0) {
		wire->process = jailed;
		pipe_started(wire);
		return 0;
	}
	if (result == -ERR_BUSY && keeps(server) && jailed->data == NULL) { /* it waits for its /data */
		result = 0;
		for (size_t i = 0; result == 0 && i < ARRAY_SIZE(jailed->fds); i++)
			if ((jailed->fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3)) < 0)
				result = err_errno(err, "keeping a pipe");
	}
	if (result < 0)
		free_jailed(jailed);
	else
		wire->process = jailed;
	return result;
}

static bool waits(const struct jailed *jailed)
{
	return jailed->fds[0] >= 0 && !jailed->over;
}

static void jail_terminate(struct pipe_wire *wire, bool hard)
{
	struct jailed *jailed = wire->process;

	if (jailed->jail != NULL && wire->loop->jails->client != NULL)
		jail_cancel(jailed->jail);
	if (jailed->until_us == 0)
		jailed->until_us = clock_monotonic_us() + STORE_SECONDS * INT64_C(1000000);
	jailed->hard |= hard;
}

static bool jail_ended(struct pipe_wire *wire)
{
	struct jailed *jailed = wire->process;

	if (waits(jailed) || (jailed->hard && !storing(jailed)))
		jailed->over = true; /* closing the jail ends what is left */
	if (!jailed->over)
		return false;
	free_jailed(jailed);
	return true;
}

const struct launcher jail_launcher = {jail_start, jail_terminate, jail_ended};

void jails_open(struct connection_loop *loop)
{
	loop->jails = xcalloc(1, sizeof(*loop->jails));
	loop->jails->config = loop->config;
}

void jails_close(struct connection_loop *loop)
{
	jail_client_free(loop->jails->client);
	free(loop->jails);
}

void jails_turn(struct connection_loop *loop)
{
	struct jails *jails = loop->jails;
	struct err err = ERR_INIT;

	for (struct jailed *jailed = jails->first, *next; jailed != NULL; jailed = next) {
		next = jailed->next;
		if (!waits(jailed))
			continue;
		err = ERR_INIT;
		int result = jailed->wire->connection != NULL ? begin(jailed, jailed->fds, &err) : -ERR_BUSY;

		if (result == -ERR_BUSY && jailed->data == NULL)
			continue; /* it tries again in the next turn */
		close_ends(jailed);
		jailed->over = result < 0;
		if (result == 0)
			pipe_started(jailed->wire);
		else
			pipe_failed(jailed->wire, err.text);
	}
	if (jails->client == NULL || jail_client_dispatch(jails->client, &err) == 0)
		return;
	log_event(LOG_WARN, "upstream servers lost the jailer", "why", err.text, NULL);
	/* Every jail has been told, those of a lost jailer that had ended before as well. */
	for (struct jailed *jailed = jails->first; jailed != NULL; jailed = jailed->next)
		jailed->over |= jailed->jail != NULL;
	pipes_turn(loop);
	jail_client_free(jails->client);
	jails->client = NULL;
}

int64_t jails_wake(const struct connection_loop *loop)
{
	for (const struct jailed *jailed = loop->jails->first; jailed != NULL; jailed = jailed->next)
		if (waits(jailed))
			return loop->now_us + RETRY_US;
	return INT64_MAX;
}

bool jails_storing(const struct connection_loop *loop)
{
	for (const struct jailed *jailed = loop->jails->first; jailed != NULL; jailed = jailed->next)
		if (storing(jailed))
			return true;
	return false;
}

size_t jails_poll(const struct connection_loop *loop, struct pollfd *ret)
{
	if (loop->jails->client == NULL)
		return 0;
	*ret = (struct pollfd){jail_client_fd(loop->jails->client), jail_client_poll_events(loop->jails->client), 0};
	return 1;
}
