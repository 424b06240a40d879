/*
 * client.c - the client's side of the jailer: connecting, and verbs that become packets. Events: client_events.c.
 *
 * Everything is one list of jails and one queue of packets. A verb is queued and sent at once as far as the socket
 * takes it; what does not fit waits for the caller's poll loop (jail_client_poll_events asks for POLLOUT then).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client_internal.h"
#include "lib/base/config.h"
#include "lib/base/util.h"

extern char **environ;

static struct jail_client *client_new(int socket, bool private, pid_t jailer)
{
	struct jail_client *client = xcalloc(1, sizeof(*client));

	client->socket = socket;
	client->guard_fd = -1;
	client->private = private;
	client->jailer = jailer;
	wire_queue_init(&client->queue);
	return client;
}

int jail_client_connect(const char *socket_path, struct jail_client **ret, struct err *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(socket_path) >= sizeof(address.sun_path))
		return err_set(err, ERR_INVALID, "the path of the jailer's socket is longer than %zu bytes: %s",
			       sizeof(address.sun_path) - 1, socket_path);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
	/* A jailer that many connect to accepts them one after the other: connect(2) waits for room in its queue, for
	 * as long as the socket may send (unix(7)). */
	const struct timeval patience = {.tv_sec = JAIL_CONNECT_SECONDS};
	auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)))
		return err_errno(err, "making a socket for the jailer");
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) || fcntl(fd, F_SETFL, O_NONBLOCK)) {
		int code = errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN ? ERR_UNAVAILABLE : ERR_SYSTEM;

		return err_set(err, code,
			       "no jailer answers at %s (%s): start sallyport-jailer, or leave jailer.socket empty",
			       socket_path, strerror(errno));
	}
	*ret = client_new(steal_fd(&fd), false, 0);
	return 0;
}

/* The two ends of a connection to a private jailer. */
struct client_connection {
	int ours, theirs;
	char theirs_text[16];
};

static int start(const char **argv, const struct client_connection *connections, size_t count, pid_t *ret,
		 struct err *err)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;

	posix_spawn_file_actions_init(&actions);
	/* Onto itself: it stays open in the new program (posix_spawn_file_actions_adddup2(3p)). */
	for (size_t i = 0; i < count; i++)
		posix_spawn_file_actions_adddup2(&actions, connections[i].theirs, connections[i].theirs);
	/* A process group of its own: Ctrl-C on our terminal is ours to turn into jail_cancel. */
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
	/* posix_spawn's argv is not const for historical reasons; it does not write. */
	int error = posix_spawn(ret, argv[0], &actions, &attributes, unconst(argv), environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	if (error == 0)
		return 0;
	errno = error;
	return err_errno(err, "starting the jailer %s", argv[0]);
}

static int spawn(const char *jailer_program, const char *config_path, bool all, struct jail_client **ret, size_t count,
		 struct err *err)
{
	struct client_connection connections[JAIL_SHARED_MAX];
	const char *argv[5 + 2 * JAIL_SHARED_MAX] = {jailer_program};
	size_t n_argv = 1;
	int result = 0;
	pid_t pid;

	for (size_t i = 0; i < count; i++)
		connections[i] = (struct client_connection){.ours = -1, .theirs = -1};
	for (size_t i = 0; i < count && result == 0; i++) {
		int pair[2];

		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
			result = err_errno(err, "making a socket for the jailer");
			break;
		}
		connections[i].ours = pair[0];
		connections[i].theirs = pair[1];
		snprintf(connections[i].theirs_text, sizeof(connections[i].theirs_text), "%d", pair[1]);
		argv[n_argv++] = "--fd";
		argv[n_argv++] = connections[i].theirs_text;
		if (fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0)
			result = err_errno(err, "preparing the jailer's socket");
	}
	if (all)
		argv[n_argv++] = "--all";
	if (config_path) {
		argv[n_argv++] = "--config";
		argv[n_argv++] = config_path;
	}
	if (result == 0)
		result = start(argv, connections, count, &pid, err);
	for (size_t i = 0; i < count; i++) {
		if (result == 0) /* the jailer ends with its last client, which waits for it */
			ret[i] = client_new(steal_fd(&connections[i].ours), true, i + 1 == count ? pid : 0);
		close_pointer(&connections[i].ours);
		close_pointer(&connections[i].theirs);
	}
	return result;
}

int jail_client_spawn(const char *jailer_program, const char *config_path, struct jail_client **ret, struct err *err)
{
	return spawn(jailer_program, config_path, false, ret, 1, err);
}

char *jail_client_program(const struct config *config, struct err *err)
{
	auto_free char *folder = NULL, *program = NULL;

	if (config->jailer.program && *config->jailer.program) {
		program = xstrdup(config->jailer.program);
	} else {
		folder = config_program_dir();
		program = xasprintf("%s/sallyport-jailer", folder);
	}
	if (access(program, X_OK) == 0)
		return steal(&program);
	err_set(err, ERR_UNAVAILABLE, "no jailer at %s: install it there or name it as jailer.program", program);
	return NULL;
}

int jail_client_dial(const struct config *config, struct jail_client **ret, size_t count, struct err *err)
{
	const char *socket = config->jailer.socket;

	if (!socket || !*socket) {
		auto_free char *program = jail_client_program(config, err);

		return program ? spawn(program, config->path, false, ret, count, err) : -ERR_UNAVAILABLE;
	}
	for (size_t i = 0; i < count; i++) {
		int result = jail_client_connect(socket, &ret[i], err);

		if (result < 0) {
			while (i > 0)
				jail_client_free(steal(&ret[--i]));
			return result;
		}
	}
	return 0;
}

int jail_client_learn(const struct config *config, struct json_object **ret, struct err *err)
{
	auto_free char *program = jail_client_program(config, err);
	struct jail_client *client;
	int result = program ? spawn(program, config->path, true, &client, 1, err) : -ERR_UNAVAILABLE;

	if (result < 0)
		return result;
	result = jail_client_runners(client, ret, err);
	jail_client_free(client);
	return result;
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

void jail_client_background(struct jail_client *client)
{
	client->background = true;
}

static void add_strings(struct json_object *head, const char *name, const struct bind_strings *strings)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < strings->count; i++)
		json_object_array_add(list, json_object_new_string(strings->items[i]));
	json_add(head, name, list);
}

int jail_open(struct jail_client *client, const struct jail_spec *spec, const struct jail_events *events, void *arg,
	      struct jail **ret, struct err *err)
{
	if (client->lost)
		return err_set(err, ERR_UNAVAILABLE, "the connection to the jailer is lost");
	struct jail *jail = xcalloc(1, sizeof(*jail));

	*jail = (struct jail){
		.next = client->jails, .client = client, .number = client->next_number, .events = *events, .arg = arg};
	client->next_number = client->next_number == INT32_MAX ? 0 : client->next_number + 1;
	struct json_object *head = wire_head_verb(WIRE_OPEN, jail->number);
	json_add_string(head, "runner", spec->runner);
	if (spec->label)
		json_add_string(head, "label", spec->label);
	json_add_bool(head, "network", spec->network);
	json_add_bool(head, "live", spec->live);
	if (spec->service)
		json_add_bool(head, "service", true);
	if (client->background)
		json_add_bool(head, "background", true);
	if (spec->hosts.count > 0)
		add_strings(head, "hosts", &spec->hosts);
	if (spec->binds)
		add_strings(head, "binds", spec->binds);
	json_add_bool(head, "fingerprint", spec->fingerprint);
	json_add(head, "limits", bind_print(jail_limits_table, &spec->limits));
	int result = client_send(client, head, NULL, err);
	if (result < 0) {
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

enum batch { BATCH_FILL, BATCH_FILL_CODE, BATCH_REMOVE };

static int send_batch(struct jail *jail, enum batch kind, const struct jail_file *files, size_t count, struct err *err)
{
	const bool remove = kind == BATCH_REMOVE;
	struct json_object *head = wire_head_verb(remove ? WIRE_REMOVE : WIRE_FILL, jail->number);
	struct json_object *list = remove ? NULL : json_object_new_array();
	const char *names[JAIL_BATCH_FILES];
	int fds[JAIL_BATCH_FILES];

	if (remove)
		json_add_int(head, "names", (int64_t)count);
	else
		json_add(head, "files", list);
	if (kind == BATCH_FILL_CODE)
		json_add_bool(head, "code", true);
	for (size_t i = 0; i < count; i++) {
		names[i] = files[i].name;
		if (remove)
			continue;
		struct json_object *file = json_object_new_object();
		json_add_int(file, "mode", files[i].mode);
		json_add_int(file, "mtime_us", files[i].mtime_us);
		json_object_array_add(list, file);
		if (dup_fd(files[i].fd, &fds[i], err) < 0) {
			while (i > 0)
				close(fds[--i]);
			json_object_put(head);
			return -ERR_SYSTEM;
		}
	}
	return client_send(jail->client, head, &(struct wire_parts){names, count, fds, remove ? 0 : count}, err);
}

static int in_batches(struct jail *jail, enum batch kind, const struct jail_file *files, size_t count, struct err *err)
{
	size_t begin = 0, bytes = 0;

	for (size_t i = 0; i < count; i++)
		if (strlen(files[i].name) > JAIL_NAME_MAX)
			return err_set(err, ERR_INVALID, "the name of a file is longer than %d bytes", JAIL_NAME_MAX);
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(files[i].name) + 1;

		if (i - begin == JAIL_BATCH_FILES || bytes + length > WIRE_NAMES_MAX) {
			int result = send_batch(jail, kind, files + begin, i - begin, err);

			if (result < 0)
				return result;
			begin = i;
			bytes = 0;
		}
		bytes += length;
	}
	return begin < count ? send_batch(jail, kind, files + begin, count - begin, err) : 0;
}

int jail_fill(struct jail *jail, const struct jail_file *files, size_t count, struct err *err)
{
	return in_batches(jail, BATCH_FILL, files, count, err);
}

int jail_fill_code(struct jail *jail, const struct jail_file *files, size_t count, struct err *err)
{
	return in_batches(jail, BATCH_FILL_CODE, files, count, err);
}

int jail_remove(struct jail *jail, const struct jail_file *files, size_t count, struct err *err)
{
	return in_batches(jail, BATCH_REMOVE, files, count, err);
}

static size_t count_strings(const char *const *strings, size_t *bytes)
{
	size_t n = 0;

	for (; strings && strings[n]; n++)
		*bytes += strlen(strings[n]) + 1;
	return n;
}

static void add_switch(struct json_object *head, const char *name, bool on)
{
	if (on)
		json_add_bool(head, name, true);
}

int jail_run(struct jail *jail, const struct jail_program *program, struct err *err)
{
	size_t bytes = 0, n_args = count_strings(program->args, &bytes), n_env = count_strings(program->env, &bytes);
	const int given[] = {program->code_fd, program->stdin_fd, program->stdout_fd, program->stderr_fd,
			     program->tools ? program->tools_fd : -1};
	int fds[ARRAY_SIZE(given)];
	size_t n_fds = 0;

	if (bytes > JAIL_ARGUMENTS_MAX)
		return err_set(err, ERR_LIMIT, "arguments and environment are longer than %d bytes together",
			       JAIL_ARGUMENTS_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(given); i++)
		if (given[i] >= 0 && dup_fd(given[i], &fds[n_fds++], err) < 0) {
			while (--n_fds > 0)
				close(fds[n_fds - 1]);
			return -ERR_SYSTEM;
		}
	struct json_object *head = wire_head_verb(WIRE_RUN, jail->number);
	json_add_int(head, "args", (int64_t)n_args);
	json_add_int(head, "env", (int64_t)n_env);
	if (program->entry)
		json_add_string(head, "entry", program->entry);
	if (program->cwd)
		json_add_string(head, "cwd", program->cwd);
	json_add_bool(head, "stdin", program->stdin_fd >= 0);
	json_add_bool(head, "stdout", program->stdout_fd >= 0);
	json_add_bool(head, "stderr", program->stderr_fd >= 0);
	add_switch(head, "tools", program->tools);
	add_switch(head, "display", program->display);
	add_switch(head, "read_only", program->read_only);
	if (program->clock_us)
		json_add_int(head, "clock_us", program->clock_us);
	if (program->wall_us)
		json_add_int(head, "time_us", program->wall_us);
	auto_free const char **strings = xcalloc(n_args + n_env + 1, sizeof(*strings));
	for (size_t i = 0; i < n_args; i++)
		strings[i] = program->args[i];
	for (size_t i = 0; i < n_env; i++)
		strings[n_args + i] = program->env[i];
	int result = client_send(jail->client, head, &(struct wire_parts){strings, n_args + n_env, fds, n_fds}, err);
	if (result == 0)
		jail->runs++;
	return result;
}

void jail_wait(struct jail *jail, bool waits, int64_t credit_us)
{
	struct json_object *head = wire_head_verb(WIRE_WAIT, jail->number);

	json_add_bool(head, "waits", waits);
	json_add_int(head, "credit_us", credit_us);
	client_send(jail->client, head, NULL, NULL);
}

void jail_cancel(struct jail *jail)
{
	client_send(jail->client, wire_head_verb(WIRE_CANCEL, jail->number), NULL, NULL);
}

int jail_collect(struct jail *jail, struct err *err)
{
	int result = client_send(jail->client, wire_head_verb(WIRE_COLLECT, jail->number), NULL, err);

	if (result == 0)
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
	client_send(jail->client, wire_head_verb(WIRE_CLOSE, jail->number), NULL, NULL);
	free(jail);
}
