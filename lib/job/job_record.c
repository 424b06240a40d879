/*
 * job_record.c - between a job and the store: inputs out of the blob folder, outputs into it, and the row's two
 * transactions.
 *
 * The first transaction (job_begin_work) puts the request's files into the conversation and writes the row as
 * `running`; nobody was told of either yet, so it need not be durable. The second (job_record_work) writes outcome,
 * output and changed files, and is durable before a waiter wakes; being later in the same log it makes the first one
 * durable too. All else here is slow disk work and runs on a keeper, but for output so short that it stands in the row:
 * the reactor reads that. A file that cannot be kept costs the run nothing but that file: it is recorded as lost, with
 * the reason.
 */
#include "job_internal.h"
#include "job_sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/utf8.h"
#include "lib/store/store_blob.h"
#include "lib/store/store_execution.h"
#include "lib/store/store_request.h"

static struct job *job_of(struct job_task *task)
{
	return container_of(task, struct job, task);
}

int job_keep_text(struct store *store, const struct bind_text *text, struct store_text *ret, int *ret_fd,
		  struct err *err)
{
	int result;

	ret->length = text->length;
	if (text->length > STORE_INLINE_MAX) {
		result = store_blob_put(store, text->data, text->length, ret->blob, err);
		return result < 0 ? result : store_blob_open(store, ret->blob, ret_fd, NULL, err);
	}
	ret->data = xmemdup(text->data, text->length);
	*ret_fd = memfd_with("text", text->data, text->length);
	return *ret_fd < 0 ? err_errno(err, "cannot make an anonymous file") : 0;
}

/* -------- the first transaction ----------------------------------------------------------------------- */

static int put_files(struct store_txn *txn, struct job *job, struct err *err)
{
	const char *owner = job->record.owner, *name = job->record.conversation;
	struct store_conversation conversation;
	int result = store_txn_conversation(txn, owner, name, &conversation, err);

	for (size_t i = 0; result == 0 && i < job->n_files; i++) {
		result = store_txn_file_place(txn, conversation.row, job->files[i].file.name, err);
		if (result == 0)
			result = store_txn_file_put(txn, conversation.row, &job->files[i].file, err);
	}
	if (result == 0 && job->n_files > 0)
		result = store_txn_conversation(txn, owner, name, &conversation, err);
	if (result < 0)
		return result;
	if (job->n_files > 0 && conversation.bytes > job->limits.data_bytes)
		return err_set(err, ERR_LIMIT,
			       "with this the conversation's files have %lld bytes; a program's /data holds %lld",
			       (long long)conversation.bytes, (long long)job->limits.data_bytes);
	job->record.conversation_row = conversation.row;
	return 0;
}

static struct store_request request_of(const struct job *job)
{
	return (struct store_request){.owner = job->record.owner,
				      .key = job->key,
				      .hash = job->key_hash,
				      .execution = job->upload ? NULL : job->record.id};
}

int job_upload_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct job *job = arg;
	const struct store_request request = request_of(job);
	int result = job->key ? store_txn_request_find(txn, &request, job->recalled, err) : 0;

	if (result != 0) /* 1: the file was put by the first call, whatever became of it */
		return MIN(result, 0);
	result = put_files(txn, job, err);
	return result < 0 || !job->key ? result : store_txn_request_put(txn, &request, err);
}

/* Was the key used before? Then the error is ERR_CONFLICT, and job->recalled says where. */
static int find_key(struct store_txn *txn, struct job *job, struct err *err)
{
	const struct store_request request = request_of(job);
	int result = job->key ? store_txn_request_find(txn, &request, job->recalled, err) : 0;

	return result > 0 ? err_set(err, ERR_CONFLICT, "the key's first call is execution %s", job->recalled) : result;
}

int job_key_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct job *job = arg;
	int result = find_key(txn, job, err);

	if (result == 0)
		*err = job->error;
	return -(int)err->code;
}

int job_reset_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct job *job = arg;
	const struct store_sandbox place = {
		.owner = job->record.owner, .conversation = job->record.conversation, .language = job->record.language};

	return store_txn_sandbox_dismiss(txn, &place, err);
}

/* With its first run; a begin that is repeated after a roll-back finds nothing of the first. */
static int add_sandbox(struct store_txn *txn, struct job *job, struct err *err)
{
	const struct store_sandbox sandbox = {.id = job->record.sandbox_id,
					      .owner = job->record.owner,
					      .conversation = job->record.conversation,
					      .language = job->record.language};

	return store_txn_sandbox_add(txn, &sandbox, job->before, err);
}

int job_begin_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct job *job = arg;
	const struct store_request request = request_of(job);
	int result = find_key(txn, job, err);

	if (result == 0 && *job->record.conversation)
		result = put_files(txn, job, err);
	if (result == 0 && job->record.sandbox_seq == 1)
		result = add_sandbox(txn, job, err);
	if (result == 0)
		result = store_txn_execution_begin(txn, &job->record, err);
	return result < 0 || !job->key ? result : store_txn_request_put(txn, &request, err);
}

/* -------- what goes into the jail --------------------------------------------------------------------- */

void job_inputs_add(struct job_input **inputs, size_t *count, const struct store_file *file)
{
	struct job_input *input;

	*inputs = xrealloc(*inputs, *count + 1, sizeof(**inputs));
	input = &(*inputs)[(*count)++];
	input->name = xstrndup(file->name, file->name_length);
	input->file = *file;
	input->file.name = input->name;
}

void job_inputs_free(struct job_input *inputs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(inputs[i].name);
	free(inputs);
}

static int add_input(void *arg, const struct store_execution_file *found)
{
	struct job *job = arg;

	if (!job->sandbox || !job_known_has(&job->sandbox->known, &found->file))
		job_inputs_add(&job->inputs, &job->n_inputs, &found->file);
	return 0;
}

static void open_batch(struct job *job)
{
	size_t count = MIN(job->n_inputs - job->inputs_sent, JAIL_BATCH_FILES);

	for (size_t i = 0; i < count; i++) {
		const struct store_file *file = &job->inputs[job->inputs_sent + i].file;

		if (store_blob_open(job->engine->store, file->blob, &job->input_fds[i], NULL, &job->error) < 0) {
			err_wrap(&job->error, "the file \"%s\"", file->name);
			return;
		}
		job->n_input_fds++;
	}
}

void job_open_batch(struct job_task *task)
{
	open_batch(job_of(task));
	job_post(job_of(task)->engine, task);
}

void job_prepare(struct job_task *task)
{
	struct job *job = job_of(task);
	struct store *store = job->engine->store;
	const char *id = job->record.id;
	int result;

	result = store_running_open(store, id, "out", &job->stdout_fd, &job->error);
	if (result == 0)
		result = store_running_open(store, id, "err", &job->stderr_fd, &job->error);
	if (result == 0)
		atomic_store(&job->has_output, true);
	if (result == 0 && job->record.conversation_row != 0) {
		if (job->sandbox)
			job_known_begin(&job->sandbox->known);
		result = store_execution_files(store, id, STORE_BEFORE, add_input, job, &job->error);
		if (result == 0 && job->sandbox)
			job_known_gone(&job->sandbox->known, &job->gone);
	}
	if (result == 0)
		open_batch(job);
	job_post(job->engine, task);
}

/* -------- what comes out ------------------------------------------------------------------------------ */

void job_media_type(const char *name, int fd, char ret[STORE_MEDIA_TYPE_SIZE])
{
	unsigned char head[16];
	ssize_t got = pread(fd, head, sizeof(head), 0);

	store_media_type(name, strlen(name), head, got > 0 ? (size_t)got : 0, ret);
}

void job_keep_output(struct job_task *task)
{
	struct job_output *output = container_of(task, struct job_output, task);
	struct job_change *change = &output->change;
	struct job_engine *engine = output->job->engine;
	struct err err = ERR_INIT;

	if (store_blob_put_fd(engine->store, output->fd, output->job->limits.data_bytes, change->file.blob,
			      &change->file.size, &err) < 0) {
		int kept = (int)utf8_cut(err.text, strlen(err.text), sizeof(change->reason) - 1);

		change->kind = JAIL_FILE_NOT_KEPT;
		snprintf(change->reason, sizeof(change->reason), "%.*s", kept, err.text);
	}
	job_media_type(change->file.name, output->fd, change->file.media_type);
	close_pointer(&output->fd);
	output->fd = -1;
	job_post(engine, task);
}

/* One stream: into the row or a blob, and its beginning into the answer. */
static int record_stream(struct job *job, int fd, struct store_text *ret, struct job_stream *ret_answer, bool *ret_more,
			 struct err *err)
{
	const size_t answer_max = (size_t)job->engine->config->limits.answer_kb * 1024;
	auto_free char *text = NULL;
	struct stat status;
	size_t length, kept;
	int64_t size;

	if (fd < 0)
		return 0;
	if (fstat(fd, &status) < 0)
		return err_errno(err, "reading the program's output");
	length = (size_t)status.st_size;
	kept = MIN(length, MAX(answer_max, STORE_INLINE_MAX));
	text = xmalloc(kept + 1);
	for (size_t at = 0; at < kept;) {
		ssize_t got = pread(fd, text + at, kept - at, (off_t)at);

		if (got <= 0)
			return err_errno(err, "reading the program's output");
		at += (size_t)got;
	}
	ret->length = length;
	if (length > STORE_INLINE_MAX) {
		int result = store_blob_put_fd(job->engine->store, fd, INT64_MAX, ret->blob, &size, err);

		if (result < 0)
			return result;
	} else {
		ret->data = xmemdup(text, length);
	}
	ret_answer->length = MIN(length, answer_max);
	text[ret_answer->length] = '\0';
	ret_answer->data = steal(&text);
	*ret_more = length > answer_max;
	return 0;
}

const char *job_change_text(enum jail_change_kind kind)
{
	return kind == JAIL_FILE_NOT_KEPT ? "lost" : jail_change_text(kind);
}

void job_list_changes(struct job *job)
{
	size_t i = 0;

	job->result.changes = xcalloc(job->n_outputs + 1, sizeof(*job->result.changes));
	for (struct job_output *output = job->outputs; output; output = output->next) {
		job->result.changes[i++] = output->change;
		output->change.name = NULL; /* the result's from now on */
	}
	job->result.n_changes = i;
}

/* What has no column of its own. */
static char *print_result(const struct job *job)
{
	auto_json struct json_object *object = bind_print_view(jail_result_table, &job->result.jail, JAIL_RECORD);

	if (*job->result.note)
		json_add_string(object, "note", job->result.note);
	return json_text(object);
}

static struct store_usage usage_of(const struct jail_usage *usage)
{
	return (struct store_usage){
		.wall_us = usage->wall_us,
		.cpu_user_us = usage->cpu_user_us,
		.cpu_system_us = usage->cpu_system_us,
		.memory_peak_bytes = usage->memory_peak_bytes,
	};
}

static void fill_record(struct job *job)
{
	const struct jail_result *result = &job->result.jail;
	struct store_execution *record = &job->record;

	record->state = STORE_FINISHED;
	record->finished_us = clock_now_us();
	snprintf(record->fingerprint, sizeof(record->fingerprint), "%s", result->fingerprint);
	snprintf(record->verdict, sizeof(record->verdict), "%s", jail_verdict_text(result->verdict));
	snprintf(record->message, sizeof(record->message), "%s", result->message);
	record->exit_code = result->exit_code;
	record->signal = result->signal;
	record->stdout_truncated = result->stdout_truncated;
	record->stderr_truncated = result->stderr_truncated;
	record->run = usage_of(&result->run);
	record->compile = usage_of(&result->compile);
	record->setup_us = result->setup_us;
	record->warm = result->warm;
	if (job->sandbox)
		job_sandbox_note(job);
	record->result_json = print_result(job);
}

static int finish_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct job *job = arg;

	return store_txn_execution_finish(txn, &job->record, job->changes, job->result.n_changes, err);
}

/* On the writer's thread. The store may have turned changes that exceed the owner's cap into lost ones. */
static void finished(void *arg, int result, const struct err *err)
{
	struct job *job = arg;

	if (result < 0)
		job->error = *err;
	for (size_t i = 0; i < job->result.n_changes; i++) {
		struct job_change *change = &job->result.changes[i];

		if (streq(job->changes[i].change, job_change_text(JAIL_FILE_NOT_KEPT))) {
			change->kind = JAIL_FILE_NOT_KEPT;
			snprintf(change->reason, sizeof(change->reason), "%s", job->changes[i].reason);
		}
	}
	job_post(job->engine, &job->task);
}

bool job_output_inline(const struct job *job)
{
	const int fds[] = {job->stdout_fd, job->stderr_fd};
	struct stat status;

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0 && (fstat(fds[i], &status) < 0 || status.st_size > STORE_INLINE_MAX))
			return false;
	return true;
}

void job_record_work(struct job_task *task)
{
	struct job *job = job_of(task);
	struct job_result *result = &job->result;
	int failed;

	job_list_changes(job);
	fill_record(job);
	job->changes = xcalloc(result->n_changes + 1, sizeof(*job->changes));
	for (size_t i = 0; i < result->n_changes; i++) {
		struct store_execution_file *change = &job->changes[i];

		change->file = result->changes[i].file;
		change->phase = STORE_AFTER;
		snprintf(change->change, sizeof(change->change), "%s", job_change_text(result->changes[i].kind));
		snprintf(change->reason, sizeof(change->reason), "%s", result->changes[i].reason);
	}
	failed = record_stream(job, job->stdout_fd, &job->record.stdout_text, &result->stdout_text,
			       &result->stdout_more, &job->error);
	if (failed == 0)
		failed = record_stream(job, job->stderr_fd, &job->record.stderr_text, &result->stderr_text,
				       &result->stderr_more, &job->error);
	if (failed < 0)
		job_post(job->engine, task);
	else
		store_commit_async(job->engine->store, finish_work, job, true, finished);
}

void job_remove_running(struct job_task *task)
{
	store_running_remove(job_of(task)->engine->store, job_of(task)->record.id);
	job_post(job_of(task)->engine, task);
}
