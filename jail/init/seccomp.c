/*
 * seccomp.c - the only file that knows libseccomp. See seccomp.h.
 *
 * A list is what all families share (interpreters differ less than their versions do) and the few calls that only some
 * need. Filters are exported as BPF with the binary-tree optimiser and loaded into each program by one call (40 to 80
 * us; building it in place would cost a millisecond a run).
 *
 * libseccomp 2.5.4 has faults in merging comparisons (its changelog of 2.5.6 and 2.6.1), hence: one comparison a rule,
 * 32-bit masked (the kernel looks at 32 bits of these arguments, the register may hold more), and stop at the first
 * rule that is not taken. What needs two is in seccomp_guard.c.
 */
#include "seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "syscalls.h"

#define LOW_32      0xffffffffu
#define PROGRAM_MAX (4096 * sizeof(struct sock_filter)) /* BPF_MAXINSNS */

#define EVERY           ((1U << SECCOMP_FAMILIES) - 1)
#define ONLY(family)    (1U << (family))
#define ALL_BUT(family) (EVERY & ~ONLY(family))
#define NAMESPACES                                                                                                     \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |   \
	 0x80u /* NEWTIME */)

const char *const seccomp_families[SECCOMP_FAMILIES + 1] = {
	[SECCOMP_BASE] = "base",     [SECCOMP_NATIVE] = "native",
	[SECCOMP_PYTHON] = "python", [SECCOMP_JAVASCRIPT] = "javascript",
	[SECCOMP_GO] = "go",         [SECCOMP_COMPILER] = "compiler",
};

enum seccomp_family seccomp_family(const char *name)
{
	size_t i = 0;

	while (i < SECCOMP_FAMILIES && !streq(seccomp_families[i], name))
		i++;
	return (enum seccomp_family)i;
}

static int rule_failed(const char *name, int result, struct err *err)
{
	errno = -result;
	return err_errno(err, "seccomp rule for %s", name);
}

static int add_names(scmp_filter_ctx filter, uint32_t action, const char *const *names, struct err *err)
{
	for (; *names; names++) {
		int number = seccomp_syscall_resolve_name(*names);

		if (number < 0) /* not on this architecture */
			continue;
		int result = seccomp_rule_add(filter, action, number, 0);
		if (result < 0)
			return rule_failed(*names, result, err);
	}
	return 0;
}

/* A call that the family may not make is reported. */
static int add_choices(scmp_filter_ctx filter, enum seccomp_family family, struct err *err)
{
	int result = 0;

	for (const struct syscalls_choice *choice = syscalls_by_family; result == 0 && choice->name; choice++) {
		const char *const names[] = {choice->name, NULL};

		result = add_names(filter, choice->families & ONLY(family) ? SCMP_ACT_ALLOW : SCMP_ACT_NOTIFY, names,
				   err);
	}
	return result;
}

/* What is done with a call when `argument` has one of the values. */
struct rule {
	int call;
	unsigned argument;
	const uint32_t *values;
	size_t n;
	uint32_t action;   /* 0: allow */
	unsigned families; /* for these */
};

/* New threads and processes, but no namespaces: a call that asks for one is reported. */
static int add_clone(scmp_filter_ctx filter, struct err *err)
{
	const struct scmp_arg_cmp plain = SCMP_CMP(0, SCMP_CMP_MASKED_EQ, NAMESPACES, 0);
	int result = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, &plain);

	for (uint64_t bit = 1; result == 0 && bit <= NAMESPACES; bit <<= 1) {
		const struct scmp_arg_cmp one = SCMP_CMP(0, SCMP_CMP_MASKED_EQ, bit, bit);

		if (bit & NAMESPACES)
			result = seccomp_rule_add_array(filter, SCMP_ACT_NOTIFY, SCMP_SYS(clone), 1, &one);
	}
	return result < 0 ? rule_failed("clone", result, err) : 0;
}

static int add_arguments(scmp_filter_ctx filter, enum seccomp_family family, struct err *err)
{
	static const uint32_t local[] = {AF_UNIX}, internet[] = {AF_INET, AF_INET6};
	/* Known from programs that capture packets, encrypt, talk to the kernel or to a hypervisor: reported, or in the
	 * case of NETLINK looked at (init_deny.c). */
	static const uint32_t looked_at[] = {AF_NETLINK}, told[] = {AF_PACKET, AF_ALG, AF_VSOCK, AF_BLUETOOTH, AF_CAN};
	static const uint32_t ioctls[] = {TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIOASYNC, FIOCLEX, FIONCLEX, TIOCOUTQ};
	static const uint32_t prctls[] = {
		PR_SET_NAME,       PR_GET_NAME,       PR_SET_PDEATHSIG,       PR_GET_PDEATHSIG,
		PR_SET_DUMPABLE,   PR_GET_DUMPABLE,   PR_SET_NO_NEW_PRIVS,    PR_GET_NO_NEW_PRIVS,
		PR_SET_TIMERSLACK, PR_GET_TIMERSLACK, PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER,
		PR_SET_VMA,        PR_CAPBSET_READ,   PR_SET_THP_DISABLE,     PR_GET_THP_DISABLE,
		PR_GET_SECCOMP,    PR_GET_KEEPCAPS,   PR_GET_TID_ADDRESS};
	/* Not among them: F_NOTIFY and leases, which tell what others do with a file. Two have no name here:
	 * DUPFD_QUERY, CREATED_QUERY. */
	static const uint32_t fcntls[] = {
		F_DUPFD,      F_DUPFD_CLOEXEC, F_GETFD,     F_SETFD,     F_GETFL,  F_SETFL,  F_GETLK,     F_SETLK,
		F_SETLKW,     F_OFD_GETLK,     F_SETOWN,    F_GETOWN,    F_SETSIG, F_GETSIG, F_SETOWN_EX, F_GETOWN_EX,
		F_SETPIPE_SZ, F_GETPIPE_SZ,    F_ADD_SEALS, F_GET_SEALS, 1027,     1028};
	/* They could not be counted: /proc/locks does not say whose they are. */
	static const uint32_t uncounted[] = {F_OFD_SETLK, F_OFD_SETLKW};
	static const uint32_t personalities[] = {0, LOW_32}; /* plain Linux, and asking */
	static const uint32_t self[] = {0};
	const struct rule rules[] = {
		{SCMP_SYS(socket), 0, local, ARRAY_SIZE(local), 0, ALL_BUT(SECCOMP_COMPILER)},
		{SCMP_SYS(socket), 0, internet, ARRAY_SIZE(internet), 0, ALL_BUT(SECCOMP_COMPILER)},
		{SCMP_SYS(socket), 0, internet, ARRAY_SIZE(internet), SCMP_ACT_NOTIFY, ONLY(SECCOMP_COMPILER)},
		{SCMP_SYS(socket), 0, looked_at, ARRAY_SIZE(looked_at), SCMP_ACT_NOTIFY, ALL_BUT(SECCOMP_COMPILER)},
		{SCMP_SYS(socket), 0, told, ARRAY_SIZE(told), SCMP_ACT_NOTIFY, EVERY},
		{SCMP_SYS(socketpair), 0, local, ARRAY_SIZE(local), 0, EVERY},
		{SCMP_SYS(ioctl), 1, ioctls, ARRAY_SIZE(ioctls), 0, EVERY},
		{SCMP_SYS(prctl), 0, prctls, ARRAY_SIZE(prctls), 0, EVERY},
		{SCMP_SYS(fcntl), 1, fcntls, ARRAY_SIZE(fcntls), 0, EVERY},
		{SCMP_SYS(fcntl), 1, uncounted, ARRAY_SIZE(uncounted), SCMP_ACT_ERRNO(EINVAL), EVERY},
		/* setarch */
		{SCMP_SYS(personality), 0, personalities, ARRAY_SIZE(personalities), 0, ONLY(SECCOMP_NATIVE)},
		/* init's limits are not the guest's to change */
		{SCMP_SYS(prlimit64), 0, self, ARRAY_SIZE(self), 0, EVERY},
	};
	int result = add_clone(filter, err);

	if (result < 0)
		return result;
	for (const struct rule *rule = rules; rule < rules + ARRAY_SIZE(rules); rule++)
		for (size_t i = 0; rule->families & ONLY(family) && i < rule->n; i++) {
			struct scmp_arg_cmp one = SCMP_CMP(rule->argument, SCMP_CMP_MASKED_EQ, LOW_32, rule->values[i]);

			result = seccomp_rule_add_array(filter, rule->action ? rule->action : SCMP_ACT_ALLOW,
							rule->call, 1, &one);
			if (result < 0)
				return rule_failed("an argument", result, err);
		}
	return 0;
}

static int export(scmp_filter_ctx filter, struct seccomp_filter *ret, struct err *err)
{
	struct seccomp_program guards;
	auto_free char *program = NULL;
	auto_close int fd = memfd_create("seccomp", MFD_CLOEXEC);
	int result = fd < 0 ? -errno : seccomp_export_bpf(filter, fd);

	if (result < 0)
		return rule_failed("the whole filter", result, err);
	size_t length;
	if (lseek(fd, 0, SEEK_SET) < 0 || read_fd(fd, PROGRAM_MAX, &program, &length, err) < 0)
		return err_wrap(err, "reading the seccomp filter");
	if (seccomp_guard(&guards, err) < 0)
		return -ERR_SYSTEM;
	size_t guarded = guards.n * sizeof(*guards.code);
	struct sock_filter *whole = xmalloc(guarded + length);
	memcpy(whole, guards.code, guarded);
	memcpy(whole + guards.n, program, length);
	ret->program =
		(struct sock_fprog){.len = (unsigned short)(guards.n + length / sizeof(*whole)), .filter = whole};
	ret->n_notify = guards.n_notify;
	return 0;
}

int seccomp_build(enum seccomp_family family, struct seccomp_filter *ret, struct err *err)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));

	if (!filter)
		return err_set(err, ERR_SYSTEM, "libseccomp cannot make a filter");
	int result = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
	if (result == 0)
		result = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (result < 0)
		result = rule_failed("attributes", result, err);
	if (result == 0)
		result = add_names(filter, SCMP_ACT_ALLOW, syscalls_allowed, err);
	if (result == 0)
		result = add_choices(filter, family, err);
	if (result == 0)
		result = add_names(filter, SCMP_ACT_NOTIFY, syscalls_reported, err);
	if (result == 0)
		result = add_names(filter, SCMP_ACT_ERRNO(0), syscalls_idle, err);
	if (result == 0)
		result = add_names(filter, SCMP_ACT_ERRNO(EOPNOTSUPP), syscalls_unsupported, err);
	if (result == 0)
		result = add_arguments(filter, family, err);
	/* clone3 hides its flags behind a pointer: no such call, and libc takes clone. Numbers that had no name when
	 * the list was written get the same answer. */
	if (result == 0)
		result = add_names(filter, SCMP_ACT_ERRNO(ENOSYS), syscalls_absent, err);
	for (int number = SYSCALLS_FIRST_UNKNOWN; result == 0 && number <= SYSCALLS_LAST_UNKNOWN; number++) {
		int added = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), number, 0);

		result = added ? rule_failed("a new call", added, err) : 0;
	}
	if (result == 0)
		result = export(filter, ret, err);
	seccomp_release(filter);
	return result;
}

void seccomp_name(int number, char *ret, size_t size)
{
	auto_free char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);

	if (name)
		snprintf(ret, size, "%s", name);
	else
		snprintf(ret, size, "%d", number);
}
