/*
 * page_charts.c - runs by time, verdicts, wall times: SVG made here, with the figures in a table.
 *
 * The runs of the span are read once. Wall times go into a histogram by the logarithm (eight steps an octave, so a
 * percentile is right to 9 %), one for each step of time. What is read for more than a second is cut off: the newest
 * runs come first, so the page says from when on it is complete.
 */
#include <math.h>
#include <string.h>

#include "lib/base/util.h"
#include "pages.h"

#define HOUR_US    (3600 * INT64_C(1000000))
#define STEPS_MAX  48
#define OCTAVES    32
#define PER_OCTAVE 8
#define BINS       (OCTAVES * PER_OCTAVE)
#define WIDTH      960
#define HEIGHT     200
#define LEFT       56
#define BOTTOM     24
#define VERDICTS   10
#define BAR_WIDTH  160

struct step {
	int64_t good, bad;
	uint32_t bins[BINS];
	int64_t p50, p95, p99;
};
struct chart {
	struct admin_page *page;
	int64_t from_us, step_us, oldest_us;
	size_t n_steps;
	struct step *steps;
	char verdicts[VERDICTS][3];
	int64_t counts[VERDICTS], runs;
};

static const struct {
	const char *name, *label;
	int64_t step_us;
	size_t steps;
} spans[] = {
	{"24h", "24 hours", HOUR_US / 2, 48},
	{"1h", "1 hour", HOUR_US / 30, 30},
	{"7d", "7 days", 4 * HOUR_US, 42},
	{"30d", "30 days", 24 * HOUR_US, 30},
};

/* -------- adding up ----------------------------------------------------------------------------------- */

static void add_point(void *arg, const struct store_view_point *point)
{
	struct chart *chart = arg;
	const int64_t at = (point->created_us - chart->from_us) / chart->step_us;

	if (point->created_us < chart->from_us || at >= (int64_t)chart->n_steps || !point->verdict[0])
		return;
	struct step *step = &chart->steps[at];

	chart->oldest_us = MIN(chart->oldest_us, point->created_us);
	chart->runs++;
	size_t kind = 0;

	while (kind + 1 < VERDICTS && chart->counts[kind] && !streq(chart->verdicts[kind], point->verdict))
		kind++;
	memcpy(chart->verdicts[kind], point->verdict, sizeof(chart->verdicts[kind]));
	chart->counts[kind]++;
	if (streq(point->verdict, "OK"))
		step->good++;
	else
		step->bad++;
	const double place = point->wall_us > 1 ? log2((double)point->wall_us) * PER_OCTAVE : 0;

	step->bins[MIN((size_t)place, (size_t)BINS - 1)]++;
}

static int64_t percentile(const struct step *step, int percent)
{
	const int64_t all = step->good + step->bad, wanted = (all * percent + 99) / 100;
	int64_t seen = 0;

	for (size_t i = 0; all && i < BINS; i++) {
		seen += step->bins[i];
		if (seen >= wanted)
			return (int64_t)exp2(((double)i + 0.5) / PER_OCTAVE);
	}
	return 0;
}

/* -------- drawing ------------------------------------------------------------------------------------- */

static int64_t x_of(const struct chart *chart, size_t step)
{
	return LEFT + (int64_t)step * (WIDTH - LEFT) / (int64_t)chart->n_steps;
}

static void begin_svg(struct html *html, const char *title)
{
	html_put(html,
		 "<svg class=\"chart\" viewBox=\"0 0 960 224\" role=\"img\" aria-label=\"{}\">\n"
		 "<line x1=\"56\" x2=\"960\" y1=\"200\" y2=\"200\"/>",
		 html_text(title));
}

/* A few times along the bottom. */
static void put_times(const struct chart *chart)
{
	for (size_t i = 0; i < chart->n_steps; i += MAX(chart->n_steps / 6, (size_t)1)) {
		const struct html_value date = html_date(chart->from_us + (int64_t)i * chart->step_us);

		html_put(&chart->page->html, "<text x=\"{}\" y=\"218\">{}</text>", html_plain(x_of(chart, i)),
			 html_bytes(date.room + (chart->step_us < 4 * HOUR_US ? 11 : 5), 5));
	}
	html_put(&chart->page->html, "</svg>\n");
}

static void put_bars(const struct chart *chart)
{
	struct html *html = &chart->page->html;
	int64_t most = 1;

	for (size_t i = 0; i < chart->n_steps; i++)
		most = MAX(most, chart->steps[i].good + chart->steps[i].bad);
	begin_svg(html, "Runs over time, failed ones at the top of each bar");
	html_put(html, "<text x=\"4\" y=\"14\">{}</text>", html_number(most));
	for (size_t i = 0; i < chart->n_steps; i++) {
		const int64_t good = chart->steps[i].good * (HEIGHT - 20) / most,
			      bad = chart->steps[i].bad * (HEIGHT - 20) / most;
		const int64_t width = MAX((WIDTH - LEFT) / (int64_t)chart->n_steps - 3, 1);

		html_put(html,
			 "<rect class=\"used\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>"
			 "<rect class=\"full\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
			 html_plain(x_of(chart, i)), html_plain(HEIGHT - good), html_plain(width), html_plain(good),
			 html_plain(x_of(chart, i)), html_plain(HEIGHT - good - bad), html_plain(width),
			 html_plain(bad));
	}
	put_times(chart);
}

/* Logarithmic from 1 ms to 1000 s. */
static int64_t y_of(int64_t us)
{
	const double place = log10(MAX((double)us, 1000.0)) - 3;

	return HEIGHT - (int64_t)(MIN(place, 6.0) * (HEIGHT - 20) / 6);
}

static void put_line(const struct chart *chart, const char *kind, size_t offset)
{
	bool pen = false;

	html_put(&chart->page->html, "<path class=\"{}\" d=\"", html_text(kind));
	for (size_t i = 0; i < chart->n_steps; i++) {
		const int64_t us = *(const int64_t *)(const void *)((const char *)&chart->steps[i] + offset);

		if (us > 0)
			html_put(&chart->page->html, "{}{} {} ", html_text(pen ? "L" : "M"),
				 html_plain(x_of(chart, i) + (WIDTH - LEFT) / (int64_t)chart->n_steps / 2),
				 html_plain(y_of(us)));
		pen = us > 0;
	}
	html_put(&chart->page->html, "\"/>");
}

static void put_latency(const struct chart *chart)
{
	static const int64_t marks[] = {1000, 10000, 100000, 1000000, 10000000, 100000000};
	struct html *html = &chart->page->html;

	begin_svg(html, "Wall time of runs: median, 95th and 99th percentile, logarithmic");
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		html_put(html, "<line x1=\"56\" x2=\"960\" y1=\"{}\" y2=\"{}\"/><text x=\"4\" y=\"{}\">{}</text>",
			 html_plain(y_of(marks[i])), html_plain(y_of(marks[i])), html_plain(y_of(marks[i]) + 4),
			 html_duration(marks[i]));
	put_line(chart, "third", offsetof(struct step, p99));
	put_line(chart, "second", offsetof(struct step, p95));
	put_line(chart, "first", offsetof(struct step, p50));
	put_times(chart);
}

static void put_table(const struct chart *chart)
{
	struct html *html = &chart->page->html;

	html_put(html, "<details><summary>The figures</summary>");
	admin_page_table(chart->page, "", "From|OK=n|Not OK=n|Median=n|95 %=n mid|99 %=n mid");
	for (size_t i = 0; i < chart->n_steps; i++) {
		const struct step *step = &chart->steps[i];

		if (step->good + step->bad)
			html_put(html,
				 "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
				 "<td class=\"n mid\">{}</td><td class=\"n mid\">{}</td></tr>\n",
				 html_date(chart->from_us + (int64_t)i * chart->step_us), html_number(step->good),
				 html_number(step->bad), html_duration(step->p50), html_duration(step->p95),
				 html_duration(step->p99));
	}
	html_put(html, "</tbody></table></details>\n");
}

static void put_verdicts(const struct chart *chart, const char *span)
{
	struct html *html = &chart->page->html;

	html_put(html, "<section><h2>Verdicts</h2>\n<table class=\"use\"><tbody>\n");
	for (size_t i = 0; i < VERDICTS && chart->counts[i]; i++) {
		html_put(html, "<tr><th scope=\"row\">");
		admin_page_verdict(chart->page, chart->verdicts[i]);
		html_put(html,
			 "</th><td class=\"n\"><a href=\"/admin/runs?verdict={}&amp;since={}\">{}</a></td>"
			 "<td class=\"n\">{} %</td>",
			 html_part(chart->verdicts[i]), html_part(span), html_number(chart->counts[i]),
			 html_tenths(chart->counts[i] * 1000 / chart->runs));
		admin_page_bar(chart->page, "bar", BAR_WIDTH, chart->counts[i] * BAR_WIDTH / chart->runs, false);
		html_put(html, "</tr>\n");
	}
	html_put(html, "</tbody></table></section>\n");
}

int page_charts(struct admin_page *page, const char *rest, struct err *err)
{
	char asked[8] = "";
	size_t span = 0;

	admin_page_query(page, "since", asked, sizeof(asked));
	for (size_t i = 0; i < ARRAY_SIZE(spans); i++)
		if (streq(spans[i].name, asked))
			span = i;
	auto_free struct step *steps = xcalloc(STEPS_MAX, sizeof(*steps));
	struct chart chart = {
		.page = page, .step_us = spans[span].step_us, .n_steps = spans[span].steps, .steps = steps};

	if (*rest)
		return err_set(err, ERR_NOT_FOUND, "There is no such page");
	chart.from_us = (page->now_us / chart.step_us + 1) * chart.step_us - (int64_t)chart.n_steps * chart.step_us;
	chart.oldest_us = page->now_us;
	int result = store_view_points(page->exchange->server->store, chart.from_us, add_point, &chart, err);

	html_put(&page->html, "<h1>Charts</h1>\n<nav class=\"acts\" aria-label=\"Time\">");
	for (size_t i = 0; i < ARRAY_SIZE(spans); i++) {
		html_put(&page->html, "<a class=\"button\" href=\"/admin/charts?since={}\"", html_part(spans[i].name));
		if (i == span)
			html_put(&page->html, " aria-current=\"true\"");
		html_put(&page->html, ">{}</a>", html_text(spans[i].label));
	}
	html_put(&page->html, "</nav>\n");
	if (result == -ERR_LIMIT) {
		html_put(&page->html,
			 "<p class=\"error\">There are more runs than can be read in a second. "
			 "The charts show the runs since {} UTC.</p>\n",
			 html_date(chart.oldest_us));
		result = 0;
	}
	if (!chart.runs) {
		admin_page_empty(page, "No runs in this time.");
		return result;
	}
	for (size_t i = 0; i < chart.n_steps; i++) {
		steps[i].p50 = percentile(&steps[i], 50);
		steps[i].p95 = percentile(&steps[i], 95);
		steps[i].p99 = percentile(&steps[i], 99);
	}
	html_put(&page->html, "<section><h2>Runs <small>{}</small></h2>\n", html_number(chart.runs));
	put_bars(&chart);
	html_put(&page->html, "</section>\n<section><h2>Wall time <small>median, 95 %, 99 %</small></h2>\n");
	put_latency(&chart);
	put_table(&chart);
	html_put(&page->html, "</section>\n");
	put_verdicts(&chart, spans[span].name);
	return result;
}
