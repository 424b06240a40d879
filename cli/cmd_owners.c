/*
 * cmd_owners.c - `sallyport owners list|place|pack|unpack|leave`: who lives on this host, and moving somebody to
 * another.
 *
 * The table of nginx/front.conf has one line an owner, "alice h2;", and is changed here in one rename, so nginx never
 * reads half of it. Lines that are no such line, comments among them, stay as they are.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "lib/base/util.h"
#include "lib/store/record/store_drain.h"
#include "lib/store/record/store_owner.h"
#include "lib/store/record/store_token.h"
#include "lib/store/transfer/store_move.h"

#define TABLE_FILE "/etc/nginx/sallyport-placed.map"
#define TABLE_MAX  (16 << 20)
#define HOST_MAX   63

struct owners {
	struct cli_common common;
	const char *table;
};

static const struct cli_option owners_options[] = {
	{.name = "table",
	 .type = CLI_STRING,
	 .offset = offsetof(struct owners, table),
	 .value = "FILE",
	 .help = "list, place: use this placement table of the nginx in front [" TABLE_FILE "]"},
	{0},
};
static const struct cli_group owners_groups[] = {{owners_options, 0}, {0}};

static const char *table_of(const struct owners *options)
{
	return options->table ? options->table : TABLE_FILE;
}

/* -------- the table ----------------------------------------------------------------------------------- */

/* "alice h2;" -> true, with both words; anything else is no line of an owner. */
static bool read_line(const char *line, size_t length, char owner[STORE_OWNER_MAX + 1], char host[HOST_MAX + 1])
{
	char text[STORE_OWNER_MAX + HOST_MAX + 16], end;
	int used = 0;

	if (length >= sizeof(text))
		return false;
	memcpy(text, line, length);
	text[length] = '\0';
	_Static_assert(STORE_OWNER_MAX == 32 && HOST_MAX == 63, "the widths below");
	return sscanf(text, " %32[a-z0-9-] %63[A-Za-z0-9_.-] %c%n", owner, host, &end, &used) == 3 && end == ';';
}

static bool host_valid(const char *host)
{
	size_t length = strlen(host);

	return length > 0 && length <= HOST_MAX &&
	       strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == length;
}

/* An absent file is an empty table. */
static int read_table(const char *path, char **ret, size_t *ret_length, struct err *err)
{
	int result = read_file_at(AT_FDCWD, path, TABLE_MAX, ret, ret_length, err);

	if (result == -ERR_NOT_FOUND) {
		*err = ERR_INIT;
		*ret = xstrdup("");
		*ret_length = 0;
		return 0;
	}
	return result;
}

/* The table in order of owners; the last line of an owner counts, as in nginx's map. */
struct place {
	char owner[STORE_OWNER_MAX + 1], host[HOST_MAX + 1];
	size_t line;
};
struct places {
	struct place *items;
	size_t count;
};

static int by_owner(const void *a, const void *b)
{
	const struct place *left = a, *right = b;
	int order = strcmp(left->owner, right->owner);

	return order != 0 ? order : (left->line > right->line) - (left->line < right->line);
}

static void read_places(const char *table, struct places *ret)
{
	size_t lines = 0;

	for (const char *c = table; *c; c++)
		lines += *c == '\n';
	ret->items = xcalloc(lines + 1, sizeof(*ret->items));
	for (const char *line = table; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		struct place *place = &ret->items[ret->count];

		place->line = ret->count;
		ret->count += read_line(line, strcspn(line, "\n"), place->owner, place->host);
	}
	qsort(ret->items, ret->count, sizeof(*ret->items), by_owner);
}

/* The host of an owner; "": the table does not name him. */
static const char *find_host(const struct places *places, const char *owner)
{
	size_t low = 0, high = places->count;

	while (low < high) { /* the first behind him */
		size_t middle = low + (high - low) / 2;

		if (strcmp(places->items[middle].owner, owner) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && streq(places->items[low - 1].owner, owner) ? places->items[low - 1].host : "";
}

/* The table with the owner's line replaced, added, or (host NULL) left out. */
static void write_line(const char *table, const char *owner, const char *host, struct buf *ret)
{
	char name[STORE_OWNER_MAX + 1], old[HOST_MAX + 1];

	for (const char *line = table; *line;) {
		size_t length = strcspn(line, "\n");

		if (!read_line(line, length, name, old) || !streq(name, owner))
			buf_printf(ret, "%.*s\n", (int)length, line);
		line += length + (line[length] == '\n');
	}
	if (host)
		buf_printf(ret, "%s %s;\n", owner, host);
}

static int replace_table(const char *path, const struct buf *text, struct err *err)
{
	auto_free char *part = xasprintf("%s.part-%d", path, (int)getpid());
	int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0)
		return err_errno(err, "making %s", part);
	int result = 0;

	if (write_all(fd, text->data ? text->data : "", text->length) < 0 || fsync(fd) < 0)
		result = err_errno(err, "writing %s", part);
	close(fd);
	if (result == 0 && rename(part, path) < 0)
		result = err_errno(err, "replacing %s", path);
	if (result < 0)
		unlink(part);
	return result;
}

static int owners_place(const struct owners *options, struct err *err)
{
	const char *owner = options->common.args[1],
		   *host = options->common.n_args > 2 ? options->common.args[2] : NULL;
	auto_free char *table = NULL;
	auto_buf struct buf text = {0};
	size_t length;

	if (!store_owner_valid(owner))
		return err_member(err, "owner", STORE_OWNER_WANTED);
	if (host && !host_valid(host))
		return err_set(err, ERR_INVALID, "host '%s' may have letters, digits, '.', '_' and '-' only", host);
	int result = read_table(table_of(options), &table, &length, err);

	if (result < 0)
		return result;
	buf_init(&text, 2 * TABLE_MAX);
	write_line(table, owner, host, &text);
	result = replace_table(table_of(options), &text, err);
	if (result < 0)
		return result;
	if (host)
		printf("%s lives on %s from the next reload on: nginx -t && systemctl reload nginx\n", owner, host);
	else
		printf("%s lives on the default host from the next reload on: nginx -t && systemctl reload nginx\n",
		       owner);
	return CLI_OK;
}

/* -------- who is here --------------------------------------------------------------------------------- */

struct listing {
	struct cli_table *table; /* NULL: JSON lines */
	struct places places;
};

static int list_each(void *arg, const struct store_owner *owner)
{
	const struct listing *listing = arg;
	const char *host = find_host(&listing->places, owner->name);
	char bytes[CLI_TEXT_SIZE], seen[CLI_TEXT_SIZE] = "never", number[24];

	if (!listing->table) {
		auto_json struct json_object *row = json_object_new_object();
		char text[CLOCK_TEXT_SIZE];

		clock_text(owner->used_us, text);
		json_add_string(row, "owner", owner->name);
		json_add_int(row, "tokens", owner->tokens);
		json_add_int(row, "conversations", owner->conversations);
		json_add_int(row, "runs", owner->runs);
		json_add_int(row, "bytes", owner->bytes);
		json_add_string(row, "used", owner->used_us ? text : NULL);
		json_add_bool(row, "drained", owner->drained);
		json_add_string(row, "host", *host ? host : NULL);
		cli_print_json(stdout, row, false);
		return 0;
	}
	cli_table_cell(listing->table, owner->name, CLI_PLAIN);
	for (size_t i = 0; i < 3; i++) {
		const int64_t numbers[] = {owner->tokens, owner->conversations, owner->runs};

		snprintf(number, sizeof(number), "%lld", (long long)numbers[i]);
		cli_table_cell(listing->table, number, CLI_PLAIN);
	}
	cli_text_bytes(owner->bytes, bytes);
	cli_table_cell(listing->table, bytes, CLI_PLAIN);
	if (owner->used_us)
		cli_text_time(owner->used_us, seen);
	cli_table_cell(listing->table, seen, owner->used_us ? CLI_PLAIN : CLI_DIM);
	cli_table_cell(listing->table, owner->drained ? "drained" : "open", owner->drained ? CLI_YELLOW : CLI_PLAIN);
	cli_table_cell(listing->table, *host ? host : "-", CLI_PLAIN);
	return 0;
}

static int owners_list(const struct owners *options, struct err *err)
{
	static const struct cli_column columns[] = {
		{"OWNER", false, 5, 0}, {"TOKENS", true, 6, 0}, {"CONVERSATIONS", true, 13, 0}, {"RUNS", true, 4, 0},
		{"BYTES", true, 8, 0},  {"USED", false, 19, 0}, {"STATE", false, 7, 0},         {"HOST", false, 4, 0}};
	auto_table struct cli_table *table = options->common.json ? NULL : cli_table_new(columns, ARRAY_SIZE(columns));
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	auto_free char *places = NULL;
	size_t length;
	int result = cli_open_store(&options->common, STORE_READ, &config, &store, err);

	if (result == 0)
		result = read_table(table_of(options), &places, &length, err);
	struct listing listing = {.table = table};

	if (result == 0) {
		read_places(places, &listing.places);
		result = store_owner_list(store, list_each, &listing, err);
		free(listing.places.items);
	}
	if (result == 0 && table)
		cli_table_print(table, stdout);
	return result;
}

/* -------- a move -------------------------------------------------------------------------------------- */

static void print_moved(const struct owners *options, const char *owner, const struct store_moved *moved)
{
	if (options->common.json) {
		auto_json struct json_object *object = json_object_new_object();

		json_add_string(object, "owner", owner);
		json_add_int(object, "tokens", moved->tokens);
		json_add_int(object, "snippets", moved->snippets);
		json_add_int(object, "conversations", moved->conversations);
		json_add_int(object, "files", moved->files);
		json_add_int(object, "executions", moved->executions);
		json_add_int(object, "erased", moved->erased);
		cli_print_json(stdout, object, true);
		return;
	}
	printf("%s: %lld tokens, %lld versions of snippets, %lld conversations with %lld files, %lld runs\n", owner,
	       (long long)moved->tokens, (long long)moved->snippets, (long long)moved->conversations,
	       (long long)moved->files, (long long)moved->executions);
	if (moved->erased)
		printf("%lld runs of which something was erased stay in this record\n", (long long)moved->erased);
}

static int owners_pack(const struct owners *options, struct err *err)
{
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	struct store_moved moved;
	int result = cli_open_store(&options->common, STORE_WRITE, &config, &store, err);

	if (result == 0)
		result = store_move_pack(store, options->common.args[1], options->common.args[2], &moved, err);
	if (result == 0)
		result = cli_audit(store, STORE_AUDIT_EXPORT, moved.executions, err);
	if (result == 0)
		print_moved(options, options->common.args[1], &moved);
	return result;
}

static int owners_unpack(const struct owners *options, struct err *err)
{
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	auto_free char *owner = NULL;
	struct store_moved moved = {0};
	int result = cli_open_store(&options->common, STORE_WRITE, &config, &store, err);

	if (result == 0)
		result = store_move_unpack(store, options->common.args[1], &owner, &moved, err);
	if (result == 0)
		print_moved(options, owner, &moved);
	return result;
}

static int owners_leave(const struct owners *options, struct err *err)
{
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	int result = cli_open_store(&options->common, STORE_WRITE, &config, &store, err);

	if (result == 0)
		result = store_move_leave(store, options->common.args[1], err);
	if (result == 0 && !options->common.json)
		printf("%s: no conversation and no file is here any more; the record of runs stays\n",
		       options->common.args[1]);
	return result;
}

static int owners_run(void *arg, struct err *err)
{
	static const struct {
		const char *name, *takes;
		size_t least, most; /* arguments, the verb included */
		int (*run)(const struct owners *options, struct err *err);
	} verbs[] = {
		{"list", "no argument", 1, 1, owners_list}, {"place", "OWNER [HOST]", 2, 3, owners_place},
		{"pack", "OWNER FILE", 3, 3, owners_pack},  {"unpack", "FILE", 2, 2, owners_unpack},
		{"leave", "OWNER", 2, 2, owners_leave},
	};
	const struct owners *options = arg;

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (!streq(verbs[i].name, options->common.args[0]))
			continue;
		if (options->common.n_args < verbs[i].least || options->common.n_args > verbs[i].most)
			return err_set(err, ERR_INVALID, "owners %s takes %s", verbs[i].name, verbs[i].takes);
		if (options->table && verbs[i].run != owners_list && verbs[i].run != owners_place)
			return err_set(err, ERR_INVALID, "--table belongs to owners list and place");
		return verbs[i].run(options, err);
	}
	return err_set(err, ERR_INVALID, "owners %s: there are list, place, pack, unpack and leave",
		       options->common.args[0]);
}

const struct cli_command cmd_owners = {
	.name = "owners",
	.summary = "List owners, and move one to another host",
	.arguments = "list | place OWNER [HOST] | pack OWNER FILE | unpack FILE | leave OWNER",
	.help = "list shows the owners that have tokens or a record here, and their host in the placement table of the nginx in front. "
		"place writes an owner's line of that table, or without HOST removes it. "
		"pack writes a drained owner (tokens, snippets, conversations, files, runs with their environments) into one file. "
		"unpack reads that file on another host, and leave then removes conversations and files from the first host. "
		"Erased runs stay where they are.",
	.examples = "h1$ sallyport drain --owner alice && sallyport owners pack alice alice.owner\n"
		"h2$ sallyport owners unpack alice.owner\n"
		"front$ sallyport owners place alice h2 && nginx -t && systemctl reload nginx\n"
		"h1$ sallyport owners leave alice\n",
	.exits = "0 done\n"
		"2 the command line or a name is wrong\n"
		"3 the file is damaged\n"
		"5 the owner is not drained, is busy, or has conversations where unpack would put them\n",
	.groups = owners_groups,
	.size = sizeof(struct owners),
	.min_args = 1,
	.max_args = 3,
	.run = owners_run,
};
