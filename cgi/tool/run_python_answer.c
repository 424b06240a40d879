/*
 * run_python_answer.c - see run_python_answer.h.
 *
 * A run that ended, or a refusal, becomes a struct answer, and an answer an object with all members. Both forms of the
 * text, and the structured content, are printed from that object.
 */
#include "run_python_answer.h"

#include <ctype.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/base/util.h"
#include "run_text.h"
#include "toon.h"

#define TEXT_MAX (8 * 1024 * 1024) /* while it is made: streams have run_text_room */

struct answer {
	const char *status, *summary, *error; /* error NULL: none */
	struct json_object *servers;          /* names; NULL or empty: none */
	struct buf out, errors;               /* the streams */
	bool ended;                           /* with exit status 0 */
	int64_t timeout_seconds;              /* 0: not told */
};

static void answer_init(struct answer *answer)
{
	*answer = (struct answer){0};
	buf_init(&answer->out, TEXT_MAX);
	buf_init(&answer->errors, TEXT_MAX);
}

static void answer_clear(struct answer *answer)
{
	buf_clear(&answer->out);
	buf_clear(&answer->errors);
	json_object_put(answer->servers);
}
#define auto_answer __attribute__((cleanup(answer_clear)))

/* -------- its members --------------------------------------------------------------------------------- */

/* A line that says nothing: blank, or the value of a call that has none. */
static bool is_noise(const char *line, size_t length)
{
	while (length > 0 && isspace((unsigned char)line[length - 1]))
		length--;
	while (length > 0 && isspace((unsigned char)*line)) {
		line++;
		length--;
	}
	return length == 0 || (length == 2 && memcmp(line, "()", 2) == 0);
}

static struct json_object *lines_of(const struct buf *text)
{
	struct json_object *lines = json_object_new_array();

	for (size_t at = 0; at < text->length;) {
		const char *line = text->data + at;
		size_t length = 0;

		while (at + length < text->length && line[length] != '\n' && line[length] != '\r')
			length++;
		at += length + 1;
		if (is_noise(line, length))
			continue;
		auto_buf struct buf shown = {0};

		buf_init(&shown, TEXT_MAX);
		for (size_t i = 0; i < length; i++) {
			if (line[i])
				buf_putc(&shown, line[i]);
			else
				buf_puts(&shown, "\\x00"); /* a NUL would end the text */
		}
		json_object_array_add(lines, json_new_safe(shown.data, shown.length));
	}
	return lines;
}

static void add_filled(struct json_object *object, const char *name, struct json_object *array)
{
	if (array && json_object_array_length(array) > 0)
		json_add(object, name, json_object_get(array));
}

/* All members, in the order of that system. */
static struct json_object *members(const struct answer *answer)
{
	struct json_object *object = json_object_new_object();
	auto_json struct json_object *out = lines_of(&answer->out), *errors = lines_of(&answer->errors);
	const bool silent = json_object_array_length(out) == 0 && json_object_array_length(errors) == 0;
	const bool is_success = streq(answer->status, "success");

	json_add_string(object, "status", answer->status);
	json_add_string(object, "summary", is_success && silent ? "Success (no output)" : answer->summary);
	if (answer->ended)
		json_add_int(object, "exitCode", 0);
	add_filled(object, "servers", answer->servers);
	add_filled(object, "stdout", out);
	add_filled(object, "stderr", errors);
	if (answer->error)
		json_add_string(object, "error", answer->error);
	if (answer->timeout_seconds > 0)
		json_add_int(object, "timeoutSeconds", answer->timeout_seconds);
	return object;
}

/* -------- the text ------------------------------------------------------------------------------------ */

static void add_lines(struct buf *text, struct json_object *all, const char *name, const char *head)
{
	struct json_object *lines = json_get(all, name, json_type_array);

	if (!lines)
		return;
	buf_printf(text, "%s%s", text->length ? "\n" : "", head);
	for (size_t i = 0; i < json_object_array_length(lines); i++)
		buf_printf(text, "%s%s", i ? "\n" : "", json_object_get_string(json_object_array_get_idx(lines, i)));
}

static void print_compact(struct buf *ret, struct json_object *all)
{
	const char *status = json_get_string(all, "status"), *error = json_get_string(all, "error");
	auto_buf struct buf text = {0};

	buf_init(&text, TEXT_MAX);
	add_lines(&text, all, "stdout", "");
	add_lines(&text, all, "stderr", "stderr:\n");
	const bool silent = text.length == 0;

	if (silent)
		buf_puts(&text, json_get_string(all, "summary"));
	if (error && !streq(status, "error"))
		buf_printf(&text, "\nerror: %s", error);
	buf_putc(&text, '\0');
	if (!streq(status, "success"))
		buf_printf(ret, "status: %s\n%s", status, text.data);
	else
		buf_puts(ret, text.data);
}

static void print(const struct config *config, const struct answer *answer, struct tool_result *ret)
{
	auto_json struct json_object *all = members(answer);
	auto_buf struct buf text = {0};

	buf_init(&text, TEXT_MAX);
	if (streq(config->tools.bridge_output, "toon")) {
		buf_puts(&text, "```toon\n");
		toon_print(&text, all);
		buf_puts(&text, "```");
		ret->form = json_object_get(all);
	} else {
		const bool is_success = streq(answer->status, "success");

		print_compact(&text, all);
		/* Without status and summary where the output says it all, and without an exit code of 0. */
		ret->form = json_object_new_object();
		json_object_object_foreach(all, name, value)
		{
			if (streq(name, "exitCode") || (is_success && streq(name, "status")))
				continue;
			if (is_success && streq(name, "summary") && json_get(all, "stdout", json_type_array))
				continue;
			json_object_object_add(ret->form, name, json_object_get(value));
		}
	}
	size_t begin = 0, end = text.length; /* without blanks at the ends */

	while (end > begin && isspace((unsigned char)text.data[end - 1]))
		end--;
	while (begin < end && isspace((unsigned char)text.data[begin]))
		begin++;
	tool_add_text(ret->content, text.data + begin, end - begin);
}

/* -------- of a run ------------------------------------------------------------------------------------ */

/* The time limit that the run had, rounded up; 0: the record does not say. */
static int64_t seconds_of(struct server *server, const struct job_result *result)
{
	struct store_execution execution;
	struct jail_limits limits = {0};
	auto_json struct json_object *object = NULL;
	struct err err = ERR_INIT;

	if (store_execution_find(server->store, result->id, &execution, &err) < 0)
		return 0;
	if (json_parse(execution.limits_json, strlen(execution.limits_json), &object, &err) < 0 ||
	    bind_parse(jail_limits_table, object, &limits, &err) < 0)
		limits.wall_us = 0;
	store_execution_clear(&execution);
	return (limits.wall_us + 999999) / 1000000;
}

void run_python_answer(const struct tool_call *call, const struct job_result *result, struct tool_result *ret)
{
	struct server *server = call->server;
	const size_t room = run_text_streams_room(run_text_room(server, call->token), 0);
	const struct jail_result *jail = &result->jail;
	auto_answer struct answer answer;
	char error[JAIL_MESSAGE_TEXT + 64] = "", summary[sizeof(error) + 64];

	auto_streams struct run_streams streams = {0};

	answer_init(&answer);
	run_streams_take(server, result, room, jail->verdict != JAIL_OK, &streams);
	run_text_stream(&answer.out, &streams.out, RUN_TEXT_ALONE);
	run_text_stream(&answer.errors, &streams.error, RUN_TEXT_ALONE);
	answer.servers = json_object_new_array();
	for (size_t i = 0; i < result->tools.n_servers; i++)
		json_object_array_add(answer.servers, json_object_new_string(result->tools.servers[i].name));
	if (jail->verdict == JAIL_OK) {
		answer.status = "success";
		answer.ended = true;
		snprintf(summary, sizeof(summary), "Success");
	} else if (jail->verdict == JAIL_TO) {
		answer.status = "timeout";
		answer.timeout_seconds = seconds_of(server, result);
		snprintf(error, sizeof(error), "Execution timed out after %llds", (long long)answer.timeout_seconds);
		snprintf(summary, sizeof(summary), "Timeout: execution exceeded %llds",
			 (long long)answer.timeout_seconds);
	} else {
		answer.status = "error";
		if (jail->verdict == JAIL_RE)
			snprintf(error, sizeof(error), "Sandbox exited with code %d", jail->exit_code);
		else
			snprintf(error, sizeof(error), "%s", jail->message);
		snprintf(summary, sizeof(summary), "Sandbox error: %s", error);
	}
	answer.summary = summary;
	answer.error = *error ? error : NULL;
	print(server->config, &answer, ret);
}

/* -------- of a refusal -------------------------------------------------------------------------------- */

void run_python_refused(const struct config *config, struct json_object *arguments, const struct err *err,
			struct tool_result *ret)
{
	struct json_object *servers = NULL, *timeout = NULL;
	const char *code = json_object_get_string(json_get(arguments, "code", json_type_string));
	char summary[ERR_TEXT_SIZE + 32];
	auto_answer struct answer answer;

	answer_init(&answer);
	if (err->code == ERR_INVALID) {
		/* That system's sentence for arguments that it would refuse, too; else ours. */
		answer.status = "validation_error";
		if (!code || code[strspn(code, " \t\r\n\v\f")] == '\0')
			answer.error = "Missing 'code' argument";
		else if (json_object_object_get_ex(arguments, "servers", &servers) &&
			 !json_object_is_type(servers, json_type_array))
			answer.error = "'servers' must be a list";
		else if (json_object_object_get_ex(arguments, "timeout", &timeout) &&
			 !json_object_is_type(timeout, json_type_int))
			answer.error = "'timeout' must be an integer";
		else
			answer.error = err->text;
		answer.summary = answer.error;
	} else {
		answer.status = "error";
		answer.servers = json_object_get(json_get(arguments, "servers", json_type_array));
		snprintf(summary, sizeof(summary), "Sandbox error: %s", err->text);
		answer.summary = summary;
		answer.error = err->text;
	}
	print(config, &answer, ret);
}
