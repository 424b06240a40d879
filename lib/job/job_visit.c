/* job_visit.c - see job_visit.h. */
#include "job_visit.h"

#include <errno.h>
#include <string.h>

#include "lib/store/record/store_request.h"

struct job_visit *job_visit_of(struct job_work_item *work_item)
{
	return container_of(work_item, struct job_visit, turn.work_item);
}

static struct store_request request_of(const struct job_visit *visit)
{
	return (struct store_request){.owner = visit->who->owner, .key = visit->turn.key, .hash = visit->turn.key_hash};
}

int job_visit_recall(struct store_txn *txn, struct job_visit *visit, struct err *err)
{
	const struct store_request request = request_of(visit);
	char first[ID_SIZE];
	int result = request.key ? store_txn_request_find(txn, &request, first, err) : 0;

	visit->again = result > 0;
	return result;
}

int job_visit_keep(struct store_txn *txn, struct job_visit *visit, struct err *err)
{
	const struct store_request request = request_of(visit);

	return request.key ? store_txn_request_put(txn, &request, err) : 0;
}

static enum job_step begin(struct job_visit *visit)
{
	if (visit->begin)
		visit->begin(visit);
	job_lend_writer(&visit->turn.work_item, visit->work);
	return JOB_RECORDING;
}

/* I/O worker. */
static int write_workspace(struct job_work_item *work_item, struct err *err)
{
	const struct job_visit *visit = job_visit_of(work_item);

	return job_workspace_write_files(work_item->engine, visit->place, &visit->files, err);
}

static void advance(struct job_turn *turn, enum job_event event)
{
	struct job_visit *visit = container_of(turn, struct job_visit, turn);
	struct job_work_item *work_item = &turn->work_item;
	const enum job_step returned = event == JOB_RETURNED ? turn->step : JOB_OVER; /* from this step */
	const bool failed = work_item->code < 0;
	enum job_step step = JOB_OVER;

	if (event == JOB_TURN && job_workspace_has(turn)) {
		job_lend_io(work_item, job_workspace_read);
		step = JOB_READING;
	} else if (event == JOB_TURN) {
		step = begin(visit);
	} else if (returned == JOB_RECEIVING && !failed) {
		step = JOB_WAITING;
	} else if (returned == JOB_READING) {
		job_workspace_tell(turn);
		step = failed ? JOB_OVER : begin(visit);
	} else if (returned == JOB_RECORDING && !failed && !visit->again) {
		job_tell_files(work_item->engine, &visit->files);
		if (visit->files.count > 0 && job_workspace_has(turn)) {
			job_lend_io(work_item, write_workspace);
			step = JOB_WRITING;
		}
	}
	if (step != JOB_OVER) {
		job_turn_step(turn, step);
		return;
	}
	job_turn_over(turn);
	sem_post(&visit->over); /* it is the caller's again */
}

int job_visit_init(struct job_visit *visit, struct job_engine *engine, const struct job_request *who, store_work work,
		   struct err *err)
{
	*visit = (struct job_visit){.who = who,
				    .work = work,
				    .files = {.owner = who->owner,
					      .caller = {who->token_id, who->client},
					      .conversation = who->conversation,
					      .bytes_max = engine->config->limits.data_mb << 20}};
	job_turn_init(&visit->turn, engine, advance);
	visit->turn.placed = who->placed;
	visit->turn.key = who->key;
	visit->turn.key_hash = who->key_hash;
	if (!who->conversation)
		return err_member(err, "conversationId", "is missing");
	return job_conversation_check(who->conversation, "conversationId", err);
}

int job_visit_enter(struct job_visit *visit, struct err *err)
{
	struct job_engine *engine = visit->turn.work_item.engine;
	const struct job_request *who = visit->who;

	store_conversation_hash(engine->store, who->owner, who->conversation, visit->place);
	visit->turn.owner = who->owner;
	visit->turn.token_id = who->token_id ? who->token_id : "";
	visit->turn.place = visit->place;
	pthread_mutex_lock(&engine->lock);
	int result = job_turn_enter(&visit->turn, err);

	pthread_mutex_unlock(&engine->lock);
	return result;
}

int job_visit_wait(struct job_visit *visit, int code, struct err *err)
{
	struct job_turn *turn = &visit->turn;

	sem_init(&visit->over, 0, 0);
	turn->work_item.code = code;
	job_post(&turn->work_item);
	while (sem_wait(&visit->over) < 0 && errno == EINTR)
		;
	sem_destroy(&visit->over);
	if (turn->error.code == ERR_NONE)
		return 0;
	if (err)
		*err = turn->error;
	return -(int)turn->error.code;
}
