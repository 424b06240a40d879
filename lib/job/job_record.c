/*
 * job_record.c - between a job and the store: inputs out of the blob folder, outputs into it, and the row's two
 * transactions.
 *
 * The first transaction (job_begin_work) puts the request's files into the conversation and writes the row as
 * `running`. The second (job_finish_work) writes outcome, output and changed files, and is on disk before a waiter
 * wakes; where the files are many, most of them are written in parts before it (job_files_work). All else here is slow
 * disk work and runs on an I/O worker, but for output so short that it is kept in the row: the reactor reads that. A
 * file that cannot be kept costs the run nothing but that file: it is recorded as lost, with the reason.
 */
#include "job_internal.h"
#include "job_runtime.h"
#include "job_sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/utf8.h"
#include "lib/store/blob/store_blob.h"
#include "lib/store/record/store_execution.h"
#include "lib/store/record/store_request.h"

static struct job *job_of(struct job_work_item *work_item)
{
	return container_of(work_item, struct job, turn.work_item);
}

int job_store_text(struct store *store, const struct bind_text *text, struct store_text *ret, int *ret_fd,
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

char *job_json_text(struct json_object *object)
{
	struct buf text;

	buf_init(&text, SIZE_MAX);
	json_print(&text, object);
	return buf_steal(&text, NULL);
}

/* -------- the first transaction ----------------------------------------------------------------------- */

static struct store_request request_of(const struct job *job)
{
	return (struct store_request){.owner = job->asked.row.owner,
				      .key = job->asked.key,
				      .hash = job->asked.key_hash,
				      .execution = job->asked.row.id};
}

/* Was the key used before? Then the error is ERR_CONFLICT, and run.recalled says where. */
static int find_key(struct store_txn *txn, struct job *job, struct err *err)
{
	const struct store_request request = request_of(job);
	int result = request.key ? store_txn_request_find(txn, &request, job->run.recalled, err) : 0;

	if (result > 0)
		return err_set(err, ERR_CONFLICT, "the key's first call is execution %s", job->run.recalled);
	return result;
}

int job_key_work(struct store_txn *txn, void *work_item, struct err *err)
{
	struct job *job = job_of(work_item);
	int result = find_key(txn, job, err);

	if (result == 0)
		*err = job->turn.error;
	return -(int)err->code;
}

/* The row: what was asked, and what the run adds. Its strings stay theirs. */
static struct store_execution row_of(const struct job *job)
{
	const struct job_run *run = &job->run;
	struct store_execution row = job->asked.row;

	row.conversation_row = run->conversation_row;
	row.limits_json = run->limits_json;
	memcpy(row.sandbox_id, run->sandbox_id, sizeof(row.sandbox_id));
	row.sandbox_seq = run->sandbox_seq;
	return row;
}

int job_begin_work(struct store_txn *txn, void *work_item, struct err *err)
{
	struct job *job = job_of(work_item);
	const struct store_request request = request_of(job);
	const struct store_sandbox sandbox = {.id = job->run.sandbox_id,
					      .owner = job->asked.row.owner,
					      .conversation = job->asked.row.conversation,
					      .language = job->asked.row.language};
	const char *conversation = job->asked.row.conversation;
	int result = find_key(txn, job, err);

	if (result == 0 && *conversation && !job->run.large) {
		result = store_txn_execution_is_large(txn, job->asked.row.owner, conversation, err);
		job->run.large = result > 0;
	}
	if (result > 0)
		return result;
	if (result == 0 && *conversation)
		result = job_put_files(txn, &job->asked.files, &job->run.conversation_row, err);
	if (result == 0 && job->run.sandbox_seq == 1) /* a begin that is repeated after a roll-back finds none */
		result = store_txn_sandbox_add(txn, &sandbox, job->run.before, err);
	if (result < 0)
		return result;
	const struct store_execution row = row_of(job);

	job_runtime_of(job->engine, row.language, ""); /* while the jail is made */
	result = store_txn_execution_begin(txn, &row, err);
	return result < 0 || !request.key ? result : store_txn_request_put(txn, &request, err);
}

/* -------- what goes into the jail --------------------------------------------------------------------- */

static int add_input(void *arg, const struct store_execution_file *found)
{
	struct job_run *run = arg;

	if (!run->sandbox || !job_known_has(&run->sandbox->known, &found->file))
		job_inputs_add(&run->inputs, &run->n_inputs, &found->file);
	return 0;
}

int job_open_batch(struct job_work_item *work_item, struct err *err)
{
	struct job_run *run = &job_of(work_item)->run;
	size_t count = MIN(run->n_inputs - run->inputs_sent, JAIL_BATCH_FILES);

	for (size_t i = 0; i < count; i++) {
		const struct store_file *file = &run->inputs[run->inputs_sent + i].file;

		if (store_blob_open(work_item->engine->store, file->blob, &run->input_fds[i], NULL, err) < 0)
			return err_wrap(err, "the file \"%s\"", file->name);
		run->n_input_fds++;
	}
	return 0;
}

int job_prepare(struct job_work_item *work_item, struct err *err)
{
	struct job *job = job_of(work_item);
	struct job_run *run = &job->run;
	struct store *store = job->engine->store;
	const char *id = job->asked.row.id;
	int result;

	if (run->sandbox)
		job_secrets_join(&run->sandbox->secrets, &run->secrets);
	job->cover.mask = job_secrets_mask(run->sandbox ? &run->sandbox->secrets : &run->secrets);
	bool masked = job->cover.mask != NULL;

	result = masked ? job_cover_open(&job->cover, &job->stdout_fd, &job->stderr_fd, err)
			: store_running_open(store, id, "out", &job->stdout_fd, err);
	if (result == 0 && !masked)
		result = store_running_open(store, id, "err", &job->stderr_fd, err);
	if (result < 0)
		return result;
	atomic_store(&job->has_output, true);
	if (run->conversation_row != 0) {
		if (run->sandbox)
			job_known_begin(&run->sandbox->known);
		result = store_execution_files(store, id, STORE_BEFORE, add_input, run, err);
		if (result < 0)
			return result;
		if (run->sandbox)
			job_known_gone(&run->sandbox->known, &run->gone);
	}
	return job_open_batch(work_item, err);
}

/* -------- what comes out ------------------------------------------------------------------------------ */

void job_media_type(const char *name, int fd, char ret[STORE_MEDIA_TYPE_SIZE])
{
	unsigned char head[16];
	ssize_t got = pread(fd, head, sizeof(head), 0);

	store_media_type(name, strlen(name), head, got > 0 ? (size_t)got : 0, ret);
}

int job_store_output(struct job_work_item *work_item, struct err *unused)
{
	struct job_output *output = container_of(work_item, struct job_output, work_item);
	struct job_change *change = &output->change;
	const int64_t most = output->job->run.limits.data_bytes;
	struct err err = ERR_INIT;

	(void)unused; /* a file that is lost costs the run nothing else */
	if (output->copy)
		output->fd = memfd_with("file", output->copy, output->copied);
	const int raw = output->fd;
	int result = job_mask_file(output->job->cover.mask, &output->fd, &err);

	change->masked = result < 0 || output->fd != raw;
	if (result == 0)
		result = store_blob_put_fd(work_item->engine->store, output->fd, most, change->file.blob,
					   &change->file.size, &err);
	if (result < 0) {
		int kept = (int)utf8_cut(err.text, strlen(err.text), sizeof(change->reason) - 1);

		change->kind = JAIL_FILE_NOT_KEPT;
		snprintf(change->reason, sizeof(change->reason), "%.*s", kept, err.text);
	}
	job_media_type(change->file.name, output->fd, change->file.media_type);
	fd_close(&output->fd);
	return 0;
}

/* One stream: into the row or a blob, and its beginning into the answer. */
static int record_stream(struct job *job, int fd, struct store_text *ret, struct job_stream *ret_answer, bool *ret_more,
			 struct err *err)
{
	const size_t answer_max = (size_t)job_answer_max(job->engine->config);
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
		int result = store_blob_put_output(job->engine->store, fd, ret->blob, &size, err);

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

void job_list_changes(struct job *job)
{
	struct job_run *run = &job->run;
	struct job_change *change = run->result.changes = xcalloc(run->n_outputs + 1, sizeof(*change));
	struct store_execution_file *stored = run->changes = xcalloc(run->n_outputs + 1, sizeof(*stored));
	size_t masked = 0;

	for (struct job_output *output = run->outputs; output; output = output->next, change++, stored++) {
		job_mask_name(job->cover.mask, &output->change, &masked);
		*change = output->change;
		output->change.name = NULL; /* the result's from now on */
		*stored = (struct store_execution_file){.file = change->file, .phase = STORE_AFTER};
		snprintf(stored->change, sizeof(stored->change), "%s", job_change_text(change->kind));
		snprintf(stored->reason, sizeof(stored->reason), "%s", change->reason);
		run->result.n_changes++;
	}
}

struct store_usage job_usage(const struct jail_usage *usage)
{
	return (struct store_usage){
		.wall_us = usage->wall_us,
		.cpu_user_us = usage->cpu_user_us,
		.cpu_system_us = usage->cpu_system_us,
		.memory_peak_bytes = usage->memory_peak_bytes,
	};
}

bool job_has_many_files(const struct job *job)
{
	return job->run.result.n_changes - job->run.files_recorded > STORE_FILES_AT_ONCE;
}

int job_files_work(struct store_txn *txn, void *work_item, struct err *err)
{
	struct job *job = job_of(work_item);
	const struct store_execution row = row_of(job);
	struct store_execution_file *next = job->run.changes + job->run.files_recorded;

	job->run.files_recorded += STORE_FILES_AT_ONCE; /* if they are not, the run has no end, either */
	return store_txn_execution_files(txn, &row, next, STORE_FILES_AT_ONCE, err);
}

int job_finish_work(struct store_txn *txn, void *work_item, struct err *err)
{
	struct job *job = job_of(work_item);
	struct job_run *run = &job->run;
	const struct jail_result *jail = &run->result.jail;
	struct store_execution row = row_of(job);

	row.state = STORE_FINISHED;
	row.finished_us = run->finished_us = clock_now_us();
	snprintf(row.fingerprint, sizeof(row.fingerprint), "%s", jail->fingerprint);
	snprintf(row.verdict, sizeof(row.verdict), "%s", jail_verdict_text(jail->verdict));
	snprintf(row.message, sizeof(row.message), "%s", jail->message);
	row.exit_code = jail->exit_code;
	row.signal = jail->signal;
	row.stdout_text = run->stdout_text;
	row.stderr_text = run->stderr_text;
	row.stdout_truncated = jail->stdout_truncated;
	row.stderr_truncated = jail->stderr_truncated;
	row.run = job_usage(&jail->run);
	row.compile = job_usage(&jail->compile);
	row.setup_us = jail->setup_us;
	row.warm = jail->warm;
	row.result_json = run->result_json;
	int result = store_txn_execution_finish(txn, &row, run->changes + run->files_recorded,
						run->result.n_changes - run->files_recorded, err);
	const struct store_runtime *runtime = job_runtime_of(job->engine, row.language, row.fingerprint);

	if (result == 0 && runtime)
		result = store_txn_runtime(txn, row.id, runtime, err);
	return result < 0 ? result : store_txn_tools_add(txn, row.id, &job->run.result.tools, err);
}

/* The store may have turned changes that exceed the owner's cap into lost ones. */
void job_note_lost_changes(struct job *job)
{
	struct job_result *result = &job->run.result;

	for (size_t i = 0; i < result->n_changes; i++) {
		const struct store_execution_file *stored = &job->run.changes[i];

		if (streq(stored->change, job_change_text(JAIL_FILE_NOT_KEPT))) {
			result->changes[i].kind = JAIL_FILE_NOT_KEPT;
			snprintf(result->changes[i].reason, sizeof(result->changes[i].reason), "%s", stored->reason);
		}
	}
}

bool job_output_inline(const struct job *job)
{
	const int fds[] = {job->stdout_fd, job->stderr_fd};
	struct stat status;

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0 && (fstat(fds[i], &status) < 0 || status.st_size > STORE_INLINE_MAX))
			return false;
	/* Looking for secrets in what tools were asked and answered takes long: up to 64 MB and more. */
	return !(job->cover.mask && job->run.result.tools.n_calls > 0) && store_tools_inline(&job->run.result.tools);
}

int job_store_streams(struct job_work_item *work_item, struct err *err)
{
	struct job *job = job_of(work_item);
	struct job_run *run = &job->run;
	struct job_result *result = &run->result;
	auto_json struct json_object *object = NULL;
	int fds[] = {job->stdout_fd, job->stderr_fd};
	int failed = 0;

	job_mask_result(job->cover.mask, &result->jail);
	job_tools_veil(job->cover.mask, &result->tools);
	for (int i = 0; job->cover.mask && failed == 0 && i < 2; i++)
		if (fds[i] >= 0 && (fds[i] = job_cover_shown(&job->cover, i + 1, true, err)) < 0)
			failed = -ERR_SYSTEM;
	if (failed == 0)
		failed = record_stream(job, fds[0], &run->stdout_text, &result->stdout_text, &result->stdout_more, err);
	if (failed == 0)
		failed = record_stream(job, fds[1], &run->stderr_text, &result->stderr_text, &result->stderr_more, err);
	if (failed == 0)
		failed = store_tools_keep(job->engine->store, &result->tools, err);
	object = bind_print_view(jail_result_table, &result->jail, JAIL_RECORD); /* what has no column of its own */
	if (*result->note)
		json_add_string(object, "note", result->note);
	if (result->workspace)
		json_add_string(object, "workspace", result->workspace);
	run->result_json = job_json_text(object);
	return failed;
}

int job_remove_running(struct job_work_item *work_item, struct err *err)
{
	(void)err;
	store_running_remove(work_item->engine->store, job_of(work_item)->asked.row.id);
	return 0;
}
