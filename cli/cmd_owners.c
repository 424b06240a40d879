/*
 * cmd_owners.c - `sallyport owners list|place|leave`: who lives on this host, and where the nginx in front says so.
 *
 * The table of nginx/front.conf has one line an owner, "alice h2;", and is changed here in one rename, so nginx never
 * reads half of it. Lines of another form, comments among them, stay as they are.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "lib/base/util.h"
#include "lib/store/record/store_owner.h"
#include "lib/store/record/store_token.h"
#include "lib/store/transfer/store_bundle.h"

#define TABLE_FILE "/etc/nginx/sallyport-placed.map"
#define TABLE_MAX  (16 << 20)
#define HOST_MAX   63

struct owners {
	struct cli_common common;
	const char *table;
};

static const struct cli_option owners_options[] = {
	{.name = "table", .type = CLI_STRING, .offset = offsetof(struct owners, table), .value = "FILE",
	 .help = "list, place: use this placement table of the nginx in front [" TABLE_FILE "]"},
	{0},
};
static const struct cli_group owners_groups[] = {{owners_options, 0}, {0}};

/* -------- the table ----------------------------------------------------------------------------------- */

/* "alice h2;" -> true, with both words; false for any other line. */
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

/* An absent file is an empty table. */
static int read_table(const struct owners *options, char **ret, struct err *err)
{
	size_t length;
	int result = read_file_at(AT_FDCWD, options->table ? options->table : TABLE_FILE, TABLE_MAX, ret, &length, err);

	if (result != -ERR_NOT_FOUND)
		return result;
	*err = ERR_INIT;
	*ret = xstrdup("");
	return 0;
}

static int replace_table(const char *path, const struct buf *text, struct err *err)
{
	auto_free char *part = xasprintf("%s.part-%d", path, (int)getpid());
	auto_close int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	int result = 0;

	if (fd < 0)
		return err_errno(err, "making %s", part);
	if (write_all(fd, text->data ? text->data : "", text->length) < 0 || fsync(fd) < 0 || rename(part, path) < 0) {
		result = err_errno(err, "replacing %s", path);
		unlink(part);
	}
	return result;
}

static int owners_place(const struct owners *options, struct err *err)
{
	const char *owner = options->common.args[1];
	const char *host = options->common.n_args > 2 ? options->common.args[2] : NULL;
	auto_free char *table = NULL, *wanted = xasprintf("%s %s;", owner, host ? host : "default");
	auto_buf struct buf text = {0};
	char name[STORE_OWNER_MAX + 1], old[HOST_MAX + 1];

	if (!store_owner_valid(owner))
		return err_member(err, "owner", STORE_OWNER_WANTED);
	if (!read_line(wanted, strlen(wanted), name, old) || (host && !streq(old, host)))
		return err_set(err, ERR_INVALID, "host '%s' may have letters, digits, '.', '_' and '-' only", host);
	int result = read_table(options, &table, err);

	if (result < 0)
		return result;
	buf_init(&text, 2 * TABLE_MAX);
	for (const char *line = table; *line;) {
		size_t length = strcspn(line, "\n");

		if (!read_line(line, length, name, old) || !streq(name, owner))
			buf_printf(&text, "%.*s\n", (int)length, line);
		line += length + (line[length] == '\n');
	}
	if (host)
		buf_printf(&text, "%s\n", wanted);
	result = replace_table(options->table ? options->table : TABLE_FILE, &text, err);
	if (result == 0)
		printf("%s lives on %s from the next reload on: nginx -t && systemctl reload nginx\n", owner,
		       host ? host : "the default host");
	return result;
}

/* -------- who is here --------------------------------------------------------------------------------- */

struct listing {
	struct cli_table *table;    /* NULL: JSON lines */
	struct json_object *places; /* {"alice": "h2"} */
};

static int list_each(void *arg, const struct store_owner *owner)
{
	const struct listing *listing = arg;
	const char *host = json_get_string(listing->places, owner->name);
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
		json_add_string(row, "host", host);
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
	cli_table_cell(listing->table, host ? host : "-", CLI_PLAIN);
	return 0;
}

static int owners_list(const struct owners *options, struct err *err)
{
	static const struct cli_column columns[] = {
		{"OWNER", false, 5, 0, 0},
		{"TOKENS", true, 6, 0, 0},
		{"CONVERSATIONS", true, 13, 0, 0},
		{"RUNS", true, 4, 0, 0},
		{"BYTES", true, 8, 0, 0},
		{"USED", false, 19, 0, 0},
		{"STATE", false, 7, 0, 0},
		{"HOST", false, 4, 0, 0},
	};
	auto_table struct cli_table *table = options->common.json ? NULL : cli_table_new(columns, ARRAY_SIZE(columns));
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	auto_json struct json_object *places = json_object_new_object();
	auto_free char *text = NULL;
	struct listing listing = {table, places};
	char owner[STORE_OWNER_MAX + 1], host[HOST_MAX + 1];
	int result = cli_open_store(&options->common, STORE_READ, &config, &store, err);

	if (result == 0)
		result = read_table(options, &text, err);
	for (const char *line = text; line && *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (read_line(line, strcspn(line, "\n"), owner, host))
			json_add_string(places, owner, host); /* the last line of an owner counts, as in nginx's map */
	if (result == 0)
		result = store_owner_list(store, list_each, &listing, err);
	if (result == 0 && table)
		cli_table_print(table, stdout);
	return result;
}

/* -------- after a move -------------------------------------------------------------------------------- */

static int owners_leave(const struct owners *options, struct err *err)
{
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	int result = cli_open_store(&options->common, STORE_WRITE, &config, &store, err);

	if (result == 0)
		result = store_bundle_owner_leave(store, options->common.args[1], err);
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
		{"list", "no argument", 1, 1, owners_list},
		{"place", "OWNER [HOST]", 2, 3, owners_place},
		{"leave", "OWNER", 2, 2, owners_leave},
	};
	const struct owners *options = arg;

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (!streq(verbs[i].name, options->common.args[0]))
			continue;
		if (options->common.n_args < verbs[i].least || options->common.n_args > verbs[i].most)
			return err_set(err, ERR_INVALID, "owners %s takes %s", verbs[i].name, verbs[i].takes);
		if (options->table && verbs[i].run == owners_leave)
			return err_set(err, ERR_INVALID, "--table belongs to owners list and place");
		return verbs[i].run(options, err);
	}
	return err_set(err, ERR_INVALID, "owners %s: there are list, place and leave", options->common.args[0]);
}

const struct cli_command cmd_owners = {
	.name = "owners",
	.summary = "List owners, and place them on hosts",
	.arguments = "list | place OWNER [HOST] | leave OWNER",
	.help = "list shows the owners that have tokens or a record here, and their host in the placement table of the nginx in front. "
		"place writes an owner's line of that table, or without HOST removes it. "
		"leave removes the conversations and files of a drained owner from this host, after export --move and import --move took them to another one. "
		"Tokens and the record of runs stay.",
	.examples = "h1$ sallyport drain --owner alice && sallyport export --owner alice --move -o alice.bundle\n"
		"h2$ sallyport import --move alice.bundle\n"
		"front$ sallyport owners place alice h2 && nginx -t && systemctl reload nginx\n"
		"h1$ sallyport owners leave alice\n",
	.exits = "0 done\n"
		"2 the command line or a name is wrong\n"
		"5 the owner is not drained, or is busy\n",
	.groups = owners_groups,
	.size = sizeof(struct owners),
	.min_args = 1,
	.max_args = 3,
	.run = owners_run,
};
