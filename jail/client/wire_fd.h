/* wire_fd.h - one packet and its descriptors over a SOCK_SEQPACKET unix socket (unix(7), SCM_RIGHTS). */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#define WIRE_FD_LIMIT 72 /* descriptors in one packet */

/* Never blocks, never raises SIGPIPE. 0, or -1 and errno. The descriptors stay the caller's. */
int wire_fd_send(int socket, const void *data, size_t length, const int *fds, size_t n_fds);
/*
 * Bytes of the packet (0: the peer is gone or sent none; descriptors that came without a byte are closed), or -1 and
 * errno; EMSGSIZE: it was longer or had more descriptors (they are closed). Descriptors are close-on-exec and the
 * caller's. `flags` as of recvmsg(2).
 */
struct wire_fds {
	int *fds; /* room for `room` */
	size_t room;
	size_t count; /* received */
};
ssize_t wire_fd_receive(int socket, void *data, size_t size, int flags, struct wire_fds *fds);
