/*
 * check.c - see check.h.
 *
 * The steps are those of start.c, in its order. Then the versions of all runners are asked for, as a jailer does for a
 * client's first run (versions.c): each is a program in a jail of its own. The first jail speaks for all, as it is made
 * of everything that a host must have: namespaces, mounts, limits, seccomp, Landlock. What is reported of a step beyond
 * "works" is read from what the start found (identity, cgroup, Landlock), so that it cannot differ from it.
 */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/utsname.h>

#include "jail/init/landlock.h"
#include "jail/root/layers.h"
#include "lib/base/util.h"
#include "start.h"

#define SWAPS_MAX (64 * 1024)

struct check {
	check_say *say;
	struct jailer *jailer;
	bool broken;    /* a step was not ok */
	bool jail_made; /* of some runner */
	bool no_jail;   /* the first one failed, and so would the others */
	size_t usable;  /* runners */
};

enum state { OK, WEAKER, BROKEN };

/* `more`: further members of the line, taken over; NULL: none. */
static void tell(struct check *check, const char *step, enum state state, const char *what, const char *remedy,
		 struct json_object *more)
{
	auto_json struct json_object *line = json_object_new_object(), *rest = more;

	json_add_string(line, "step", step);
	json_add_bool(line, "ok", state != BROKEN);
	json_add_bool(line, "weaker", state == WEAKER);
	json_add_string(line, "what", what);
	if (state != OK)
		json_add_string(line, "remedy", remedy);
	if (rest) {
		json_object_object_foreach(rest, key, value)
			json_add(line, key, json_object_get(value));
	}
	check->say(line);
	check->broken = check->broken || state == BROKEN;
}

/* -------- the start ----------------------------------------------------------------------------------- */

static void tell_grouped(struct check *check)
{
	const struct cgroup *cgroup = check->jailer->cgroup;
	const char *why = cgroup_cannot_freeze(cgroup);
	auto_free char *swaps = NULL;
	size_t length = 0;

	if (read_file_at(AT_FDCWD, "/proc/swaps", SWAPS_MAX, &swaps, &length, NULL) < 0)
		swaps = NULL;
	const char *first = swaps ? strchr(swaps, '\n') : NULL; /* after the titles */
	bool limited = cgroup_limits_swap(cgroup), used = first && first[1];

	tell(check, "swap", used && !limited ? WEAKER : OK,
	     !used     ? "none in use"
	     : limited ? "in use, and limited by cgroups"
		       : "in use, and not limited by cgroups",
	     "swap", NULL);
	tell(check, "live sandboxes", why ? WEAKER : OK, why ? why : "can be frozen between calls", "freezer", NULL);
}

/* What the kernel adds to the isolation, if it has it. */
static void tell_layers(struct check *check)
{
	const struct root_mount *root = &check->jailer->root;
	const char *missing = layers_missing(root);
	const int abi = landlock_abi();
	/* A directory below which something is mounted cannot be a layer. */
	const char *reason = root->n_bound ? "something is mounted below it"
					   : "the kernel has no overlays, or refuses them";
	auto_free char *overlays = missing ? xasprintf("not of %s: %s", missing, reason)
					   : xstrdup("each jail has inodes of its own");
	auto_free char *landlock = xasprintf("ABI %d", abi);

	tell(check, "overlays", missing ? WEAKER : OK, overlays, root->n_bound ? "overlays" : "overlay", NULL);
	if (abi >= LANDLOCK_ABI_LEAST)
		tell(check, "landlock", OK, landlock, NULL, NULL);
	else
		tell(check, "landlock", WEAKER, abi > 0 ? "too old to be used" : "not enabled in the kernel",
		     abi > 0 ? "landlock-new" : "landlock", NULL);
}

static void tell_step(struct check *check, enum start_step step)
{
	static const char *const ids[] = {
		[IDENTITY_ROOT] = "started as root: a range of ids of its own",
		[IDENTITY_ROOTLESS] = "newuidmap and a range in /etc/subuid and /etc/subgid",
		[IDENTITY_SINGLE] =
			"no newuidmap, or no range in /etc/subuid and /etc/subgid: guests run under your own id",
	};
	const enum identity_mode mode = check->jailer->identity.mode;
	const char *kind = step >= START_CGROUP ? cgroup_kind(check->jailer->cgroup) : "";
	auto_free char *what = NULL;

	if (step == START_IDS) {
		tell(check, start_name(step), mode == IDENTITY_SINGLE ? WEAKER : OK, ids[mode], "subids", NULL);
	} else if (step == START_CGROUP && streq(kind, "none")) {
		tell(check, start_name(step), WEAKER,
		     "none: memory, processes and CPU time are limited for each process alone", "cgroup", NULL);
	} else {
		if (step == START_CGROUP)
			what = xasprintf("version %s: memory, pids and cpu", kind + 1);
		tell(check, start_name(step), OK, what ? what : "works", NULL, NULL);
	}
}

static bool take(struct check *check, enum start_step step)
{
	struct err err = ERR_INIT;

	if (start_take(check->jailer, step, &err) == 0) {
		tell_step(check, step);
	} else {
		tell(check, start_name(step), BROKEN, err.text, start_name(step), NULL);
		if (step != START_CGROUP)
			return false;
		check->jailer->config.jailer.weaker_limits = true;
		if (start_take(check->jailer, step, &err) < 0)
			return false;
	}
	if (step == START_CGROUP)
		tell_grouped(check);
	if (step == START_LOOP)
		tell_layers(check);
	return true;
}

/* -------- the first jails ----------------------------------------------------------------------------- */

static struct json_object *runner_line(const struct runner *runner)
{
	struct json_object *line = json_object_new_object();

	json_add_string(line, "runner", runner->name);
	json_add_string(line, "install", runner->install);
	return line;
}

/* The first jail speaks for all: its failure is the host's. */
static void tell_jail(struct check *check, const struct jail_result *result, const struct err *why)
{
	struct json_object *line = NULL;

	check->jail_made = result && result->verdict != JAIL_XX;
	check->no_jail = !check->jail_made;
	if (result && *result->step) {
		line = json_object_new_object();
		json_add_string(line, "at", result->step);
		json_add_int(line, "errno", result->step_errno);
	}
	tell(check, "jail", check->jail_made ? OK : BROKEN,
	     check->jail_made ? "namespaces, mounts, limits and system call filter work" : result ? result->message
											  : why->text,
	     "jail", line);
}

static void on_version(void *arg, const struct runner *runner, const struct jail_result *result, const struct err *why)
{
	struct check *check = arg;
	bool ran = result && result->verdict == JAIL_OK;

	if (!check->jail_made && !check->no_jail)
		tell_jail(check, result, why);
	if (check->no_jail)
		return;
	bool usable = ran && runner->interpreter; /* NULL: too old */
	check->usable += usable;
	tell(check, "runner", usable ? OK : WEAKER,
	     usable ? runner->fingerprint
	     : ran  ? "its interpreter is too old"
	     : !why ? "its version command fails in a jail"
		    : why->text,
	     "runner", runner_line(runner));
}

/* As a client would, waits for the version of a runner that can be used. False: the jailer shall stop. */
static bool run_program(struct jailer *jailer, struct runner *runner)
{
	int event = 0;

	runner->awaited = runner->interpreter && runner->version.count > 0;
	while (runner->awaited && !jailer->stop && event >= 0) {
		cells_tick(&jailer->cells);
		versions_tick(&jailer->versions);
		cells_reap(&jailer->cells);
		if (runner->awaited)
			event = loop_once(jailer->loop, cells_deadline(&jailer->cells));
	}
	return !jailer->stop && event >= 0;
}

static void run_programs(struct check *check)
{
	struct jailer *jailer = check->jailer;
	struct runners *runners = &jailer->runners;
	bool more = true;

	for (size_t i = 0; i < runners->count; i++) {
		struct runner *runner = &runners->items[i];

		if (runner->interpreter && runner->version.count == 0)
			tell(check, "runner", OK, "has no version", "runner", runner_line(runner));
		if (!runner->interpreter)
			tell(check, "runner", WEAKER, "its interpreter is missing", "runner", runner_line(runner));
	}
	jailer->versions.answered = on_version;
	jailer->versions.arg = check;
	for (size_t i = 0; i < runners->count && more && !check->no_jail; i++)
		more = run_program(jailer, &runners->items[i]);
	if (!check->usable && !check->no_jail)
		tell(check, "runners", BROKEN, "no program can be run", "runners", NULL);
}

bool check_host(struct jailer *jailer, check_say *say)
{
	struct check check = {.say = say, .jailer = jailer};
	bool started = true;
	struct utsname host;

	uname(&host);
	auto_free char *kernel = xasprintf("%s %s", host.release, host.machine);
	tell(&check, "kernel", OK, kernel, NULL, NULL);
	for (enum start_step step = 0; started && step < START_STEPS; step++)
		started = !start_wanted(jailer, step) || take(&check, step);
	if (started)
		run_programs(&check);
	const char *kind = started ? cgroup_kind(jailer->cgroup) : "";
	auto_free char *what = xasprintf("%s, cgroup %s", identity_mode_text(jailer->identity.mode), kind);
	bool weaker = jailer->identity.mode == IDENTITY_SINGLE || streq(kind, "none");

	tell(&check, "jailer", check.broken ? BROKEN : weaker ? WEAKER : OK, started ? what : "cannot start", "jailer",
	     NULL);
	start_clear(jailer);
	return !check.broken;
}
