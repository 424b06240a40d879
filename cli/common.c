/*
 * common.c - what several commands share: the filter options, opening configuration, store and jailer, the JSON of an
 * execution.
 *
 * Filters are a table of options that each command appends to its own. Opening goes in one order for everybody:
 * configuration, store, jailer; what fails names the member or the file. The JSON of an execution is one shape for `log
 * --json` and `show --json`.
 */
#include <linux/ioprio.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli.h"
#include "lib/base/util.h"
#include "lib/job/job.h"

static const char *const verdicts[] = {"OK", "RE", "SG", "TO", "ML", "OL", "CE", "CX", "XX", NULL};

#define FIELD(member) offsetof(struct cli_filter, member)
const struct cli_option cli_filter_options[] = {
	{.name = "verdict", .type = CLI_STRINGS, .offset = FIELD(verdicts), .value = "V", .choices = verdicts,
	 .help = "select runs with this verdict; repeatable"},
	{.name = "language", .letter = 'l', .type = CLI_STRING, .offset = FIELD(language), .value = "NAME",
	 .help = "select runs in this language"},
	{.name = "owner", .type = CLI_STRINGS, .offset = FIELD(owners), .value = "OWNER",
	 .help = "select runs of this owner; repeatable"},
	{.name = "token", .type = CLI_STRING, .offset = FIELD(token), .value = "NAME",
	 .help = "select runs that the token of this name started; its id or the beginning of it do, too"},
	{.name = "conversation", .letter = 'c', .type = CLI_STRING, .offset = FIELD(conversation), .value = "NAME",
	 .help = "select runs of this conversation"},
	{.name = "task", .type = CLI_STRING, .offset = FIELD(task), .value = "ID",
	 .help = "select the run of this task, by its id or the beginning of it"},
	{.name = "tool", .type = CLI_STRING, .offset = FIELD(tool), .value = "PATTERN",
	 .help = "select runs that called a tool whose name matches: github, 'github.list_*'"},
	{.name = "door", .type = CLI_STRING, .offset = FIELD(door), .value = "NAME",
	 .help = "select runs that came through this API: mcp, v1, fusion, piston"},
	{.name = "since", .type = CLI_TIME, .offset = FIELD(since_us), .value = "TIME",
	 .help = "select runs from then on: 15m, 2h or 3d (ago), yesterday, 2026-11-21, 2026-11-21T08:11"},
	{.name = "until", .type = CLI_TIME, .offset = FIELD(until_us), .value = "TIME",
	 .help = "select runs up to then"},
	{.name = "text", .type = CLI_STRING, .offset = FIELD(text), .value = "TEXT",
	 .help = "select runs whose code (log: or output) contains TEXT"},
	{0},
};

const struct cli_option cli_log_options[] = {
	{.name = "request", .type = CLI_STRING, .offset = FIELD(request), .value = "ID",
	 .help = "select runs of the request with this X-Request-Id, or with this id of the client's own"},
	{.name = "client", .type = CLI_STRING, .offset = FIELD(client), .value = "PATTERN",
	 .help = "select runs that this client program asked for: 'claude-code/*'"},
	{.name = "file", .type = CLI_STRING, .offset = FIELD(file), .value = "PATTERN",
	 .help = "select runs that made, changed or removed a file of this name: report.csv, '*.csv'"},
	{.name = "same-code", .type = CLI_STRING, .offset = FIELD(same), .value = "ID",
	 .help = "select runs of the same code as the run with this id, also of other owners"},
	{.name = "denied", .type = CLI_FLAG, .offset = FIELD(denied),
	 .help = "select runs that were denied a system call, a connection or a tool"},
	{.name = "secrets", .type = CLI_FLAG, .offset = FIELD(secrets), .help = "select runs that had secrets"},
	{0},
};

const struct cli_option cli_tag_options[] = {
	{.name = "tag", .type = CLI_STRING, .offset = FIELD(tag), .value = "TAG",
	 .help = "select runs with this tag (sallyport tag)"},
	{0},
};

bool cli_filter_empty(const struct cli_filter *filter)
{
	return !filter->verdicts.count && !filter->language && !filter->owners.count && !filter->token &&
	       !filter->conversation && !filter->task && !filter->tool && !filter->door && !filter->text &&
	       !filter->tag && !filter->since_us && !filter->until_us;
}

bool cli_filter_owner(const struct cli_filter *filter, const char *owner)
{
	bool named = false;

	for (size_t i = 0; i < filter->owners.count; i++)
		named |= streq(filter->owners.items[i], owner);
	return named || filter->owners.count == 0;
}

void cli_filter_to_store(const struct cli_filter *filter, struct store_filter *ret)
{
	*ret = (struct store_filter){
		.owners = filter->owners.items,
		.n_owners = filter->owners.count,
		.token_id = filter->token,
		.conversation = filter->conversation,
		.language = filter->language,
		.task = filter->task,
		.tool = filter->tool,
		.tag = filter->tag,
		.request = filter->request,
		.client = filter->client,
		.door = filter->door,
		.file = filter->file,
		.same = filter->same,
		.denied = filter->denied,
		.secrets = filter->secrets,
		.text_in_code = filter->text,
		.since_us = filter->since_us,
		.until_us = filter->until_us,
	};
	for (size_t i = 0; i < filter->verdicts.count; i++) {
		const size_t used = strlen(ret->verdict);

		if (!strstr(ret->verdict, filter->verdicts.items[i])) /* so the list is never longer than all of them */
			snprintf(ret->verdict + used, sizeof(ret->verdict) - used, "%s%s", used ? "," : "",
				 filter->verdicts.items[i]);
	}
}

/* An id of standard input: the first word of a line, or the member "id" of one of --json. The caller's; NULL: none. */
static char *id_of_line(const char *line)
{
	auto_json struct json_object *object = NULL;
	const char *id = line + strspn(line, " \t\r\n");
	const size_t length = strcspn(id, " \t\r\n");

	if (*id == '{' && json_parse(id, strlen(id), &object, NULL) == 0) {
		const char *member = json_get_string(object, "id");

		return member ? xstrdup(member) : NULL;
	}
	return length > 0 && *id != '{' ? xstrndup(id, length) : NULL;
}

static int select_one(struct store *store, const char *id,
		      int (*each)(void *arg, const struct store_execution *execution), void *arg, struct err *err)
{
	auto_execution struct store_execution execution = {0};
	int result = store_execution_find(store, id, &execution, err);

	return result == 0 ? each(arg, &execution) : result;
}

static int select_read(struct store *store, int (*each)(void *arg, const struct store_execution *execution), void *arg,
		       struct err *err)
{
	auto_free char *line = NULL;
	size_t size = 0;
	int result = 0;

	while (result == 0 && getline(&line, &size, stdin) > 0) {
		auto_free char *id = id_of_line(line);

		if (id)
			result = select_one(store, id, each, arg, err);
	}
	return result;
}

int cli_select(struct store *store, const struct cli_selection *selection,
	       int (*each)(void *arg, const struct store_execution *execution), void *arg, struct err *err)
{
	const struct cli_common *common = selection->common;
	const bool filtered = !cli_filter_empty(selection->filter);
	struct store_filter filter;
	int result = 0;

	if (common->n_args == 0 && !selection->all && !filtered)
		return err_set(err, ERR_INVALID, "which executions? Give ids, filters, or --all (see --help)");
	if (common->n_args > 0 && (selection->all || filtered))
		return err_set(err, ERR_INVALID, "give either ids, or --all and filters");
	for (size_t i = 0; result == 0 && i < common->n_args; i++)
		result = streq(common->args[i], "-") ? select_read(store, each, arg, err)
						     : select_one(store, common->args[i], each, arg, err);
	if (common->n_args > 0)
		return result;
	cli_filter_to_store(selection->filter, &filter);
	return store_execution_list(store, &filter, each, arg, err);
}

void cli_store_pointer(struct store **store)
{
	store_close(*store);
}

void cli_jailer_pointer(struct jail_client **client)
{
	jail_client_free(*client);
}

int cli_load_config(const struct cli_common *common, struct config *ret, struct err *err)
{
	int result = config_load(common->config, ret, err);

	if (result == 0 && !*ret->data_dir) {
		config_clear(ret);
		result = err_set(err, ERR_INVALID,
				 "there is no data_dir: name a configuration with --config or SALLYPORT_CONFIG");
	}
	return result;
}

int cli_open_store(const struct cli_common *common, enum store_mode mode, struct config *ret_config, struct store **ret,
		   struct err *err)
{
	struct config config = {0};
	struct store *writer = NULL;
	int result = cli_load_config(common, &config, err);

	if (result < 0)
		return result;
	result = store_open(config.data_dir, mode, ret, err);
	if (result < 0) {
		config_clear(&config);
		return result;
	}
	/* Opening the record for writing marks the runs of processes that were killed, which else seem to run. Without
	 * the right to write they are shown as they are. */
	if (mode == STORE_READ && store_left_running(*ret) &&
	    store_open(config.data_dir, STORE_WRITE, &writer, NULL) == 0)
		store_close(writer);
	*ret_config = config;
	return 0;
}

#define MAKING_US 30000000 /* waited for: another command may be making the database, too */

int cli_make_database(const struct cli_common *common, struct err *err)
{
	auto_config struct config config = {0};
	const int64_t began = clock_monotonic_us();
	int result = config_load(common->config, &config, err);

	while (result == 0 && *config.data_dir) {
		auto_store struct store *store = NULL;
		int version = 0, found = store_schema_version(config.data_dir, &version, NULL);

		/* what else is wrong comes out when it is opened */
		if (found != -ERR_NOT_FOUND && (found < 0 || version > 0))
			break;
		result = store_open(config.data_dir, STORE_SERVE, &store, err);
		if (result == -ERR_CONFLICT && clock_monotonic_us() - began < MAKING_US) {
			poll(NULL, 0, 10);
			result = 0;
		}
	}
	return result;
}

int cli_audit(struct store *store, enum store_audit_kind kind, int64_t executions, struct err *err)
{
	struct store_audit entry;

	store_audit_init(&entry, kind, "log", "audit");
	store_audit_int(&entry, "executions", executions);
	return store_audit_add(store, &entry, err);
}

int cli_audit_read(const struct config *config, enum store_audit_kind kind, int64_t executions, struct err *err)
{
	auto_store struct store *store = NULL;
	int result = store_open(config->data_dir, STORE_WRITE, &store, err);

	if (result == -ERR_SYSTEM) {
		*err = ERR_INIT;
		return 0;
	}
	return result < 0 ? result : cli_audit(store, kind, executions, err);
}

/* -------- batch work gives way to a gateway ------------------------------------------------------------ */

/* Idle are the threads of this program, and the jails that it asks for (jail_client_background); not a private jailer,
 * which has deadlines to enforce while others want the processors. In a jail nothing shows it: a replayed program that
 * prints its nice value prints the recorded one. */
static const char *const priorities[] = {"idle", "normal", NULL};
const struct cli_option cli_priority_options[] = {
	{.name = "priority", .type = CLI_STRING, .value = "WHICH", .choices = priorities,
	 .help = "set the priority; idle uses only processor time that others leave [idle while a gateway serves data_dir, else normal]"},
	{0},
};

static bool gives_way;

void cli_give_way(const struct config *config, const struct cli_priority *priority)
{
	const struct sched_param none = {0};

	gives_way = priority->which ? streq(priority->which, "idle") : store_served(config->data_dir);
	if (!gives_way)
		return;
	/* Children begin anew. A kernel or a container that refuses one of these leaves us as we are. */
	sched_setscheduler(0, SCHED_IDLE | SCHED_RESET_ON_FORK, &none);
	syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
}

int cli_open_jailer(const struct config *config, struct jail_client **ret, size_t count, struct err *err)
{
	auto_json struct json_object *info = NULL;
	bool private = !config->jailer.socket || !*config->jailer.socket;
	int result = jail_client_dial(config, ret, count, err);

	if (result < 0)
		return result;
	/* it answers when it has found all that it needs; else it has said on standard error why not */
	if (private && jail_client_info(ret[0], &info, err) < 0) {
		for (size_t i = 0; i < count; i++)
			jail_client_free(steal(&ret[i]));
		return err_set(err, ERR_UNAVAILABLE,
			       "the private jailer could not start: sallyport doctor says what is missing");
	}
	for (size_t i = 0; i < count && gives_way; i++)
		jail_client_background(ret[i]);
	return 0;
}

/* A stored JSON text as a value; what cannot be read becomes null rather than ending a listing. */
static struct json_object *json_stored(const char *text)
{
	struct json_object *value = NULL;

	if (!text || json_parse(text, strlen(text), &value, NULL) < 0)
		return NULL;
	return value;
}

static void add_text_facts(struct json_object *object, const char *key, const struct store_text *text)
{
	struct json_object *facts = json_object_new_object();

	json_add_int(facts, "bytes", (int64_t)text->length);
	if (*text->blob)
		json_add_string(facts, "blob", text->blob);
	json_add(object, key, facts);
}

void cli_add_time(struct json_object *object, const char *key, int64_t us)
{
	char text[CLOCK_TEXT_SIZE];

	if (us)
		clock_text(us, text);
	json_add_string(object, key, us ? text : NULL);
}

const char *cli_state_text(enum store_state state)
{
	static const char *const texts[] = {
		[STORE_RUNNING] = "running",
		[STORE_FINISHED] = "finished",
		[STORE_INTERRUPTED] = "interrupted",
	};

	return texts[state];
}

const char *cli_task_text(const struct store_execution *e)
{
	return *e->task_state || !*e->task_id ? e->task_state : "expired";
}

struct json_object *cli_execution_json(const struct store_execution *e)
{
	struct json_object *object = json_object_new_object();

	json_add_string(object, "id", e->id);
	json_add_string(object, "state", cli_state_text(e->state));
	json_add_string(object, "owner", e->owner);
	json_add_string(object, "token", *e->token_id ? e->token_id : NULL);
	json_add_string(object, "session", *e->session_id ? e->session_id : NULL);
	json_add_string(object, "conversation", *e->conversation ? e->conversation : NULL);
	json_add_string(object, "client_address", *e->client_address ? e->client_address : NULL);
	json_add_string(object, "client", *e->client ? e->client : NULL);
	json_add_string(object, "door", *e->door ? e->door : NULL);
	json_add_string(object, "caller", *e->caller ? e->caller : NULL);
	if (e->grading)
		json_add_bool(object, "grading", true);
	json_add_int(object, "secrets", e->secrets);
	cli_add_time(object, "created", e->created_us);
	cli_add_time(object, "finished", e->finished_us);
	json_add_string(object, "language", e->language);
	json_add_string(object, "fingerprint", e->fingerprint);
	add_text_facts(object, "code", &e->code);
	add_text_facts(object, "stdin", &e->stdin_text);
	json_add(object, "args", json_stored(e->args_json));
	json_add(object, "environment", json_stored(e->env_json));
	json_add(object, "limits", json_stored(e->limits_json));
	json_add_bool(object, "network", e->network);
	if (*e->sandbox_id) {
		json_add_string(object, "sandbox", e->sandbox_id);
		json_add_int(object, "sandbox_seq", e->sandbox_seq);
	}
	if (*e->erased) {
		json_add_string(object, "erased", e->erased);
		cli_add_time(object, "erased_at", e->erased_us);
		json_add_string(object, "erased_why", e->erased_why);
	}
	json_add_string(object, "request_id", *e->request_id ? e->request_id : NULL);
	json_add_string(object, "trace", *e->trace ? e->trace : NULL);
	if (*e->task_id) {
		json_add_string(object, "task", e->task_id);
		json_add_string(object, "task_state", cli_task_text(e));
	}
	if (e->state != STORE_RUNNING) { /* of an interrupted one: verdict XX, and the output so far */
		struct jail_result result;

		job_result_columns(e, &result, NULL);
		bind_print_into(object, jail_result_table, &result, JAIL_COLUMNS);
		add_text_facts(object, "stdout", &e->stdout_text);
		add_text_facts(object, "stderr", &e->stderr_text);
		json_add(object, "result", json_stored(e->result_json));
	}
	return object;
}
