/*
 * replay_runner.c - see replay_runner.h.
 *
 * The folder holds copies of the runner files, with "interpreters" of one of them replaced; an interpreter outside of
 * the directories that every jail has needs its own in the jail, too: the parent of the folder that it is in (its
 * prefix, with its libraries). Replays use a private jailer then, because the service has its own runner files.
 *
 * The replay that runs ends with us: SIGINT and SIGTERM are passed on, and it is sent SIGTERM where we are killed.
 */
#include "replay_runner.h"

#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jail/client/client_runners.h"
#include "lib/base/util.h"

#define FILE_MAX      (1 << 20)
#define ARGUMENTS_MAX (64 << 20) /* bytes; the kernel takes less */

static int put_file(const char *folder, const char *name, const char *text, size_t length, struct err *err)
{
	auto_free char *path = xasprintf("%s/%s", folder, name);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	return fd < 0 || write_all(fd, text, length) < 0 ? err_errno(err, "writing %s", path) : 0;
}

/* The file's text with another interpreter. */
static int put_changed(const char *folder, const char *name, const char *text, size_t length, const char *interpreter,
		       struct err *err)
{
	static const char *const everywhere[] = {"/usr/", "/bin/"};
	auto_json struct json_object *file = NULL;
	auto_buf struct buf changed = {0};
	int result = json_parse_commented(text, length, &file, err);
	struct json_object *list = json_object_new_array();
	auto_free char *bin = xstrdup(interpreter);
	bool there = false;

	json_object_array_add(list, json_object_new_string(interpreter));
	if (result < 0) {
		json_object_put(list);
		return err_wrap(err, "%s", name);
	}
	json_add(file, "interpreters", list);
	for (size_t i = 0; i < ARRAY_SIZE(everywhere); i++)
		there = there || str_starts(interpreter, everywhere[i]);
	if (!there) {
		list = json_object_new_array();
		json_object_array_add(list, json_object_new_string(dirname(dirname(bin))));
		json_add(file, "binds", list);
	}
	json_object_object_del(file, "cache"); /* another version's would be another */
	buf_init(&changed, FILE_MAX);
	json_print(&changed, file);
	return put_file(folder, name, changed.data, changed.length, err);
}

static int fill(const char *folder, const char *from, const char *runner, const char *interpreter, struct err *err)
{
	auto_free char *wanted = xasprintf("%s.json", runner);
	DIR *dir = opendir(from);
	struct dirent *entry;
	bool found = false;
	int result = 0;

	if (dir == NULL)
		return err_errno(err, "opening %s", from);
	while (result == 0 && (entry = readdir(dir))) {
		auto_free char *text = NULL;
		size_t length = 0;

		if (entry->d_name[0] == '.' ||
		    read_file_at(dirfd(dir), entry->d_name, FILE_MAX, &text, &length, NULL) < 0)
			continue;
		bool changes = streq(entry->d_name, wanted);

		found = found || changes;
		result = changes ? put_changed(folder, wanted, text, length, interpreter, err)
				 : put_file(folder, entry->d_name, text, length, err);
	}
	closedir(dir);
	if (result == 0 && !found)
		result = err_set(err, ERR_INVALID, "--runner %s=%s: there is no runner of that name", runner,
				 interpreter);
	return result;
}

static void empty(char **folder)
{
	DIR *dir = *folder ? opendir(*folder) : NULL;
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	if (*folder)
		rmdir(*folder);
	free(*folder);
}

/* Our own arguments without those that are this file's, and with the runner files of the old side; NULL-terminated.
 * They point into `text` and `old`; the caller's. */
static char **own_arguments(char *text, size_t length, char *old)
{
	size_t count = 0, all = 0;

	for (size_t i = 0; i < length; i++)
		all += text[i] == '\0';
	char **arguments = xcalloc(all + 2, sizeof(*arguments));
	for (char *at = text; at < text + length; at += strlen(at) + 1) {
		if (count == 2) /* behind the command's name */
			arguments[count++] = old;
		if (streq(at, "--runner"))
			at += strlen(at) + 1;
		else if (!str_starts(at, "--runner=") && !streq(at, "--first-bad"))
			arguments[count++] = at;
	}
	return arguments;
}

static pid_t start(char *const *arguments, const sigset_t *mask)
{
	pid_t self = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigprocmask(SIG_SETMASK, mask, NULL);
	if (getppid() == self)
		execve("/proc/self/exe", arguments, environ);
	_exit(CLI_INCOMPLETE);
}

/* Until it has ended; the signals are blocked. */
static int await(pid_t pid, const sigset_t *signals, struct err *err)
{
	bool interrupted = false;
	int signal, status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		sigwait(signals, &signal);
		if (signal == SIGCHLD)
			continue;
		interrupted = true;
		kill(pid, SIGTERM);
	}
	if (interrupted)
		return err_set(err, ERR_CONFLICT, "interrupted: not every interpreter was tried");
	return WIFEXITED(status) ? WEXITSTATUS(status) : CLI_INCOMPLETE;
}

static int run_self(const char *folder, const char *old_runners, struct err *err)
{
	auto_free char *old = xasprintf("--old-runners=%s", old_runners);
	auto_free char *text = NULL;
	auto_close int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	sigset_t signals, before;
	size_t length;

	signal(SIGCHLD, SIG_DFL); /* where it was ignored there would be no status */
	if (fd < 0)
		return err_errno(err, "reading our own arguments");
	if (read_fd(fd, ARGUMENTS_MAX, &text, &length, err) < 0)
		return err_wrap(err, "reading our own arguments");
	auto_free char **arguments = own_arguments(text, length, old);

	setenv("SALLYPORT_JAILER_RUNNERS_DIR", folder, 1);
	setenv("SALLYPORT_JAILER_SOCKET", "", 1);
	fflush(stdout);
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, &before);
	pid_t pid = start(arguments, &before);
	int result = pid < 0 ? err_errno(err, "starting a replay") : await(pid, &signals, err);

	sigprocmask(SIG_SETMASK, &before, NULL);
	return result;
}

static int run_one(const char *spec, const struct config *config, bool json, struct err *err)
{
	const char *equals = strchr(spec, '=');
	auto_free char *runner = xstrndup(spec, equals ? (size_t)(equals - spec) : 0);
	__attribute__((cleanup(empty))) char *folder = NULL;

	if (!equals || equals[1] != '/' || access(equals + 1, X_OK) || !*runner || strchr(runner, '/'))
		return err_set(err, ERR_INVALID,
			       "--runner takes NAME=PATH, a runner's name and the full path of an interpreter, not "
			       "\"%s\"",
			       spec);
	folder = xstrdup("/tmp/sallyport-runners-XXXXXX");
	if (!mkdtemp(folder) || chmod(folder, 0755))
		return err_errno(err, "making a folder for runner files");
	int result = fill(folder, config->jailer.runners_dir, runner, equals + 1, err);

	if (result < 0)
		return result;
	auto_json struct json_object *line = json_object_new_object();

	json_add_string(line, "runner", spec);
	if (json)
		cli_print_json(stdout, line, false);
	else
		printf("== %s\n", spec);
	return run_self(folder, config->jailer.runners_dir, err);
}

static int find_first_bad(const struct replay_runners *runners, const struct config *config, bool json, struct err *err)
{
	size_t from = 0, to = runners->list.count; /* the first bad one is among [from, to], `to` being none */
	auto_json struct json_object *line = json_object_new_object();

	while (from < to) {
		size_t middle = (from + to) / 2;
		int result = run_one(runners->list.items[middle], config, json, err);

		if (result == CLI_DIFFERENT)
			to = middle;
		else if (result == CLI_OK)
			from = middle + 1;
		else
			return result;
	}
	const char *found = from < runners->list.count ? runners->list.items[from] : NULL;

	json_add_string(line, "first_bad", found);
	if (json)
		cli_print_json(stdout, line, false);
	else
		printf("first bad: %s\n", found ? found : "none");
	return found ? CLI_DIFFERENT : CLI_OK;
}

int replay_runners_run(const struct replay_runners *runners, const struct config *config, bool json, struct err *err)
{
	static const int worse[] = {CLI_OK, CLI_DIFFERENT, CLI_INCOMPLETE, CLI_JUDGE_ERROR, CLI_USAGE};
	size_t worst = 0;

	if (runners->first_bad)
		return find_first_bad(runners, config, json, err);
	for (size_t i = 0; i < runners->list.count; i++) {
		int result = run_one(runners->list.items[i], config, json, err);
		size_t rank = 0;

		if (result < 0)
			return result;
		while (rank < ARRAY_SIZE(worse) - 1 && worse[rank] != result)
			rank++;
		worst = MAX(worst, rank);
	}
	return worse[worst];
}
