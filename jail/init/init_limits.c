/* init_limits.c - the resource limits of a program, set in the child before it is one: what no cgroup has. See init.h.
 */
#include <sched.h>
#include <sys/personality.h>
#include <sys/resource.h>

#include "init.h"
#include "lib/base/util.h"

#define OPEN_FILES 1024
/* The kernel counts in-flight descriptors (SCM_RIGHTS) per uid; once they exceed a sender's RLIMIT_NOFILE, that sender
 * gets ETOOMANYREFS. A guest that shares its uid with us must not be able to exhaust our limit, so its own limit is
 * lower than the usual 1024 by more than one message (253). */
#define OPEN_FILES_SHARED 512
#define STACK_BYTES       (64 << 20)
#define LOCKED_BYTES      (64 << 10)

static int limit(int resource, rlim_t soft, rlim_t hard)
{
	struct rlimit current, wanted;

	if (getrlimit(resource, &current))
		return -1;
	/* Never above what the host allows us. */
	wanted.rlim_max = MIN(hard, current.rlim_max);
	wanted.rlim_cur = MIN(soft, wanted.rlim_max);
	return setrlimit(resource, &wanted);
}

int init_apply_limits(const struct init_limits *limits)
{
	const struct {
		int resource;
		int64_t value;
	} plain[] = {
		{RLIMIT_CORE, INIT_CORE_BYTES},
		{RLIMIT_NOFILE, limits->shared_id ? OPEN_FILES_SHARED : OPEN_FILES},
		{RLIMIT_MEMLOCK, LOCKED_BYTES},
		{RLIMIT_FSIZE, limits->file_bytes},
		{RLIMIT_RTPRIO, 0},
		{RLIMIT_NICE, 0},
		{RLIMIT_SIGPENDING, limits->signals},
		{RLIMIT_MSGQUEUE, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		if (limit(plain[i].resource, (rlim_t)plain[i].value, (rlim_t)plain[i].value))
			return -1;
	rlim_t stack = limits->stack_bytes < 0 ? RLIM_INFINITY : (rlim_t)limits->stack_bytes;
	if (limit(RLIMIT_STACK, stack, MAX(stack, (rlim_t)STACK_BYTES)))
		return -1;
	/* Not RLIMIT_AS: Node, bun and Go reserve far more addresses than they use, and end at start under any sensible
	 * limit. */
	if (limits->memory_bytes && limit(RLIMIT_DATA, (rlim_t)limits->memory_bytes, (rlim_t)limits->memory_bytes))
		return -1;
	if (limits->pids && limit(RLIMIT_NPROC, (rlim_t)limits->pids, (rlim_t)limits->pids))
		return -1;
	/* The soft limit raises SIGXCPU, the hard one kills. */
	if (limits->cpu_seconds && limit(RLIMIT_CPU, (rlim_t)limits->cpu_seconds, (rlim_t)limits->cpu_seconds + 1))
		return -1;
	return 0;
}

int init_be_deterministic(void)
{
	int before = personality(0xffffffff), processor = sched_getcpu();
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(MAX(processor, 0), &one);
	return before < 0 || personality((unsigned)before | ADDR_NO_RANDOMIZE) < 0 ||
			       sched_setaffinity(0, sizeof(one), &one)
		       ? -1
		       : 0;
}
