/*
 * util.c - see util.h.
 *
 * Strings and numbers; whole files, and descriptors that are written in full; clocks. Memory is memory.c. Every
 * function works alone and keeps no state, so any thread may use all of them. Functions that read or write continue
 * after EINTR; functions that read know their maximum before they begin and never allocate more than one byte beyond
 * it.
 */
#include "util.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define STR_NEAR_ERRORS 2
#define READ_STEP       65536

void close_pointer(const int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}

void fd_close(int *fd)
{
	close_pointer(fd);
	*fd = -1;
}

void fclose_pointer(FILE **file)
{
	if (*file != NULL)
		fclose(*file);
}

bool str_starts(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *text, const char *suffix)
{
	size_t length = strlen(text), n = strlen(suffix);

	return length >= n && streq(text + length - n, suffix);
}

/* Levenshtein distance, one row at a time. */
bool str_near(const char *a, const char *b)
{
	size_t a_length = strlen(a), b_length = strlen(b);
	unsigned char row[STR_NEAR_MAX + 1];

	if (a_length > STR_NEAR_MAX || b_length > STR_NEAR_MAX)
		return strcasecmp(a, b) == 0;
	for (size_t j = 0; j <= b_length; j++)
		row[j] = (unsigned char)j;
	for (size_t i = 1; i <= a_length; i++) {
		unsigned char diagonal = row[0];

		row[0] = (unsigned char)i;
		for (size_t j = 1; j <= b_length; j++) {
			bool same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);
			unsigned char best = (unsigned char)(diagonal + !same);

			best = MIN(best, MIN(row[j], row[j - 1]) + 1);
			diagonal = row[j];
			row[j] = best;
		}
	}
	/* Two letters of three changed make another word, not a typing error. */
	return row[b_length] <= STR_NEAR_ERRORS && 2 * (size_t)row[b_length] <= MAX(a_length, b_length);
}

uint64_t fnv1a(uint64_t hash, const void *data, size_t length)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

int parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;

	if (*text == '\0' || (text[0] == '0' && text[1] != '\0'))
		return -1;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return -1;
	}
	if (value < min || value > max)
		return -1;
	*ret = value;
	return 0;
}

int read_fd(int fd, size_t max, char **ret, size_t *ret_length, struct err *err)
{
	struct stat st;
	size_t length = 0, size = READ_STEP;
	auto_free char *data = NULL;

	/* The size is only a hint: files in /proc say 0, files may grow. One byte more than max distinguishes "exactly
	 * max" from "more". */
	if (fstat(fd, &st) == 0 && st.st_size > 0)
		size = (size_t)st.st_size + 1;
	size = MIN(size, max + 1);
	data = xmalloc(size + 1);
	for (;;) {
		ssize_t got = read(fd, data + length, size - length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(err, "reading");
		if (got == 0)
			break;
		length += (size_t)got;
		if (length > max)
			return err_set(err, ERR_LIMIT, "larger than the allowed %zu bytes", max);
		if (length == size) {
			size = MIN(size * 2, max + 1);
			data = xrealloc(data, size + 1, 1);
		}
	}
	data[length] = '\0';
	*ret = steal(&data);
	if (ret_length != NULL)
		*ret_length = length;
	return 0;
}

int read_file_at(int at, const char *path, size_t max, char **ret, size_t *ret_length, struct err *err)
{
	auto_close int fd = openat(at, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct err why = ERR_INIT;

	if (fd < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "%s: %s", path, strerror(ENOENT));
	if (fd < 0)
		return err_errno(err, "%s", path);
	if (read_fd(fd, max, ret, ret_length, &why) < 0)
		return err_set(err, why.code, "%s: %s", path, why.text);
	return 0;
}

char *path_to_replace(const char *path, bool *ret_special)
{
	char *real = realpath(path, NULL);
	struct stat st;

	*ret_special = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
	return real ? real : xstrdup(path);
}

int write_all(int fd, const void *data, size_t length)
{
	const char *from = data;

	while (length > 0) {
		ssize_t written = write(fd, from, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -1;
		from += written;
		length -= (size_t)written;
	}
	return 0;
}

int memfd_with(const char *name, const void *data, size_t length)
{
	auto_close int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0 || write_all(fd, data, length) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	return steal_fd(&fd);
}

int fill_standard_fds(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR); /* inherited, as the ones that are there */
	while (fd >= 0 && fd <= STDERR_FILENO);
	return fd < 0 ? -1 : close(fd);
}

static int64_t clock_us(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now); /* cannot fail for these two clocks */
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_now_us(void)
{
	return clock_us(CLOCK_REALTIME);
}

int64_t clock_monotonic_us(void)
{
	return clock_us(CLOCK_MONOTONIC);
}

/* By hand, as every line of the log has a time: printf takes ten times as long for seven numbers. */
void clock_text(int64_t us, char buffer[CLOCK_TEXT_SIZE])
{
	int64_t fraction = us % 1000000;
	time_t seconds = (time_t)(us / 1000000);
	struct tm parts;
	char *at = buffer;

	if (fraction < 0) { /* before 1970 */
		fraction += 1000000;
		seconds--;
	}
	if (gmtime_r(&seconds, &parts) == NULL)
		memset(&parts, 0, sizeof(parts)); /* a year beyond int: shown as 1900-01-00 */
	const int year = MAX(parts.tm_year + 1900, 0);
	const struct {
		int value, count;
		char behind;
	} fields[] = {{year, year > 9999 ? 6 : 4, '-'}, {parts.tm_mon + 1, 2, '-'}, {parts.tm_mday, 2, 'T'},
		      {parts.tm_hour, 2, ':'},          {parts.tm_min, 2, ':'},     {parts.tm_sec, 2, '.'},
		      {(int)fraction, 6, 'Z'}};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		for (int k = fields[i].count, value = fields[i].value; k-- > 0; value /= 10)
			at[k] = (char)('0' + value % 10);
		at += fields[i].count;
		*at++ = fields[i].behind;
	}
	*at = '\0';
}
