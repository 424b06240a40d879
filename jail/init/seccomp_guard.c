/*
 * seccomp_guard.c - the beginning of every filter of a guest: what takes two comparisons, which libseccomp 2.5.4 cannot
 * be trusted with.
 *
 *   protocols    of IPv4 and IPv6 TCP and UDP: others (MPTCP, SCTP, DCCP, SMC …) have had holes of their own, and the
 *                host would load
 *                modules for whoever asks. Programs hear what a kernel without the protocol says
 *   init         has the guest's id, so the kernel would let a guest make it idle, or leave it one processor. As
 *                whoever ends the run
 *                it would then wait for the guest's own processes: minutes beyond a limit
 *   ULP, ENCAP   TLS and ESP within the kernel (kTLS, XFRM) on sockets that are otherwise the guest's
 *
 * A table with one place a line, in which a jump names the place that it goes to; what does not jump goes on to the
 * next line. Calls that are not named come to the end without a look at their arguments, which the kernel knows ahead
 * (since 5.11).
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "seccomp.h"

#define INIT            1
#define IO_PROCESS_USER 3 /* IOPRIO_WHO_USER of linux/ioprio.h */
#define LOW(n)                                                                                                         \
	(offsetof(struct seccomp_data, args) + (n) * sizeof(uint64_t) +                                                \
	 (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0))

#define ARGUMENT(at, n)      [at] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOW(n))
#define IF(at, value, place) [at] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, (place) - (at) - 1, 0)
#define GO(at, place)        [at] = BPF_STMT(BPF_JMP | BPF_JA, (place) - (at) - 1)
#define REFUSE(at, error)    [at] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))

enum place {
	CALL, IS_SOCKET, IS_SOCKOPT, IS_SCHEDULER, IS_PARAM, IS_ATTR, IS_AFFINITY, IS_PRIORITY, IS_IOPRIO, IS_NONE,
	FAMILY, IS_INET, IS_INET6, OTHER_FAMILY, PROTOCOL, IS_ANY, IS_TCP, IS_UDP, NO_PROTOCOL,
	LEVEL, AT_TCP, AT_UDP, OTHER_LEVEL, TCP_OPTION, IS_ULP, OTHER_TCP, UDP_OPTION, IS_ENCAP, OTHER_UDP,
	PROCESS, IS_INIT, NOT_INIT,
	IO_WHICH, IO_USER, IO_OTHER, WHICH, IS_USER, WHO, WHO_INIT, WHO_ELSE,
	NO, END,
};
_Static_assert(END == SECCOMP_GUARDS, "as many as seccomp.h says");

const struct sock_filter seccomp_guards[SECCOMP_GUARDS] = {
	[CALL] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	IF(IS_SOCKET, SYS_socket, FAMILY),
	IF(IS_SOCKOPT, SYS_setsockopt, LEVEL),
	IF(IS_SCHEDULER, SYS_sched_setscheduler, PROCESS),
	IF(IS_PARAM, SYS_sched_setparam, PROCESS),
	IF(IS_ATTR, SYS_sched_setattr, PROCESS),
	IF(IS_AFFINITY, SYS_sched_setaffinity, PROCESS),
	IF(IS_PRIORITY, SYS_setpriority, WHICH),
	IF(IS_IOPRIO, SYS_ioprio_set, IO_WHICH),
	GO(IS_NONE, END),

	ARGUMENT(FAMILY, 0),
	IF(IS_INET, AF_INET, PROTOCOL),
	IF(IS_INET6, AF_INET6, PROTOCOL),
	GO(OTHER_FAMILY, END),
	ARGUMENT(PROTOCOL, 2),
	IF(IS_ANY, 0, END),
	IF(IS_TCP, IPPROTO_TCP, END),
	IF(IS_UDP, IPPROTO_UDP, END),
	REFUSE(NO_PROTOCOL, EPROTONOSUPPORT),

	ARGUMENT(LEVEL, 1),
	IF(AT_TCP, IPPROTO_TCP, TCP_OPTION),
	IF(AT_UDP, IPPROTO_UDP, UDP_OPTION),
	GO(OTHER_LEVEL, END),
	ARGUMENT(TCP_OPTION, 2),
	IF(IS_ULP, TCP_ULP, NO),
	GO(OTHER_TCP, END),
	ARGUMENT(UDP_OPTION, 2),
	IF(IS_ENCAP, UDP_ENCAP, NO),
	GO(OTHER_UDP, END),

	ARGUMENT(PROCESS, 0),
	IF(IS_INIT, INIT, NO),
	GO(NOT_INIT, END),

	ARGUMENT(IO_WHICH, 0),
	IF(IO_USER, IO_PROCESS_USER, NO),
	GO(IO_OTHER, WHO),
	ARGUMENT(WHICH, 0),
	IF(IS_USER, PRIO_USER, NO), /* all of the guest's id, and that is init, too */
	ARGUMENT(WHO, 1),
	IF(WHO_INIT, INIT, NO),
	GO(WHO_ELSE, END),

	REFUSE(NO, EPERM),
};
