/*
 * cell_run_end.c - how a phase of a run ends, and what its owner gets.
 *
 * A phase ends in one of three ways: init reports that the program ended (and that nothing is left of it); init reports
 * that it could not start it; or init dies, because we killed it for a limit or the kernel did for lack of memory. In
 * each case the pipes are drained and the accounts are read, and either the next phase begins or the owner gets the
 * result.
 */
#include <errno.h>

#include "cell_internal.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "verdict.h"

static void close_pipes(struct cell *cell)
{
	struct cell_run *run = &cell->run;

	loop_remove(cell->cells->loop, &run->pipes[0]);
	loop_remove(cell->cells->loop, &run->pipes[1]);
	output_drain(&run->output);
	if (run->output.over && run->stop == STOP_NONE)
		run->stop = STOP_OUTPUT;
}

static void deliver(struct cell *cell)
{
	struct cell_run *run = &cell->run;

	if (cell->net) {
		run->result.network = net_report(cell->net);
		if (!cell->live.on || cell->state == CELL_DEAD)
			net_end(cell->net); /* an interpreter that stays keeps its connections */
	}
	struct jail_result result = run->result;
	struct cell_callbacks callbacks = cell->callbacks;
	void *arg = cell->arg;

	result.stdout_bytes = run->output.written[0];
	result.stderr_bytes = run->output.written[1];
	result.stdout_truncated = run->output.truncated[0];
	result.stderr_truncated = run->output.truncated[1];
	if (run->output.error && result.verdict != JAIL_XX)
		verdict_sandbox(&result, "write the output", run->output.error);
	verdict_mention(&result);
	output_clear(&run->output);
	bool bare = run->step->bare;
	cell_step_free(steal(&run->step));
	cell_happened(cell, CELL_DELIVER);
	cell->has_files = true;
	result.ended = cell->live.on && cell->state == CELL_DEAD;
	log_event(bare ? LOG_DEBUG : LOG_INFO, "run done", "jail", cell->label, "runner", cell->runner->name, "verdict",
		  jail_verdict_text(result.verdict), "message", result.message, NULL);
	run->result.denied = run->result.network = NULL; /* the copy has them */
	if (callbacks.done)
		callbacks.done(arg, &result); /* the cell may be gone after it */
	jail_result_clear(&result);
}

/* The compile step's output is what the client sees when nothing was run. */
static void show_compile_output(struct cell *cell)
{
	struct cell_run *run = &cell->run;
	struct output kept = run->output;

	output_init(&run->output, cell->limits.output_bytes, steal_fd(&run->step->fds[2]),
		    steal_fd(&run->step->fds[3]));
	output_copy(&kept, &run->output);
	output_clear(&kept);
}

/* In a live jail that must end now: when it is dead. */
static void tell(struct cell *cell)
{
	if (!cell->live.on || cell->state == CELL_DEAD || !cell_live_must_end(cell)) {
		deliver(cell);
		return;
	}
	cell_happened(cell, CELL_DECIDE);
	cell_kill(cell);
}

/* A phase is over. In a live jail everything is frozen now, else nothing is left. `report` NULL: init is dead. */
void cell_run_settled(struct cell *cell, const struct init_report *report)
{
	struct cell_run *run = &cell->run;

	close_pipes(cell);
	cell_run_account(cell, report);
	verdict_decide(&run->result, cell, run->stop, report ? &report->status : NULL);
	if (run->phase == PHASE_COMPILE) {
		run->result.compiled = true;
		if (run->result.verdict == JAIL_OK) {
			/* What was built is not the program's to change. */
			output_clear(&run->output);
			cell->live.code_read_only = true;
			if (cell->state == CELL_DEAD)
				cell_run_failed(cell, "freeze the jail", ETIMEDOUT);
			else if (data_make_read_only(cell->code_root))
				cell_run_failed(cell, "make /code read-only", errno);
			else
				cell_run_phase(cell, PHASE_RUN);
			return;
		}
		show_compile_output(cell);
	}
	tell(cell);
}

void cell_run_ended(struct cell *cell, const struct init_report *report)
{
	const bool late = report->ended_us - report->started_us >=
			  cell_run_allowed(cell); /* whether we came to stop it or not */

	if (late && cell->run.stop == STOP_NONE)
		cell->run.stop = STOP_WALL;
	if (cell->live.on)
		cell_live_settle(cell, report);
	else
		cell_run_settled(cell, report);
}

void cell_run_lost(struct cell *cell, enum cell_state before)
{
	if (before == CELL_DECIDED)
		deliver(cell);
	else if (before == CELL_FREEZING)
		cell_live_settled(cell);
	else if (cell->broken.step[0])
		cell_run_failed(cell, cell->broken.step, cell->broken.error);
	else
		cell_run_settled(cell, NULL);
}

void cell_run_failed(struct cell *cell, const char *step, int error)
{
	struct cell_run *run = &cell->run;

	/* Others may be running in there, and write: first it dies. */
	if (cell->live.on && cell->state != CELL_DEAD) {
		cell_break(cell, step, error);
		cell_happened(cell, CELL_FAIL);
		cell_kill(cell);
		return;
	}
	close_pipes(cell);
	if (run->phase == PHASE_COMPILE)
		show_compile_output(cell);
	verdict_sandbox(&run->result, step, error);
	deliver(cell);
}
