/*
 * page_run.c - one run: what was asked, what came of it, what it used of its limits, its files, what it was refused,
 * what it called, what the audit log says, and how to run it again.
 *
 * The row is read whole, once; each section is a function that writes itself or nothing. A text that is lost (a blob
 * that was altered or is gone) leaves a sentence in its place and the rest of the page. While the run is under way its
 * output comes from the files in which it grows, and the sections marked data-live are read again by the script.
 */
#include <string.h>

#include "jail/client/jail.h"
#include "lib/base/json.h"
#include "lib/base/util.h"
#include "lib/job/job.h"
#include "lib/store/record/store_token.h"
#include "pages.h"

#define LAST_LINE 400 /* bytes of it */
#define ENTRIES    50
#define OUTPUT_MAX (64 * 1024)
#define BAR_WIDTH  160

struct view {
	struct admin_page *page;
	struct html *html;
	struct store *store;
	const struct store_execution *run;
};

/* -------- facts --------------------------------------------------------------------------------------- */

static void put_row(const struct view *view, const char *name, const char *value)
{
	if (value && *value)
		html_put(view->html, "<div><dt>{}</dt><dd class=\"name\">{}</dd></div>\n", html_text(name),
			 html_text(value));
}

static void put_facts(const struct view *view)
{
	const struct store_execution *run = view->run;
	struct html *html = view->html;

	html_put(html, "<dl class=\"facts\">\n<div><dt>Started</dt><dd>");
	admin_page_time(view->page, run->created_us);
	html_put(html, "</dd></div>\n<div><dt>Owner</dt><dd><a href=\"/admin/runs?owner={}\">{}</a></dd></div>\n",
		 html_part(run->owner), html_text(run->owner));
	if (run->conversation[0])
		html_put(html,
			 "<div><dt>Conversation</dt><dd class=\"name\">"
			 "<a href=\"/admin/conversation?owner={}&amp;name={}\">{}</a></dd></div>\n",
			 html_part(run->owner), html_part(run->conversation), html_text(run->conversation));
	put_row(view, "Language", run->fingerprint[0] ? run->fingerprint : run->language);
	struct store_token token = {0};

	if (run->token_id[0] && store_token_find(view->store, run->token_id, &token, NULL) == 0)
		html_put(html,
			 "<div><dt>Token</dt><dd><a href=\"/admin/runs?token={}\">{}</a> <small class=\"id\">{}</small>"
			 "</dd></div>\n",
			 html_part(run->token_id), html_text(token.name[0] ? token.name : "(no name)"),
			 html_text(run->token_id));
	html_put(html, "<div><dt>Same code</dt><dd><a href=\"/admin/runs?same={}\">its runs</a></dd></div>\n",
		 html_part(run->id));
	put_row(view, "Network", run->network ? "yes" : "no");
	put_row(view, "Live sandbox", run->sandbox_id);
	put_row(view, "Task", run->task_id);
	put_row(view, "Request", run->request_id);
	put_row(view, "Address", run->client_address);
	put_row(view, "Client", run->client);
	if (run->secrets)
		html_put(html, "<div><dt>Secrets</dt><dd>{}</dd></div>\n", html_number(run->secrets));
	put_row(view, "Trace", run->trace);
	put_row(view, "Arguments", run->args_json && !streq(run->args_json, "[]") ? run->args_json : NULL);
	html_put(html, "</dl>\n");
}

/* What was used of a limit, as a bar and as figures. */
static void put_use(const struct view *view, const char *name, struct html_value used, struct html_value limit,
		    double share)
{
	html_put(view->html, "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">of {}</td>",
		 html_text(name), used, limit);
	admin_page_bar(view->page, "bar", BAR_WIDTH, (int64_t)(MIN(MAX(share, 0), 1) * BAR_WIDTH), share >= 0.9);
	html_put(view->html, "</tr>\n");
}

static double share_of(int64_t used, int64_t limit)
{
	return limit > 0 ? (double)used / (double)limit : 0;
}

static void put_usage(const struct view *view)
{
	const struct store_usage *use = &view->run->run;
	const int64_t cpu_us = use->cpu_user_us + use->cpu_system_us;
	auto_json struct json_object *document = NULL;
	struct jail_limits limits = {0};

	if (view->run->state == STORE_RUNNING)
		return;
	if (view->run->limits_json &&
	    json_parse(view->run->limits_json, strlen(view->run->limits_json), &document, NULL) == 0)
		bind_recall(jail_limits_table, document, &limits, BIND_PLAIN);
	html_put(view->html, "<section><h2>Limits and use</h2>\n<table class=\"use\"><tbody>\n");
	put_use(view, "Wall time", html_duration(use->wall_us), html_duration(limits.wall_us),
		share_of(use->wall_us, limits.wall_us));
	put_use(view, "CPU time", html_duration(cpu_us), html_duration(limits.cpu_us), share_of(cpu_us, limits.cpu_us));
	put_use(view, "Memory", html_size(use->memory_peak_bytes), html_size(limits.memory_bytes),
		share_of(use->memory_peak_bytes, limits.memory_bytes));
	html_put(view->html, "</tbody></table>\n<p class=\"note\">Set-up {}{}", html_duration(view->run->setup_us),
		 html_text(view->run->warm ? ", in a live sandbox" : ""));
	if (view->run->compile.wall_us)
		html_put(view->html, ", compiled in {}", html_duration(view->run->compile.wall_us));
	html_put(view->html, ".</p></section>\n");
}

/* -------- texts --------------------------------------------------------------------------------------- */

static int put_text(const struct view *view, const char *title, const struct store_text *text, const char *part,
		    struct err *err)
{
	auto_free char *address = xasprintf("run/%s/%s", view->run->id, part);
	auto_free char *data = NULL;
	size_t length = 0;
	int result = store_text_read(view->store, text, &data, &length, err);

	const bool removed = !text->data && !text->blob[0] && view->run->erased[0];

	html_put(view->html, "<section><h2>{} ", html_text(title));
	if (result == 0 && !removed && !length)
		html_put(view->html, "<small>nothing</small></h2>\n");
	else
		html_put(view->html, "<small>{} · <a href=\"/admin/{}\">download</a></small></h2>\n",
			 html_size((int64_t)text->length), html_text(address));
	if (result < 0)
		html_put(view->html, "<p class=\"error\">{}</p>\n", html_text(err->text));
	else if (removed)
		admin_page_empty(view->page, "It was removed.");
	else if (length)
		(streq(part, "code") ? admin_page_code : admin_page_text)(view->page, data, length, address);
	html_put(view->html, "</section>\n");
	/* the rest of the page is worth something */
	return result == -ERR_CORRUPT || result == -ERR_NOT_FOUND ? 0 : result;
}

/* While it runs: the last that it printed. */
static int put_printed(const struct view *view, bool is_stderr, struct err *err)
{
	const struct job_printed which = {
		.id = view->run->id, .is_stderr = is_stderr, .offset = -OUTPUT_MAX, .length = OUTPUT_MAX};
	struct job_stream stream = {0};
	int64_t size = 0;
	int result = job_printed_load(view->store, &which, &stream, &size, err);

	if (result < 0)
		return result == -ERR_NOT_FOUND ? 0 : result;
	html_put(view->html, "<section><h2>{} <small>{} so far</small></h2>\n",
		 html_text(is_stderr ? "Standard error" : "Output"), html_size(size));
	if (stream.length)
		admin_page_text(view->page, stream.data, stream.length, NULL);
	html_put(view->html, "</section>\n");
	free(stream.data);
	return 0;
}

static int put_output(const struct view *view, struct err *err)
{
	const struct store_execution *run = view->run;
	int result = 0;

	html_put(view->html, "<div data-live=\"output\">\n");
	if (run->state == STORE_RUNNING) {
		result = put_printed(view, false, err);
		if (result == 0)
			result = put_printed(view, true, err);
	} else {
		result = put_text(view, "Output", &run->stdout_text, "stdout", err);
		if (result == 0 && run->stderr_text.length)
			result = put_text(view, "Standard error", &run->stderr_text, "stderr", err);
	}
	html_put(view->html, "</div>\n");
	return result;
}

/* -------- what it was refused ------------------------------------------------------------------------- */

static void put_denied_list(const struct view *view, struct json_object *list, const char *what, const char *name)
{
	html_put(view->html, "<p>{}:", html_text(what));
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *one = json_object_array_get_idx(list, i);
		const char *reason = json_get_string(one, "reason");

		html_put(view->html, " <code class=\"denied\">{}{}{}</code>", html_text(json_get_string(one, name)),
			 html_text(reason ? ": " : ""), html_text(reason));
	}
	html_put(view->html, "</p>\n");
}

static void put_denied(const struct view *view)
{
	auto_json struct json_object *result = NULL;
	const char *text = view->run->result_json;

	if (!text || !strstr(text, "\"denied\"") || json_parse(text, strlen(text), &result, NULL) < 0)
		return;
	struct json_object *calls = json_get(result, "denied", json_type_array);
	struct json_object *network = json_get(result, "network", json_type_object);
	struct json_object *hosts = network ? json_get(network, "denied", json_type_array) : NULL;

	if ((!calls || !json_object_array_length(calls)) && (!hosts || !json_object_array_length(hosts)))
		return;
	html_put(view->html, "<section><h2>Refused</h2>\n");
	if (calls && json_object_array_length(calls))
		put_denied_list(view, calls, "System calls", "name");
	if (hosts && json_object_array_length(hosts))
		put_denied_list(view, hosts, "Hosts", "host");
	html_put(view->html, "</section>\n");
}

/* -------- around it ----------------------------------------------------------------------------------- */

static void put_entry(void *arg, const struct store_view_entry *entry)
{
	const struct view *view = arg;

	html_put(view->html, "<tr><td class=\"n\"><a href=\"/admin/audit/{}\">{}</a></td><td>{}</td><td>",
		 html_plain(entry->n), html_plain(entry->n), html_text(entry->kind));
	admin_page_time(view->page, entry->at_us);
	html_put(view->html, "</td></tr>\n");
}

static int put_neighbours(const struct view *view, struct err *err)
{
	struct store_view_next next;
	int result = store_view_neighbours(view->store, view->run->id, &next, err);

	if (result < 0 || (!next.before[0] && !next.after[0]))
		return result;
	html_put(view->html, "<nav class=\"pager\" aria-label=\"Runs of this conversation\">");
	if (next.before[0])
		html_put(view->html, "<a rel=\"prev\" href=\"/admin/run/{}\">Earlier in this conversation</a> ",
			 html_part(next.before));
	if (next.after[0])
		html_put(view->html, "<a rel=\"next\" href=\"/admin/run/{}\">Later</a>", html_part(next.after));
	html_put(view->html, "</nav>\n");
	return 0;
}

/* What a failed program said last, which is the exception or the compiler's error. */
static void put_last_line(const struct view *view)
{
	const struct store_execution *run = view->run;
	const char *text = run->stderr_text.data;
	size_t end = text ? run->stderr_text.length : 0, begin;

	while (end > 0 && strchr(" \t\r\n", text[end - 1]))
		end--;
	for (begin = end; begin > 0 && text[begin - 1] != '\n';)
		begin--;
	if (end > begin && run->state != STORE_RUNNING && !streq(run->verdict, "OK"))
		html_put(view->html, "<p class=\"message\"><code>{}</code></p>\n",
			 html_bytes(text + begin, MIN(end - begin, (size_t)LAST_LINE)));
}

static void put_title(const struct view *view)
{
	const struct store_execution *run = view->run;

	admin_page_title(view->page, "Run %s", STORE_ID_SHORT(run->id));
	html_put(view->html, "<div data-live=\"title\"><h1>");
	admin_page_verdict(view->page, run->verdict);
	html_put(view->html, " Run <span class=\"id\">{}</span></h1>\n", html_text(run->id));
	if (run->state != STORE_RUNNING) {
		html_put(view->html, "<p class=\"message\">{}</p>\n", html_text(run->message));
	} else {
		html_put(view->html, "<p class=\"message\">It has been running for ");
		admin_page_elapsed(view->page, view->page->now_us - run->created_us);
		html_put(view->html, ".</p>\n");
	}
	if (run->erased[0])
		html_put(view->html, "<p class=\"note\">Removed: {} ({}).</p>\n", html_text(run->erased),
			 html_text(run->erased_why));
	put_last_line(view);
	html_put(view->html, "</div>\n");
}

static int put_run(struct view *view, struct err *err)
{
	const struct store_execution *run = view->run;
	auto_free char *object = xasprintf("execution:%s", run->id);
	const struct store_view_log log = {.object = object, .limit = ENTRIES};

	put_title(view);
	html_put(view->html, "<p class=\"acts\" data-live=\"acts\">");
	if (run->state == STORE_RUNNING)
		html_put(view->html, "<a class=\"button\" href=\"/admin/act/cancel/{}\">Cancel</a>",
			 html_part(run->id));
	else if (!streq(run->erased, "content"))
		html_put(view->html, "<a class=\"button\" href=\"/admin/act/replay/{}\">Replay and compare</a>",
			 html_part(run->id));
	html_put(view->html, "</p>\n");
	put_denied(view);
	put_facts(view);
	int result = put_text(view, "Program", &run->code, "code", err);

	if (result == 0 && run->stdin_text.length)
		result = put_text(view, "Standard input", &run->stdin_text, "stdin", err);
	if (result == 0)
		result = put_output(view, err);
	if (result == 0)
		result = page_run_files(view->page, run, err);
	put_usage(view);
	if (result == 0)
		result = page_run_tools(view->page, run, err);
	if (result == 0) {
		html_put(view->html, "<section><h2>Audit log</h2>\n");
		admin_page_table(view->page, "", "Entry=n|Kind|When");
		result = store_view_entries(view->store, &log, put_entry, view, err);
		html_put(view->html, "</tbody></table></section>\n");
	}
	html_put(view->html,
		 "<section><h2>On the host</h2>\n"
		 "<p class=\"note\">The first command runs it again on its recorded inputs and compares the "
		 "results; the others show it and prove its entry.</p>\n"
		 "<pre tabindex=\"0\"><code>sallyport replay {}\nsallyport show {}\n"
		 "sallyport audit prove {}\n</code></pre></section>\n",
		 html_text(run->id), html_text(run->id), html_text(run->id));
	if (run->state != STORE_RUNNING && !streq(run->erased, "content"))
		html_put(view->html,
			 "<section><h2>Remove</h2>\n<p class=\"acts\"><a class=\"button\" "
			 "href=\"/admin/act/forget/{}\">Forget its content</a></p></section>\n",
			 html_part(run->id));
	return result == 0 ? put_neighbours(view, err) : result;
}

int page_run(struct admin_page *page, const char *rest, struct err *err)
{
	struct store *store = page->exchange->server->store;
	struct store_execution run = {0};
	char id[ID_SIZE];

	snprintf(id, sizeof(id), "%s", rest);
	if (!id_valid(id) || (rest[ID_SIZE - 1] != '\0' && rest[ID_SIZE - 1] != '/'))
		return err_set(err, ERR_NOT_FOUND, "There is no such run");
	int result = store_execution_find(store, id, &run, err);

	if (result < 0)
		return result;
	struct view view = {page, &page->html, store, &run};

	admin_page_viewed(page, "execution", run.id, run.owner);
	page->section = "runs";
	if (rest[ID_SIZE - 1] == '/')
		result = page_run_part(page, &run, rest + ID_SIZE, err);
	else
		result = put_run(&view, err);
	store_execution_clear(&run);
	return result;
}
