/*
 * job_workspace.c - the engine's side of a workspace (workspace.h): a turn of its conversation begins with reading the
 * folder, and ends with writing there what it changed.
 */
#include "job_internal.h"

#include <string.h>

int job_workspace_start(struct job_engine *engine, struct err *err)
{
	if (!engine->config->workspace_folder.path)
		return 0;
	return workspace_open(engine->config, engine->store, &engine->workspace, err);
}

bool job_workspace_has(const struct job_turn *turn)
{
	const struct workspace *workspace = turn->work_item.engine->workspace;

	return workspace && streq(turn->place, workspace_place(workspace));
}

int job_workspace_read(struct job_work_item *work_item, struct err *err)
{
	struct job_turn *turn = container_of(work_item, struct job_turn, work_item);

	return workspace_read(work_item->engine->workspace, &turn->read, err);
}

void job_workspace_tell(struct job_turn *turn)
{
	const struct job_engine *engine = turn->work_item.engine;
	struct job_news news = {.owner = turn->owner, .conversation = engine->config->workspace_folder.conversation};

	for (size_t i = 0; engine->tell && i < turn->read.count; i++) {
		news.name = turn->read.items[i];
		news.name_length = strlen(news.name);
		engine->tell(engine->tell_arg, &news);
	}
	workspace_names_clear(&turn->read);
}

static struct workspace_change change_of(const struct store_file *file, bool gone)
{
	return (struct workspace_change){.name = file->name,
					 .blob = gone ? "" : file->blob,
					 .mode = file->mode,
					 .mtime_us = file->mtime_us,
					 .size = file->size};
}

static bool changed(const struct job_result *result, const char *name)
{
	for (size_t i = 0; i < result->n_changes; i++)
		if (streq(result->changes[i].name, name) && result->changes[i].kind != JAIL_FILE_NOT_KEPT)
			return true;
	return false;
}

int job_workspace_write(struct job_work_item *work_item, struct err *err)
{
	struct job *job = container_of(work_item, struct job, turn.work_item);
	struct job_result *result = &job->run.result;
	const struct job_files *given = &job->asked.files;
	auto_free struct workspace_change *changes = xcalloc(result->n_changes + given->count + 1, sizeof(*changes));
	auto_buf struct buf note = {0};
	size_t count = 0;

	(void)err;
	for (size_t i = 0; i < given->count; i++)
		if (!changed(result, given->items[i].name))
			changes[count++] = change_of(&given->items[i].file, false);
	for (size_t i = 0; i < result->n_changes; i++) {
		const struct job_change *change = &result->changes[i];

		if (change->kind != JAIL_FILE_NOT_KEPT)
			changes[count++] = change_of(&change->file, change->kind == JAIL_FILE_DELETED);
	}
	buf_init(&note, WORKSPACE_NOTE_MAX);
	workspace_write(work_item->engine->workspace, changes, count, &note);
	if (note.length > 0)
		result->workspace = buf_steal(&note, NULL);
	return 0;
}

int job_workspace_write_files(struct job_engine *engine, const char *place, const struct job_files *files,
			      struct err *err)
{
	auto_free struct workspace_change *changes = xcalloc(files->count + 1, sizeof(*changes));
	auto_free struct store_file *now = xcalloc(files->count + 1, sizeof(*now));
	struct store_conversation conversation;
	auto_buf struct buf note = {0};
	int result = store_conversation_by_hash(engine->store, place, &conversation, err);

	for (size_t i = 0; result == 0 && i < files->count; i++) {
		const struct store_file *file = &files->items[i].file;
		bool gone = store_file_find(engine->store, conversation.row, file->name, file->name_length, &now[i],
					    NULL) == -ERR_NOT_FOUND;

		now[i].name = file->name;
		changes[i] = change_of(&now[i], gone);
	}
	if (result < 0)
		return result;
	buf_init(&note, WORKSPACE_NOTE_MAX);
	workspace_write(engine->workspace, changes, files->count, &note);
	while (note.length > 0 && note.data[note.length - 1] == '\n')
		note.data[--note.length] = '\0';
	for (char *end; (end = strchr(note.data, '\n'));)
		*end = ';';
	return note.length > 0 ? err_set(err, ERR_CONFLICT, "%s", note.data) : 0;
}

