/*
 * output.c - what reaches the terminal: colours, safe text, JSON, tables, the progress bar.
 *
 * Colours are written only to a terminal, and not when NO_COLOR is set (no-color.org). Everything that a guest or a
 * client may have written goes through utf8_printable first, so that neither an escape sequence nor a bidi override
 * gets out. A table holds its cells until it is printed, because columns are as wide as their widest cell; printed
 * again it goes on with the same widths, so that `log --follow` can add rows below. Width is that of a terminal: wide
 * characters have two columns, combining ones none.
 */
#include "cli.h"

#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"

#define CELL_MAX 4096
#define WRAP_COLUMNS 80
#define BETWEEN 2 /* blanks between columns */
#define PROGRESS_FROM_US 1000000
#define PROGRESS_EVERY_US 100000
#define PROGRESS_CELLS 30

static bool has_colours(FILE *out)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fileno(out)) && !(no_color && *no_color) && !(term && streq(term, "dumb"));
}

const char *cli_colour_on(FILE *out, enum cli_colour colour)
{
	static const char *const sequences[] = {
		[CLI_PLAIN] = "",         [CLI_BOLD] = "\033[1m",    [CLI_DIM] = "\033[2m",   [CLI_RED] = "\033[31m",
		[CLI_GREEN] = "\033[32m", [CLI_YELLOW] = "\033[33m", [CLI_BLUE] = "\033[34m",
	};

	return has_colours(out) ? sequences[colour] : "";
}

const char *cli_colour_off(FILE *out)
{
	return has_colours(out) ? "\033[0m" : "";
}

enum cli_colour cli_verdict_colour(const char *verdict)
{
	if (streq(verdict, "OK"))
		return CLI_GREEN;
	return streq(verdict, "CX") || !*verdict ? CLI_DIM : streq(verdict, "XX") ? CLI_RED : CLI_YELLOW;
}

void cli_print_safe(FILE *out, const char *data, size_t length)
{
	auto_buf struct buf safe;

	buf_init(&safe, SIZE_MAX / 2);
	utf8_printable(&safe, data, length);
	fwrite(safe.data, 1, safe.length, out);
}

void cli_print_diff(FILE *out, const char *diff, const char *indent)
{
	for (size_t length; *diff; diff += length + (diff[length] == '\n')) {
		enum cli_colour colour = *diff == '-'   ? CLI_RED
					 : *diff == '+' ? CLI_GREEN
					 : *diff == '@' ? CLI_BLUE
							: CLI_PLAIN;

		length = strcspn(diff, "\n");
		fprintf(out, "%s%s", indent, cli_colour_on(out, colour));
		cli_print_safe(out, diff, length);
		fprintf(out, "%s\n", colour == CLI_PLAIN ? "" : cli_colour_off(out));
	}
}

void cli_print_json(FILE *out, struct json_object *value, bool pretty)
{
	auto_buf struct buf text;

	buf_init(&text, SIZE_MAX / 2);
	(pretty ? json_print_pretty : json_print)(&text, value);
	fwrite(text.data, 1, text.length, out);
	fputc('\n', out);
}

void cli_print_wrapped(FILE *out, const char *text, int used, int indent)
{
	for (size_t length; *text; text += length) {
		int width = 0;

		length = strcspn(text, " \n");
		for (size_t i = 0; i < length; i++)
			width += ((unsigned char)text[i] & 0xc0) != 0x80;
		if (used > indent && used + 1 + width > WRAP_COLUMNS) {
			fputc('\n', out);
			used = 0;
		}
		if (length) {
			fprintf(out, "%*s%.*s", used ? 1 : indent, "", (int)length, text);
			used = (used ? used + 1 : indent) + width;
		}
		for (; text[length] == ' ' || text[length] == '\n'; length++) {
			if (text[length] == '\n') {
				fputc('\n', out);
				used = 0;
			}
		}
	}
}

struct cli_table {
	const struct cli_column *columns;
	size_t n_columns;
	char **cells;
	enum cli_colour *colours;
	int *widths;
	bool *hidden;
	size_t last; /* column */
	size_t n_cells, size;
	size_t printed; /* rows */
	bool titled, fitted; /* fitted: to the terminal, with the first rows */
};

struct cli_table *cli_table_new(const struct cli_column *columns, size_t n_columns)
{
	struct cli_table *table = xcalloc(1, sizeof(*table));

	table->columns = columns;
	table->n_columns = n_columns;
	table->last = n_columns - 1;
	table->widths = xcalloc(n_columns, sizeof(*table->widths));
	table->hidden = xcalloc(n_columns, sizeof(*table->hidden));
	return table;
}

void cli_table_pointer(struct cli_table **table)
{
	struct cli_table *gone = *table;

	if (!gone)
		return;
	for (size_t i = 0; i < gone->n_cells; i++)
		free(gone->cells[i]);
	free(gone->cells);
	free(gone->colours);
	free(gone->widths);
	free(gone->hidden);
	free(gone);
}

/* Columns of the character that begins there. */
static int character_width(const char *text)
{
	static const unsigned char lead[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	static const struct {
		uint32_t from, to;
		int width;
	} ranges[] = {{0x300, 0x36f, 0},     {0x200b, 0x200f, 0},   {0x20d0, 0x20ff, 0},   {0xfe00, 0xfe0f, 0},
		      {0x1100, 0x115f, 2},   {0x2e80, 0xa4cf, 2},   {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},
		      {0xfe30, 0xfe6f, 2},   {0xff01, 0xff60, 2},   {0xffe0, 0xffe6, 2},   {0x1f300, 0x1f64f, 2},
		      {0x1f680, 0x1f6ff, 2}, {0x1f900, 0x1faff, 2}, {0x20000, 0x3fffd, 2}};
	const size_t length = utf8_length(text, strlen(text));
	uint32_t point = (unsigned char)*text & lead[length < ARRAY_SIZE(lead) ? length : 0];

	for (size_t i = 1; i < length; i++)
		point = point << 6 | ((unsigned char)text[i] & 0x3f);
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (point >= ranges[i].from && point <= ranges[i].to)
			return ranges[i].width;
	return 1;
}

/* Bytes of the text's first `max` columns, and how many these are. */
static size_t text_part(const char *text, int max, int *ret_width)
{
	size_t length = 0;
	int width = 0;

	while (text[length]) {
		const size_t bytes = utf8_length(text + length, strlen(text + length));
		const int columns = character_width(text + length);

		if (width + columns > max)
			break;
		width += columns;
		length += MAX(bytes, 1);
	}
	*ret_width = width;
	return length;
}

static int text_width(const char *text)
{
	int width;

	text_part(text, INT_MAX, &width);
	return width;
}

void cli_table_cell(struct cli_table *table, const char *text, enum cli_colour colour)
{
	const struct cli_column *column = &table->columns[table->n_cells % table->n_columns];
	auto_buf struct buf safe;
	size_t length = strlen(text);
	int width;

	if (table->n_cells == table->size) {
		table->size = table->size ? 2 * table->size : 64;
		table->cells = xrealloc(table->cells, table->size, sizeof(*table->cells));
		table->colours = xrealloc(table->colours, table->size, sizeof(*table->colours));
	}
	buf_init(&safe, 5 * CELL_MAX);
	utf8_printable(&safe, text, MIN(length, (size_t)CELL_MAX));
	table->colours[table->n_cells] = colour;
	if (column->max && text_width(safe.data) > column->max)
		table->cells[table->n_cells++] =
			xasprintf("%.*s…", (int)text_part(safe.data, column->max - 1, &width), safe.data);
	else
		table->cells[table->n_cells++] = xstrdup(safe.data);
}

size_t cli_table_rows(const struct cli_table *table)
{
	return table->n_cells / table->n_columns;
}

static int terminal_width(FILE *out)
{
	struct winsize size;

	if (!isatty(fileno(out)) || ioctl(fileno(out), TIOCGWINSZ, &size) || !size.ws_col)
		return 0;
	return size.ws_col;
}

static void cell_print(const struct cli_table *table, FILE *out, size_t column, const char *text,
		       enum cli_colour colour)
{
	const bool last = column == table->last;
	const int width = table->widths[column];
	int shown = text_width(text);
	const bool cut = table->fitted && shown > width;
	const size_t length = cut ? text_part(text, width - 1, &shown) : strlen(text);
	const int padding = width - shown - cut;

	if (table->columns[column].right)
		fprintf(out, "%*s", padding, "");
	fprintf(out, "%s%.*s%s%s", cli_colour_on(out, colour), (int)length, text, cut ? "…" : "",
		colour == CLI_PLAIN ? "" : cli_colour_off(out));
	if (!last)
		fprintf(out, "%*s", table->columns[column].right ? BETWEEN : padding + BETWEEN, "");
	else
		fputc('\n', out);
}

static int total_width(const struct cli_table *table)
{
	int total = -BETWEEN;

	for (size_t i = 0; i < table->n_columns; i++)
		total += table->hidden[i] ? 0 : table->widths[i] + BETWEEN;
	return total;
}

/* The column that may go and is the first to; n_columns: none. */
static size_t find_spare(const struct cli_table *table)
{
	size_t found = table->n_columns;

	for (size_t i = 0; i < table->n_columns; i++)
		if (!table->hidden[i] && table->columns[i].spare > 0 &&
		    (found == table->n_columns || table->columns[i].spare < table->columns[found].spare))
			found = i;
	return found;
}

/* The column that is furthest above its minimum, which is that of its title at least. */
static size_t find_wide(const struct cli_table *table)
{
	size_t found = table->n_columns;
	int most = 0;

	for (size_t i = 0; i < table->n_columns; i++) {
		const int over = table->widths[i] - MAX(table->columns[i].min, text_width(table->columns[i].title));

		if (!table->hidden[i] && !table->columns[i].right && over > most) {
			most = over;
			found = i;
		}
	}
	return found;
}

static void fit(struct cli_table *table, int terminal)
{
	size_t column;

	/* The last one is cut first, down to its minimum. */
	const int least = MAX(table->columns[table->last].min, text_width(table->columns[table->last].title));

	table->fitted = true;
	while (total_width(table) - table->widths[table->last] + least > terminal &&
	       (column = find_spare(table)) < table->n_columns)
		table->hidden[column] = true;
	table->widths[table->last] =
		MAX(least, MIN(table->widths[table->last], terminal - total_width(table) + table->widths[table->last]));
	while (total_width(table) > terminal && (column = find_wide(table)) < table->n_columns)
		table->widths[column]--;
}

void cli_table_print(struct cli_table *table, FILE *out)
{
	const int terminal = terminal_width(out);

	for (size_t i = 0; i < table->n_columns; i++)
		table->widths[i] =
			MAX(table->widths[i], MAX(table->columns[i].min, text_width(table->columns[i].title)));
	for (size_t i = table->printed * table->n_columns; !table->fitted && i < table->n_cells; i++) {
		int *width = &table->widths[i % table->n_columns];

		*width = MAX(*width, text_width(table->cells[i]));
	}
	if (terminal > 0 && !table->fitted)
		fit(table, terminal);
	for (size_t i = 0; !table->titled && i < table->n_columns; i++)
		if (!table->hidden[i])
			cell_print(table, out, i, table->columns[i].title, CLI_BOLD);
	table->titled = true;
	for (size_t i = table->printed * table->n_columns; i < cli_table_rows(table) * table->n_columns; i++)
		if (!table->hidden[i % table->n_columns])
			cell_print(table, out, i % table->n_columns, table->cells[i], table->colours[i]);
	table->printed = cli_table_rows(table);
}

static void field_cell(struct cli_table *table, const struct cli_field *field, struct json_object *row)
{
	const int64_t number = json_object_get_int64(json_get(row, field->member, json_type_int));
	const char *text = json_get_string(row, field->member);
	char room[CLI_TEXT_SIZE];

	switch (field->form) {
	case CLI_AS_TEXT:
		cli_table_cell(table, text && *text ? text : "-", field->colour);
		return;
	case CLI_AS_COUNT:
		snprintf(room, sizeof(room), "%lld", (long long)number);
		break;
	case CLI_AS_BYTES:
		cli_text_bytes(number, room);
		break;
	case CLI_AS_DURATION:
		cli_text_duration(number, room);
		break;
	case CLI_AS_TIME:
		snprintf(room, sizeof(room), "never");
		if (number > 0)
			cli_text_time(number, room);
		break;
	}
	cli_table_cell(table, room, field->colour == CLI_RED && number <= 0 ? CLI_PLAIN : field->colour);
}

/* Times are texts there: ISO 8601, UTC. */
static void print_line(struct json_object *row, const struct cli_field *fields, size_t n_fields)
{
	char text[CLOCK_TEXT_SIZE];

	for (size_t i = 0; i < n_fields; i++) {
		const bool is_time = fields[i].form == CLI_AS_TIME;
		struct json_object *time = is_time ? json_get(row, fields[i].member, json_type_int) : NULL;
		const int64_t us = time ? json_object_get_int64(time) : 0;

		if (!time)
			continue;
		clock_text(us, text);
		json_add_string(row, fields[i].member, us > 0 ? text : NULL);
	}
	cli_print_json(stdout, row, false);
}

void cli_print_rows(struct json_object *rows, const struct cli_field *fields, size_t n_fields, bool json)
{
	struct cli_column columns[CLI_FIELDS_MAX] = {0};

	for (size_t i = 0; i < n_fields; i++) {
		const enum cli_form form = fields[i].form;

		columns[i].title = fields[i].title;
		columns[i].right = form == CLI_AS_COUNT || form == CLI_AS_BYTES || form == CLI_AS_DURATION;
		columns[i].max = fields[i].max;
	}
	auto_table struct cli_table *table = cli_table_new(columns, n_fields);

	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);

		if (json)
			print_line(row, fields, n_fields);
		for (size_t k = 0; !json && k < n_fields; k++)
			field_cell(table, &fields[k], row);
	}
	if (!json)
		cli_table_print(table, stdout);
}

void cli_progress_start(struct cli_progress *progress, const char *label, int64_t total)
{
	const char *term = getenv("TERM");

	*progress = (struct cli_progress){
		.label = label,
		.total = total,
		.started_us = clock_monotonic_us(),
		.enabled = total > 0 && isatty(STDERR_FILENO) && !(term && streq(term, "dumb")),
	};
}

void cli_progress_step(struct cli_progress *progress, int64_t done)
{
	int64_t now = clock_monotonic_us(), elapsed = now - progress->started_us;
	int cells = (int)(PROGRESS_CELLS * done / MAX(progress->total, 1));

	progress->done = done;
	if (!progress->enabled || elapsed < PROGRESS_FROM_US ||
	    (progress->shown && now - progress->drawn_us < PROGRESS_EVERY_US))
		return;
	fprintf(stderr, "\r\033[K%s [%.*s%*s] %lld of %lld", progress->label, cells, "##############################",
		PROGRESS_CELLS - cells, "", (long long)done, (long long)progress->total);
	if (done > 0)
		fprintf(stderr, ", %.1f/s, %lld s left", (double)done * 1e6 / (double)elapsed,
			(long long)((progress->total - done) * (elapsed / 1000) / done / 1000));
	fflush(stderr);
	progress->drawn_us = now;
	progress->shown = true;
}

void cli_progress_show(struct cli_progress *progress, const char *label, int64_t done, int64_t total)
{
	if (progress->label != label || progress->total != total) {
		cli_progress_hide(progress);
		cli_progress_start(progress, label, total);
	}
	cli_progress_step(progress, done);
}

void cli_progress_hide(struct cli_progress *progress)
{
	if (!progress->shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	progress->shown = false;
}
