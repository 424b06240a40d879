/*
 * workspace_write.c - files put in place and removed next to other writers; see workspace.h.
 *
 * A new file: temporary name, content, mode, times, sync; then renameat2 with RENAME_NOREPLACE, which fails where
 * somebody made a file of that name meanwhile. A changed one: his content is compared with what was read; then
 * RENAME_EXCHANGE, and what came out under the temporary name is looked at once more before it goes. If he wrote
 * between the two, the files change places again. A removed one: renamed to a temporary name, looked at, then unlinked
 * or renamed back. File systems that have neither flag get link, or a last look before an ordinary rename.
 */
#include "workspace_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "jail/client/jail.h"
#include "lib/base/beneath.h"
#include "lib/base/utf8.h"
#include "lib/store/db/crypto.h"
#include "workspace_guard.h"

#define STEP        (64 * 1024)
#define SECONDS_MAX 99 /* NAME.sallyport, NAME.sallyport-2 … */
#define SHOWN       300

/* One change on its way. */
struct act {
	struct workspace *workspace;
	const struct workspace_change *change;
	const struct workspace_file *base; /* what was read; NULL: there was no such file */
	int parent;                        /* -1, or the folder that it is in */
	const char *last;                  /* its name there */
	char temporary[64];                /* "": there is none */
	struct workspace_file written;     /* what is there now; name NULL: we wrote nothing */
	char second[NAME_MAX + 1];         /* "", or the name of our version */
	bool held;                         /* the name is one that programs of this machine obey (workspace_guard.h) */
	const char *why;                   /* it was not carried out for this; errno otherwise */
};
enum outcome { DONE, HIS_STAYS, FAILED };

/* -------- the folder of a file ------------------------------------------------------------------------ */

static int step_into(int folder, const char *name, bool make)
{
	int fd = beneath_open(folder, name, O_RDONLY | O_DIRECTORY, 0);

	if (fd >= 0 || errno != ENOENT || !make)
		return fd;
	if (mkdirat(folder, name, 0777) < 0 && errno != EEXIST)
		return -1;
	if (fsync(folder) < 0)
		return -1;
	return beneath_open(folder, name, O_RDONLY | O_DIRECTORY, 0);
}

/* -1 and errno. */
static int open_parent(struct act *act, bool make)
{
	int fd = beneath_open(act->workspace->fd, ".", O_RDONLY | O_DIRECTORY, 0);
	const char *segment = act->change->name, *slash;

	while (fd >= 0 && (slash = strchr(segment, '/'))) {
		auto_free char *name = xstrndup(segment, (size_t)(slash - segment));
		auto_close int from = fd;

		fd = step_into(from, name, make);
		segment = slash + 1;
	}
	act->parent = fd;
	act->last = segment;
	return fd < 0 ? -1 : 0;
}

/* -------- renames ------------------------------------------------------------------------------------- */

static bool unsupported(void)
{
	return errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP;
}

/* Never in the place of another file: EEXIST. */
static int move_new(int folder, const char *from, const char *to)
{
	struct stat status;

	if (renameat2(folder, from, folder, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (!unsupported())
		return -1;
	if (linkat(folder, from, folder, to, 0) == 0)
		return unlinkat(folder, from, 0);
	if (errno == EEXIST)
		return -1;
	if (fstatat(folder, to, &status, AT_SYMLINK_NOFOLLOW) == 0) {
		errno = EEXIST;
		return -1;
	}
	return errno == ENOENT ? renameat(folder, from, folder, to) : -1;
}

/* -------- his version --------------------------------------------------------------------------------- */

enum his { HIS_GONE, HIS_AS_READ, HIS_AS_OURS, HIS_OTHER };

/* What is at a name of the parent folder, against what was read and what we want to put there. */
static enum his look_at(const struct act *act, const char *name, struct workspace_mark *ret_mark)
{
	auto_close int fd = beneath_open(act->parent, name, O_RDONLY | O_NONBLOCK, 0);
	char hash[SHA256_HEX_SIZE];
	struct stat status;

	if (fd < 0)
		return errno == ENOENT ? HIS_GONE : HIS_OTHER;
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || sha256_fd(fd, hash, NULL) < 0)
		return HIS_OTHER;
	*ret_mark = workspace_mark_of(&status);
	if (act->base && streq(hash, act->base->blob))
		return HIS_AS_READ;
	return streq(hash, act->change->blob) ? HIS_AS_OURS : HIS_OTHER;
}

/* -------- putting a file ------------------------------------------------------------------------------ */

static int copy(int from, int to)
{
	auto_free char *buffer = xmalloc(STEP);
	off_t at = 0;
	ssize_t got;

	while ((got = pread(from, buffer, STEP, at)) > 0) {
		if (write_all(to, buffer, (size_t)got) < 0)
			return -1;
		at += got;
	}
	return got < 0 ? -1 : 0;
}

/* The content under a temporary name, synced. */
static int write_temporary(struct act *act)
{
	const struct workspace_change *change = act->change;
	const struct timespec times[2] = {
		{.tv_nsec = UTIME_OMIT},
		{.tv_sec = change->mtime_us / 1000000, .tv_nsec = change->mtime_us % 1000000 * 1000}};
	auto_close int blob = -1;
	struct err err = ERR_INIT;
	char name[64];

	if (store_blob_open(act->workspace->store, change->blob, &blob, NULL, &err) < 0) {
		act->why = "its content is not in the record";
		return -1;
	}
	workspace_temporary_name(act->workspace, name);
	auto_close int fd = beneath_open(act->parent, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	if (fd < 0)
		return -1;
	memcpy(act->temporary, name, sizeof(name));
	if (copy(blob, fd) < 0 || fchmod(fd, change->mode & 0777) < 0 || futimens(fd, times) < 0)
		return -1;
	return fsync(fd);
}

static enum outcome put_second(struct act *act)
{
	for (int i = 1; i <= SECONDS_MAX; i++) {
		auto_free char *number = i > 1 ? xasprintf("-%d", i) : xstrdup("");
		auto_free char *name = xasprintf("%s.sallyport%s", act->last, number);

		if (strlen(name) > NAME_MAX) {
			act->why = "its name is too long for a second one next to it";
			return FAILED;
		}
		if (move_new(act->parent, act->temporary, name) == 0) {
			act->temporary[0] = '\0';
			snprintf(act->second, sizeof(act->second), "%s", name);
			return HIS_STAYS;
		}
		if (errno != EEXIST)
			return FAILED;
	}
	act->why = "too many versions are next to it";
	return FAILED;
}

static enum outcome replace(struct act *act, const struct workspace_mark *seen)
{
	struct stat status;
	struct workspace_mark out;

	if (renameat2(act->parent, act->temporary, act->parent, act->last, RENAME_EXCHANGE) < 0) {
		if (errno == ENOENT) /* it went in this moment */
			return move_new(act->parent, act->temporary, act->last) == 0 ? DONE : FAILED;
		if (!unsupported())
			return FAILED;
		if (fstatat(act->parent, act->last, &status, AT_SYMLINK_NOFOLLOW) < 0)
			return put_second(act);
		struct workspace_mark mark = workspace_mark_of(&status);

		mark.ctime_ns = seen->ctime_ns; /* its mode or a link's count may have changed */
		if (!workspace_mark_same(&mark, seen))
			return put_second(act);
		return renameat(act->parent, act->temporary, act->parent, act->last) == 0 ? DONE : FAILED;
	}
	if (look_at(act, act->temporary, &out) == HIS_AS_READ)
		return DONE;
	bool back = renameat2(act->parent, act->temporary, act->parent, act->last, RENAME_EXCHANGE) == 0;
	enum outcome outcome = put_second(act); /* ours; or his, where it cannot go back: both are there */

	if (!back)
		act->temporary[0] = '\0';
	return outcome;
}

static enum outcome place(struct act *act)
{
	struct workspace_mark seen;

	switch (look_at(act, act->last, &seen)) {
	case HIS_GONE:
		if (move_new(act->parent, act->temporary, act->last) == 0)
			return DONE;
		return errno == EEXIST ? put_second(act) : FAILED;
	case HIS_AS_READ:
		return replace(act, &seen);
	case HIS_AS_OURS:
		return DONE;
	default:
		return put_second(act);
	}
}

static enum outcome put(struct act *act)
{
	struct stat status;

	if (open_parent(act, true) < 0) {
		act->why = errno == ENOTDIR || errno == ELOOP || errno == EXDEV
				   ? "a file or a link is where its folder would be"
				   : NULL;
		return FAILED;
	}
	enum outcome outcome = write_temporary(act) < 0 ? FAILED : act->held ? put_second(act) : place(act);
	const int error = errno;

	if (*act->temporary)
		unlinkat(act->parent, act->temporary, 0);
	act->temporary[0] = '\0';
	errno = error;
	if (outcome == DONE && fstatat(act->parent, act->last, &status, AT_SYMLINK_NOFOLLOW) == 0) {
		/* What is at the name now is what later versions are compared with. */
		act->written = (struct workspace_file){.name = unconst(act->change->name),
						       .mark = workspace_mark_of(&status),
						       .mode = status.st_mode & 0777};
		memcpy(act->written.blob, act->change->blob, strlen(act->change->blob) + 1);
	}
	if (outcome != FAILED && fsync(act->parent) < 0)
		outcome = FAILED;
	return outcome;
}

/* -------- removing a file ----------------------------------------------------------------------------- */

/* Folders that are empty now go, too: the record has none. */
static void remove_folders(const struct act *act)
{
	auto_free char *path = xstrdup(act->change->name);

	for (char *slash; (slash = strrchr(path, '/'));) {
		*slash = '\0';
		char *last = strrchr(path, '/');
		auto_free char *above = last ? xstrndup(path, (size_t)(last - path)) : xstrdup(".");
		auto_close int fd = beneath_open(act->workspace->fd, above, O_RDONLY | O_DIRECTORY, 0);

		if (fd < 0 || unlinkat(fd, last ? last + 1 : path, AT_REMOVEDIR) < 0)
			return;
	}
}

static enum outcome take_away(struct act *act)
{
	struct workspace_mark out;
	char name[64];

	workspace_temporary_name(act->workspace, name);
	if (move_new(act->parent, act->last, name) < 0)
		return errno == ENOENT ? DONE : FAILED;
	if (look_at(act, name, &out) == HIS_AS_READ)
		return unlinkat(act->parent, name, 0) == 0 ? DONE : FAILED;
	if (move_new(act->parent, name, act->last) == 0)
		return HIS_STAYS;
	memcpy(act->temporary, name, sizeof(name)); /* he made another one meanwhile: both are his */
	return put_second(act);
}

static enum outcome take(struct act *act)
{
	struct workspace_mark seen;
	enum outcome outcome;

	if (open_parent(act, false) < 0)
		return errno == ENOENT || errno == ENOTDIR ? DONE : FAILED;
	switch (look_at(act, act->last, &seen)) {
	case HIS_GONE:
		return DONE;
	case HIS_AS_READ:
		outcome = take_away(act);
		break;
	default:
		return HIS_STAYS;
	}
	if (outcome == DONE && fsync(act->parent) < 0)
		outcome = FAILED;
	if (outcome == DONE)
		remove_folders(act);
	return outcome;
}

/* -------- changes ------------------------------------------------------------------------------------- */

bool workspace_is_late(const struct workspace *workspace, const char *name)
{
	for (size_t i = 0; i < workspace->n_late; i++)
		if (streq(workspace->late[i].name, name))
			return true;
	return false;
}

static void forget_late(struct workspace *workspace, const char *name)
{
	for (size_t i = 0; i < workspace->n_late; i++) {
		if (!streq(workspace->late[i].name, name))
			continue;
		free(workspace->late[i].name);
		workspace->late[i] = workspace->late[--workspace->n_late];
		return;
	}
}

static void show(struct buf *note, const char *name)
{
	const size_t shown = utf8_cut(name, strlen(name), SHOWN);

	buf_putc(note, '"');
	utf8_printable(note, name, shown);
	buf_puts(note, name[shown] ? "…\"" : "\"");
}

static void tell(struct buf *note, const struct act *act, enum outcome outcome, int error)
{
	const bool removal = !*act->change->blob;

	show(note, act->change->name);
	if (outcome == FAILED) {
		buf_printf(note, " is not %s the folder (%s): the record has it, and the next call tries again\n",
			   removal ? "removed from" : "written to", act->why ? act->why : strerror(error));
	} else if (act->held) {
		buf_puts(note, removal ? " is not removed" : " is not written");
		buf_puts(note, ": programs of this machine run or obey files of that name");
		if (*act->second) {
			buf_puts(note, "; the new version is ");
			show(note, act->second);
			buf_puts(note, " next to it");
		}
		buf_puts(note, ". To let it through: --workspace-allow\n");
	} else if (*act->second) {
		buf_puts(note, " was changed in the folder meanwhile and stays as it is there; the other version is ");
		show(note, act->second);
		buf_puts(note, " next to it\n");
	} else {
		buf_puts(note, " was changed in the folder meanwhile, so it was not removed\n");
	}
}

static bool is_held(const struct workspace *workspace, const char *name, bool new)
{
	bool in_repository = false;

	for (size_t i = 0; i < workspace->repositories.count && !in_repository; i++) {
		const char *folder = workspace->repositories.items[i];
		const size_t length = strlen(folder);

		in_repository = length == 0 || (str_starts(name, folder) && name[length] == '/');
	}
	switch (workspace_guard(workspace->config, name, in_repository)) {
	case WORKSPACE_FREE:
		return false;
	case WORKSPACE_HELD_NEW:
		return new;
	default:
		return true;
	}
}

static enum outcome hold(struct act *act)
{
	const char *slash = strrchr(act->change->name, '/');
	auto_free char *name = xasprintf("%s.sallyport", act->change->name);
	const struct workspace_file *second = workspace_list_find(&act->workspace->base, name);

	if (!*act->change->blob)
		return HIS_STAYS;
	if (!second || !streq(second->blob, act->change->blob))
		return put(act);
	snprintf(act->second, sizeof(act->second), "%s.sallyport", slash ? slash + 1 : act->change->name);
	return HIS_STAYS; /* this version is next to it already */
}

/* Carries one out; true: there is something to tell. */
static bool carry_out(struct workspace *workspace, const struct workspace_change *change, struct buf *note)
{
	struct act act = {.workspace = workspace, .change = change, .parent = -1};

	act.base = workspace_list_find(&workspace->base, change->name);
	act.held = is_held(workspace, change->name, !act.base);
	enum outcome outcome = !*change->blob && !act.base ? DONE
			       : act.held                  ? hold(&act)
			       : *change->blob             ? put(&act)
							   : take(&act);
	const int error = errno;

	forget_late(workspace, change->name);
	if (outcome == FAILED) {
		workspace->late = xrealloc(workspace->late, workspace->n_late + 1, sizeof(*workspace->late));
		struct workspace_late *late = &workspace->late[workspace->n_late++];

		*late = (struct workspace_late){.name = xstrdup(change->name), .change = *change};
		snprintf(late->blob, sizeof(late->blob), "%s", change->blob);
	}
	if (act.written.name) {
		struct workspace_file *base = workspace_list_find(&workspace->base, change->name);
		const bool added = !base;

		if (added)
			base = workspace_list_add(&workspace->base, change->name);
		char *name = base->name;

		*base = act.written;
		base->name = name;
		if (added)
			workspace_list_sort(&workspace->base);
	}
	fd_close(&act.parent);
	if (outcome != DONE)
		tell(note, &act, outcome, error);
	return outcome != DONE;
}

void workspace_write_late(struct workspace *workspace)
{
	auto_buf struct buf note = {0};
	size_t count = workspace->n_late;
	auto_free struct workspace_late *late = steal(&workspace->late);

	workspace->n_late = 0;
	buf_init(&note, WORKSPACE_NOTE_MAX);
	for (size_t i = 0; i < count; i++) {
		struct workspace_change change = late[i].change;

		change.name = late[i].name;
		change.blob = late[i].blob;
		carry_out(workspace, &change, &note);
		free(late[i].name);
	}
}

void workspace_write(struct workspace *workspace, const struct workspace_change *changes, size_t count,
		     struct buf *note)
{
	size_t told = 0, more = 0, ignored = 0;

	for (int pass = 0; pass < 2; pass++) { /* removals first: a folder may take a file's place */
		for (size_t i = 0; i < count; i++) {
			auto_buf struct buf line = {0};

			if ((*changes[i].blob != '\0') != (pass == 1) || jail_folder(changes[i].name))
				continue; /* empty folders are the conversation's alone */
			if (workspace_ignores_path(workspace, changes[i].name)) {
				ignored++;
				continue;
			}
			buf_init(&line, WORKSPACE_NOTE_MAX);
			if (!carry_out(workspace, &changes[i], &line))
				continue;
			if (told == WORKSPACE_LINES_SHOWN || note->length + line.length + 512 > WORKSPACE_NOTE_MAX) {
				more++;
				continue;
			}
			buf_add(note, line.data, line.length);
			told++;
		}
	}
	if (more > 0)
		buf_printf(note, "and %zu more\n", more);
	if (ignored > 0)
		buf_printf(note, "%zu files are left alone (.git, " WORKSPACE_IGNORE " and what that names)\n",
			   ignored);
}
