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

#define NAMES_SHOWN 4096 /* bytes of them that the entry's details have as text */
#define NAMES_MAX (64u << 20) /* of all files of a conversation, for their sum */

#define auto_files __attribute__((cleanup(files_clear)))
static void files_clear(struct job_files *files)
{
	job_inputs_free(files->items, files->count);
	files->items = NULL;
	files->count = 0;
}

static int add_file(void *arg, const struct store_file *file)
{
	struct job_files *files = arg;

	job_inputs_add(&files->items, &files->count, file);
	return 0;
}

/* `files`: whose they are, and who acts; without a token an operator. */
static int log_edit(struct store_txn *txn, const struct job_files *files, struct store_audit *entry, struct err *err)
{
	char actor[STORE_AUDIT_OBJECT_SIZE];

	const char *token = files->caller.token;

	snprintf(actor, sizeof(actor), "token:%s", token ? token : "");
	entry->actor = token && *token ? actor : NULL;
	entry->owner = files->owner;
	store_audit_client(entry, files->caller.client);
	return store_txn_audit(txn, entry, err);
}

static void finish(const struct job_visit *visit, const struct job_edited *done, struct job_edited *ret)
{
	*ret = *done;
	ret->again = visit->again;
	memcpy(ret->hash, visit->place, sizeof(ret->hash));
}

/* -------- removal ------------------------------------------------------------------------------------- */

struct removal {
	struct job_visit visit; /* its files: those that went */
	struct job_edited done;
	const struct job_names *names;
};

/* Those of `all` that the names mean. */
static int choose(const struct job_names *names, const struct job_files *all, struct job_files *ret, struct err *err)
{
	auto_free bool *chosen = xcalloc(all->count + 1, sizeof(*chosen));

	for (size_t n = 0; n < names->count; n++) {
		const struct bind_text *name = &names->items[n];
		auto_buf struct buf shown = {0};
		bool found = false;

		for (size_t i = 0; i < all->count; i++) {
			const struct store_file *file = &all->items[i].file;

			/* The file itself, or one below the folder. */
			if (file->name_length >= name->length && memcmp(file->name, name->data, name->length) == 0 &&
			    (file->name_length == name->length || file->name[name->length] == '/'))
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

static int log_removal(struct store_txn *txn, const struct job_files *gone, const char *hash, struct err *err)
{
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
	for (size_t i = 0; i < names.length; i++)
		names.data[i] = names.data[i] ? names.data[i] : '\n';
	store_audit_text(&entry, "name", names.data, utf8_cut(names.data, names.length, NAMES_SHOWN));
	return log_edit(txn, gone, &entry, err);
}

static int removal_work(struct store_txn *txn, void *work_item, struct err *err)
{
	struct job_visit *visit = job_visit_of(work_item);
	struct removal *removal = container_of(visit, struct removal, visit);
	struct job_files *gone = &visit->files;
	struct store_conversation conversation;
	auto_files struct job_files all = {0};
	int64_t deleted, sum = 0;
	int result = job_visit_recall(txn, visit, err);

	if (result != 0)
		return MIN(result, 0);
	files_clear(gone);
	result = store_txn_conversation(txn, gone->owner, gone->conversation, &conversation, err);
	if (result == 0)
		result = store_txn_files(txn, conversation.row, add_file, &all, err);
	if (result == 0)
		result = choose(removal->names, &all, gone, err);
	for (size_t i = 0; result == 0 && i < removal->names->count; i++) {
		const struct bind_text *name = &removal->names->items[i];

		result = store_txn_files_delete(txn, conversation.row, name->data, name->length, &deleted, err);
		sum += result == 0 ? deleted : 0;
	}
	if (result == 0 && sum != (int64_t)gone->count)
		result = err_set(err, ERR_INTERNAL, "%lld files went, not %zu", (long long)sum, gone->count);
	removal->done.removed = (int64_t)gone->count;
	if (result == 0)
		result = log_removal(txn, gone, conversation.hash, err);
	return result < 0 ? result : job_visit_keep(txn, visit, err);
}

int job_edit_remove(struct job_engine *engine, const struct job_request *who, const struct job_names *names,
		    struct job_edited *ret, struct err *err)
{
	struct removal removal = {.names = names};
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
		finish(&removal.visit, &removal.done, ret);
	files_clear(&removal.visit.files);
	return result;
}

/* -------- going back ---------------------------------------------------------------------------------- */

struct restore {
	struct job_visit visit; /* its files: those that were removed, then those that were put */
	struct job_edited done;
	struct store_undo state;
	char execution[ID_SIZE];
	bool apart; /* by a process without an engine, whose turns order nothing; its files have no bytes_max */
};

static void note_removed(void *arg, const struct store_file *file)
{
	struct restore *restore = arg;

	restore->done.removed++;
	add_file(&restore->visit.files, file);
}

static void note_put(void *arg, const struct store_file *file)
{
	struct restore *restore = arg;

	restore->done.put++;
	add_file(&restore->visit.files, file);
}

static int log_restore(struct store_txn *txn, const struct restore *restore, const char *hash, struct err *err)
{
	char place[SHA256_HEX_SIZE];
	struct store_audit entry;

	store_audit_place(hash, place);
	store_audit_init(&entry, STORE_AUDIT_FILE_RESTORE, "conversation", place);
	store_audit_word(&entry, "execution", restore->state.execution);
	store_audit_word(&entry, "state", restore->state.after ? "after" : "before");
	store_audit_int(&entry, "put", restore->done.put);
	store_audit_int(&entry, "removed", restore->done.removed);
	return log_edit(txn, &restore->visit.files, &entry, err);
}

static int go_back(struct store_txn *txn, void *arg, struct err *err)
{
	struct restore *restore = arg;
	struct job_files *files = &restore->visit.files;
	struct store_conversation conversation;
	const struct store_undo_watch watch = {note_removed, note_put, restore};
	int result = store_txn_conversation(txn, files->owner, files->conversation, &conversation, err);

	files_clear(files);
	restore->done = (struct job_edited){0};
	if (result == 0 && restore->apart)
		result = store_txn_conversation_quiet(txn, conversation.row, err);
	if (result == 0)
		result = store_txn_undo(txn, files->owner, conversation.row, &restore->state, &watch, err);
	/* The run that left a file may be erased, and then nothing else says that the file is as it was put. */
	for (size_t i = (size_t)restore->done.removed; result == 0 && i < files->count; i++) {
		const struct store_file *file = &files->items[i].file;

		result = store_txn_audit_file(txn, conversation.row, file->name, file->name_length, &files->caller,
					      err);
	}
	if (result == 0)
		result = store_txn_conversation(txn, files->owner, files->conversation, &conversation, err);
	if (result < 0)
		return result;
	if (files->bytes_max > 0 && conversation.bytes > files->bytes_max)
		return err_set(err, ERR_LIMIT, "those files have %lld bytes; a program's /data holds %lld now",
			       (long long)conversation.bytes, (long long)files->bytes_max);
	memcpy(restore->done.hash, conversation.hash, sizeof(restore->done.hash));
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
	struct restore restore = {0};
	struct store_execution execution = {0};
	int result = job_visit_init(&restore.visit, engine, who, restore_work, err);

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
		finish(&restore.visit, &restore.done, ret);
	files_clear(&restore.visit.files);
	store_execution_clear(&execution);
	return result;
}

int job_edit_restore_apart(struct store *store, const struct job_state *state, struct job_edited *ret, struct err *err)
{
	struct restore restore = {.apart = true};
	struct store_execution execution = {0};
	int result = store_execution_find(store, state->execution, &execution, err);

	if (result == 0)
		result = choose_state(store, &execution, state->after, &restore, err);
	restore.visit.files.owner = execution.owner;
	restore.visit.files.conversation = execution.conversation;
	if (result == 0)
		result = store_commit(store, go_back, &restore, err);
	if (result == 0)
		*ret = restore.done;
	files_clear(&restore.visit.files);
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

int job_edit_look(struct job_engine *engine, const struct job_request *who, struct err *err)
{
	struct job_visit visit;
	bool busy = false;

	if (!engine->workspace)
		return 0;
	pthread_mutex_lock(&engine->lock);
	for (const struct job_turn *turn = engine->turns; turn && !busy; turn = turn->next)
		busy = job_workspace_has(turn);
	pthread_mutex_unlock(&engine->lock);
	if (busy) /* then the record is as that turn found the folder, which has to do */
		return 0;
	int result = job_visit_init(&visit, engine, who, nothing, err);

	if (result == 0)
		result = job_visit_enter(&visit, err);
	return result < 0 ? result : job_visit_wait(&visit, 0, err);
}
