/*
 * init_wait.c - init waits for a program, and serves what calls it meanwhile: orphans that end, calls that the filter
 * hands over, the driver of a live jail.
 *
 * In a live jail a program leaves processes that run on in the next run, and their calls still come to the listener
 * that their program had. Listeners are kept until no process is left behind them: a lock would else be refused for
 * ever (ENOSYS). Between runs everything is frozen, and no process calls.
 */
#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "init.h"
#include "lib/base/util.h"

#define KEPT_MAX 32 /* beyond them the oldest is closed, and what is behind it can lock nothing any more */
enum { CHILD, LISTENER, TALK, KEPT };

static int kept[KEPT_MAX];
static size_t n_kept;

static void close_kept(size_t i)
{
	close(kept[i]);
	n_kept--;
	for (; i < n_kept; i++)
		kept[i] = kept[i + 1];
}

void init_wait_keep(struct init_program *program)
{
	if (program->input >= 0 || program->listener < 0) /* a driver keeps its own */
		return;
	if (n_kept == KEPT_MAX)
		close_kept(0);
	kept[n_kept++] = steal_fd(&program->listener);
}

/* Those of earlier programs, from the last to the first, because one may go. */
static void serve_kept(const struct pollfd *wait, struct init_denied *denied, void (*tell)(int number))
{
	for (size_t i = n_kept; i-- > 0;) {
		if (wait[i].revents & POLLIN)
			init_deny(kept[i], denied, tell);
		else if (wait[i].revents)
			close_kept(i);
	}
}

/* The peak is taken from each, because RUSAGE_CHILDREN remembers that of the programs before. */
void init_wait(struct init_program *program, struct init_report *ended, void (*tell)(int number))
{
	struct pollfd wait[KEPT + KEPT_MAX] = {
		[CHILD] = {.fd = INIT_CHILD_FD, .events = POLLIN},
		[LISTENER] = {.fd = program->listener, .events = POLLIN},
		[TALK] = {.fd = program->talk, .events = POLLIN},
	};
	struct init_denied denied = {.seen = {0}};
	struct rusage usage = {.ru_maxrss = 0};
	struct signalfd_siginfo signal;
	int64_t peak = 0;

	for (bool over = false; !over;) {
		pid_t got = wait4(-1, &ended->status, __WALL | WNOHANG, &usage);

		if (got > 0) {
			peak = MAX(peak, usage.ru_maxrss);
			over = got == program->pid;
			continue;
		}
		for (size_t i = 0; i < n_kept; i++)
			wait[KEPT + i] = (struct pollfd){.fd = kept[i], .events = POLLIN};
		if (got < 0 || poll(wait, KEPT + n_kept, -1) < 0) {
			if (errno != EINTR)
				_exit(1);
			continue; /* what poll found the last time is done: asking for a refused call that is not there
				     would block */
		}
		if (wait[CHILD].revents && read(INIT_CHILD_FD, &signal, sizeof(signal)) < 0 && errno != EAGAIN)
			_exit(1);
		if (wait[LISTENER].revents & POLLIN)
			init_deny(program->listener, &denied, tell);
		if (wait[LISTENER].revents & ~POLLIN)
			wait[LISTENER].fd = -1; /* no process is left that could call */
		serve_kept(wait + KEPT, &denied, tell);
		if (wait[TALK].revents && init_driver_answer(program, &ended->status)) {
			ended->ended_us = clock_monotonic_us();
			ended->peak_bytes = peak * 1024;
			return;
		}
		wait[TALK].fd = program->talk;
	}
	ended->gone = program->input >= 0;
	ended->ended_us = clock_monotonic_us();
	ended->peak_bytes = peak * 1024;
}
