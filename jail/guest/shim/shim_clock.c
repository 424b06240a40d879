/* shim_clock.c - the clock of a deterministic run, and how it is read: see shim.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/times.h>
#include <unistd.h>

#include "shim.h"

#define OURS       "/code/.shim.so"
#define CLOCK      "/code/.shim.clock"
#define STEP_NS    100
#define BOOTED_NS  SHIM_SECOND_NS /* before the run, by the monotonic clocks: less than any machine's */
#define FOREVER_NS (INT64_C(1) << 60)

static _Atomic int64_t began_ns; /* 0: not looked up */
/* Where the longest wait came to its end: in a file that all processes of the jail share, else for us alone. */
static _Atomic int64_t waited_alone_ns;
static _Atomic(_Atomic int64_t *) waited_ns;
static __thread int64_t own_ns __attribute__((tls_model("initial-exec"))); /* this thread's */

static int64_t began(void)
{
	int64_t at = atomic_load(&began_ns);
	struct stat file;

	if (at == 0) {
		at = stat(OURS, &file) == 0 ? file.st_mtim.tv_sec * SHIM_SECOND_NS + file.st_mtim.tv_nsec
					    : SHIM_SECOND_NS;
		atomic_store(&began_ns, at);
	}
	return at;
}

/* Before anything of the program is there; what comes even earlier counts for itself. */
__attribute__((constructor)) static void share_waits(void)
{
	int before = errno, fd = open(CLOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	void *shared = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(waited_alone_ns)) == 0)
		shared = mmap(NULL, sizeof(waited_alone_ns), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	atomic_store(&waited_ns, shared == MAP_FAILED ? &waited_alone_ns : shared);
	errno = before;
}

static _Atomic int64_t *waits(void)
{
	_Atomic int64_t *waited = atomic_load(&waited_ns);

	return waited ? waited : &waited_alone_ns;
}

int64_t shim_passed(void)
{
	int64_t waited = atomic_load(waits());

	own_ns = (own_ns > waited ? own_ns : waited) + STEP_NS;
	return own_ns;
}

void shim_reach(int64_t at)
{
	int64_t waited = atomic_load(waits());

	own_ns = own_ns > at ? own_ns : at;
	while (waited < own_ns && !atomic_compare_exchange_weak(waits(), &waited, own_ns))
		;
}

int64_t shim_nanoseconds(const struct timespec *time)
{
	if (time->tv_sec > FOREVER_NS / SHIM_SECOND_NS)
		return FOREVER_NS;
	return time->tv_sec * SHIM_SECOND_NS + time->tv_nsec;
}

int64_t shim_own(void)
{
	return own_ns;
}

void shim_begin_thread(int64_t ns)
{
	own_ns = ns;
}

struct timespec shim_timespec(int64_t ns)
{
	ns = ns < 0 ? 0 : ns;
	return (struct timespec){.tv_sec = ns / SHIM_SECOND_NS, .tv_nsec = ns % SHIM_SECOND_NS};
}

int64_t shim_origin(clockid_t id)
{
	switch (id) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
	case CLOCK_TAI:
		return began();
	case CLOCK_PROCESS_CPUTIME_ID:
	case CLOCK_THREAD_CPUTIME_ID:
		return 0;
	default:
		return BOOTED_NS;
	}
}

EXPORT int clock_gettime(clockid_t id, struct timespec *ret)
{
	*ret = shim_timespec(shim_origin(id) + shim_passed());
	return 0;
}

EXPORT int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
	struct timespec now = shim_timespec(began() + shim_passed());

	(void)zone;
	*ret = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
	return 0;
}

EXPORT time_t time(time_t *ret)
{
	time_t now = (began() + shim_passed()) / SHIM_SECOND_NS;

	if (ret)
		*ret = now;
	return now;
}

EXPORT int timespec_get(struct timespec *ret, int base)
{
	if (base != TIME_UTC)
		return 0;
	*ret = shim_timespec(began() + shim_passed());
	return base;
}

EXPORT clock_t clock(void)
{
	return shim_passed() / (SHIM_SECOND_NS / CLOCKS_PER_SEC);
}

EXPORT clock_t times(struct tms *ret)
{
	clock_t now = shim_passed() / (SHIM_SECOND_NS / 100);

	if (ret)
		*ret = (struct tms){.tms_utime = now};
	return now;
}

/* Memory is what was measured. */
EXPORT int getrusage(__rusage_who_t who, struct rusage *ret)
{
	REAL(getrusage)
	int result = real(who, ret);
	struct timespec now = shim_timespec(shim_passed());

	if (result == 0) {
		ret->ru_utime = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
		ret->ru_stime = (struct timeval){.tv_sec = 0};
	}
	return result;
}
