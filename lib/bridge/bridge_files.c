/*
 * bridge_files.c - see bridge_files.h.
 *
 * What does not change from run to run (modules, drivers) is part of this program and becomes anonymous files once;
 * each run gets descriptors of them. What describes a server is printed for its list, in the forms that a language
 * reads, and stays with the list for the next runs. All of it is filled into /code by the jailer, like the program's
 * own source, and is the guest's to break.
 */
#include "bridge_files.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bridge_stub.h"
#include "lib/base/embed.h"
#include "lib/base/util.h"

#define FILES_MAX (8 << 20)

EMBED(guest_tools_py, "jail/guest/tools/tools.py");
EMBED(guest_mcp_py, "jail/guest/tools/mcp.py");
EMBED(guest_core_mjs, "jail/guest/tools/core.mjs");
EMBED(guest_global_mjs, "jail/guest/tools/global.mjs");
EMBED(guest_package_json, "jail/guest/tools/package.json");

enum { FOR_PYTHON = 1, FOR_NODE = 2, FOR_OTHERS = 4, FOR_ALL = 7 };
static const struct fixed {
	const char *name, *bytes, *end;
	int for_whom;
} fixed[] = {
	{"tools/__init__.py", guest_tools_py, guest_tools_py_end, FOR_PYTHON},
	{"mcp/__init__.py", guest_mcp_py, guest_mcp_py_end, FOR_PYTHON},
	{"node_modules/tools/core.mjs", guest_core_mjs, guest_core_mjs_end, FOR_NODE},
	{"node_modules/tools/global.mjs", guest_global_mjs, guest_global_mjs_end, FOR_NODE},
	{"node_modules/tools/package.json", guest_package_json, guest_package_json_end, FOR_NODE},
};
static int fixed_fds[ARRAY_SIZE(fixed)];
static pthread_once_t once = PTHREAD_ONCE_INIT;

const char *const bridge_environment[] = {"MCP_SOCKET=" JAIL_SOCKET,
					  "PATH=" JAIL_PROGRAMS ":/usr/local/bin:/usr/bin:/bin", NULL};

static void make_fixed(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		fixed_fds[i] = memfd_with(fixed[i].name, fixed[i].bytes, (size_t)(fixed[i].end - fixed[i].bytes));
}

/* The descriptor is taken over. */
static void add_fd(struct bridge_files *files, const char *name, int fd)
{
	files->files = xrealloc(files->files, files->count + 1, sizeof(*files->files));
	files->files[files->count++] = (struct jail_file){.name = xstrdup(name), .mode = 0444, .fd = fd};
}

static int add(struct bridge_files *files, const char *name, struct buf *text, struct err *err)
{
	int fd = text->overflow ? -1 : memfd_with("tools", text->data, text->length);

	if (text->overflow)
		return err_set(err, ERR_LIMIT, "the description of the tools (%s) is larger than %d bytes", name,
			       FILES_MAX);
	if (fd < 0)
		return err_errno(err, "making the file %s for a program", name);
	add_fd(files, name, fd);
	buf_reset(text);
	return 0;
}

void bridge_files_clear(struct bridge_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		close(files->files[i].fd);
		free(unconst(files->files[i].name));
	}
	free(files->files);
	*files = (struct bridge_files){0};
}

/* -------- what a run's servers are -------------------------------------------------------------------- */

/* As the seed names servers in Python. */
static void seed_alias(const char *name, char ret[UPSTREAM_ALIAS_SIZE])
{
	size_t n = 0;

	for (; *name && n < UPSTREAM_NAME_MAX; name++) {
		char c = (char)tolower((unsigned char)*name);
		bool plain = isalnum((unsigned char)c) || c == '_';

		if (plain || n == 0 || ret[n - 1] != '_')
			ret[n++] = plain ? c : '_';
	}
	while (n > 0 && ret[n - 1] == '_')
		n--;
	ret[n] = '\0';
	size_t lead = strspn(ret, "_");
	memmove(ret, ret + lead, n - lead + 1);
	if (isdigit((unsigned char)ret[0])) {
		memmove(ret + 1, ret, strlen(ret) + 1);
		ret[0] = '_';
	}
	if (!ret[0])
		snprintf(ret, UPSTREAM_ALIAS_SIZE, "server");
}

/* JSON strings are Python's, too, but for what is beyond the first plane, which stays as it is. */
static void print_string(struct buf *out, const char *text)
{
	auto_json struct json_object *string = json_new_safe(text, strlen(text));

	json_print(out, string);
}

static void print_index_python(struct buf *out, const struct bridge_files_spec *spec)
{
	char alias[UPSTREAM_ALIAS_SIZE];

	buf_puts(out, "SERVERS = [");
	for (size_t i = 0; i < spec->count; i++) {
		const struct upstream_server *server = spec->lists[i]->server;

		seed_alias(server->name, alias);
		buf_putc(out, '(');
		print_string(out, server->name);
		buf_printf(out, ", \"%s\", \"%s\", ", server->alias, alias);
		print_string(out, server->description ? server->description : "");
		buf_puts(out, "), ");
	}
	buf_puts(out, "]\nDISCOVERED = [");
	for (size_t i = 0; i < spec->n_known; i++) {
		buf_putc(out, '(');
		print_string(out, spec->known[i].name);
		buf_puts(out, ", ");
		print_string(out, spec->known[i].description ? spec->known[i].description : "");
		buf_puts(out, "), ");
	}
	buf_puts(out, "]\n");
}

static void print_lines(struct buf *out, const struct upstream_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct upstream_tool *tool = &list->tools[i];
		const char *text = json_get_string(tool->object, "description");

		buf_printf(out, "%s.%s - ", list->server->name, tool->name);
		bridge_stub_text(out, text ? text : "", BRIDGE_BRIEF_MAX);
		buf_putc(out, '\n');
	}
}

static void print_definitions(struct buf *out, const struct upstream_list *list)
{
	auto_json struct json_object *array = json_object_new_array();
	char alias[UPSTREAM_ALIAS_SIZE];

	for (size_t i = 0; i < list->count; i++) {
		const struct upstream_tool *tool = &list->tools[i];
		struct json_object *schema = json_get(tool->object, "inputSchema", json_type_object);
		struct json_object *properties = json_get(schema, "properties", json_type_object);
		struct json_object *object = json_object_new_object(), *renamed = json_object_new_object();

		json_object_object_foreach(tool->object, name, value)
			json_object_object_add(object, name, json_object_get(value));
		upstream_name_alias(tool->name, alias);
		json_add_string(object, "alias", alias);
		/* Parameters whose names in programs are not their own. */
		if (properties) {
			json_object_object_foreach(properties, own, unused)
			{
				(void)unused;
				upstream_name_alias(own, alias);
				if (!streq(alias, own))
					json_add_string(renamed, alias, own);
			}
		}
		json_add(object, "parameters", renamed);
		json_object_array_add(array, object);
	}
	json_print(out, array);
}

static void print_module(struct buf *out, const struct upstream_list *list)
{
	char alias[UPSTREAM_ALIAS_SIZE];

	buf_puts(out, "import { tools } from './core.mjs';\nconst server = tools[");
	print_string(out, list->server->name);
	buf_puts(out, "];\nexport default server;\n");
	for (size_t i = 0; i < list->count; i++) {
		if (bridge_stub_clashes(list, i))
			continue;
		upstream_name_alias(list->tools[i].name, alias);
		buf_printf(out, "export const %s = server[\"%s\"];\n", alias, alias);
	}
}

/* What describes one server. Of a hundred tools it takes milliseconds to print, so it stays with the list. */
static const struct description {
	const char *folder, *extension;
	int for_whom;
	void (*print)(struct buf *out, const struct upstream_list *list); /* NULL: bridge_stub_file, with decisions … */
	enum bridge_language language;                                    /* … in this language */
} lines = {"tools/", "index.txt", FOR_ALL, .print = print_lines},
  descriptions[] = {
	  {"tools/stubs/", ".json", FOR_PYTHON | FOR_NODE, .print = print_definitions},
	  {"tools/stubs/", ".pyi", FOR_PYTHON | FOR_OTHERS, .language = BRIDGE_PYTHON},
	  {"node_modules/tools/", ".mjs", FOR_NODE, .print = print_module},
	  {"node_modules/tools/", ".d.ts", FOR_NODE, .language = BRIDGE_TYPESCRIPT},
};

/* Appends it to `out`. Its key is what the text depends on besides the list. */
static void describe(struct buf *out, struct upstream_list *list, const struct description *description,
		     const char *const *decisions)
{
	const size_t begin = out->length;
	auto_buf struct buf key = {0};

	buf_init(&key, FILES_MAX);
	buf_puts(&key, description->extension);
	for (size_t i = 0; !description->print && decisions && i < list->count; i++) {
		buf_putc(&key, ' ');
		buf_puts(&key, decisions[i]);
	}
	const struct upstream_text *kept = upstream_list_text(list, key.data);

	if (kept) {
		buf_add(out, kept->bytes, kept->length);
		return;
	}
	if (description->print)
		description->print(out, list);
	else
		bridge_stub_file(out, list, decisions, description->language);
	if (out->length > begin && !out->overflow)
		upstream_list_keep_text(list, key.data, out->data + begin, out->length - begin);
}

static int add_server(struct bridge_files *files, struct upstream_list *list, const char *const *decisions,
		      int for_whom, struct buf *text, struct err *err)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < ARRAY_SIZE(descriptions); i++) {
		const struct description *one = &descriptions[i];

		if (!(one->for_whom & for_whom))
			continue;
		auto_free char *name = xasprintf("%s%s%s", one->folder, list->server->alias, one->extension);

		describe(text, list, one, decisions);
		result = add(files, name, text, err);
	}
	return result;
}

static int add_index(struct bridge_files *files, const struct bridge_files_spec *spec, int for_whom, struct buf *text,
		     struct err *err)
{
	int result = 0;

	for (size_t i = 0; i < spec->count; i++)
		describe(text, spec->lists[i], &lines, NULL);
	result = add(files, "tools/index.txt", text, err);
	if (result == 0 && (for_whom & FOR_PYTHON)) {
		print_index_python(text, spec);
		result = add(files, "tools/_index.py", text, err);
	}
	if (result == 0 && (for_whom & FOR_NODE)) {
		auto_json struct json_object *index = json_object_new_object();
		struct json_object *servers = json_object_new_array();

		for (size_t i = 0; i < spec->count; i++) {
			struct json_object *server = json_object_new_object();

			json_add_string(server, "name", spec->lists[i]->server->name);
			json_add_string(server, "alias", spec->lists[i]->server->alias);
			json_object_array_add(servers, server);
		}
		json_add(index, "servers", servers);
		json_print(text, index);
		result = add(files, "tools/index.json", text, err);
	}
	if (result == 0 && (for_whom & FOR_NODE)) {
		buf_puts(text, "import { tools } from './core.mjs';\nexport * from './core.mjs';\n"
			       "export default tools;\nconst own = tools;\n");
		for (size_t i = 0; i < spec->count; i++)
			buf_printf(text, "export const %s = own[\"%s\"];\n", spec->lists[i]->server->alias,
				   spec->lists[i]->server->alias);
		result = add(files, "node_modules/tools/index.mjs", text, err);
	}
	return result;
}

int bridge_files_make(const struct bridge_files_spec *spec, struct bridge_files *ret, struct err *err)
{
	const char *const *decisions = spec->decisions, *runner = spec->runner;
	const bool for_node = streq(runner, "javascript") || streq(runner, "typescript");
	const int for_whom = streq(runner, "python") ? FOR_PYTHON : for_node ? FOR_NODE : FOR_OTHERS;
	struct bridge_files files = {0};
	auto_buf struct buf text = {0};

	buf_init(&text, FILES_MAX);
	pthread_once(&once, make_fixed);
	int result = 0;
	for (size_t i = 0; i < ARRAY_SIZE(fixed) && result == 0; i++) {
		if (!(fixed[i].for_whom & for_whom))
			continue;
		int fd = fcntl(fixed_fds[i], F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			result = err_errno(err, "a descriptor of %s", fixed[i].name);
		else
			add_fd(&files, fixed[i].name, fd);
	}
	if (result == 0)
		result = add_index(&files, spec, for_whom, &text, err);
	for (size_t i = 0; i < spec->count && result == 0; i++) {
		result = add_server(&files, spec->lists[i], decisions, for_whom, &text, err);
		decisions = decisions ? decisions + spec->lists[i]->count : NULL;
	}
	if (result < 0)
		bridge_files_clear(&files);
	else
		*ret = files;
	return result;
}
