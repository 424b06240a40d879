/*
 * init_join.c - a process that is to become the jail's first program joins the jail from outside (jail/warm): init
 * hears when it waits, and gives it the program instead of making a process. See join.h.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "jail/client/wire_fd.h"
#include "join.h"
#include "lib/base/secret.h"
#include "lib/base/util.h"

/* The next word: true; false: it ended, or is no process of ours any more. A listener comes with a byte of its own
 * (init_become). */
static bool hear(int from, struct join_word *ret, int *ret_listener)
{
	int fd = -1;
	struct wire_fds taken = {.fds = &fd, .room = 1};
	const ssize_t n = wire_fd_receive(from, ret, sizeof(*ret), 0, &taken);

	if (n == 1) {
		ret->kind = JOIN_LISTENER;
		fd_close(ret_listener);
		*ret_listener = steal_fd(&fd);
	}
	fd_close(&fd);
	return n == 1 || n == (ssize_t)sizeof(*ret);
}

bool init_join_parked(struct init_joined *joined, struct init_report *ret)
{
	struct join_word word;
	int none = -1;

	*ret = (struct init_report){.kind = INIT_JOINED};
	const bool heard = hear(joined->fd, &word, &none);
	fd_close(&none);
	if (heard && word.kind == JOIN_PARKED) {
		joined->pid = word.pid;
		return true;
	}
	ret->error = heard ? word.error : ECHILD;
	snprintf(ret->step, sizeof(ret->step), "%s", heard ? word.step : "wait for its program");
	init_join_close(joined);
	return false;
}

void init_join_close(struct init_joined *joined)
{
	fd_close(&joined->fd);
	joined->pid = -1;
}

static int send_program(const struct init_joined *joined, const struct init_start *start,
			const struct init_hand_over *what)
{
	const struct sock_fprog *filter = &start->filter->program;
	const size_t filter_length = filter->len * sizeof(*filter->filter);
	const struct join_program head = {
		.has_talk = start->fds[INIT_TALK_FD] >= 0,
		.has_group = start->group_fd >= 0,
		.has_landlock = start->landlock_fd >= 0,
		.exec = what->exec,
		.order_length = (uint32_t)what->length,
		.n_filter = filter->len,
		.n_notify = (uint32_t)start->filter->n_notify,
	};
	const size_t whole = sizeof(head) + what->length + filter_length;
	auto_secret char *packet = secret_alloc(whole); /* variables of a program may be secret */
	int fds[INIT_TALK_FD + 3];
	size_t n = 0;

	for (int i = 0; i < INIT_TALK_FD + head.has_talk; i++)
		fds[n++] = start->fds[i];
	if (head.has_group)
		fds[n++] = start->group_fd;
	if (head.has_landlock)
		fds[n++] = start->landlock_fd;
	memcpy(packet, &head, sizeof(head));
	memcpy(packet + sizeof(head), what->order, what->length);
	memcpy(packet + sizeof(head) + what->length, filter->filter, filter_length);
	return wire_fd_send(joined->fd, packet, whole, fds, n);
}

pid_t init_join_start(struct init_joined *joined, const struct init_start *start, const struct init_hand_over *what,
		      int *ret_listener, struct init_report *ret_before, const char **ret_failed)
{
	static struct join_word word; /* the caller has the step's name of it */
	bool started = false, failed = send_program(joined, start, what) < 0 && errno != EPIPE && errno != ECONNRESET;
	int error = errno;

	*ret_failed = "hand the program over";
	while (!failed && hear(joined->fd, &word, ret_listener)) {
		if (word.kind == JOIN_FAILED) {
			*ret_failed = word.step;
			error = word.error;
			failed = true;
		} else if (word.kind == JOIN_STARTS) {
			started = true;
			*ret_before = (struct init_report){.warm = word.warm,
							   .user_us = word.user_us,
							   .system_us = word.system_us,
							   .switches_voluntary = word.switches_voluntary,
							   .switches_forced = word.switches_forced};
		}
	}
	const pid_t pid = joined->pid;
	init_join_close(joined);
	errno = failed ? error : 0;
	return started && !failed ? pid : failed ? -1 : 0;
}
