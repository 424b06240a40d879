/*
 * run_session.c - one run from beginning to end, with its streams.
 *
 * The jailer must never wait for a reader, so the program's output goes into two anonymous files, and we copy what has
 * arrived to our own stdout and stderr whenever the jailer says something, and once more at the end. A slow
 * reader of ours so delays only us. Our standard input is not handed over as it is: a terminal or a file of the host
 * has no business inside a jail. It is pumped through a pipe instead, in one poll loop with the connection to the
 * jailer.
 *
 * The first SIGINT, SIGTERM or SIGHUP cancels the run, which then ends in good order with verdict CX. The handler
 * resets itself, so the second one ends this program, and the guest with it, because its connection is gone.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/util.h"

#define CHUNK (64 * 1024)

struct session {
	struct run_outcome *outcome;
	struct jail_once *once;
	bool live;
	struct run_tools *tools; /* NULL: none */
	off_t copied[2]; /* of stdout and stderr */
	int write_errno; /* our own stdout or stderr failed */
	int feed;        /* writing end of the program's standard input, -1: closed */
	char chunk[CHUNK];
	size_t chunk_length, chunk_sent;
};

static int signal_event = -1;
static volatile sig_atomic_t signal_number;

static void on_signal(int number)
{
	int saved = errno;
	uint64_t one = 1;
	ssize_t written;

	signal_number = number;
	written = write(signal_event, &one, sizeof(one));
	(void)written; /* full: it was reported already */
	errno = saved;
}

static int signals_catch(struct err *err)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};

	signal_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (signal_event < 0)
		return err_errno(err, "eventfd");
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		sigaction(numbers[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN); /* a reader that left is an error of write, which cancels the run */
	return 0;
}

/* Copies what arrived in the anonymous file `from` since last time. */
static void stream_copy(struct session *session, int n, int from, int to)
{
	char chunk[16 * 1024];
	ssize_t got;

	while (session->live && !session->write_errno &&
	       (got = pread(from, chunk, sizeof(chunk), session->copied[n])) > 0) {
		if (write_all(to, chunk, (size_t)got)) {
			session->write_errno = errno;
			jail_cancel(session->once->jail);
			return;
		}
		session->copied[n] += got;
	}
}

static void on_file(void *arg, const struct jail_change *change)
{
	struct session *session = arg;

	if (jail_folder(change->name))
		close_pointer(&change->fd);
	else
		run_files_add(&session->outcome->files, change);
}

static void feed_close(struct session *session)
{
	close(session->feed);
	session->feed = -1;
	session->chunk_sent = session->chunk_length = 0;
}

/* Reads a chunk of our standard input when the last one is gone, or passes the rest of it on. */
static void feed_step(struct session *session, short input, short output)
{
	ssize_t n;

	if (output & POLLERR) {
		feed_close(session); /* the program reads no more */
	} else if (input) {
		n = read(STDIN_FILENO, session->chunk, CHUNK);
		session->chunk_sent = 0;
		session->chunk_length = n > 0 ? (size_t)n : 0;
		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
			feed_close(session);
	} else if (output & POLLOUT) {
		n = write(session->feed, session->chunk + session->chunk_sent,
			  session->chunk_length - session->chunk_sent);
		if (n > 0)
			session->chunk_sent += (size_t)n;
		else if (n < 0 && errno != EINTR && errno != EAGAIN)
			feed_close(session);
	}
}

static int loop(struct session *session, struct jail_client *client, struct err *err)
{
	while (!session->once->over) {
		bool pending = session->chunk_sent < session->chunk_length;
		struct pollfd polled[] = {
			{.fd = jail_client_fd(client), .events = jail_client_poll_events(client)},
			{.fd = signal_event, .events = POLLIN},
			{.fd = session->feed >= 0 && !pending ? STDIN_FILENO : -1, .events = POLLIN},
			{.fd = session->feed, .events = pending ? POLLOUT : 0},
			{.fd = session->tools ? session->tools->wait.event : -1, .events = POLLIN},
		};

		if (poll(polled, ARRAY_SIZE(polled), -1) < 0 && errno != EINTR)
			return err_errno(err, "poll");
		if (polled[1].revents & POLLIN) {
			uint64_t count;

			if (read(signal_event, &count, sizeof(count)) == sizeof(count))
				jail_cancel(session->once->jail);
			session->outcome->cancelled_by = signal_number;
		}
		if (session->feed >= 0)
			feed_step(session, polled[2].revents, polled[3].revents);
		if (polled[4].revents & POLLIN)
			run_tools_step(session->tools, session->once->jail);
		/* also when nothing is to be read: what jail_cancel queued must go out */
		int result = jail_client_dispatch(client, err);

		stream_copy(session, 0, session->once->program.stdout_fd, STDOUT_FILENO);
		stream_copy(session, 1, session->once->program.stderr_fd, STDERR_FILENO);
		if (result < 0) /* a result or a failure says more than the lost connection does */
			return session->once->done || session->once->failure.code ? 0 : result;
	}
	return 0;
}

int run_session(struct jail_client *client, const struct run_request *request, struct run_outcome *outcome,
		struct err *err)
{
	struct jail_once *once = &outcome->once;
	struct session session = {
		.outcome = outcome, .once = once, .live = request->live, .tools = request->tools, .feed = -1};
	auto_close int input = -1;
	int result = signals_catch(err);

	*once = (struct jail_once){
		.spec = request->spec,
		.program = request->program,
		.capture = true,
		.files = request->inputs,
		.n_files = request->n_inputs,
		.code_files = request->tools ? request->tools->job->files : NULL,
		.n_code_files = request->tools ? request->tools->job->n_files : 0,
		.file = on_file,
		.arg = &session,
	};
	if (result == 0 && request->forward_stdin) {
		int ends[2];

		if (pipe2(ends, O_CLOEXEC))
			return err_errno(err, "pipe");
		input = ends[0];
		session.feed = ends[1];
		/* the guest is another user: this lets it open /dev/stdin, as shell scripts do */
		if (fcntl(ends[1], F_SETFL, O_NONBLOCK) || fchmod(ends[0], 0444))
			result = err_errno(err, "the pipe of standard input");
	}
	once->program.stdin_fd = input;
	if (result == 0)
		result = jail_once_begin(client, once, err);
	if (result == 0) {
		fd_close(&input); /* the message holds a duplicate: the program must see the end of file */
		once->program.stdin_fd = -1;
		result = loop(&session, client, err);
	}
	jail_close(steal(&once->jail));
	if (session.feed >= 0)
		feed_close(&session);
	if (result == 0 && session.write_errno) {
		errno = session.write_errno;
		return err_errno(err, "writing the output");
	}
	return result;
}
