/*
 * cmd_audit.c - `sallyport audit log`: who did what, to what, when, from where and with which result.
 *
 * `audit certificate` proves what entries say of erasures.
 * `audit verify`, `audit prove` and `audit checkpoint` are commands of their own files (main.c sends them there).
 * --follow asks for what comes behind the last entry that was shown.
 */
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "lib/audit/audit_certificate.h"
#include "lib/base/util.h"
#include "lib/store/audit/store_audit_list.h"

#define AUDIT_LIMIT_DEFAULT 20
#define AUDIT_LIMIT_MAX     100000000
#define AUDIT_CHECKPOINT    "/var/lib/sallyport-audit/checkpoint"

struct audit {
	struct cli_common common;
	const char *kind, *owner, *token, *conversation, *file, *run, *request, *address, *client, *checkpoint;
	int64_t since_us, until_us, limit;
	bool follow;
};

#define FIELD(member) offsetof(struct audit, member)
static const struct cli_option audit_options[] = {
	{.name = "kind", .type = CLI_STRING, .offset = FIELD(kind), .value = "PATTERN",
	 .help = "select entries of this kind: run.end, 'file.*', 'admin.*'"},
	{.name = "owner", .type = CLI_STRING, .offset = FIELD(owner), .value = "OWNER",
	 .help = "select entries about this owner"},
	{.name = "token", .type = CLI_STRING, .offset = FIELD(token), .value = "NAME",
	 .help = "select what was done with the token of this name or id"},
	{.name = "conversation", .letter = 'c', .type = CLI_STRING, .offset = FIELD(conversation), .value = "NAME",
	 .help = "select entries about this conversation, its runs and its files"},
	{.name = "file", .type = CLI_STRING, .offset = FIELD(file), .value = "PATTERN",
	 .help = "select uploads, downloads and removals of files of this name, and runs that changed one: report.csv, '*.csv'"},
	{.name = "run", .type = CLI_STRING, .offset = FIELD(run), .value = "ID",
	 .help = "select entries about this run; ID may be the beginning of an id"},
	{.name = "request", .type = CLI_STRING, .offset = FIELD(request), .value = "ID",
	 .help = "select what the HTTP request with this X-Request-Id did"},
	{.name = "address", .type = CLI_STRING, .offset = FIELD(address), .value = "PATTERN",
	 .help = "select what clients at this address did: 203.0.113.7, '203.0.113.*'"},
	{.name = "client", .type = CLI_STRING, .offset = FIELD(client), .value = "PATTERN",
	 .help = "select what this client program did: 'claude-code/*'"},
	{.name = "since", .type = CLI_TIME, .offset = FIELD(since_us), .value = "TIME",
	 .help = "select entries from then on: 15m, 2h or 3d (ago), yesterday, 2026-11-21, 2026-11-21T14:00"},
	{.name = "until", .type = CLI_TIME, .offset = FIELD(until_us), .value = "TIME",
	 .help = "select entries before then"},
	{.name = "limit", .letter = 'n', .type = CLI_INT, .offset = FIELD(limit), .min = 1, .max = AUDIT_LIMIT_MAX,
	 .value = "N", .help = "list at most N entries, the newest [20; all with --since]"},
	{.name = "checkpoint", .type = CLI_STRING, .offset = FIELD(checkpoint), .value = "FILE", .input = true,
	 .help = "certificate: prove against this checkpoint [" AUDIT_CHECKPOINT ", where it is]"},
	{.name = "follow", .type = CLI_FLAG, .offset = FIELD(follow),
	 .help = "list the oldest first, then each entry as it is written, until Ctrl-C"},
	{0},
};
static const struct cli_group audit_groups[] = {{audit_options, 0}, {0}};

static const struct cli_column columns[] = {{"TIME", false, 19, 0, 0},         {"KIND", false, 4, 19, 0},
					    {"OWNER", false, 5, 16, 0},        {"BY", false, 2, 16, 0},
					    {"RESULT", false, 6, 11, 0},       {"FROM", false, 4, 39, 0},
					    {"ABOUT", false, 5, 200, 0}};

struct view {
	struct cli_table *table; /* NULL: JSON lines */
	int64_t last;            /* the number of the last entry that was shown */
};

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

/* The file in its conversation; the run and its conversation; else the object. */
static char *about(const struct store_audit_line *line)
{
	const char *conversation = line->columns[STORE_AUDIT_LINE_CONVERSATION];
	const char *file = line->columns[STORE_AUDIT_LINE_FILE], *run = line->columns[STORE_AUDIT_LINE_RUN];
	const char *object = line->columns[STORE_AUDIT_LINE_OBJECT];

	if (file && conversation)
		return xasprintf("%s/%s", conversation, file);
	if (run && conversation)
		return xasprintf("%s in %s", run, conversation);
	if (file || run)
		return xstrdup(file ? file : run);
	if (conversation)
		return xasprintf("conversation %s", conversation);
	return xstrdup(or_empty(object));
}

static void json_line(const struct store_audit_line *line)
{
	auto_json struct json_object *object = json_object_new_object();
	char at[CLOCK_TEXT_SIZE];

	clock_text(line->at_us, at);
	json_add_int(object, "n", line->n);
	json_add_string(object, "at", at);
	for (int i = 0; i < STORE_AUDIT_LINE_COLUMNS; i++) {
		const char *text = line->columns[i];

		if (text && (i == STORE_AUDIT_LINE_FACTS || i == STORE_AUDIT_LINE_DETAILS))
			json_add(object, store_audit_line_names[i], json_new_printed(text, strlen(text)));
		else if (text)
			json_add_bytes(object, store_audit_line_names[i], text, strlen(text));
		else
			json_add_string(object, store_audit_line_names[i], NULL);
	}
	cli_print_json(stdout, object, false);
}

static int show_line(void *arg, const struct store_audit_line *line)
{
	struct view *view = arg;
	const char *token = line->columns[STORE_AUDIT_LINE_TOKEN], *result = line->columns[STORE_AUDIT_LINE_RESULT];
	auto_free char *object = about(line);
	char time[CLI_TEXT_SIZE];

	view->last = MAX(view->last, line->n);
	if (!view->table) {
		json_line(line);
		return 0;
	}
	cli_text_time(line->at_us, time);
	cli_table_cell(view->table, time, CLI_PLAIN);
	cli_table_cell(view->table, line->columns[STORE_AUDIT_LINE_KIND], CLI_BLUE);
	cli_table_cell(view->table, or_empty(line->columns[STORE_AUDIT_LINE_OWNER]), CLI_PLAIN);
	cli_table_cell(view->table, token ? token : or_empty(line->columns[STORE_AUDIT_LINE_ACTOR]), CLI_PLAIN);
	cli_table_cell(view->table, or_empty(result), result && streq(result, "refused") ? CLI_YELLOW : CLI_PLAIN);
	cli_table_cell(view->table, or_empty(line->columns[STORE_AUDIT_LINE_ADDRESS]), CLI_PLAIN);
	cli_table_cell(view->table, object, CLI_PLAIN);
	return 0;
}

struct asking {
	struct view *view;
	struct store *store;
	struct store_audit_lines which;
};

static int look(void *arg, struct err *err)
{
	struct asking *asking = arg;
	struct view *view = asking->view;
	int result = store_audit_list(asking->store, &asking->which, show_line, view, err);

	if (result < 0)
		return result;
	if (view->table)
		cli_table_print(view->table, stdout);
	return fflush(stdout) ? err_errno(err, "writing the output") : 0;
}

static int look_on(void *arg, struct err *err)
{
	struct asking *asking = arg;

	asking->which.after = MAX(asking->which.after, asking->view->last);
	return look(arg, err);
}

/* The oldest of the last `limit` that match: from there on they are shown in their order. */
static int find_oldest(void *arg, const struct store_audit_line *line)
{
	*(int64_t *)arg = line->n;
	return 0;
}

static int follow(struct asking *asking, const struct config *config, struct err *err)
{
	auto_close int watch = cli_follow_open(config, err);
	struct store_audit_lines first = asking->which;
	int64_t oldest = -1;
	int result = watch < 0 ? watch : store_audit_next(asking->store, &asking->which.after, err);

	if (result == 0)
		result = store_audit_list(asking->store, &first, find_oldest, &oldest, err);
	if (result < 0)
		return result;
	asking->which.after = oldest >= 0 ? oldest - 1 : asking->which.after - 1;
	asking->which.newest_first = false;
	asking->which.limit = 0;
	return cli_follow(watch, look_on, asking, err);
}

/* -------- certificate ---------------------------------------------------------------------------------- */

/* What an entry of kind content.erase says. */
static int add_erasure(void *arg, const struct store_audit_line *line)
{
	auto_json struct json_object *facts = NULL, *details = NULL;
	struct json_object *erasure = json_object_new_object();
	const char *fact = line->columns[STORE_AUDIT_LINE_FACTS], *detail = line->columns[STORE_AUDIT_LINE_DETAILS];
	char at[CLOCK_TEXT_SIZE];

	if (fact)
		json_parse(fact, strlen(fact), &facts, NULL);
	if (detail)
		json_parse(detail, strlen(detail), &details, NULL);
	clock_text(line->at_us, at);
	json_add_int(erasure, "n", line->n);
	json_add_string(erasure, "at", at);
	json_add_string(erasure, "what", facts ? json_get_string(facts, "what") : NULL);
	json_add_string(erasure, "reason", facts ? json_get_string(facts, "reason") : NULL);
	json_add_string(erasure, "owner", line->columns[STORE_AUDIT_LINE_OWNER]);
	json_add_string(erasure, "by", line->columns[STORE_AUDIT_LINE_ACTOR]);
	json_add_string(erasure, "object", line->columns[STORE_AUDIT_LINE_OBJECT]);
	json_add_string(erasure, "ticket", details ? json_get_string(details, "ticket") : NULL);
	json_object_array_add(arg, erasure);
	return 0;
}

/* "17", "17-42". */
static int read_entries(const char *text, struct store_audit_lines *which, struct err *err)
{
	auto_free char *first = xstrndup(text, strcspn(text, "-"));
	const char *last = text[strlen(first)] ? text + strlen(first) + 1 : first;
	uint64_t from, to;

	if (parse_u64(first, 0, INT64_MAX - 1, &from) < 0 || parse_u64(last, from, INT64_MAX - 1, &to) < 0)
		return err_set(err, ERR_INVALID, "'%s' must be the numbers of entries, 17 or 17-42", text);
	which->after = (int64_t)from - 1;
	which->before = (int64_t)to + 1;
	return 0;
}

static int certify(const struct audit *audit, struct asking *asking, const struct config *config, struct err *err)
{
	auto_json struct json_object *erasures = json_object_new_array(), *certificate = NULL;
	const char *entries = audit->common.n_args > 1 ? audit->common.args[1] : NULL;
	const char *checkpoint = audit->checkpoint;
	int result = 0;

	if (audit->kind || audit->follow)
		return err_set(err, ERR_INVALID, "certificate is of erasures: neither --kind nor --follow");
	if (!checkpoint && access(AUDIT_CHECKPOINT, F_OK) == 0)
		checkpoint = AUDIT_CHECKPOINT;
	asking->which.kind = "content.erase";
	asking->which.newest_first = false;
	asking->which.limit = audit->limit;
	if (entries)
		result = read_entries(entries, &asking->which, err);
	if (result == 0)
		result = store_audit_list(asking->store, &asking->which, add_erasure, erasures, err);
	if (result == 0 && json_object_array_length(erasures) == 0)
		result = err_set(err, ERR_NOT_FOUND, "nothing was erased that matches");
	if (result == 0)
		result = audit_certificate_make(config->data_dir, checkpoint, erasures, &certificate, err);
	if (result < 0)
		return result;
	cli_print_json(stdout, certificate, true);
	if (!checkpoint)
		fputs("sallyport: there is no checkpoint, so nobody signed this: see sallyport checkpoint --help\n",
		      stderr);
	return CLI_OK;
}

static int audit_run(void *options, struct err *err)
{
	const struct audit *audit = options;
	const bool certificate = streq(audit->common.args[0], "certificate");
	auto_table struct cli_table *table = NULL;
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;

	if (!certificate && !streq(audit->common.args[0], "log"))
		return err_set(err, ERR_INVALID, "'%s' is none of log, certificate, verify, prove, checkpoint",
			       audit->common.args[0]);
	if (!certificate && (audit->common.n_args > 1 || audit->checkpoint))
		return err_set(err, ERR_INVALID, "log takes neither numbers of entries nor --checkpoint");
	int result = cli_open_store(&audit->common, STORE_READ, &config, &store, err);

	if (result < 0)
		return result;
	table = audit->common.json ? NULL : cli_table_new(columns, ARRAY_SIZE(columns));
	struct view view = {.table = table, .last = -1};
	struct asking asking = {
		.view = &view,
		.store = store,
		.which = {.kind = audit->kind, .owner = audit->owner, .token = audit->token,
			  .conversation = audit->conversation, .file = audit->file, .run = audit->run,
			  .request_id = audit->request, .address = audit->address, .client = audit->client,
			  .since_us = audit->since_us, .until_us = audit->until_us, .after = -1,
			  .limit = audit->limit ? audit->limit : audit->since_us ? 0 : AUDIT_LIMIT_DEFAULT,
			  .newest_first = true},
	};

	if (certificate)
		return certify(audit, &asking, &config, err);
	return audit->follow ? follow(&asking, &config, err) : look(&asking, err);
}

const struct cli_command cmd_audit = {
	.name = "audit",
	.summary = "List the audit log; verify it, prove entries, sign checkpoints",
	.arguments = "log | certificate [ENTRIES] | verify | prove | checkpoint",
	.help = "log lists who did what, to what, when, from where and with which result, the newest first. "
		"Several filters must all match. "
		"What was erased is not shown any more, but its entry is. "
		"--json prints one object a line, with the facts and details of the entry.\n\n"
		"certificate prints, as JSON, what was erased, when, by whom and for whom, with proofs that the signed log says so; "
		"ENTRIES are numbers of entries, as forget prints them (17-42), and filters do, too. "
		"sallyport verify --certificate checks it.\n\n"
		"verify, prove and checkpoint are the commands of these names: sallyport audit verify --help.",
	.examples = "sallyport audit log --since 2026-11-27T14:00 --until 2026-11-27T14:10\n"
		"sallyport audit log --kind 'file.*' --file report.csv\n"
		"sallyport audit log --kind 'admin.*' --json\n"
		"sallyport audit certificate --owner ann --since today >certificate.json\n"
		"sallyport audit verify --signer /var/lib/sallyport-audit\n",
	.exits = "0 done, also when nothing matches\n"
		"3 certificate: nothing was erased that matches\n"
		"8 certificate: no checkpoint covers it yet\n"
		"11 certificate: the log is not the one of the checkpoint\n",
	.groups = audit_groups,
	.size = sizeof(struct audit),
	.min_args = 1,
	.max_args = 2,
	.run = audit_run,
};
