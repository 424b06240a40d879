/*
 * job_upload.c - what takes its turn of a conversation without being a job: an upload, and the reset of live sandboxes.
 *
 * The caller's thread waits. The reactor gives the turn and, for a reset, ends the sandboxes, which are its own; the
 * writer commits; the reactor reports the news and ends the turn.
 */
#include "job_internal.h"
#include "job_sandbox.h"

#include <errno.h>
#include <semaphore.h>
#include <string.h>

#include "lib/store/store_blob.h"
#include "lib/store/store_space.h"
#include "lib/store/store_file.h"
#include "lib/store/store_request.h"

struct visit {
	struct job_turn turn;
	const struct job_request *who; /* the caller's, who waits */
	char place[SHA256_HEX_SIZE];   /* the conversation's hash */
	sem_t over;                    /* not the engine's: that may be gone when the caller wakes */
	struct job_files files;        /* an upload's */
	bool reset;
	char language[32]; /* a reset's; "": all */
	size_t n_ended;
};

static struct visit *visit_of(struct job_errand *errand)
{
	return container_of(errand, struct visit, turn.errand);
}

void job_tell_files(const struct job_engine *engine, const struct job_files *files)
{
	struct job_news news = {.owner = files->owner, .conversation = files->conversation};

	for (size_t i = 0; engine->tell && i < files->count; i++) {
		news.name = files->items[i].file.name;
		news.name_length = files->items[i].file.name_length;
		engine->tell(engine->tell_arg, &news);
	}
}

int job_store_files(struct store *store, const struct job_request *request, const struct job_files *files,
		    struct err *err)
{
	for (size_t i = 0; i < files->count; i++) {
		const struct job_file *from = &request->files[i];
		struct store_file *file = &files->items[i].file;
		int result = store_blob_put(store, from->data, from->length, file->blob, err);

		if (result < 0)
			return err_wrap(err, "keeping the file \"%s\"", file->name);
		file->size = (int64_t)from->length;
		store_media_type(file->name, file->name_length, (const unsigned char *)from->data, from->length,
				 file->media_type);
	}
	return 0;
}

/* -------- the turn, on the reactor; the transactions, on the writer's thread --------------------------- */

static int upload_work(struct store_txn *txn, void *errand, struct err *err)
{
	struct visit *visit = visit_of(errand);
	const struct store_request request = {
		.owner = visit->who->owner, .key = visit->turn.key, .hash = visit->turn.key_hash};
	char first[ID_SIZE];
	int64_t row;
	int result = request.key ? store_txn_request_find(txn, &request, first, err) : 0;

	if (result != 0) /* 1: the file was put by the first call, whatever became of it */
		return MIN(result, 0);
	result = job_put_files(txn, &visit->files, &row, err);
	return result < 0 || !request.key ? result : store_txn_request_put(txn, &request, err);
}

static int reset_work(struct store_txn *txn, void *errand, struct err *err)
{
	const struct visit *visit = visit_of(errand);
	const struct store_sandbox place = {
		.owner = visit->who->owner, .conversation = visit->who->conversation, .language = visit->language};

	return store_txn_sandbox_dismiss(txn, &place, err);
}

static enum job_step begin(struct visit *visit)
{
	struct job_errand *errand = &visit->turn.errand;

	if (visit->reset)
		visit->n_ended = job_sandboxes_reset(errand->engine, visit->place, visit->language);
	job_lend_writer(errand, visit->reset ? reset_work : upload_work);
	return JOB_RECORDING;
}

static enum job_step next_step(struct visit *visit, enum job_event event)
{
	const bool failed = visit->turn.errand.code < 0;

	if (event == JOB_TURN)
		return begin(visit);
	if (event == JOB_TURNED_AWAY)
		return JOB_OVER;
	if (visit->turn.step == JOB_RECEIVING)
		return failed ? JOB_OVER : JOB_WAITING;
	if (!failed)
		job_tell_files(visit->turn.errand.engine, &visit->files);
	return JOB_OVER;
}

static void advance(struct job_turn *turn, enum job_event event)
{
	struct visit *visit = container_of(turn, struct visit, turn);
	enum job_step step = next_step(visit, event);

	if (step != JOB_OVER) {
		job_turn_step(turn, step);
		return;
	}
	job_turn_over(turn);
	sem_post(&visit->over); /* it is the caller's again */
}

/* -------- the caller ---------------------------------------------------------------------------------- */

static int check(const struct job_request *who, struct err *err)
{
	if (!who->conversation)
		return err_member(err, "conversationId", "is missing");
	return job_conversation_check(who->conversation, "conversationId", err);
}

static int enter(struct visit *visit, struct err *err)
{
	struct job_engine *engine = visit->turn.errand.engine;
	const struct job_request *who = visit->who;
	int result = 0;

	store_conversation_hash(engine->store, who->owner, who->conversation, visit->place);
	visit->turn.owner = who->owner;
	visit->turn.token_id = who->token_id ? who->token_id : "";
	visit->turn.place = visit->place;
	pthread_mutex_lock(&engine->lock);
	if (visit->reset && who->language)
		result = job_take_language(engine->runners, who->language, visit->language, err);
	if (result == 0)
		result = job_turn_enter(&visit->turn, err);
	pthread_mutex_unlock(&engine->lock);
	return result;
}

/* Takes the turn, once the inputs are stored, and waits until it is over. */
static int take_turn(struct visit *visit, const struct job_request *request, struct err *err)
{
	struct job_turn *turn = &visit->turn;

	sem_init(&visit->over, 0, 0);
	turn->errand.code = job_store_files(turn->errand.engine->store, request, &visit->files, &turn->error);
	job_post(&turn->errand);
	while (sem_wait(&visit->over) < 0 && errno == EINTR)
		;
	sem_destroy(&visit->over);
	if (turn->error.code == ERR_NONE)
		return 0;
	if (err)
		*err = turn->error;
	return -(int)turn->error.code;
}

int job_upload(struct job_engine *engine, const struct job_request *who, const struct job_file *file,
	       struct store_file *ret, char ret_hash[SHA256_HEX_SIZE], struct err *err)
{
	const struct job_request request = {.conversation = who->conversation, .files = file, .n_files = 1};
	struct visit visit = {.who = who,
			      .files = {.owner = who->owner,
					.token = who->token_id,
					.conversation = who->conversation,
					.bytes_max = engine->config->limits.data_mb << 20}};
	int result = check(who, err);

	job_turn_init(&visit.turn, engine, advance);
	visit.turn.key = who->key;
	visit.turn.key_hash = who->key_hash;
	if (result == 0)
		result = store_space_check(engine->store, err);
	if (result == 0)
		result = job_take_files(&request, true, &visit.files, err);
	if (result == 0)
		result = enter(&visit, err);
	if (result == 0)
		result = take_turn(&visit, &request, err);
	if (result == 0) {
		*ret = visit.files.items[0].file;
		ret->name = NULL;
		ret->name_length = 0;
		memcpy(ret_hash, visit.place, SHA256_HEX_SIZE);
	}
	job_inputs_free(visit.files.items, visit.files.count);
	return result;
}

int job_reset(struct job_engine *engine, const struct job_request *who, size_t *ret_ended, struct err *err)
{
	struct visit visit = {.who = who, .reset = true};
	int result = check(who, err);

	job_turn_init(&visit.turn, engine, advance);
	if (result == 0)
		result = enter(&visit, err);
	if (result == 0)
		result = take_turn(&visit, who, err);
	if (result == 0)
		*ret_ended = visit.n_ended;
	return result;
}
