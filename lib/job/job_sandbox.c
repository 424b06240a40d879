/*
 * job_sandbox.c - see job_sandbox.h.
 *
 * A sandbox is made and given to its first run in one step of the reactor (job_sandbox_take), and written into the
 * record by the transaction that writes that run as `running`. The jail's events arrive here and are handed to the run
 * that has the sandbox. When the run is recorded the sandbox is idle (job_sandbox_give) or, if nothing can be expected
 * of it any more, ended. Every ending goes through end(), which closes the jail at once and records the cause without
 * waiting: the next is behind it in the writer's queue. When the process stops, nothing is recorded: a
 * sandbox without an end whose instance is gone went with that.
 *
 * Which files a run must be given: those of its conversation that /data does not hold already; what is the
 * conversation's no more is taken out. Only the record's own view is asked (job_known.h), so a replay comes to the same
 * answer.
 */
#include "job_sandbox.h"

#include <stdio.h>
#include <string.h>

#include "lib/store/audit/store_refused.h"

#define SECOND_US 1000000

/* -------- what the jail reports: to the run that has the sandbox ---------------------------------------- */

static void live_done(void *arg, const struct jail_result *result)
{
	struct job_sandbox *sandbox = arg;

	sandbox->over = sandbox->over || result->ended;
	if (sandbox->job)
		sandbox->events->done(sandbox->job, result);
}

static void live_file(void *arg, const struct jail_change *change)
{
	struct job_sandbox *sandbox = arg;

	if (sandbox->job)
		sandbox->events->file(sandbox->job, change);
	else
		close_pointer(&change->fd);
}

static void live_collected(void *arg)
{
	struct job_sandbox *sandbox = arg;

	if (sandbox->job)
		sandbox->events->collected(sandbox->job);
}

static void live_failed(void *arg, const struct err *err)
{
	struct job_sandbox *sandbox = arg;

	sandbox->over = true;
	sandbox->cause = "lost";
	if (sandbox->job)
		sandbox->events->failed(sandbox->job, err);
}

static const struct jail_events live_events = {
	.done = live_done,
	.file = live_file,
	.collected = live_collected,
	.failed = live_failed,
};

/* -------- begin and end ------------------------------------------------------------------------------- */

static struct job_sandbox *find(const struct job_engine *engine, const char *place, const char *language)
{
	for (struct job_sandbox *sandbox = engine->sandboxes; sandbox; sandbox = sandbox->next)
		if (streq(sandbox->place, place) && streq(sandbox->language, language))
			return sandbox;
	return NULL;
}

static void sandbox_free(struct job_sandbox *sandbox)
{
	struct job_sandbox **link = &sandbox->engine->sandboxes;

	while (*link != sandbox)
		link = &(*link)->next;
	*link = sandbox->next;
	jail_close(sandbox->jail);
	job_known_clear(&sandbox->known);
	job_secrets_clear(&sandbox->secrets);
	free(sandbox);
}

struct ending {
	char id[ID_SIZE];
	const char *cause;
};

static int end_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct ending *ending = arg;

	return store_txn_sandbox_end(txn, ending->id, ending->cause, err);
}

static void end_done(void *arg, int result, const struct err *err)
{
	const struct ending *ending = arg;

	if (result < 0)
		log_event(LOG_ERROR, "the end of a sandbox is not recorded", "id", ending->id, "error", err->text,
			  NULL);
	free(arg);
}

static void end(struct job_sandbox *sandbox, const char *cause)
{
	struct ending *ending = xcalloc(1, sizeof(*ending));

	snprintf(ending->id, sizeof(ending->id), "%s", sandbox->id);
	ending->cause = cause;
	store_commit_async(sandbox->engine->store, end_work, ending, end_done);
	log_event(LOG_INFO, "sandbox ended", "id", sandbox->id, "cause", cause, NULL);
	sandbox_free(sandbox);
}

/* The one of this owner that nobody used for longest; NULL: all of them run. */
static struct job_sandbox *idlest(const struct job_engine *engine, const char *owner)
{
	struct job_sandbox *found = NULL;

	for (struct job_sandbox *sandbox = engine->sandboxes; sandbox; sandbox = sandbox->next)
		if (!sandbox->job && !sandbox->placed && streq(sandbox->owner, owner) &&
		    (!found || sandbox->idle_since_us < found->idle_since_us))
			found = sandbox;
	return found;
}

static int64_t count(const struct job_engine *engine, const char *owner)
{
	int64_t number = 0;

	for (const struct job_sandbox *sandbox = engine->sandboxes; sandbox; sandbox = sandbox->next)
		number += !sandbox->placed && (!owner || streq(sandbox->owner, owner));
	return number;
}

/* May this owner have one more? Where there may be no more, the owner's own idlest gives way. The last jail is never
 * held by a sandbox, so that others can run. */
static int make_room(const struct job *job, struct err *err)
{
	const struct job_engine *engine = job->engine;
	const struct config_limits *limits = &engine->config->limits;
	const char *owner = job->asked.row.owner;
	const int64_t most = MIN(limits->sandboxes, engine->config->jailer.jails - 1);
	int64_t total = count(engine, NULL), own = count(engine, owner);
	struct job_sandbox *idle = idlest(engine, owner);

	if (!json_object_get_boolean(json_get(engine->info, "live", json_type_boolean)))
		return err_set(err, ERR_UNAVAILABLE,
			       "this server keeps no live sandboxes, because its jailer cannot freeze them (sallyport "
			       "doctor): run without "
			       "a session");
	if (job->turn.placed)
		return 0;
	if (idle && most > 0 && (own >= limits->sandboxes_per_owner || total >= most)) {
		end(idle, "idle");
		own--;
		total--;
	}
	if (most <= 0)
		return err_set(err, ERR_UNAVAILABLE,
			       "this server keeps no live sandboxes (limits.sandboxes): run without a session");
	if (own >= limits->sandboxes_per_owner || total >= most)
		store_refused(engine->store, STORE_AUDIT_LIMIT, "sandboxes",
		              &(struct store_refused_who){.owner = owner});
	if (own >= limits->sandboxes_per_owner)
		return err_set(err, ERR_LIMIT,
			       "you already have %lld live sandboxes, the maximum, and all of them run: wait for "
			       "one, or run without a session",
			       (long long)own);
	if (total >= most)
		return err_set(err, ERR_LIMIT,
			       "this server already has %lld live sandboxes, the maximum: try again later, or run "
			       "without a session",
			       (long long)total);
	return 0;
}

static int open_new(struct job *job, struct job_sandbox **ret, struct err *err)
{
	struct job_engine *engine = job->engine;
	const struct jail_spec spec = {
		.runner = job->asked.row.language,
		.limits = job->run.limits,
		.network = job->asked.row.network,
		.label = job->asked.row.id,
		.live = true,
		.fingerprint = true,
	};
	int result = make_room(job, err);

	if (result < 0)
		return result;
	struct job_sandbox *sandbox = xcalloc(1, sizeof(*sandbox));

	sandbox->engine = engine;
	id_new(sandbox->id);
	snprintf(sandbox->owner, sizeof(sandbox->owner), "%s", job->asked.row.owner);
	snprintf(sandbox->place, sizeof(sandbox->place), "%s", job->asked.place);
	snprintf(sandbox->language, sizeof(sandbox->language), "%s", job->asked.row.language);
	sandbox->limits = job->run.limits;
	sandbox->network = job->asked.row.network;
	sandbox->placed = job->turn.placed;
	sandbox->cause = "ended";
	sandbox->next = engine->sandboxes;
	engine->sandboxes = sandbox;
	result = jail_open(engine->client, &spec, &live_events, sandbox, &sandbox->jail, err);
	if (result < 0)
		sandbox_free(sandbox);
	else
		*ret = sandbox;
	return result;
}

#define LEAVE_OUT "leave it out, or end the session (reset_session)"
/* A jail's limits are those that it was opened with; its time is each run's own. */
static int take_limits(struct job *job, const struct job_sandbox *sandbox, struct err *err)
{
	const struct jail_limits *now = &job->run.limits, *then = &sandbox->limits;
	const int64_t wall_us = job->asked.named.wall_us ? now->wall_us : then->wall_us;
	const int64_t cpu_us = job->asked.named.wall_us ? now->cpu_us : then->cpu_us;

#define ASKED_LIMIT(argument, field, member, unit, ...)                                                                \
	if (job->asked.named.field && &now->field != &now->wall_us && now->field != then->field)                       \
		return err_member(err, #argument, "this session was started with %lld; " \
						  "" LEAVE_OUT,                      \
				  (long long)(then->field / LIMIT_##unit));
#include "lib/base/limits.def"
	/* Both ways: another token of the owner's may not have the network. */
	if (job->asked.row.network != sandbox->network)
		return err_member(
			err, "network",
			"this session was started with%s network; use the same value, or end the session "
			"(reset_session)",
			sandbox->network ? "" : "out");
	job->run.limits = *then;
	job->run.limits.wall_us = wall_us;
	job->run.limits.cpu_us = cpu_us;
	return 0;
}

int job_sandbox_take(struct job *job, const struct jail_events *events, struct err *err)
{
	struct job_sandbox *sandbox = find(job->engine, job->asked.place, job->asked.row.language);
	int result;

	if (sandbox && sandbox->over) {
		end(sandbox, sandbox->cause);
		sandbox = NULL;
	}
	result = sandbox ? take_limits(job, sandbox, err) : open_new(job, &sandbox, err);
	if (result < 0)
		return result;
	sandbox->job = job;
	sandbox->events = events;
	job->run.sandbox = sandbox;
	job->run.jail = sandbox->jail;
	snprintf(job->run.sandbox_id, sizeof(job->run.sandbox_id), "%s", sandbox->id);
	job->run.sandbox_seq = sandbox->runs + 1;
	return 0;
}

void job_sandbox_return(struct job *job)
{
	struct job_sandbox *sandbox = steal(&job->run.sandbox);

	sandbox->job = NULL;
	job->run.jail = NULL;
	if (sandbox->runs == 0)
		sandbox_free(sandbox);
}

/* True if the next run must get a fresh sandbox: this run left it in an unknown state. A run cancelled before anything
 * was copied in left it unchanged. */
static bool spent(const struct job *job)
{
	const enum jail_verdict verdict = job->run.result.jail.verdict;

	if (job->run.sandbox->over || verdict == JAIL_XX)
		return true;
	if (job->run.started)
		return false;
	/* A run that was cancelled before anything was copied in left the sandbox as it was. */
	return verdict != JAIL_CX || job->run.inputs_sent > 0;
}

void job_sandbox_give(struct job *job)
{
	bool over = spent(job) || job->turn.error.code != ERR_NONE;
	struct job_sandbox *sandbox = steal(&job->run.sandbox);

	job->run.jail = NULL;
	sandbox->job = NULL;
	sandbox->runs++;
	sandbox->idle_since_us = clock_monotonic_us();
	/* What /data holds now is what was filled in (job_run.c notes that) and what the run left. */
	for (size_t i = 0; i < job->run.result.n_changes; i++) {
		const struct job_change *change = &job->run.result.changes[i];

		if (change->kind == JAIL_FILE_DELETED || change->masked)
			job_known_remove(&sandbox->known, change->file.name);
		else if (change->kind != JAIL_FILE_NOT_KEPT)
			job_known_put(&sandbox->known, &change->file);
	}
	if (over)
		end(sandbox, sandbox->cause);
}

void job_sandbox_note(struct job *job)
{
	static const struct {
		const char *cause, *why;
	} lost[] = {
		{"idle", "it was idle for too long, or gave way to a newer session"},
		{"ended", "the last run ended it"},
		{"lost", "the sandbox failed"},
		{"gone", "the server was started anew"},
	};
	char *note = job->run.result.note;
	const char *before = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(lost); i++)
		if (streq(lost[i].cause, job->run.before))
			before = lost[i].why;
	snprintf(job->run.result.sandbox_id, sizeof(job->run.result.sandbox_id), "%s", job->run.sandbox_id);
	job->run.result.sandbox_seq = job->run.sandbox_seq;
	if (spent(job))
		snprintf(
			note, JOB_NOTE_SIZE,
			"The session ended with this run: its variables and processes are gone. The next call begins a "
			"fresh one; the files that were recorded are there again.");
	else if (before)
		snprintf(note, JOB_NOTE_SIZE,
			 "The session's earlier state was lost (%s): this run began in a fresh one, with the "
			 "conversation's "
			 "files, without variables and processes.",
			 before);
	else if (job->run.sandbox_seq == 1 && !job->asked.keeps_state)
		snprintf(note, JOB_NOTE_SIZE,
			 "A session was started. In %s it keeps files and processes between calls, but not variables.",
			 job->asked.row.language);
}

/* -------- for the reactor ----------------------------------------------------------------------------- */

bool job_sandbox_waits(const struct job *job)
{
	return job->asked.live && find(job->engine, job->asked.place, job->asked.row.language);
}

size_t job_sandboxes_idle(const struct job_engine *engine)
{
	size_t count = 0;

	for (const struct job_sandbox *sandbox = engine->sandboxes; sandbox; sandbox = sandbox->next)
		count += !sandbox->job;
	return count;
}

size_t job_sandboxes_reset(struct job_engine *engine, const char *place, const char *language)
{
	struct job_sandbox *next;
	size_t count = 0;

	for (struct job_sandbox *sandbox = engine->sandboxes; sandbox; sandbox = next) {
		next = sandbox->next;
		if (!streq(sandbox->place, place) || (*language && !streq(sandbox->language, language)))
			continue;
		end(sandbox, sandbox->over ? sandbox->cause : "reset");
		count++;
	}
	return count;
}

int64_t job_sandboxes_deadline(const struct job_engine *engine)
{
	int64_t until = INT64_MAX, patience_us = engine->config->limits.sandbox_idle_seconds * SECOND_US;

	for (const struct job_sandbox *sandbox = engine->sandboxes; sandbox; sandbox = sandbox->next)
		if (!sandbox->job)
			until = MIN(until, sandbox->over ? 0 : sandbox->idle_since_us + patience_us);
	return until;
}

void job_sandboxes_expire(struct job_engine *engine)
{
	int64_t patience_us = engine->config->limits.sandbox_idle_seconds * SECOND_US, now = clock_monotonic_us();
	struct job_sandbox *next;

	for (struct job_sandbox *sandbox = engine->sandboxes; sandbox; sandbox = next) {
		next = sandbox->next;
		if (!sandbox->job && sandbox->over)
			end(sandbox, sandbox->cause);
		else if (!sandbox->job && now >= sandbox->idle_since_us + patience_us)
			end(sandbox, "idle");
	}
}

void job_sandboxes_lost(struct job_engine *engine)
{
	for (struct job_sandbox *sandbox = engine->sandboxes; sandbox; sandbox = sandbox->next) {
		sandbox->over = true;
		sandbox->cause = "lost";
		jail_close(sandbox->jail);
		sandbox->jail = NULL;
	}
}

void job_sandboxes_free(struct job_engine *engine)
{
	while (engine->sandboxes)
		sandbox_free(engine->sandboxes);
}
