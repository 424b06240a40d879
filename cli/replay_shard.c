/*
 * replay_shard.c - which part of the executions is this shard's, and the results of all shards together.
 *
 * An execution belongs to a shard by the hash of its id. The file of a shard says which one it is and under which key
 * its results are: files of replays that differ in runners, options or number of shards are refused.
 */
#include "replay_batch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "replay.h"

#define VARIABLE_MAX 1000000000 /* Slurm's indices may be larger than there are shards */

/* 1: it has a number; 0: it is not there. */
static int variable(const char *name, int *ret, struct err *err)
{
	const char *text = name ? getenv(name) : NULL;
	uint64_t value;

	if (!text || !*text)
		return 0;
	if (parse_u64(text, 0, VARIABLE_MAX, &value) < 0)
		return err_set(err, ERR_INVALID, "%s is '%s', which is not the number of a shard: give --shard K/N",
			       name, text);
	*ret = (int)value;
	return 1;
}

/* What Slurm's arrays, Kubernetes' indexed jobs and Bazel say; numbers begin at 0 or at MIN, and Slurm's may go up
 * by more than 1. 1: there is a shard, 0: nothing was said. */
static int from_environment(struct replay_shard *ret, struct err *err)
{
	static const struct {
		const char *index, *count, *least, *step;
	} sources[] = {
		{"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP"},
		{"TEST_SHARD_INDEX", "TEST_TOTAL_SHARDS", NULL, NULL},
		{"JOB_COMPLETION_INDEX", NULL, NULL, NULL}, /* the number of shards is what --shard /N says */
	};

	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		int index = 0, least = 0, step = 1, count = ret->count;
		int counted = count > 0 ? 1 : variable(sources[i].count, &count, err);
		int found = counted > 0 ? variable(sources[i].index, &index, err) : counted;

		if (found > 0 && variable(sources[i].least, &least, err) < 0)
			found = -1;
		if (found > 0 && variable(sources[i].step, &step, err) < 0)
			found = -1;
		if (found > 0)
			*ret = (struct replay_shard){(index - least) / MAX(step, 1) + 1, count};
		if (found != 0)
			return found;
	}
	return 0;
}

/* K/N or /N. */
static int parse(const char *text, struct replay_shard *ret, struct err *err)
{
	const char *slash = strchr(text, '/');
	auto_free char *before = slash ? xstrndup(text, (size_t)(slash - text)) : NULL;
	uint64_t number = 0, count = 0;

	if (!slash || parse_u64(slash + 1, 1, REPLAY_SHARDS_MAX, &count) < 0 ||
	    (*before && parse_u64(before, 1, count, &number) < 0))
		return err_set(err, ERR_INVALID, "--shard takes K/N, K from 1 to N, N at most %d", REPLAY_SHARDS_MAX);
	*ret = (struct replay_shard){(int)number, (int)count};
	return number > 0;
}

int replay_shard_choose(const char *text, struct replay_shard *ret, struct err *err)
{
	struct replay_shard shard = {0};
	int said = text ? parse(text, &shard, err) : 0;

	if (said == 0)
		said = from_environment(&shard, err);
	if (said < 0)
		return -ERR_INVALID;
	if (said == 0 && text)
		return err_set(err, ERR_INVALID, "--shard %s: no variable says which of them this is", text);
	if (shard.count > REPLAY_SHARDS_MAX)
		return err_set(err, ERR_INVALID, "%d shards are more than %d", shard.count, REPLAY_SHARDS_MAX);
	if (shard.count > 0 && (shard.number < 1 || shard.number > shard.count))
		return err_set(err, ERR_INVALID, "there is no shard %d of %d", shard.number, shard.count);
	if (shard.count > 0) {
		/* Bazel wants to know that the program shards. */
		const char *path = getenv("TEST_SHARD_STATUS_FILE");

		if (path && *path)
			close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	}
	*ret = shard;
	return 0;
}

int replay_shard_of(const char *id, int count)
{
	char hash[SHA256_HEX_SIZE];

	sha256_hex(id, strlen(id), hash);
	hash[8] = '\0';
	return (int)(strtoul(hash, NULL, 16) % (unsigned)count) + 1;
}

/* -------- together ------------------------------------------------------------------------------------- */

void replay_shards_clear(struct replay_shards *shards)
{
	for (int i = 0; i < shards->count; i++)
		store_results_close(shards->files[i]);
	free(shards->files);
}

static int add_shard(struct replay_shards *shards, const char *path, struct err *err)
{
	struct store_results *results = NULL;
	struct store_shard shard = {0};
	bool there = access(path, F_OK) == 0 || errno != ENOENT;
	int result = there ? store_results_open(path, false, &results, err) : 0;

	if (there && result == 0)
		result = store_results_shard_read(results, &shard, err);
	if (result == 0) { /* it never began, or was killed as it did */
		fprintf(stderr, "sallyport: %s %s\n", path, there ? "has no results" : "is not there");
		store_results_close(results);
		return 0;
	}
	if (result > 0 && shards->count == 0) {
		shards->count = shard.count;
		shards->files = xcalloc((size_t)shard.count, sizeof(struct store_results *));
		memcpy(shards->key, shard.key, sizeof(shards->key));
	}
	if (result > 0 && (shard.count != shards->count || !streq(shard.key, shards->key)))
		result = err_set(err, ERR_INVALID,
				 "%s is of another replay: other runners, other options or another number of shards",
				 path);
	if (result > 0 && shards->files[shard.number - 1])
		result = err_set(err, ERR_INVALID, "%s: shard %d is there twice", path, shard.number);
	if (result < 0) {
		store_results_close(results);
		return result;
	}
	shards->files[shard.number - 1] = results;
	return 0;
}

int replay_shards_open(const char *const *paths, size_t count, struct replay_shards *ret, struct err *err)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < count; i++)
		result = add_shard(ret, paths[i], err);
	return result;
}

int replay_shards_result(const struct replay_shards *shards, const char *id, int64_t generation,
			 struct store_result *ret, struct err *err)
{
	struct store_results *file = shards->files[replay_shard_of(id, shards->count) - 1];
	struct replay_report report = {.class = REPLAY_MISSING};
	char key[SHA256_HEX_SIZE];

	replay_settings_item_key(shards->key, generation, key);
	int found = file ? store_results_get(file, id, key, ret, err) : 0;

	if (found == 0)
		replay_result(&report, id, "", NULL, ret);
	return MIN(found, 0);
}

int replay_shards_missing(const struct replay_shards *shards)
{
	int missing = 0;

	for (int i = 0; i < shards->count; i++) {
		if (shards->files[i])
			continue;
		fprintf(stderr, "sallyport: shard %d of %d is missing\n", i + 1, shards->count);
		missing++;
	}
	return missing;
}
