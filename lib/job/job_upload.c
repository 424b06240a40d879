/* job_upload.c - an upload, and the reset of live sandboxes: visits of a conversation (job_visit.h). */
#include "job_edit.h"
#include "job_sandbox.h"
#include "job_visit.h"

#include <string.h>

#include "lib/store/blob/store_blob.h"
#include "lib/store/record/store_file.h"
#include "lib/store/record/store_space.h"

static int upload_work(struct store_txn *txn, void *work_item, struct err *err)
{
	struct job_visit *visit = job_visit_of(work_item);
	int64_t row;
	int result = job_visit_recall(txn, visit, err);

	if (result != 0) /* 1: the file was put by the first call, whatever became of it */
		return MIN(result, 0);
	result = job_put_files(txn, &visit->files, &row, err);
	return result < 0 ? result : job_visit_keep(txn, visit, err);
}

/* Afterwards the visit's files are the caller's to free. */
static int upload(struct job_engine *engine, const struct job_request *who, const struct job_file *files,
		  size_t n_files, struct job_visit *visit, struct err *err)
{
	const struct job_request what = {
		.conversation = who->conversation, .files = files, .n_files = n_files, .paths = true};
	int result = job_visit_init(visit, engine, who, upload_work, err);

	if (result == 0)
		result = store_space_check(engine->store, err);
	if (result == 0)
		result = job_take_files(&what, true, &visit->files, err);
	if (result == 0)
		result = job_visit_enter(visit, err);
	if (result < 0)
		return result;
	int code = job_store_files(engine->store, &what, &visit->files, &visit->turn.error);

	return job_visit_wait(visit, code, err);
}

int job_upload(struct job_engine *engine, const struct job_request *who, const struct job_file *file,
	       struct store_file *ret, char ret_hash[SHA256_HEX_SIZE], struct err *err)
{
	struct job_visit visit;
	int result = upload(engine, who, file, 1, &visit, err);

	if (result == 0) {
		*ret = visit.files.items[0].file;
		ret->name = NULL;
		ret->name_length = 0;
		memcpy(ret_hash, visit.place, SHA256_HEX_SIZE);
	}
	job_inputs_free(visit.files.items, visit.files.count);
	return result;
}

int job_edit_put(struct job_engine *engine, const struct job_request *who, struct job_edited *ret, struct err *err)
{
	struct job_visit visit;
	int result = upload(engine, who, who->files, who->n_files, &visit, err);

	if (result == 0) {
		*ret = (struct job_edited){.put = (int64_t)visit.files.count, .again = visit.again};
		memcpy(ret->hash, visit.place, sizeof(ret->hash));
	}
	job_inputs_free(visit.files.items, visit.files.count);
	return result;
}

/* -------- reset --------------------------------------------------------------------------------------- */

struct reset {
	struct job_visit visit;
	char language[32]; /* "": all */
	size_t n_ended;
};

static struct reset *reset_of(struct job_visit *visit)
{
	return container_of(visit, struct reset, visit);
}

static int reset_work(struct store_txn *txn, void *work_item, struct err *err)
{
	struct reset *reset = reset_of(job_visit_of(work_item));
	const struct store_sandbox place = {.owner = reset->visit.who->owner,
					    .conversation = reset->visit.who->conversation,
					    .language = reset->language};

	return store_txn_sandbox_dismiss(txn, &place, err);
}

/* The sandboxes are the reactor's own. */
static void reset_begin(struct job_visit *visit)
{
	struct reset *reset = reset_of(visit);

	reset->n_ended = job_sandboxes_reset(visit->turn.work_item.engine, visit->place, reset->language);
}

int job_reset(struct job_engine *engine, const struct job_request *who, size_t *ret_ended, struct err *err)
{
	struct reset reset = {0};
	int result = job_visit_init(&reset.visit, engine, who, reset_work, err);

	reset.visit.begin = reset_begin;
	if (result == 0 && who->language) {
		pthread_mutex_lock(&engine->lock);
		result = job_take_language(engine->runners, who->language, reset.language, err);
		pthread_mutex_unlock(&engine->lock);
	}
	if (result == 0)
		result = job_visit_enter(&reset.visit, err);
	if (result == 0)
		result = job_visit_wait(&reset.visit, 0, err);
	if (result == 0)
		*ret_ended = reset.n_ended;
	return result;
}
