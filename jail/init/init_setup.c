/*
 * init_setup.c - from a fresh clone to a jail: a flat list of steps in the order that the kernel demands.
 *
 * The child begins as a copy of the jailer in new namespaces, with an id that its user namespace does not map yet and
 * with all capabilities over that namespace. What forces the order:
 *   cgroup first     v1 demands that the process that is moved still has the id of the jailer, which opened the cgroup
 *                    descriptor
 *   ids next         files that it makes must belong to the guest; setresuid keeps the capabilities because inner 0 is
 *                    not mapped
 *   dumpable, death signal   after the ids, whose change resets both
 *   cgroup namespace after that, so that its root is our group
 *   the root mount   is copied by one recursive bind: its mounts are locked, they can only be taken together
 *   /proc            before the old root goes: the kernel wants to see a whole /proc before it allows a new one
 *   capabilities     after the last mount, before anything of the guest's runs
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail/base/sys.h"
#include "jail/root/layers.h"
#include "jail/root/root_mount.h"
#include "join.h"
#include "landlock.h"
#include "lib/base/util.h"

#define HOST_NAME          "jail"
#define TMP_INODES         16384
#define HIGH_FD            64
#define CHECKPOINT_RESTORE 40 /* of a newer linux/capability.h; before Linux 5.9 there is none */

static int enter_cgroup(struct init_setup *setup)
{
	for (size_t i = 0; i < setup->n_group_doors; i++)
		if (write(setup->group_fds[i], "0", 1) != 1)
			return -1;
	return 0;
}

static int wait_for_maps(struct init_setup *setup)
{
	struct init_order go;

	/* The jailer closes its end when it cannot continue. */
	ssize_t n = recv(setup->control, &go, sizeof(go), 0);
	if (n > 0)
		return 0;
	errno = n == 0 ? ECANCELED : errno;
	return -1;
}

/* So that a guest that eats all the memory is killed rather than its init; raised for payloads only, see run in init.c.
 * Opened while /proc/self is still ours: after the ids have changed it belongs to the host's root. */
static int open_oom_score(struct init_setup *setup)
{
	setup->oom_score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	return setup->oom_score < 0 ? -1 : 0;
}

static int become_guest(struct init_setup *setup)
{
	if (!setup->keep_groups && setgroups(0, NULL))
		return -1;
	return setresgid(INIT_ID, INIT_ID, INIT_ID) || setresuid(INIT_ID, INIT_ID, INIT_ID) ? -1 : 0;
}

static int die_with_jailer(struct init_setup *setup)
{
	char byte;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return -1;
	/* Had it died before, its end of the socket would be closed. */
	if (recv(setup->control, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0)
		return 0;
	errno = ECANCELED;
	return -1;
}

static int unshare_cgroup(struct init_setup *setup)
{
	(void)setup;
	return unshare(CLONE_NEWCGROUP);
}

static int host_name(struct init_setup *setup)
{
	(void)setup;
	return sethostname(HOST_NAME, strlen(HOST_NAME)) || setdomainname("", 0) ? -1 : 0;
}

/* To their fixed numbers, by way of high ones so that none is overwritten while it is still needed; everything else is
 * closed. */
static int keep_descriptors(struct init_setup *setup)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/dev/null", setup->root->path);
	int null = open(path, O_RDWR | O_CLOEXEC);
	const int sources[] = {
		null, null, null, setup->control, setup->oom_score, null, setup->data_mount, setup->code_mount};
	int high[ARRAY_SIZE(sources)];

	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		high[i] = fcntl(sources[i], F_DUPFD_CLOEXEC, HIGH_FD);
		if (high[i] < 0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		if (dup3(high[i], (int)i, i < INIT_CONTROL_FD ? 0 : O_CLOEXEC) < 0)
			return -1;
	return close_range(ARRAY_SIZE(sources), ~0U, 0);
}

static int bind_root(struct init_setup *setup)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -1;
	if (mount(setup->root->path, setup->root->path, NULL, MS_BIND | MS_REC, NULL))
		return -1;
	return chdir(setup->root->path);
}

/* See layers.h. What the jailer keeps is bound; what cannot be a layer stays as it was bound. */
static int own_inodes(struct init_setup *setup)
{
	for (size_t i = 0; i < setup->root->n_bound; i++) {
		const char *directory = setup->root->shown[i] + 1;
		char kept[LAYERS_PATH_SIZE];

		if (setup->layers >= 0) {
			layers_path(kept, (size_t)setup->layers, i);
			if (mount(kept, directory, NULL, MS_BIND, NULL) && errno != ENOENT)
				return -1;
		} else if (layers_mount(".", directory, directory) && errno != EINVAL) {
			return -1;
		}
	}
	return 0;
}

/* A root shows the folders of all services; those that this one is not to see are covered by an empty directory. */
static int cover_folders(struct init_setup *setup)
{
	for (size_t i = 0; setup->binds && i < setup->folders->count; i++) {
		const char *folder = setup->folders->items[i];

		if (!bind_strings_has(setup->binds, folder) && mount(ROOT_MOUNT_EMPTY, folder + 1, NULL, MS_BIND, NULL))
			return -1;
	}
	return 0;
}

static int mount_tmp(struct init_setup *setup)
{
	char options[96];

	snprintf(options, sizeof(options), "size=%lld,nr_inodes=%d,mode=1777", (long long)setup->tmp_bytes, TMP_INODES);
	if (mount("tmpfs", "tmp", "tmpfs", MS_NOSUID | MS_NODEV, options))
		return -1;
	return mount("tmpfs", "dev/shm", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options);
}

static int attach_data(struct init_setup *setup)
{
	(void)setup;
	return move_mount(INIT_FIRST_FREE_FD, "", AT_FDCWD, "data", MOVE_MOUNT_F_EMPTY_PATH);
}

static int attach_code(struct init_setup *setup)
{
	(void)setup;
	return move_mount(INIT_FIRST_FREE_FD + 1, "", AT_FDCWD, "code", MOVE_MOUNT_F_EMPTY_PATH);
}

/* Over the root mount's: a jail without network does not know the names. */
static int bind_hosts(struct init_setup *setup)
{
	if (!setup->network)
		return 0;
	if (mount(ROOT_MOUNT_HOSTS, "etc/hosts", NULL, MS_BIND, NULL))
		return -1;
	return mount(NULL, "etc/hosts", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
		     NULL);
}

/* Read-only as a whole: no sysctl, no /proc/self/mem, nothing in it can be written. What could be read and must not be
 * is covered; a file that can only be written (sysrq-trigger) needs no cover, and /dev/null over it would even open. */
static int mount_proc(struct init_setup *setup)
{
	static const char *const covered[] = {"proc/kcore", "proc/keys", "proc/key-users", "proc/timer_list",
					      "proc/locks"};

	(void)setup;
	if (mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL))
		return -1;
	/* A process that reads the list of locks holds up every lock that is taken on the host meanwhile: guests get an
	 * empty list, and init keeps the jail's own to count by (init_deny.c). */
	auto_close int locks = open("proc/locks", O_RDONLY | O_CLOEXEC);
	if (locks < 0 || dup3(locks, INIT_LOCKS_FD, O_CLOEXEC) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(covered); i++)
		if (mount("dev/null", covered[i], NULL, MS_BIND, NULL) && errno != ENOENT)
			return -1;
	return 0;
}

static int enter_root(struct init_setup *setup)
{
	(void)setup;
	if (sys_pivot_root(".", "."))
		return -1;
	return umount2(".", MNT_DETACH) || chdir("/") ? -1 : 0;
}

static int loopback(struct init_setup *setup)
{
	struct ifreq request = {.ifr_name = "lo"};
	auto_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)setup;
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) ? -1 : 0;
}

/* Written where they are this network's alone, while the jailer's /proc is in reach. What a connection gets beyond the
 * limit of cgroup v1 (one packet on either side) is as large as a buffer may be. */
static int small_buffers(struct init_setup *setup)
{
	static const char *const settings[][2] = {{"/proc/sys/net/ipv4/tcp_rmem", "4096 4096 4096"},
						  {"/proc/sys/net/ipv4/tcp_wmem", "4096 4096 4096"},
						  {"/proc/sys/net/core/somaxconn", "128"}};

	for (size_t i = 0; setup->small_buffers && i < ARRAY_SIZE(settings); i++) {
		auto_close int fd = open(settings[i][0], O_WRONLY | O_CLOEXEC);

		if (fd < 0 || write(fd, settings[i][1], strlen(settings[i][1])) < 0)
			return -1;
	}
	return 0;
}

static int drop_capabilities(struct init_setup *setup)
{
	(void)setup;
	return init_drop_capabilities();
}

static int close_rest(struct init_setup *setup)
{
	(void)setup;
	return close_range(INIT_FIRST_FREE_FD, ~0U, 0);
}

/* What is shown is what the root mount bound, not what is found: what should not be there is behind Landlock. */
const char *init_make_landlock(const struct init_setup *setup, bool live, int *ret_fd)
{
	static const char *const writable[] = {"/tmp", "/data", "/code", "/dev", NULL};
	int abi = live ? MIN(setup->landlock_abi, LANDLOCK_ABI_UNSCOPED) : setup->landlock_abi;

	return landlock_make(abi, (const char *const *)setup->root->shown, writable, ret_fd) ? "Landlock's rules"
											     : NULL;
}

/* -------- of a template (init_template.c) ------------------------------------------------------------- */
/* The jailer's, for what it says to a process of its own. */
static int bind_proc(struct init_setup *setup)
{
	(void)setup;
	return mount("/proc", "proc", NULL, MS_BIND | MS_REC, NULL);
}

/* To enter a jail's namespaces, to choose a process id there, and to become its guest. */
static int keep_capabilities(struct init_setup *setup)
{
	static const int kept[] = {CAP_SYS_ADMIN, CAP_SYS_CHROOT, CAP_SETUID,
				   CAP_SETGID,    CAP_SETPCAP,    CHECKPOINT_RESTORE};

	(void)setup;
	for (int cap = 0;; cap++) {
		size_t i = 0;

		while (i < ARRAY_SIZE(kept) && kept[i] != cap)
			i++;
		if (i == ARRAY_SIZE(kept) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0))
			return errno == EINVAL ? 0 : -1;
	}
}

/* It is the interpreter's first descriptor beyond the standard ones. */
static int keep_socket(struct init_setup *setup)
{
	(void)setup;
	return close_range(JOIN_TEMPLATE_FD + 1, ~0U, 0) || fcntl(JOIN_TEMPLATE_FD, F_SETFD, 0) ? -1 : 0;
}

/* -------- the lists ----------------------------------------------------------------------------------- */
struct step {
	const char *name;
	int (*run)(struct init_setup *setup);
};

static const char *take_steps(const struct step *steps, struct init_setup *setup)
{
	while (steps->name && steps->run(setup) == 0)
		steps++;
	return steps->name;
}

const char *init_setup_template(struct init_setup *setup)
{
	static const struct step steps[] = {
		{"enter the cgroup", enter_cgroup}, {"open the OOM score", open_oom_score},
		{"death signal", die_with_jailer},  {"keep descriptors", keep_descriptors},
		{"bind the root", bind_root},       {"mount /tmp", mount_tmp},
		{"attach /data", attach_data},      {"attach /code", attach_code},
		{"bind /proc", bind_proc},          {"inodes of its own", own_inodes},
		{"pivot_root", enter_root},         {"drop capabilities", keep_capabilities},
		{"close descriptors", keep_socket}, {NULL, NULL},
	};

	return take_steps(steps, setup);
}

const char *init_setup_jail(struct init_setup *setup)
{
	static const struct step steps[] = {
		{"enter the cgroup", enter_cgroup},
		{"wait for the id maps", wait_for_maps},
		{"open the OOM score", open_oom_score},
		{"set ids", become_guest},
		{"death signal", die_with_jailer},
		{"cgroup namespace", unshare_cgroup},
		{"host name", host_name},
		{"keep descriptors", keep_descriptors},
		{"bind the root", bind_root},
		{"mount /tmp", mount_tmp},
		{"attach /data", attach_data},
		{"attach /code", attach_code},
		{"bind /etc/hosts", bind_hosts},
		{"mount /proc", mount_proc},
		{"inodes of its own", own_inodes},
		{"cover folders", cover_folders},
		{"small buffers", small_buffers},
		{"pivot_root", enter_root},
		{"loopback", loopback},
		{"drop capabilities", drop_capabilities},
		{"close descriptors", close_rest},
		{NULL, NULL},
	};

	return take_steps(steps, setup);
}
