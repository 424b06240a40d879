/*
 * tool_direct.c - see tool_direct.h.
 *
 * Nothing is kept here: the lists come from the pool's cache, names are computed from them, and a name is found by
 * computing the names of the servers that it can belong to. The call runs as a job like any other; its result is taken
 * from the record of its one call, so it does not pass through the program's output and its caps.
 */
#include "tool_direct.h"

#include <stdio.h>
#include <string.h>

#include "cgi/http/hub.h"
#include "cgi/mcp/mcp.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/bridge/bridge.h"
#include "lib/store/db/crypto.h"
#include "lib/upstream/upstream_pin.h"
#include "run_result.h"

#define SEPARATOR    "__"
#define DIGITS       8
#define CUT          (TOOL_DIRECT_MAX - DIGITS - 1)
#define LIST_SECONDS 10 /* for servers that have to start first; the others are listed */
#define PROGRAM      "exec mcp call \"$1\" \"$2\" --json - --raw >/dev/null" /* the call's record has the result */

/* -------- names --------------------------------------------------------------------------------------- */

static void plain_name(const struct upstream_server *server, const char *tool, struct buf *ret)
{
	char alias[UPSTREAM_ALIAS_SIZE];

	upstream_name_alias(tool, alias);
	buf_reset(ret);
	buf_printf(ret, "%s" SEPARATOR "%s", server->alias, alias);
}

static bool ambiguous(const struct upstream_server *server)
{
	const size_t length = strlen(server->alias);

	return strstr(server->alias, SEPARATOR) || server->alias[length - 1] == '_';
}

static bool shared(const struct upstream_list *list, const struct upstream_tool *tool, const struct buf *name)
{
	auto_buf struct buf other = {0};

	buf_init(&other, SIZE_MAX / 2);
	for (size_t i = 0; i < list->count; i++) {
		plain_name(list->server, list->tools[i].name, &other);
		if (&list->tools[i] != tool && other.length == name->length && streq(other.data, name->data))
			return true;
	}
	return false;
}

void tool_direct_name(const struct upstream_list *list, const struct upstream_tool *tool,
		      char ret[TOOL_DIRECT_MAX + 1])
{
	auto_buf struct buf name = {0};
	char digest[SHA256_HEX_SIZE];

	buf_init(&name, SIZE_MAX / 2);
	plain_name(list->server, tool->name, &name);
	if (name.length <= TOOL_DIRECT_MAX && !ambiguous(list->server) && !shared(list, tool, &name)) {
		snprintf(ret, TOOL_DIRECT_MAX + 1, "%s", name.data);
		return;
	}
	auto_free char *exact = xasprintf("%s\n%s", list->server->name, tool->name);

	sha256_hex(exact, strlen(exact), digest);
	snprintf(ret, TOOL_DIRECT_MAX + 1, "%.*s_%.*s", CUT, name.data, DIGITS, digest);
}

/* Can a tool of this server have the name? */
static bool begins(const char *name, const struct upstream_server *server)
{
	return strncmp(name, server->alias, MIN(strlen(server->alias), (size_t)CUT)) == 0;
}

/* -------- lists --------------------------------------------------------------------------------------- */

/* The list as the caller sees it; NULL: the token may not have it, or the server does not answer (*ret_away). */
static struct upstream_list *list_of(struct upstream *upstream, const struct store_token *token,
				     const struct upstream_server *server, int64_t deadline, struct err *ret_away)
{
	const struct upstream_key key = {server, token->owner, "list"};
	struct upstream_list *list;
	struct err err = ERR_INIT;

	if (server->disabled || server->problem || !upstream_policy_granted(tool_grant(token), server))
		return NULL;
	if (upstream_list(upstream, &key, deadline, &list, &err) == 0)
		return list;
	log_event(LOG_WARN, "tools of a server are not listed", "server", server->name, "error", err.text, NULL);
	err_set(ret_away, ERR_UNAVAILABLE, "the server %s is not available now: try again later", server->name);
	return NULL;
}

static void print_tool(struct buf *out, const struct upstream_list *list, const struct upstream_tool *tool)
{
	struct json_object *object = NULL;
	char name[TOOL_DIRECT_MAX + 1];

	tool_direct_name(list, tool, name);
	if (json_object_deep_copy(tool->object, &object, NULL) < 0)
		return;
	json_add_string(object, "name", name);
	json_object_object_del(object, "execution"); /* it cannot be a task here */
	json_object_object_del(object, "_meta");
	if (out->data[out->length - 1] != '[')
		buf_putc(out, ',');
	json_print(out, object);
	json_object_put(object);
}

static void print_list(struct mcp_call *call, const struct upstream_list *list, struct buf *out)
{
	const struct store_token *token = &call->exchange->token;
	auto_free enum upstream_pin *pins = NULL;
	char rule[UPSTREAM_RULE_SIZE];
	struct err err = ERR_INIT;

	if (upstream_pin_states(call->exchange->server->store, list, true, &pins, &err) < 0) {
		log_event(LOG_ERROR, "definitions cannot be compared", "server", list->server->name, "error", err.text,
			  NULL);
		return;
	}
	for (size_t i = 0; i < list->count; i++) {
		const struct upstream_tool *tool = &list->tools[i];
		const struct upstream_question question = {tool_grant(token), list->server, tool->name, tool, pins[i]};

		if (upstream_decide(&question, rule) != UPSTREAM_DENY)
			print_tool(out, list, tool);
	}
}

static void add_list(struct mcp_call *call, struct buf *out)
{
	const int64_t deadline = clock_monotonic_us() + LIST_SECONDS * INT64_C(1000000);
	struct upstream *upstream;
	struct err err = ERR_INIT;
	size_t count;

	if (!access_allows(access_scopes(&call->exchange->token), STORE_SCOPE_RUN))
		return;
	if (tool_upstream(call->exchange->server, &upstream, &err) < 0) {
		log_event(LOG_ERROR, "tools of upstream servers are not listed", "error", err.text, NULL);
		return;
	}
	const struct upstream_server *servers = upstream_servers(upstream, &count);

	out->data[--out->length] = '\0'; /* "]" */
	for (size_t i = 0; i < count; i++) {
		auto_upstream_list struct upstream_list *list =
			list_of(upstream, &call->exchange->token, &servers[i], deadline, NULL);

		if (list)
			print_list(call, list, out);
	}
	buf_putc(out, ']');
}

/* -------- a call -------------------------------------------------------------------------------------- */

struct found {
	char *server, *tool; /* its alias; its exact name */
};

static void found_clear(struct found *found)
{
	free(found->server);
	free(found->tool);
}

static int find_tool(struct tool_call *call, const char *name, struct found *ret, struct err *err)
{
	const int64_t deadline = clock_monotonic_us() + LIST_SECONDS * INT64_C(1000000);
	struct upstream *upstream;
	char other[TOOL_DIRECT_MAX + 1];
	struct err away = ERR_INIT;
	size_t count;
	int result = tool_upstream(call->server, &upstream, err);

	if (result < 0)
		return result;
	const struct upstream_server *servers = upstream_servers(upstream, &count);

	for (size_t i = 0; i < count; i++) {
		auto_upstream_list struct upstream_list *list =
			begins(name, &servers[i]) ? list_of(upstream, call->token, &servers[i], deadline, &away) : NULL;

		for (size_t k = 0; list && k < list->count; k++) {
			tool_direct_name(list, &list->tools[k], other);
			if (!streq(other, name))
				continue;
			*ret = (struct found){xstrdup(servers[i].alias), xstrdup(list->tools[k].name)};
			return 0;
		}
	}
	if (away.code) { /* for a client, "Unknown tool" is for good */
		*err = away;
		return -(int)away.code;
	}
	return err_set(err, ERR_NOT_FOUND, "Unknown tool");
}

/* What the server answered, as it is; else one sentence. In ret->structured. */
static void make_result(const struct tool_call *call, const struct job_result *run, struct tool_result *ret)
{
	const struct store_tool_call *made = run->tools.n_calls > 0 ? &run->tools.calls[0] : NULL;
	struct json_object *object = NULL;
	const char *text = made ? made->result : run->jail.message;
	struct err err = ERR_INIT;

	if (made && streq(made->kind, "result") && json_parse(made->result, made->result_length, &object, &err) < 0)
		text = err.text;
	if (!object) {
		struct json_object *content = json_object_new_array();

		tool_add_text(content, text, strlen(text));
		object = json_object_new_object();
		json_add(object, "content", content);
		json_add_bool(object, "isError", true);
	}
	json_object_object_del(object, "resultType");
	json_object_object_del(object, "_meta"); /* many clients hand it to the model */
	if (tool_results(call->token)) {
		struct json_object *meta = json_object_new_object(), *details = json_object_new_object();

		json_add_string(details, "execution_id", run->id);
		json_add(meta, TOOL_RESULTS_META_NAME, details);
		json_add(object, "_meta", meta);
	}
	*ret = (struct tool_result){.structured = object};
}

static int submit(struct tool_call *call, const struct found *found, struct json_object *arguments, const char *hash,
		  struct tool_result *ret, struct err *err)
{
	auto_job_tools struct job_tools *tools = NULL;
	const struct bind_strings server = {(const char *[]){found->server}, 1};
	int result = tool_servers_named(call, &server, "bash", false, &tools, err);
	auto_buf struct buf input = {0};

	if (result < 0)
		return result;
	buf_init(&input, HTTP_REPLY_MAX);
	json_print(&input, arguments);
	const struct job_request request = {
		TOOL_CALLER(call),
		.language = "bash",
		.code = {PROGRAM, sizeof(PROGRAM) - 1},
		.args = {(const char *[]){found->server, found->tool}, 2},
		.stdin_text = {input.data, input.length},
		.tools = tools,
		.key_hash = hash,
	};
	return run_result_of(call, &request, make_result, ret, err);
}

static int pass(struct tool_call *call, struct json_object *arguments, struct err *err)
{
	const char *name = json_get_string(call->mcp->message->params, "name");
	__attribute__((cleanup(found_clear))) struct found found = {0};
	struct tool_result made = {0};
	auto_buf struct buf text = {0};
	char hash[SHA256_HEX_SIZE];

	buf_init(&text, HTTP_REPLY_MAX);
	json_print(&text, arguments);
	bridge_record_hash(text.data, text.length, hash);
	buf_printf(&text, "%s %s", hash, name);
	sha256_hex(text.data, text.length, hash);
	int result = run_result_again(call, hash, make_result, &made, err);

	if (result == 0) {
		result = find_tool(call, name, &found, err);
		if (result == -ERR_NOT_FOUND) {
			mcp_fail_name(call->mcp, RPC_INVALID_PARAMS, "Unknown tool", name);
			call->answered = true;
			return 0;
		}
		if (result == 0)
			result = submit(call, &found, arguments, hash, &made, err);
	}
	if (result < 0 || call->answered)
		return MIN(result, 0);
	call->mcp->result = made.structured;
	call->answered = true;
	return 0;
}

static const struct tool direct = {
	.name = "upstream",
	.title = "Tools of other servers",
	.scope = STORE_SCOPE_RUN,
	.pass = pass,
	.task = TOOL_TASK_NEVER,
};

static const struct tool *find(const struct server *server, const char *name)
{
	const size_t length = strlen(name);

	(void)server;
	return length == TOOL_DIRECT_MAX || (length < TOOL_DIRECT_MAX && strstr(name, SEPARATOR)) ? &direct : NULL;
}

static const struct tool_provider provider = {.find = find, .list = add_list};

const struct tool_provider *tool_direct_provider(const struct config *config)
{
	return config->upstream.file && *config->upstream.file && config_tools_direct(config) ? &provider : NULL;
}

static void changed(void *arg)
{
	hub_publish(((struct server *)arg)->hub, NULL, HUB_TOOLS_CHANGED, NULL);
}

void tool_direct_watch(struct server *server)
{
	if (server->tables.provider)
		upstream_on_change(server->upstream, changed, server);
}
