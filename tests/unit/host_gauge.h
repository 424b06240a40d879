/*
 * host_gauge.h - for tests of the jail: what the whole host spends on memory and tables that no limit of a jail counts,
 * read before a probe, all the time while it runs (and is frozen), and after it.
 *
 * Each meter is one number of the host and how far a single jail may raise it: memory of the kernel as far as the
 * jail's own memory limit, tables as far as docs/isolation.md promises. What the host's other programs do meanwhile is
 * in the numbers, too: so there is some slack, and who finds a meter too high measures again before he believes it. A
 * meter that this account may not read stays 0.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <unistd.h>

#include "host_count.h"
#include "jail/init/init.h"
#include "patience.h"

#define GAUGE_TEXT     (8 << 20)
#define GAUGE_GAP_MS   10
#define GAUGE_SLACK    (INT64_C(64) << 20) /* bytes of the kernel's memory that others may take meanwhile */
#define GAUGE_SIGNALS  512                 /* queued signals and timers of a jail */
#define GAUGE_OTHERS   64                  /* signals, locks of other programs */
#define GAUGE_REQUESTS 4096                /* asynchronous requests of other programs; a jail has none */
#define GAUGE_FILTERS  (INT64_C(8) << 20)  /* BPF of the jails' own filters */

enum gauge_meter {
	GAUGE_SLAB,
	GAUGE_UNRECLAIMABLE,
	GAUGE_PERCPU,
	GAUGE_TCP,
	GAUGE_UDP,
	GAUGE_BPF,
	GAUGE_HUGE,
	GAUGE_AIO,
	GAUGE_PENDING,
	GAUGE_LOCKS,
	GAUGE_METERS
};
static const char *const gauge_names[] = {
	"slab",       "slab that cannot be reclaimed", "per-CPU memory",  "TCP buffers", "UDP buffers", "BPF",
	"huge pages", "asynchronous requests",         "pending signals", "file locks"};

struct gauge_values {
	int64_t of[GAUGE_METERS];
};
struct gauge {
	struct gauge_values before, most;
	int stop; /* eventfd */
	int lock; /* of GAUGE_LOCK; -1: none */
	pthread_t thread;
};

/* -------- reading ------------------------------------------------------------------------------------- */
/* The number behind `word` in the line that begins with `line`; 0: there is none. */
static inline int64_t gauge_find(const char *text, const char *line, const char *word)
{
	const char *at = str_starts(text, line) ? text : NULL;
	auto_free char *begin = xasprintf("\n%s", line);

	if (!at && (at = strstr(text, begin)))
		at++;
	if (!at)
		return 0;
	at += strlen(line);
	if (word[0]) {
		const char *found = strstr(at, word);

		if (!found || found > at + strcspn(at, "\n"))
			return 0;
		at = found + strlen(word);
	}
	return strtoll(at, NULL, 10);
}

static inline char *gauge_text(const char *path)
{
	char *text = NULL;
	size_t length;

	return read_file_at(AT_FDCWD, path, GAUGE_TEXT, &text, &length, NULL) < 0 ? xstrdup("") : text;
}

/* Bytes of the lines of /proc/vmallocinfo that are of BPF: "BEGIN-END BYTES CALLER". */
static inline int64_t gauge_bpf(void)
{
	auto_free char *text = gauge_text("/proc/vmallocinfo");
	int64_t sum = 0;

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *caller = memmem(line, strcspn(line, "\n"), " bpf_", 5), *bytes = strchr(line, ' ');

		if (caller && bytes)
			sum += strtoll(bytes, NULL, 10);
	}
	return sum;
}

static inline struct gauge_values gauge_read(void)
{
	auto_free char *memory = gauge_text("/proc/meminfo");
	auto_free char *sockets = gauge_text("/proc/self/net/sockstat");
	auto_free char *aio = gauge_text("/proc/sys/fs/aio-nr");
	auto_free char *status = gauge_text("/proc/self/status");
	const int64_t page = sysconf(_SC_PAGESIZE);

	return (struct gauge_values){.of = {
					     [GAUGE_SLAB] = gauge_find(memory, "Slab:", "") * 1024,
					     [GAUGE_UNRECLAIMABLE] = gauge_find(memory, "SUnreclaim:", "") * 1024,
					     [GAUGE_PERCPU] = gauge_find(memory, "Percpu:", "") * 1024,
					     [GAUGE_TCP] = gauge_find(sockets, "TCP:", " mem ") * page,
					     [GAUGE_UDP] = gauge_find(sockets, "UDP:", " mem ") * page,
					     [GAUGE_BPF] = gauge_bpf(),
					     [GAUGE_HUGE] = gauge_find(memory, "HugePages_Total:", "") +
							    gauge_find(memory, "HugePages_Rsvd:", "") -
							    gauge_find(memory, "HugePages_Free:", ""),
					     [GAUGE_AIO] = strtoll(aio, NULL, 10),
					     [GAUGE_PENDING] = gauge_find(status, "SigQ:", ""),
					     [GAUGE_LOCKS] = (int64_t)count_lines("/proc/locks"),
				     }};
}

/* -------- bounds -------------------------------------------------------------------------------------- */
/* How far so many jails with this memory limit may raise each meter; 0: none may stay behind, but for the slack. */
static inline struct gauge_values gauge_bounds(int64_t memory_bytes, int64_t jails)
{
	const int64_t memory = memory_bytes * jails + GAUGE_SLACK;

	return (struct gauge_values){.of = {
					     [GAUGE_SLAB] = memory,
					     [GAUGE_UNRECLAIMABLE] = memory,
					     [GAUGE_PERCPU] = memory,
					     [GAUGE_TCP] = memory,
					     [GAUGE_UDP] = memory,
					     [GAUGE_BPF] = GAUGE_FILTERS * MAX(jails, 1),
					     [GAUGE_HUGE] = 0,
					     [GAUGE_AIO] = GAUGE_REQUESTS,
					     [GAUGE_PENDING] = GAUGE_SIGNALS * jails + GAUGE_OTHERS,
					     [GAUGE_LOCKS] = INIT_LOCKS_MAX * jails + GAUGE_OTHERS,
				     }};
}

/* The first meter that rose above its bound; GAUGE_METERS: none. */
static inline enum gauge_meter gauge_above(const struct gauge_values *before, const struct gauge_values *now,
					   int64_t memory_bytes, int64_t jails)
{
	const struct gauge_values bounds = gauge_bounds(memory_bytes, jails);
	int i = 0;

	while (i < GAUGE_METERS && now->of[i] - before->of[i] <= bounds.of[i])
		i++;
	return (enum gauge_meter)i;
}

/* -------- all the time -------------------------------------------------------------------------------- */
static inline void gauge_note(struct gauge *gauge)
{
	const struct gauge_values now = gauge_read();

	for (size_t i = 0; i < GAUGE_METERS; i++)
		gauge->most.of[i] = MAX(gauge->most.of[i], now.of[i]);
}

static inline void *gauge_watch(void *arg)
{
	struct gauge *gauge = arg;
	struct pollfd stop = {.fd = gauge->stop, .events = POLLIN};

	while (poll(&stop, 1, GAUGE_GAP_MS) == 0)
		gauge_note(gauge);
	return NULL;
}

/* The meters are the whole host's, and suites run at the same time. Those that read them share this lock, the one that
 * raises them on purpose (test_jail_gauge) holds it alone. Where it cannot be had there is none. */
#define GAUGE_LOCK "/tmp/sallyport-host-gauge.lock"
static bool gauge_alone;

static inline int gauge_lock(void)
{
	int fd = open(GAUGE_LOCK,
		      O_RDONLY | O_CLOEXEC); /* without O_CREAT: it may be another user's, in a sticky folder */

	if (fd < 0)
		fd = open(GAUGE_LOCK, O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
	while (fd >= 0 && flock(fd, gauge_alone ? LOCK_EX : LOCK_SH) < 0 && errno == EINTR)
		;
	return fd;
}

/* 0, or -1: no thread can be had. gauge_stop ends it. */
static inline int gauge_start(struct gauge *gauge)
{
	const int lock = gauge_lock();

	*gauge = (struct gauge){.before = gauge_read(), .stop = eventfd(0, EFD_CLOEXEC), .lock = lock};
	gauge->most = gauge->before;
	return gauge->stop < 0 || pthread_create(&gauge->thread, NULL, gauge_watch, gauge) ? -1 : 0;
}

static inline void gauge_stop(struct gauge *gauge)
{
	const uint64_t one = 1;

	while (write(gauge->stop, &one, sizeof(one)) < 0)
		;
	pthread_join(gauge->thread, NULL);
	close(gauge->stop);
	gauge_note(gauge);
	if (gauge->lock >= 0)
		close(gauge->lock);
}

/* The meter that rose too far while it was watched, or that does not fall again; GAUGE_METERS: none. *ret_by: how far.
 */
static inline enum gauge_meter gauge_wrong_of(const struct gauge *gauge, int64_t memory_bytes, int64_t jails,
					      int64_t *ret_by)
{
	enum gauge_meter meter = gauge_above(&gauge->before, &gauge->most, memory_bytes, jails);
	struct gauge_values now = gauge->most;
	int64_t until = 0;

	if (meter == GAUGE_METERS)
		do {
			now = gauge_read();
			meter = gauge_above(&gauge->before, &now, 0, 0);
		} while (meter != GAUGE_METERS && patience_left(&until));
	*ret_by = meter == GAUGE_METERS ? 0 : now.of[meter] - gauge->before.of[meter];
	return meter;
}

static inline enum gauge_meter gauge_wrong(const struct gauge *gauge, int64_t memory_bytes, int64_t *ret_by)
{
	return gauge_wrong_of(gauge, memory_bytes, 1, ret_by);
}
