/*
 * replay_batch.h - a list of executions replayed: by several threads, in shards, going on where an earlier one ended.
 * Between cmd_replay.c (options, what is opened), replay_choose.c (which executions) and replay_batch.c (the threads,
 * and what is printed in the list's order).
 */
#pragma once

#include <pthread.h>

#include "cli.h"
#include "lib/store/transfer/store_results.h"
#include "replay.h"

/* replay_shard.c: which part of the executions is this process's; by a hash of the id, so that one more moves no
 * other. */
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

#define REPLAY_JOBS_MAX 64

struct replay_options {
	struct cli_common common;
	struct cli_filter filter;
	bool all, quiet, resume, fail_fast, deterministic, live, first_bad;
	int64_t jobs, repeat;
	const char *normalise, *compare, *results, *only, *shard, *upstream_file, *old_runners;
	struct bind_strings merge, secrets, runners; /* runners: NAME=PATH */
	struct replay_bless bless;
	struct report_wanted reports;
	struct replay_normalisers normalisers;
	struct cli_priority priority;
};

struct replay_item {
	char id[ID_SIZE];
	int64_t generation; /* of what is expected */
	bool done;          /* by an earlier replay */
};

/* Results wait here for their turn to be printed; a thread that would be further ahead than this waits, too. So memory
 * does not grow with the list. */
#define REPLAY_AHEAD_MAX 256

struct replay_batch {
	const struct config *config;
	struct store *store;
	const struct replay_options *options;
	struct store_results *results; /* NULL: not kept */
	bool results_wanted;           /* somebody asked for them */
	struct replay_settings settings;
	const struct replay_bless *bless; /* NULL: not wanted */
	struct job_secrets secrets;
	struct report *report; /* NULL: none is wanted */
	char key[SHA256_HEX_SIZE];
	struct replay_item *items;
	size_t count, size;
	struct json_object *runners;
	struct upstream *upstream;  /* --live: real servers; NULL: the record answers */
	struct jail_client *client; /* for the thread that comes first */
	struct replay_old old;
	FILE *reports;              /* of --json, those to be printed behind the matrix: a file without a name */

	pthread_mutex_t lock; /* for the rest */
	pthread_cond_t more, room;
	size_t next, taken; /* the next to run; so many were printed */
	bool stop;
	struct {
		struct store_result result;
		bool ready;
	} ahead[REPLAY_AHEAD_MAX]; /* by index modulo */
};
void replay_batch_init(struct replay_batch *batch);
void replay_batch_clear(struct replay_batch *batch);

/* replay_choose.c: those of the command line, and of the shard; 0 or an error. */
int replay_choose(struct replay_batch *batch, const struct replay_shard *shard, struct err *err);
/* What the stored results say: which are chosen, which are done. */
int replay_choose_by_results(struct replay_batch *batch, struct err *err);
/* 1 and the result of an earlier replay, or 0. */
int replay_stored(struct replay_batch *batch, const struct replay_item *item, struct store_result *ret,
		  struct err *err);
/* The file of results; without one, that nobody asked for, nothing is kept. */
int replay_open_results(struct replay_batch *batch, const struct replay_shard *shard, struct err *err);

/* All of the list: run, or taken from the shards' files. The exit code, or an error. */
int replay_batch_run(struct replay_batch *batch, struct err *err);
int replay_batch_merge(struct replay_batch *batch, struct err *err);

/* --runner, --first-bad (replay_runner.c): calls `replay` for each interpreter, with a configuration for a private
 * jailer and an environment that names its runner files. The exit code is the worst of them; with --first-bad 1 where
 * one is bad. Before any thread is started. */
struct replay_trying {
	struct replay_options *options;
	const struct config *config;
	struct store *store;
	int (*replay)(const struct replay_trying *trying, struct err *err);
	const char *from, *folder; /* filled in: the configured runner files; a folder for others */
};
int replay_runners_run(const struct replay_trying *asked, struct err *err);
