/* erasures.c - see erasures.h. */
#include "erasures.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/util.h"
#include "lib/store/retention/store_erasures.h"

#define LINE_MAX_BYTES 256

struct repeating {
	struct store *store;
	int64_t entries, repeated;
	struct err *err;
	int result;
};

static int repeat_each(void *arg, const struct store_erasure *erasure)
{
	struct repeating *repeating = arg;
	struct store_erased erased = {0};

	if (erasure->n < repeating->entries)
		return 0;
	repeating->result = store_erasures_repeat(repeating->store, erasure, &erased, repeating->err);
	repeating->repeated += erased.executions + erased.conversations;
	return repeating->result;
}

static int from_file(struct repeating *repeating, const char *from)
{
	FILE *file = fopen(from, "re");
	char line[LINE_MAX_BYTES];
	int result = file ? 0 : err_errno(repeating->err, "%s", from);

	for (int64_t number = 1; result == 0 && fgets(line, sizeof(line), file); number++) {
		struct store_erasure erasure = {0};
		long long n = -1;
		int end = 0;

		if (sscanf(line, "%lld %79s %15s %n", &n, erasure.object, erasure.what, &end) < 3 || n < 0 || line[end])
			result = err_set(
				repeating->err, ERR_INVALID,
				"%s, line %lld: a number, an object and the erased part are expected, as sallyport forget --list prints them",
				from, (long long)number);
		erasure.n = n;
		if (result == 0)
			result = repeat_each(repeating, &erasure);
	}
	if (file)
		fclose(file);
	return result;
}

int erasures_repeat(const struct config *config, const char *from, int64_t entries, int64_t *ret_repeated,
		    struct err *err)
{
	auto_store struct store *store = NULL, *newer = NULL;
	struct repeating repeating = {.entries = entries, .err = err};
	struct stat st;
	int result = store_open(config->data_dir, STORE_WRITE, &store, err);

	if (result == 0 && stat(from, &st) < 0)
		result = err_errno(err, "%s", from);
	if (result < 0)
		return result;
	repeating.store = store;
	if (!S_ISDIR(st.st_mode))
		result = from_file(&repeating, from);
	else if ((result = store_open(from, STORE_READ, &newer, err)) == 0)
		result = store_erasures_list(newer, repeat_each, &repeating, err);
	if (result == 0)
		result = repeating.result;
	*ret_repeated = repeating.repeated;
	return result < 0 ? err_wrap(err, "repeating erasures") : 0;
}
