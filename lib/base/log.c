/* log.c - see log.h. */
#include "log.h"

#include <stdarg.h>
#include <unistd.h>

#include "buf.h"
#include "metrics.h"
#include "utf8.h"
#include "util.h"

#define LOG_LINE_MAX 4096   /* below PIPE_BUF: lines of several processes on one pipe do not mix */
#define LOG_VALUE_MAX 1024

static const char *log_program = "sallyport";
static enum log_level log_least = LOG_INFO;

void log_open(const char *program, enum log_level least)
{
	log_program = program;
	log_least = least;
}

static const char *level_name(enum log_level level)
{
	static const char *const names[] = {"debug", "info", "warn", "error"};

	return (unsigned)level < ARRAY_SIZE(names) ? names[level] : "error";
}

/* Reads as one word, and needs no care. */
static bool is_word(const char *value)
{
	const char *c = value;

	while (*c > ' ' && *c < 0x7f && *c != '"' && *c != '=' && *c != '\\')
		c++;
	return *c == '\0' && c > value && c - value <= LOG_VALUE_MAX;
}

/* A value is quoted when it would not read as one word; quotes and backslashes inside are escaped then. */
static void add_value(struct buf *line, const char *value)
{
	auto_buf struct buf text = {0};

	if (is_word(value)) { /* nearly every one, in a line for each request */
		buf_puts(line, value);
		return;
	}
	size_t length = strlen(value), shown = utf8_cut(value, length, LOG_VALUE_MAX);

	buf_init(&text, 4 * LOG_VALUE_MAX);
	utf8_printable(&text, value, shown);
	if (shown < length)
		buf_puts(&text, "…");
	if (text.length > 0 && strpbrk(text.data, " \"=\\") == NULL) {
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
	buf_printf(&line, "%s %s %s %s", time, level_name(level), log_program, event);
	va_start(pairs, event);
	while ((key = va_arg(pairs, const char *)) != NULL) {
		const char *value = va_arg(pairs, const char *);

		buf_putc(&line, ' ');
		buf_puts(&line, key);
		buf_putc(&line, '=');
		add_value(&line, value != NULL ? value : "-");
	}
	va_end(pairs);
	line.overflow = false;
	line.max = LOG_LINE_MAX; /* the newline always fits */
	buf_putc(&line, '\n');
	/* Nowhere to complain when standard error is gone; the program goes on. */
	if (write_all(STDERR_FILENO, line.data, line.length) < 0)
		return;
}
