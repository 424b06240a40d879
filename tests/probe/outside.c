/* outside.c - probes E04, K20, R16, R17: what would make the host work, remember or wait outside of the jail's limits.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "probe.h"

#define HIGH      (1L << 32)
#define RWF_NOW   8 /* RWF_NOWAIT of linux/fs.h */
#define ACL_USERS 8000

/* Pages of /usr are everybody's: to evict them and to ask for them tells who else reads them. */
static void page_cache(void)
{
	char text[16];
	struct iovec to = {.iov_base = text, .iov_len = sizeof(text)};
	int fd = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);

	holds(preadv2(fd, &to, 1, 0, 0) == sizeof(text), "preadv2 without flags does not read");
	for (long flag = 1; flag <= 1024; flag <<= 1) {
		refused_with(syscall(SYS_preadv2, (long)fd, &to, 1L, 0L, 0L, flag), EOPNOTSUPP, "preadv2 with flag %ld",
			     flag);
		refused_with(syscall(SYS_pwritev2, (long)fd, &to, 1L, 0L, 0L, flag), EOPNOTSUPP,
			     "pwritev2 with flag %ld", flag);
	}
	refused_with(syscall(SYS_preadv2, (long)fd, &to, 1L, 0L, 0L, HIGH | RWF_NOW), EOPNOTSUPP, "preadv2, high bits");
	holds(syscall(SYS_fadvise64, -1L, 0L, 0L, 4L) == 0, "advice about files reaches the kernel");
	close(fd);
}

static void host_tables(void)
{
	static const int refused_advice[] = {5, 6, 7, 12, 13, 20, 21, 26, 99, 100, 101, 102, 1000};
	unsigned long mask = 1, context = 0;
	char *memory = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rlimit limit;

	refused_with(syscall(SYS_mbind, memory, 4096L, (long)MPOL_BIND, &mask, 8L, 0L), EPERM, "mbind");
	refused_with(syscall(SYS_set_mempolicy, (long)MPOL_BIND, &mask, 8L), EPERM, "set_mempolicy");
	refused_with(syscall(SYS_io_setup, 1L, &context), ENOSYS, "io_setup");
	refused_with(syscall(SYS_mq_open, PROBE_MARK, O_CREAT | O_RDWR, 0600, NULL), ENOSYS, "mq_open");
	refused_with((long)mmap(NULL, 2 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0), ENOMEM,
		     "map huge pages");
	refused_with(syscall(SYS_memfd_create, "huge", MFD_CLOEXEC | MFD_HUGETLB), ENOMEM, "a file of huge pages");
	refused_with(syscall(SYS_memfd_create, "huge", HIGH | MFD_HUGETLB), ENOMEM, "a file of huge pages, high bits");
	refused_with(syscall(SYS_shmget, (long)IPC_PRIVATE, 2L << 20, (long)(IPC_CREAT | SHM_HUGETLB | 0600)), ENOMEM,
		     "shared memory of huge pages");
	for (size_t i = 0; i < sizeof(refused_advice) / sizeof(refused_advice[0]); i++) {
		refused_with(madvise(memory, 4096, refused_advice[i]), EINVAL, "advice %d about memory",
			     refused_advice[i]);
		refused_with(syscall(SYS_madvise, memory, 4096L, HIGH | refused_advice[i]), EINVAL,
			     "advice %d about memory, high bits", refused_advice[i]);
	}
	holds(madvise(memory, 4096, MADV_DONTNEED) == 0, "memory cannot be given back");
	holds(getrlimit(RLIMIT_SIGPENDING, &limit) == 0 && limit.rlim_max <= 512, "%lu signals may wait",
	      (unsigned long)limit.rlim_max);
	holds(getrlimit(RLIMIT_MSGQUEUE, &limit) == 0 && limit.rlim_max == 0, "%lu bytes may be in queues",
	      (unsigned long)limit.rlim_max);
}

/* A list of access rights as the kernel takes it: a version, then entries of type, rights and id. */
struct rights {
	uint32_t version;
	struct {
		uint16_t type, rights;
		uint32_t id;
	} entries[ACL_USERS];
};

static void attributes(void)
{
	static const char *const names[] = {"user.x",
					    "security.x",
					    "security.capability",
					    "security.selinux",
					    "trusted.x",
					    "system.posix_acl_access",
					    "system.posix_acl_default"};
	static const char *const places[] = {"/tmp", "/data", "/dev/shm"};
	static struct rights rights = {.version = 2};

	rights.entries[0].type = 1;
	for (int i = 1; i < ACL_USERS - 3; i++) {
		rights.entries[i].type = 2;
		rights.entries[i].id = getuid();
	}
	rights.entries[ACL_USERS - 3].type = 4;
	rights.entries[ACL_USERS - 2].type = 0x10;
	rights.entries[ACL_USERS - 1].type = 0x20;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
			refused_with(setxattr(places[i], names[n], &rights, sizeof(rights), 0), EOPNOTSUPP,
				     "set %s of %s", names[n], places[i]);
			refused_with(lsetxattr(places[i], names[n], &rights, sizeof(rights), 0), EOPNOTSUPP,
				     "set %s of %s itself", names[n], places[i]);
		}
	int fd = open("/tmp/rights", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	refused_with(fsetxattr(fd, "system.posix_acl_access", &rights, sizeof(rights), 0), EOPNOTSUPP,
		     "a list of access rights of 64 KiB");
	refused(syscall(463 /* setxattrat */, fd, "", 0x1000L, "user.x", NULL, 0L), "setxattrat");
}

/* Locks on ranges of one file: refused beyond a thousand, and there again when the file was closed. */
#define LOCKS_MOST  1000
#define LOCKS_WAITS 3000

static int lock_range(int fd, int command, short type, off_t start)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = 1};

	return fcntl(fd, command, &lock);
}

static int take_locks(int fd)
{
	int taken = 0;

	while (taken <= 2 * LOCKS_MOST && lock_range(fd, F_SETLK, F_RDLCK, 2 * taken) == 0)
		taken++;
	return taken;
}

static void locks(void)
{
	int fd = open("/usr/bin/env", O_RDONLY | O_CLOEXEC), more = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);
	int taken = take_locks(fd);

	refused_with(lock_range(fd, F_SETLK, F_RDLCK, 1 << 20), ENOLCK, "a lock more");
	holds(taken > LOCKS_MOST / 2 && taken <= LOCKS_MOST, "%d locks", taken);
	refused_with(flock(more, LOCK_SH), ENOLCK, "flock beyond the locks");
	refused_with(lock_range(fd, F_OFD_SETLK, F_RDLCK, 0), EINVAL, "a lock of an open file description");
	refused_with(syscall(SYS_fcntl, (long)fd, HIGH | F_OFD_SETLK, NULL), EINVAL, "the same, high bits");
	close(fd);
	fd = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);
	int waits = 0, cycles = 0;
	while (flock(more, LOCK_SH) && waits++ < LOCKS_WAITS) /* they are not counted for each call that is refused */
		poll(NULL, 0, 10);
	holds(waits <= LOCKS_WAITS, "no lock is free again");
	while (cycles < 3 * LOCKS_MOST && lock_range(fd, F_SETLK, F_RDLCK, 0) == 0 &&
	       lock_range(fd, F_SETLK, F_UNLCK, 0) == 0)
		cycles++;
	holds(cycles == 3 * LOCKS_MOST, "only %d locks, one after the other", cycles);
}

const struct probe probes_outside[] = {
	PROBE("E04", "which files of /usr others read, by the page cache", page_cache),
	PROBE("K20", "tables and pages that the host has once", host_tables),
	PROBE("R17", "locks without end", locks),
	PROBE("R16", "attributes of files that no limit counts", attributes),
	{0},
};
