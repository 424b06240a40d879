/*
 * doctor_jailer.c - can jails be made here? `sallyport-jailer --check` tries and says so, one JSON object a step
 * (jail/check.h); we put the remedies to it and have no opinion of our own.
 *
 * Where a jailer serves on a socket it is asked for its mode, too: it may run as another user than doctor does.
 */
#include <string.h>
#include <sys/wait.h>

#include "doctor.h"
#include "lib/base/util.h"

/* One for the jailer, and none in it for jails, is too few. */
static bool namespaces_limited(void)
{
	auto_free char *most = doctor_read_line("/proc/sys/user/max_user_namespaces");

	return most && (streq(most, "0") || streq(most, "1"));
}

/* By the keys of jail/check.c. Not here: "user namespace" (above), "runner" (its own `install`). */
static const struct {
	const char *key, *text;
} remedies[] = {
	{"cgroup",
	 "systemd-run --user --scope -p Delegate=yes …, or start the jailer as root; else jailer.weaker_limits"},
	{"configuration", "correct the member that the message names, see sallyport.conf(5)"},
	{"egress relay", "correct network.allow or network.proxy, or leave network.allow empty"},
	{"freezer",
	 "mount cgroup2 (next to version 1 it needs no controllers) and start the jailer as root, or delegate it"},
	{"guest ids", "correct jailer.id_base and jailer.id_count, or stop a jailer that is not needed"},
	{"jail",
	 "use a kernel of at least 5.10; in a container its seccomp profile must allow mounts and its /proc must not be masked (docker: --security-opt systempaths=unconfined)"},
	{"jailer", "start it as root, or with a range of ids and a delegated cgroup; see what is missing above"},
	{"landlock", "boot with landlock in the kernel's list lsm=…: it is a second layer of access control"},
	{"landlock-new", "install a kernel of at least 5.19"},
	{"open files", "raise the limit (ulimit -Hn, LimitNOFILE=)"},
	{"overlay",
	 "modprobe overlay, then restart the jailer; without it, file locks of guests on /usr meet the host's"},
	{"overlays", "unmount it; in a unit, ProtectKernelModules= mounts below /usr"},
	{"id-map helper", "correct jailer.allowed_users, and the lines of this user in /etc/subuid and /etc/subgid"},
	{"root mounts", "correct the folder that the message names; in a container, allow mounts"},
	{"runner files", "correct the file that the message names"},
	{"runners", "install one of the interpreters above"},
	{"seccomp", "use a kernel with CONFIG_SECCOMP_FILTER, outside of emulators"},
	{"subids",
	 "apt-get install uidmap, then give the user 65,536 ids that no other line of /etc/subuid and /etc/subgid has: usermod --add-subuids FIRST-LAST --add-subgids FIRST-LAST USER"},
	{"swap",
	 "boot with swapaccount=1, or swapoff -a if memory has room for the swapped pages: a jail's memory limit does not count swapped pages"},
};

static const char *remedy_of(struct json_object *line)
{
	const char *key = json_get_string(line, "remedy"), *install = json_get_string(line, "install");

	if (!key || install)
		return install;
	if (streq(key, "user namespace") || (streq(key, "jail") && namespaces_limited())) {
		auto_free char *clone_switch = doctor_read_line("/proc/sys/kernel/unprivileged_userns_clone");
		auto_free char *apparmor = doctor_read_line("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");

		if (clone_switch && streq(clone_switch, "0"))
			return "start the jailer as root, which needs no setting; else sysctl "
			       "kernel.unprivileged_userns_clone=1, which lets every user make namespaces";
		if (namespaces_limited())
			return "sysctl user.max_user_namespaces=65536";
		if (apparmor && streq(apparmor, "1"))
			return "an AppArmor profile with userns for sallyport-jailer, or start it as root; else sysctl "
			       "kernel.apparmor_restrict_unprivileged_userns=0, which lifts it for every program";
		return "allow user namespaces: in a container its seccomp profile forbids them, in a kernel "
		       "CONFIG_USER_NS is missing";
	}
	for (size_t i = 0; i < ARRAY_SIZE(remedies); i++)
		if (streq(remedies[i].key, key))
			return remedies[i].text;
	return key;
}

/* What the account decides that starts a jailer. Of a service that answers these are its own, and it says them. */
static bool of_account(const char *step)
{
	static const char *const steps[] = {"guest ids", "cgroup", "freezer", "id-map helper", "open files"};

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		if (streq(steps[i], step))
			return true;
	return false;
}

/* A language that nobody installed is missed by nobody. */
static void add_runner(struct doctor *doctor, const char *name, const char *what, enum doctor_state state,
		       const char *install)
{
	if (state == DOCTOR_WEAKER)
		doctor_add(doctor, "runner", DOCTOR_OK, NULL, "%s: %s (optional: %s)", name, what, install);
	else
		doctor_add(doctor, "runner", state, install, "%s: %s", name, what);
}

static void add_line(struct doctor *doctor, struct json_object *line, bool served)
{
	const char *step = json_get_string(line, "step"), *what = json_get_string(line, "what"),
		   *runner = json_get_string(line, "runner");
	const bool jailer = streq(step, "jailer");
	const bool ok = json_object_get_boolean(json_get(line, "ok", json_type_boolean));
	const bool weaker = json_object_get_boolean(json_get(line, "weaker", json_type_boolean));

	if ((jailer && *doctor->config->jailer.socket) || (served && of_account(step)))
		return; /* the one on the socket counts */
	const enum doctor_state state = !ok ? DOCTOR_MISSING : weaker ? DOCTOR_WEAKER : DOCTOR_OK;

	if (runner)
		add_runner(doctor, runner, what ? what : "?", state, remedy_of(line));
	else
		doctor_add(doctor, step, state, remedy_of(line), "%s%s", jailer ? "private, " : "", what ? what : "?");
}

/* Does a jailer answer on the socket? */
static bool ask_service(struct doctor *doctor)
{
	auto_jailer struct jail_client *client = NULL;
	auto_json struct json_object *info = NULL;
	struct err err = ERR_INIT;

	if (jail_client_dial(doctor->config, &client, 1, &err) < 0 || jail_client_info(client, &info, &err) < 0) {
		doctor_add(doctor, "jailer", DOCTOR_MISSING, "start it (make run does), or see what is missing above",
			   "%s", err.text);
		return false;
	}
	const char *mode = json_get_string(info, "mode"), *cgroup = json_get_string(info, "cgroup");
	bool weaker = !mode || streq(mode, "single-id") || !cgroup || streq(cgroup, "none");

	doctor_add(doctor, "jailer", weaker ? DOCTOR_WEAKER : DOCTOR_OK,
		   "start it as root, or with a range of ids and a delegated cgroup", "%s, %s, cgroup %s",
		   doctor->config->jailer.socket, mode ? mode : "?", cgroup ? cgroup : "?");
	return true;
}

void doctor_jailer(struct doctor *doctor)
{
	/* Runs the check. Every line of it is a finding; none at all is one, too. */
	static char check[] = "--check", config[] = "--config";
	struct err err = ERR_INIT;
	auto_free char *program = jail_client_program(doctor->config, &err), *answer = NULL;
	bool judged = false, served = *doctor->config->jailer.socket && ask_service(doctor);
	char *rest;

	if (program) {
		char *const argv[] = {program, check, doctor->config->path ? config : NULL,
				      unconst(doctor->config->path), NULL};

		answer = doctor_ask(argv, false, NULL);
	}
	rest = answer;
	for (char *line; (line = strsep(&rest, "\n"));) {
		auto_json struct json_object *object = NULL;

		if (!*line || json_parse(line, strlen(line), &object, NULL) < 0 || !json_get_string(object, "step"))
			continue;
		judged = judged || streq(json_get_string(object, "step"), "jailer");
		add_line(doctor, object, served);
	}
	if (!judged)
		doctor_add(doctor, "jailer check", DOCTOR_MISSING, "see what is missing above, or its standard error",
			   "%s", program ? "sallyport-jailer --check did not finish" : err.text);
}
