/*
 * job_edit.c - see job_edit.h.
 *
 * A removal looks at all files of the conversation in its transaction and takes those that a name means. What going
 * back does to the files: lib/store/record/store_undo.h.
 */
#include "job_edit.h"

#include <stdlib.h>
#include <string.h>

#include "job_visit.h"
#include "lib/base/utf8.h"
#include "lib/store/audit/store_audit.h"
#include "lib/store/record/store_space.h"
#include "lib/store/record/store_undo.h"

#define NAMES_MAX (64u << 20) /* of all files of a conversation, for their sum */

struct file_list {
	struct job_input *items;
	size_t count;
};
#define auto_file_list __attribute__((cleanup(file_list_clear)))
static void file_list_clear(struct file_list *list)
{
	job_inputs_free(list->items, list->count);
	*list = (struct file_list){0};
}

static int add_file(void *arg, const struct store_file *file)
{
	struct file_list *list = arg;

	job_inputs_add(&list->items, &list->count, file);
	return 0;
}

/* Whose conversation it is, and who acts. */
struct edit {
	const char *owner, *conversation, *token; /* token NULL, "": an operator */
	struct job_edited done;
	struct file_list touched; /* for the news */
};

static int log_edit(struct store_txn *txn, const struct edit *edit, struct store_audit *entry, struct err *err)
{
	char actor[STORE_AUDIT_OBJECT_SIZE];

	snprintf(actor, sizeof(actor), "token:%s", edit->token ? edit->token : "");
	entry->actor = edit->token && *edit->token ? actor : NULL;
	entry->owner = edit->owner;
	return store_txn_audit(txn, entry, err);
}

/* -------- removal ------------------------------------------------------------------------------------- */

struct removal {
	struct job_visit visit;
	struct edit edit;
	const struct job_names *names;
};

/* Is it the file, or below the folder? */
static bool means(const struct bind_text *name, const struct store_file *file)
{
	return file->name_length >= name->length && memcmp(file->name, name->data, name->length) == 0 &&
	       (file->name_length == name->length || file->name[name->length] == '/');
}

/* Those of `all` that the names mean. */
static int choose(const struct job_names *names, const struct file_list *all, struct file_list *ret, struct err *err)
{
	auto_free bool *chosen = xcalloc(all->count + 1, sizeof(*chosen));

	for (size_t n = 0; n < names->count; n++) {
		const struct bind_text *name = &names->items[n];
		auto_buf struct buf shown = {0};
		bool found = false;

		for (size_t i = 0; i < all->count; i++) {
			if (!means(name, &all->items[i].file))
				continue;
			found = chosen[i] = true;
		}
		if (found)
			continue;
		buf_init(&shown, ERR_TEXT_SIZE / 2);
		utf8_printable(&shown, name->data, MIN(name->length, (size_t)64));
		return err_set(err, ERR_NOT_FOUND, "%s[%zu]: this conversation has no file and no folder \"%s\"",
			       names->member, n, shown.data);
	}
	for (size_t i = 0; i < all->count; i++)
		if (chosen[i])
			add_file(ret, &all->items[i].file);
	return 0;
}

static int log_removal(struct store_txn *txn, const struct edit *edit, const char *hash, struct err *err)
{
	const struct file_list *gone = &edit->touched;
	char place[SHA256_HEX_SIZE];
	struct store_audit entry;
	auto_buf struct buf names = {0};
	int64_t bytes = 0;

	buf_init(&names, NAMES_MAX);
	for (size_t i = 0; i < gone->count; i++) {
		bytes += gone->items[i].file.size;
		buf_add(&names, gone->items[i].file.name, gone->items[i].file.name_length);
		buf_putc(&names, '\0');
	}
	store_audit_place(hash, place);
	store_audit_init(&entry, STORE_AUDIT_FILE_DELETE, "conversation", place);
	store_audit_int(&entry, "files", (int64_t)gone->count);
	store_audit_int(&entry, "bytes", bytes);
	store_audit_sum(&entry, "names", names.data, names.length);
	return log_edit(txn, edit, &entry, err);
}

static int remove_all(struct store_txn *txn, struct removal *removal, struct err *err)
{
	struct edit *edit = &removal->edit;
	struct store_conversation conversation;
	auto_file_list struct file_list all = {0};
	int64_t deleted, sum = 0;
	int result = store_txn_conversation(txn, edit->owner, edit->conversation, &conversation, err);

	file_list_clear(&edit->touched);
	if (result == 0)
		result = store_txn_files(txn, conversation.row, add_file, &all, err);
	if (result == 0)
		result = choose(removal->names, &all, &edit->touched, err);
	for (size_t i = 0; result == 0 && i < removal->names->count; i++) {
		const struct bind_text *name = &removal->names->items[i];

		result = store_txn_files_delete(txn, conversation.row, name->data, name->length, &deleted, err);
		sum += result == 0 ? deleted : 0;
	}
	if (result == 0 && sum != (int64_t)edit->touched.count)
		result = err_set(err, ERR_INTERNAL, "%lld files went, not %zu", (long long)sum, edit->touched.count);
	edit->done.removed = (int64_t)edit->touched.count;
	return result < 0 ? result : log_removal(txn, edit, conversation.hash, err);
}

static int removal_work(struct store_txn *txn, void *work_item, struct err *err)
{
	struct job_visit *visit = job_visit_of(work_item);
	struct removal *removal = container_of(visit, struct removal, visit);
	int result = job_visit_recall(txn, visit, err);

	if (result != 0)
		return MIN(result, 0);
	result = remove_all(txn, removal, err);
	visit->files.items = removal->edit.touched.items;
	visit->files.count = removal->edit.touched.count;
	return result < 0 ? result : job_visit_keep(txn, visit, err);
}

static void finish(const struct job_visit *visit, struct edit *edit, struct job_edited *ret)
{
	*ret = edit->done;
	ret->again = visit->again;
	memcpy(ret->hash, visit->place, sizeof(ret->hash));
}

static struct edit edit_of(const struct job_request *who)
{
	return (struct edit){.owner = who->owner, .conversation = who->conversation, .token = who->token_id};
}

int job_edit_remove(struct job_engine *engine, const struct job_request *who, const struct job_names *names,
		    struct job_edited *ret, struct err *err)
{
	struct removal removal = {.edit = edit_of(who), .names = names};
	int result = job_visit_init(&removal.visit, engine, who, removal_work, err);

	if (result == 0 && (names->count == 0 || names->count > JOB_REMOVE_MAX))
		result = err_member(err, names->member, "must have 1 to %d items, not %zu", JOB_REMOVE_MAX,
				    names->count);
	for (size_t i = 0; result == 0 && i < names->count; i++)
		if (names->items[i].length == 0)
			result = err_member(err, names->member, "item %zu is empty", i + 1);
	if (result == 0)
		result = job_visit_enter(&removal.visit, err);
	if (result == 0)
		result = job_visit_wait(&removal.visit, 0, err);
	if (result == 0)
		finish(&removal.visit, &removal.edit, ret);
	file_list_clear(&removal.edit.touched);
	return result;
}

/* -------- going back ---------------------------------------------------------------------------------- */

struct restore {
	struct job_visit visit;
	struct edit edit;
	struct store_undo state;
	char execution[ID_SIZE];
	bool apart;        /* by a process without an engine, whose turns order nothing */
	int64_t bytes_max; /* 0: whatever it is */
};

static void note_removed(void *arg, const struct store_file *file)
{
	struct edit *edit = arg;

	edit->done.removed++;
	add_file(&edit->touched, file);
}

static void note_put(void *arg, const struct store_file *file)
{
	struct edit *edit = arg;

	edit->done.put++;
	add_file(&edit->touched, file);
}

static int log_restore(struct store_txn *txn, const struct restore *restore, const char *hash, struct err *err)
{
	char place[SHA256_HEX_SIZE];
	struct store_audit entry;

	store_audit_place(hash, place);
	store_audit_init(&entry, STORE_AUDIT_FILE_RESTORE, "conversation", place);
	store_audit_word(&entry, "execution", restore->state.execution);
	store_audit_word(&entry, "state", restore->state.after ? "after" : "before");
	store_audit_int(&entry, "put", restore->edit.done.put);
	store_audit_int(&entry, "removed", restore->edit.done.removed);
	return log_edit(txn, &restore->edit, &entry, err);
}

/* The run that left a file may be erased, and then nothing else says that the file is as it was put. */
static int log_put(struct store_txn *txn, const struct edit *edit, int64_t conversation, struct err *err)
{
	int result = 0;

	for (size_t i = (size_t)edit->done.removed; result == 0 && i < edit->touched.count; i++) {
		const struct store_file *file = &edit->touched.items[i].file;

		result = store_txn_audit_file(txn, conversation, file->name, file->name_length, edit->token, err);
	}
	return result;
}

static int go_back(struct store_txn *txn, struct restore *restore, struct err *err)
{
	struct edit *edit = &restore->edit;
	struct store_conversation conversation;
	const struct store_undo_watch watch = {note_removed, note_put, edit};
	int result = store_txn_conversation(txn, edit->owner, edit->conversation, &conversation, err);

	file_list_clear(&edit->touched);
	edit->done = (struct job_edited){0};
	if (result == 0 && restore->apart)
		result = store_txn_conversation_quiet(txn, conversation.row, err);
	if (result == 0)
		result = store_txn_undo(txn, edit->owner, conversation.row, &restore->state, &watch, err);
	if (result == 0)
		result = log_put(txn, edit, conversation.row, err);
	if (result == 0)
		result = store_txn_conversation(txn, edit->owner, edit->conversation, &conversation, err);
	if (result < 0)
		return result;
	if (restore->bytes_max > 0 && conversation.bytes > restore->bytes_max)
		return err_set(err, ERR_LIMIT, "those files have %lld bytes; a program's /data holds %lld now",
			       (long long)conversation.bytes, (long long)restore->bytes_max);
	memcpy(edit->done.hash, conversation.hash, sizeof(edit->done.hash));
	return log_restore(txn, restore, conversation.hash, err);
}

static int restore_work(struct store_txn *txn, void *work_item, struct err *err)
{
	struct job_visit *visit = job_visit_of(work_item);
	struct restore *restore = container_of(visit, struct restore, visit);
	int result = job_visit_recall(txn, visit, err);

	if (result != 0)
		return MIN(result, 0);
	result = go_back(txn, restore, err);
	visit->files.items = restore->edit.touched.items;
	visit->files.count = restore->edit.touched.count;
	return result < 0 ? result : job_visit_keep(txn, visit, err);
}

/* Is there such a state? */
static int choose_state(struct store *store, const struct store_execution *execution, bool after,
			struct restore *restore, struct err *err)
{
	if (execution->state == STORE_RUNNING)
		return err_set(err, ERR_BUSY, "execution %s has not ended", execution->id);
	if (!*execution->conversation)
		return err_set(err, ERR_NOT_FOUND, "execution %s had no conversation, so it has no files",
			       execution->id);
	int result = store_execution_whole(execution, err);

	memcpy(restore->execution, execution->id, sizeof(restore->execution));
	restore->state = (struct store_undo){restore->execution, after};
	return result < 0 ? result : store_undo_check(store, &restore->state, err);
}

int job_edit_restore(struct job_engine *engine, const struct job_request *who, const struct job_state *state,
		     struct job_edited *ret, struct err *err)
{
	struct restore restore = {.edit = edit_of(who)};
	struct store_execution execution = {0};
	int result = job_visit_init(&restore.visit, engine, who, restore_work, err);

	restore.bytes_max = restore.visit.files.bytes_max;
	if (result == 0)
		result = store_space_check(engine->store, err);
	if (result == 0 && (!id_valid(state->execution) ||
			    store_execution_find(engine->store, state->execution, &execution, NULL) < 0 ||
			    !streq(execution.owner, who->owner) || !streq(execution.conversation, who->conversation)))
		result = err_member(err, "executionId", "is not the id of a call of this conversation");
	if (result == 0)
		result = choose_state(engine->store, &execution, state->after, &restore, err);
	if (result == 0)
		result = job_visit_enter(&restore.visit, err);
	if (result == 0)
		result = job_visit_wait(&restore.visit, 0, err);
	if (result == 0)
		finish(&restore.visit, &restore.edit, ret);
	file_list_clear(&restore.edit.touched);
	store_execution_clear(&execution);
	return result;
}

static int apart_work(struct store_txn *txn, void *restore, struct err *err)
{
	return go_back(txn, restore, err);
}

int job_edit_restore_apart(struct store *store, const struct job_state *state, struct job_edited *ret, struct err *err)
{
	struct restore restore = {.apart = true};
	struct store_execution execution = {0};
	int result = store_execution_find(store, state->execution, &execution, err);

	if (result == 0)
		result = choose_state(store, &execution, state->after, &restore, err);
	restore.edit.owner = execution.owner;
	restore.edit.conversation = execution.conversation;
	if (result == 0)
		result = store_commit(store, apart_work, &restore, err);
	if (result == 0)
		*ret = restore.edit.done;
	file_list_clear(&restore.edit.touched);
	store_execution_clear(&execution);
	return result;
}

/* -------- the last run -------------------------------------------------------------------------------- */

static int take_id(void *arg, const struct store_execution *execution)
{
	memcpy(arg, execution->id, ID_SIZE);
	return 0;
}

int job_edit_last(struct store *store, const char *owner, const char *conversation, char ret[ID_SIZE], struct err *err)
{
	const struct store_filter filter = {
		.owner = owner, .conversation = conversation, .newest_first = true, .limit = 1};
	char id[ID_SIZE] = "";
	int result = store_execution_list(store, &filter, take_id, id, err);

	if (result < 0)
		return result;
	if (!*id)
		return err_set(err, ERR_NOT_FOUND, "nothing was run in this conversation yet");
	memcpy(ret, id, sizeof(id));
	return 0;
}

/* -------- a look -------------------------------------------------------------------------------------- */

static int nothing(struct store_txn *txn, void *work_item, struct err *err)
{
	(void)txn;
	(void)work_item;
	(void)err;
	return 0;
}

/* Where a turn is under way the record is as that one found the folder, which has to do. */
static bool busy(struct job_engine *engine)
{
	bool found = false;

	pthread_mutex_lock(&engine->lock);
	for (const struct job_turn *turn = engine->turns; turn && !found; turn = turn->next)
		found = job_workspace_has(turn);
	pthread_mutex_unlock(&engine->lock);
	return found;
}

int job_edit_look(struct job_engine *engine, const struct job_request *who, struct err *err)
{
	struct job_visit visit;

	if (!engine->workspace || busy(engine))
		return 0;
	int result = job_visit_init(&visit, engine, who, nothing, err);

	if (result == 0)
		result = job_visit_enter(&visit, err);
	return result < 0 ? result : job_visit_wait(&visit, 0, err);
}
