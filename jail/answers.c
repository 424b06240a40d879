/*
 * answers.c - see answers.h.
 *
 * A record is a line, then the answer's bytes, then a line's end:
 *
 *     answer python version 5d0c… ok 14 9f31…        runner, command, key, ok or failed, bytes, checksum
 *     Python 3.11.2
 *
 * Reading ends at the first record that is not whole. The sums are FNV-1a: they find accidents. An account that can
 * write the file on purpose is the jailer's own.
 */
#include "answers.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/util.h"

#define FILE_MAX    (16 * 1024 * 1024)
#define ANSWERS_MAX 1024
#define HEAD_MAX    256

static uint64_t sum_text(uint64_t sum, const char *text)
{
	return fnv1a(sum, text, strlen(text) + 1);
}

/* -------- what answers depend on ---------------------------------------------------------------------- */

/* The file that the path leads to, whatever it is: its identity, or that it is not there. */
static uint64_t sum_file(uint64_t sum, const char *path)
{
	struct stat st;

	sum = sum_text(sum, path);
	if (stat(path, &st) < 0)
		return sum_text(sum, "");
	const int64_t facts[] = {(int64_t)st.st_dev,       (int64_t)st.st_ino,     st.st_size,
				 st.st_mtim.tv_sec, st.st_mtim.tv_nsec, st.st_ctim.tv_sec,
				 st.st_ctim.tv_nsec};

	return fnv1a(sum, facts, sizeof(facts));
}

static uint64_t sum_files(uint64_t sum, struct json_object *patterns)
{
	for (size_t i = 0; patterns && i < json_object_array_length(patterns); i++) {
		const char *pattern = json_object_get_string(json_object_array_get_idx(patterns, i));
		glob_t list;

		if (glob(pattern, 0, NULL, &list) == 0)
			for (size_t k = 0; k < list.gl_pathc; k++)
				sum = sum_file(sum, list.gl_pathv[k]);
		globfree(&list);
	}
	return sum;
}

uint64_t answers_key(const struct runner *runner)
{
	/* Installing a package rewrites one of these: for whatever else a command reads. */
	static const char *const system[] = {"/var/lib/dpkg/status", "/var/lib/rpm/rpmdb.sqlite",
					     "/lib/apk/db/installed", "/etc/ld.so.cache"};
	const struct bind_strings *const commands[] = {&runner->version, &runner->libraries, &runner->cache};
	const char *root = runner->rootfs ? runner->rootfs : "";
	uint64_t sum = sum_file(FNV1A_BEGIN, "/proc/self/exe");

	if (runner->binds.count)
		return 0;
	sum = sum_text(sum, json_object_to_json_string_ext(runner->document, JSON_C_TO_STRING_PLAIN));
	if (runner->on_host)
		sum = sum_file(sum, runner->on_host);
	for (size_t i = 0; i < ARRAY_SIZE(system); i++) {
		auto_free char *path = xasprintf("%s%s", root, system[i]);

		sum = sum_file(sum, path);
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		for (size_t k = 0; k < commands[i]->count; k++) {
			auto_free char *path = xasprintf("%s%s", root, commands[i]->items[k]);

			if (commands[i]->items[k][0] == '/')
				sum = sum_file(sum, path);
		}
	sum = sum_files(sum, runner->libraries_on_host);
	return sum_files(sum, runner->answers_on_host);
}

/* -------- the file ------------------------------------------------------------------------------------ */

static bool is_own(int fd, uid_t owner)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == owner && st.st_nlink == 1 &&
	       !(st.st_mode & 0177);
}

int answers_open(const char *socket_path, uid_t owner)
{
	const char *slash = strrchr(socket_path, '/');
	auto_free char *folder = slash ? xstrndup(socket_path, (size_t)(slash - socket_path) + 1) : xstrdup(".");
	auto_free char *name = xasprintf("%s.answers", slash ? slash + 1 : socket_path);
	auto_close int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (directory < 0 || fstat(directory, &st) < 0 || (st.st_uid != owner && st.st_uid != 0) || st.st_mode & 022) {
		log_event(LOG_INFO, "versions are not kept: other accounts may write next to the socket", "folder",
			  folder, NULL);
		return -1;
	}
	auto_close int fd = openat(directory, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0 && is_own(fd, owner))
		return steal_fd(&fd);
	if (fd >= 0 || errno != ENOENT)
		log_event(LOG_WARN, "replaced a file that was not the jailer's own", "file", name, NULL);
	fd_close(&fd);
	unlinkat(directory, name, 0);
	fd = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		log_event(LOG_WARN, "versions are not kept", "file", name, "why", strerror(errno), NULL);
	return steal_fd(&fd);
}

static uint64_t sum_answer(const struct answer *answer)
{
	uint64_t sum = sum_text(sum_text(FNV1A_BEGIN, answer->runner), answer->command);

	sum = fnv1a(sum, &answer->key, sizeof(answer->key));
	sum = fnv1a(sum, &answer->failed, sizeof(answer->failed));
	return fnv1a(sum, answer->text, answer->length);
}

/* The record at `at`, whose text stays the file's; its bytes, or 0: that is none. */
static size_t parse(const char *at, size_t left, struct answer *ret)
{
	struct answer answer = {.text = NULL};
	const char *end = memchr(at, '\n', MIN(left, HEAD_MAX));
	uint64_t sum;
	char head[HEAD_MAX], state[8];

	if (!end)
		return 0;
	const size_t size = (size_t)(end - at) + 1;

	memcpy(head, at, size - 1);
	head[size - 1] = '\0';
	if (sscanf(head, "answer %31s %15s %" SCNx64 " %7s %zu %" SCNx64, answer.runner, answer.command, &answer.key,
		   state, &answer.length, &sum) != 6 ||
	    answer.length >= left - size || at[size + answer.length] != '\n')
		return 0;
	answer.failed = streq(state, "failed");
	answer.text = unconst(at + size);
	if (sum_answer(&answer) != sum)
		return 0;
	*ret = answer;
	return size + answer.length + 1;
}

static void print(struct buf *out, const struct answer *answer)
{
	buf_printf(out, "answer %s %s %" PRIx64 " %s %zu %" PRIx64 "\n", answer->runner, answer->command, answer->key,
		   answer->failed ? "failed" : "ok", answer->length, sum_answer(answer));
	buf_add(out, answer->length ? answer->text : "", answer->length);
	buf_putc(out, '\n');
}

/* Where that fails the file ends at `offset`. */
static void write_from(int fd, off_t offset, const struct buf *text)
{
	if (ftruncate(fd, offset) == 0 && lseek(fd, offset, SEEK_SET) >= 0 &&
	    write_all(fd, text->data, text->length) == 0)
		return;
	log_event(LOG_WARN, "the next start will ask runners for their versions again", "why", strerror(errno), NULL);
	(void)!ftruncate(fd, offset);
}

void answers_load(struct answers *answers, int fd)
{
	auto_free char *text = NULL;
	struct answer answer;
	size_t length = 0, size;

	*answers = (struct answers){.fd = fd};
	if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0 || read_fd(fd, FILE_MAX, &text, &length, NULL) < 0)
		return;
	answers->items = xcalloc(ANSWERS_MAX, sizeof(*answers->items));
	for (const char *at = text; answers->count < ANSWERS_MAX && (size = parse(at, length, &answer)) > 0;
	     at += size, length -= size) {
		answer.text = xmemdup(answer.text, answer.length);
		answers->items[answers->count++] = answer;
	}
}

const struct answer *answers_find(struct answers *answers, const char *runner, const char *command, uint64_t key)
{
	for (size_t i = 0; i < answers->count; i++) {
		struct answer *answer = &answers->items[i];

		if (answer->key == key && streq(answer->runner, runner) && streq(answer->command, command)) {
			answer->wanted = true;
			return answer;
		}
	}
	return NULL;
}

void answers_loaded(struct answers *answers)
{
	auto_buf struct buf text = {0};

	buf_init(&text, FILE_MAX);
	for (size_t i = 0; i < answers->count; i++) {
		if (answers->items[i].wanted)
			print(&text, &answers->items[i]);
		free(answers->items[i].text);
	}
	free(steal(&answers->items));
	answers->count = 0;
	if (answers->fd >= 0 && lseek(answers->fd, 0, SEEK_END) != (off_t)text.length)
		write_from(answers->fd, 0, &text);
}

void answers_keep(const struct answers *answers, const struct answer *answer)
{
	auto_buf struct buf text = {0};

	if (answers->fd < 0 || !answer->key)
		return;
	buf_init(&text, FILE_MAX);
	print(&text, answer);
	write_from(answers->fd, lseek(answers->fd, 0, SEEK_END), &text);
}
