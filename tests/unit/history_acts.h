/*
 * history_acts.h - what clients, operators and time do to a record: one function an act; see history.h.
 *
 * Programs do not run here: the rows of a run are written by the functions that a job writes them by. All else goes
 * through the job engine, the store, or the program.
 */
#pragma once

#include "history.h"

#include "lib/job/job_edit.h"
#include "lib/store/record/store_baseline.h"
#include "lib/store/record/store_drain.h"
#include "lib/store/record/store_running.h"
#include "lib/store/record/store_sandbox.h"
#include "lib/store/record/store_snippet.h"
#include "lib/store/record/store_tag.h"
#include "lib/store/record/store_token.h"
#include "lib/store/record/store_tool.h"
#include "lib/store/retention/store_erase.h"
#include "lib/store/retention/store_expire.h"
#include "lib/store/transfer/store_bundle.h"

#define LONG_TEXT (STORE_INLINE_MAX + 100)
#define RUN_CHANGES 3

static const char *const history_owners[] = {"ann", "bob", "cy"};
static const char *const history_talks[] = {"talk", "work", "a b"};
static const char *const history_names[] = {"a.txt", "b", "dir/c", "dir/d.csv", "r\xc3\xa9sum\xc3\xa9"};
static const char *const history_texts[] = {"", "x", "hello", "1,2\n3,4\n", "\x89PNG\r\n\x1a\n"};

/* "" where the owner has none that is valid; the caller frees. */
static char *pick_token(struct history *h, struct host *host, const char *owner)
{
	auto_free char *select = xasprintf(
		"SELECT id FROM token WHERE owner = '%s' AND revoked_us IS NULL ORDER BY rowid", owner);

	return chance(h, 70) ? pick_row(h, host, select) : xstrdup("");
}

/* One that is over; the caller frees. */
static char *pick_run(struct history *h, struct host *host)
{
	return pick_row(h, host, "SELECT id FROM execution WHERE state <> 'running' ORDER BY rowid");
}

/* -------- clients -------------------------------------------------------------------------------------- */

static void act_token(struct history *h, struct host *host)
{
	struct store_token token = {.scopes = STORE_SCOPE_RUN | (chance(h, 50) ? STORE_SCOPE_FILES : 0)};
	char text[STORE_TOKEN_TEXT];
	struct err err = ERR_INIT;

	snprintf(token.owner, sizeof(token.owner), "%s", ONE_OF(h, history_owners));
	snprintf(token.name, sizeof(token.name), "laptop");
	done(h, store_token_add_scoped(host->f.store, &token, text, &err), &err);
}

static void act_revoke(struct history *h, struct host *host)
{
	auto_free char *id = pick_row(h, host, "SELECT id FROM token ORDER BY rowid");
	struct store_token token;
	struct err err = ERR_INIT;

	if (*id)
		done(h, store_token_revoke(host->f.store, id, &token, &err), &err);
}

static void act_upload(struct history *h, struct host *host)
{
	const char *owner = ONE_OF(h, history_owners);
	auto_free char *token = pick_token(h, host, owner);
	struct job_file files[2];
	struct job_request who = {.owner = owner,
				  .token_id = token,
				  .conversation = ONE_OF(h, history_talks),
				  .files = files,
				  .n_files = 1 + (size_t)pick(h, 2),
				  .paths = true};
	struct job_edited edited;
	struct err err = ERR_INIT;
	const int first = pick(h, ARRAY_SIZE(history_names));

	for (size_t i = 0; i < who.n_files; i++) {
		const char *text = ONE_OF(h, history_texts);

		files[i] = (struct job_file){history_names[((size_t)first + i) % ARRAY_SIZE(history_names)], text,
					     strlen(text)};
	}
	done(h, job_edit_put(host->engine, &who, &edited, &err), &err);
}

static void act_remove(struct history *h, struct host *host)
{
	const char *owner = ONE_OF(h, history_owners);
	auto_free char *token = pick_token(h, host, owner);
	const char *name = chance(h, 30) ? "dir" : ONE_OF(h, history_names);
	const struct bind_text text = {name, strlen(name)};
	const struct job_names names = {&text, 1, "names"};
	const struct job_request who = {.owner = owner, .token_id = token, .conversation = ONE_OF(h, history_talks)};
	struct job_edited edited;
	struct err err = ERR_INIT;

	done(h, job_edit_remove(host->engine, &who, &names, &edited, &err), &err);
}

static void act_restore_files(struct history *h, struct host *host)
{
	auto_free char *run = pick_row(h, host,
				       "SELECT id FROM execution WHERE state <> 'running' AND conversation_name IS "
				       "NOT NULL ORDER BY rowid");
	const struct job_state state = {run, chance(h, 50)};
	struct job_edited edited;
	struct err err = ERR_INIT;

	if (!*run)
		return;
	if (chance(h, 30)) {
		done(h, job_edit_restore_apart(host->f.store, &state, &edited, &err), &err);
		return;
	}
	auto_free char *ask_owner = xasprintf("SELECT owner FROM execution WHERE id = '%s'", run);
	auto_free char *ask_talk = xasprintf("SELECT conversation_name FROM execution WHERE id = '%s'", run);
	auto_free char *owner = host_ask(host, ask_owner), *talk = host_ask(host, ask_talk);
	auto_free char *token = pick_token(h, host, owner);
	const struct job_request who = {.owner = owner, .token_id = token, .conversation = talk};

	done(h, job_edit_restore(host->engine, &who, &state, &edited, &err), &err);
}

/* -------- runs ----------------------------------------------------------------------------------------- */

struct history_run {
	struct store_execution row;
	const char *talk; /* NULL: none */
	struct store_execution_file changes[RUN_CHANGES];
	size_t n_changes, early; /* early: that are recorded before the end */
	struct store_tools tools;
	struct store_sandbox sandbox; /* id NULL: none, or it is there */
	char long_text[LONG_TEXT];
};

static int history_begin(struct store_txn *txn, void *arg, struct err *err)
{
	struct history_run *run = arg;
	struct store_conversation conversation;
	char before[STORE_CAUSE_SIZE];
	int result = run->talk ? store_txn_conversation(txn, run->row.owner, run->talk, &conversation, err) : 0;

	run->row.conversation_row = run->talk && result == 0 ? conversation.row : 0;
	if (result == 0 && run->sandbox.id)
		result = store_txn_sandbox_add(txn, &run->sandbox, before, err);
	return result < 0 ? result : store_txn_execution_begin(txn, &run->row, err);
}

static int history_early(struct store_txn *txn, void *arg, struct err *err)
{
	struct history_run *run = arg;

	return store_txn_execution_files(txn, &run->row, run->changes, run->early, err);
}

static int history_finish(struct store_txn *txn, void *arg, struct err *err)
{
	struct history_run *run = arg;
	int result = store_txn_execution_finish(txn, &run->row, run->changes + run->early, run->n_changes - run->early,
						err);

	return result < 0 ? result : store_txn_tools_add(txn, run->row.id, &run->tools, err);
}

/* A text of any length, in the row or a content. */
static struct store_text some_text(struct history *h, struct host *host, struct history_run *run)
{
	struct store_text text = {0};
	struct err err = ERR_INIT;

	if (chance(h, 20)) {
		memset(run->long_text, 'a' + pick(h, 4), LONG_TEXT);
		text.length = LONG_TEXT;
		must(h, store_blob_put(host->f.store, run->long_text, LONG_TEXT, text.blob, &err), &err);
		return text;
	}
	text.data = unconst(ONE_OF(h, history_texts));
	text.length = strlen(text.data);
	return text;
}

/* What the program did to the files that were there before it, as a jail reports it. */
static void choose_changes(struct history *h, struct host *host, struct history_run *run)
{
	const size_t first = (size_t)pick(h, ARRAY_SIZE(history_names));
	struct err err = ERR_INIT;

	run->n_changes = (size_t)pick(h, RUN_CHANGES + 1);
	for (size_t i = 0; i < run->n_changes; i++) {
		struct store_execution_file *change = &run->changes[i];
		const char *name = history_names[(first + i) % ARRAY_SIZE(history_names)];
		auto_free char *there = xasprintf("SELECT count(*) FROM execution_file WHERE execution = '%s' AND "
						  "phase = 'before' AND name = '%s'",
						  run->row.id, name);
		const bool is = ask_number(host, there) > 0;
		const char *text = ONE_OF(h, history_texts);

		*change = (struct store_execution_file){
			.phase = STORE_AFTER, .file = {.name = name, .name_length = strlen(name), .mode = 0600}};
		snprintf(change->change, sizeof(change->change), "%s",
			 chance(h, 20) ? (is ? "deleted" : "lost") : (is ? "changed" : "created"));
		if (streq(change->change, "lost"))
			snprintf(change->reason, sizeof(change->reason), "a link");
		if (streq(change->change, "lost") || streq(change->change, "deleted"))
			continue;
		change->file.size = (int64_t)strlen(text);
		change->file.mtime_us = 1000000 * (1 + pick(h, 3));
		must(h, store_blob_put(host->f.store, text, strlen(text), change->file.blob, &err), &err);
		store_media_type(name, strlen(name), (const unsigned char *)text, strlen(text),
				 change->file.media_type);
	}
	run->early = run->n_changes > 1 && chance(h, 30) ? 1 : 0;
}

/* In a live sandbox that is there, or in a new one. */
static void choose_sandbox(struct history *h, struct host *host, struct history_run *run)
{
	auto_free char *select = xasprintf("SELECT id FROM sandbox WHERE owner = '%s' AND conversation_name = '%s' AND "
					   "ended_us IS NULL ORDER BY rowid",
					   run->row.owner, run->talk);
	auto_free char *id = pick_row(h, host, select);
	auto_free char *next =
		xasprintf("SELECT coalesce(max(sandbox_seq), 0) + 1 FROM execution WHERE sandbox = '%s'", id);

	if (*id) {
		snprintf(run->row.sandbox_id, sizeof(run->row.sandbox_id), "%s", id);
		run->row.sandbox_seq = ask_number(host, next);
		return;
	}
	id_new(run->row.sandbox_id);
	run->row.sandbox_seq = 1;
	run->sandbox = (struct store_sandbox){run->row.sandbox_id, run->row.owner, run->talk, "python"};
}

static void choose_call(struct history *h, struct host *host, struct history_run *run, struct store_tool_call *call)
{
	struct err err = ERR_INIT;

	*call = (struct store_tool_call){.seq = 1,
					 .connection = 1,
					 .server = unconst("files"),
					 .tool = unconst("read"),
					 .arguments = unconst("{\"a\":1}"),
					 .decision = unconst("allow"),
					 .rule = unconst("*"),
					 .state = "done",
					 .kind = "result",
					 .result = unconst("{}"),
					 .result_length = 2,
					 .attempts = 1};
	run->tools = (struct store_tools){.calls = call, .n_calls = 1, .asked = 1};
	if (chance(h, 30)) {
		memset(run->long_text, ' ', LONG_TEXT);
		memcpy(run->long_text, "{}", 2);
		must(h, store_blob_put(host->f.store, run->long_text, LONG_TEXT, call->result_blob, &err), &err);
		call->result = unconst("");
		call->result_length = LONG_TEXT;
	}
}

static void act_run(struct history *h, struct host *host)
{
	static const char *const verdicts_of_runs[] = {"OK", "OK", "RE", "TO", "ML"};
	struct history_run run = {.row = sample(ONE_OF(h, history_owners))};
	auto_free char *token = pick_token(h, host, run.row.owner);
	struct store_tool_call call;
	struct err err = ERR_INIT;

	run.talk = chance(h, 85) ? ONE_OF(h, history_talks) : NULL;
	snprintf(run.row.token_id, sizeof(run.row.token_id), "%s", token);
	run.row.stdin_text = some_text(h, host, &run);
	if (run.talk && chance(h, 15))
		choose_sandbox(h, host, &run);
	if (!done(h, store_commit(host->f.store, history_begin, &run, &err), &err))
		return;
	if (chance(h, 5)) /* the process ends before the run does */
		return;
	choose_changes(h, host, &run);
	run.row.stdout_text = some_text(h, host, &run);
	run.row.stderr_text = some_text(h, host, &run);
	run.row.stdout_truncated = chance(h, 10);
	snprintf(run.row.verdict, sizeof(run.row.verdict), "%s", ONE_OF(h, verdicts_of_runs));
	if (chance(h, 10))
		run.row.fingerprint[0] = '3';
	if (chance(h, 20))
		choose_call(h, host, &run, &call);
	if (run.early && !done(h, store_commit(host->f.store, history_early, &run, &err), &err))
		return;
	done(h, store_commit(host->f.store, history_finish, &run, &err), &err);
}

static void act_bless(struct history *h, struct host *host)
{
	auto_free char *id = pick_row(h, host,
				      "SELECT id FROM execution WHERE state = 'finished' AND erased IS NULL ORDER BY "
				      "rowid");
	struct store_execution outcome = sample("ann");
	const struct store_blessing blessing = {.outcome = &outcome, .author = "op", .reason = "as wanted"};
	int64_t generation;
	struct err err = ERR_INIT;

	if (!*id)
		return;
	snprintf(outcome.id, sizeof(outcome.id), "%s", id);
	outcome.created_us = outcome.finished_us = clock_now_us();
	done(h, store_baseline_add(host->f.store, &blessing, &generation, &err), &err);
}

static void act_tag(struct history *h, struct host *host)
{
	auto_free char *id = pick_run(h, host);
	char ids[1][ID_SIZE];
	const struct store_tagging tagging = {
		.tag = chance(h, 50) ? "good" : "bad", .ids = ids, .count = 1, .remove = chance(h, 30)};
	int64_t changed;
	struct err err = ERR_INIT;

	if (!*id)
		return;
	snprintf(ids[0], sizeof(ids[0]), "%s", id);
	done(h, store_tag_put(host->f.store, &tagging, &changed, &err), &err);
}

static void act_snippet(struct history *h, struct host *host)
{
	struct store_snippet snippet = {.name = "plot",
					.language = "python",
					.description = unconst("draws"),
					.code = unconst(ONE_OF(h, history_texts)),
					.schema = unconst("{}"),
					.servers = unconst("[]")};
	int64_t version;
	struct err err = ERR_INIT;

	snprintf(snippet.owner, sizeof(snippet.owner), "%s", ONE_OF(h, history_owners));
	done(h, store_snippet_save(host->f.store, &snippet, &version, &err), &err);
}

/* -------- what goes ------------------------------------------------------------------------------------ */

static void act_forget(struct history *h, struct host *host)
{
	auto_free char *run = pick_run(h, host);
	struct store_erase erase = {.what = chance(h, 40) ? STORE_ERASE_OUTPUT : STORE_ERASE_CONTENT,
				    .before_us = INT64_MAX,
				    .why = "request",
				    .ticket = chance(h, 50) ? "no 7" : NULL};
	struct store_erased erased = {0};
	struct err err = ERR_INIT;
	const int which = pick(h, 10);

	if (which < 6) {
		erase.id = run;
	} else if (which < 8) {
		erase.owner = ONE_OF(h, history_owners);
		erase.conversation = ONE_OF(h, history_talks);
	} else {
		erase.owner = chance(h, 50) ? ONE_OF(h, history_owners) : NULL;
		if (chance(h, 80))
			erase.before_us = ask_number(host, "SELECT avg(created_us) FROM execution");
	}
	if (which < 6 && !*run)
		return;
	history_say(h, " %s %s of %s", erase.what == STORE_ERASE_OUTPUT ? "output" : "content",
		    which < 6 ? "a run" : (which < 8 ? "a conversation" : "many"), erase.owner ? erase.owner : "");
	done(h, store_forget(host->f.store, &erase, &erased, &err), &err);
}

/* Rules of retention, for one sweep. */
static void act_retain(struct history *h, struct host *host)
{
	const struct store_retention rules = {.execution_ttl_us = chance(h, 30) ? 3600 * 1000000ll : 0,
					      .output_ttl_us = chance(h, 50) ? 60 * 1000000ll : 0,
					      .conversation_ttl_us = chance(h, 30) ? 1 : 0,
					      .owner_bytes = chance(h, 30) ? 20000 : 0,
					      .oldest = true};
	struct err err = ERR_INIT;

	store_set_retention(host->f.store, &rules);
	must(h, store_expire(host->f.store, clock_now_us() + pick(h, 3) * 3600 * 1000000ll, NULL, NULL, &err), &err);
	store_set_retention(host->f.store, &(struct store_retention){0});
}

/* A day later nobody wants contents any more that nothing names. */
static void act_gc(struct history *h, struct host *host)
{
	const struct store_gc gc = {.now_us = clock_now_us() + 24 * 3600 * 1000000ll, .vacuum = chance(h, 50)};
	struct store_collected collected;
	struct err err = ERR_INIT;

	done(h, store_gc(host->f.store, &gc, &collected, &err), &err);
}

static void act_restart(struct history *h, struct host *host)
{
	host_close(host);
	host_open(h, host);
}

/* -------- from host to host ---------------------------------------------------------------------------- */

static struct host *pick_host(struct history *h)
{
	return &h->hosts[pick(h, HOSTS)];
}

static void act_export(struct history *h, struct host *host)
{
	auto_free char *bundle = xasprintf("%s/bundle", h->base), *run = pick_run(h, host);
	const int which = pick(h, 3);
	bool made;

	if (which == 0)
		made = cli_done(
			h, CLI(h, host, "export", "--output", bundle, "--all", chance(h, 50) ? "--with-env" : NULL), 0);
	else if (which == 1)
		made = cli_done(h, CLI(h, host, "export", "--output", bundle, "--owner", ONE_OF(h, history_owners)), 0);
	else /* one whose content was erased is refused */
		made = *run && cli_done(h, CLI(h, host, "export", "--output", bundle, run), 3);
	if (!made)
		return;
	holds(h, bundle, NULL);
	cli_done(h, CLI(h, pick_host(h), "import", bundle), 0); /* a host that was never started, too */
	remove_file(h, bundle);
}

/* All of an owner to the other host; who has conversations there already is refused. */
static void act_move(struct history *h, struct host *host)
{
	struct host *to = &h->hosts[(host->number + 1) % HOSTS];
	const char *owner = ONE_OF(h, history_owners);
	const struct store_drain drain = {.owner = owner, .reason = "moves"};
	auto_free char *bundle = xasprintf("%s/bundle", h->base);
	struct err err = ERR_INIT;

	must(h, store_drain_begin(host->f.store, &drain, &err), &err);
	if (cli_done(h, CLI(h, host, "export", "--owner", owner, "--move", "--output", bundle), 5)) {
		holds(h, bundle, NULL);
		if (cli_done(h, CLI(h, to, "import", "--move", bundle), 5)) {
			host_holds(h, to);
			done(h, store_bundle_owner_leave(host->f.store, owner, &err), &err);
		}
		remove_file(h, bundle);
	}
	if (chance(h, 80))
		must(h, store_drain_end(host->f.store, owner, &err), &err);
}

/* A backup, life that goes on, and the backup in the place of what was there. */
static void act_back(struct history *h, struct host *host)
{
	auto_free char *saved = xasprintf("%s/saved-%d", h->base, h->folders), *lost = xstrdup(host->f.data);

	cli_done(h, CLI(h, host, "backup", "--key", saved), 0);
	holds(h, saved, host->signer);
	if (chance(h, 30)) {
		h->play_some(h, host, 3);
		cli_done(h, CLI(h, host, "backup", chance(h, 50) ? "--full" : "--key", saved), 0);
		holds(h, saved, host->signer);
	}
	h->play_some(h, host, 3);
	host_close(host);
	host_name(h, host);
	if (chance(h, 50))
		cli_done(h, CLI(h, host, "restore", saved), 0);
	else
		cli_done(h, CLI(h, host, "restore", "--erasures", lost, saved), 0);
	host_holds(h, host);
	host_open(h, host);
}

static void act_sign(struct history *h, struct host *host)
{
	host_sign(h, host);
}
