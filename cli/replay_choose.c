/*
 * replay_choose.c - which executions a replay is about: see replay_batch.h.
 */
#include <string.h>

#include "lib/base/util.h"
#include "replay_batch.h"

/* Only its id is kept: a list can be longer than memory holds code and output. */
static int add_item(void *arg, const struct store_execution *execution)
{
	struct replay_batch *batch = arg;

	if (batch->count == batch->size) {
		batch->size = batch->size ? 2 * batch->size : 64;
		batch->items = xrealloc(batch->items, batch->size, sizeof(*batch->items));
	}
	batch->items[batch->count] = (struct replay_item){.generation = execution->generation};
	snprintf(batch->items[batch->count++].id, ID_SIZE, "%s", execution->id);
	return 0;
}

int replay_choose(struct replay_batch *batch, const struct replay_shard *shard, struct err *err)
{
	const struct replay_options *options = batch->options;
	const struct cli_selection selection = {&options->common, &options->filter, options->all};
	int result = cli_select(batch->store, &selection, add_item, batch, err);
	size_t kept = 0;

	for (size_t i = 0; shard->count > 0 && i < batch->count; i++)
		if (replay_shard_of(batch->items[i].id, shard->count) == shard->number)
			batch->items[kept++] = batch->items[i];
	batch->count = shard->count > 0 ? kept : batch->count;
	return result;
}

/* Does --only want what has this result? */
static bool wanted(const char *only, const struct store_result *stored)
{
	enum replay_class class = stored ? replay_class_from(stored->class) : REPLAY_MISSING;

	if (streq(only, "missing"))
		return !stored;
	if (streq(only, "flaky"))
		return class == REPLAY_FLAKY;
	return stored && (class == REPLAY_SANDBOX_ERROR || (class > REPLAY_EQUAL && class < REPLAY_FLAKY));
}

int replay_stored(struct replay_batch *batch, const struct replay_item *item, struct store_result *ret, struct err *err)
{
	char key[SHA256_HEX_SIZE];

	replay_settings_item_key(batch->key, item->generation, key);
	return store_results_get(batch->results, item->id, key, ret, err);
}

int replay_choose_by_results(struct replay_batch *batch, struct err *err)
{
	const struct replay_options *options = batch->options;
	size_t kept = 0;

	for (size_t i = 0; i < batch->count; i++) {
		struct store_result stored = {0};
		int found = replay_stored(batch, &batch->items[i], &stored, err);

		if (found < 0)
			return found;
		if (!options->only || wanted(options->only, found ? &stored : NULL)) {
			batch->items[kept] = batch->items[i];
			batch->items[kept++].done = options->resume && !options->only && found &&
						    !streq(stored.class, replay_class_text(REPLAY_SANDBOX_ERROR));
		}
		free(stored.report);
	}
	batch->count = kept;
	return 0;
}

int replay_open_results(struct replay_batch *batch, const struct replay_shard *shard, struct err *err)
{
	const struct replay_options *options = batch->options;
	const bool needed = options->results || options->resume || options->only || shard->count > 0;
	auto_free char *part = shard->count > 0 ? xasprintf("-%d-of-%d", shard->number, shard->count) : xstrdup("");
	auto_free char *place = xasprintf("%s/replay%s.db", batch->config->data_dir, part);
	struct store_shard mark = {.number = shard->count > 0 ? shard->number : 1, .count = MAX(shard->count, 1)};
	int result = store_results_open(options->results ? options->results : place, true, &batch->results,
					needed ? err : NULL);

	if (result < 0)
		return needed ? result : 0;
	batch->results_wanted = needed;
	memcpy(mark.key, batch->key, sizeof(mark.key));
	result = store_results_shard(batch->results, &mark, err);
	return result < 0 ? result : replay_choose_by_results(batch, err);
}
