/*
 * cmd_show.c - `sallyport show ID`: everything about one execution.
 *
 * --code, --stdout, --stderr give the exact bytes of one part when they go to a pipe or a file. On a terminal
 * everything is made printable line by line, because the bytes were chosen by the author of the program. The readable
 * form cuts long texts and says how to get the rest.
 */
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "lib/base/util.h"
#include "lib/store/record/store_baseline.h"
#include "lib/store/record/store_runtime.h"
#include "show.h"

#define SHOWN_MAX (16 * 1024) /* of each text, in the readable form */

struct show {
	struct cli_common common;
	bool code, out, error, files;
	const char *conversation, *owner;
};

static const struct cli_option show_options[] = {
	{.name = "code", .type = CLI_FLAG, .offset = offsetof(struct show, code), .help = "print only the program"},
	{.name = "stdout", .type = CLI_FLAG, .offset = offsetof(struct show, out),
	 .help = "print only its standard output, byte for byte"},
	{.name = "stderr", .type = CLI_FLAG, .offset = offsetof(struct show, error),
	 .help = "print only its standard error"},
	{.name = "files", .type = CLI_FLAG, .offset = offsetof(struct show, files),
	 .help = "print only the files before and after the run"},
	{.name = "conversation", .letter = 'c', .type = CLI_STRING, .offset = offsetof(struct show, conversation),
	 .value = "NAME",
	 .help = "show the runs of this conversation step by step, with the changes of its files"},
	{.name = "owner", .type = CLI_STRING, .offset = offsetof(struct show, owner), .value = "OWNER",
	 .help = "name the conversation's owner, if several owners have one of this name"},
	{0},
};
static const struct cli_group show_groups[] = {{show_options, 0}, {0}};

/* Lines stay lines and tabs stay tabs, everything else that is not printable becomes \xNN. */
static void print_text(const char *data, size_t length)
{
	const char *end = data + length;

	while (data < end) {
		const char *stop = data;

		while (stop < end && *stop != '\n' && *stop != '\t')
			stop++;
		cli_print_safe(stdout, data, (size_t)(stop - data));
		if (stop < end)
			putchar(*stop++);
		data = stop;
	}
}

/* Was it removed? */
static bool gone(const struct store_text *text)
{
	return text->length && !text->data && !*text->blob;
}

static int show_raw(struct store *store, const struct store_execution *e, const struct store_text *text,
		    struct err *err)
{
	auto_free char *data = NULL;
	size_t length = 0;
	int result = gone(text) ? store_execution_whole(e, err) : 0;

	if (result == 0)
		result = store_text_read(store, text, &data, &length, err);
	if (result < 0)
		return result;
	if (!isatty(STDOUT_FILENO)) {
		if (length > 0)
			fwrite(data, 1, length, stdout);
		return CLI_OK;
	}
	print_text(data, length);
	if (length && data[length - 1] != '\n')
		putchar('\n');
	return CLI_OK;
}

static void heading(const char *title)
{
	printf("\n%s%s%s\n", cli_colour_on(stdout, CLI_BOLD), title, cli_colour_off(stdout));
}

static int section(struct store *store, const struct store_text *text, const char *title, const char *option,
		   bool cut_by_limit, struct err *err)
{
	auto_free char *data = NULL;
	size_t length = 0;
	int result;

	if (!text->length || gone(text))
		return 0;
	result = store_text_read(store, text, &data, &length, err);
	if (result < 0)
		return err_wrap(err, "%s", title);
	heading(title);
	print_text(data, MIN(length, (size_t)SHOWN_MAX));
	if (data[MIN(length, (size_t)SHOWN_MAX) - 1] != '\n')
		putchar('\n');
	if (length > SHOWN_MAX)
		printf("… %zu bytes in all%s%s%s\n", length, *option ? ": sallyport show --" : "", option,
		       *option ? " prints them" : "");
	if (cut_by_limit)
		puts("… cut at the limit of the record");
	return 0;
}

static void line(const char *label, const char *value)
{
	if (!value || !*value)
		return;
	printf("%-14s", label);
	cli_print_safe(stdout, value, strlen(value));
	putchar('\n');
}

static void line_time(const char *label, int64_t us)
{
	char text[CLI_TEXT_SIZE];

	if (!us)
		return;
	cli_text_time(us, text);
	line(label, text);
}

static void line_usage(const char *label, const struct store_usage *usage)
{
	char wall[CLI_TEXT_SIZE], user[CLI_TEXT_SIZE], system[CLI_TEXT_SIZE], memory[CLI_TEXT_SIZE];

	if (!usage->wall_us)
		return;
	cli_text_duration(usage->wall_us, wall);
	cli_text_duration(usage->cpu_user_us, user);
	cli_text_duration(usage->cpu_system_us, system);
	cli_text_bytes(usage->memory_peak_bytes, memory);
	printf("%-14s%s wall, %s + %s CPU, %s memory\n", label, wall, user, system, memory);
}

/* What it ran on: *ret NULL, that was not recorded. */
static int runtime_of(struct store *store, const char *id, struct json_object **ret, struct err *err)
{
	auto_free char *text = NULL;
	int result = store_runtime_of(store, id, &text, err);

	*ret = NULL;
	return result < 0 || !text ? result : json_parse(text, strlen(text), ret, err);
}

static void show_caller(const struct store_execution *e)
{
	line("request", e->request_id);
	line("address", e->client_address);
	line("client", e->client);
	line("door", e->door);
	line("client's id", e->caller);
	line("grading", e->grading ? "yes" : NULL);
	line("trace", e->trace);
	if (e->secrets)
		printf("%-14s%lld\n", "secrets", (long long)e->secrets);
}

static void show_facts(const struct store_execution *e)
{
	line("id", e->id);
	line("state", cli_state_text(e->state));
	line("owner", e->owner);
	line("token", e->token_id);
	line("session", e->session_id);
	line("conversation", e->conversation);
	line_time("asked", e->created_us);
	line_time("recorded", e->finished_us);
	line("language", e->language);
	line("interpreter", e->fingerprint);
	line("run in place", e->entry);
	if (*e->sandbox_id)
		printf("%-14s%s, run %lld\n", "sandbox", e->sandbox_id, (long long)e->sandbox_seq);
	if (*e->task_id)
		printf("%-14s%s, %s\n", "task", e->task_id, cli_task_text(e));
	show_caller(e);
	line("arguments", e->args_json && !streq(e->args_json, "[]") ? e->args_json : NULL);
	line("environment", e->env_json && !streq(e->env_json, "{}") ? e->env_json : NULL);
	line("limits", e->limits_json);
	line("network", e->network ? "yes" : NULL);
	if (e->state == STORE_FINISHED) {
		char setup[CLI_TEXT_SIZE];

		printf("%-14s%s%s%s  ", "verdict", cli_colour_on(stdout, cli_verdict_colour(e->verdict)), e->verdict,
		       cli_colour_off(stdout));
		cli_print_safe(stdout, e->message, strlen(e->message));
		putchar('\n');
		if (e->exit_code >= 0)
			printf("%-14s%d\n", "exit code", e->exit_code);
		if (e->signal)
			printf("%-14s%d (%s)\n", "signal", e->signal,
			       sigabbrev_np(e->signal) ? sigabbrev_np(e->signal) : "?");
		line_usage("compile", &e->compile);
		line_usage("run", &e->run);
		cli_text_duration(e->setup_us, setup);
		printf("%-14s%s, %s\n", "set-up", setup, e->warm ? "warm" : "cold");
		line("details", e->result_json);
	} else if (e->state == STORE_INTERRUPTED)
		line("message", *e->message ? e->message : "the server ended while it ran");
}

/* A later generation of what is expected: into a list, or printed. */
static int baseline_each(void *arg, const struct store_baseline *baseline)
{
	struct json_object *list = arg, *object;
	char at[CLOCK_TEXT_SIZE];

	if (!list) {
		cli_text_time(baseline->blessed_us, at);
		printf("%-14sgeneration %lld, %s, %s, by ", "expected", (long long)baseline->generation,
		       baseline->verdict, at);
		cli_print_safe(stdout, baseline->author, strlen(baseline->author));
		fputs(": ", stdout);
		cli_print_safe(stdout, baseline->reason, strlen(baseline->reason));
		if (baseline->servers > 0)
			printf(" (%lld calls of tools answered anew)", (long long)baseline->calls);
		putchar('\n');
		return 0;
	}
	clock_text(baseline->blessed_us, at);
	object = json_object_new_object();
	json_add_int(object, "generation", baseline->generation);
	json_add_string(object, "blessed", at);
	json_add_bytes(object, "author", baseline->author, strlen(baseline->author));
	json_add_bytes(object, "reason", baseline->reason, strlen(baseline->reason));
	json_add_string(object, "fingerprint", baseline->fingerprint);
	json_add_string(object, "verdict", baseline->verdict);
	if (baseline->servers > 0)
		json_add_int(object, "tool_calls", baseline->calls);
	json_object_array_add(list, object);
	return 0;
}

struct files {
	struct json_object *list;
	bool json;
};

static int file_each(void *arg, const struct store_execution_file *f)
{
	struct files *files = arg;
	struct json_object *row = json_object_new_object();
	const bool before = f->phase == STORE_BEFORE;
	char mode[8];

	snprintf(mode, sizeof(mode), "%04o", f->file.mode & 0777);
	json_add_bytes(row, "name", f->file.name, f->file.name_length);
	json_add_string(row, "phase", before ? "before" : "after");
	json_add_string(row, "change", *f->change ? f->change : NULL);
	json_add_int(row, "size", f->file.size);
	json_add_string(row, "mode", mode);
	json_add_string(row, "sha256", *f->file.blob ? f->file.blob : NULL);
	json_add_string(row, "media_type", *f->file.media_type ? f->file.media_type : NULL);
	if (*f->reason)
		json_add_string(row, "reason", f->reason);
	if (!files->json) { /* columns of the table */
		json_add_string(row, "change", before ? "before" : f->change);
		json_add_string(row, "sha256", *f->file.blob ? f->file.blob : f->reason);
	}
	json_object_array_add(files->list, row);
	return 0;
}

static int files_list(struct store *store, const char *id, struct files *files, struct err *err)
{
	int result = store_execution_files(store, id, STORE_BEFORE, file_each, files, err);

	return result < 0 ? result : store_execution_files(store, id, STORE_AFTER, file_each, files, err);
}

static int show_files(struct store *store, const char *id, bool titled, struct err *err)
{
	static const struct cli_field fields[] = {
		{"change", "CHANGE", CLI_AS_TEXT, CLI_GREEN, 0}, {"mode", "MODE", CLI_AS_TEXT, 0, 0},
		{"size", "SIZE", CLI_AS_COUNT, 0, 0},            {"sha256", "SHA-256", CLI_AS_TEXT, CLI_DIM, 64},
		{"name", "NAME", CLI_AS_TEXT, 0, 0},
	};
	auto_json struct json_object *list = json_object_new_array();
	struct files files = {.list = list};
	int result = files_list(store, id, &files, err);

	if (result < 0)
		return result;
	if (titled && json_object_array_length(list))
		heading("files");
	if (!titled || json_object_array_length(list))
		cli_print_rows(list, fields, ARRAY_SIZE(fields), false);
	return 0;
}

static int add_text(struct store *store, struct json_object *object, const char *key, const struct store_text *text,
		    struct err *err)
{
	auto_free char *data = NULL;
	size_t length = 0;
	int result;

	if (!text->data && !*text->blob) {
		json_add_string(object, key, NULL);
		return 0;
	}
	result = store_text_read(store, text, &data, &length, err);
	if (result < 0)
		return err_wrap(err, "%s", key);
	json_add_bytes(object, key, data, length);
	return 0;
}

static int show_json(struct store *store, const struct store_execution *e, struct err *err)
{
	auto_json struct json_object *object = cli_execution_json(e);
	auto_json struct json_object *list = json_object_new_array(), *generations = json_object_new_array();
	struct json_object *runtime = NULL;
	struct files files = {.list = list, .json = true};
	int result = add_text(store, object, "code_text", &e->code, err);

	if (result == 0)
		result = add_text(store, object, "stdin_text", &e->stdin_text, err);
	if (result == 0)
		result = add_text(store, object, "stdout_text", &e->stdout_text, err);
	if (result == 0)
		result = add_text(store, object, "stderr_text", &e->stderr_text, err);
	if (result == 0)
		result = files_list(store, e->id, &files, err);
	if (result == 0)
		result = store_baseline_list(store, e->id, baseline_each, generations, err);
	if (result == 0)
		result = show_tools_json(store, e->id, object, err);
	if (result == 0)
		result = runtime_of(store, e->id, &runtime, err);
	if (result < 0)
		return result;
	json_add(object, "runtime", runtime);
	json_add(object, "files", steal(&list));
	json_add(object, "generations", steal(&generations));
	cli_print_json(stdout, object, true);
	return CLI_OK;
}

static int show_all(struct store *store, const struct store_execution *e, struct err *err)
{
	static const char *const members[] = {"interpreter", "sha256", "libraries", "kernel", "architecture",
					      "processor"};
	auto_json struct json_object *runtime = NULL;
	struct err erased = ERR_INIT;
	int result;

	show_facts(e);
	if (store_execution_whole(e, &erased) < 0)
		line("removed", erased.text);
	result = runtime_of(store, e->id, &runtime, err);
	for (size_t i = 0; runtime && i < ARRAY_SIZE(members); i++) {
		struct json_object *value = NULL;

		if (!json_object_object_get_ex(runtime, members[i], &value))
			continue;
		printf("%-14s%-13s", i == 0 ? "ran on" : "", members[i]);
		if (json_object_is_type(value, json_type_object))
			printf("%d (--json lists them)", json_object_object_length(value));
		else
			cli_print_safe(stdout, json_object_get_string(value), strlen(json_object_get_string(value)));
		putchar('\n');
	}
	if (result == 0)
		result = store_baseline_list(store, e->id, baseline_each, NULL, err);
	if (result == 0)
		result = section(store, &e->code, "code", "code", false, err);
	if (result == 0)
		result = section(store, &e->stdin_text, "stdin", "", false, err);
	if (result == 0)
		result = section(store, &e->stdout_text, "stdout", "stdout", e->stdout_truncated, err);
	if (result == 0)
		result = section(store, &e->stderr_text, "stderr", "stderr", e->stderr_truncated, err);
	if (result == 0)
		result = show_tools(store, e->id, err);
	return result < 0 ? result : show_files(store, e->id, true, err);
}

static int check(const struct show *show, struct err *err)
{
	const int parts = show->code + show->out + show->error + show->files;

	if (parts > 1)
		return err_set(err, ERR_INVALID, "only one of --code, --stdout, --stderr and --files at a time");
	if (!show->conversation == !show->common.n_args)
		return err_set(err, ERR_INVALID, "give either the ID of a run or --conversation");
	if (show->conversation && parts > 0)
		return err_set(err, ERR_INVALID, "--code and the like cannot be combined with --conversation");
	if (!show->conversation && show->owner)
		return err_set(err, ERR_INVALID, "--owner cannot be combined with an ID");
	return 0;
}

static int show_run(void *options, struct err *err)
{
	const struct show *show = options;
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	auto_execution struct store_execution e = {0};
	int result = check(show, err);

	if (result == 0)
		result = cli_open_store(&show->common, STORE_READ, &config, &store, err);
	if (result == 0 && show->conversation) {
		const struct show_steps steps = {show->owner, show->conversation, show->common.json};

		return show_steps(store, &steps, err);
	}
	if (result == 0)
		result = store_execution_find(store, show->common.args[0], &e, err);
	if (result < 0)
		return result;
	if (show->code)
		return show_raw(store, &e, &e.code, err);
	if (show->out)
		return show_raw(store, &e, &e.stdout_text, err);
	if (show->error)
		return show_raw(store, &e, &e.stderr_text, err);
	if (show->common.json)
		return show_json(store, &e, err);
	return show->files ? show_files(store, e.id, false, err) : show_all(store, &e, err);
}

const struct cli_command cmd_show = {
	.name = "show",
	.summary = "Show everything about one execution, or about a conversation",
	.arguments = "[ID]",
	.help = "ID may be the beginning of an id if no other id begins so. "
		"Text on a terminal is made printable; pipes and files receive the exact bytes.",
	.examples = "sallyport show 019a5c3e-71f2-7\n"
		"sallyport show --stdout 019a5c3e-71f2-7 >out.bin\n"
		"sallyport show --conversation talk --owner ann\n",
	.exits = "0 done\n"
		"3 no such execution\n"
		"5 several ids begin so\n",
	.groups = show_groups,
	.size = sizeof(struct show),
	.max_args = 1,
	.run = show_run,
};
