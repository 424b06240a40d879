/*
 * report_html.c - one page: counts, a chart of the classes or verdicts, the matrix expected × now, and what is not as
 * expected with its diff. Its policy allows neither scripts nor anything from elsewhere, in case an escape was
 * forgotten.
 */
#include "report.h"

#include <string.h>

#include "lib/base/util.h"

#define BAR_HEIGHT 26
#define BAR_LEFT   190
#define BAR_WIDTH  420
#define SHOWN_MAX  2000 /* cases with details; the rest is counted */

static const char style[] =
	":root{color-scheme:light dark;--pass:#2e7d32;--fail:#c62828;--error:#6a1b9a;--skip:#78909c;--line:#8884}"
	"body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
	"h1{font-size:1.4rem;overflow-wrap:anywhere}h2{font-size:1.1rem;margin-top:2rem}"
	"table{border-collapse:collapse}th,td{padding:.2rem .7rem;border:1px solid var(--line);text-align:right}"
	"th:first-child{text-align:left}td.same{font-weight:600}td.other{color:var(--fail);font-weight:600}"
	"svg text{font:13px system-ui,sans-serif;fill:currentColor}"
	".pass{fill:var(--pass);color:var(--pass)}.fail{fill:var(--fail);color:var(--fail)}"
	".error{fill:var(--error);color:var(--error)}.skip{fill:var(--skip);color:var(--skip)}"
	"details{border-top:1px solid var(--line);padding:.4rem 0}summary{cursor:pointer;overflow-wrap:anywhere}"
	"summary b{display:inline-block;min-width:10rem}p{margin:.3rem 0;overflow-wrap:anywhere}"
	"pre{overflow-x:auto;padding:.5rem;border:1px solid var(--line);font:13px/1.4 ui-monospace,monospace}"
	".minus{color:var(--fail)}.plus{color:var(--pass)}.hunk{color:var(--skip)}";

static const char *const states[REPORT_STATES] = {"pass", "fail", "error", "skip"};

/* <before>TEXT<after> */
static void element(FILE *out, const char *before, const char *text, const char *after)
{
	fputs(before, out);
	report_escaped(out, text);
	fputs(after, out);
}

/* The order of what is not as expected: what changed, what failed to run, and folded what is flaky or was not run. */
enum place { CHANGED, ERRORS, FOLDED, UNRUN, PLACES };

static enum place place_of(const struct report_item *item)
{
	if (item->state == REPORT_FAIL)
		return streq(item->label, "flaky") ? FOLDED : CHANGED;
	return item->state == REPORT_ERROR ? ERRORS : item->state == REPORT_SKIP ? UNRUN : PLACES;
}

static void one(const struct report_item *item, FILE *out)
{
	fprintf(out, "<details%s><summary><b class=\"%s\">", place_of(item) < FOLDED ? " open" : "",
		states[item->state]);
	element(out, "", item->label, "</b> ");
	element(out, "", item->name, " ");
	element(out, "<small>", item->group, "</small></summary>\n");
	element(out, "<p>", item->message, "</p>\n");
	if (item->conversation && *item->conversation)
		element(out, "<p>conversation ", item->conversation, "</p>\n");
	if (item->details && *item->details) {
		const char *details = item->details;

		fputs("<pre>", out);
		for (size_t length; *details; details += length + (details[length] == '\n')) {
			const char *class = *details == '-'   ? "minus"
					    : *details == '+' ? "plus"
					    : *details == '@' ? "hunk"
							      : "";
			auto_free char *line = xstrndup(details, length = strcspn(details, "\n"));

			fprintf(out, *class ? "<span class=\"%s\">" : "<span>", class);
			report_escaped(out, line);
			fputs("</span>\n", out);
		}
		fputs("</pre>\n", out);
	}
	if (item->code && *item->code)
		element(out, "<details><summary>program</summary><pre>", item->code, "</pre></details>\n");
	fputs("</details>\n", out);
}

void report_html(const struct report_all *all, FILE *out)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width\">\n",
	      out);
	element(out, "<title>", all->title, "</title>\n");
	fprintf(out, "<style>%s</style>\n</head>\n<body>\n", style);
	element(out, "<h1>", all->title, "</h1>\n");
	fprintf(out,
		"<p><b class=\"pass\">%zu passed</b>, <b class=\"fail\">%zu failed</b>, <b class=\"error\">%zu errors</b>, <b class=\"skip\">%zu skipped</b>; %.1f s</p>\n",
		all->states[REPORT_PASS], all->states[REPORT_FAIL], all->states[REPORT_ERROR], all->states[REPORT_SKIP],
		all->seconds);
	/* How many of each label, in the order of their first appearance; the colour is that of the last case. */
	struct report_values labels = {0};
	size_t counts[REPORT_VALUES_MAX] = {0}, most = 1;
	enum report_state state[REPORT_VALUES_MAX] = {0};

	for (size_t i = 0; i < all->count; i++) {
		size_t at = report_value(&labels, all->items[i].label);

		counts[at]++;
		most = MAX(most, counts[at]);
		state[at] = all->items[i].state;
	}
	fprintf(out, "<svg role=\"img\" aria-label=\"How many of each\" width=\"100%%\" viewBox=\"0 0 %d %zu\">\n",
		BAR_LEFT + BAR_WIDTH + 80, labels.count * BAR_HEIGHT + 4);
	for (size_t i = 0; i < labels.count; i++) {
		size_t top = i * BAR_HEIGHT;
		double width = MAX(BAR_WIDTH * (double)counts[i] / (double)most, 2.0);

		fprintf(out, "<text x=\"%d\" y=\"%zu\" text-anchor=\"end\">", BAR_LEFT - 10, top + 17);
		report_escaped(out, labels.names[i]);
		fprintf(out,
			"</text><rect class=\"%s\" x=\"%d\" y=\"%zu\" width=\"%.1f\" height=\"%d\" rx=\"3\"/>"
			"<text x=\"%.1f\" y=\"%zu\">%zu</text>\n",
			states[state[i]], BAR_LEFT, top + 3, width, BAR_HEIGHT - 6, BAR_LEFT + width + 8, top + 17,
			counts[i]);
	}
	fputs("</svg>\n", out);
	struct report_matrix *matrix = xcalloc(1, sizeof(*matrix));

	report_matrix(all, matrix);
	fputs("<h2>Expected and now</h2>\n<table>\n<tr><th>expected \\ now</th>", out);
	for (size_t i = 0; i < matrix->columns.count; i++)
		element(out, "<th>", matrix->columns.names[i], "</th>");
	fputs("</tr>\n", out);
	for (size_t row = 0; row < matrix->rows.count; row++) {
		const char *name = matrix->rows.names[row];

		element(out, "<tr><th>", name, "</th>");
		for (size_t column = 0; column < matrix->columns.count; column++) {
			size_t count = matrix->cells[row][column];

			if (count == 0)
				fputs("<td>·</td>", out);
			else
				fprintf(out, "<td class=\"%s\">%zu</td>",
					streq(name, matrix->columns.names[column]) ? "same" : "other", count);
		}
		fputs("</tr>\n", out);
	}
	fputs("</table>\n", out);
	free(matrix);
	size_t left = all->count - all->states[REPORT_PASS], shown = 0;
	if (left > 0)
		fputs("<h2>Not as expected, or not run</h2>\n", out);
	for (enum place place = CHANGED; place < PLACES; place++)
		for (size_t i = 0; i < all->count && shown < SHOWN_MAX; i++)
			if (place_of(&all->items[i]) == place) {
				one(&all->items[i], out);
				shown++;
			}
	if (shown < left)
		fprintf(out, "<p>… and %zu more</p>\n", left - shown);
	fputs("</body>\n</html>\n", out);
}
