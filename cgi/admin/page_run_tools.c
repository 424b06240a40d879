/*
 * page_run_tools.c - see pages.h.
 *
 * Each call is a bar from when it was asked to when it was answered: what waited for a place or for a person's answer
 * is lighter. The figures are in the table, which is what screen readers get.
 */
#include "pages.h"

#include <string.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/store/record/store_tool.h"

#define WIDTH     600
#define SHOWN     400 /* bytes of arguments and results */
#define CALLS_MAX 200

struct scale {
	int64_t from_us, us;
};

static int64_t place(const struct scale *scale, int64_t us)
{
	return MIN(MAX(us - scale->from_us, 0), scale->us) * WIDTH / scale->us;
}

static void put_call(struct html *html, const struct scale *scale, const struct store_tool_call *call)
{
	const char *outcome = !streq(call->state, "done") ? call->kind : call->is_error ? "tool error" : "done";
	const int64_t from = place(scale, call->queued_us), to = place(scale, call->finished_us),
		      middle = place(scale, call->started_us ? call->started_us : call->finished_us);

	html_put(html, "<tr><td class=\"n\">{}</td><td class=\"name\"><strong>{}</strong> {}", html_plain(call->seq),
		 html_text(call->server), html_text(call->tool));
	if (call->decision)
		html_put(html, " <small>{} {}</small>", html_text(call->decision), html_text(call->decided_by));
	html_put(html, "</td><td>{}</td><td class=\"n\">{}</td><td class=\"bar wide\">", html_text(outcome),
		 html_duration(call->finished_us - call->queued_us));
	html_put(html,
		 "<svg class=\"span\" viewBox=\"0 0 600 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
		 "<rect class=\"waits\" x=\"{}\" width=\"{}\" height=\"10\"/>"
		 "<rect class=\"{}\" x=\"{}\" width=\"{}\" height=\"10\"/></svg>",
		 html_plain(from), html_plain(MAX(middle - from, 0)),
		 html_text(streq(outcome, "done") ? "used" : "full"), html_plain(middle),
		 html_plain(MAX(to - middle, 2)));
	html_put(html,
		 "</td></tr>\n<tr class=\"detail\"><td></td><td colspan=\"4\">"
		 "<details><summary>arguments and result</summary>"
		 "<pre tabindex=\"0\"><code>{}\n{}</code></pre></details></td></tr>\n",
		 html_lines(call->arguments, utf8_cut(call->arguments, strlen(call->arguments), SHOWN)),
		 html_lines(call->result, utf8_cut(call->result, call->result_length, SHOWN)));
}

int page_run_tools(struct admin_page *page, const struct store_execution *run, struct err *err)
{
	struct html *html = &page->html;
	struct store_tools tools = {0};
	int result = store_tools_load(page->exchange->server->store, run->id, &tools, err);

	if (result < 0 || tools.n_servers == 0) {
		store_tools_clear(&tools);
		return result;
	}
	struct scale scale = {.from_us = INT64_MAX};
	int64_t end = 0;

	for (size_t i = 0; i < tools.n_calls; i++) {
		scale.from_us = MIN(scale.from_us, tools.calls[i].queued_us);
		end = MAX(end, tools.calls[i].finished_us);
	}
	scale.us = MAX(end - scale.from_us, 1);
	html_put(html, "<section><h2>Calls of tools <small>{}</small></h2>\n",
		 html_number(MAX(tools.asked, (int64_t)tools.n_calls)));
	if (tools.n_calls) {
		auto_free char *columns =
			xasprintf("#=n|Tool|Outcome|Time=n|From %s on=wide", html_date(scale.from_us).room);

		admin_page_table(page, "calls", columns);
	}
	for (size_t i = 0; i < MIN(tools.n_calls, (size_t)CALLS_MAX); i++)
		put_call(html, &scale, &tools.calls[i]);
	admin_page_table_end(page, (int64_t)tools.n_calls, "It called nothing.");
	html_put(html, "</section>\n");
	store_tools_clear(&tools);
	return 0;
}
