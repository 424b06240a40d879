/*
 * job_result.c - a finished execution as the result that its caller got, loaded from the record.
 *
 * For a repeated call and for tasks whose client asks later. The row and execution_file hold everything that an answer
 * shows; the row's `result` holds what the jailer reported beyond the columns. The files of the conversation may have
 * changed since; their recorded content has not.
 */
#include "job_internal.h"

#include <stdio.h>
#include <string.h>

const char *job_change_text(enum jail_change_kind kind)
{
	return kind == JAIL_FILE_NOT_KEPT ? "lost" : jail_change_text(kind);
}

static struct jail_usage usage_of(const struct store_usage *usage)
{
	return (struct jail_usage){
		.wall_us = usage->wall_us,
		.cpu_us = usage->cpu_user_us + usage->cpu_system_us,
		.cpu_user_us = usage->cpu_user_us,
		.cpu_system_us = usage->cpu_system_us,
		.memory_peak_bytes = usage->memory_peak_bytes,
	};
}

int job_result_columns(const struct store_execution *execution, struct jail_result *ret, struct err *err)
{
	*ret = (struct jail_result){
		.verdict = JAIL_XX,
		.exit_code = execution->exit_code,
		.signal = execution->signal,
		.stdout_truncated = execution->stdout_truncated,
		.stderr_truncated = execution->stderr_truncated,
		.run = usage_of(&execution->run),
		.compile = usage_of(&execution->compile),
		.setup_us = execution->setup_us,
		.warm = execution->warm,
	};
	snprintf(ret->message, sizeof(ret->message), "%s", execution->message);
	snprintf(ret->runner, sizeof(ret->runner), "%s", execution->language);
	snprintf(ret->fingerprint, sizeof(ret->fingerprint), "%s", execution->fingerprint);
	if (jail_verdict_parse(execution->verdict, &ret->verdict) < 0)
		return err_set(err, ERR_CORRUPT, "the record has no verdict '%s'", execution->verdict);
	return 0;
}

static int recall_stream(struct store *store, const struct store_text *text, size_t answer_max, struct job_stream *ret,
			 bool *ret_more, struct err *err)
{
	auto_free char *data = NULL;
	size_t length;
	int result = store_text_read(store, text, &data, &length, err);

	if (result < 0)
		return result;
	ret->length = MIN(length, answer_max);
	data[ret->length] = '\0';
	ret->data = steal(&data);
	*ret_more = length > answer_max;
	return 0;
}

static int add_change(void *arg, const struct store_execution_file *found)
{
	struct job_result *result = arg;
	struct job_change *change;

	result->changes = xrealloc(result->changes, result->n_changes + 1, sizeof(*result->changes));
	change = &result->changes[result->n_changes++];
	*change = (struct job_change){.kind = JAIL_FILE_NOT_KEPT, .file = found->file};
	change->name = xmalloc(found->file.name_length + 1);
	memcpy(change->name, found->file.name, found->file.name_length);
	change->name[found->file.name_length] = '\0';
	change->file.name = change->name;
	for (enum jail_change_kind kind = JAIL_FILE_CREATED; kind < JAIL_FILE_NOT_KEPT; kind++)
		if (streq(found->change, job_change_text(kind)))
			change->kind = kind;
	snprintf(change->reason, sizeof(change->reason), "%s", found->reason);
	return 0;
}

/* An interrupted row has nothing beyond its columns. */
static int load_row(struct store *store, const struct store_execution *execution, size_t stream_max,
		    struct job_result *ret, struct err *err)
{
	const char *text = execution->result_json;
	auto_json struct json_object *more = NULL;
	int result = job_result_columns(execution, &ret->jail, err);

	if (result == 0 && text && json_parse(text, strlen(text), &more, err) < 0)
		result = err_wrap(err, "the record's result");
	if (result < 0)
		return result;
	bind_recall(jail_result_table, more, &ret->jail, JAIL_RECORD);
	const char *note = json_get_string(more, "note");
	const char *workspace = json_get_string(more, "workspace");

	snprintf(ret->note, sizeof(ret->note), "%s", note ? note : "");
	ret->workspace = workspace ? xstrdup(workspace) : NULL;
	result = recall_stream(store, &execution->stdout_text, stream_max, &ret->stdout_text, &ret->stdout_more, err);
	if (result == 0)
		result = recall_stream(store, &execution->stderr_text, stream_max, &ret->stderr_text, &ret->stderr_more,
				       err);
	if (result == 0)
		result = store_execution_files(store, execution->id, STORE_AFTER, add_change, ret, err);
	snprintf(ret->id, sizeof(ret->id), "%s", execution->id);
	snprintf(ret->sandbox_id, sizeof(ret->sandbox_id), "%s", execution->sandbox_id);
	ret->sandbox_seq = execution->sandbox_seq;
	snprintf(ret->conversation, sizeof(ret->conversation), "%s", execution->conversation);
	if (result == 0 && *execution->conversation)
		store_conversation_hash(store, execution->owner, execution->conversation, ret->conversation_hash);
	return result;
}

int job_result_load(struct store *store, const char *id, int64_t stream_max, struct job_result *ret, struct err *err)
{
	struct job_result loaded = {0};
	struct store_execution execution;
	int result = store_execution_find(store, id, &execution, err);

	if (result < 0)
		return result;
	if (execution.state == STORE_RUNNING)
		result = err_set(err, ERR_BUSY, "execution %s is still running", id);
	else if ((result = store_execution_whole(&execution, err)) == 0)
		result = load_row(store, &execution, (size_t)stream_max, &loaded, err);
	if (result == 0)
		result = store_tools_load(store, id, &loaded.tools, err);
	store_execution_clear(&execution);
	if (result < 0) {
		job_result_clear(&loaded);
		return err_wrap(err, "reading the recorded result");
	}
	*ret = loaded;
	return 0;
}

void job_changes_free(struct job_change *changes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(changes[i].name);
	free(changes);
}

void job_result_clear(struct job_result *result)
{
	jail_result_clear(&result->jail);
	free(result->stdout_text.data);
	free(result->stderr_text.data);
	job_changes_free(result->changes, result->n_changes);
	store_tools_clear(&result->tools);
	free(result->workspace);
	*result = (struct job_result){0};
}

int64_t job_answer_max(const struct config *config)
{
	return MAX(config->limits.answer_kb * 1000, (int64_t)JOB_ANSWER_LEAST);
}

int job_recall(struct job_work_item *work_item, struct err *err)
{
	struct job *job = container_of(work_item, struct job, turn.work_item);
	struct job_engine *engine = work_item->engine;

	job_result_clear(&job->run.result);
	return job_result_load(engine->store, job->run.recalled, job_answer_max(engine->config), &job->run.result,
			       err);
}
