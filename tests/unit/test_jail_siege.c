/*
 * test_jail_siege.c - the jailer besieged: connections that never speak, packets of rubbish with descriptors of every
 * kind, a hundred programs at once whose leaders, inits and at last jailer are killed. Each time it goes on, holds no
 * more than before, and nothing is left.
 */
#include "jail_service.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "gauged.h"
#include "jail/client/wire.h"
#include "jail/client/wire_fd.h"
#include "jail/server.h"

#define JAILS   ((size_t)(100 / try_patience()))
#define SILENT  1000
#define EMPTY_PACKETS 1000
#define PACKETS (800 / try_patience())
#define SLACK   60   /* descriptors of jails that are being made or taken down */
/* Of the jailer's memory; sanitizers keep what was freed for a while. */
#ifdef __SANITIZE_ADDRESS__
#define GROWTH_KB (512L << 10)
#else
#define GROWTH_KB 4096L
#endif

static int setup(void **state)
{
	const struct rlimit many = {4096, 4096};
	auto_free char *members = xasprintf("%s,\"jails\":%zu", try_jailer_members(), JAILS);

	setrlimit(RLIMIT_NOFILE, &many); /* root; others have what they need, or are told so */
	setenv("TEST_CONFIG_JAILER", members, 1);
	service_setup(state);
	unsetenv("TEST_CONFIG_JAILER");
	return 0;
}

static void ask(struct jail_client *client)
{
	struct json_object *info = NULL;
	struct err err = ERR_INIT;

	if (jail_client_info(client, &info, &err))
		fail_msg("%s", err.text);
	json_object_put(info);
}

/* What the jailer holds; descriptors can be counted by root only. */
struct holds {
	size_t descriptors;
	long anonymous_kb;
};

static struct holds look(const struct service *service)
{
	auto_free char *path = xasprintf("/proc/%d/status", service->pid);
	auto_free char *fds = xasprintf("/proc/%d/fd", service->pid);
	auto_free char *text = NULL;
	size_t length;

	assert_int_equal(read_file_at(AT_FDCWD, path, 65536, &text, &length, NULL), 0);
	const char *line = strstr(text, "RssAnon:");
	return (struct holds){count_entries(fds), line ? strtol(line + 8, NULL, 10) : 0};
}

static void assert_no_more(const struct service *service, const struct holds *before)
{
	struct holds now = look(service);

	int64_t until = 0;

	while (now.descriptors > before->descriptors + SLACK && patience_left(&until))
		now = look(service);
	assert_in_range(now.descriptors, 0, before->descriptors + SLACK);
	assert_true(now.anonymous_kb < before->anonymous_kb + GROWTH_KB);
}

/* -------- connections --------------------------------------------------------------------------------- */
/* More than it takes, of somebody who may connect and says nothing: who speaks is served, before and after. */
static void silent_clients_keep_nobody_out(void **state)
{
	struct service *service = *state;
	struct jail_client *later = NULL;
	auto_free int *fds = xcalloc(SILENT, sizeof(*fds));
	size_t n = 0;
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	service_run_ok(service->client);
	struct holds before = look(service);
	while (n < SILENT && n + SLACK < limit.rlim_cur)
		fds[n++] = service_raw_connect(service);
	assert_true(n > SERVER_CLIENTS_MAX);
	assert_int_equal(jail_client_connect(service->socket_path, &later, NULL), 0);
	service_run_ok(later);
	service_run_ok(service->client);
	if (before.descriptors)
		assert_in_range(look(service).descriptors, 0, before.descriptors + SLACK + SERVER_CLIENTS_MAX);
	while (n > 0)
		close(fds[--n]);
	jail_client_free(later);
	assert_no_more(service, &before);
	service_run_ok(service->client);
}

/* As many as it takes, all of which have spoken: one more hears why it is not served, and is when there is room. */
static void full_jailer_says_so(void **state)
{
	struct service *service = *state;
	struct jail_client *clients[SERVER_CLIENTS_MAX] = {NULL}, *more = NULL;
	struct json_object *info = NULL;
	struct err err = ERR_INIT;

	ask(service->client);
	for (size_t i = 1; i < SERVER_CLIENTS_MAX; i++) { /* that was the first */
		assert_int_equal(jail_client_connect(service->socket_path, &clients[i], NULL), 0);
		ask(clients[i]);
	}
	assert_int_equal(jail_client_connect(service->socket_path, &more, NULL), 0);
	assert_int_equal(jail_client_info(more, &info, &err), -ERR_UNAVAILABLE);
	if (!strstr(err.text, "too many connections"))
		fail_msg("%s", err.text);
	jail_client_free(more);
	jail_client_free(steal(&clients[1]));
	ask(clients[2]); /* the end of the other was seen before */
	assert_int_equal(jail_client_connect(service->socket_path, &more, NULL), 0);
	service_run_ok(more);
	jail_client_free(more);
	for (size_t i = 2; i < SERVER_CLIENTS_MAX; i++)
		jail_client_free(clients[i]);
	service_run_ok(service->client);
}

/* -------- packets without a byte ---------------------------------------------------------------------- */
/* Which look like the end of a connection, and carry as many descriptors as a packet can. */
static void empty_packets(void **state)
{
	struct service *service = *state;
	int fds[WIRE_FDS_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	service_run_ok(service->client);
	struct holds before = look(service);
	for (int i = 0; i < EMPTY_PACKETS; i++) {
		auto_close int raw = service_raw_connect(service);
		struct pollfd end = {.fd = raw, .events = POLLIN};

		assert_int_equal(wire_fd_send(raw, "", 0, fds, ARRAY_SIZE(fds)), 0);
		assert_int_equal(poll(&end, 1, PATIENCE_MS), 1); /* the jailer has read it and hung up */
	}
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	assert_no_more(service, &before);
	service_run_ok(service->client);
}

/* -------- rubbish ------------------------------------------------------------------------------------- */
/* The same on every machine and every day. */
static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

#define MESSAGE(text) {text, sizeof(text) - 1}
static const struct {
	const char *text;
	size_t length;
} valid[] = {
	MESSAGE("{\"v\":1,\"verb\":\"open\",\"jail\":1,\"runner\":\"bash\",\"limits\":{\"wall_us\":1000000}}"),
	MESSAGE("{\"v\":1,\"verb\":\"fill\",\"jail\":1,\"files\":[{\"mode\":420,\"mtime_us\":0}]}\0name\0"),
	MESSAGE("{\"v\":1,\"verb\":\"run\",\"jail\":1,\"args\":0,\"env\":0,\"stdin\":false,\"stdout\":false,\"stderr\":"
		"false}"),
	MESSAGE("{\"v\":1,\"verb\":\"collect\",\"jail\":1}"),
	MESSAGE("{\"v\":1,\"verb\":\"close\",\"jail\":1}"),
	MESSAGE("{\"v\":1,\"verb\":\"info\"}"),
};

/* A whole message, a half one, one with bytes changed, or bytes. */
static size_t make_packet(uint32_t *seed, char *packet, size_t size)
{
	size_t which = next_random(seed) % ARRAY_SIZE(valid), length = valid[which].length;
	uint32_t kind = next_random(seed) % 4;

	memcpy(packet, valid[which].text, length);
	if (kind == 1)
		length = next_random(seed) % length;
	for (uint32_t i = 0; kind == 2 && i < 3; i++)
		packet[next_random(seed) % length] = (char)next_random(seed);
	if (kind == 3)
		for (length = 0; length < size && next_random(seed) % 1000; length++)
			packet[length] = (char)next_random(seed);
	return length;
}

/* Descriptors that are not what a message promises. Regular files are among them: some messages must be good. */
static size_t make_descriptors(int fds[8])
{
	int pipes[2], pair[2];
	size_t n = 0;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	fds[n++] = pipes[0];
	fds[n++] = pair[0];
	fds[n++] = epoll_create1(EPOLL_CLOEXEC);
	fds[n++] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fds[n++] = open("/etc/passwd", O_PATH | O_CLOEXEC);
	fds[n++] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	fds[n++] = memfd_with("code", "echo fine\n", 10);
	close(pipes[1]);
	close(pair[1]);
	for (size_t i = 0; i < n; i++)
		assert_true(fds[i] >= 0);
	return n;
}

static void random_packets_leave_nothing_behind(void **state)
{
	struct service *service = *state;
	auto_free char *packet = xmalloc(JAIL_WIRE_MAX);
	uint32_t seed = 1;
	int fds[8];

	signal(SIGPIPE, SIG_IGN);
	size_t n_fds = make_descriptors(fds);
	service_run_ok(service->client);
	struct holds before = look(service);
	for (int i = 0; i < PACKETS; i++) {
		auto_close int fd = service_raw_connect(service);

		for (uint32_t k = next_random(&seed) % 5; k > 0; k--) {
			size_t length = make_packet(&seed, packet, JAIL_WIRE_MAX);
			size_t first = next_random(&seed) % n_fds, some = next_random(&seed) % (n_fds - first);

			/* It may have hung up, or not read yet. */
			(void)!wire_fd_send(fd, packet, length, fds + first, some);
		}
	}
	service_run_ok(service->client);
	assert_no_more(service, &before);
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
}

/* -------- a hundred, and all of them killed ----------------------------------------------------------- */
struct guest {
	struct try try;
	pid_t leader;
	int leader_fd, init_fd;
};

static void start(struct jail_client *client, struct guest *guest, size_t i)
{
	auto_free char *number = xasprintf(".7%03zu", i);
	auto_free char *marker = marked_sleep(number);
	auto_free char *code = xasprintf("setsid sleep 1001 & exec %s\n", marker);
	auto_close int code_fd = memfd_with("code", code, strlen(code));
	struct jail_spec spec = {.runner = "bash", .label = "siege"};

	try_begin(client, &guest->try, &spec);
	struct jail_program program = {
		.code_fd = code_fd, .stdin_fd = -1, .stdout_fd = guest->try.out_fd, .stderr_fd = guest->try.error_fd};
	assert_int_equal(jail_run(guest->try.jail, &program, NULL), 0);
}

static pid_t parent_of(pid_t pid)
{
	auto_free char *path = xasprintf("/proc/%d/stat", pid);
	auto_free char *text = NULL;
	size_t length;
	int parent = -1;

	if (read_file_at(AT_FDCWD, path, 4096, &text, &length, NULL) == 0)
		sscanf(strrchr(text, ')') + 1, " %*c %d", &parent);
	return parent;
}

static void find(struct jail_client *client, struct guest *guest, size_t i)
{
	auto_free char *number = xasprintf(".7%03zu", i);
	auto_free char *marker = marked_sleep(number);

	while ((guest->leader = find_process(marker)) < 0) {
		try_hear(client, PATIENCE_GAP_MS);
		if (guest->try.done || guest->try.failed)
			fail_msg("%s: %s", marker, guest->try.failed ? guest->try.err.text : guest->try.result.message);
	}
	guest->leader_fd = pidfd_open(guest->leader, 0);
	guest->init_fd = pidfd_open(parent_of(guest->leader), 0);
	assert_true(guest->leader_fd >= 0 && guest->init_fd >= 0);
}

/* False: somebody else's id (a range's, and we are no root): it lives on. */
static bool slay(int pidfd)
{
	if (pidfd_send_signal(pidfd, SIGKILL, NULL, 0) == 0)
		return true;
	assert_int_equal(errno, EPERM);
	return false;
}

static void assert_over(struct jail_client *client, struct guest *guest, enum jail_verdict verdict, int signal_number)
{
	struct err err = ERR_INIT;

	if (jail_client_wait(client, guest->try.jail, &err))
		fail_msg("%s", err.text);
	assert_true(guest->try.done);
	const struct jail_result *result = &guest->try.result;
	if (result->verdict != verdict || result->signal != signal_number)
		fail_msg("%s, signal %d: %s", jail_verdict_text(result->verdict), result->signal, result->message);
	jail_close(steal(&guest->try.jail)); /* so far its files could be collected, by the init */
	assert_ends(guest->leader_fd);
	assert_ends(guest->init_fd);
}

static void drop_guest(struct guest *guest)
{
	close(guest->try.out_fd);
	close(guest->try.error_fd);
	close(guest->leader_fd);
	close(guest->init_fd);
	try_clear(&guest->try);
}

static void slain_jails_leave_nothing_behind(void **state)
{
	struct service *service = *state;
	struct jail_client *client = NULL;
	auto_free struct guest *guests = xcalloc(JAILS, sizeof(*guests));
	struct json_object *list = NULL;
	char group[512];

	assert_int_equal(jail_client_runners(service->client, &list, NULL),
			 0); /* the versions are known: no probe has a jail */
	json_object_put(list);
	bool v2 = service_cgroup(service, group, sizeof(group));
	size_t groups = count_entries(group);
	assert_int_equal(jail_client_connect(service->socket_path, &client, NULL), 0);
	for (size_t i = 0; i < JAILS; i++)
		start(client, &guests[i], i);
	for (size_t i = 0; i < JAILS; i++)
		find(client, &guests[i], i);
	for (size_t i = 0; i < JAILS; i++) {
		if (i % 3 == 0 && slay(guests[i].leader_fd))
			assert_over(client, &guests[i], JAIL_SG, SIGKILL);
		if (i % 3 == 1 && slay(guests[i].init_fd))
			assert_over(client, &guests[i], JAIL_XX, 0);
	}
	service_run_ok(service->client);
	kill(service->pid, SIGKILL);
	waitpid(service->pid, NULL, 0);
	for (size_t i = 0; i < JAILS; i++) {
		assert_ends(guests[i].leader_fd);
		assert_ends(guests[i].init_fd);
		drop_guest(&guests[i]);
	}
	jail_client_free(client);
	jail_client_free(service->client);
	for (size_t i = 0; i < JAILS; i++) {
		auto_free char *number = xasprintf(".7%03zu", i);
		auto_free char *marker = marked_sleep(number);

		assert_int_equal(find_process(marker), -1);
	}
	service_start(service);
	service_run_ok(service->client);
	if (v2 || groups > 0)
		assert_in_range(count_entries(group), 0, groups + SLACK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		GAUGED(silent_clients_keep_nobody_out, setup, service_teardown, 1),
		GAUGED(full_jailer_says_so, setup, service_teardown, JAILS),
		GAUGED(empty_packets, setup, service_teardown, 1),
		GAUGED(random_packets_leave_nothing_behind, setup, service_teardown, 1),
		GAUGED(slain_jails_leave_nothing_behind, setup, service_teardown, JAILS),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
