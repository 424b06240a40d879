/*
 * runner.c - see runner.h.
 *
 * Runner files are written by the operator, but a wrong one must not stop being noticed: members are bound strictly,
 * names and aliases must be unique, and any fault is an error that names the file. Whether a runner is available is
 * decided once, at start, while the host's files can still be seen: by the first of its interpreters that is there and
 * may be executed by anybody. What it is called and what it has installed is asked later, from the inside of a jail
 * (versions.c).
 */
#include "runner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "jail/root/root_mount.h"
#include "jail/root/rootfs.h"
#include "lib/base/embed.h"
#include "lib/base/util.h"

#define INTERPRETER "{interpreter}"
#define MEMORY      "{memory_mb}"
#define FIELD(field, kind, least, most)                                                                                \
	.name = #field, .type = kind, .offset = offsetof(struct runner, field), .min = least, .max = most
#define MUST(field, kind, least, most) {FIELD(field, kind, least, most), .flags = BIND_REQUIRED}
#define LIST(field)                    {FIELD(field, BIND_STRINGS, 0, 64)}
#define FILE_NAME(field)               {FIELD(field, BIND_STRING, 1, 64)}
#define FAMILY(field)                  {FIELD(field, BIND_STRING, 0, 0), .choices = seccomp_families}

static const struct bind table[] = {
	MUST(name, BIND_STRING, 1, 31),
	MUST(source, BIND_STRING, 1, 64),
	MUST(install, BIND_STRING, 1, 256),
	LIST(aliases),
	LIST(extensions),
	MUST(interpreters, BIND_STRINGS, 1, 64),
	LIST(compile),
	MUST(run, BIND_STRINGS, 1, 64),
	LIST(tools_run),
	LIST(show_run),
	LIST(live),
	FILE_NAME(starter),
	FILE_NAME(helper),
	FILE_NAME(warm),
	LIST(version),
	LIST(libraries),
	LIST(libraries_are),
	LIST(answers_are),
	LIST(env),
	LIST(quiet),
	FAMILY(seccomp),
	FAMILY(seccomp_compile),
	LIST(binds),
	LIST(cache),
	{FIELD(rootfs, BIND_STRING, 1, 4095)},
	{FIELD(service, BIND_BOOL, 0, 0)},
	{FIELD(internal, BIND_BOOL, 0, 0)},
	{FIELD(unlisted, BIND_BOOL, 0, 0)},
	{FIELD(reserves_mb, BIND_INT, 0, 65536)},
	{FIELD(version_least, BIND_INT, 0, 1000000)},
	{0},
};

/* A language that an operator added gets no more system calls than all languages need. */
static int check_families(struct runner *runner, struct err *err)
{
	if (runner->seccomp_compile && !runner->compile.count)
		return err_member(err, "seccomp_compile", "goes with \"compile\": there is no compile step");
	runner->family = runner->seccomp ? seccomp_family(runner->seccomp) : SECCOMP_BASE;
	runner->family_compile = runner->seccomp_compile ? seccomp_family(runner->seccomp_compile) : SECCOMP_COMPILER;
	return 0;
}

static bool in_modules(const struct runner *runner, const char *path)
{
	return !runner->rootfs && str_starts(path, ROOT_MOUNT_MODULES "/");
}

/* What a jail of this runner sees as `path`, on the host; the caller's. */
static char *on_host(const struct runner *runner, const char *path, const char *modules_dir)
{
	if (in_modules(runner, path))
		return xasprintf("%s%s", modules_dir, path + strlen(ROOT_MOUNT_MODULES));
	return xasprintf("%s%s", runner->rootfs ? runner->rootfs : "", path);
}

/* The path on the host of what is an executable file where a jail of this runner sees `path`; NULL. The caller's. */
static char *present(const struct runner *runner, const char *path, const char *modules_dir)
{
	auto_free char *place = on_host(runner, path, modules_dir);
	bool modules = in_modules(runner, path);

	if (modules ? !modules_dir[0] || !rootfs_has(NULL, place) : !rootfs_has(runner->rootfs, path))
		return NULL;
	return steal(&place);
}

/* The same patterns on the host; NULL: none. */
static struct json_object *patterns_on_host(const struct runner *runner, const struct bind_strings *patterns,
					    const char *modules_dir)
{
	struct json_object *list = NULL;

	for (size_t i = 0; i < patterns->count; i++) {
		auto_free char *place = on_host(runner, patterns->items[i], modules_dir);

		if (in_modules(runner, patterns->items[i]) && !modules_dir[0])
			continue;
		if (!list)
			list = json_object_new_array();
		json_object_array_add(list, json_object_new_string(place));
	}
	return list;
}

/* The folders that the configuration names for services count as if the runner file named them. */
static int check_directories(struct runner *runner, const struct runners_host *host, struct err *err)
{
	const struct bind_strings *more = runner->service ? host->service_binds : NULL;
	int result = runner->rootfs ? rootfs_check("rootfs", runner->rootfs, host->state_dir, err) : 0;

	if (more)
		runner->binds.items = xrealloc(runner->binds.items, runner->binds.count + more->count + 1,
					       sizeof(*runner->binds.items));
	for (size_t i = 0; more && i < more->count; i++)
		runner->binds.items[runner->binds.count++] = more->items[i];
	if (runner->rootfs && runner->binds.count)
		return err_member(err, "binds", "cannot be shown in a rootfs: put the directories into it");
	for (size_t i = 0; result == 0 && i < runner->binds.count; i++)
		result = rootfs_check_bind("binds", runner->binds.items[i], host->state_dir, err);
	return result;
}

static int check(struct runner *runner, const struct runners_host *host, struct err *err)
{
	if (strchr(runner->source, '/') || runner->source[0] == '.')
		return err_member(err, "source", "must be a plain file name");
	for (size_t i = 0; i < runner->env.count; i++)
		if (!strchr(runner->env.items[i], '='))
			return err_member(err, "env", "must be NAME=value, not %s", runner->env.items[i]);
	for (size_t i = 0; i < runner->interpreters.count; i++)
		if (runner->interpreters.items[i][0] != '/')
			return err_member(err, "interpreters", "must be absolute paths, not %s",
					  runner->interpreters.items[i]);
	int result = check_families(runner, err);
	if (result == 0)
		result = check_directories(runner, host, err);
	for (size_t i = 0; result == 0 && i < runner->interpreters.count && !runner->interpreter; i++)
		if ((runner->on_host = present(runner, runner->interpreters.items[i], host->modules_dir)))
			runner->interpreter = runner->interpreters.items[i];
	runner->libraries_on_host = patterns_on_host(runner, &runner->libraries_are, host->modules_dir);
	runner->answers_on_host = patterns_on_host(runner, &runner->answers_are, host->modules_dir);
	return result;
}

/* The files of jail/guest that runner files name. The jailer has them embedded, so that a runner file can be copied
 * alone. */
EMBED(guest_csharp_sh, "jail/guest/csharp.sh");
EMBED(guest_java_sh, "jail/guest/java.sh");
EMBED(guest_javascript_cjs, "jail/guest/javascript.cjs");
EMBED(guest_javascript_live_cjs, "jail/guest/javascript_live.cjs");
EMBED(guest_picture_py, "jail/guest/picture.py");
EMBED(guest_python_py, "jail/guest/python.py");
EMBED(guest_python_values_py, "jail/guest/python_values.py");
EMBED(guest_python_warm_py, "jail/guest/python_warm.py");
EMBED(guest_sql_py, "jail/guest/sql.py");
#define GUEST(name, symbol) {name, symbol, symbol##_end}
static const struct {
	const char *name, *text, *end;
} guest_files[] = {
	GUEST("csharp.sh", guest_csharp_sh),
	GUEST("java.sh", guest_java_sh),
	GUEST("javascript.cjs", guest_javascript_cjs),
	GUEST("javascript_live.cjs", guest_javascript_live_cjs),
	GUEST("picture.py", guest_picture_py),
	GUEST("python.py", guest_python_py),
	GUEST("python_values.py", guest_python_values_py),
	GUEST("python_warm.py", guest_python_warm_py),
	GUEST("sql.py", guest_sql_py),
};

static int load_text(int directory, const char *member, const char *name, int *ret_fd, struct err *err)
{
	auto_free char *text = NULL;
	size_t length;

	if (strchr(name, '/'))
		return err_member(err, member, "must be a plain file name");
	size_t i = faccessat(directory, name, F_OK, 0) == 0 ? ARRAY_SIZE(guest_files) : 0;
	while (i < ARRAY_SIZE(guest_files) && !streq(guest_files[i].name, name))
		i++;
	if (i < ARRAY_SIZE(guest_files)) {
		*ret_fd = memfd_with(member, guest_files[i].text, (size_t)(guest_files[i].end - guest_files[i].text));
	} else {
		int result = read_file_at(directory, name, RUNNER_FILE_MAX, &text, &length, err);

		if (result < 0)
			return result;
		*ret_fd = memfd_with(member, text, length);
	}
	return *ret_fd < 0 ? err_errno(err, "keeping %s", name) : 0;
}

static int load_texts(int directory, struct runner *runner, struct err *err)
{
	const char *command = runner->live.count ? "live" : runner->show_run.count ? "show_run" : NULL;
	int result = 0;

	if (command && !runner->starter)
		return err_member(err, "starter", "goes with \"%s\"", command);
	if (command && runner->compile.count)
		return err_member(err, command, "does not go with a compile step");
	if (runner->warm && !runner->show_run.count)
		return err_member(err, "warm", "goes with \"show_run\"");
	if (runner->starter)
		result = load_text(directory, "starter", runner->starter, &runner->starter_fd, err);
	if (result == 0 && runner->helper)
		result = load_text(directory, "helper", runner->helper, &runner->helper_fd, err);
	if (result == 0 && runner->warm)
		result = load_text(directory, "warm", runner->warm, &runner->warm_fd, err);
	return result;
}

static void clear(struct runner *runner)
{
	close_pointer(&runner->starter_fd);
	close_pointer(&runner->helper_fd);
	close_pointer(&runner->warm_fd);
	bind_clear(table, runner);
	json_put_pointer(&runner->document);
	json_put_pointer(&runner->found_libraries);
	json_put_pointer(&runner->libraries_on_host);
	json_put_pointer(&runner->answers_on_host);
	root_mount_clear(&runner->root);
	free(runner->cache_name);
	free(runner->on_host);
	close_pointer(&runner->cache_fd);
}

static int load_file(int directory, const char *name, const struct runners_host *host, struct runner *ret,
		     struct err *err)
{
	auto_free char *text = NULL;
	struct runner runner = {.starter_fd = -1, .helper_fd = -1, .warm_fd = -1, .cache_fd = -1};
	size_t length;
	int result = read_file_at(directory, name, RUNNER_FILE_MAX, &text, &length, err);

	if (result == 0)
		result = json_parse_commented(text, length, &runner.document, err);
	if (result == 0)
		result = bind_parse(table, runner.document, &runner, err);
	if (result == 0)
		result = check(&runner, host, err);
	if (result == 0)
		result = load_texts(directory, &runner, err);
	if (result < 0) {
		clear(&runner);
		return err_wrap(err, "runner file %s", name);
	}
	*ret = runner;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct runner *)a)->name, ((const struct runner *)b)->name);
}

static int check_names(const struct runners *runners, struct err *err)
{
	for (size_t i = 0; i < runners->count; i++) {
		const struct runner *runner = &runners->items[i];

		if (runners_find(runners, runner->name) != runner)
			return err_set(err, ERR_INVALID, "two runners are called %s", runner->name);
		for (size_t k = 0; k < runner->aliases.count; k++)
			if (runners_find(runners, runner->aliases.items[k]) != runner)
				return err_set(err, ERR_INVALID, "two runners are called %s", runner->aliases.items[k]);
	}
	return 0;
}

int runners_load(const char *directory, const struct runners_host *host, struct runners *ret, struct err *err)
{
	struct runners runners = {.items = xcalloc(RUNNERS_MAX, sizeof(*runners.items))};
	DIR *list = opendir(directory);
	int result = 0;

	if (!list) {
		err_errno(err, "opening the runners' directory %s", directory);
		runners_clear(&runners);
		return err_wrap(err,
				"jailer.runners_dir must name the folder of the languages' files, or be left out for the installed one");
	}
	for (struct dirent *entry; result == 0 && (entry = readdir(list));) {
		size_t length = strlen(entry->d_name);

		if (length < 6 || entry->d_name[0] == '.' || !streq(entry->d_name + length - 5, ".json"))
			continue;
		if (runners.count == RUNNERS_MAX)
			result = err_set(err, ERR_LIMIT, "more than %d runner files in %s", RUNNERS_MAX, directory);
		else if ((result = load_file(dirfd(list), entry->d_name, host, &runners.items[runners.count],
					     err)) == 0)
			runners.count++;
	}
	closedir(list);
	qsort(runners.items, runners.count, sizeof(*runners.items), by_name);
	for (size_t i = 0; i < runners.count; i++)
		if (runners.items[i].rootfs || runners.items[i].binds.count)
			snprintf(runners.items[i].root.path, ROOT_MOUNT_PATH_SIZE, ROOT_MOUNT_PATH "%zu", i);
	if (result == 0)
		result = check_names(&runners, err);
	if (result < 0)
		runners_clear(&runners);
	else
		*ret = runners;
	return result;
}

void runners_clear(struct runners *runners)
{
	for (size_t i = 0; i < runners->count; i++)
		clear(&runners->items[i]);
	free(runners->items);
	*runners = (struct runners){.items = NULL};
}

struct runner *runners_find(const struct runners *runners, const char *name)
{
	for (size_t i = 0; i < runners->count; i++) {
		struct runner *runner = &runners->items[i];

		if (streq(runner->name, name))
			return runner;
		for (size_t k = 0; k < runner->aliases.count; k++)
			if (streq(runner->aliases.items[k], name))
				return runner;
	}
	return NULL;
}

struct runner *runners_warm(const struct runners *runners)
{
	for (size_t i = 0; i < runners->count; i++)
		if (runners->items[i].warm && runners->items[i].interpreter && !runners->items[i].root.path[0])
			return &runners->items[i];
	return NULL;
}

char *runner_expand(const struct runner *runner, const char *text, int64_t memory_bytes)
{
	const char *memory = strstr(text, MEMORY);

	if (streq(text, INTERPRETER))
		return xstrdup(runner->interpreter ? runner->interpreter : "");
	if (!memory)
		return xstrdup(text);
	return xasprintf("%.*s%lld%s", (int)(memory - text), text, (long long)(memory_bytes >> 20),
			 memory + strlen(MEMORY));
}

static struct json_object *print_strings(const struct bind_strings *strings)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < strings->count; i++)
		json_object_array_add(array, json_object_new_string(strings->items[i]));
	return array;
}

struct json_object *runners_print(const struct runners *runners)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < runners->count; i++) {
		const struct runner *runner = &runners->items[i];
		struct json_object *object = json_object_new_object();

		json_add_string(object, "name", runner->name);
		json_add(object, "aliases", print_strings(&runner->aliases));
		json_add(object, "extensions", print_strings(&runner->extensions));
		json_add_bool(object, "available", runner->interpreter != NULL);
		json_add_string(object, "interpreter", runner->on_host);
		json_add_string(object, "install", runner->install);
		json_add_string(object, "version", runner->fingerprint);
		json_add(object, "libraries",
			 runner->found_libraries ? json_object_get(runner->found_libraries) : json_object_new_array());
		if (runner->libraries_on_host)
			json_add(object, "libraries_are", json_object_get(runner->libraries_on_host));
		json_add_bool(object, "compiled", runner->compile.count > 0);
		json_add_bool(object, "live", runner->live.count > 0);
		if (runner->internal)
			json_add_bool(object, "internal", true);
		if (runner->unlisted)
			json_add_bool(object, "unlisted", true);
		json_object_array_add(array, object);
	}
	return array;
}
