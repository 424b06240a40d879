/* upstream_jail.c - see upstream_jail.h. */
#include "upstream_jail.h"

#include <string.h>
#include <unistd.h>

#include "jail/client/jail.h"
#include "lib/base/log.h"
#include "lib/base/util.h"

#define MEBI  (INT64_C(1) << 20)
#define PIDS  64
#define START "exec \"$@\"\n" /* of the runner for any program: its arguments are the command */

struct jails {
	const struct config *config;
	struct jail_client *client; /* NULL: not connected */
};
struct jailed {
	struct pipe_wire *wire;
	struct jail *jail;
	bool over;
};

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
	pipe_failed(jailed->wire, err->text);
}

static void jail_done(void *arg, const struct jail_result *result)
{
	struct jailed *jailed = arg;
	/* Cancelled: by us, behind the end of its output. */
	auto_free char *why = result->verdict == JAIL_OK || result->verdict == JAIL_CX
				      ? xstrdup("the program ended")
				      : xasprintf("the program ended: %s", result->message);

	jailed->over = true;
	pipe_failed(jailed->wire, why);
}

static int connect_jailer(struct jails *jails, struct err *err)
{
	if (jails->client != NULL)
		return 0;
	int result = jail_client_dial(jails->config, &jails->client, err);

	return result < 0 ? err_wrap(err, "connecting to the jailer") : 0;
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

static int jail_start(struct pipe_wire *wire, const struct upstream_server *server, const int fds[3], struct err *err)
{
	static const struct jail_events events = {.done = jail_done, .failed = jail_failed};
	struct jails *jails = wire->loop->jails;
	auto_free char *label = xasprintf("upstream %.40s", server->name);
	const struct jail_spec spec = {
		.runner = runner_of(server->command),
		.limits = {.memory_bytes = server->memory_mb * MEBI, .pids = PIDS},
		.network = server->network.count > 0,
		.hosts = server->network,
		.service = true,
		.label = label,
	};
	struct jailed *jailed;
	int result = connect_jailer(jails, err);

	if (result < 0)
		return result;
	jailed = xcalloc(1, sizeof(*jailed));
	jailed->wire = wire;
	result = jail_open(jails->client, &spec, &events, jailed, &jailed->jail, err);
	if (result == 0)
		result = run_program(jailed, server, fds, err);
	if (result < 0) {
		jail_close(jailed->jail);
		free(jailed);
		return result;
	}
	wire->process = jailed;
	pipe_started(wire);
	return 0;
}

static void jail_terminate(struct pipe_wire *wire, bool hard)
{
	struct jailed *jailed = wire->process;

	jail_cancel(jailed->jail);
	jailed->over = jailed->over || hard; /* closing the jail ends what is left */
}

static bool jail_ended(struct pipe_wire *wire)
{
	struct jailed *jailed = wire->process;

	if (!jailed->over)
		return false;
	if (jailed->wire->loop->jails->client != NULL)
		jail_close(jailed->jail);
	free(jailed);
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

	if (jails->client == NULL || jail_client_dispatch(jails->client, &err) == 0)
		return;
	/* Every jail has been told. */
	log_event(LOG_WARN, "upstream servers lost the jailer", "why", err.text, NULL);
	pipes_turn(loop);
	jail_client_free(jails->client);
	jails->client = NULL;
}

size_t jails_poll(const struct connection_loop *loop, struct pollfd *ret)
{
	if (loop->jails->client == NULL)
		return 0;
	*ret = (struct pollfd){jail_client_fd(loop->jails->client), jail_client_poll_events(loop->jails->client), 0};
	return 1;
}
