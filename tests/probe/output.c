/* output.c - probes O01 to O10, H01 to H14: what comes out of a jail, as output and as files. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

#define MEBI (1 << 20)

static char block[64 * 1024];

static void for_ever(char byte, bool lines)
{
	memset(block, byte, sizeof(block));
	for (size_t i = 99; lines && i < sizeof(block); i += 100)
		block[i] = '\n';
	while (write(1, block, sizeof(block)) >= 0)
		;
}

static void yes(void)
{
	for_ever('y', true);
}

static void one_line(void)
{
	for_ever('x', false);
}

static void both_streams(void)
{
	memset(block, 'x', sizeof(block));
	for (int i = 0; i < 4 * MEBI / (int)sizeof(block); i++)
		holds(write(2, block, sizeof(block)) == sizeof(block), "standard error is full");
	for (int i = 0; i < 4 * MEBI / (int)sizeof(block); i++)
		holds(write(1, block, sizeof(block)) == sizeof(block) && write(2, block, 100) == 100,
		      "a stream is full");
}

static void drip(void)
{
	const struct timespec pause = {.tv_nsec = 20000000};

	while (write(1, ".", 1) == 1)
		nanosleep(&pause, NULL);
}

/* Bytes that are no text, and what a terminal would obey. How they are shown is for the tests of the gateway and the
 * command line. */
static void odd_bytes(void)
{
	static const char bytes[] = "\xe2\x82\0\xed\xa0\x80\x1b]52;c;eA==\x07\x1b[2J\r\xff\xfe\n";

	holds(write(1, bytes, sizeof(bytes) - 1) == (ssize_t)sizeof(bytes) - 1, "bytes are not taken");
}

/* Pipes as large as they come: the kernel's count for one user stops that before it matters. */
static void grow_pipes(void)
{
	int ends[2], large = 0, n = 0;

	for (; n < 1000 && pipe2(ends, O_CLOEXEC) == 0; n++)
		large += fcntl(ends[1], F_SETPIPE_SZ, MEBI) > 0;
	holds(n < 1000, "a thousand pipes");
	holds(large <= 64, "%d pipes of a mebibyte", large);
}

static void reopened(void)
{
	int kept = dup(1);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", kept);
	close(1);
	if (open(path, O_WRONLY) != 1) /* a pipe of somebody else: refused */
		dup2(kept, 1);
}

static void job_descriptors(void)
{
	for (int fd = 3; fd < 1024; fd++)
		refused(write(fd, "{\"verdict\":\"OK\"}\n", 17), "write to descriptor %d", fd);
}

/* -------- files that come out ------------------------------------------------------------------------- */
static int own_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	holds(fd >= 0 && write(fd, "own", 3) == 3, "cannot write %s", path);
	return fd;
}

static void links(void)
{
	holds(symlink("/etc/passwd", "/data/out.txt") == 0 && symlink("/proc/self/environ", "/data/env") == 0 &&
		      symlink("../../etc/passwd", "/data/up") == 0 && symlink("nowhere", "/data/dangling") == 0,
	      "no symbolic links in /data");
	own_file("/data/real");
}

static void links_on_the_way(void)
{
	holds(symlink("/etc", "/data/dir") == 0 && mkdir("/data/sub", 0700) == 0 &&
		      symlink("..", "/data/sub/up") == 0 && symlink("/proc/self/root", "/data/sub/root") == 0,
	      "no symbolic links to directories");
	own_file("/data/sub/real");
}

static void special_files(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/data/sock"};

	holds(mkfifo("/data/fifo", 0600) == 0, "no pipe in /data");
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	holds(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "no socket in /data");
	refused(mknod("/data/device", S_IFCHR | 0666, 0x103), "a device in /data");
}

/* A child goes on while the program ends: files become links, directories become links, and the other way round. */
static void swaps(void)
{
	own_file("/data/file");
	mkdir("/data/dir", 0700);
	own_file("/data/dir/file");
	symlink("/etc/passwd", "/data/link");
	symlink("/etc", "/data/dirlink");
	if (fork() == 0)
		for (;;) {
			rename("/data/link", "/data/spare");
			rename("/data/file", "/data/link");
			rename("/data/spare", "/data/file");
			rename("/data/dirlink", "/data/sparedir");
			rename("/data/dir", "/data/dirlink");
			rename("/data/sparedir", "/data/dir");
		}
	nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
}

static void grows(void)
{
	int fd = own_file("/data/grow");

	memset(block, 'x', sizeof(block));
	if (fork() == 0)
		for (;;)
			if (write(fd, block, 1000) < 0) {
				ftruncate(fd, 3); /* written behind its end it would be sparse and too large */
				lseek(fd, 3, SEEK_SET);
			}
	nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
}

static void sparse(void)
{
	int fd = own_file("/data/z-large");

	signal(SIGXFSZ, SIG_IGN);
	refused(ftruncate(fd, 1L << 40), "a file of a tebibyte");
	holds(ftruncate(fd, 64 * MEBI) == 0, "no sparse file of 64 MiB");
	own_file("/data/small");
}

static void closed(void)
{
	mkdir("/data/closed", 0700);
	fchmod(own_file("/data/closed/file"), 0);
	fchmod(own_file("/data/secret"), 0);
	holds(chmod("/data/closed", 0) == 0, "cannot close a directory");
}

static void many(void)
{
	char path[64];

	for (int i = 0; i < 1000; i++) {
		snprintf(path, sizeof(path), "/data/%d", i);
		holds(mkdir(path, 0700) == 0, "only %d directories", i);
		snprintf(path, sizeof(path), "/data/%d/file", i);
		close(own_file(path));
	}
}

static void owner(void)
{
	refused(fchown(own_file("/data/mine"), 0, 0), "give a file to root");
	holds(chmod("/data/mine", 06777) == 0 && mkdir("/data/set", 02777) == 0, "cannot set bits");
	own_file("/data/set/too");
}

static void groups(void)
{
	gid_t list[64];
	int n = getgroups(64, list);

	for (int i = 0; i < n; i++)
		holds(list[i] == getegid(), "it is in group %u", list[i]);
	refused(setgroups(0, NULL), "setgroups");
	refused(setgid(0), "setgid(0)");
	refused(open("/proc/kmsg", O_RDONLY | O_CLOEXEC), "open what only a group may read");
}

const struct probe probes_output[] = {
	PROBE_TERMS("H01", "files that are links to the host's", links, "kept=real left=dangling,env,out.txt,up"),
	PROBE_TERMS("H02", "directories that are links", links_on_the_way, "kept=sub/real left=dir,sub/root,sub/up"),
	PROBE_TERMS("H03", "pipes, sockets, devices as files", special_files, "left=fifo,sock"),
	PROBE_TERMS("H04", "swap files and links while they are taken", swaps, "kept=* left=*"),
	PROBE_TERMS("H05", "a file that grows while it is taken", grows, "kept=grow"),
	PROBE_TERMS("H06", "a sparse file larger than what is taken", sparse, "kept=small left=z-large"),
	PROBE_TERMS("H08", "files that nobody may read", closed, "kept=closed/file,secret"),
	PROBE_TERMS("H09", "a thousand directories", many, "kept=* heavy=1"),
	PROBE_TERMS("H14", "files that belong to somebody else", owner, "kept=mine,set/too"),
	PROBE_TERMS("H15", "groups of the host", groups, "single=weaker"),
	PROBE_TERMS("O01", "lines without end", yes, "ends=OL:output output_kb=256"),
	PROBE("O02", "one stream while the other is full", both_streams),
	PROBE_TERMS("O03", "a byte now and then", drip, "ends=TO:wall wall_ms=200"),
	PROBE("O04", "bytes that are no text", odd_bytes),
	PROBE_TERMS("O06", "a line without end", one_line, "ends=OL:output output_kb=256"),
	PROBE("O07", "pipes as large as they come", grow_pipes),
	PROBE("O09", "close and reopen standard output", reopened),
	PROBE("O10", "write to descriptors of the jailer", job_descriptors),
	{0},
};
