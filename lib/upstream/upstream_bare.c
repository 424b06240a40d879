/* upstream_bare.c - starts servers outside of jails; see upstream_pipe.h. */
#include "upstream_pipe.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/util.h"

static int spawn(const struct upstream_server *server, const int fds[3], pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	static const char *const kept[] = {"PATH", "HOME", "LANG"};
	char **environment = xcalloc(ARRAY_SIZE(kept) + server->env.count + 1, sizeof(*environment));
	char **argv = xcalloc(server->args.count + 2, sizeof(*argv)), **variable = environment;

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		bool given = false;

		for (size_t k = 0; k < server->env.count; k++)
			given |= streq(server->env.keys[k], kept[i]);
		if (getenv(kept[i]) != NULL && !given)
			*variable++ = xasprintf("%s=%s", kept[i], getenv(kept[i]));
	}
	for (size_t i = 0; i < server->env.count; i++)
		*variable++ = xasprintf("%s=%s", server->env.keys[i], server->env.values[i]);
	sigemptyset(&none);
	sigfillset(&all);
	argv[0] = unconst(server->command);
	for (size_t i = 0; i < server->args.count; i++)
		argv[i + 1] = unconst(server->args.items[i]);
	posix_spawn_file_actions_init(&actions);
	for (int i = 0; i < 3; i++)
		posix_spawn_file_actions_adddup2(&actions, fds[i], i);
	if (server->cwd != NULL)
		posix_spawn_file_actions_addchdir_np(&actions, server->cwd);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	int error = posix_spawnp(ret_pid, server->command, &actions, &attributes, argv, environment);

	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	for (variable = environment; *variable != NULL; variable++)
		free(*variable);
	free(environment);
	free(argv);
	return error;
}

static int bare_start(struct pipe_wire *wire, const struct upstream_server *server, const int fds[3], struct err *err)
{
	pid_t pid;
	int error = spawn(server, fds, &pid);

	if (error != 0) {
		bool lost = server->cwd != NULL && access(server->cwd, X_OK) < 0;
		errno = error;
		return err_errno(err, "%s%s", lost ? "cwd " : "", lost ? server->cwd : server->command);
	}
	log_event(LOG_WARN, "upstream server runs outside of any jail", "server", server->name, NULL);
	wire->process = (void *)(intptr_t)pid;
	pipe_started(wire);
	return 0;
}

static void bare_terminate(struct pipe_wire *wire, bool hard)
{
	kill(-(pid_t)(intptr_t)wire->process, hard ? SIGKILL : SIGTERM);
}

static bool bare_ended(struct pipe_wire *wire)
{
	pid_t pid = (pid_t)(intptr_t)wire->process;

	if (waitpid(pid, NULL, WNOHANG) == 0)
		return false;
	kill(-pid, SIGKILL); /* what it left behind */
	return true;
}

const struct launcher bare_launcher = {bare_start, bare_terminate, bare_ended};
