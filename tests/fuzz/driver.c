/*
 * driver.c - runs a fuzz target over its corpus as a plain test, without libFuzzer.
 *
 *   fuzz_NAME CORPUS_FOLDER [ROUNDS [SEED]]
 *
 * A target is a function LLVMFuzzerTestOneInput that aborts (or trips a sanitizer) when a promise is broken; with clang
 * the same file links with -fsanitize=fuzzer instead of this one. Here every file of the folder is given as it is and
 * then in ROUNDS changed versions: bits flipped, bytes replaced, pieces removed, repeated, moved in from another file
 * or from a list of words that parsers trip over. The changes come from a generator with a fixed seed, so a failure
 * comes again; before each input it is put where a crash leaves it: in the file `crash-input` of $FUZZ_OUT (default:
 * the folder of this program).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include "fuzz.h"
#include "lib/base/util.h"

#define ROUNDS_DEFAULT 2000
#define SEED_DEFAULT 0x2545f4914f6cdd1d
#define INPUT_MAX 65536
#define CORPUS_MAX 1000
#define CHANGES_MAX 6

struct input {
	char *data;
	size_t length;
};

static struct input corpus[CORPUS_MAX];
static size_t n_corpus;
static uint64_t seed;
static char crash_path[PATH_MAX];
static struct input current;

static const char *const words[] = {
	"\"",
	"\\",
	"\\u0000",
	"\\ud800",
	"\\udc00",
	"{",
	"}",
	"[",
	"]",
	":",
	",",
	"null",
	"true",
	"-",
	"0",
	"1e999",
	"9223372036854775808",
	"/*",
	"*/",
	"//",
	"\n",
	"\r\n",
	"\xff",
	"\xc0\x80",
	"\xed\xa0\x80",
	"\xf4\x90\x80\x80",
	"..",
	"/",
	"%00",
	"\t",
	"=",
	";",
	"&",
	"\"a\":1,",
};

static uint64_t next(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed * 0x9e3779b97f4a7c15 >> 20) % below;
}

static void remove_piece(struct input *input, size_t at, size_t length)
{
	length = MIN(length, input->length - at);
	memmove(input->data + at, input->data + at + length, input->length - at - length);
	input->length -= length;
}

static void insert_piece(struct input *input, size_t at, const char *piece, size_t length)
{
	length = MIN(length, INPUT_MAX - input->length);
	auto_free char *copy = xmalloc(length); /* the piece may be part of the input */

	memcpy(copy, piece, length);
	memmove(input->data + at + length, input->data + at, input->length - at);
	memcpy(input->data + at, copy, length);
	input->length += length;
}

static void change(struct input *input)
{
	size_t at = next(input->length + 1), length = 1 + next(next(4) == 0 ? 200 : 8);
	const struct input *other = &corpus[next(n_corpus)];
	const char *word = words[next(ARRAY_SIZE(words))];

	switch (next(6)) {
	case 0:
		insert_piece(input, at, word, strlen(word));
		return;
	case 1:
		if (other->length > 0) {
			size_t from = next(other->length);

			insert_piece(input, at, other->data + from, MIN(length, other->length - from));
		}
		return;
	default:
		break;
	}
	if (input->length == 0)
		return;
	at = next(input->length);
	switch (next(4)) {
	case 0:
		input->data[at] ^= (char)(1 << next(8));
		break;
	case 1:
		input->data[at] = (char)next(256);
		break;
	case 2:
		remove_piece(input, at, length);
		break;
	default:
		insert_piece(input, at, input->data + at, MIN(length, input->length - at));
	}
}

/* Only async-signal-safe calls: the program is broken already. */
static void keep_input(int number)
{
	int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd >= 0 && write(fd, current.data, current.length) >= 0)
		close(fd);
	signal(number, SIG_DFL);
	raise(number);
}

static void give(const char *data, size_t length)
{
	/* A block of exactly this size: reading one byte too far is seen by the address sanitizer. */
	auto_free char *exact = xmalloc(length);

	memcpy(exact, data, length);
	current = (struct input){exact, length};
	LLVMFuzzerTestOneInput((const uint8_t *)exact, length);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int read_corpus(const char *folder)
{
	struct dirent **entries;
	int count = scandir(folder, &entries, NULL, by_name);

	if (count < 0) {
		fprintf(stderr, "%s: %s\n", folder, strerror(errno));
		return -1;
	}
	for (int i = 0; i < count; i++) {
		auto_free char *path = xasprintf("%s/%s", folder, entries[i]->d_name);
		struct input *input = &corpus[n_corpus];

		if (entries[i]->d_name[0] != '.' && n_corpus < CORPUS_MAX &&
		    read_file_at(AT_FDCWD, path, INPUT_MAX, &input->data, &input->length, NULL) == 0)
			n_corpus++;
		free(entries[i]);
	}
	free(entries);
	return n_corpus > 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
	uint64_t rounds = ROUNDS_DEFAULT;
	const char *out = getenv("FUZZ_OUT");
	auto_free char *work = xmalloc(INPUT_MAX);
	auto_free char *program = xstrdup(argv[0]);
	size_t files;

	seed = SEED_DEFAULT;
	if (argc < 2 || (argc > 2 && parse_u64(argv[2], 0, UINT32_MAX, &rounds) < 0) ||
	    (argc > 3 && parse_u64(argv[3], 1, UINT64_MAX, &seed) < 0)) {
		fprintf(stderr, "usage: %s CORPUS_FOLDER [ROUNDS [SEED]]\n", argv[0]);
		return 2;
	}
	if (read_corpus(argv[1]) < 0) {
		fprintf(stderr, "%s: no corpus\n", argv[1]);
		return 2;
	}
	snprintf(crash_path, sizeof(crash_path), "%s%s", out != NULL ? out : program,
		 out != NULL ? "/crash-input" : ".crash-input");
	signal(SIGABRT, keep_input);
	signal(SIGSEGV, keep_input);
	signal(SIGBUS, keep_input);
	files = n_corpus;
	for (size_t i = 0; i < files; i++) {
		give(corpus[i].data, corpus[i].length);
		for (uint64_t round = 0; round < rounds; round++) {
			struct input input = {work, corpus[i].length};

			memcpy(work, corpus[i].data, corpus[i].length);
			for (uint64_t n = 1 + next(CHANGES_MAX); n > 0; n--)
				change(&input);
			give(input.data, input.length);
		}
	}
	for (size_t i = 0; i < files; i++)
		free(corpus[i].data);
	printf("%zu files, %llu inputs\n", files, (unsigned long long)(files * (rounds + 1)));
	return 0;
}
