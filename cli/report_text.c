/*
 * report_text.c - reports as text, JSON Lines and TAP, and the matrix expected × now, which text and HTML show.
 *
 * TAP 14: the plan, a line a case, a YAML block where there is more to say. The strings of the block are JSON, which
 * YAML takes as they are.
 */
#include "report.h"

#include <string.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"

/* -------- the matrix ---------------------------------------------------------------------------------- */

size_t report_value(struct report_values *values, const char *name)
{
	size_t i = 0;

	while (i < values->count && !streq(values->names[i], name))
		i++;
	if (i < values->count || i == REPORT_VALUES_MAX)
		return MIN(i, (size_t)REPORT_VALUES_MAX - 1);
	values->names[values->count++] = i + 1 == REPORT_VALUES_MAX ? "other" : name;
	return i;
}

void report_matrix(const struct report_all *all, struct report_matrix *ret)
{
	*ret = (struct report_matrix){0};
	/* What is on both sides comes first, in the same order. */
	for (size_t i = 0; i < all->count; i++)
		report_value(&ret->rows, all->items[i].expected);
	ret->columns = ret->rows;
	for (size_t i = 0; i < all->count; i++)
		ret->cells[report_value(&ret->rows, all->items[i].expected)]
			  [report_value(&ret->columns, all->items[i].now)]++;
}

/* -------- text and JSON Lines ------------------------------------------------------------------------- */

void report_text(const struct report_all *all, FILE *out)
{
	struct report_matrix *matrix = xcalloc(1, sizeof(*matrix));
	struct cli_column columns[1 + REPORT_VALUES_MAX] = {{.title = "expected \\ now"}};
	auto_table struct cli_table *table = NULL;

	report_matrix(all, matrix);
	for (size_t i = 0; i < matrix->columns.count; i++)
		columns[i + 1] = (struct cli_column){.title = matrix->columns.names[i], .right = true, .min = 4};
	table = cli_table_new(columns, matrix->columns.count + 1);
	for (size_t row = 0; row < matrix->rows.count; row++) {
		cli_table_cell(table, matrix->rows.names[row], CLI_PLAIN);
		for (size_t column = 0; column < matrix->columns.count; column++) {
			auto_free char *text = matrix->cells[row][column] > 0
						       ? xasprintf("%zu", matrix->cells[row][column])
						       : xstrdup(".");

			cli_table_cell(table, text, CLI_PLAIN);
		}
	}
	cli_table_print(table, out);
	free(matrix);
	for (size_t i = 0; i < all->count; i++) {
		const struct report_item *item = &all->items[i];

		if (item->state == REPORT_PASS)
			continue;
		fprintf(out, "\n%s  ", item->label);
		cli_print_safe(out, item->name, strlen(item->name));
		fputs("  ", out);
		cli_print_safe(out, item->message, strlen(item->message));
		fputc('\n', out);
		if (item->details)
			cli_print_diff(out, item->details, "    ");
	}
	fprintf(out, "\n%zu passed, %zu failed, %zu errors, %zu skipped; %.1f s\n", all->states[REPORT_PASS],
		all->states[REPORT_FAIL], all->states[REPORT_ERROR], all->states[REPORT_SKIP], all->seconds);
}

void report_jsonl(const struct report_all *all, FILE *out)
{
	for (size_t i = 0; i < all->count; i++)
		fprintf(out, "%s\n", all->items[i].json);
	fprintf(out, "%s\n", all->summary);
}

/* -------- TAP ----------------------------------------------------------------------------------------- */

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

	fprintf(out, "  %s: ", name);
	cli_print_json(out, string, false);
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
