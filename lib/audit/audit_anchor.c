/*
 * audit_anchor.c - see audit_anchor.h.
 *
 * A failure of an anchor is reported and costs nothing else: the checkpoint is signed and kept by then.
 */
#include "audit_anchor.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit_witness.h"
#include "lib/base/util.h"

#define ANCHORED     "anchored"
#define ANCHORED_NEW "anchored.new"

extern char **environ;

static int to_file(const struct audit_signer *signer, const char *path, const struct buf *note, int64_t had,
		   struct err *err)
{
	(void)signer, (void)had;
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	auto_buf struct buf text = {0};

	buf_init(&text, AUDIT_NOTE_MAX);
	buf_printf(&text, "%s\n", note->data);
	if (fd < 0 || write_all(fd, text.data, text.length) < 0 || fsync(fd) < 0)
		return err_errno(err, "the anchor %s", path);
	return 0;
}

static int to_command(const struct audit_signer *signer, const char *command, const struct buf *note, int64_t had,
		      struct err *err)
{
	(void)signer, (void)had;
	static char shell[] = "/bin/sh", option[] = "-c";
	char *const argv[] = {shell, option, unconst(command), NULL};
	posix_spawn_file_actions_t actions;
	auto_close int input = memfd_with("checkpoint", note->data, note->length);
	int status;
	pid_t pid;

	if (input < 0)
		return err_errno(err, "making an anonymous file");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO); /* stdout is the note's */
	errno = posix_spawn(&pid, shell, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (errno != 0)
		return err_errno(err, "starting the anchor '%s'", command);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_errno(err, "waiting for the anchor '%s'", command);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return err_set(err, ERR_SYSTEM, "the anchor '%s' failed (%s %d)", command,
		       WIFEXITED(status) ? "exit code" : "signal",
		       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

static const struct anchor_kind {
	const char *prefix;
	int (*check)(const char *rest, struct err *err); /* NULL: any text will do */
	int (*send)(const struct audit_signer *signer, const char *rest, const struct buf *note, int64_t had,
		    struct err *err); /* `had`: entries that the anchor's last checkpoint covered */
} kinds[] = {
	{"file:", NULL, to_file},
	{"command:", NULL, to_command},
	{"witness:", audit_witness_check, audit_witness_send},
};

/* *ret_rest: what follows the prefix. NULL: not an anchor. */
static const struct anchor_kind *kind_of(const char *anchor, const char **ret_rest)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (str_starts(anchor, kinds[i].prefix)) {
			*ret_rest = anchor + strlen(kinds[i].prefix);
			return &kinds[i];
		}
	return NULL;
}

int audit_anchor_check(const char *anchor, struct err *err)
{
	const char *rest;
	const struct anchor_kind *kind = kind_of(anchor, &rest);

	if (kind == NULL || *rest == '\0' || strchr(anchor, '\n') != NULL)
		return err_set(err, ERR_INVALID,
			       "an anchor is file:PATH, command:TEXT or 'witness:KEY URL', not '%s'", anchor);
	return kind->check != NULL ? kind->check(rest, err) : 0;
}

/* Lines "SIZE ANCHOR"; *ret_others: those of the other anchors. */
static int64_t size_anchored(const struct audit_signer *signer, const char *anchor, struct buf *ret_others)
{
	auto_free char *text = NULL;
	size_t length;
	int64_t size = -1;

	if (read_file_at(signer->dir_fd, ANCHORED, AUDIT_NOTE_MAX, &text, &length, NULL) < 0)
		return -1; /* none yet: each gets the newest */
	for (char *line = text, *rest; line != NULL && *line != '\0'; line = rest) {
		char *blank = strchr(line, ' ');
		uint64_t value;

		rest = strchr(line, '\n');
		if (rest != NULL)
			*rest++ = '\0';
		if (blank == NULL)
			continue;
		*blank = '\0';
		if (!streq(blank + 1, anchor))
			buf_printf(ret_others, "%s %s\n", line, blank + 1);
		else if (parse_u64(line, 0, INT64_MAX, &value) == 0)
			size = (int64_t)value;
	}
	return size;
}

int audit_anchor_send(const struct audit_signer *signer, const char *anchor, struct err *err)
{
	auto_buf struct buf others = {0}, note = {0};
	auto_free char *text = NULL;
	const char *rest;
	const struct anchor_kind *kind = kind_of(anchor, &rest);
	size_t length;

	if (kind == NULL)
		return audit_anchor_check(anchor, err);
	buf_init(&others, AUDIT_NOTE_MAX);
	buf_init(&note, AUDIT_NOTE_MAX);
	const int64_t had = size_anchored(signer, anchor, &others);

	if (had >= signer->n_signed || signer->n_signed == 0)
		return 0;
	int result = read_file_at(signer->dir_fd, AUDIT_SIGNER_CHECKPOINT, AUDIT_NOTE_MAX, &text, &length, err);

	if (result < 0)
		return result;
	buf_add(&note, text, length);
	result = kind->send(signer, rest, &note, MAX(had, 0), err);
	if (result < 0)
		return result;
	buf_printf(&others, "%lld %s\n", (long long)signer->n_signed, anchor);
	auto_close int fd = openat(signer->dir_fd, ANCHORED_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || write_all(fd, others.data, others.length) < 0 || fsync(fd) < 0 ||
	    renameat(signer->dir_fd, ANCHORED_NEW, signer->dir_fd, ANCHORED) < 0)
		return err_errno(err, "writing %s/" ANCHORED, signer->folder);
	return 0;
}
