/* bridge_describe.c - what a program may ask about its tools: the list of servers, one server's tools, a search. */
#include <string.h>

#include "bridge_internal.h"
#include "bridge_stub.h"
#include "lib/upstream/upstream_search.h"

static void add_text(struct json_object *object, const char *name, const char *text, size_t max)
{
	auto_buf struct buf clean = {0};

	buf_init(&clean, max + 8);
	bridge_stub_text(&clean, text, max);
	json_add_bytes(object, name, clean.data, clean.length);
}

static struct json_object *tool_object(const struct bridge_run *run, size_t list, size_t at, const char *detail)
{
	const struct upstream_list *of = run->lists[list];
	const struct upstream_tool *tool = &of->tools[at];
	struct json_object *object = json_object_new_object();
	const char *text = json_get_string(tool->object, "description");
	bool names = detail && streq(detail, "names"), full = detail && streq(detail, "full");
	size_t place = at; /* among the tools of all lists */

	json_add_string(object, "server", of->server->name);
	json_add_string(object, "tool", tool->name);
	add_text(object, "description", text ? text : "",
		 full    ? BRIDGE_DESCRIPTION_MAX
		 : names ? BRIDGE_BRIEF_MAX
			 : BRIDGE_SUMMARY_MAX);
	for (size_t i = 0; i < list; i++)
		place += run->lists[i]->count;
	json_add_string(object, "decision", run->spec.decisions ? run->spec.decisions[place] : "allow");
	if (names)
		return object;
	auto_free char *signature = bridge_stub_signature(tool);
	json_add_bytes(object, "signature", signature, strlen(signature));
	struct json_object *schema = json_get(tool->object, "inputSchema", json_type_object);
	struct json_object *output = json_get(tool->object, "outputSchema", json_type_object);
	if (full && schema)
		json_add(object, "inputSchema", json_object_get(schema));
	if (full && output)
		json_add(object, "outputSchema", json_object_get(output));
	return object;
}

void bridge_print_servers(struct buf *out, const struct bridge_run *run)
{
	auto_json struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < run->spec.count; i++) {
		const struct upstream_list *list = run->lists[i];
		struct json_object *object = json_object_new_object();

		json_add_string(object, "name", list->server->name);
		json_add_string(object, "alias", list->server->alias);
		add_text(object, "description", list->server->description ? list->server->description : "",
			 BRIDGE_SUMMARY_MAX);
		json_add_int(object, "tools", (int64_t)list->count);
		json_object_array_add(array, object);
	}
	json_print(out, array);
}

void bridge_print_tools(struct buf *out, const struct bridge_run *run, size_t list, const char *tool,
			const char *detail)
{
	auto_json struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < run->lists[list]->count; i++)
		if (!tool || streq(run->lists[list]->tools[i].name, tool))
			json_object_array_add(array, tool_object(run, list, i, detail));
	json_print(out, array);
}

void bridge_print_search(struct buf *out, const struct bridge_run *run, const struct bridge_frame *frame)
{
	auto_json struct json_object *array = json_object_new_array();
	int64_t left = frame->limit ? frame->limit : 10;
	auto_free char *ranked =
		run->spec.provider->search
			? run->spec.provider->search(run->spec.arg, frame->query, frame->server, left, frame->detail)
			: NULL;

	if (ranked) {
		buf_puts(out, ranked);
		return;
	}
	struct upstream_found found[UPSTREAM_SEARCH_MAX];
	size_t matched, count = upstream_search(run->lists, run->spec.count, frame->query, UPSTREAM_SEARCH_MAX, found,
						&matched);

	for (size_t i = 0; i < count && left > 0; i++) {
		const struct upstream_list *of = found[i].list;
		size_t list = 0;

		while (list < run->spec.count && run->lists[list] != of)
			list++;
		if (list == run->spec.count || (frame->server && !streq(frame->server, of->server->name)))
			continue;
		json_object_array_add(array,
				      tool_object(run, list, (size_t)(found[i].tool - of->tools), frame->detail));
		left--;
	}
	json_print(out, array);
}
