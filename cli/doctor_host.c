/*
 * doctor_host.c - what is set up around the kernel: ids, sysctls, programs, the jailer, the data folder, the database.
 *
 * These are files to read, but for two: nginx is asked for its version, and the jailer (a private one where none is
 * configured) what it made of this host. It is asked last because it is the judge over all that was found before.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor.h"
#include "lib/base/util.h"

#define SUBIDS_MIN 65536
#define FREE_MIN   (1024LL * 1024 * 1024)

extern char **environ;

/* Does /etc/subuid or subgid give the user a range of at least SUBIDS_MIN? Lines are "name-or-id:first:count". */
static bool subids_have(const char *path, const char *user, uid_t uid)
{
	auto_fclose FILE *file = fopen(path, "re");
	char line[256], number[16];

	snprintf(number, sizeof(number), "%u", uid);
	while (file && fgets(line, sizeof(line), file)) {
		char *rest = line, *name = strsep(&rest, ":"), *first = strsep(&rest, ":");
		uint64_t count;

		if (!rest || !first)
			continue;
		rest[strcspn(rest, "\n")] = '\0';
		if ((streq(name, user) || streq(name, number)) && !parse_u64(rest, SUBIDS_MIN, UINT32_MAX, &count))
			return true;
	}
	return false;
}

static void check_ids(struct doctor *doctor)
{
	struct passwd *user = getpwuid(geteuid());
	const char *name = user ? user->pw_name : "";
	bool tools = !access("/usr/bin/newuidmap", X_OK) && !access("/usr/bin/newgidmap", X_OK);
	bool ranges = subids_have("/etc/subuid", name, geteuid()) && subids_have("/etc/subgid", name, geteuid());

	if (geteuid() == 0) {
		doctor_add(doctor, "guest ids", DOCTOR_OK, NULL, "started as root: a range of ids of its own");
		return;
	}
	doctor_add(doctor, "guest ids", tools && ranges ? DOCTOR_OK : DOCTOR_WEAKER,
		   tools ? "usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER"
			 : "apt-get install uidmap",
		   "%s",
		   !tools    ? "no newuidmap: guests run under your own id"
		   : !ranges ? "no range in /etc/subuid and /etc/subgid: guests run under your own id"
			     : "newuidmap and a range in /etc/subuid and /etc/subgid");
}

static void check_sysctls(struct doctor *doctor)
{
	auto_free char *core = doctor_read_line("/proc/sys/kernel/core_pattern");
	auto_free char *tiocsti = doctor_read_line("/proc/sys/dev/tty/legacy_tiocsti");
	auto_free char *yama = doctor_read_line("/proc/sys/kernel/yama/ptrace_scope");

	/* The jail's limit of one byte keeps the kernel from starting it (jail/init/init.h); only root can raise a hard
	 * limit to that. */
	bool starts = core && *core == '|';
	struct rlimit limit = {0, 0};

	getrlimit(RLIMIT_CORE, &limit);
	doctor_add(doctor, "core_pattern", starts && geteuid() != 0 && limit.rlim_max == 0 ? DOCTOR_WEAKER : DOCTOR_OK,
		   "raise this user's hard limit of core files (ulimit -Hc, LimitCORE=) to 1: with 0 a guest that "
		   "crashes starts this "
		   "program on the host, as root",
		   "%s%s", core ? core : "not there", starts ? " (not for guests)" : "");
	doctor_add(doctor, "legacy_tiocsti", tiocsti && streq(tiocsti, "0") ? DOCTOR_OK : DOCTOR_WEAKER,
		   tiocsti ? "sysctl dev.tty.legacy_tiocsti=0"
			   : "Linux 6.2 or later, and sysctl dev.tty.legacy_tiocsti=0",
		   "%s", tiocsti ? tiocsti : "no switch: typing into a terminal by ioctl is allowed");
	doctor_add(doctor, "yama", yama && !streq(yama, "0") ? DOCTOR_OK : DOCTOR_WEAKER,
		   yama ? "sysctl kernel.yama.ptrace_scope=1: processes of one user can otherwise trace each other"
			: "a kernel with Yama: processes of one user can otherwise trace each other",
		   "%s", yama ? yama : "not there");
}

/* First line that `argv` writes to either stream; NULL if it cannot be started. */
static char *program_says(char *const argv[])
{
	posix_spawn_file_actions_t actions;
	int ends[2], status, failed;
	auto_free char *text = NULL;
	size_t length = 0;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return NULL;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
	failed = posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (!failed) {
		read_fd(ends[0], 64 * 1024, &text, &length, NULL);
		waitpid(child, &status, 0);
	}
	close(ends[0]);
	if (failed || !text)
		return NULL;
	text[strcspn(text, "\n")] = '\0';
	return steal(&text);
}

static void check_nginx(struct doctor *doctor)
{
	static char name[] = "nginx", path[] = "/usr/sbin/nginx", option[] = "-v";
	auto_free char *on_path = program_says((char *const[]){name, option, NULL});
	auto_free char *in_sbin = on_path ? NULL : program_says((char *const[]){path, option, NULL});
	const char *version = on_path ? on_path : in_sbin;

	doctor_add(doctor, "nginx", version ? DOCTOR_OK : DOCTOR_WEAKER,
		   "apt-get install nginx-light (the gateway needs it, run does not)", "%s",
		   version ? version : "not there");
}

/* What it forbids is missing in the lines above; this one says who is to be asked. */
static void check_container(struct doctor *doctor)
{
	auto_free char *systemd =
		doctor_read_line("/run/systemd/container"); /* nspawn, lxc and others that follow systemd's custom */
	const char *name = systemd                               ? systemd
			   : !access("/.dockerenv", F_OK)        ? "docker"
			   : !access("/run/.containerenv", F_OK) ? "podman"
								 : NULL;

	doctor_add(doctor, "container", DOCTOR_OK, NULL, "%s%s", name ? name : "not in one that says so",
		   name ? ": jails are nested in it, and its seccomp, AppArmor and cgroup decide what is missing above"
			: "");
}

static void check_live(struct doctor *doctor, struct json_object *info)
{
	struct json_object *live = json_get(info, "live", json_type_boolean);
	bool works = live && json_object_get_boolean(live);

	doctor_add(
		doctor, "live sandboxes", works ? DOCTOR_OK : DOCTOR_WEAKER,
		"mount cgroup2 (beside version 1 it needs no controllers) and start the jailer as root, or delegate it",
		"%s", works ? "can be frozen between calls" : "cannot be frozen between calls, so they are refused");
}

/* The jailer is asked last: it is the judge over everything above. */
static void check_jailer(struct doctor *doctor)
{
	auto_jailer struct jail_client *client = NULL;
	auto_json struct json_object *info = NULL;
	struct err err = ERR_INIT;

	if (cli_open_jailer(doctor->config, &client, &err) || jail_client_info(client, &info, &err)) {
		doctor_add(doctor, "jailer", DOCTOR_MISSING, "start it (make run does), or see what is missing above",
			   "%s", err.text);
		return;
	}
	const char *mode = json_get_string(info, "mode"), *cgroup = json_get_string(info, "cgroup");
	bool weaker = !mode || streq(mode, "single-id") || !cgroup || streq(cgroup, "none");

	doctor_add(doctor, "jailer", weaker ? DOCTOR_WEAKER : DOCTOR_OK,
		   "start it as root, or with a range of ids and a delegated cgroup", "%s, %s, cgroup %s",
		   *doctor->config->jailer.socket ? doctor->config->jailer.socket : "private", mode ? mode : "?",
		   cgroup ? cgroup : "?");
	check_live(doctor, info);
	doctor_runners(doctor, client);
}

static void check_data(struct doctor *doctor)
{
	const char *path = doctor->config->data_dir;
	struct statvfs space;
	auto_store struct store *store = NULL;
	struct err err = ERR_INIT;
	int result, version;

	if (!*path) {
		doctor_add(doctor, "data folder", DOCTOR_OK, NULL,
			   "none is configured: run works, nothing is recorded");
		return;
	}
	if (faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) || statvfs(path, &space)) {
		doctor_add(doctor, "data folder", DOCTOR_WEAKER,
			   "make it, owned by the gateway's user, or run doctor as that user", "%s: %s", path,
			   strerror(errno));
		return;
	}
	int64_t free_bytes = (int64_t)space.f_bavail * (int64_t)space.f_frsize;
	char text[CLI_TEXT_SIZE];

	cli_text_bytes(free_bytes, text);
	doctor_add(doctor, "data folder", free_bytes < FREE_MIN ? DOCTOR_WEAKER : DOCTOR_OK,
		   "make room: the record needs it", "%s: %s free", path, text);
	result = store_open(path, STORE_READ, &store, &err);
	if (result == -ERR_NOT_FOUND)
		doctor_add(doctor, "database", DOCTOR_OK, NULL, "none yet: the gateway's first start makes it");
	else if (result)
		doctor_add(doctor, "database", DOCTOR_WEAKER, "see what it says; a backup or the newer release helps",
			   "%s", err.text);
	else if (store_schema_version(path, &version, &err) == 0)
		doctor_add(doctor, "database", DOCTOR_OK, NULL, "opens, version %d", version);
}

void doctor_host(struct doctor *doctor)
{
	check_ids(doctor);
	check_sysctls(doctor);
	check_container(doctor);
	check_nginx(doctor);
	check_jailer(doctor);
	check_data(doctor);
}
