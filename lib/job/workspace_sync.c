/*
 * workspace_sync.c - the conversation's files become those of the folder, in one transaction; see workspace.h.
 *
 * Changes that we still owe the folder (`late`) stay as they are in the conversation. Each file that is put has an
 * entry in the audit log, as an upload has; what was removed is counted in an entry of its own.
 */
#include "workspace_internal.h"

#include <string.h>

#include "lib/store/audit/store_audit.h"
#include "lib/store/record/store_resource.h"

#define NAMES_MAX (64u << 20) /* of all files, for their sum */

/* What it shall be, and what was done about it. */
struct sync {
	const struct workspace *workspace;
	const struct workspace_list *now;
	struct workspace_list had; /* the conversation's files; mark.mtime_ns in whole microseconds */
	struct workspace_names touched;
	int64_t put, removed;
};

static int add_had(void *arg, const struct store_file *file)
{
	auto_free char *name = xstrndup(file->name, file->name_length);
	struct workspace_file *had = workspace_list_add(arg, name);

	had->mode = file->mode;
	had->mark.size = file->size;
	had->mark.mtime_ns = file->mtime_us * 1000;
	memcpy(had->blob, file->blob, sizeof(had->blob));
	return 0;
}

static void touch(struct sync *sync, const char *name)
{
	sync->touched.items = xrealloc(sync->touched.items, sync->touched.count + 1, sizeof(*sync->touched.items));
	sync->touched.items[sync->touched.count++] = xstrdup(name);
}

static bool same(const struct workspace_file *had, const struct workspace_file *now)
{
	return streq(had->blob, now->blob) && had->mode == now->mode &&
	       had->mark.mtime_ns / 1000 == now->mark.mtime_ns / 1000;
}

/* In the transaction; txn NULL: it is only counted. */
static int take_out(struct sync *sync, struct store_txn *txn, int64_t row, const char *name, struct err *err)
{
	touch(sync, name);
	sync->removed++;
	return txn ? store_txn_file_delete(txn, row, name, strlen(name), err) : 0;
}

static int put_in(struct sync *sync, struct store_txn *txn, int64_t row, const struct workspace_file *now,
		  struct err *err)
{
	struct store_file file = {.name = now->name,
				  .name_length = strlen(now->name),
				  .mode = now->mode,
				  .size = now->mark.size,
				  .mtime_us = now->mark.mtime_ns / 1000};

	touch(sync, now->name);
	sync->put++;
	if (!txn)
		return 0;
	memcpy(file.blob, now->blob, sizeof(file.blob));
	int result = store_txn_file_put(txn, row, &file, err);

	return result < 0 ? result : store_txn_audit_file(txn, row, file.name, file.name_length, NULL, err);
}

/* Of the next items of two lists, of which one may be at its end. */
static int compare_at(const struct workspace_list *a, size_t i, const struct workspace_list *b, size_t k)
{
	if (i == a->count || k == b->count)
		return i == a->count ? 1 : -1;
	return strcmp(a->items[i].name, b->items[k].name);
}

/* The two lists side by side. `removing`: what the folder does not have, else what differs. */
static int step_through(struct sync *sync, struct store_txn *txn, int64_t row, bool removing, struct err *err)
{
	const struct workspace_list *had = &sync->had, *now = sync->now;
	size_t i = 0, k = 0;
	int result = 0;

	while (result == 0 && (i < had->count || k < now->count)) {
		int order = compare_at(had, i, now, k);
		const struct workspace_file *old = order <= 0 ? &had->items[i++] : NULL;
		const struct workspace_file *new = order >= 0 ? &now->items[k++] : NULL;

		if (removing && old && !new && !workspace_is_late(sync->workspace, old->name))
			result = take_out(sync, txn, row, old->name, err);
		else if (!removing && new && !(old && same(old, new)) && !workspace_is_late(sync->workspace, new->name))
			result = put_in(sync, txn, row, new, err);
	}
	return result;
}

static int plan(struct sync *sync, struct store_txn *txn, int64_t row, struct err *err)
{
	workspace_names_clear(&sync->touched);
	sync->put = sync->removed = 0;
	/* Removals come first: a file that takes the place of a folder meets no obstacle. */
	int result = step_through(sync, txn, row, true, err);

	return result < 0 ? result : step_through(sync, txn, row, false, err);
}

static int sync_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct sync *sync = arg;
	const struct workspace *workspace = sync->workspace;
	struct store_conversation conversation;
	char place[SHA256_HEX_SIZE];
	struct store_audit entry;
	auto_buf struct buf names = {0};
	int result = store_txn_conversation(txn, workspace->owner, workspace->conversation, &conversation, err);

	workspace_list_clear(&sync->had);
	if (result == 0)
		result = store_txn_files(txn, conversation.row, add_had, &sync->had, err);
	workspace_list_sort(&sync->had);
	if (result == 0)
		result = plan(sync, txn, conversation.row, err);
	if (result < 0)
		return result;
	buf_init(&names, NAMES_MAX);
	for (size_t i = 0; i < sync->touched.count; i++)
		buf_add(&names, sync->touched.items[i], strlen(sync->touched.items[i]) + 1);
	store_audit_place(conversation.hash, place);
	store_audit_init(&entry, STORE_AUDIT_FILE_WORKSPACE, "conversation", place);
	entry.owner = workspace->owner;
	store_audit_int(&entry, "put", sync->put);
	store_audit_int(&entry, "removed", sync->removed);
	store_audit_sum(&entry, "names", names.data, names.length);
	return store_txn_audit(txn, &entry, err);
}

/* Nothing is written where nothing differs. */
static int compare(struct sync *sync, bool *ret_same, struct err *err)
{
	const struct workspace *workspace = sync->workspace;
	const struct store_page page = {.limit = -1, .name = ""};
	struct store_conversation conversation;
	struct err missing = ERR_INIT;
	int result = store_conversation_by_hash(workspace->store, workspace->place, &conversation, &missing);

	*ret_same = false;
	if (result == -ERR_NOT_FOUND)
		return 0;
	if (result < 0)
		*err = missing;
	if (result == 0)
		result = store_conversation_files(workspace->store, conversation.row, &page, add_had, &sync->had, err);
	workspace_list_sort(&sync->had);
	if (result == 0)
		result = plan(sync, NULL, 0, err);
	*ret_same = result == 0 && sync->touched.count == 0;
	return result;
}

int workspace_sync(struct workspace *workspace, const struct workspace_list *now, struct workspace_names *ret,
		   struct err *err)
{
	struct sync sync = {.workspace = workspace, .now = now};
	bool unchanged = false;
	int result = compare(&sync, &unchanged, err);

	if (result == 0 && !unchanged)
		result = store_commit(workspace->store, sync_work, &sync, err);
	if (result == 0)
		*ret = sync.touched;
	else
		workspace_names_clear(&sync.touched);
	workspace_list_clear(&sync.had);
	return result;
}
