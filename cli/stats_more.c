/*
 * stats_more.c - see stats_more.h.
 *
 * Refusals are entries of the audit log (store_refused.h), each with a count: they are added up by limit and owner. The
 * disk by owner is what the record counts against retention.owner_mb. The slowest are those of all runs that the
 * filters leave.
 */
#include "stats_more.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/util.h"
#include "lib/store/audit/store_refused.h"
#include "lib/store/record/store_view.h"

#define WORD_SIZE 40

struct hits {
	char word[WORD_SIZE], owner[STORE_OWNER_MAX + 1];
	int64_t count, first_us, last_us;
};
struct adding {
	const struct stats_more *more;
	struct hits *items;
	size_t count;
};

bool stats_more_has(const char *by)
{
	return streq(by, "limit") || streq(by, "disk") || streq(by, "slowest");
}

/* -------- limits -------------------------------------------------------------------------------------- */

static void add_refusal(void *arg, const struct store_refusal *refusal)
{
	struct adding *adding = arg;
	/* "limit:rate" is called by its word, "auth:unknown" as it is: no limit, but a door that was shut */
	const char *word = str_starts(refusal->object, "limit:") ? refusal->object + strlen("limit:") : refusal->object;
	size_t i = 0;

	if (!cli_filter_owner(adding->more->filter, refusal->owner))
		return;
	while (i < adding->count &&
	       !(streq(adding->items[i].word, word) && streq(adding->items[i].owner, refusal->owner)))
		i++;
	if (i == adding->count) {
		adding->items = xrealloc(adding->items, ++adding->count, sizeof(*adding->items));
		adding->items[i] = (struct hits){.first_us = refusal->at_us};
		snprintf(adding->items[i].word, WORD_SIZE, "%s", word);
		snprintf(adding->items[i].owner, sizeof(adding->items[i].owner), "%s", refusal->owner);
	}
	adding->items[i].count += refusal->count;
	adding->items[i].first_us = MIN(adding->items[i].first_us, refusal->at_us);
	adding->items[i].last_us = MAX(adding->items[i].last_us, refusal->at_us);
}

static int by_count(const void *a, const void *b)
{
	const struct hits *x = a, *y = b;

	return x->count != y->count ? (x->count > y->count ? -1 : 1) : strcmp(x->word, y->word);
}

static void print_hits(const struct hits *hits, size_t count, bool json)
{
	static const struct cli_column columns[] = {{"LIMIT", false, 0, 0},
						    {"OWNER", false, 0, 0},
						    {"REFUSED", true, 0, 0},
						    {"FIRST", false, 0, 0},
						    {"LAST", false, 0, 0}};
	auto_table struct cli_table *table = json ? NULL : cli_table_new(columns, ARRAY_SIZE(columns));
	char text[CLI_TEXT_SIZE];

	for (size_t i = 0; i < count; i++) {
		auto_json struct json_object *object = json ? json_object_new_object() : NULL;

		if (json) {
			json_add_string(object, "limit", hits[i].word);
			json_add_string(object, "owner", hits[i].owner);
			json_add_int(object, "refused", hits[i].count);
			json_add_int(object, "first_us", hits[i].first_us);
			json_add_int(object, "last_us", hits[i].last_us);
			cli_print_json(stdout, object, false);
			continue;
		}
		cli_table_cell(table, hits[i].word, CLI_BOLD);
		cli_table_cell(table, hits[i].owner[0] != '\0' ? hits[i].owner : "-", CLI_PLAIN);
		snprintf(text, sizeof(text), "%lld", (long long)hits[i].count);
		cli_table_cell(table, text, CLI_PLAIN);
		cli_text_time(hits[i].first_us, text);
		cli_table_cell(table, text, CLI_PLAIN);
		cli_text_time(hits[i].last_us, text);
		cli_table_cell(table, text, CLI_PLAIN);
	}
	if (!json)
		cli_table_print(table, stdout);
}

static int show_limits(struct store *store, const struct stats_more *more, struct err *err)
{
	struct adding adding = {.more = more};
	struct store_filter filter;

	cli_filter_to_store(more->filter, &filter);
	int result = store_refused_list(store, filter.since_us, filter.until_us, add_refusal, &adding, err);

	if (result == 0 && adding.count > 0)
		qsort(adding.items, adding.count, sizeof(*adding.items), by_count);
	if (result == 0)
		print_hits(adding.items, MIN(adding.count, more->most), more->json);
	free(adding.items);
	return result;
}

/* -------- disk ---------------------------------------------------------------------------------------- */

struct disks {
	const struct stats_more *more;
	struct store_view_owner *items;
	size_t count;
};

static void add_owner(void *arg, const struct store_view_owner *owner)
{
	struct disks *disks = arg;

	if (!cli_filter_owner(disks->more->filter, owner->owner))
		return;
	disks->items = xrealloc(disks->items, disks->count + 1, sizeof(*disks->items));
	disks->items[disks->count++] = *owner;
}

static void print_disk_json(const struct store_view_owner *owner, int64_t cap)
{
	auto_json struct json_object *object = json_object_new_object();

	json_add_string(object, "owner", owner->owner);
	json_add_int(object, "bytes", owner->bytes);
	if (cap > 0)
		json_add_int(object, "cap", cap);
	json_add_int(object, "conversations", owner->conversations);
	json_add_int(object, "tokens", owner->tokens);
	cli_print_json(stdout, object, false);
}

static void print_disk(const struct disks *disks, size_t count, int64_t cap)
{
	static const struct cli_column columns[] = {{"OWNER", false, 0, 0},
						    {"DISK", true, 0, 0},
						    {"OF ITS CAP", true, 0, 0},
						    {"CONVERSATIONS", true, 0, 0}};
	auto_table struct cli_table *table = cli_table_new(columns, ARRAY_SIZE(columns));
	char text[CLI_TEXT_SIZE];

	for (size_t i = 0; i < count; i++) {
		const struct store_view_owner *owner = &disks->items[i];

		cli_table_cell(table, owner->owner, CLI_BOLD);
		cli_text_bytes(owner->bytes, text);
		cli_table_cell(table, text, CLI_PLAIN);
		snprintf(text, sizeof(text), cap > 0 ? "%lld %%" : "-",
			 cap > 0 ? (long long)(owner->bytes * 100 / cap) : 0LL);
		cli_table_cell(table, text, cap > 0 && owner->bytes * 10 >= cap * 9 ? CLI_RED : CLI_PLAIN);
		snprintf(text, sizeof(text), "%lld", (long long)owner->conversations);
		cli_table_cell(table, text, CLI_PLAIN);
	}
	cli_table_print(table, stdout);
}

static int show_disk(struct store *store, const struct stats_more *more, struct err *err)
{
	struct disks disks = {.more = more};
	int result = store_view_owners(store, 0, add_owner, &disks, err);
	const size_t count = MIN(disks.count, more->most);

	if (result == 0 && !more->json)
		print_disk(&disks, count, more->owner_bytes);
	for (size_t i = 0; result == 0 && more->json && i < count; i++)
		print_disk_json(&disks.items[i], more->owner_bytes);
	free(disks.items);
	return result;
}

/* -------- the slowest runs ---------------------------------------------------------------------------- */

struct slow {
	char id[ID_SIZE], owner[STORE_OWNER_MAX + 1], language[32], verdict[3];
	int64_t wall_us, cpu_us, created_us;
};
struct slowest {
	struct slow *items;
	size_t count;
};

static int add_slow(void *arg, const struct store_execution *e)
{
	struct slowest *slowest = arg;

	if ((slowest->count & (slowest->count + 1)) == 0 || slowest->items == NULL)
		slowest->items = xrealloc(slowest->items, 2 * slowest->count + 2, sizeof(*slowest->items));
	struct slow *slow = &slowest->items[slowest->count++];

	*slow = (struct slow){.wall_us = e->run.wall_us + e->compile.wall_us,
			      .cpu_us = e->run.cpu_user_us + e->run.cpu_system_us + e->compile.cpu_user_us +
					e->compile.cpu_system_us,
			      .created_us = e->created_us};
	snprintf(slow->id, sizeof(slow->id), "%s", e->id);
	snprintf(slow->owner, sizeof(slow->owner), "%s", e->owner);
	snprintf(slow->language, sizeof(slow->language), "%s", e->language);
	snprintf(slow->verdict, sizeof(slow->verdict), "%s", e->verdict);
	return 0;
}

static int by_wall(const void *a, const void *b)
{
	const struct slow *x = a, *y = b;

	return x->wall_us != y->wall_us ? (x->wall_us > y->wall_us ? -1 : 1) : strcmp(x->id, y->id);
}

static void print_slow_json(const struct slow *slow)
{
	auto_json struct json_object *object = json_object_new_object();

	json_add_string(object, "id", slow->id);
	json_add_string(object, "owner", slow->owner);
	json_add_string(object, "language", slow->language);
	json_add_string(object, "verdict", slow->verdict);
	json_add_int(object, "wall", slow->wall_us);
	json_add_int(object, "cpu", slow->cpu_us);
	json_add_int(object, "created_us", slow->created_us);
	cli_print_json(stdout, object, false);
}

static void print_slow(const struct slow *items, size_t count)
{
	static const struct cli_column columns[] = {
		{"RUN", false, 0, 0}, {"STARTED", false, 0, 0}, {"OWNER", false, 0, 0}, {"LANGUAGE", false, 0, 0},
		{"", false, 0, 0},    {"WALL", true, 0, 0},     {"CPU", true, 0, 0}};
	auto_table struct cli_table *table = cli_table_new(columns, ARRAY_SIZE(columns));
	char text[CLI_TEXT_SIZE];

	for (size_t i = 0; i < count; i++) {
		cli_table_cell(table, items[i].id, CLI_BOLD);
		cli_text_time(items[i].created_us, text);
		cli_table_cell(table, text, CLI_PLAIN);
		cli_table_cell(table, items[i].owner, CLI_PLAIN);
		cli_table_cell(table, items[i].language, CLI_PLAIN);
		cli_table_cell(table, items[i].verdict, CLI_PLAIN);
		cli_text_duration(items[i].wall_us, text);
		cli_table_cell(table, text, CLI_PLAIN);
		cli_text_duration(items[i].cpu_us, text);
		cli_table_cell(table, text, CLI_PLAIN);
	}
	cli_table_print(table, stdout);
}

static int show_slowest(struct store *store, const struct stats_more *more, struct err *err)
{
	struct slowest slowest = {0};
	struct store_filter filter;

	cli_filter_to_store(more->filter, &filter);
	int result = store_execution_list(store, &filter, add_slow, &slowest, err);
	const size_t count = MIN(slowest.count, more->most);

	if (result == 0 && slowest.count > 0)
		qsort(slowest.items, slowest.count, sizeof(*slowest.items), by_wall);
	if (result == 0 && !more->json)
		print_slow(slowest.items, count);
	for (size_t i = 0; result == 0 && more->json && i < count; i++)
		print_slow_json(&slowest.items[i]);
	free(slowest.items);
	return result;
}

int stats_more_show(struct store *store, const struct stats_more *more, struct err *err)
{
	if (streq(more->by, "limit"))
		return show_limits(store, more, err);
	return streq(more->by, "disk") ? show_disk(store, more, err) : show_slowest(store, more, err);
}
