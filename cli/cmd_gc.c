/*
 * cmd_gc.c - `sallyport gc`: gives the disk back what the record does not name any more; see gc.h.
 *
 * The gateway does this every hour, but for the database's free pages. Without --yes nothing is removed.
 */
#include "gc.h"
#include "lib/base/metrics.h"
#include "lib/base/util.h"
#include "lib/store/retention/store_reserve.h"

struct gc {
	struct cli_common common;
	const char *metrics;
	bool yes;
};

static const struct cli_option gc_options[] = {
	{.name = "yes", .letter = 'y', .type = CLI_FLAG, .offset = offsetof(struct gc, yes),
	 .help = "free the space [only count]"},
	{.name = "metrics", .type = CLI_STRING, .offset = offsetof(struct gc, metrics), .value = "FILE",
	 .help = "write figures for Prometheus (node_exporter's textfile collector) to FILE"},
	{0},
};
static const struct cli_group gc_groups[] = {{gc_options, 0}, {0}};

static void progress(void *arg, const char *step, int64_t done, int64_t total)
{
	cli_progress_show(arg, step, done, total);
}

int gc_open_store(const struct cli_common *common, struct config *ret_config, struct store **ret, struct err *err)
{
	struct config config = {0};
	int result = cli_load_config(common, &config, err);

	if (result < 0)
		return result;
	store_reserve_release(config.data_dir);
	result = store_open(config.data_dir, STORE_WRITE, ret, err);
	if (result < 0)
		config_clear(&config);
	else
		*ret_config = config;
	return result;
}

int gc_collect(struct store *store, bool dry, bool vacuum, struct store_collected *ret, struct err *err)
{
	struct cli_progress bar = {.label = ""};
	const struct store_gc gc = {
		.now_us = clock_now_us(), .dry = dry, .vacuum = vacuum, .progress = progress, .arg = &bar};
	int result = store_gc(store, &gc, ret, err);

	cli_progress_hide(&bar);
	return result;
}

void gc_print(const struct store_collected *collected, bool dry)
{
	char contents[CLI_TEXT_SIZE], young[CLI_TEXT_SIZE], pages[CLI_TEXT_SIZE], spare[CLI_TEXT_SIZE];

	cli_text_bytes(collected->bytes, contents);
	cli_text_bytes(collected->young_bytes, young);
	cli_text_bytes(collected->pages_bytes, pages);
	cli_text_bytes(collected->free_bytes, spare);
	printf("%lld contents, %s, %s\n", (long long)collected->contents, contents,
	       dry ? "would leave the disk" : "left the disk");
	if (collected->young)
		printf("%lld contents, %s, were stored within the last six hours and go when these are over\n",
		       (long long)collected->young, young);
	if (collected->pages_bytes)
		printf("%s of the database went back to the disk\n", pages);
	if (collected->free_bytes)
		printf("%s of the database are free\n", spare);
}

void gc_add_json(struct json_object *object, const struct store_collected *collected)
{
	json_add_int(object, "contents", collected->contents);
	json_add_int(object, "bytes", collected->bytes);
	json_add_int(object, "young", collected->young);
	json_add_int(object, "young_bytes", collected->young_bytes);
	json_add_int(object, "database_bytes", collected->pages_bytes);
	json_add_int(object, "database_free_bytes", collected->free_bytes);
}

static int gc_run(void *options, struct err *err)
{
	const struct gc *gc = options;
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	auto_json struct json_object *object = NULL;
	struct store_collected collected = {0};
	int result = gc->yes ? gc_open_store(&gc->common, &config, &store, err)
			     : cli_open_store(&gc->common, STORE_WRITE, &config, &store, err);

	if (result == 0)
		result = gc_collect(store, !gc->yes, true, &collected, err);
	if (result == 0 && gc->metrics)
		result = metrics_read(gc->metrics, err);
	if (result == 0 && gc->yes) { /* where nothing was removed, the file says what it said */
		metrics_set(METRIC_FREED_AT, NULL, clock_now_us() / 1000000);
		metrics_set(METRIC_FREED, NULL, collected.bytes + collected.pages_bytes);
	}
	if (result == 0 && gc->metrics)
		result = metrics_write(gc->metrics, err);
	if (result < 0)
		return result;
	if (gc->common.json) {
		object = json_object_new_object();
		json_add_bool(object, "done", gc->yes);
		gc_add_json(object, &collected);
		cli_print_json(stdout, object, true);
		return CLI_OK;
	}
	gc_print(&collected, !gc->yes);
	if (!gc->yes)
		puts("Nothing was removed: --yes does it.");
	return CLI_OK;
}

const struct cli_command cmd_gc = {
	.name = "gc",
	.summary = "Free disk space that the record does not use",
	.help = "Removes contents that no run and no file names, and returns free pages of the database to the file system. "
		"The gateway may serve meanwhile; it removes such contents by itself every hour. "
		"Without --yes the command only counts. "
		"On a full disk the file reserve of data_dir is given up first, and made again when there is room. "
		"A killed command can be repeated.",
	.examples = "sallyport gc --yes\n",
	.exits = "0 done\n"
		"5 another process collects garbage\n",
	.groups = gc_groups,
	.size = sizeof(struct gc),
	.run = gc_run,
};
