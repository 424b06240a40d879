/*
 * seccomp_guard.c - the beginning of every filter of a guest: rules that look at two arguments of a call or at some
 * bits of one, which libseccomp 2.5.4 cannot be trusted with.
 *
 * A rule names a call, may name values that another argument must have for the rule to apply, and answers an error (0:
 * the call seems to have worked) if an argument, masked, is one of its values (IF) or is none of them (UNLESS). Rules
 * of a call are tried in their order; a call that no rule answers gets to what libseccomp made of the lists. Calls
 * without a rule pass without a look at their arguments, which the kernel knows ahead (since 5.11).
 *
 * The kernel compares 32 bits of all arguments named here, so the filter does, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "lib/base/util.h"
#include "seccomp.h"

#define IO_PROCESS_USER 3   /* IOPRIO_WHO_USER of linux/ioprio.h */
#define SOCKET_TYPE     0xf /* the rest of the argument are flags */
#define LOW(n)                                                                                                         \
	(offsetof(struct seccomp_data, args) + (n) * sizeof(uint64_t) +                                                \
	 (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0))
#define WHOLE UINT32_MAX

struct values {
	const uint32_t *items;
	size_t n;
};
#define VALUES(...)                                                                                                    \
	{                                                                                                              \
		(const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)                  \
	}

#define NOTIFY (-1) /* instead of an error: init is asked */
enum sense { IF, UNLESS };
struct guard {
	int call;
	unsigned argument;
	uint32_t mask;
	enum sense sense;
	struct values values;
	int error;
	unsigned other;     /* applies where this argument … */
	struct values when; /* … is one of these; none: always */
};

static const struct guard guards[] = {
	/* Locks are memory of the kernel that is charged to no cgroup: init counts them (init_deny.c). These come
	 * first, because without a listener a filter begins behind them. */
	{SYS_fcntl, 1, WHOLE, IF, VALUES(F_SETLK, F_SETLKW), NOTIFY, 0, {0}},
	{SYS_flock, 1, 0, IF, VALUES(0), NOTIFY, 0, {0}},
	/* Protocols of the internet but TCP and UDP (MPTCP, SCTP, DCCP, SMC …) have had holes of their own, and the
	 * host loads modules for protocols and types that it does not know: a process of the host's root, outside of
	 * every limit, for each try. Type 10, SOCK_PACKET, would become another family within the kernel. Programs hear
	 * what a kernel without the protocol says. */
	{SYS_socket, 2, WHOLE, UNLESS, VALUES(0, IPPROTO_TCP, IPPROTO_UDP), EPROTONOSUPPORT, 0,
	 VALUES(AF_INET, AF_INET6)},
	{SYS_socket, 1, SOCKET_TYPE, UNLESS, VALUES(SOCK_STREAM, SOCK_DGRAM), ESOCKTNOSUPPORT, 0,
	 VALUES(AF_INET, AF_INET6)},
	/* Options that concern the socket alone. Not here: filters (the kernel has one limit of translated BPF for all
	 * users), TLS and ESP within the kernel, timestamps (host-wide work for each packet), congestion control, zero
	 * copy (counts what the user has locked), fast open, MD5. */
	{SYS_setsockopt, 1, WHOLE, UNLESS, VALUES(SOL_SOCKET, IPPROTO_TCP, IPPROTO_IP, IPPROTO_IPV6),
	 ENOPROTOOPT, 0, {0}},
	/* Larger buffers than those of the jail's network: cgroup v1 cannot refuse what the kernel gives to a
	 * connection of its own accord, and that is more, the larger its buffers are. */
	{SYS_setsockopt, 2, WHOLE, IF, VALUES(SO_SNDBUF, SO_RCVBUF), 0, 1, VALUES(SOL_SOCKET)},
	/* Timers that would wake connections of a frozen sandbox. All connections end on this loopback, where no
	 * peer has to be asked whether it is still there. */
	{SYS_setsockopt, 2, WHOLE, IF, VALUES(SO_KEEPALIVE), 0, 1, VALUES(SOL_SOCKET)},
	{SYS_setsockopt, 2, WHOLE, IF, VALUES(TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT), 0, 1, VALUES(IPPROTO_TCP)},
	{SYS_setsockopt, 2, WHOLE, UNLESS,
	 VALUES(SO_REUSEADDR, SO_DONTROUTE, SO_BROADCAST, SO_OOBINLINE, SO_PRIORITY, SO_LINGER,
		SO_REUSEPORT, SO_PASSCRED, SO_RCVLOWAT, SO_SNDLOWAT, 20, 21 /* RCVTIMEO, SNDTIMEO; again: */, 66, 67,
		SO_PASSSEC, SO_PEEK_OFF, SO_INCOMING_CPU, 76 /* PASSPIDFD */),
	 ENOPROTOOPT, 1, VALUES(SOL_SOCKET)},
	{SYS_setsockopt, 2, WHOLE, UNLESS,
	 VALUES(TCP_NODELAY, TCP_MAXSEG, TCP_CORK, TCP_SYNCNT, TCP_LINGER2, TCP_DEFER_ACCEPT, TCP_WINDOW_CLAMP,
		TCP_QUICKACK, TCP_USER_TIMEOUT, TCP_NOTSENT_LOWAT),
	 ENOPROTOOPT, 1, VALUES(IPPROTO_TCP)},
	{SYS_setsockopt, 2, WHOLE, UNLESS,
	 VALUES(IP_TOS, IP_TTL, IP_PKTINFO, IP_MTU_DISCOVER, IP_RECVERR, IP_RECVTTL, IP_RECVTOS, IP_FREEBIND,
		IP_BIND_ADDRESS_NO_PORT, IP_MULTICAST_IF, IP_MULTICAST_TTL, IP_MULTICAST_LOOP, IP_ADD_MEMBERSHIP,
		IP_DROP_MEMBERSHIP, IP_MULTICAST_ALL),
	 ENOPROTOOPT, 1, VALUES(IPPROTO_IP)},
	{SYS_setsockopt, 2, WHOLE, UNLESS,
	 VALUES(IPV6_UNICAST_HOPS, IPV6_MULTICAST_IF, IPV6_MULTICAST_HOPS, IPV6_MULTICAST_LOOP, IPV6_JOIN_GROUP,
		IPV6_LEAVE_GROUP, IPV6_MTU_DISCOVER, IPV6_RECVERR, IPV6_V6ONLY, IPV6_RECVPKTINFO, IPV6_RECVHOPLIMIT,
		IPV6_RECVTCLASS, IPV6_TCLASS),
	 ENOPROTOOPT, 1, VALUES(IPPROTO_IPV6)},
	/* Init has the guest's id, so the kernel would let a guest make it idle, or leave it one processor. When init
	 * ends the run it would then wait for the guest's own processes: minutes beyond a limit. */
	{SYS_sched_setscheduler, 0, WHOLE, IF, VALUES(1), EPERM, 0, {0}},
	{SYS_sched_setparam, 0, WHOLE, IF, VALUES(1), EPERM, 0, {0}},
	{SYS_sched_setattr, 0, WHOLE, IF, VALUES(1), EPERM, 0, {0}},
	{SYS_sched_setaffinity, 0, WHOLE, IF, VALUES(1), EPERM, 0, {0}},
	{SYS_setpriority, 0, WHOLE, IF, VALUES(PRIO_USER), EPERM, 0, {0}},
	{SYS_setpriority, 1, WHOLE, IF, VALUES(1), EPERM, 0, {0}},
	{SYS_ioprio_set, 0, WHOLE, IF, VALUES(IO_PROCESS_USER), EPERM, 0, {0}},
	{SYS_ioprio_set, 1, WHOLE, IF, VALUES(1), EPERM, 0, {0}},
	/* The host reserves huge pages for certain programs, and no memory limit counts them. */
	{SYS_mmap, 3, MAP_HUGETLB, UNLESS, VALUES(0), ENOMEM, 0, {0}},
	{SYS_memfd_create, 1, MFD_HUGETLB, UNLESS, VALUES(0), ENOMEM, 0, {0}},
	{SYS_shmget, 2, SHM_HUGETLB, UNLESS, VALUES(0), ENOMEM, 0, {0}},
	/* Not MERGEABLE, which finds out by time what others have in memory, and not COLD, PAGEOUT, HWPOISON. */
	{SYS_madvise, 2, WHOLE, UNLESS,
	 VALUES(MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTNEED, MADV_FREE, MADV_REMOVE,
		MADV_DONTFORK, MADV_DOFORK, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTDUMP, MADV_DODUMP, MADV_WIPEONFORK,
		MADV_KEEPONFORK, MADV_POPULATE_READ, MADV_POPULATE_WRITE, 24 /* DONTNEED_LOCKED */, 25 /* COLLAPSE */),
	 EINVAL, 0, {0}},
	/* RWF_NOWAIT shows whether a page of /usr is in memory, so whether another program has read it. */
	{SYS_preadv2, 5, WHOLE, UNLESS, VALUES(0), EOPNOTSUPP, 0, {0}},
	{SYS_pwritev2, 5, WHOLE, UNLESS, VALUES(0), EOPNOTSUPP, 0, {0}},
};

static void add(struct seccomp_program *program, struct sock_filter instruction)
{
	if (program->n < ARRAY_SIZE(program->code))
		program->code[program->n] = instruction;
	program->n++;
}

static void load(struct seccomp_program *program, size_t offset)
{
	add(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* If the value is one of these, jumps over `found` more instructions behind the comparisons, else over `missed`. */
static void compare(struct seccomp_program *program, const struct values *values, size_t found, size_t missed)
{
	for (size_t i = 0; values->items && i < values->n; i++) {
		size_t left = values->n - i - 1;

		add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, values->items[i],
							  (uint8_t)(left + found), left ? 0 : (uint8_t)missed));
	}
}

/*
 *     [load the other argument; none of its values: NEXT]
 *     load the argument, mask it; one of the values, or UNLESS, none of them: answer
 * NEXT
 */
static void add_guard(struct seccomp_program *program, const struct guard *guard)
{
	const uint32_t action =
		guard->error == NOTIFY ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | (uint32_t)guard->error;
	const bool masked = guard->mask != WHOLE, unless = guard->sense == UNLESS;

	if (guard->when.n) {
		load(program, LOW(guard->other));
		compare(program, &guard->when, 0, 2 + masked + guard->values.n);
	}
	load(program, LOW(guard->argument));
	if (masked)
		add(program, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, guard->mask));
	compare(program, &guard->values, unless, !unless);
	add(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* The rules of one call, which are together: how many. Expects the call's number to be loaded, and leaves it so. The
 * kernel goes through a filter for each number there is when it is loaded, so other calls must pass quickly. */
static size_t add_call(struct seccomp_program *program, const struct guard *first, size_t most)
{
	const size_t begin = program->n;
	size_t n = 0;

	add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)first->call, 0, 0));
	while (n < most && first[n].call == first->call)
		add_guard(program, &first[n++]);
	load(program, offsetof(struct seccomp_data, nr));
	size_t length = program->n - begin - 1;
	if (length > UINT8_MAX)
		program->n = SECCOMP_GUARDS_MAX + 1;
	else if (program->n <= SECCOMP_GUARDS_MAX)
		program->code[begin].jf = (uint8_t)length;
	return n;
}

int seccomp_guard(struct seccomp_program *ret, struct err *err)
{
	*ret = (struct seccomp_program){.n = 0};
	for (size_t i = 0; i < ARRAY_SIZE(guards);) {
		if (i == 0 || (guards[i].error != NOTIFY && guards[i - 1].error == NOTIFY))
			load(ret, offsetof(struct seccomp_data, nr));
		i += add_call(ret, &guards[i], ARRAY_SIZE(guards) - i);
		if (guards[i - 1].error == NOTIFY)
			ret->n_notify = ret->n;
	}
	return ret->n > ARRAY_SIZE(ret->code) ? err_set(err, ERR_SYSTEM, "the guards of a filter are too long") : 0;
}
