/* client_once.c - see client_once.h. */
#include "client_once.h"

#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/util.h"

static void on_output(void *arg, int64_t stdout_bytes, int64_t stderr_bytes)
{
	struct jail_once *once = arg;

	if (once->output)
		once->output(once->arg, stdout_bytes, stderr_bytes);
}

static void on_done(void *arg, const struct jail_result *result)
{
	struct jail_once *once = arg;

	once->result = *result;
	jail_result_share(&once->result);
	once->done = true;
	once->over = !once->file;
}

static void on_file(void *arg, const struct jail_change *change)
{
	struct jail_once *once = arg;

	once->file(once->arg, change);
}

static void on_collected(void *arg)
{
	((struct jail_once *)arg)->over = true;
}

static void on_failed(void *arg, const struct err *err)
{
	struct jail_once *once = arg;

	once->failure = *err;
	once->over = true;
}

/* Anonymous files, or the emptied ones of the run before. */
static int capture_begin(struct jail_once *once, struct err *err)
{
	int *const fds[] = {&once->program.stdout_fd, &once->program.stderr_fd};

	if (!once->captured)
		*fds[0] = *fds[1] = -1;
	once->captured = true;
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		if (*fds[i] < 0)
			*fds[i] = memfd_create(i == 0 ? "stdout" : "stderr", MFD_CLOEXEC);
		if (*fds[i] < 0 || ftruncate(*fds[i], 0) < 0 || lseek(*fds[i], 0, SEEK_SET) < 0)
			return err_errno(err, "an anonymous file for the output");
	}
	return 0;
}

static int fill(struct jail_once *once, struct err *err)
{
	struct jail_file files[JAIL_BATCH_FILES];
	int result = 0;

	if (!once->open_file)
		return jail_fill(once->jail, once->files, once->n_files, err);
	for (size_t at = 0, count; result == 0 && at < once->n_files; at += count) {
		size_t opened = 0;

		count = MIN(once->n_files - at, (size_t)JAIL_BATCH_FILES);
		while (opened < count && (result = once->open_file(once->arg, at + opened, &files[opened], err)) == 0)
			opened++;
		if (result == 0)
			result = jail_fill(once->jail, files, count, err);
		for (size_t i = 0; i < opened; i++)
			close(files[i].fd);
	}
	return result;
}

int jail_once_open(struct jail_client *client, struct jail_once *once, struct err *err)
{
	static const struct jail_events events = {on_output, on_done, on_file, on_collected, on_failed};

	return jail_open(client, &once->spec, &events, once, &once->jail, err);
}

int jail_once_begin(struct jail_client *client, struct jail_once *once, struct err *err)
{
	int result = 0;

	jail_result_clear(&once->result);
	once->done = once->over = false;
	once->failure = (struct err){0};
	if (once->capture)
		result = capture_begin(once, err);
	if (result == 0 && !once->jail)
		result = jail_once_open(client, once, err);
	if (result == 0)
		result = jail_remove(once->jail, once->removed, once->n_removed, err);
	if (result == 0)
		result = fill(once, err);
	if (result == 0)
		result = jail_fill_code(once->jail, once->code_files, once->n_code_files, err);
	if (result == 0)
		result = jail_run(once->jail, &once->program, err);
	if (result == 0 && once->file)
		result = jail_collect(once->jail, err);
	return result;
}

int jail_once_end(struct jail_client *client, struct jail_once *once, struct err *err)
{
	int result = once->over ? 0 : jail_client_wait(client, once->jail, err);

	if (once->failure.code != ERR_NONE) {
		if (err)
			*err = once->failure;
		return -(int)once->failure.code;
	}
	if (result == 0 && !once->done)
		return err_set(err, ERR_INTERNAL, "the jail ended without a result");
	return result;
}

int jail_once(struct jail_client *client, struct jail_once *once, struct err *err)
{
	int result = jail_once_begin(client, once, err);

	return result < 0 ? result : jail_once_end(client, once, err);
}

int jail_once_output(const struct jail_once *once, int stream, size_t most, char **ret, size_t *ret_length,
		     struct err *err)
{
	int fd = stream == 1 ? once->program.stdout_fd : once->program.stderr_fd;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_errno(err, "reading the program's output");
	return read_fd(fd, most, ret, ret_length, err);
}

void jail_once_clear(struct jail_once *once)
{
	jail_close(steal(&once->jail));
	jail_result_clear(&once->result);
	if (once->captured) {
		fd_close(&once->program.stdout_fd);
		fd_close(&once->program.stderr_fd);
	}
}
