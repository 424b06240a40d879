/*
 * page_replay.c - see pages.h.
 *
 * It goes through the jailer with a connection of its own and behind everybody else's runs (jail_client_background),
 * one at a time, so that a person with a browser never holds up clients. Compared are verdict, exit code, signal, both
 * streams byte by byte, and the files that the run left, by their sums. What needs more than the record (secrets, calls
 * of tools) or normalisers is left to `sallyport replay`.
 */
#include "pages.h"

#include <pthread.h>
#include <string.h>

#include "jail/client/jail.h"
#include "lib/base/diff.h"
#include "lib/base/util.h"
#include "lib/job/job.h"
#include "lib/store/record/store_tool.h"

#define STREAM_BYTES (1 << 20) /* of each stream that are compared */
#define DIFF_BYTES   (256 * 1024)

struct replay {
	struct admin_page *page;
	const struct store_execution *run;
	int differences;
};

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

int page_replay_possible(struct admin_page *page, const struct store_execution *run, struct err *err)
{
	struct store_tools tools = {0};
	int result = run->state == STORE_RUNNING ? err_set(err, ERR_CONFLICT, "This run is in progress")
						 : store_execution_whole(run, err);

	if (result == 0)
		result = store_tools_load(page->exchange->server->store, run->id, &tools, err);
	if (result == 0 && tools.n_servers > 0)
		result = err_set(err, ERR_CONFLICT,
				 "This run could call tools of other servers: "
				 "on the host, sallyport replay answers the calls from the record");
	store_tools_clear(&tools);
	return result;
}

/* -------- comparison ---------------------------------------------------------------------------------- */

static void put_row(struct replay *replay, const char *what, const char *then, const char *now)
{
	const bool same = streq(then, now);

	replay->differences += !same;
	html_put(&replay->page->html, "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td></tr>\n",
		 html_text(what), html_text(then), html_text(now), html_text(same ? "the same" : "differs"));
}

static void put_number(struct replay *replay, const char *what, int64_t then, int64_t now)
{
	auto_free char *was = xasprintf("%lld", (long long)then), *is = xasprintf("%lld", (long long)now);

	put_row(replay, what, was, is);
}

struct stream {
	const char *name;
	char *then, *now;
	size_t then_length, now_length;
};

static void stream_clear(struct stream *stream)
{
	free(stream->then);
	free(stream->now);
}
#define auto_stream __attribute__((cleanup(stream_clear)))

static int read_now(int result, int fd, struct stream *ret, struct err *err)
{
	if (result == 0)
		result = read_fd(fd, STREAM_BYTES, &ret->now, &ret->now_length, err);
	return result < 0 ? err_wrap(err, "%s", ret->name) : 0;
}

static void put_stream_row(struct replay *replay, const struct stream *stream)
{
	const bool same =
		stream->then_length == stream->now_length && memcmp(stream->then, stream->now, stream->now_length) == 0;

	replay->differences += !same;
	html_put(&replay->page->html, "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td></tr>\n",
		 html_text(stream->name), html_size((int64_t)stream->then_length),
		 html_size((int64_t)stream->now_length), html_text(same ? "the same" : "differs"));
}

static void put_stream_diff(struct replay *replay, const struct stream *stream)
{
	auto_buf struct buf diff = {0};

	buf_init(&diff, DIFF_BYTES);
	diff_unified(stream->then, stream->then_length, stream->now, stream->now_length, DIFF_LINES, &diff);
	if (diff.length == 0)
		return;
	html_put(&replay->page->html, "<section><h2>{}</h2>\n<pre dir=\"ltr\" tabindex=\"0\"><code>",
		 html_text(stream->name));
	page_run_files_diff(&replay->page->html, diff.data);
	html_put(&replay->page->html, "</code></pre></section>\n");
}

struct files {
	struct replay *replay;
	const struct job_replay *now;
	bool *seen; /* by index into now->changes */
};

static void put_file(struct files *files, const char *name, size_t length, const char *then, const char *now)
{
	if (streq(then, now))
		return;
	files->replay->differences++;
	html_put(&files->replay->page->html,
		 "<tr><th scope=\"row\">File {}</th><td>{}</td><td>{}</td><td>differs</td></tr>\n",
		 html_bytes(name, length), html_text(then), html_text(now));
}

static char *file_text(const char *change, const char *sha256)
{
	return *sha256 ? xasprintf("%s, %.12s…", change, sha256) : xstrdup(change);
}

static int compare_file(void *arg, const struct store_execution_file *recorded)
{
	struct files *files = arg;
	const struct store_file *file = &recorded->file;
	auto_free char *then = file_text(recorded->change, file->blob), *now = NULL;

	for (size_t i = 0; now == NULL && i < files->now->n_changes; i++) {
		const struct job_change *change = &files->now->changes[i];

		if (files->seen[i] || change->file.name_length != file->name_length ||
		    memcmp(change->file.name, file->name, file->name_length) != 0)
			continue;
		files->seen[i] = true;
		now = file_text(job_change_text(change->kind), change->file.blob);
	}
	put_file(files, file->name, file->name_length, then, now != NULL ? now : "not there");
	return 0;
}

static int compare(void *arg, const struct store_execution *execution, const struct job_replay *now, struct err *err)
{
	struct replay *replay = arg;
	struct html *html = &replay->page->html;
	auto_stream struct stream out = {.name = "Standard output"}, errors = {.name = "Standard error"};
	auto_free bool *seen = xcalloc(now->n_changes + 1, sizeof(*seen));
	struct files files = {replay, now, seen};

	if (!streq(execution->id, replay->run->id)) /* an earlier one of its sandbox */
		return 0;
	struct store *store = replay->page->exchange->server->store;
	int result = job_replay_stdout(store, execution, &out.then, &out.then_length, err);

	result = read_now(result, now->stdout_fd, &out, err);
	if (result == 0)
		result = store_text_read(store, &execution->stderr_text, &errors.then, &errors.then_length, err);
	result = read_now(result, now->stderr_fd, &errors, err);
	if (result < 0)
		return result;
	html_put(html,
		 "<table><caption>Recorded, and just now</caption><thead><tr><th scope=\"col\">What</th>"
		 "<th scope=\"col\">Recorded</th><th scope=\"col\">Now</th><th scope=\"col\">Comparison</th>"
		 "</tr></thead><tbody>\n");
	put_row(replay, "Verdict", execution->verdict, jail_verdict_text(now->jail.verdict));
	put_number(replay, "Exit code", execution->exit_code, now->jail.exit_code);
	put_number(replay, "Signal", execution->signal, now->jail.signal);
	put_stream_row(replay, &out);
	put_stream_row(replay, &errors);
	result = store_execution_files(replay->page->exchange->server->store, replay->run->id, STORE_AFTER,
				       compare_file, &files, err);
	for (size_t i = 0; result == 0 && i < now->n_changes; i++) {
		const struct job_change *change = &now->changes[i];
		auto_free char *is = file_text(job_change_text(change->kind), change->file.blob);

		if (!seen[i])
			put_file(&files, change->file.name, change->file.name_length, "not there", is);
	}
	html_put(html, "</tbody></table>\n<p class=\"message\" role=\"status\">{}</p>\n",
		 html_text(replay->differences == 0 ? "It came out as recorded." : "It came out otherwise."));
	put_stream_diff(replay, &out);
	put_stream_diff(replay, &errors);
	return result;
}

int page_replay(struct admin_page *page, const struct store_execution *run, struct err *err)
{
	struct server *server = page->exchange->server;
	struct replay replay = {.page = page, .run = run};
	struct jail_client *client = NULL;

	if (pthread_mutex_trylock(&one_at_a_time) != 0)
		return err_set(err, ERR_BUSY, "Another run is being replayed: try again in a moment");
	admin_page_title(page, "Replay of %s", STORE_ID_SHORT(run->id));
	html_put(&page->html,
		 "<h1>Replay</h1>\n<p>Run <a class=\"id\" href=\"/admin/run/{}\">{}</a> once more, on its "
		 "recorded inputs. Nothing of it is kept.</p>\n",
		 html_part(run->id), html_text(run->id));
	int result = jail_client_dial(server->config, &client, 1, err);

	if (result == 0) {
		const struct job_replay_from from = {
			.store = server->store, .client = client, .deterministic = run->deterministic};

		jail_client_background(client);
		result = job_replay(&from, run, compare, &replay, err);
	}
	jail_client_free(client);
	pthread_mutex_unlock(&one_at_a_time);
	return result;
}
