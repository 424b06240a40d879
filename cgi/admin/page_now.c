/* page_now.c - the first page: is it well, what runs, what ran last. Each figure leads to where it comes from. */
#include <stdlib.h>
#include <string.h>

#include "cgi/http/monitor.h"
#include "lib/base/util.h"
#include "lib/job/job.h"
#include "lib/store/record/store_space.h"
#include "pages.h"

#define HOUR_US   (3600 * INT64_C(1000000))
#define LAST_RUNS 12

struct hour {
	int64_t runs, failed, warm;
};

static void add_count(void *arg, const struct store_view_count *count)
{
	struct hour *hour = arg;

	hour->runs += count->runs;
	hour->warm += count->warm;
	if (count->verdict[0] && !streq(count->verdict, "OK") && !streq(count->verdict, "CX"))
		hour->failed += count->runs;
}

/* Of all clients of the jailer. A parked one is made ahead, and belongs to nobody. */
struct jails {
	int64_t parked, held;
};

static void count_jails(void *arg, const char *state, int64_t count)
{
	struct jails *jails = arg;

	if (streq(state, "parked"))
		jails->parked += count;
	else if (!streq(state, "ending"))
		jails->held += count;
}

static void put_steps(struct admin_page *page, const struct job_listing *jobs, size_t count)
{
	const int64_t jails = page->exchange->server->config->jailer.jails;
	auto_free char *of = xasprintf("of %lld jails", (long long)jails);
	int64_t running = 0, waiting = 0, sandboxes = 0;

	for (size_t i = 0; i < count; i++) {
		waiting += jobs[i].step == JOB_WAITING || jobs[i].step == JOB_RECEIVING;
		running += jobs[i].step > JOB_WAITING && jobs[i].step < JOB_OVER;
	}
	store_view_sandboxes(page->exchange->server->store, &sandboxes, NULL);
	admin_page_figure(page, &(struct admin_figure){"Running", "runs?verdict=running", of, html_number(running),
						       running >= jails});
	admin_page_figure(page, &(struct admin_figure){"Waiting", "", "", html_number(waiting), false});
	admin_page_figure(page, &(struct admin_figure){"Live sandboxes", "", "", html_number(sandboxes), false});
}

struct now {
	struct job_listing *jobs;
	size_t count;
	struct jails jails;
};

static int put_figures(struct admin_page *page, const struct now *now, struct err *err)
{
	struct server *server = page->exchange->server;
	auto_free char *parked = xasprintf("%lld parked", (long long)now->jails.parked);
	struct hour hour = {0};
	struct store_free space;
	double load[1] = {0};
	int result = store_view_verdicts(server->store, page->now_us - HOUR_US, add_count, &hour, err);

	if (result < 0)
		return result;
	html_put(&page->html, "<dl class=\"figures\" data-live=\"figures\">\n");
	put_steps(page, now->jobs, now->count);
	admin_page_figure(page, &(struct admin_figure){"Jails", "", parked, html_number(now->jails.held), false});
	admin_page_figure(page,
			  &(struct admin_figure){"Last hour", "runs?since=1h", "runs", html_number(hour.runs), false});
	admin_page_figure(page, &(struct admin_figure){"Failed", "runs?since=1h&verdict=failed", "1 h",
						       html_number(hour.failed), hour.failed > 0});
	admin_page_figure(page, &(struct admin_figure){"In live sandboxes", "", "1 h", html_number(hour.warm), false});
	if (getloadavg(load, 1) == 1)
		admin_page_figure(page, &(struct admin_figure){"Load", "", "1 min",
							       html_tenths((int64_t)(load[0] * 10)), false});
	if (store_free_space(server->config->data_dir, &space, NULL) == 0)
		admin_page_figure(page, &(struct admin_figure){.name = "Disk free", .value = html_size(space.bytes)});
	html_put(&page->html, "</dl>\n");
	return 0;
}

/* What monitors ask, too. Only what is wrong needs room. */
static void put_check(void *arg, const char *name, const struct err *err)
{
	struct admin_page *page = arg;

	if (err->code != ERR_NONE)
		html_put(&page->html, "<p class=\"error\"><strong>{}</strong> {}</p>\n", html_text(name),
			 html_text(err->text));
}

static void put_running(struct admin_page *page, const struct job_listing *jobs, size_t count)
{
	size_t shown = 0;

	html_put(&page->html, "<section data-live=\"running\"><h2>Running now</h2>\n");
	for (size_t i = 0; i < count; i++) {
		const struct job_listing *job = &jobs[i];

		if (job->step == JOB_OVER)
			continue;
		if (!shown++)
			admin_page_table(page, "", "Step|Since|Run|Owner|Conversation=wide");
		html_put(&page->html, "<tr><td><span class=\"badge live\">{}</span></td><td class=\"n\">",
			 html_text(job_step_text(job->step)));
		admin_page_elapsed(page, page->now_us - job->since_us);
		html_put(&page->html,
			 "</td><td><a class=\"id\" href=\"/admin/run/{}\">{}</a></td><td>{}</td>"
			 "<td class=\"wide\">{}</td></tr>\n",
			 html_part(job->id), html_bytes(job->id, strlen(job->id)), html_text(job->owner),
			 html_text(job->conversation));
	}
	admin_page_table_end(page, (int64_t)shown, "Nothing runs at the moment.");
	html_put(&page->html, "</section>\n");
}

int page_now(struct admin_page *page, const char *rest, struct err *err)
{
	struct server *server = page->exchange->server;
	auto_free struct job_listing *jobs = NULL;
	struct now now = {.jobs = NULL};
	struct job_engine *engine;

	if (*rest)
		return err_set(err, ERR_NOT_FOUND, "There is no such page");
	if (server_engine(server, &engine, err) == 0) {
		now.count = job_engine_list(engine, &jobs);
		now.jobs = jobs;
		job_engine_jails(engine, count_jails, &now.jails);
	}
	admin_page_title(page, "Now");
	html_put(&page->html, "<h1>Now</h1>\n<div data-live=\"checks\">");
	monitor_checks(server, put_check, page);
	html_put(&page->html, "</div>\n");
	int result = put_figures(page, &now, err);

	if (result < 0)
		return result;
	put_running(page, now.jobs, now.count);
	html_put(&page->html, "<section data-live=\"last\"><h2>Last runs</h2>\n");
	result = page_runs_table(page, &(struct store_view_filter){.limit = LAST_RUNS}, NULL, err);
	html_put(&page->html, "<p class=\"more\"><a href=\"/admin/runs\">All runs</a></p></section>\n");
	return result;
}
