/*
 * upstream_list.c - lists of tools: made page by page, then shared and not changed any more.
 *
 * A tool stays out of the list, with its reason, where it cannot be called: a definition that our strict JSON refuses
 * or that is too large, a name that came before, headers that cannot be sent, one that is only for a client's window.
 */
#include "upstream_list.h"

#include <pthread.h>
#include <string.h>

#include "lib/base/util.h"
#include "lib/store/db/crypto.h"
#include "upstream_message.h"

#define TOOLS_MAX      1000
#define DEFINITION_MAX (256 << 10)
#define HASH_MAX       (1 << 20)

struct upstream_list *upstream_list_new(const struct upstream_server *server)
{
	struct upstream_list *list = xcalloc(1, sizeof(*list));

	list->server = server;
	list->references = 1;
	list->instructions = list->version = list->protocol = "";
	return list;
}

struct upstream_list *upstream_list_keep(struct upstream_list *list)
{
	list->references++;
	return list;
}

void upstream_list_free(struct upstream_list *list)
{
	if (list == NULL || --list->references > 0)
		return;
	for (size_t i = 0; i < list->count; i++) {
		free(unconst(list->tools[i].definition));
		json_object_put(list->tools[i].object);
	}
	for (size_t i = 0; i < list->left_out.count; i++)
		free(unconst(list->left_out.items[i]));
	if (list->sealed) {
		free(unconst(list->instructions));
		free(unconst(list->version));
		free(unconst(list->protocol));
		free(list->definitions);
	}
	for (struct upstream_text *text; (text = list->texts) != NULL;) {
		list->texts = text->next;
		free(text->key);
		free(text->bytes);
		free(text);
	}
	free(list->left_out.items);
	free(list->index);
	free(list->tools);
	free(list);
}

void upstream_list_free_pointer(struct upstream_list **list)
{
	upstream_list_free(*list);
	*list = NULL;
}

static pthread_mutex_t texts_lock = PTHREAD_MUTEX_INITIALIZER;

static const struct upstream_text *find_text(const struct upstream_list *list, const char *key)
{
	const struct upstream_text *text = list->texts;

	while (text != NULL && !streq(text->key, key))
		text = text->next;
	return text;
}

const struct upstream_text *upstream_list_text(struct upstream_list *list, const char *key)
{
	pthread_mutex_lock(&texts_lock);
	const struct upstream_text *text = find_text(list, key);

	pthread_mutex_unlock(&texts_lock);
	return text;
}

void upstream_list_keep_text(struct upstream_list *list, const char *key, const char *bytes, size_t length)
{
	size_t size = strlen(key) + length;

	pthread_mutex_lock(&texts_lock);
	if (find_text(list, key) == NULL && size <= UPSTREAM_TEXTS_MAX - list->texts_length) {
		struct upstream_text *text = xmalloc(sizeof(*text));

		*text = (struct upstream_text){list->texts, xstrdup(key), xmemdup(bytes, length), length};
		list->texts = text;
		list->texts_length += size;
	}
	pthread_mutex_unlock(&texts_lock);
}

/* Is it for a model, or only for an application's own window? */
static bool hidden(struct json_object *object)
{
	struct json_object *meta = json_get(object, "_meta", json_type_object);
	struct json_object *ui = meta != NULL ? json_get(meta, "ui", json_type_object) : NULL;
	struct json_object *who = ui != NULL ? json_get(ui, "visibility", json_type_array) : NULL;

	if (who == NULL)
		return false;
	for (size_t i = 0; i < json_object_array_length(who); i++) {
		struct json_object *item = json_object_array_get_idx(who, i);

		if (json_object_is_type(item, json_type_string) && streq(json_object_get_string(item), "model"))
			return false;
	}
	return true;
}

static void hash_tool(struct upstream_tool *tool)
{
	static const char *const members[] = {"name",        "title",        "description",
					      "inputSchema", "outputSchema", "annotations"};
	struct raw definition = {tool->definition, tool->length};
	auto_buf struct buf canonical;

	buf_init(&canonical, HASH_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		struct raw value = raw_member(definition, members[i]);

		buf_printf(&canonical, "%s=", members[i]);
		if (value.text != NULL)
			raw_canonical(&canonical, value);
		buf_putc(&canonical, '\n');
	}
	sha256_hex(canonical.data, canonical.length, tool->hash);
}

static int check_tool(const struct upstream_list *list, const char *name, const struct raw *definition,
		      struct json_object *object, struct err *err)
{
	struct json_object *schema = json_get(object, "inputSchema", json_type_object);

	if (definition->length > DEFINITION_MAX)
		return err_set(err, ERR_LIMIT, "its definition is larger than %d KiB", DEFINITION_MAX >> 10);
	if (strlen(name) == 0 || strlen(name) > UPSTREAM_NAME_MAX)
		return err_set(err, ERR_INVALID, "its name must have 1 to %d bytes", UPSTREAM_NAME_MAX);
	for (size_t i = 0; i < list->count; i++)
		if (streq(list->tools[i].name, name))
			return err_set(err, ERR_CONFLICT, "the name occurs twice");
	if (hidden(object))
		return err_set(err, ERR_DENIED, "it is not for models");
	if (schema == NULL)
		return err_set(err, ERR_INVALID, "it has no inputSchema");
	return list->server->url != NULL ? message_check_headers(schema, err) : 0;
}

int upstream_list_add(struct upstream_list *list, struct raw definition, struct err *err)
{
	auto_json struct json_object *object = NULL;
	auto_free char *name = raw_string(raw_member(definition, "name"));
	struct err why = ERR_INIT;
	int result = 0;

	if (name == NULL)
		return err_set(err, ERR_INVALID, "a tool has no name");
	if (list->count == TOOLS_MAX)
		return err_set(err, ERR_LIMIT, "the server has more than %d tools", TOOLS_MAX);
	if (definition.length <= DEFINITION_MAX)
		result = json_parse(definition.text, definition.length, &object, &why);
	if (result == 0)
		result = check_tool(list, name, &definition, object, &why);
	if (result < 0) {
		struct bind_strings *out = &list->left_out;

		out->items = xrealloc(out->items, out->count + 1, sizeof(*out->items));
		out->items[out->count++] = xasprintf("%.128s: %s", name, why.text);
		return 0;
	}
	list->tools = xrealloc(list->tools, list->count + 1, sizeof(*list->tools));
	struct upstream_tool *tool = &list->tools[list->count++];

	*tool = (struct upstream_tool){
		.definition = xmemdup(definition.text, definition.length),
		.length = definition.length,
		.object = steal(&object),
	};
	tool->name = json_get_string(tool->object, "name");
	hash_tool(tool);
	return 0;
}

/* Here, once, and not at the end of each run that has used one. */
static void keep_definitions(struct upstream_list *list)
{
	auto_buf struct buf text;

	buf_init(&text, SIZE_MAX);
	buf_putc(&text, '[');
	for (size_t i = 0; i < list->count; i++) {
		const struct upstream_tool *tool = &list->tools[i];

		buf_puts(&text, i > 0 ? "," : "");
		if (tool->definition != NULL)
			buf_add(&text, tool->definition, tool->length);
		else
			json_print(&text, tool->object);
	}
	buf_putc(&text, ']');
	sha256_hex(text.data, text.length, list->definitions_hash);
	list->definitions = buf_steal(&text, NULL);
}

void upstream_list_seal(struct upstream_list *list, const char *instructions, const char *version, const char *protocol)
{
	auto_buf struct buf all;

	buf_init(&all, HASH_MAX);
	for (size_t i = 0; i < list->count; i++)
		buf_puts(&all, list->tools[i].hash);
	sha256_hex(all.data, all.length, list->hash);
	keep_definitions(list);
	list->instructions = xstrdup(instructions != NULL ? instructions : "");
	list->version = xstrdup(version != NULL ? version : "");
	list->protocol = xstrdup(protocol != NULL ? protocol : "");
	list->read_us = clock_now_us();
	list->sealed = true;
}

int upstream_list_find(const struct upstream_list *list, const char *name, const struct upstream_tool **ret,
		       struct err *err)
{
	const char *near = NULL;

	for (size_t i = 0; i < list->count; i++)
		if (streq(list->tools[i].name, name)) {
			*ret = &list->tools[i];
			return 0;
		}
	for (size_t i = 0; i < list->count && near == NULL; i++)
		if (str_near(name, list->tools[i].name))
			near = list->tools[i].name;
	if (near != NULL)
		return err_set(err, ERR_NOT_FOUND, "%s has no tool \"%.64s\", did you mean \"%.64s\"?",
			       list->server->name, name, near);
	return err_set(err, ERR_NOT_FOUND, "%s has no tool \"%.64s\"", list->server->name, name);
}
