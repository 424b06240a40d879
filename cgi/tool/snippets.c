/* snippets.c - see snippets.h. */
#include "snippets.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jail/client/client_runners.h"
#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "run_result.h"

/* -------- the operator's folder ----------------------------------------------------------------------- */

/* NULL: the file's text is in `ret`; else why it cannot be imported. */
static const char *read_file(int folder, const char *file, char **ret)
{
	auto_close int fd = openat(folder, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	size_t length;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return "it is not a regular file that can be read";
	if (read_fd(fd, SNIPPET_FILE_MAX, ret, &length, NULL) < 0)
		return "it is too large or cannot be read";
	if (strlen(*ret) != length || !utf8_valid(*ret, length))
		return "it is not UTF-8 text";
	return NULL;
}

/* `before`: the file before it in the order of names, or "". */
static int import_file(struct store *store, int folder, const char *file, const char *before, struct err *err)
{
	const char *dot = strrchr(file, '.');
	const size_t length = dot ? (size_t)(dot - file) : 0;
	auto_free char *text = NULL, *description = xasprintf("The server's file %s", file);
	auto_snippet_row struct store_snippet newest = {0};
	struct store_snippet snippet = {.description = description,
					.schema = unconst("{\"type\":\"object\"}"),
					.servers = unconst("[]")};
	const char *fault = NULL;
	int64_t version;

	snprintf(snippet.name, sizeof(snippet.name), "%.*s", (int)length, file);
	snprintf(snippet.language, sizeof(snippet.language), "%s", dot ? dot + 1 : "");
	if (strlen(snippet.name) != length || !store_snippet_name_valid(snippet.name))
		fault = "its name is not letters, digits, _ or - and an extension";
	else if (strncmp(before, file, length + 1) == 0)
		fault = "the file before it has the same name, but for the extension";
	else
		fault = read_file(folder, file, &text);
	if (fault) {
		log_event(LOG_WARN, "snippet not imported", "file", file, "reason", fault, NULL);
		return 0;
	}
	snippet.code = text;
	int result = store_snippet_find(store, STORE_SNIPPET_ALL, snippet.name, 0, &newest, err);

	if (result == 0 && streq(newest.code, text) && streq(newest.language, snippet.language))
		return 0;
	if (result < 0 && result != -ERR_NOT_FOUND)
		return result;
	return store_snippet_save(store, &snippet, &version, err);
}

int snippets_import(struct store *store, const struct config *config, struct err *err)
{
	const char *path = config->tools.snippets_dir, *before = "";
	struct dirent **entries = NULL;
	int result = 0;

	if (!path || !*path)
		return 0;
	auto_close int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int n = folder < 0 ? -1 : scandirat(folder, ".", &entries, NULL, alphasort);

	if (n < 0)
		return err_errno(err, "reading tools.snippets_dir %s", path);
	for (int i = 0; result == 0 && i < n; i++) {
		if (entries[i]->d_name[0] == '.')
			continue;
		result = import_file(store, folder, entries[i]->d_name, before, err);
		before = entries[i]->d_name;
	}
	for (int i = 0; i < n; i++)
		free(entries[i]);
	free(entries);
	return result < 0 ? err_wrap(err, "importing tools.snippets_dir") : 0;
}

/* -------- for the tools ------------------------------------------------------------------------------- */

const char *snippet_language(const struct store_snippet *snippet, struct json_object *runners)
{
	auto_free char *file = xasprintf("file.%s", snippet->language);
	struct json_object *runner = jail_runner_named(runners, snippet->language);

	if (!runner)
		runner = jail_runner_for_file(runners, file);
	return runner ? json_get_string(runner, "name") : snippet->language;
}

int snippet_tools(const struct tool_call *call, const struct store_snippet *snippet, const char *language,
		  struct job_tools **ret, struct err *err)
{
	auto_json struct json_object *array = NULL;
	const char *names[RUN_SERVERS_MAX];
	struct bind_strings servers = {.items = names};
	int result = json_parse(snippet->servers, strlen(snippet->servers), &array, err);

	if (result < 0)
		return result;
	for (size_t i = 0; i < json_object_array_length(array) && servers.count < RUN_SERVERS_MAX; i++)
		names[servers.count++] = json_object_get_string(json_object_array_get_idx(array, i));
	return tool_servers(call, &servers, language, false, ret, err);
}

struct names {
	const char *prefix;
	struct json_object *array;
};

static void add_name(void *arg, const struct store_snippet *snippet)
{
	struct names *names = arg;

	if (!str_starts(snippet->name, names->prefix))
		return;
	for (size_t i = 0; i < json_object_array_length(names->array); i++)
		if (streq(json_object_get_string(json_object_array_get_idx(names->array, i)), snippet->name))
			return;
	json_object_array_add(names->array, json_object_new_string(snippet->name));
}

int snippet_names(struct store *store, const char *owner, const char *prefix, struct json_object *ret, struct err *err)
{
	return store_snippet_list(store, owner, add_name, &(struct names){prefix, ret}, err);
}
