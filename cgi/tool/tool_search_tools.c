/*
 * tool_search_tools.c - search_tools and describe_tools: what programs can call, looked up outside of a run.
 *
 * Only what this caller may use is found: tools of servers on the token's list whose decision is not deny. Servers that
 * are not available are named in the answer; the others' tools are found all the same. Descriptions are text of
 * strangers and are cleaned as in the stubs (bridge_stub.h).
 */
#include <string.h>

#include "lib/base/util.h"
#include "lib/bridge/bridge_stub.h"
#include "lib/upstream/upstream_policy.h"
#include "lib/upstream/upstream_search.h"
#include "tool_common.h"

#define LISTS_SECONDS 30 /* for servers that have to start first */
#define ANSWER_MAX    24000
#define LIMIT_DEFAULT 10

enum detail { DETAIL_NAMES, DETAIL_SUMMARY, DETAIL_FULL };
static const char *const details[] = {"names", "summary", "full", NULL};

struct search_arguments {
	const char *query;
	struct bind_strings servers;
	unsigned detail;
	int64_t limit;
};
struct describe_arguments {
	struct bind_strings tools;
};

static const struct bind search_table[] = {
	BIND_MEMBER(struct search_arguments, query, "query", BIND_STRING, .flags = BIND_REQUIRED, .min = 1, .max = 500,
		    .description = "What the tool should do, in a few words."),
	BIND_MEMBER(struct search_arguments, servers, "servers", BIND_STRINGS, .max = 16,
		    .description = "Only tools of these servers. Default: all."),
	BIND_MEMBER(struct search_arguments, detail, "detail", BIND_CHOICE, .choices = details,
		    .description = "names: one line each; summary: with types; "
				   "full: with the whole description and those of arguments. Default: names."),
	BIND_MEMBER(struct search_arguments, limit, "limit", BIND_INT, .min = 1, .max = UPSTREAM_SEARCH_MAX,
		    .description = "At most so many. Default: 10."),
	{0},
};
static const struct bind describe_table[] = {
	BIND_MEMBER(struct describe_arguments, tools, "tools", BIND_STRINGS, .flags = BIND_REQUIRED, .min = 1,
		    .max = 20, .description = "Exact names, as search_tools gives them: \"server.tool\"."),
	{0},
};
static const char output_schema[] = "{\"type\":\"object\",\"properties\":{\"tools\":{\"type\":\"array\",\"items\":{"
				    "\"type\":\"object\",\"properties\":"
				    "{\"name\":{\"type\":\"string\"},\"decision\":{\"type\":\"string\"},\"text\":{"
				    "\"type\":\"string\"}},\"required\":["
				    "\"name\",\"decision\",\"text\"]}},\"matched\":{\"type\":\"integer\"},"
				    "\"unavailable\":{\"type\":\"array\",\"items\":"
				    "{\"type\":\"string\"}}},\"required\":[\"tools\",\"matched\",\"unavailable\"]}";

/* The lists of the servers that the caller may use. */
struct lists {
	struct upstream_list **items;
	size_t count;
	struct json_object *unavailable; /* sentences */
};

static void clear_lists(struct lists *lists)
{
	for (size_t i = 0; i < lists->count; i++)
		upstream_list_free(lists->items[i]);
	free(lists->items);
	json_put_pointer(&lists->unavailable);
}
#define auto_lists __attribute__((cleanup(clear_lists)))

static bool chosen(const struct bind_strings *names, const struct upstream_server *server)
{
	for (size_t i = 0; i < names->count; i++)
		if (streq(names->items[i], server->name) || streq(names->items[i], server->alias))
			return true;
	return names->count == 0;
}

/* Reads the list of each server that is chosen (`names` empty: all). */
static int read_lists(const struct tool_call *call, const struct bind_strings *names, struct lists *ret,
		      struct err *err)
{
	int64_t deadline = clock_monotonic_us() + LISTS_SECONDS * INT64_C(1000000);
	struct upstream *upstream;
	int result = tool_upstream(call->server, &upstream, err);
	size_t count;

	if (result < 0)
		return result;
	for (size_t i = 0; i < names->count; i++) {
		const struct upstream_server *server;

		if (upstream_find(upstream, names->items[i], &server, err) < 0)
			return -ERR_NOT_FOUND;
	}
	const struct upstream_server *servers = upstream_servers(upstream, &count);

	ret->items = xcalloc(count + 1, sizeof(*ret->items));
	ret->unavailable = json_object_new_array();
	for (size_t i = 0; i < count; i++) {
		const struct upstream_key key = {&servers[i], call->token->owner, "search"};
		struct err why = ERR_INIT;

		if (servers[i].disabled || !chosen(names, &servers[i]) ||
		    !upstream_policy_granted(tool_grant(call->token), &servers[i]))
			continue;
		if (upstream_list(upstream, &key, deadline, &ret->items[ret->count], &why) == 0)
			ret->count++;
		else
			json_object_array_add(ret->unavailable, json_new_safe(why.text, strlen(why.text)));
	}
	return 0;
}

static enum upstream_decision decide(const struct tool_call *call, const struct upstream_list *list,
				     const struct upstream_tool *tool)
{
	char rule[UPSTREAM_RULE_SIZE];
	const struct upstream_question question = {tool_grant(call->token), list->server, tool->name, tool,
						   UPSTREAM_PIN_KNOWN};

	return upstream_decide(&question, rule);
}

static void print_tool(struct buf *out, const struct upstream_list *list, const struct upstream_tool *tool,
		       enum detail detail)
{
	const char *text = json_get_string(tool->object, "description");

	if (detail == DETAIL_NAMES) {
		buf_printf(out, "%s.%s - ", list->server->name, tool->name);
		bridge_stub_text(out, text != NULL ? text : "", BRIDGE_BRIEF_MAX);
		return;
	}
	buf_printf(out, "%s.", list->server->alias);
	bridge_stub_line(out, tool, BRIDGE_PYTHON);
	if (detail == DETAIL_FULL) {
		buf_putc(out, '\n');
		bridge_stub_documented(out, tool, "");
	}
}

static void add_tool(const struct tool_call *call, struct json_object *tools, struct buf *all,
		     const struct upstream_found *found, enum detail detail)
{
	enum upstream_decision decision = decide(call, found->list, found->tool);
	auto_free char *name = xasprintf("%s.%s", found->list->server->name, found->tool->name);
	auto_buf struct buf text = {0};
	struct json_object *object;

	buf_init(&text, ANSWER_MAX);
	print_tool(&text, found->list, found->tool, detail);
	while (text.length > 0 && text.data[text.length - 1] == '\n')
		text.data[--text.length] = '\0';
	if (decision == UPSTREAM_DENY || all->length + text.length + 16 > all->max)
		return;
	object = json_object_new_object();
	json_add_bytes(object, "name", name, strlen(name));
	json_add_string(object, "decision", upstream_decision_name(decision));
	json_add_bytes(object, "text", text.data, text.length);
	json_object_array_add(tools, object);
	buf_add(all, text.data, text.length);
	buf_puts(all, decision == UPSTREAM_ASK ? "  [ask]\n" : "\n");
}

static void answer(struct lists *lists, struct json_object *tools, size_t matched, struct buf *text,
		   struct tool_result *ret)
{
	for (size_t i = 0; i < json_object_array_length(lists->unavailable); i++)
		buf_printf(text, "%s\n", json_object_get_string(json_object_array_get_idx(lists->unavailable, i)));
	tool_answer(ret, text->data, json_object_new_object());
	json_add(ret->structured, "tools", tools);
	json_add_int(ret->structured, "matched", (int64_t)matched);
	json_add(ret->structured, "unavailable", steal(&lists->unavailable));
}

static int search(struct tool_call *call, const void *bound, struct tool_result *ret, struct err *err)
{
	const struct search_arguments *arguments = bound;
	struct upstream_found found[UPSTREAM_SEARCH_MAX];
	auto_lists struct lists lists = {0};
	auto_buf struct buf text = {0};
	size_t matched = 0, total = 0;
	int result = read_lists(call, &arguments->servers, &lists, err);

	if (result < 0)
		return result;
	size_t count =
		upstream_search(lists.items, lists.count, arguments->query,
				arguments->limit > 0 ? (size_t)arguments->limit : LIMIT_DEFAULT, found, &matched);
	struct json_object *tools = json_object_new_array();

	buf_init(&text, ANSWER_MAX);
	for (size_t i = 0; i < lists.count; i++)
		for (size_t k = 0; k < lists.items[i]->count; k++)
			total += decide(call, lists.items[i], &lists.items[i]->tools[k]) != UPSTREAM_DENY;
	for (size_t i = 0; i < count; i++)
		add_tool(call, tools, &text, &found[i], (enum detail)arguments->detail);
	buf_printf(&text, "%zu of %zu tools%s\n", json_object_array_length(tools), total,
		   matched > count ? "; more match: say it more exactly, or raise limit" : "");
	answer(&lists, tools, matched > count ? matched : json_object_array_length(tools), &text, ret);
	return 0;
}

/* Is it "server.tool" of this server? A server's name may have dots, too. */
static const char *tool_of(const struct upstream_server *server, const char *name)
{
	const char *const names[] = {server->name, server->alias};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_starts(name, names[i]) && name[strlen(names[i])] == '.')
			return name + strlen(names[i]) + 1;
	return NULL;
}

/* The lists of the servers of these tools: no other server is started, or waited for. */
static int read_lists_of(const struct tool_call *call, const struct bind_strings *tools, struct lists *ret,
			 struct err *err)
{
	struct upstream *upstream;
	struct bind_strings names = {0};
	int result = tool_upstream(call->server, &upstream, err);
	size_t count;

	if (result < 0)
		return result;
	const struct upstream_server *servers = upstream_servers(upstream, &count);
	auto_free const char **items = xcalloc(count + 1, sizeof(*items));

	names.items = items;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < tools->count; k++)
			if (tool_of(&servers[i], tools->items[k])) {
				items[names.count++] = servers[i].name;
				break;
			}
	return names.count > 0 ? read_lists(call, &names, ret, err) : 0;
}

static int find_exact(const struct lists *lists, const char *name, struct upstream_found *ret, struct err *err)
{
	for (size_t i = 0; i < lists->count; i++) {
		const char *tool = tool_of(lists->items[i]->server, name);

		ret->list = lists->items[i];
		if (tool)
			return upstream_list_find(lists->items[i], tool, &ret->tool, err);
	}
	if (lists->unavailable && json_object_array_length(lists->unavailable) > 0)
		return err_set(err, ERR_UNAVAILABLE, "%s",
			       json_object_get_string(json_object_array_get_idx(lists->unavailable, 0)));
	return err_set(err, ERR_NOT_FOUND,
		       "\"%.64s\" does not name a tool that you can use (\"server.tool\"): see search_tools", name);
}

static int describe(struct tool_call *call, const void *bound, struct tool_result *ret, struct err *err)
{
	const struct describe_arguments *arguments = bound;
	auto_lists struct lists lists = {0};
	auto_json struct json_object *tools = json_object_new_array();
	auto_buf struct buf text = {0};
	int result = read_lists_of(call, &arguments->tools, &lists, err);

	buf_init(&text, ANSWER_MAX);
	for (size_t i = 0; result == 0 && i < arguments->tools.count; i++) {
		struct upstream_found found = {0};

		result = find_exact(&lists, arguments->tools.items[i], &found, err);
		if (result == 0)
			add_tool(call, tools, &text, &found, DETAIL_FULL);
	}
	if (result < 0)
		return result;
	answer(&lists, steal(&tools), arguments->tools.count, &text, ret);
	return 0;
}

const struct tool tool_search_tools = {
	.name = "search_tools",
	.title = "Search tools for programs",
	.scope = STORE_SCOPE_RUN,
	.enabled = tool_servers_code,
	.description =
		"Finds tools of other MCP servers that a program in run_code (argument servers) can call, best match "
		"first. In the program: `from tools import SERVER`, then `SERVER.TOOL(argument=value)`.",
	.arguments = search_table,
	.arguments_size = sizeof(struct search_arguments),
	.output_schema = output_schema,
	.read_only = true,
	.idempotent = true,
	.call = search,
};

const struct tool tool_describe_tools = {
	.name = "describe_tools",
	.title = "Describe tools for programs",
	.scope = STORE_SCOPE_RUN,
	.enabled = tool_servers_code,
	.description = "Arguments, types and the whole description of tools that search_tools found.",
	.arguments = describe_table,
	.arguments_size = sizeof(struct describe_arguments),
	.output_schema = output_schema,
	.read_only = true,
	.idempotent = true,
	.call = describe,
};
