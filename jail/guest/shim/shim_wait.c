/*
 * shim_wait.c - what waits: for so long, until a moment, for events: see shim.h.
 *
 * Waiting is real, and takes on the run's clock what was asked for, where it came to its end. Moments are translated to
 * the kernel's clock: of a condition it is not known which clock it goes by, but no machine has been up for as long as
 * it is since 1970. A new thread is here, too, because its clock begins where that of its maker is.
 */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim.h"

#define OF_DAY 500000000 /* a moment of so many seconds is one of the clock of the day */

/* -------- waiting for so long --------------------------------------------------------------------------- */

EXPORT int nanosleep(const struct timespec *wanted, struct timespec *left)
{
	REAL(nanosleep)
	int64_t until = shim_passed() + shim_nanoseconds(wanted);
	int result = real(wanted, left);

	if (result == 0)
		shim_reach(until);
	return result;
}

EXPORT int clock_nanosleep(clockid_t id, int flags, const struct timespec *wanted, struct timespec *left)
{
	int64_t since = (flags & TIMER_ABSTIME) ? shim_origin(id) + shim_passed() : 0;
	struct timespec time = shim_timespec(shim_nanoseconds(wanted) - since);

	return nanosleep(&time, (flags & TIMER_ABSTIME) ? NULL : left) == 0 ? 0 : errno;
}

EXPORT unsigned sleep(unsigned seconds)
{
	struct timespec left = {.tv_sec = seconds};

	return nanosleep(&left, &left) == 0 ? 0 : (unsigned)left.tv_sec;
}

EXPORT int usleep(useconds_t microseconds)
{
	struct timespec time = shim_timespec((int64_t)microseconds * 1000);

	return nanosleep(&time, NULL);
}

/* What waits for events, and got none in all of `ns`. */
static int none_came(int result, int64_t until)
{
	if (result == 0)
		shim_reach(until);
	return result;
}

EXPORT int poll(struct pollfd *fds, nfds_t count, int milliseconds)
{
	REAL(poll)
	int64_t until = shim_passed() + (int64_t)milliseconds * 1000000;

	return none_came(real(fds, count, milliseconds), until);
}

/* What _FORTIFY_SOURCE makes of it. */
EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int milliseconds, size_t size);
int __poll_chk(struct pollfd *fds, nfds_t count, int milliseconds, size_t size)
{
	(void)size;
	return poll(fds, count, milliseconds);
}

EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	REAL(ppoll)
	int64_t until = shim_passed() + (timeout ? shim_nanoseconds(timeout) : 0);

	return none_came(real(fds, count, timeout, mask), until);
}

EXPORT int select(int count, fd_set *restrict to_read, fd_set *restrict to_write, fd_set *restrict failed,
		  struct timeval *restrict timeout)
{
	REAL(select)
	int64_t until = shim_passed() + (timeout ? timeout->tv_sec * SHIM_SECOND_NS + timeout->tv_usec * 1000 : 0);

	return none_came(real(count, to_read, to_write, failed, timeout), until);
}

EXPORT int pselect(int count, fd_set *restrict to_read, fd_set *restrict to_write, fd_set *restrict failed,
		   const struct timespec *restrict timeout, const sigset_t *restrict mask)
{
	REAL(pselect)
	int64_t until = shim_passed() + (timeout ? shim_nanoseconds(timeout) : 0);

	return none_came(real(count, to_read, to_write, failed, timeout, mask), until);
}

EXPORT int epoll_wait(int epoll, struct epoll_event *events, int count, int milliseconds)
{
	REAL(epoll_wait)
	int64_t until = shim_passed() + (int64_t)milliseconds * 1000000;

	return none_came(real(epoll, events, count, milliseconds), until);
}

EXPORT int epoll_pwait(int epoll, struct epoll_event *events, int count, int milliseconds, const sigset_t *mask)
{
	REAL(epoll_pwait)
	int64_t until = shim_passed() + (int64_t)milliseconds * 1000000;

	return none_came(real(epoll, events, count, milliseconds, mask), until);
}

/* -------- waiting until then ---------------------------------------------------------------------------- */

struct deadline {
	int64_t until;         /* shim_passed() of our clock */
	struct timespec there; /* on the kernel's */
};

static struct deadline translate(clockid_t id, const struct timespec *time)
{
	REAL(syscall)
	int64_t now = shim_passed(), until = shim_nanoseconds(time) - shim_origin(id);
	struct timespec kernel = {.tv_sec = 0};

	real(SYS_clock_gettime, id, &kernel);
	return (struct deadline){until, shim_timespec(shim_nanoseconds(&kernel) + until - now)};
}

static int timed_out(int result, int error, const struct deadline *deadline)
{
	if (error == ETIMEDOUT)
		shim_reach(deadline->until);
	return result;
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
				  const struct timespec *restrict time)
{
	REAL(pthread_cond_timedwait)
	struct deadline deadline = translate(time->tv_sec > OF_DAY ? CLOCK_REALTIME : CLOCK_MONOTONIC, time);
	int result = real(condition, mutex, &deadline.there);

	return timed_out(result, result, &deadline);
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, clockid_t id,
				  const struct timespec *restrict time)
{
	REAL(pthread_cond_clockwait)
	struct deadline deadline = translate(id, time);
	int result = real(condition, mutex, id, &deadline.there);

	return timed_out(result, result, &deadline);
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict time)
{
	REAL(pthread_mutex_timedlock)
	struct deadline deadline = translate(CLOCK_REALTIME, time);
	int result = real(mutex, &deadline.there);

	return timed_out(result, result, &deadline);
}

EXPORT int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict time)
{
	REAL(sem_timedwait)
	struct deadline deadline = translate(CLOCK_REALTIME, time);
	int result = real(semaphore, &deadline.there);

	return timed_out(result, result < 0 ? errno : 0, &deadline);
}

EXPORT int sem_clockwait(sem_t *restrict semaphore, clockid_t id, const struct timespec *restrict time)
{
	REAL(sem_clockwait)
	struct deadline deadline = translate(id, time);
	int result = real(semaphore, id, &deadline.there);

	return timed_out(result, result < 0 ? errno : 0, &deadline);
}

struct beginning {
	void *(*run)(void *arg);
	void *arg;
	int64_t own_ns;
};

static void *begin_thread(void *arg)
{
	struct beginning beginning = *(struct beginning *)arg;

	free(arg);
	shim_begin_thread(beginning.own_ns);
	return beginning.run(beginning.arg);
}

EXPORT int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes, void *(*run)(void *),
			  void *restrict arg)
{
	REAL_OF(pthread_create, "GLIBC_2.34")
	struct beginning *beginning = malloc(sizeof(*beginning));

	if (!beginning)
		return EAGAIN;
	*beginning = (struct beginning){run, arg, shim_own()};
	int result = real(thread, attributes, begin_thread, beginning);
	if (result != 0)
		free(beginning);
	return result;
}

/* -------- past libc's functions, by its syscall() ------------------------------------------------------- */

/* FUTEX_WAIT is for so long, the one with a mask until a moment. */
static long wait_futex(long (*real)(long, ...), const long given[6])
{
	struct timespec time;
	struct deadline deadline;
	clockid_t id = (given[1] & FUTEX_CLOCK_REALTIME) ? CLOCK_REALTIME : CLOCK_MONOTONIC;

	memcpy(&time, (const void *)given[3], sizeof(time));
	if ((given[1] & FUTEX_CMD_MASK) == FUTEX_WAIT) {
		int64_t until = shim_passed() + shim_nanoseconds(&time);
		long result = real(SYS_futex, given[0], given[1], given[2], given[3], given[4], given[5]);

		if (result < 0 && errno == ETIMEDOUT)
			shim_reach(until);
		return result;
	}
	deadline = translate(id, &time);
	long result = real(SYS_futex, given[0], given[1], given[2], &deadline.there, given[4], given[5]);
	return timed_out((int)result, result < 0 ? errno : 0, &deadline);
}

EXPORT long syscall(long number, ...)
{
	REAL(syscall)
	long given[6];
	va_list arguments;

	va_start(arguments, number);
	for (int i = 0; i < 6; i++)
		given[i] = va_arg(arguments, long);
	va_end(arguments);
	if (number == SYS_clock_gettime)
		return clock_gettime((clockid_t)given[0], (struct timespec *)given[1]);
	if (number == SYS_getrandom)
		return getrandom((void *)given[0], (size_t)given[1], 0);
	int wait = given[1] & FUTEX_CMD_MASK;
	if (number == SYS_futex && given[3] && (wait == FUTEX_WAIT || wait == FUTEX_WAIT_BITSET))
		return wait_futex(real, given);
	return real(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
