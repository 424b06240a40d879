/*
 * metrics.c - see metrics.h.
 *
 * The table (metrics.def) makes three kinds of static arrays: the values of each label, the bounds of each histogram,
 * and the cells of each metric, one group for each pair of its labels' values. Counting finds the two values and adds
 * to a cell; printing reads all cells one after the other. Nothing is locked for either, so a print that runs at the
 * same time as counting may see the bucket of an observation and not yet its sum; the count that it prints is the sum
 * of the buckets that it has read, so that both agree, as the formats demand.
 *
 * A label grows only at its end, under a lock, and its count is published after the value: who reads the count finds
 * all values before it.
 *
 * No histogram with two labels is printed before its first observation: 40 methods would be a page of zeros. All else
 * is printed from the start on, because a rate cannot see a counter that begins with its first event.
 */
#include "metrics.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util.h"
#include "version.h"

enum {
#define METRICS_LABEL(symbol, name, room, ...) ROOM_##symbol = (room),
#include "metrics.def"
};
enum {
#define METRICS_BOUNDS(symbol, count, ...) COUNT_##symbol = (count),
#include "metrics.def"
};

/* Value 0 is "other"; what is before `count` never changes. */
struct label {
	const char *name;
	size_t room;
	const char **values;
	atomic_size_t count;
};
#define METRICS_LABEL(symbol, name, room, ...)                                                                         \
	static const char *values_##symbol[(room) + 1] = {"other", ##__VA_ARGS__};
#include "metrics.def"
static struct label labels[METRICS_LABELS] = {
#define METRICS_LABEL(symbol, name_, room_, ...)                                                                       \
	[METRICS_##symbol] = {                                                                                         \
		.name = (name_),                                                                                       \
		.room = (room_),                                                                                       \
		.values = values_##symbol,                                                                             \
		.count = sizeof((const char *[]){"other", ##__VA_ARGS__}) / sizeof(const char *),                      \
	},
#include "metrics.def"
};
static pthread_mutex_t declaring = PTHREAD_MUTEX_INITIALIZER;

struct bounds {
	size_t count;
	const int64_t *items;
};
#define METRICS_BOUNDS(symbol, count, ...) static const int64_t bounds_##symbol[] = {__VA_ARGS__};
#include "metrics.def"

/* A counter or gauge has one cell, a histogram one for each bucket, +Inf and the sum. */
enum kind { COUNTER, GAUGE, HISTOGRAM };
struct family {
	const char *name, *help;
	enum kind kind;
	enum metrics_label labels[2];
	struct bounds bounds;
	int64_t scale;
	_Atomic int64_t *cells;
};
#define METRIC(symbol, name, kind, first, second, bounds, scale, help)                                                 \
	static _Atomic int64_t cells_##symbol[(ROOM_##first + 1) * (ROOM_##second + 1) *                               \
					      ((kind) == HISTOGRAM ? COUNT_##bounds + 2 : 1)];
#include "metrics.def"
static const struct family families[METRICS] = {
#define METRIC(symbol, name_, kind_, first, second, buckets, scale_, help_)                                            \
	[METRIC_##symbol] = {.name = (name_),                                                                          \
			     .help = (help_),                                                                          \
			     .kind = (kind_),                                                                          \
			     .labels = {METRICS_##first, METRICS_##second},                                            \
			     .bounds = {COUNT_##buckets, bounds_##buckets},                                            \
			     .scale = (scale_),                                                                        \
			     .cells = cells_##symbol},
#include "metrics.def"
};

static size_t find(const struct label *label, const char *value)
{
	const size_t count = atomic_load_explicit(&label->count, memory_order_acquire);

	for (size_t i = 1; value && i < count; i++)
		if (streq(label->values[i], value))
			return i;
	return 0;
}

void metrics_declare(enum metrics_label which, const char *value)
{
	struct label *label = &labels[which];

	pthread_mutex_lock(&declaring);
	const size_t count = atomic_load_explicit(&label->count, memory_order_relaxed);

	if (!find(label, value) && count <= label->room) {
		label->values[count] = xstrdup(value);
		atomic_store_explicit(&label->count, count + 1, memory_order_release);
	}
	pthread_mutex_unlock(&declaring);
}

const char *metrics_pair(char ret[METRICS_PAIR], const char *first, const char *second)
{
	snprintf(ret, METRICS_PAIR, "%s,%s", first, second);
	return ret;
}

/* -------- counting ------------------------------------------------------------------------------------ */

static size_t width(const struct family *family)
{
	return family->kind == HISTOGRAM ? family->bounds.count + 2 : 1;
}

static _Atomic int64_t *cells_at(const struct family *family, size_t first, size_t second)
{
	return family->cells + (first * (labels[family->labels[1]].room + 1) + second) * width(family);
}

static _Atomic int64_t *cells_of(const struct family *family, const char *first, const char *second)
{
	/* METRICS_NONE has one value, "". */
	const size_t a = family->labels[0] == METRICS_NONE ? 1 : find(&labels[family->labels[0]], first);
	const size_t b = family->labels[1] == METRICS_NONE ? 1 : find(&labels[family->labels[1]], second);

	return cells_at(family, a, b);
}

static void add(_Atomic int64_t *cell, int64_t amount)
{
	atomic_fetch_add_explicit(cell, amount, memory_order_relaxed);
}

void metrics_add(enum metric metric, const char *first, const char *second, int64_t amount)
{
	add(cells_of(&families[metric], first, second), amount);
}

void metrics_set(enum metric metric, const char *first, int64_t value)
{
	atomic_store_explicit(cells_of(&families[metric], first, NULL), value, memory_order_relaxed);
}

void metrics_observe(enum metric metric, const char *first, const char *second, int64_t value)
{
	const struct family *family = &families[metric];
	_Atomic int64_t *cells = cells_of(family, first, second);
	size_t bucket = 0;

	while (bucket < family->bounds.count && value > family->bounds.items[bucket])
		bucket++;
	add(&cells[bucket], 1);
	add(&cells[family->bounds.count + 1], value);
}

/* -------- this process -------------------------------------------------------------------------------- */

static int64_t count_fds(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int64_t count = -3; /* ".", ".." and the folder itself */

	if (!folder)
		return 0;
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static int64_t microseconds(struct timeval time)
{
	return time.tv_sec * INT64_C(1000000) + time.tv_usec;
}

/* Fields of /proc/self/stat behind the program's name, which may hold anything: 22 is the start, 24 resident pages. */
static void read_stat(int64_t *ret_ticks, int64_t *ret_pages)
{
	char text[1024] = "";
	FILE *file = fopen("/proc/self/stat", "re");
	size_t length = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	char *field = memrchr(text, ')', length), *rest = NULL;
	int number = 2;

	if (file)
		fclose(file);
	*ret_ticks = *ret_pages = 0;
	for (field = field ? strtok_r(field + 1, " ", &rest) : NULL; field; field = strtok_r(NULL, " ", &rest)) {
		number++;
		if (number == 22)
			*ret_ticks = strtoll(field, NULL, 10);
		else if (number == 24)
			*ret_pages = strtoll(field, NULL, 10);
	}
}

void metrics_process(void)
{
	struct rusage usage = {0};
	struct rlimit limit = {0};
	struct timespec up = {0};
	int64_t ticks, pages;

	getrusage(RUSAGE_SELF, &usage);
	getrlimit(RLIMIT_NOFILE, &limit);
	clock_gettime(CLOCK_BOOTTIME, &up);
	read_stat(&ticks, &pages);
	metrics_set(METRIC_BUILD, SALLYPORT_VERSION, 1);
	metrics_set(METRIC_PROCESS_CPU, NULL, microseconds(usage.ru_utime) + microseconds(usage.ru_stime));
	metrics_set(METRIC_PROCESS_MEMORY, NULL, pages * sysconf(_SC_PAGESIZE));
	metrics_set(METRIC_PROCESS_FDS, NULL, count_fds());
	metrics_set(METRIC_PROCESS_FDS_MAX, NULL, (int64_t)limit.rlim_cur);
	metrics_set(METRIC_PROCESS_START, NULL, clock_now_us() / 1000000 - up.tv_sec + ticks / sysconf(_SC_CLK_TCK));
}

/* -------- showing ------------------------------------------------------------------------------------- */

static void put_value(struct buf *out, int64_t value, int64_t scale)
{
	if (scale == 1)
		buf_printf(out, "%lld", (long long)value);
	else
		buf_printf(out, "%lld.%06lld", (long long)(value / scale), (long long)(value % scale));
}

/* A name with a comma is two labels, and its values are pairs. */
static void put_label(struct buf *out, char *before, const struct label *label, size_t at)
{
	const char *name = label->name, *value = label->values[at];

	while (*name != '\0') {
		const size_t length = strcspn(name, ",");
		const char *end = name[length] == ',' ? value + strcspn(value, ",") : value + strlen(value);

		buf_printf(out, "%c%.*s=\"", *before, (int)length, name);
		for (; value < end; value++) {
			if (*value == '\\' || *value == '"')
				buf_putc(out, '\\');
			buf_putc(out, *value == '\n' ? ' ' : *value);
		}
		buf_putc(out, '"');
		*before = ',';
		name += length + (name[length] == ',');
		value += *value == ',';
	}
}

/* "name_suffix{first="…",second="…",le="…"} " */
static void put_series(struct buf *out, const struct family *family, const char *suffix, const size_t at[2],
		       const int64_t *le)
{
	char before = '{';

	buf_printf(out, "%s%s", family->name, suffix);
	for (size_t i = 0; i < 2; i++)
		if (family->labels[i] != METRICS_NONE)
			put_label(out, &before, &labels[family->labels[i]], at[i]);
	if (le) {
		buf_printf(out, "%cle=\"", before);
		if (le == family->bounds.items + family->bounds.count)
			buf_puts(out, "+Inf");
		else {
			/* 0.05, 1.0, 16777216.0: OpenMetrics wants floats. */
			int64_t bound = *le;

			char text[40];
			int length = family->scale == 1 ? snprintf(text, sizeof(text), "%lld.0", (long long)bound)
							: snprintf(text, sizeof(text), "%lld.%06lld",
								   (long long)(bound / family->scale),
								   (long long)(bound % family->scale));

			while (length > 2 && text[length - 1] == '0' && text[length - 2] != '.')
				text[--length] = '\0';
			buf_puts(out, text);
		}
		buf_putc(out, '"');
		before = ',';
	}
	buf_puts(out, before == ',' ? "} " : " ");
}

static bool counted(const struct family *family, _Atomic int64_t *cells)
{
	for (size_t i = 0; i < width(family); i++)
		if (atomic_load_explicit(&cells[i], memory_order_relaxed) != 0)
			return true;
	return false;
}

/* A histogram with two labels would be a page of zeros: its series begin with their first observation. */
static void put_one(struct buf *out, const struct family *family, const size_t at[2])
{
	_Atomic int64_t *cells = cells_at(family, at[0], at[1]);
	const bool sparse = family->kind == HISTOGRAM && family->labels[1] != METRICS_NONE;

	if ((at[0] == 0 || at[1] == 0 || sparse) && !counted(family, cells))
		return;
	if (family->kind == HISTOGRAM) {
		const size_t count = family->bounds.count;
		int64_t seen = 0;

		for (size_t i = 0; i <= count; i++) {
			seen += atomic_load_explicit(&cells[i], memory_order_relaxed);
			put_series(out, family, "_bucket", at, family->bounds.items + i);
			buf_printf(out, "%lld\n", (long long)seen);
		}
		put_series(out, family, "_sum", at, NULL);
		put_value(out, atomic_load_explicit(&cells[count + 1], memory_order_relaxed), family->scale);
		buf_putc(out, '\n');
		put_series(out, family, "_count", at, NULL);
		buf_printf(out, "%lld\n", (long long)seen);
		return;
	}
	put_series(out, family, family->kind == COUNTER ? "_total" : "", at, NULL);
	put_value(out, atomic_load_explicit(&cells[0], memory_order_relaxed), family->scale);
	buf_putc(out, '\n');
}

static void put_family(struct buf *out, const struct family *family, bool open_metrics)
{
	static const char *const kinds[] = {"counter", "gauge", "histogram"};
	const char *suffix = family->kind == COUNTER && !open_metrics ? "_total" : "";
	size_t at[2];

	buf_printf(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", family->name, suffix, family->help, family->name, suffix,
		   kinds[family->kind]);
	for (at[0] = 0; at[0] < atomic_load(&labels[family->labels[0]].count); at[0]++)
		for (at[1] = 0; at[1] < atomic_load(&labels[family->labels[1]].count); at[1]++)
			put_one(out, family, at);
}

void metrics_print(struct buf *out, bool open_metrics)
{
	for (size_t i = 0; i < METRICS_SERVED; i++)
		put_family(out, &families[i], open_metrics);
	if (open_metrics)
		buf_puts(out, "# EOF\n");
}

/* -------- a command's file ---------------------------------------------------------------------------- */

/* "name{label="value"} 12" or "name 12" of a gauge of commands, as put_series wrote it. */
static void read_line(char *line)
{
	char *value = strrchr(line, ' '), *label = strchr(line, '{');
	char *text = label ? strchr(label, '"') : NULL, *end = text ? strrchr(text + 1, '"') : NULL;

	if (!value || (label && !end))
		return;
	*value++ = '\0';
	if (label) {
		*label = *end = '\0';
		text++;
	}
	for (size_t i = METRICS_SERVED; i < METRICS; i++) {
		const struct family *family = &families[i];

		if (!streq(family->name, line) || (family->labels[0] == METRICS_NONE) != (label == NULL))
			continue;
		if (label)
			metrics_declare(family->labels[0], text);
		metrics_set((enum metric)i, text, strtoll(value, NULL, 10));
	}
}

int metrics_read(const char *path, struct err *err)
{
	auto_free char *text = NULL;
	char *rest = NULL;
	int result = read_file_at(AT_FDCWD, path, METRICS_FILE_MAX, &text, NULL, err);

	if (result < 0)
		return access(path, F_OK) < 0 && errno == ENOENT ? 0 : result;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (line[0] != '#')
			read_line(line);
	return 0;
}

int metrics_write(const char *path, struct err *err)
{
	auto_free char *part = xasprintf("%s.part", path);
	auto_buf struct buf text = {0};

	buf_init(&text, METRICS_FILE_MAX);
	for (size_t i = METRICS_SERVED; i < METRICS; i++) {
		bool any = false;

		for (size_t at = 0; at < atomic_load(&labels[families[i].labels[0]].count); at++)
			any = any || counted(&families[i], cells_at(&families[i], at, 1));
		if (any)
			put_family(&text, &families[i], false);
	}
	auto_close int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	/* Another account reads it, whatever our umask is. */
	if (fd < 0 || fchmod(fd, 0644) < 0 || write_all(fd, text.data, text.length) < 0 || rename(part, path) < 0)
		return err_errno(err, "writing %s", path);
	return 0;
}
