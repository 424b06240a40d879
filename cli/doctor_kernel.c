/* doctor_kernel.c - the system calls that a jail is made of. */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "doctor.h"
#include "lib/base/util.h"

#define KERNEL_MAJOR 5 /* 5.10 has everything that is not asked for one by one below */
#define KERNEL_MINOR 10
#define LANDLOCK_LEAST 2 /* jail/init/fence.h */
/* What a call that is tried says. */
#define WORKS(works) ((works) ? "works" : strerror(errno))
#define NEWER_KERNEL "install a kernel of at least 5.10"

static void check_version(struct doctor *doctor)
{
	struct utsname name;
	int major = 0, minor = 0;

	uname(&name);
	/* what does not parse stays 0.0, which is too old */
	if (sscanf(name.release, "%d.%d", &major, &minor) != 2)
		major = minor = 0;
	bool enough = major > KERNEL_MAJOR || (major == KERNEL_MAJOR && minor >= KERNEL_MINOR);

	doctor_add(doctor, "kernel", enough ? DOCTOR_OK : DOCTOR_MISSING, NEWER_KERNEL, "%s %s", name.release,
		   name.machine);
}

static void check_seccomp(struct doctor *doctor)
{
	static const struct {
		const char *name;
		uint32_t action;
		enum doctor_state without;
	} actions[] = {
		{"errno", SECCOMP_RET_ERRNO, DOCTOR_MISSING},
		{"kill_process", SECCOMP_RET_KILL_PROCESS, DOCTOR_MISSING},
		{"user_notif", SECCOMP_RET_USER_NOTIF, DOCTOR_WEAKER},
	};
	enum doctor_state state = DOCTOR_OK;
	char lacking[64] = "";

	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		uint32_t action = actions[i].action;
		size_t used = strlen(lacking);

		if (!syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action))
			continue;
		snprintf(lacking + used, sizeof(lacking) - used, " %s", actions[i].name);
		state = MAX(state, actions[i].without);
	}
	doctor_add(doctor, "seccomp", state, "use a kernel with CONFIG_SECCOMP_FILTER, outside of emulators",
		   *lacking ? "without the actions%s" : "filters, with errno, kill_process and user_notif", lacking);
}

static void check_landlock(struct doctor *doctor)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	if (version >= LANDLOCK_LEAST)
		doctor_add(doctor, "landlock", DOCTOR_OK, NULL, "ABI %ld", version);
	else if (version > 0)
		doctor_add(doctor, "landlock", DOCTOR_WEAKER, "install a kernel of at least 5.19",
			   "ABI %ld, too old to be used", version);
	else
		doctor_add(doctor, "landlock", DOCTOR_WEAKER,
			   "boot with landlock among the LSMs (lsm=landlock,…): a second fence", "not there: %s",
			   strerror(errno));
}

static void check_calls(struct doctor *doctor)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	auto_close int opened = (int)syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how));

	doctor_add(doctor, "openat2", opened >= 0 ? DOCTOR_OK : DOCTOR_MISSING, NEWER_KERNEL, "%s", WORKS(opened >= 0));

	auto_close int process = (int)syscall(SYS_pidfd_open, getpid(), 0);

	doctor_add(doctor, "pidfd", process >= 0 ? DOCTOR_OK : DOCTOR_MISSING, NEWER_KERNEL, "%s", WORKS(process >= 0));

	/* without privileges it is refused (EPERM), which shows that it is there */
	auto_close int context = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
	bool there = context >= 0 || errno == EPERM;

	doctor_add(doctor, "mount API", there ? DOCTOR_OK : DOCTOR_MISSING, NEWER_KERNEL, "fsopen %s", WORKS(there));
}

void doctor_kernel(struct doctor *doctor)
{
	check_version(doctor);
	check_calls(doctor);
	check_seccomp(doctor);
	check_landlock(doctor);
}
