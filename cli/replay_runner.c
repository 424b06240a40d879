/*
 * replay_runner.c - the same executions under other interpreters: `sallyport replay --runner NAME=PATH`, --first-bad.
 *
 * Each --runner is a replay of its own, by a private jailer with a folder of runner files in which that language has
 * that interpreter. The files are links to the configured ones, but for the one that changes. An interpreter outside
 * of the directories that every jail has needs its prefix in the jail, too: the parent of the folder that it is in.
 */
#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "replay_batch.h"

#define FILE_MAX (1 << 20)

static void add_list(struct json_object *file, const char *member, const char *item)
{
	struct json_object *list = json_object_new_array();

	json_object_array_add(list, json_object_new_string(item));
	json_add(file, member, list);
}

static int make_folder(const char *folder, const char *from, const char *runner, const char *interpreter,
		       struct err *err)
{
	auto_free char *name = xasprintf("%s.json", runner), *path = xasprintf("%s/%s", from, name);
	auto_free char *new = xasprintf("%s/%s", folder, name), *bin = xstrdup(interpreter), *text = NULL;
	auto_json struct json_object *file = NULL;
	auto_buf struct buf changed;
	size_t length;

	buf_init(&changed, FILE_MAX);
	if (read_file_at(AT_FDCWD, path, FILE_MAX, &text, &length, NULL) < 0)
		return err_set(err, ERR_INVALID, "--runner %s=%s: no runner of that name", runner, interpreter);
	if (json_parse_commented(text, length, &file, err) < 0)
		return err_wrap(err, "%s", path);
	add_list(file, "interpreters", interpreter);
	if (!str_starts(interpreter, "/usr/") && !str_starts(interpreter, "/bin/"))
		add_list(file, "binds", dirname(dirname(bin)));
	json_object_object_del(file, "cache"); /* another version's would be another */
	json_print(&changed, file);
	mkdir(folder, 0755);
	auto_close int fd = open(new, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	DIR *dir = opendir(from);

	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		auto_free char *to = xasprintf("%s/%s", from, entry->d_name);
		auto_free char *at = xasprintf("%s/%s", folder, entry->d_name);

		if (entry->d_name[0] != '.')
			(void)!symlink(to, at); /* the new file is there already */
	}
	if (dir)
		closedir(dir);
	return !dir || fd < 0 || write_all(fd, changed.data, changed.length) < 0 ? err_errno(err, "making %s", folder)
										 : 0;
}

static void print_line(const struct replay_options *options, const char *member, const char *title, const char *spec)
{
	auto_json struct json_object *line = json_object_new_object();

	json_add_string(line, member, spec);
	if (options->common.json)
		cli_print_json(stdout, line, false);
	else
		printf("%s %s\n", title, spec ? spec : "none");
	fflush(stdout); /* an interrupt may end us */
}

static int try_one(const struct replay_trying *trying, size_t i, struct err *err)
{
	const char *spec = trying->options->runners.items[i], *equals = strchr(spec, '=');
	auto_free char *runner = xstrndup(spec, equals ? (size_t)(equals - spec) : 0);
	auto_free char *folder = xasprintf("%s/%zu", trying->folder, i);

	if (!equals || equals[1] != '/' || access(equals + 1, X_OK) || !*runner || strchr(runner, '/'))
		return err_set(err, ERR_INVALID,
			       "--runner takes NAME=PATH, a runner's name and the full path of an interpreter, not \"%s\"",
			       spec);
	const int result = make_folder(folder, trying->from, runner, equals + 1, err);

	if (result < 0)
		return result;
	print_line(trying->options, "runner", "==", spec);
	setenv("SALLYPORT_JAILER_RUNNERS_DIR", folder, 1);
	return trying->replay(trying, err);
}

/* The list goes from good to bad: with as few replays as that takes. */
static int find_first_bad(const struct replay_trying *trying, struct err *err)
{
	const struct bind_strings *list = &trying->options->runners;
	size_t from = 0, to = list->count; /* the first bad one is among [from, to], `to` being none */

	while (from < to) {
		const size_t middle = (from + to) / 2;
		const int result = try_one(trying, middle, err);

		if (result != CLI_OK && result != CLI_DIFFERENT)
			return result;
		if (result == CLI_DIFFERENT)
			to = middle;
		else
			from = middle + 1;
	}
	print_line(trying->options, "first_bad", "first bad:", from < list->count ? list->items[from] : NULL);
	return from < list->count ? CLI_DIFFERENT : CLI_OK;
}

int replay_runners_run(const struct replay_trying *asked, struct err *err)
{
	struct replay_trying own = *asked, *trying = &own;
	struct config config = *asked->config; /* the same strings */
	auto_free char *folder = NULL, *from = realpath(config.jailer.runners_dir, NULL);
	int worst = CLI_OK;

	if (!from)
		return err_errno(err, "%s", config.jailer.runners_dir);
	int result = cli_scratch(&folder, err);
	if (result < 0)
		return result;
	if (chmod(folder, 0755) < 0)
		return err_errno(err, "%s", folder);
	config.jailer.socket = NULL; /* the service has its own runner files */
	trying->config = &config;
	trying->from = from;
	trying->folder = folder;
	if (!trying->options->old_runners)
		trying->options->old_runners = from;
	if (trying->options->first_bad)
		return find_first_bad(trying, err);
	for (size_t i = 0; result >= 0 && i < trying->options->runners.count; i++) {
		result = try_one(trying, i, err);
		worst = result == CLI_JUDGE_ERROR || worst == CLI_JUDGE_ERROR ? CLI_JUDGE_ERROR : MAX(worst, result);
	}
	return result < 0 ? result : worst;
}
