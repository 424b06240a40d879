/* wire_fd.c - see wire_fd.h. */
#include "wire_fd.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	char bytes[CMSG_SPACE((WIRE_FD_LIMIT + 1) * sizeof(int))];
	struct cmsghdr align;
};

int wire_fd_send(int socket, const void *data, size_t length, const int *fds, size_t n_fds)
{
	union control control = {.bytes = {0}};
	struct iovec iov = {.iov_len = length};
	struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	/* iov_base is not const because the same struct serves receiving. */
	memcpy(&iov.iov_base, &data, sizeof(data));
	if (n_fds > WIRE_FD_LIMIT) {
		errno = EINVAL;
		return -1;
	}
	if (n_fds) {
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&header);
		if (!c) /* there is room: it cannot be */
			abort();
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	do
		n = sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -1 : 0;
}

static size_t take(struct msghdr *header, int *fds, size_t max)
{
	size_t taken = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (taken < max)
				fds[taken++] = fd;
			else {
				close(fd);
				header->msg_flags |= MSG_CTRUNC;
			}
		}
	}
	return taken;
}

ssize_t wire_fd_receive(int socket, void *data, size_t size, int flags, struct wire_fds *fds)
{
	union control control;
	struct iovec iov = {.iov_base = data, .iov_len = size};
	struct msghdr header = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	bool reset = false;
	ssize_t n;

	/* A peer that closed with something unread is reported once as a reset; what it had sent before is still there.
	 * */
	do {
		n = recvmsg(socket, &header, flags | MSG_CMSG_CLOEXEC);
		reset = !reset && n < 0 && errno == ECONNRESET;
	} while (reset || (n < 0 && errno == EINTR));
	if (n < 0)
		return -1;
	fds->count = take(&header, fds->fds, fds->room);
	bool refused = header.msg_flags & (MSG_TRUNC | MSG_CTRUNC);
	/* There is room for every descriptor that a packet can carry: the kernel cut them for want of numbers. */
	bool too_few = (header.msg_flags & MSG_CTRUNC) && fds->count < fds->room;

	/* A packet without a byte looks like the end, but may carry descriptors. */
	while ((refused || n == 0) && fds->count > 0)
		close(fds->fds[--fds->count]);
	if (refused)
		errno = too_few ? EMFILE : EMSGSIZE;
	return refused ? -1 : n;
}
