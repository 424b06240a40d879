/*
 * init_deny.c - refused system calls that a person should hear of: the filter hands them to init, which says no and
 * remembers the number. Locks come here, too, and are let through as long as there are not too many.
 *
 * It costs 25 microseconds a call against 0.1, so only the calls of syscalls_reported and locks come here, and since
 * init lives in the jail's cgroup, a flood of them is charged to the guest. One of the others is let through after a
 * look at it: a netlink socket of the protocol ROUTE, with which os.networkInterfaces() and if_nameindex() list the
 * loopback. Its family and protocol, and that a call is one for a lock, are in registers, which the guest cannot change
 * between the look and the call; that is why nothing else may ever be continued like this.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init.h"
#include "lib/base/util.h"

/* The kernel writes structs of its own version's size: room for what they may grow to. */
#define NOTIFICATION_MAX   512
#define NOTIF_SET_FLAGS    _IOW('!', 4, uint64_t) /* of a newer linux/seccomp.h */
#define NOTIF_SYNC_WAKE_UP 1UL
#define LOCKS_TEXT_MAX     (1 << 20)
#define LOCKS_FULL_US      100000
#define LOCKS_READINGS     4

union notification {
	struct seccomp_notif call;
	char room[NOTIFICATION_MAX];
};
union answer {
	struct seccomp_notif_resp answer;
	char room[NOTIFICATION_MAX];
};

/* Locks that programs of this pid namespace hold or wait for; the kernel lists no others, but those of open file
 * descriptions (OFD), which guests cannot take. */
static int read_locks(void)
{
	auto_free char *text = NULL;
	size_t length;
	int n = 0;

	if (lseek(INIT_LOCKS_FD, 0, SEEK_SET) || read_fd(INIT_LOCKS_FD, LOCKS_TEXT_MAX, &text, &length, NULL) < 0)
		return INIT_LOCKS_MAX; /* more of them than can be read */
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
		n += strncmp(line + strcspn(line, " "), " OFDLCK", 7) != 0;
	return n;
}

/* The kernel prints its list of all locks page by page and continues by position: when others close files between two
 * pages, it leaves out as many of ours. So two readings must agree, or the largest of LOCKS_READINGS counts. */
static int count_locks(void)
{
	int most = read_locks();

	for (int reading = 1, before = most; reading < LOCKS_READINGS && most < INIT_LOCKS_MAX; reading++) {
		int n = read_locks();

		most = MAX(most, n);
		if (n == before)
			break;
		before = n;
	}
	return most;
}

/* Each call takes one lock at most, or splits one, so they are counted only when so many calls were made that
 * there could be too many. Unlocking is such a call, too: nothing but the kernel can look at what a pointer leads
 * to. To count them holds up the host's locks, so a guest that continues to ask when none is left does not make
 * init count each time. */
static bool may_lock(struct init_denied *denied)
{
	const int64_t now_us = denied->locks_left ? 0 : clock_monotonic_us();

	if (denied->locks_left == 0 && now_us >= denied->full_until_us) {
		denied->locks_left = MAX(INIT_LOCKS_MAX - count_locks(), 0);
		denied->full_until_us = denied->locks_left ? 0 : now_us + LOCKS_FULL_US;
	}
	if (denied->locks_left == 0)
		return false;
	denied->locks_left--;
	return true;
}

/* Init then runs on the caller's processor, which it is going to wait for: three times as fast. Since Linux 6.6. */
void init_deny_prepare(int listener)
{
	if (listener >= 0)
		ioctl(listener, NOTIF_SET_FLAGS, NOTIF_SYNC_WAKE_UP);
}

void init_deny(int listener, struct init_denied *denied, void (*tell)(int number))
{
	union notification got;
	union answer reply;

	memset(&got, 0, sizeof(got));
	memset(&reply, 0, sizeof(reply));
	/* Does not block after poll(2) said that one waits; ENOENT: the caller is dead already. */
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &got))
		return;
	const struct seccomp_data *call = &got.call.data;
	const bool lock = call->nr == SYS_fcntl || call->nr == SYS_flock;
	const bool route = call->nr == SYS_socket && (uint32_t)call->args[0] == AF_NETLINK &&
			   (uint32_t)call->args[2] == NETLINK_ROUTE;
	reply.answer.id = got.call.id;
	if (lock ? may_lock(denied) : route)
		reply.answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else
		reply.answer.error = lock ? -ENOLCK : -EPERM;
	if (reply.answer.error && !lock && call->nr >= 0 && call->nr < INIT_CALLS_MAX) {
		uint64_t *word = &denied->seen[call->nr / 64], bit = UINT64_C(1) << (call->nr % 64);

		if (!(*word & bit))
			tell(call->nr);
		*word |= bit;
	}
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply); /* ENOENT: dead meanwhile */
}
