/* limits.c - probes R01 to R08: processor, memory of every kind, bytes of files. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

#define MEBI     (1 << 20)
#define TOO_MUCH (256 * (size_t)MEBI) /* far above the limit of every probe here */
#define MILLION  1000000

static char block[MEBI];

static void *spin(void *arg)
{
	for (volatile unsigned long n = 0;; n++)
		;
	return arg;
}

static void spin_threads(int n)
{
	pthread_t thread;

	for (int i = 1; i < n; i++)
		holds(pthread_create(&thread, NULL, spin, NULL) == 0, "only %d threads", i);
	spin(NULL);
}

static void spin_one(void)
{
	spin_threads(1);
}

static void spin_two(void)
{
	spin_threads(2);
}

static void spin_many(void)
{
	spin_threads(64);
}

static void sleep_long(void)
{
	sleep(3600);
}

static void heap(void)
{
	size_t taken = 0;

	memset(block, 1, sizeof(block));
	for (char *memory; taken < TOO_MUCH && (memory = malloc(MEBI)); taken += MEBI)
		memcpy(memory, block, MEBI);
	holds(taken < TOO_MUCH, "%zu MiB of heap", taken / MEBI);
}

static void fill_file(int fd, const char *what)
{
	size_t taken = 0;

	holds(fd >= 0, "no file in %s", what);
	signal(SIGXFSZ, SIG_IGN);
	for (ssize_t n; taken < TOO_MUCH && (n = write(fd, block, MEBI)) > 0;)
		taken += (size_t)n;
	holds(taken < TOO_MUCH, "%zu MiB in %s", taken / MEBI, what);
}

static void fill_tmp(void)
{
	fill_file(open("/tmp/big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600), "/tmp");
}

static void fill_shm(void)
{
	fill_file(open("/dev/shm/big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600), "/dev/shm");
}

static void fill_memory_files(void)
{
	for (size_t taken = 0; taken < TOO_MUCH; taken += 8 * MEBI) {
		int fd = memfd_create("big", MFD_CLOEXEC);

		for (int i = 0; i < 8; i++)
			if (write(fd, block, MEBI) < 0)
				return;
	}
	holds(false, "%zu MiB in files in memory", TOO_MUCH / MEBI);
}

static void fill_system_v(void)
{
	for (size_t taken = 0; taken < TOO_MUCH; taken += 8 * MEBI) {
		int id = shmget(IPC_PRIVATE, 8 * MEBI, IPC_CREAT | 0600);
		char *memory = id < 0 ? (char *)-1 : shmat(id, NULL, 0);

		if ((long)memory == -1)
			return;
		memset(memory, 1, 8 * MEBI);
	}
	holds(false, "%zu MiB of System V memory", TOO_MUCH / MEBI);
}

static void fill_pipes(void)
{
	size_t taken = 0;
	int ends[2];

	while (taken < TOO_MUCH && pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0) {
		fcntl(ends[1], F_SETPIPE_SZ, MEBI);
		for (ssize_t n; (n = write(ends[1], block, MEBI)) > 0;)
			taken += (size_t)n;
	}
	holds(taken < 64 * MEBI, "%zu MiB in pipes", taken / MEBI);
}

static size_t fill_socket(int fd)
{
	size_t taken = 0;
	int size = 64 * MEBI;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	for (ssize_t n; (n = send(fd, block, 128 * 1024, MSG_DONTWAIT | MSG_NOSIGNAL)) > 0;)
		taken += (size_t)n;
	return taken;
}

static void fill_unix_sockets(void)
{
	size_t taken = 0;
	int ends[2];

	while (taken < TOO_MUCH && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0)
		taken += fill_socket(ends[0]);
	holds(taken < 64 * MEBI, "%zu MiB in unix sockets", taken / MEBI);
}

/* Connections that nobody accepts take no descriptor. */
#define UNACCEPTED 8000
#define QUEUE      128

static int listen_anywhere(struct sockaddr_in *own)
{
	socklen_t length = sizeof(*own);
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), size = 64 * MEBI;

	*own = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	setsockopt(server, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	holds(bind(server, (struct sockaddr *)own, sizeof(*own)) == 0 && listen(server, QUEUE) == 0,
	      "no server on the own loopback");
	getsockname(server, (struct sockaddr *)own, &length);
	return server;
}

static void fill_tcp_sockets(void)
{
	struct sockaddr_in own;
	int server = listen_anywhere(&own);
	size_t taken = 0;

	while (taken < TOO_MUCH) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd < 0 || connect(fd, (struct sockaddr *)&own, sizeof(own)) || accept(server, NULL, NULL) < 0)
			break;
		taken += fill_socket(fd);
	}
	holds(taken < 64 * MEBI, "%zu MiB in TCP sockets", taken / MEBI);
}

static void fill_unaccepted(void)
{
	struct sockaddr_in own;

	for (int n = 0; n < UNACCEPTED; n++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		if (n % QUEUE == 0)
			listen_anywhere(&own);
		connect(fd, (struct sockaddr *)&own, sizeof(own));
		fill_socket(fd);
		close(fd);
	}
}

/* -------- small things, many of them ------------------------------------------------------------------ */
static int make_epoll(void)
{
	return epoll_create1(EPOLL_CLOEXEC);
}

static int make_event(void)
{
	return eventfd(0, EFD_CLOEXEC);
}

static int make_timer_descriptor(void)
{
	return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
}

static int make_timer(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_NONE};
	timer_t timer;

	return timer_create(CLOCK_MONOTONIC, &event, &timer);
}

static int make_mapping(void)
{
	static int n;

	/* Every other one with other rights, so that none is joined with the one before. */
	return mmap(NULL, 4096, n++ % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1
														   : 0;
}

static int make_signal(void)
{
	return sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 1});
}

static void many(int (*make)(void), const char *what)
{
	int made = 0;

	while (made < MILLION && make() >= 0)
		made++;
	holds(made < MILLION, "a million %s", what);
}

static void many_descriptors(void)
{
	many(make_epoll, "epolls");
	for (int fd = 3; fd < 2048; fd++)
		close(fd);
	many(make_event, "eventfds");
	for (int fd = 3; fd < 2048; fd++)
		close(fd);
	many(make_timer_descriptor, "timer descriptors");
}

/* The kernel counts signals that wait, and timers as such, for all jails and the account of the jailer together. */
#define SIGNALS_MOST 512

static void few(int (*make)(void), const char *what)
{
	int made = 0;

	while (made <= SIGNALS_MOST && make() >= 0)
		made++;
	holds(made > 0 && made <= SIGNALS_MOST, "%d %s", made, what);
}

static void many_timers(void)
{
	few(make_timer, "timers");
}

static void many_mappings(void)
{
	many(make_mapping, "mappings");
}

static void many_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	few(make_signal, "queued signals");
}

/* -------- bytes of files ------------------------------------------------------------------------------ */
#define DATA_KB 4096 /* as in the terms below */

static off_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_blocks * 512;
}

static int new_file(const char *path)
{
	unlink(path);
	return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static void by_mapping(const char *path)
{
	int fd = new_file(path);

	pid_t pid = fork();
	if (pid == 0) {
		if (ftruncate(fd, 16 * MEBI))
			_exit(0);
		char *memory = mmap(NULL, 16 * MEBI, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (memory == MAP_FAILED)
			_exit(0);
		for (size_t at = 0; at < 16 * MEBI; at += 4096)
			memory[at] = 0;
		_exit(1);
	}
	int status = 0;
	waitpid(pid, &status, 0);
	holds(status == 0 || WIFSIGNALED(status), "16 MiB through a mapping");
}

static void file_size(void)
{
	static const char source[] = "/tmp/source", path[] = "/data/big";
	int from = open(source, O_RDWR | O_CREAT | O_CLOEXEC, 0600), ends[2], fd;

	signal(SIGXFSZ, SIG_IGN);
	for (int i = 0; i < 8; i++)
		holds(write(from, block, MEBI) == MEBI, "no 8 MiB in /tmp");
	fill_file(new_file(path), "a file of /data");
	fd = new_file(path);
	for (int i = 0; i < 4; i++) {
		off_t start = 0;

		while (sendfile(fd, from, &start, 8 * MEBI) > 0)
			;
	}
	holds(size_of(path) <= DATA_KB * 1024, "%ld bytes by sendfile", (long)size_of(path));
	fd = new_file(path);
	for (loff_t start = 0; copy_file_range(from, &start, fd, NULL, 8 * MEBI, 0) > 0;)
		;
	holds(size_of(path) <= DATA_KB * 1024, "%ld bytes by copy_file_range", (long)size_of(path));
	fd = new_file(path);
	if (pipe2(ends, O_CLOEXEC) == 0)
		while (write(ends[1], block, 4096) > 0 && splice(ends[0], NULL, fd, NULL, 4096, 0) > 0)
			;
	holds(size_of(path) <= DATA_KB * 1024, "%ld bytes by splice", (long)size_of(path));
	fd = new_file(path);
	refused(fallocate(fd, 0, 0, 8 * MEBI), "8 MiB by fallocate");
	by_mapping(path);
	unlink(path);
}

static void disk_total(void)
{
	static const char *const dirs[] = {"/data", "/tmp", "/dev/shm"};
	char path[64];

	for (size_t d = 0; d < sizeof(dirs) / sizeof(dirs[0]); d++) {
		off_t taken = 0;

		for (int i = 0; i < 1000; i++) {
			snprintf(path, sizeof(path), "%s/%d", dirs[d], i);
			int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
			ssize_t n = fd < 0 ? -1 : write(fd, block, 100 * 1024);
			close(fd);
			if (n < 0)
				break;
			taken += n;
		}
		holds(taken > 0 && taken <= DATA_KB * 1024, "%ld bytes in many files of %s", (long)taken, dirs[d]);
	}
}

const struct probe probes_limits[] = {
	PROBE_TERMS("R01a", "spin", spin_one, "ends=TO:cpu cpu_ms=200 wall_ms=60000"),
	PROBE_TERMS("R01b", "spin in 2 threads", spin_two, "ends=TO:cpu cpu_ms=200 wall_ms=60000 cpu_percent=400"),
	PROBE_TERMS("R01c", "spin in 64 threads", spin_many,
		    "ends=TO:cpu cpu_ms=200 wall_ms=60000 pids=80 cpu_percent=400 else=weaker heavy=1"),
	PROBE_TERMS("R02", "sleep", sleep_long, "ends=TO:wall wall_ms=200 cpu_below_ms=150"),
	PROBE_TERMS("R03a", "memory: heap", heap, "ends=ML:memory memory_mb=48 else=OK"),
	PROBE_TERMS("R04a", "memory: files in /tmp", fill_tmp, "ends=ML:memory memory_mb=32 else=weaker"),
	PROBE_TERMS("R04b", "memory: files in memory", fill_memory_files, "ends=ML:memory memory_mb=32 else=weaker"),
	PROBE_TERMS("R04c", "memory: shared memory", fill_shm, "ends=ML:memory memory_mb=32 else=weaker"),
	PROBE_TERMS("R04d", "memory: System V memory", fill_system_v, "ends=ML:memory memory_mb=32 else=weaker"),
	PROBE_TERMS("R04e", "memory: pipes", fill_pipes, "ends=ML:memory memory_mb=32 else=weaker"),
	PROBE_TERMS("R04f", "memory: unix sockets", fill_unix_sockets, "ends=ML:memory memory_mb=32 else=weaker"),
	PROBE_TERMS("R04g", "memory: TCP sockets", fill_tcp_sockets, "also=ML memory_mb=48 else=weaker"),
	PROBE_TERMS("R04h", "memory: TCP connections that nobody accepts", fill_unaccepted,
		    "also=ML memory_mb=128 else=weaker"),
	PROBE("R05a", "kernel memory: descriptors of many kinds", many_descriptors),
	PROBE("R05b", "kernel memory: timers", many_timers),
	PROBE_TERMS("R05c", "kernel memory: mappings", many_mappings, "heavy=1"),
	PROBE("R05d", "kernel memory: queued signals", many_signals),
	PROBE_TERMS("R07", "a file larger than /data, in every way", file_size, "data_kb=4096"),
	PROBE_TERMS("R08", "many files, together larger than the limits", disk_total,
		    "kept=* data_kb=4096 tmp_kb=4096"),
	{0},
};
