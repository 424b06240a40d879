/*
 * init_become.c - from a fresh process of a jail to a program: what every program of a jail has gone through, its
 * process made by init or by a template. Called in a child of vfork, so nothing here allocates. See init.h.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init.h"
#include "jail/client/wire_fd.h"
#include "landlock.h"
#include "lib/base/util.h"

/* The listener goes to init by way of the socket. Where there is a listener above us already (EBUSY: the jailer itself
 * runs in a sandbox), the calls that would be reported say ENOSYS. */
static int load_filter(const struct seccomp_filter *filter, int to_init)
{
	const unsigned flag = SECCOMP_FILTER_FLAG_NEW_LISTENER;
	int listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flag, &filter->program);

	if (listener >= 0)
		return wire_fd_send(to_init, "l", 1, &listener, 1);
	const struct sock_fprog bare = {.len = (unsigned short)(filter->program.len - filter->n_notify),
					.filter = filter->program.filter + filter->n_notify};
	return errno == EBUSY ? (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &bare) : -1;
}

static const char *begin_session(const struct init_order *head)
{
	sigset_t none;

	sigemptyset(&none);
	if (setsid() < 0 || sigprocmask(SIG_SETMASK, &none, NULL))
		return "session";
	return head->deterministic && init_be_deterministic() ? "fixed addresses, one processor" : NULL;
}

const char *init_become(const struct init_start *start)
{
	const char *failed = begin_session(start->head);

	if (failed)
		return failed;
	if (start->group_fd >= 0 && write(start->group_fd, "0", 1) != 1)
		return "enter the cgroup to freeze";
	unsigned kept = start->fds[INIT_TALK_FD] < 0 ? INIT_TALK_FD : INIT_TALK_FD + 1;
	for (unsigned fd = 0; fd < kept; fd++)
		if (dup2(start->fds[fd], (int)fd) < 0) /* inherited by the program, and nothing else is */
			return "standard descriptors";
	if (close_range(kept, ~0U, CLOSE_RANGE_CLOEXEC))
		return "standard descriptors";
	if (chdir(start->head->cwd[0] ? start->head->cwd : "/data"))
		return INIT_STEP_CWD;
	if (start->landlock_fd >= 0 && landlock_enter(start->landlock_fd))
		return "Landlock";
	if (load_filter(start->filter, start->to_init))
		return "seccomp filter";
	/* After the listener was sent: the kernel lets an id have no more descriptors on their way than the sender may
	 * have open, and another program of this id may have sent as many as it could with its own limit. */
	return init_apply_limits(&start->head->limits) ? "resource limits" : NULL;
}

int init_drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{.effective = 0}};

	/* EINVAL: beyond the last capability of this kernel. */
	for (int cap = 0; prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0; cap++)
		;
	if (errno != EINVAL || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
		return -1;
	if (syscall(SYS_capset, &header, none))
		return -1;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}
