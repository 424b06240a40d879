/*
 * cell_queue.c - the queue of a jail: fill, run and collect in the order that they were asked for. See cell.h.
 *
 * Orders go to init as early as they can. Only fills and the first look at /data need a round trip: a run after a fill
 * waits until init says that the files are in place, because what was there before the program is what changes are
 * measured against.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "cell_internal.h"
#include "lib/base/secret.h"
#include "lib/base/util.h"

void cell_forget_trees(struct cell *cell)
{
	data_clear(&cell->before);
	data_clear(&cell->after);
	free(cell->changes);
	cell->changes = NULL;
}

static void pop(struct cell *cell)
{
	struct cell_step *step = cell->first;

	cell->first = step->next;
	if (!cell->first)
		cell->last = &cell->first;
	cell->n_steps--;
	cell->n_fds -= step->n_fds;
}

static bool advance_fill(struct cell *cell)
{
	struct cell_step *step = cell->first;

	if (cell->state == CELL_DEAD) {
		struct err why = ERR_INIT;

		/* A run that follows reports this; without one the owner is called here. */
		if (step->next) {
			pop(cell);
			cell_step_free(step);
			return true;
		}
		if (cell->broken.step[0]) {
			errno = cell->broken.error;
			err_errno(&why, "the sandbox failed at \"%s\"", cell->broken.step);
		} else {
			err_set(&why, ERR_LIMIT, "the jail has ended: it was stopped by a limit, or ran out of memory");
		}
		cell_fail(cell, &why);
		return false;
	}
	if (cell->state != CELL_BUILDING && cell->state != CELL_READY)
		return false;
	/* What a compile step left: the next phase makes it so again. */
	if (step->order.code && cell->live.code_read_only && data_make_writable(cell->code_root) == 0)
		cell->live.code_read_only = false;
	int result = cell_order(cell, &step->order, step->tail, step->tail_length, step->fds, step->n_fds);
	if (result == -ERR_BUSY)
		loop_change(cell->cells->loop, &cell->control, EPOLLIN | EPOLLOUT);
	if (result < 0)
		return false; /* else: init is dead, its pidfd will tell */
	cell->fills++;
	cell->has_files = true;
	pop(cell);
	cell_step_free(step);
	return true;
}

static void refuse_run(struct cell *cell, struct cell_step *step)
{
	/* What failed once is not tried again in a live jail. */
	bool ended = cell->live.on && !step->cancelled;
	struct jail_result result = {
		.verdict = JAIL_CX, .exit_code = -1, .ended = ended || (cell->live.on && cell->state == CELL_DEAD)};
	struct cell_callbacks callbacks = cell->callbacks;
	void *arg = cell->arg;

	snprintf(result.runner, sizeof(result.runner), "%s", cell->runner->name);
	if (step->cancelled)
		snprintf(result.message, sizeof(result.message), "The run was cancelled before it began.");
	else
		cell_verdict_sandbox(&result, cell->broken.step[0] ? cell->broken.step : "the jail has ended",
				     cell->broken.error);
	cell_step_free(step);
	if (ended)
		cell_kill(cell);
	if (callbacks.done)
		callbacks.done(arg, &result);
}

/* Can the run that is next begin now? */
static bool run_may_begin(const struct cell *cell)
{
	bool quiet = cell->state == CELL_READY && cell->fills == 0;

	/* Without files there is nothing to look at: the order may wait in the socket until init is ready for it. */
	if (!quiet && (cell->has_files || (cell->state != CELL_READY && cell->state != CELL_BUILDING)))
		return false;
	if (!cell_live_may_run(cell))
		return false;                                /* cell_live_tick comes back to it */
	return !cell->fingerprint || !cell->runner->awaited; /* cells_advance, too */
}

/* What changes are measured against, and the page of the network. */
static int prepare_run(struct cell *cell)
{
	/* In a live jail, changes are measured from the first run since the last collection. */
	bool look = cell->has_files && !cell->live.dirty;

	cell->live.dirty = cell->live.on;
	if (look)
		cell_forget_trees(cell);
	if (look && data_walk(cell->data_root, cell->limits.data_bytes, &cell->before, NULL) < 0) {
		cell_break(cell, "look at /data", errno);
		return -1;
	}
	if (cell->net && net_begin(cell->net, NULL) < 0) {
		cell_break(cell, "network page", errno);
		return -1;
	}
	return 0;
}

static bool advance_run(struct cell *cell)
{
	struct cell_step *step = cell->first;

	if (cell->state == CELL_DEAD || step->cancelled) {
		pop(cell);
		refuse_run(cell, step);
		return true;
	}
	if (!run_may_begin(cell))
		return false;
	if (!cell->runner->interpreter) {
		struct err why = ERR_INIT;

		/* Its version became known after the jail was opened. */
		err_set(&why, ERR_UNAVAILABLE, "%s is too old on this server (%s): %s", cell->runner->name,
			cell->runner->fingerprint, cell->runner->install);
		cell_fail(cell, &why);
		return false;
	}
	pop(cell);
	if (prepare_run(cell) < 0)
		refuse_run(cell, step);
	else
		cell_run_begin(cell, step);
	return true;
}

static bool advance_collect(struct cell *cell)
{
	struct cell_step *step = cell->first;
	struct err why = ERR_INIT;

	if (cell->state != CELL_DEAD && (cell->state != CELL_READY || cell->fills))
		return false;
	pop(cell);
	cell_step_free(step);
	data_clear(&cell->after);
	free(cell->changes);
	cell->changes = NULL;
	if (data_walk(cell->data_root, cell->limits.data_bytes, &cell->after, &why) < 0) {
		cell_fail(cell, &why);
		return false;
	}
	bool unchanged = cell->live.on && !cell->live.dirty;
	size_t count = unchanged ? 0 : data_compare(&cell->before, &cell->after, &cell->changes);
	cell->live.dirty = false;
	cell_happened(cell, CELL_COLLECT);
	if (cell->callbacks.collect)
		cell->callbacks.collect(cell->arg, cell->changes, count);
	return false; /* cell_collected continues */
}

void cell_advance(struct cell *cell)
{
	bool more = true;

	while (more && cell->first && cell->state != CELL_DYING) {
		switch (cell->first->kind) {
		case STEP_FILL:
			more = advance_fill(cell);
			break;
		case STEP_RUN:
			more = advance_run(cell);
			break;
		case STEP_COLLECT:
			more = advance_collect(cell);
			break;
		}
	}
}

static struct cell_step *step_new(int kind, size_t n_fds)
{
	struct cell_step *step = xcalloc(1, sizeof(*step));

	step->kind = kind;
	step->n_fds = n_fds;
	for (size_t i = 0; i < INIT_FDS_MAX; i++)
		step->fds[i] = -1;
	return step;
}

static int push(struct cell *cell, struct cell_step *step, struct err *err)
{
	if (cell->n_steps == CELL_STEPS_MAX) {
		cell_step_free(step);
		return err_set(err, ERR_LIMIT, "more than %d steps wait in this jail", CELL_STEPS_MAX);
	}
	*cell->last = step;
	cell->last = &step->next;
	cell->n_steps++;
	cell->n_fds += step->n_fds;
	cell_advance(cell);
	return 0;
}

int cell_queue_fill(struct cell *cell, struct wire_message *message, const struct wire_request *request,
		    struct err *err)
{
	const struct bind_objects *files = &request->files;
	const struct wire_file *meta = files->items;
	struct cell_step *step = step_new(STEP_FILL, files->count);
	struct buf tail;

	buf_init(&tail, INIT_TAIL_MAX);
	step->order.verb = INIT_FILL;
	step->order.code = request->code;
	step->order.n_files = (uint32_t)files->count;
	for (size_t i = 0; i < files->count; i++) {
		step->order.files[i].mode = (uint32_t)meta[i].mode;
		step->order.files[i].mtime_us = meta[i].mtime_us;
		step->fds[i] = wire_take_fd(message, i);
		buf_add(&tail, message->strings[i], strlen(message->strings[i]) + 1);
	}
	step->tail = buf_steal(&tail, &step->tail_length);
	return push(cell, step, err);
}

int cell_queue_remove(struct cell *cell, const struct wire_message *message, struct err *err)
{
	struct cell_step *step = step_new(STEP_FILL, 0);
	struct buf tail;

	buf_init(&tail, INIT_TAIL_MAX);
	step->order.verb = INIT_REMOVE;
	step->order.n_files = (uint32_t)message->n_strings;
	for (size_t i = 0; i < message->n_strings; i++)
		buf_add(&tail, message->strings[i], strlen(message->strings[i]) + 1);
	step->tail = buf_steal(&tail, &step->tail_length);
	return push(cell, step, err);
}

/* Ended by NULL, with their bytes behind the pointers. */
static char **copy_strings(const char *const *strings, size_t n)
{
	size_t bytes = (n + 1) * sizeof(char *);

	for (size_t i = 0; i < n; i++)
		bytes += strlen(strings[i]) + 1;
	char **copy = secret_alloc(bytes), *at = (char *)(copy + n + 1);
	for (size_t i = 0; i < n; i++) {
		copy[i] = at;
		at = stpcpy(at, strings[i]) + 1;
	}
	return copy;
}

int cell_queue_run(struct cell *cell, struct cell_program *program, struct err *err)
{
	struct cell_step *step = step_new(STEP_RUN, 5);

	step->fds[0] = steal_fd(&program->code_fd);
	step->fds[1] = steal_fd(&program->stdin_fd);
	step->fds[2] = steal_fd(&program->stdout_fd);
	step->fds[3] = steal_fd(&program->stderr_fd);
	step->tools = program->tools;
	step->display = program->display;
	step->read_only = program->read_only;
	step->clock_us = program->clock_us;
	step->wall_us = program->wall_us;
	if (program->tools)
		step->fds[4] = steal_fd(&program->tools_fd);
	step->env = copy_strings(program->env, program->n_env);
	step->entry = program->entry ? xstrdup(program->entry) : NULL;
	step->cwd = program->cwd ? xstrdup(program->cwd) : NULL;
	step->bare = program->command != NULL;
	if (program->command) {
		const size_t n = program->command->count;
		auto_free char **strings = xcalloc(n + 1, sizeof(*strings));

		for (size_t i = 0; i < n; i++)
			strings[i] = runner_expand(cell->runner, program->command->items[i], 0);
		step->argv = copy_strings((const char *const *)strings, n);
		for (size_t i = 0; i < n; i++)
			free(strings[i]);
	} else {
		step->argv = copy_strings(program->args, program->n_args);
	}
	return push(cell, step, err);
}

int cell_queue_collect(struct cell *cell, struct err *err)
{
	return push(cell, step_new(STEP_COLLECT, 0), err);
}

void cell_collected(struct cell *cell)
{
	cell_happened(cell, CELL_COLLECTED);
	cell_advance(cell);
}

void cell_cancel(struct cell *cell)
{
	if (cell_has_run(cell)) {
		cell_run_stop(cell, STOP_CANCEL);
		return;
	}
	for (struct cell_step *step = cell->first; step; step = step->next)
		step->cancelled = step->kind == STEP_RUN || step->cancelled;
	cell_advance(cell);
}
