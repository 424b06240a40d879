/*
 * warm_program.c - a process that has joined a jail gets the jail's first program.
 *
 * The order of the run is what init got from the jailer; what it says is compared with the command and the environment
 * of the template: if they are those of its interpreter and its starter, the program runs here, else another program
 * takes this process's place, as in a jail that nothing has joined. /proc/self/cmdline is what the order says.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "jail/client/wire_fd.h"
#include "lib/base/util.h"
#include "warm.h"

#define OWN_MAX     (64 << 10)
#define COMMAND     2 /* interpreter and starter */
#define STAT_FIELDS 52
#define STRINGS_MAX 4096

static char packet[JOIN_PROGRAM_MAX];
static struct {
	char *command, *environment; /* of this process, as /proc has them */
	size_t command_length, environment_length;
	struct prctl_mm_map map;
} own;
static struct {
	struct join_program head;
	struct init_order order;
	struct seccomp_filter filter;
	int fds[INIT_TALK_FD + 3], talk, group, landlock;
	const char *arguments, *variables, *end; /* in the packet */
	char *argv[STRINGS_MAX + 2];             /* arguments NULL variables NULL */
} given;

/* -------- in the template ----------------------------------------------------------------------------- */
/* The fields behind the command's name, by their numbers in proc_pid_stat(5). */
static int read_stat(unsigned long long ret[STAT_FIELDS + 1])
{
	auto_free char *text = NULL;
	size_t length;

	if (read_file_at(AT_FDCWD, "/proc/self/stat", OWN_MAX, &text, &length, NULL) < 0)
		return -1;
	char *at = strrchr(text, ')');
	int field = 3;
	if (!at)
		return -1;
	for (at += 4; field < STAT_FIELDS && *at; at++) { /* behind the state, a letter */
		ret[++field] = strtoull(at, &at, 10);
		if (*at != ' ')
			break;
	}
	return field >= 51 ? 0 : -1;
}

int warm_program_prepare(void)
{
	unsigned long long stat[STAT_FIELDS + 1] = {0};

	if (read_file_at(AT_FDCWD, "/proc/self/cmdline", OWN_MAX, &own.command, &own.command_length, NULL) < 0 ||
	    read_file_at(AT_FDCWD, "/proc/self/environ", OWN_MAX, &own.environment, &own.environment_length, NULL) <
		    0 ||
	    read_stat(stat))
		return -1;
	own.map = (struct prctl_mm_map){
		.start_code = stat[26],
		.end_code = stat[27],
		.start_stack = stat[28],
		.start_data = stat[45],
		.end_data = stat[46],
		.start_brk = stat[47],
		.exe_fd = UINT32_MAX,
	};
	return 0;
}

/* -------- in a process that has joined ---------------------------------------------------------------- */
static void say(int init, const struct join_word *word)
{
	if (wire_fd_send(init, word, sizeof(*word), NULL, 0))
		_exit(1);
}

_Noreturn void warm_program_fail(int init, const char *step, int error)
{
	struct join_word word = {.kind = JOIN_FAILED, .error = error};

	snprintf(word.step, sizeof(word.step), "%s", step);
	wire_fd_send(init, &word, sizeof(word), NULL, 0);
	_exit(1);
}

static const char *skip(const char *at, uint32_t n)
{
	for (; n && at < given.end; n--)
		at += strlen(at) + 1;
	return at;
}

/* Takes the packet apart. The bytes end with a NUL: each string does. */
static int take_apart(size_t length, size_t n_fds)
{
	size_t next = 0;

	memcpy(&given.head, packet, MIN(length, sizeof(given.head)));
	const size_t filter = given.head.n_filter * sizeof(struct sock_filter), order = given.head.order_length;
	if (length < sizeof(given.head) || order < sizeof(given.order) ||
	    length != sizeof(given.head) + order + filter ||
	    n_fds != (size_t)INIT_TALK_FD + given.head.has_talk + given.head.has_group + given.head.has_landlock)
		return -1;
	const char *bytes = packet + sizeof(given.head);
	memcpy(&given.order, bytes, sizeof(given.order));
	/* Behind the strings, which end with NULs; the kernel copies it wherever it is. */
	struct sock_filter *code = xmalloc(filter);
	memcpy(code, bytes + order, filter);
	given.filter = (struct seccomp_filter){.program = {.len = (unsigned short)given.head.n_filter, .filter = code},
					       .n_notify = given.head.n_notify};
	next = INIT_TALK_FD;
	given.talk = given.head.has_talk ? given.fds[next++] : -1;
	given.group = given.head.has_group ? given.fds[next++] : -1;
	given.landlock = given.head.has_landlock ? given.fds[next++] : -1;
	given.end = bytes + order;
	if (given.end[-1] || given.order.n_args < 1 || given.order.n_args + given.order.n_env > STRINGS_MAX)
		return -1;
	given.arguments = skip(bytes + sizeof(given.order), 1);
	given.variables = skip(given.arguments, given.order.n_args);
	given.end = skip(given.variables, given.order.n_env);
	return 0;
}

/* The same interpreter and starter, in the same environment? */
static bool is_own(void)
{
	const size_t variables = (size_t)(given.end - given.variables);
	const char *rest = skip(given.arguments, COMMAND);
	const size_t command = (size_t)(rest - given.arguments);

	return !given.head.exec && !given.order.deterministic && given.order.n_args > COMMAND &&
	       command < own.command_length && memcmp(given.arguments, own.command, command) == 0 &&
	       variables == own.environment_length && memcmp(given.variables, own.environment, variables) == 0;
}

const char *warm_program_wait(int init, size_t *ret_length)
{
	const struct join_word parked = {.kind = JOIN_PARKED, .pid = getpid()};
	struct wire_fds taken = {.fds = given.fds, .room = ARRAY_SIZE(given.fds)};

	say(init, &parked);
	const ssize_t n = wire_fd_receive(init, packet, sizeof(packet), 0, &taken);
	if (n == 0)
		_exit(0); /* the jail is not needed any more */
	if (n < 0 || take_apart((size_t)n, taken.count))
		warm_program_fail(init, "receive the program", n < 0 ? errno : EBADMSG);
	if (!is_own())
		return NULL;
	const char *rest = skip(given.arguments, COMMAND);
	*ret_length = (size_t)(given.variables - rest);
	return rest;
}

/* What /proc says of the command and the environment. */
static int show_command(void)
{
	const size_t command = (size_t)(given.variables - given.arguments),
		     whole = (size_t)(given.end - given.arguments);

	if (command == own.command_length && memcmp(given.arguments, own.command, command) == 0)
		return 0;
	char *shown = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (shown == MAP_FAILED)
		return -1;
	memcpy(shown, given.arguments, whole);
	own.map.brk = (uintptr_t)sbrk(0);
	own.map.arg_start = (uintptr_t)shown;
	own.map.arg_end = own.map.env_start = (uintptr_t)shown + command;
	own.map.env_end = (uintptr_t)shown + whole;
	return prctl(PR_SET_MM, PR_SET_MM_MAP, &own.map, sizeof(own.map), 0);
}

static void say_start(int init, bool warm)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	say(init, &(struct join_word){
			  .kind = JOIN_STARTS,
			  .warm = warm,
			  .user_us = used.ru_utime.tv_sec * 1000000 + used.ru_utime.tv_usec,
			  .system_us = used.ru_stime.tv_sec * 1000000 + used.ru_stime.tv_usec,
			  .switches_voluntary = used.ru_nvcsw,
			  .switches_forced = used.ru_nivcsw,
		  });
}

static void exec_program(int init)
{
	char **next = given.argv;
	const char *at = given.arguments;

	for (uint32_t i = 0; i < given.order.n_args + given.order.n_env; i++, at += strlen(at) + 1) {
		if (i == given.order.n_args)
			*next++ = NULL;
		*next++ = unconst(at);
	}
	if (given.order.n_env == 0)
		*next++ = NULL;
	*next = NULL;
	execve(given.argv[0], given.argv, given.argv + given.order.n_args + 1);
	warm_program_fail(init, INIT_STEP_EXEC, errno);
}

void warm_program_become(int init, bool exec)
{
	const struct init_start start = {
		.head = &given.order,
		.filter = &given.filter,
		.fds = {given.fds[0], given.fds[1], given.fds[2], given.talk},
		.to_init = init,
		.group_fd = given.group,
		.landlock_fd = given.landlock,
	};

	if (!exec && show_command())
		exec = true;
	say_start(init, !exec);
	const char *failed = init_become(&start);
	if (failed)
		warm_program_fail(init, failed, errno);
	if (exec)
		exec_program(init);
	/* What an exec would have done. */
	explicit_bzero(packet, sizeof(given.head) + given.head.order_length);
	free(given.filter.program.filter);
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) || close_range(given.talk < 0 ? INIT_TALK_FD : INIT_TALK_FD + 1, ~0U, 0))
		_exit(1);
}
