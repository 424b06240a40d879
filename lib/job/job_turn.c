/*
 * job_turn.c - see job_turn.h.
 *
 * All turns are in one list, in order of arrival, each also counted in the queue of its conversation. Which of them
 * begins is job_reactor.c's to decide.
 *
 * The list also says where every job is (job_engine_list). Jobs that are over leave a copy of their line in a ring.
 */
#include "job_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/store/audit/store_refused.h"

const char *job_step_text(enum job_step step)
{
	static const char *const texts[JOB_STEPS] = {
		[JOB_RECEIVING] = "receiving", [JOB_WAITING] = "waiting",
		[JOB_READING] = "reading",     [JOB_WRITING] = "writing",
		[JOB_BEGINNING] = "beginning", [JOB_RECALLING] = "recalling",
		[JOB_PREPARING] = "preparing", [JOB_FILLING] = "filling",
		[JOB_RUNNING] = "running",     [JOB_COLLECTING] = "collecting",
		[JOB_STORING] = "storing",     [JOB_RECORDING] = "recording",
		[JOB_OVER] = "over",
	};

	return texts[step];
}

static void returned(struct job_work_item *work_item)
{
	struct job_turn *turn = container_of(work_item, struct job_turn, work_item);

	turn->advance(turn, JOB_RETURNED);
}

void job_turn_init(struct job_turn *turn, struct job_engine *engine, job_turn_advance *advance)
{
	*turn = (struct job_turn){.advance = advance, .work_item = {.engine = engine, .back = returned}};
	turn->work_item.error = &turn->error;
	atomic_init(&turn->cancelled, false);
}

/* -------- entering and leaving; under the engine's lock ----------------------------------------------- */

static struct job_queue *queue_find(struct job_engine *engine, const char *hash)
{
	for (struct job_queue *queue = engine->queues; queue; queue = queue->next)
		if (streq(queue->hash, hash))
			return queue;
	return NULL;
}

static int refuse(const struct job_turn *turn, struct err *err, const char *limit, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
static int refuse(const struct job_turn *turn, struct err *err, const char *limit, const char *format, ...)
{
	char text[ERR_TEXT_SIZE];
	va_list arguments;

	store_refused(turn->work_item.engine->store, STORE_AUDIT_LIMIT, limit,
	              &(struct store_refused_who){.owner = turn->owner});
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return err_set(err, ERR_BUSY, "%s", text);
}

/* Is there room? The three bounds, in the order of who is at fault: this conversation, this token, everybody. */
static int check_bounds(struct job_engine *engine, const struct job_turn *turn, struct err *err)
{
	const struct config_limits *limits = &engine->config->limits;
	const struct job_queue *queue = *turn->place ? queue_find(engine, turn->place) : NULL;
	int64_t in_flight = 0;

	if (engine->stopping)
		return err_set(err, ERR_UNAVAILABLE, "the server is stopping; try again in a moment");
	if (!engine->connected && turn->job && clock_monotonic_us() - engine->away_since_us > JOB_JAILER_WAIT_US)
		return err_set(err, ERR_UNAVAILABLE, JOB_JAILER_AWAY);
	if (queue && queue->count > JOB_CONVERSATION_QUEUE)
		return refuse(turn, err, "conversation",
			      "%d calls are already waiting in this conversation; wait for their results",
			      JOB_CONVERSATION_QUEUE);
	/* Requests under way are bounded before they come here (cgi/http/access.c); this counts tasks, too, which go on
	 * without a request. */
	for (const struct job_turn *other = engine->turns; other; other = other->next)
		in_flight += streq(other->token_id, turn->token_id);
	if (turn->placed)
		return 0;
	if (in_flight >= limits->in_flight)
		return refuse(turn, err, "calls", "%lld calls of this token are already running; wait for one of them",
			      (long long)in_flight);
	if (engine->n_turns >= (size_t)(engine->config->jailer.jails + limits->queue))
		return refuse(turn, err, "queue",
			      "%zu calls are already running or waiting on this server; try again in a moment",
			      engine->n_turns);
	return 0;
}

int job_turn_enter(struct job_turn *turn, struct err *err)
{
	struct job_engine *engine = turn->work_item.engine;
	int result = check_bounds(engine, turn, err);

	if (result < 0)
		return result;
	if (*turn->place && !(turn->queue = queue_find(engine, turn->place))) {
		turn->queue = xcalloc(1, sizeof(*turn->queue));
		snprintf(turn->queue->hash, sizeof(turn->queue->hash), "%s", turn->place);
		turn->queue->next = engine->queues;
		engine->queues = turn->queue;
	}
	if (turn->queue)
		turn->queue->count++;
	turn->step = JOB_RECEIVING;
	turn->since_us = clock_monotonic_us();
	turn->previous = engine->turns_last;
	*(turn->previous ? &turn->previous->next : &engine->turns) = turn;
	engine->turns_last = turn;
	engine->n_turns++;
	return 0;
}

void job_turn_step(struct job_turn *turn, enum job_step step)
{
	struct job_engine *engine = turn->work_item.engine;

	pthread_mutex_lock(&engine->lock);
	turn->step = step;
	turn->since_us = clock_monotonic_us();
	pthread_mutex_unlock(&engine->lock);
}

/* -------- where every job is -------------------------------------------------------------------------- */

static struct job_listing line_of(const struct job_turn *turn)
{
	const struct store_execution *row = &turn->job->asked.row;
	struct job_listing line = {.step = turn->step,
				   .since_us = clock_now_us() - (clock_monotonic_us() - turn->since_us)};

	memcpy(line.id, row->id, sizeof(line.id));
	memcpy(line.owner, row->owner, sizeof(line.owner));
	memcpy(line.conversation, row->conversation, sizeof(line.conversation));
	return line;
}

void job_turn_over(struct job_turn *turn)
{
	struct job_engine *engine = turn->work_item.engine;
	struct job_queue *queue, **link = &engine->queues;

	pthread_mutex_lock(&engine->lock);
	queue = steal(&turn->queue);
	*(turn->previous ? &turn->previous->next : &engine->turns) = turn->next;
	*(turn->next ? &turn->next->previous : &engine->turns_last) = turn->previous;
	turn->next = turn->previous = NULL;
	engine->n_turns--;
	if (queue && queue->holder == turn)
		queue->holder = NULL;
	if (queue && --queue->count == 0) {
		while (*link != queue)
			link = &(*link)->next;
		*link = queue->next;
		free(queue);
	}
	turn->step = JOB_OVER;
	turn->since_us = clock_monotonic_us();
	if (turn->job)
		engine->ended[engine->n_ended++ % JOB_ENDED_LISTED] = line_of(turn);
	pthread_mutex_unlock(&engine->lock);
}

size_t job_engine_list(struct job_engine *engine, struct job_listing **ret)
{
	struct job_listing *lines;
	size_t count = 0;

	pthread_mutex_lock(&engine->lock);
	lines = xcalloc(engine->n_turns + JOB_ENDED_LISTED, sizeof(*lines));
	for (const struct job_turn *turn = engine->turns; turn; turn = turn->next)
		if (turn->job)
			lines[count++] = line_of(turn);
	for (size_t i = engine->n_ended - MIN(engine->n_ended, JOB_ENDED_LISTED); i < engine->n_ended; i++)
		lines[count++] = engine->ended[i % JOB_ENDED_LISTED];
	pthread_mutex_unlock(&engine->lock);
	*ret = lines;
	return count;
}

bool job_turn_active(const struct job_turn *turn)
{
	return turn->step > JOB_WAITING && turn->step < JOB_OVER;
}
