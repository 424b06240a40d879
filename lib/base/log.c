/* log.c - see log.h. */
#include "log.h"

#include <stdarg.h>
#include <unistd.h>

#include "buf.h"
#include "metrics.h"
#include "utf8.h"
#include "util.h"

#define LOG_LINE_MAX  4096 /* below PIPE_BUF: lines of several processes on one pipe do not mix */
#define LOG_VALUE_MAX 1024

static const char *log_program = "sallyport";
static enum log_level log_least = LOG_INFO;
static bool log_json;
static const char *const level_names[] = {
	[LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARN] = "warn", [LOG_ERROR] = "error"};

void log_open(const char *program, enum log_level least)
{
	log_program = program;
	log_least = least;
}

static const char *level_name(enum log_level level)
{
	return (unsigned)level < ARRAY_SIZE(level_names) ? level_names[level] : "error";
}

bool log_level_valid(const char *level)
{
	for (size_t i = 0; i < ARRAY_SIZE(level_names); i++)
		if (streq(level_names[i], level))
			return true;
	return false;
}

void log_configure(bool json, const char *level)
{
	log_json = json;
	for (size_t i = 0; i < ARRAY_SIZE(level_names); i++)
		if (streq(level_names[i], level) && ((enum log_level)i < LOG_INFO || (enum log_level)i > log_least))
			log_least = (enum log_level)i;
}

static bool is_word(const char *value)
{
	const char *c = value;

	while (*c > ' ' && *c < 0x7f && *c != '"' && *c != '=' && *c != '\\')
		c++;
	return *c == '\0' && c > value && c - value <= LOG_VALUE_MAX;
}

/* In quotes, unless `bare` and it reads as one word. Quotes and backslashes are escaped; control characters and bytes
 * that are not UTF-8 become \\xNN. */
static void add_value(struct buf *line, const char *value, bool bare)
{
	auto_buf struct buf text = {0};

	if (bare && is_word(value)) { /* nearly every value of a request */
		buf_puts(line, value);
		return;
	}
	size_t length = strlen(value), shown = utf8_cut(value, length, LOG_VALUE_MAX);

	buf_init(&text, 4 * LOG_VALUE_MAX + 8);
	utf8_printable(&text, value, shown);
	if (shown < length)
		buf_puts(&text, "…");
	if (bare && text.length > 0 && strpbrk(text.data, " \"=\\") == NULL) {
		buf_add(line, text.data, text.length);
		return;
	}
	buf_putc(line, '"');
	for (const char *c = text.data; *c != '\0'; c++) {
		if (*c == '"' || *c == '\\')
			buf_putc(line, '\\');
		buf_putc(line, *c);
	}
	buf_putc(line, '"');
}

/* One member; the line stays an object: what does not fit is left out as a whole. */
static void add_member(struct buf *line, const char *key, const char *value)
{
	auto_buf struct buf member = {0};

	buf_init(&member, 8 * LOG_VALUE_MAX + LOG_LINE_MAX);
	buf_puts(&member, line->length > 1 ? "," : "");
	add_value(&member, key, false);
	buf_putc(&member, ':');
	if (value != NULL)
		add_value(&member, value, false);
	else
		buf_puts(&member, "null");
	if (line->length + member.length + 1 < line->max)
		buf_add(line, member.data, member.length);
}

static void add_text(struct buf *line, const char *key, const char *value)
{
	buf_putc(line, ' ');
	buf_puts(line, key);
	buf_putc(line, '=');
	add_value(line, value != NULL ? value : "-", true);
}

void log_event(enum log_level level, const char *event, ...)
{
	char time[CLOCK_TEXT_SIZE];
	auto_buf struct buf line = {0};
	const char *key;
	va_list pairs;

	if (level < log_least)
		return;
	metrics_add(METRIC_LOG, level_name(level), NULL, 1);
	buf_init(&line, LOG_LINE_MAX - 1);
	clock_text(clock_now_us(), time);
	if (log_json) {
		buf_putc(&line, '{');
		add_member(&line, "ts", time);
		add_member(&line, "level", level_name(level));
		add_member(&line, "program", log_program);
		add_member(&line, "event", event);
	} else {
		buf_printf(&line, "%s %s %s %s", time, level_name(level), log_program, event);
	}
	va_start(pairs, event);
	while ((key = va_arg(pairs, const char *)) != NULL) {
		const char *value = va_arg(pairs, const char *);

		(log_json ? add_member : add_text)(&line, key, value);
	}
	va_end(pairs);
	line.overflow = false;
	line.max = LOG_LINE_MAX; /* the end always fits */
	buf_puts(&line, log_json ? "}\n" : "\n");
	/* Nowhere to complain when standard error is gone; the program goes on. */
	if (write_all(STDERR_FILENO, line.data, line.length) < 0)
		return;
}
