/*
 * workspace.c - opening a workspace, and reading it; see workspace.h.
 *
 * Reading has three lists. `base` is what the folder was when it was read last, or what we wrote there; `now` is what
 * it is. A file whose mark (inode, size, times) is as in `base` keeps its content's hash; every other one is read into
 * the blob folder. Times have a grain: a file that changed a moment before it was read may change again without a new
 * mark, so it is read again next time (`settled`). Then the conversation becomes `now` (workspace_sync.c).
 */
#include "workspace_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/beneath.h"
#include "lib/base/json.h"
#include "lib/base/utf8.h"
#include "lib/store/db/crypto.h"
#include "lib/store/record/store_space.h"
#include "workspace_guard.h"

#define READ_TRIES 3
#define PREFIX     "workspace:"

/* -------- opening ------------------------------------------------------------------------------------- */

/* Would the record be below the folder? */
static bool holds(const char *folder, const char *data_dir)
{
	auto_free char *real = realpath(data_dir, NULL);
	const char *path = real ? real : data_dir;
	const size_t length = strlen(folder);

	return streq(folder, "/") ||
	       (strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0'));
}

static bool plain(const char *text)
{
	for (const char *at = text; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			return false;
	return utf8_valid(text, strlen(text));
}

int workspace_choose(const char *path, const char *owner, struct config *config, struct err *err)
{
	auto_free char *trimmed = xstrdup(path);
	struct stat status;

	for (size_t length = strlen(trimmed); length > 1 && trimmed[length - 1] == '/'; length--)
		trimmed[length - 1] = '\0';
	if (lstat(trimmed, &status) < 0)
		return err_errno(err, "--workspace: %s", trimmed);
	auto_free char *real = realpath(trimmed, NULL);

	if (S_ISLNK(status.st_mode))
		return err_set(err, ERR_INVALID,
			       "--workspace: %s is a link, and a workspace follows none: name the folder itself%s%s",
			       trimmed, real ? ", " : "", real ? real : "");
	if (!S_ISDIR(status.st_mode))
		return err_set(err, ERR_INVALID, "--workspace: %s is not a folder", trimmed);
	if (!real || !plain(real))
		return err_set(err, ERR_INVALID,
			       "--workspace: the folder's path must be UTF-8 without control "
			       "characters");
	if (holds(real, config->data_dir))
		return err_set(err, ERR_INVALID,
			       "--workspace: the record (data_dir, %s) is below %s: choose a folder without it",
			       config->data_dir, real);
	auto_free char *name = xasprintf(PREFIX "%s", real);
	char sum[SHA256_HEX_SIZE];

	sha256_hex(real, strlen(real), sum);
	if (strlen(name) > STORE_CONVERSATION_MAX) {
		free(name);
		name = xasprintf(PREFIX "%.32s", sum);
	}
	struct json_object *texts = json_object_new_object();

	json_add(config->document, "workspace", texts); /* the document owns the struct's strings */
	json_add_string(texts, "path", real);
	json_add_string(texts, "conversation", name);
	json_add_string(texts, "owner", owner);
	config->workspace_folder.path = json_get_string(texts, "path");
	config->workspace_folder.conversation = json_get_string(texts, "conversation");
	config->workspace_folder.owner = json_get_string(texts, "owner");
	return 0;
}

int workspace_open(const struct config *config, struct store *store, struct workspace **ret, struct err *err)
{
	const char *path = config->workspace_folder.path;
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0)
		return err_errno(err, "the workspace %s cannot be opened", path);
	struct workspace *workspace = xcalloc(1, sizeof(*workspace));

	*workspace = (struct workspace){
		.config = config,
		.store = store,
		.path = path,
		.owner = config->workspace_folder.owner,
		.conversation = config->workspace_folder.conversation,
		.fd = steal_fd(&fd),
		.folder = workspace_mark_of(&status),
		.bytes_max = config->limits.data_mb << 20,
		.files_max = (size_t)config->limits.data_inodes - 1, /* /data itself is one */
	};
	store_conversation_hash(store, workspace->owner, workspace->conversation, workspace->place);
	*ret = workspace;
	return 0;
}

void workspace_close(struct workspace *workspace)
{
	if (!workspace)
		return;
	for (size_t i = 0; i < workspace->n_late; i++)
		free(workspace->late[i].name);
	free(workspace->late);
	workspace_rules_clear(workspace);
	workspace_names_clear(&workspace->repositories);
	workspace_list_clear(&workspace->base);
	fd_close(&workspace->fd);
	free(workspace);
}

const char *workspace_place(const struct workspace *workspace)
{
	return workspace->place;
}

/* -------- the folder ---------------------------------------------------------------------------------- */

/* Is it still the folder that the path names? */
static int check_folder(const struct workspace *workspace, struct err *err)
{
	struct stat status;

	if (lstat(workspace->path, &status) < 0)
		return err_errno(err, "the workspace %s cannot be seen any more", workspace->path);
	if (status.st_dev != workspace->folder.dev || status.st_ino != workspace->folder.ino)
		return err_set(err, ERR_UNAVAILABLE,
			       "the workspace %s is another folder than at the start: restart the server to use it",
			       workspace->path);
	return 0;
}

/* 1: it was read; 0: it went, or changed while it was read; negative. */
static int try_content(struct workspace *workspace, struct workspace_file *file, struct err *err)
{
	auto_close int fd = beneath_open(workspace->fd, file->name, O_RDONLY | O_NONBLOCK, 0);
	struct stat status;
	int64_t size;

	if (fd < 0 && (errno == EACCES || errno == EPERM))
		return err_errno(err,
				 "the file \"%.200s\" of the workspace cannot be read: allow it, or name it in "
				 "" WORKSPACE_IGNORE,
				 file->name);
	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return 0;
	file->mark = workspace_mark_of(&status);
	file->mode = status.st_mode & 0777;
	int result = store_blob_put_fd(workspace->store, fd, workspace->bytes_max, file->blob, &size, err);

	if (result < 0)
		return err_wrap(err, "reading \"%.200s\" of the workspace", file->name);
	if (fstat(fd, &status) < 0)
		return 0;
	const struct workspace_mark mark = workspace_mark_of(&status);

	file->settled = workspace_settled(&status);
	return size == mark.size && workspace_mark_same(&mark, &file->mark);
}

/* 0: it is there with its content; 1: it went. */
static int take_content(struct workspace *workspace, struct workspace_file *file, struct err *err)
{
	const struct workspace_file *before = workspace_list_find(&workspace->base, file->name);
	struct stat status;

	if (before && before->settled && workspace_mark_same(&before->mark, &file->mark)) {
		memcpy(file->blob, before->blob, sizeof(file->blob));
		file->settled = true;
		return 0;
	}
	for (int i = 0; i < READ_TRIES; i++) {
		int result = try_content(workspace, file, err);

		if (result != 0)
			return MIN(result, 0);
		if (fstatat(workspace->fd, file->name, &status, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(status.st_mode))
			return 1;
	}
	return err_set(err, ERR_BUSY,
		       "the file \"%.200s\" of the workspace changes all the time: try again, or name it in "
		       "" WORKSPACE_IGNORE,
		       file->name);
}

static int take_contents(struct workspace *workspace, struct workspace_list *now, struct err *err)
{
	size_t kept = 0;
	int result = 0;

	for (size_t i = 0; i < now->count; i++) {
		if (result >= 0)
			result = take_content(workspace, &now->items[i], err);
		if (result > 0)
			free(now->items[i].name);
		else
			now->items[kept++] = now->items[i];
	}
	now->count = kept;
	return MIN(result, 0);
}

/* The files that we still owe the folder are in `base` as they were: a later attempt must see what was changed there.
 */
static void keep_base(struct workspace *workspace, struct workspace_list *now)
{
	struct workspace_list base = {0};

	for (size_t i = 0; i < now->count; i++)
		if (!workspace_is_late(workspace, now->items[i].name)) {
			struct workspace_file *kept = workspace_list_add(&base, "");
			char *name = steal(&now->items[i].name);

			free(kept->name);
			*kept = now->items[i];
			kept->name = name;
		}
	for (size_t i = 0; i < workspace->base.count; i++)
		if (workspace_is_late(workspace, workspace->base.items[i].name)) {
			struct workspace_file *kept = workspace_list_add(&base, workspace->base.items[i].name);
			char *name = kept->name;

			*kept = workspace->base.items[i];
			kept->name = name;
		}
	workspace_list_sort(&base);
	workspace_list_clear(&workspace->base);
	workspace->base = base;
}

int workspace_read(struct workspace *workspace, struct workspace_names *ret, struct err *err)
{
	auto_workspace_list struct workspace_list now = {0};
	struct workspace_names *found = &workspace->repositories;
	int result = check_folder(workspace, err);

	if (result == 0)
		result = workspace_rules_read(workspace, err);
	if (result == 0)
		workspace_write_late(workspace);
	if (result == 0)
		result = workspace_walk(workspace, &now, err);
	if (result == 0 && now.count > 0)
		result = store_space_check(workspace->store, err);
	if (result == 0)
		result = take_contents(workspace, &now, err);
	if (result == 0)
		result = workspace_sync(workspace, &now, ret, err);
	if (result == 0)
		keep_base(workspace, &now);
	workspace_names_clear(found);
	for (size_t i = 0; i < workspace->base.count; i++) {
		const char *name = workspace->base.items[i].name, *slash = strrchr(name, '/');

		if (!workspace_guard_same(slash ? slash + 1 : name, "head"))
			continue;
		found->items = xrealloc(found->items, found->count + 1, sizeof(*found->items));
		found->items[found->count++] = xstrndup(name, slash ? (size_t)(slash - name) : 0);
	}
	return result;
}
