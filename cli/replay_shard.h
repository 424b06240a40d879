/* replay_shard.h - which part of the executions is this process's; by a hash of the id, so that one more moves no
 * other. */
#pragma once

#include "lib/store/transfer/store_results.h"

#define REPLAY_SHARDS_MAX 100000

struct replay_shard {
	int number, count; /* from 1; count 0: all of them */
};
/* `text`: K/N, or /N where a variable of the batch system says K, or NULL where variables may say both. */
int replay_shard_choose(const char *text, struct replay_shard *ret, struct err *err);
/* The number of the shard that an execution belongs to. */
int replay_shard_of(const char *id, int count);

/* The files of all shards. */
struct replay_shards {
	struct store_results **files; /* by number - 1; NULL: not there */
	int count;
	char key[SHA256_HEX_SIZE];
};
#define auto_shards __attribute__((cleanup(replay_shards_clear)))
void replay_shards_clear(struct replay_shards *shards);
/* To be cleared also where it fails. ERR_INVALID: a file of another replay, or the same shard twice. A file that is not
 * there, or has no results, is named on standard error; count 0: all of them. */
int replay_shards_open(const char *const *paths, size_t count, struct replay_shards *ret, struct err *err);
/* Of class "missing" where no file has one. */
int replay_shards_result(const struct replay_shards *shards, const char *id, int64_t generation,
			 struct store_result *ret, struct err *err);
/* How many files are not there; says so on standard error. */
int replay_shards_missing(const struct replay_shards *shards);
