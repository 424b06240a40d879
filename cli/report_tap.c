/*
 * report_tap.c - TAP 14: the plan, a line a case, a YAML block where there is more to say. The strings of the block are
 * JSON, which YAML takes as they are.
 */
#include "report.h"

#include <string.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"

/* "#" would begin a directive, and "\" is what keeps it from that. */
static void put_escaped(FILE *out, const char *text)
{
	auto_buf struct buf safe = {0};

	buf_init(&safe, SIZE_MAX / 2);
	utf8_printable(&safe, text, strlen(text));
	for (size_t i = 0; i < safe.length; i++) {
		if (safe.data[i] == '#' || safe.data[i] == '\\')
			fputc('\\', out);
		fputc(safe.data[i], out);
	}
}

static void put_member(FILE *out, const char *name, const char *value)
{
	auto_json struct json_object *string = json_object_new_string(value);
	auto_buf struct buf text = {0};

	buf_init(&text, SIZE_MAX / 2);
	json_print(&text, string);
	fprintf(out, "  %s: ", name);
	fwrite(text.data, 1, text.length, out);
	fputc('\n', out);
}

void report_tap(const struct report_all *all, FILE *out)
{
	fprintf(out, "TAP version 14\n1..%zu\n", all->count);
	for (size_t i = 0; i < all->count; i++) {
		const struct report_item *item = &all->items[i];
		bool bad = item->state == REPORT_FAIL || item->state == REPORT_ERROR;

		fprintf(out, "%s %zu - ", bad ? "not ok" : "ok", i + 1);
		put_escaped(out, item->name);
		if (item->state == REPORT_SKIP) {
			fputs(" # SKIP ", out);
			put_escaped(out, item->message);
		}
		fputc('\n', out);
		if (!bad)
			continue;
		fputs("  ---\n", out);
		put_member(out, "message", *item->message ? item->message : item->label);
		put_member(out, "severity", item->state == REPORT_ERROR ? "error" : "fail");
		put_member(out, "class", item->label);
		if (item->details)
			put_member(out, "details", item->details);
		fputs("  ...\n", out);
	}
}
