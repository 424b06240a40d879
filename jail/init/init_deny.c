/*
 * init_deny.c - refused system calls that a person should hear of: the filter hands them to init, which says no and
 * remembers the number.
 *
 * It costs 25 microseconds a call against 0.1, so only the calls of syscalls_reported come here, and since init lives
 * in the jail's cgroup, a flood of them is charged to the guest. One call is let through after a look at it: a netlink
 * socket of the protocol ROUTE, with which os.networkInterfaces() and if_nameindex() list the loopback. Its family and
 * protocol are in registers, which the guest cannot change between the look and the call; that is why no other call may
 * ever be continued like this.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "init.h"
#include "lib/base/util.h"

/* The kernel writes structs of its own version's size: room for what they may grow to. */
#define NOTIFICATION_MAX 512

union notification {
	struct seccomp_notif call;
	char room[NOTIFICATION_MAX];
};
union answer {
	struct seccomp_notif_resp answer;
	char room[NOTIFICATION_MAX];
};

static bool is_route_socket(const struct seccomp_data *data)
{
	return data->nr == SYS_socket && (uint32_t)data->args[0] == AF_NETLINK &&
	       (uint32_t)data->args[2] == NETLINK_ROUTE;
}

/* Was it refused before? */
static bool remember(struct init_denied *denied, int number)
{
	uint64_t *word = &denied->seen[number / 64], bit = UINT64_C(1) << (number % 64);
	bool again = *word & bit;

	*word |= bit;
	return again;
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
	int number = got.call.data.nr;
	reply.answer.id = got.call.id;
	if (is_route_socket(&got.call.data))
		reply.answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else
		reply.answer.error = -EPERM;
	if (reply.answer.error && number >= 0 && number < INIT_CALLS_MAX && !remember(denied, number))
		tell(number);
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply); /* ENOENT: dead meanwhile */
}
