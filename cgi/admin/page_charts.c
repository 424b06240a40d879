/*
 * page_charts.c - runs by time, by verdict, owner or language, wall times, kinds of failures: SVG made here, with the
 * figures in tables.
 *
 * The runs of the span are read once. Wall times go into a histogram by the logarithm (eight steps an octave, so a
 * percentile is right to 9 %), one for each step of time. Each run counts for the name by which the chart is divided;
 * the most frequent names get a colour, the others share the last one. What is read for more than a second is cut off:
 * the newest runs come first, so the page says from when on it is complete.
 */
#include <math.h>
#include <stdlib.h>
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
#define LEFT       96
#define BAR_WIDTH  160
#define NAMES      24 /* counted each; the last is for all others */
#define COLOURS    6
#define KINDS      200 /* of failures */
#define KINDS_SHOWN 20

struct step {
	int64_t runs, by[NAMES];
	uint32_t bins[BINS];
	int64_t p50, p95, p99;
};
struct name {
	char text[STORE_OWNER_MAX + 1];
	int64_t runs, failed, cpu_us;
	size_t at; /* in step.by */
};
enum by { BY_VERDICT, BY_OWNER, BY_LANGUAGE, BYS };
static const struct {
	const char *name, *label, *title;
} bys[BYS] = {{"verdict", "by verdict", "Verdicts"},
	      {"owner", "by owner", "Owners"},
	      {"language", "by language", "Languages"}};

struct chart {
	struct admin_page *page;
	enum by by;
	int64_t from_us, step_us, oldest_us;
	size_t n_steps, n_names;
	struct step *steps;
	struct name names[NAMES];
	int64_t runs;
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

static struct name *name_of(struct chart *chart, const char *text)
{
	size_t i = 0;

	while (i < chart->n_names && !streq(chart->names[i].text, text))
		i++;
	if (i == NAMES)
		return &chart->names[NAMES - 1];
	if (i == chart->n_names) {
		snprintf(chart->names[i].text, sizeof(chart->names[i].text), "%s", i == NAMES - 1 ? "others" : text);
		chart->names[i].at = i;
		chart->n_names++;
	}
	return &chart->names[i];
}

static void add_point(void *arg, const struct store_view_point *point)
{
	struct chart *chart = arg;
	const int64_t at = (point->created_us - chart->from_us) / chart->step_us;
	const char *texts[BYS] = {point->verdict, point->owner, point->language};

	if (point->created_us < chart->from_us || at >= (int64_t)chart->n_steps || !point->verdict[0])
		return;
	struct step *step = &chart->steps[at];
	struct name *name = name_of(chart, texts[chart->by]);

	chart->oldest_us = MIN(chart->oldest_us, point->created_us);
	chart->runs++;
	name->runs++;
	name->failed += !streq(point->verdict, "OK");
	name->cpu_us += point->cpu_us;
	step->runs++;
	step->by[name->at]++;
	const double place = point->wall_us > 1 ? log2((double)point->wall_us) * PER_OCTAVE : 0;

	step->bins[MIN((size_t)place, (size_t)BINS - 1)]++;
}

static int most_first(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	return x->runs != y->runs ? (x->runs > y->runs ? -1 : 1) : strcmp(x->text, y->text);
}

static int64_t percentile(const struct step *step, int percent)
{
	const int64_t wanted = (step->runs * percent + 99) / 100;
	int64_t seen = 0;

	for (size_t i = 0; step->runs && i < BINS; i++) {
		seen += step->bins[i];
		if (seen >= wanted)
			return (int64_t)exp2(((double)i + 0.5) / PER_OCTAVE);
	}
	return 0;
}

/* -------- drawing ------------------------------------------------------------------------------------- */

/* Verdicts have the colours of their badges. */
static const char *colour_of(const struct chart *chart, size_t place)
{
	static const char *const colours[COLOURS] = {"c0", "c1", "c2", "c3", "c4", "c5"};
	const char *text = chart->names[place].text;

	if (chart->by != BY_VERDICT)
		return colours[MIN(place, (size_t)COLOURS - 1)];
	if (streq(text, "OK"))
		return "good";
	if (strstr("TO ML OL", text))
		return "limit";
	return streq(text, "CX") ? "quiet" : streq(text, "XX") ? "broken" : "bad";
}

static int64_t x_of(const struct chart *chart, size_t step)
{
	return LEFT + (int64_t)step * (WIDTH - LEFT) / (int64_t)chart->n_steps;
}

static void begin_svg(struct html *html, const char *title)
{
	html_put(html,
		 "<svg class=\"chart\" viewBox=\"0 0 960 232\" role=\"img\" aria-label=\"{}\">\n"
		 "<line x1=\"{}\" x2=\"960\" y1=\"200\" y2=\"200\"/>",
		 html_text(title), html_plain(LEFT));
}

/* A few times along the bottom. */
static void put_times(const struct chart *chart)
{
	for (size_t i = 0; i < chart->n_steps; i += MAX(chart->n_steps / 5, (size_t)1)) {
		const struct html_value date = html_date(chart->from_us + (int64_t)i * chart->step_us);

		html_put(&chart->page->html, "<text x=\"{}\" y=\"224\">{}</text>", html_plain(x_of(chart, i)),
			 html_bytes(date.room + (chart->step_us < 4 * HOUR_US ? 11 : 5), 5));
	}
	html_put(&chart->page->html, "</svg>\n");
}

static void put_legend(const struct chart *chart)
{
	struct html *html = &chart->page->html;

	html_put(html, "<ul class=\"legend\">");
	for (size_t i = 0; i < chart->n_names && (i < COLOURS || chart->by == BY_VERDICT); i++) {
		const bool rest = chart->by != BY_VERDICT && i == COLOURS - 1 && chart->n_names > COLOURS;

		html_put(html,
			 "<li><svg width=\"12\" height=\"12\" aria-hidden=\"true\"><rect class=\"{}\" width=\"12\" "
			 "height=\"12\" rx=\"3\"/></svg> {}",
			 html_text(colour_of(chart, i)), html_text(rest ? "others" : chart->names[i].text));
		if (chart->by == BY_VERDICT)
			html_put(html, " <small>{}</small>", html_text(admin_page_verdict_text(chart->names[i].text)));
		html_put(html, "</li>");
	}
	html_put(html, "</ul>\n");
}

static void put_bars(const struct chart *chart)
{
	struct html *html = &chart->page->html;
	const int64_t width = MAX((WIDTH - LEFT) / (int64_t)chart->n_steps - 3, 1);
	int64_t most = 1;

	for (size_t i = 0; i < chart->n_steps; i++)
		most = MAX(most, chart->steps[i].runs);
	begin_svg(html, "Runs over time; the legend and the table say what the colours are");
	html_put(html, "<text x=\"4\" y=\"24\">{}</text>", html_number(most));
	for (size_t i = 0; i < chart->n_steps; i++) {
		int64_t below = 0; /* runs under this piece */

		for (size_t k = 0; k < chart->n_names; k++) {
			const int64_t runs = chart->steps[i].by[chart->names[k].at];
			const int64_t low = below * (HEIGHT - 20) / most;
			const int64_t high = MAX((below + runs) * (HEIGHT - 20) / most, low + 1);

			below += runs;
			if (runs)
				html_put(html,
					 "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
					 html_text(colour_of(chart, k)), html_plain(x_of(chart, i)),
					 html_plain(HEIGHT - high), html_plain(width), html_plain(high - low));
		}
	}
	put_times(chart);
	put_legend(chart);
}

/* Logarithmic from 1 ms to 1000 s. */
static int64_t y_of(int64_t us)
{
	const double place = log10(MAX((double)us, 1000.0)) - 3;

	return HEIGHT - (int64_t)(MIN(place, 6.0) * (HEIGHT - 20) / 6);
}

/* A step between two without runs is no line, so each has a point. */
static void put_line(const struct chart *chart, const char *kind, size_t offset)
{
	struct html *html = &chart->page->html;
	bool pen = false;

	html_put(html, "<path class=\"{}\" d=\"", html_text(kind));
	for (int points = 0; points <= 1; points++) {
		for (size_t i = 0; i < chart->n_steps; i++) {
			const int64_t us =
				*(const int64_t *)(const void *)((const char *)&chart->steps[i] + offset);
			const int64_t x = x_of(chart, i) + (WIDTH - LEFT) / (int64_t)chart->n_steps / 2;

			if (us > 0 && points)
				html_put(html, "<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"3\"/>", html_text(kind),
					 html_plain(x), html_plain(y_of(us)));
			else if (us > 0)
				html_put(html, "{}{} {} ", html_text(pen ? "L" : "M"), html_plain(x),
					 html_plain(y_of(us)));
			pen = us > 0;
		}
		if (!points)
			html_put(html, "\"/>");
	}
}

static void put_latency(const struct chart *chart)
{
	static const int64_t marks[] = {1000, 10000, 100000, 1000000, 10000000, 100000000};
	static const struct {
		const char *kind, *label;
		size_t offset;
	} lines[] = {{"third", "99 %", offsetof(struct step, p99)},
		     {"second", "95 %", offsetof(struct step, p95)},
		     {"first", "median", offsetof(struct step, p50)}};
	struct html *html = &chart->page->html;

	begin_svg(html, "Wall time of runs: median, 95th and 99th percentile, logarithmic");
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		html_put(html, "<line x1=\"{}\" x2=\"960\" y1=\"{}\" y2=\"{}\"/><text x=\"4\" y=\"{}\">{}</text>",
			 html_plain(LEFT), html_plain(y_of(marks[i])), html_plain(y_of(marks[i])),
			 html_plain(y_of(marks[i]) + 4), html_duration(marks[i]));
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		put_line(chart, lines[i].kind, lines[i].offset);
	put_times(chart);
	html_put(html, "<ul class=\"legend\">");
	for (size_t i = ARRAY_SIZE(lines); i > 0; i--)
		html_put(html,
			 "<li><svg width=\"12\" height=\"12\" aria-hidden=\"true\"><circle class=\"{}\" cx=\"6\" cy=\"6\" "
			 "r=\"4\"/></svg> {}</li>",
			 html_text(lines[i - 1].kind), html_text(lines[i - 1].label));
	html_put(html, "</ul>\n");
}

static void put_table(const struct chart *chart)
{
	struct html *html = &chart->page->html;

	html_put(html, "<details><summary>The figures</summary>");
	admin_page_table(chart->page, "", "From|Runs=n|Median=n|95 %=n mid|99 %=n mid");
	for (size_t i = 0; i < chart->n_steps; i++) {
		const struct step *step = &chart->steps[i];

		if (step->runs)
			html_put(html,
				 "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
				 "<td class=\"n mid\">{}</td><td class=\"n mid\">{}</td></tr>\n",
				 html_date(chart->from_us + (int64_t)i * chart->step_us), html_number(step->runs),
				 html_duration(step->p50), html_duration(step->p95), html_duration(step->p99));
	}
	html_put(html, "</tbody></table></details>\n");
}

static void put_names(const struct chart *chart, const char *span)
{
	struct html *html = &chart->page->html;

	html_put(html, "<section><h2>{}</h2>\n", html_text(bys[chart->by].title));
	admin_page_table(chart->page, "use", "Name|Runs=n|Share=n mid|Not OK=n|CPU=n|Part=bar");
	for (size_t i = 0; i < chart->n_names; i++) {
		const struct name *name = &chart->names[i];

		html_put(html, "<tr><th scope=\"row\" class=\"name\">");
		if (chart->by == BY_VERDICT)
			admin_page_verdict(chart->page, name->text);
		else
			html_put(html, "{}", html_text(name->text));
		html_put(html,
			 "</th><td class=\"n\"><a href=\"/admin/runs?{}={}&amp;since={}\">{}</a></td>"
			 "<td class=\"n mid\">{} %</td><td class=\"n\">{}</td><td class=\"n\">{}</td>",
			 html_part(bys[chart->by].name), html_part(name->text), html_part(span),
			 html_number(name->runs), html_tenths(name->runs * 1000 / chart->runs),
			 html_number(name->failed), html_duration(name->cpu_us));
		admin_page_bar(chart->page, "bar", BAR_WIDTH, name->runs * BAR_WIDTH / chart->runs, false);
		html_put(html, "</tr>\n");
	}
	html_put(html, "</tbody></table></section>\n");
}

/* -------- failures ------------------------------------------------------------------------------------ */

struct kinds {
	struct kind {
		char text[STORE_FAILURE_SIZE], last[ID_SIZE]; /* the newest run */
		int64_t runs;
	} items[KINDS];
	size_t count;
	int64_t others;
};

static void add_failure(void *arg, const struct store_view_failure *failure)
{
	struct kinds *kinds = arg;
	char text[STORE_FAILURE_SIZE];
	size_t i = 0;

	store_failure_kind(&failure->what, text);
	while (i < kinds->count && !streq(kinds->items[i].text, text))
		i++;
	if (i == KINDS) {
		kinds->others++;
		return;
	}
	if (i == kinds->count) {
		kinds->count++;
		memcpy(kinds->items[i].text, text, sizeof(text));
		snprintf(kinds->items[i].last, ID_SIZE, "%s", failure->id);
	}
	kinds->items[i].runs++;
}

static int most_frequent(const void *a, const void *b)
{
	const struct kind *x = a, *y = b;

	return x->runs != y->runs ? (x->runs > y->runs ? -1 : 1) : strcmp(x->text, y->text);
}

static int put_failures(const struct chart *chart, struct err *err)
{
	auto_free struct kinds *kinds = xcalloc(1, sizeof(*kinds));
	struct html *html = &chart->page->html;
	int result = store_view_failures(chart->page->exchange->server->store, chart->from_us, add_failure, kinds, err);

	if (result == -ERR_LIMIT) {
		html_put(html, "<p class=\"error\">There are more failures than can be read in a second: "
			       "these are the newest.</p>\n");
		result = 0;
	}
	qsort(kinds->items, kinds->count, sizeof(kinds->items[0]), most_frequent);
	html_put(html, "<section><h2>Failures by kind <small>exception, missing module, what was denied</small></h2>"
		       "\n");
	for (size_t i = 0; i < kinds->count; i++) {
		const struct kind *kind = &kinds->items[i];

		if (i >= KINDS_SHOWN) {
			kinds->others += kind->runs;
			continue;
		}
		if (i == 0)
			admin_page_table(chart->page, "", "Kind|Runs=n|Newest");
		html_put(html,
			 "<tr><td class=\"name\">{}</td><td class=\"n\">{}</td>"
			 "<td><a class=\"id\" href=\"/admin/run/{}\">{}</a></td></tr>\n",
			 html_text(kind->text), html_number(kind->runs), html_part(kind->last),
			 html_text(STORE_ID_SHORT(kind->last)));
	}
	admin_page_table_end(chart->page, (int64_t)kinds->count, "No failures.");
	if (kinds->others)
		html_put(html,
			 "<p class=\"note\">And {} of other kinds: <code>sallyport stats --by failure</code>.</p>\n",
			 html_number(kinds->others));
	html_put(html, "</section>\n");
	return result;
}

/* -------- the view ------------------------------------------------------------------------------------ */

static void put_choice(struct html *html, const char *span, const char *by, const char *label, bool chosen)
{
	html_put(html, "<a class=\"button\" href=\"/admin/charts?since={}&amp;by={}\"", html_part(span), html_part(by));
	if (chosen)
		html_put(html, " aria-current=\"true\"");
	html_put(html, ">{}</a>", html_text(label));
}

static void put_head(const struct chart *chart, size_t span)
{
	struct html *html = &chart->page->html;

	html_put(html, "<h1>Charts</h1>\n<nav class=\"acts\" aria-label=\"Time\">");
	for (size_t i = 0; i < ARRAY_SIZE(spans); i++)
		put_choice(html, spans[i].name, bys[chart->by].name, spans[i].label, i == span);
	html_put(html, "</nav>\n<nav class=\"acts\" aria-label=\"Divided by\">");
	for (size_t i = 0; i < BYS; i++)
		put_choice(html, spans[span].name, bys[i].name, bys[i].label, i == (size_t)chart->by);
	html_put(html, "</nav>\n");
}

static int draw(struct chart *chart, const char *span, struct err *err)
{
	struct html *html = &chart->page->html;

	for (size_t i = 0; i < chart->n_steps; i++) {
		chart->steps[i].p50 = percentile(&chart->steps[i], 50);
		chart->steps[i].p95 = percentile(&chart->steps[i], 95);
		chart->steps[i].p99 = percentile(&chart->steps[i], 99);
	}
	qsort(chart->names, chart->n_names, sizeof(chart->names[0]), most_first);
	html_put(html, "<section><h2>Runs <small>{}</small></h2>\n", html_number(chart->runs));
	put_bars(chart);
	html_put(html, "</section>\n<section><h2>Wall time</h2>\n");
	put_latency(chart);
	put_table(chart);
	html_put(html, "</section>\n");
	put_names(chart, span);
	return put_failures(chart, err);
}

int page_charts(struct admin_page *page, const char *rest, struct err *err)
{
	char asked[8] = "", by[16] = "";
	size_t span = 0;
	struct chart chart = {.page = page};

	if (*rest)
		return err_set(err, ERR_NOT_FOUND, "There is no such page");
	admin_page_query(page, "since", asked, sizeof(asked));
	admin_page_query(page, "by", by, sizeof(by));
	for (size_t i = 0; i < ARRAY_SIZE(spans); i++)
		if (streq(spans[i].name, asked))
			span = i;
	for (size_t i = 0; i < BYS; i++)
		if (streq(bys[i].name, by))
			chart.by = (enum by)i;
	auto_free struct step *steps = xcalloc(STEPS_MAX, sizeof(*steps));

	chart.steps = steps;
	chart.step_us = spans[span].step_us;
	chart.n_steps = spans[span].steps;
	chart.from_us = (page->now_us / chart.step_us + 1) * chart.step_us - (int64_t)chart.n_steps * chart.step_us;
	chart.oldest_us = page->now_us;
	int result = store_view_points(page->exchange->server->store, chart.from_us, add_point, &chart, err);

	put_head(&chart, span);
	if (result == -ERR_LIMIT) {
		html_put(&page->html,
			 "<p class=\"error\">There are more runs than can be read in a second. "
			 "The charts show the runs since {} UTC.</p>\n",
			 html_date(chart.oldest_us));
		result = 0;
	}
	if (chart.runs)
		return result < 0 ? result : draw(&chart, spans[span].name, err);
	admin_page_empty(page, "No runs in this time.");
	return result;
}
