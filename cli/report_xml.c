/*
 * report_xml.c - JUnit XML, and the escapes that XML and HTML share.
 *
 * XML 1.0 has no way to write most control characters, nor U+FFFE and U+FFFF: they appear as \xNN, as on a terminal.
 * What went wrong is a failure; what says nothing of the program (judge, sandbox, missing results) is an error.
 */
#include "report.h"

#include <string.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"

void report_escaped(FILE *out, const char *text)
{
	auto_buf struct buf safe = {0};

	buf_init(&safe, SIZE_MAX / 2);
	for (size_t length; *text; text += length + (text[length] == '\n')) {
		length = strcspn(text, "\n");
		buf_reset(&safe);
		utf8_printable(&safe, text, length);
		const char *data = safe.data;
		static const char special[] = "&<>\"'";
		static const char *const escapes[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};

		for (size_t i = 0; i < safe.length; i++) {
			const char *found = data[i] ? strchr(special, (unsigned char)data[i]) : NULL;

			if (found) {
				fputs(escapes[found - special], out);
			} else if (i + 2 < safe.length && data[i] == '\xef' && data[i + 1] == '\xbf' &&
				   (unsigned char)data[i + 2] >= 0xbe) {
				fprintf(out, "\\xef\\xbf\\x%02x", (unsigned char)data[i + 2]);
				i += 2;
			} else {
				fputc(data[i], out);
			}
		}
		if (text[length] == '\n')
			fputc('\n', out);
	}
}

static void attribute(FILE *out, const char *name, const char *value)
{
	fprintf(out, " %s=\"", name);
	report_escaped(out, value);
	fputc('"', out);
}

static void counts(const struct report_all *all, FILE *out)
{
	attribute(out, "name", all->title);
	fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"%.3f\"", all->count,
		all->states[REPORT_FAIL], all->states[REPORT_ERROR], all->states[REPORT_SKIP], all->seconds);
}

void report_junit(const struct report_all *all, FILE *out)
{
	static const char *const elements[REPORT_STATES] = {
		[REPORT_FAIL] = "failure", [REPORT_ERROR] = "error", [REPORT_SKIP] = "skipped"};

	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites", out);
	counts(all, out);
	fputs(">\n\t<testsuite", out);
	counts(all, out);
	fputs(">\n", out);
	for (size_t i = 0; i < all->count; i++) {
		const struct report_item *item = &all->items[i];
		const char *element = elements[item->state];

		fputs("\t\t<testcase", out);
		attribute(out, "classname", item->group);
		attribute(out, "name", item->name);
		if (item->wall_us >= 0)
			fprintf(out, " time=\"%.3f\"", (double)item->wall_us / 1e6);
		if (!element) {
			fputs("/>\n", out);
			continue;
		}
		fprintf(out, ">\n\t\t\t<%s", element);
		attribute(out, "message", *item->message ? item->message : item->label);
		if (item->state != REPORT_SKIP)
			attribute(out, "type", item->label);
		fputc('>', out);
		if (item->details && item->state != REPORT_SKIP)
			report_escaped(out, item->details);
		fprintf(out, "</%s>\n\t\t</testcase>\n", element);
	}
	fputs("\t</testsuite>\n</testsuites>\n", out);
}
