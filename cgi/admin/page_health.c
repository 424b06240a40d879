/* page_health.c - what /readyz asks, sizes of what is stored, and the findings of `sallyport doctor`. */
#include <string.h>
#include <sys/stat.h>

#include "cgi/http/monitor.h"
#include "lib/base/json.h"
#include "lib/base/util.h"
#include "lib/base/version.h"
#include "lib/store/record/store_space.h"
#include "pages.h"

#define DOCTOR_MS  15000
#define ANSWER_MAX (256 * 1024)

static void put_check(void *arg, const char *name, const struct err *err)
{
	struct admin_page *page = arg;
	const bool good = err->code == ERR_NONE;

	html_put(&page->html,
		 "<tr><th scope=\"row\">{}</th><td><span class=\"badge {}\">{}</span></td><td>{}</td></tr>\n",
		 html_text(name), html_text(good ? "good" : "bad"), html_text(good ? "ok" : "failed"),
		 html_text(good ? "" : err->text));
}

static void put_sizes(struct admin_page *page)
{
	const char *folder = page->exchange->server->config->data_dir;
	static const char *const files[][2] = {{"Database", "sallyport.db"}, {"Its log", "sallyport.db-wal"}};
	struct store_free space;

	html_put(&page->html, "<dl class=\"figures\">\n");
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		auto_free char *path = xasprintf("%s/%s", folder, files[i][1]);
		struct stat status;

		if (stat(path, &status) == 0)
			admin_page_figure(
				page, &(struct admin_figure){.name = files[i][0], .value = html_size(status.st_size)});
	}
	if (store_free_space(folder, &space, NULL) == 0)
		admin_page_figure(page, &(struct admin_figure){.name = "Disk free", .value = html_size(space.bytes)});
	admin_page_figure(page, &(struct admin_figure){.name = "Version", .value = html_text(SALLYPORT_VERSION)});
	html_put(&page->html, "</dl>\n");
}

static void put_doctor(struct admin_page *page)
{
	auto_buf struct buf answer = {0};
	auto_json struct json_object *document = NULL;
	struct err err = ERR_INIT;

	buf_init(&answer, ANSWER_MAX);
	html_put(&page->html, "<section><h2>Doctor <small>as the account of the gateway sees the host</small></h2>\n");
	static const char *const arguments[] = {"doctor", "--json", NULL};
	int result = admin_page_command(page, arguments, DOCTOR_MS, &answer, &err);

	if (result == 0)
		result = json_parse(answer.data, answer.length, &document, &err);
	struct json_object *checks = result == 0 && document ? json_get(document, "checks", json_type_array) : NULL;

	if (!checks) {
		html_put(&page->html, "<p class=\"error\">sallyport doctor gave no answer: {}</p>\n</section>\n",
			 html_text(err.text));
		return;
	}
	admin_page_table(page, "", "Check|State|Found");
	for (size_t i = 0; i < json_object_array_length(checks); i++) {
		struct json_object *one = json_object_array_get_idx(checks, i);
		const char *state = json_get_string(one, "state"), *remedy = json_get_string(one, "remedy");
		const char *kind = "good";

		if (!state || streq(state, "missing"))
			kind = "bad";
		else if (streq(state, "weaker"))
			kind = "limit";
		html_put(&page->html,
			 "<tr><th scope=\"row\">{}</th><td><span class=\"badge {}\">{}</span></td>"
			 "<td class=\"name\">{}",
			 html_text(json_get_string(one, "name")), html_text(kind), html_text(state),
			 html_text(json_get_string(one, "found")));
		if (remedy)
			html_put(&page->html, "<br><small>{}</small>", html_text(remedy));
		html_put(&page->html, "</td></tr>\n");
	}
	html_put(&page->html, "</tbody></table>\n</section>\n");
}

int page_health(struct admin_page *page, const char *rest, struct err *err)
{
	if (*rest && !streq(rest, "doctor"))
		return err_set(err, ERR_NOT_FOUND, "There is no such page");
	html_put(&page->html, "<h1>Health</h1>\n");
	put_sizes(page);
	html_put(&page->html, "<section><h2>Ready?</h2>\n<table class=\"use\"><tbody>\n");
	monitor_checks(page->exchange->server, put_check, page);
	html_put(&page->html, "</tbody></table></section>\n");
	if (*rest)
		put_doctor(page);
	else
		html_put(&page->html, "<p><a class=\"button\" href=\"/admin/health/doctor\">Ask the doctor</a> "
				      "<small>takes some seconds</small></p>\n");
	return 0;
}
