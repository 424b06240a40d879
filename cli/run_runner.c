/* run_runner.c - which runner a program wants: the one that was named, else by extension, else by its first line. */
#include "run.h"

#include <string.h>
#include <unistd.h>

#include "jail/client/client_runners.h"
#include "lib/base/util.h"

#define FIRST_LINE_MAX 256

/* "#!/usr/bin/env -S python3.11 -u": python3.11, then python3, then python. */
static struct json_object *find_by_first_line(struct json_object *runners, int code_fd)
{
	char line[FIRST_LINE_MAX + 1];
	ssize_t length = pread(code_fd, line, FIRST_LINE_MAX, 0);
	char *rest = line + 2;

	if (length < 3 || line[0] != '#' || line[1] != '!')
		return NULL;
	line[length] = '\0';
	line[strcspn(line, "\n")] = '\0';
	for (char *word; (word = strsep(&rest, " \t\r"));) {
		char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;
		struct json_object *found = NULL;

		if (!*name || *name == '-' || streq(name, "env"))
			continue;
		while (!(found = jail_runner_named(runners, name)) && strpbrk(name, "0123456789."))
			if (strspn(name + strlen(name) - 1, "0123456789."))
				name[strlen(name) - 1] = '\0';
			else
				break;
		return found;
	}
	return NULL;
}

static void list_names(struct json_object *runners, char *text, size_t size)
{
	size_t used = 0;

	*text = '\0';
	for (size_t i = 0; i < json_object_array_length(runners) && used < size; i++) {
		const char *name = json_get_string(json_object_array_get_idx(runners, i), "name");

		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", name ? name : "?");
	}
}

int run_runner_choose(struct json_object *runners, const char *language, const char *path, int code_fd,
		      struct json_object **ret, struct err *err)
{
	struct json_object *runner = NULL, *available;
	char names[256];

	list_names(runners, names, sizeof(names));
	if (language) {
		runner = jail_runner_named(runners, language);
		if (!runner)
			return err_set(err, ERR_INVALID, "unknown language '%s': there are %s", language, names);
	} else {
		runner = jail_runner_for_file(runners, path);
		if (!runner)
			runner = find_by_first_line(runners, code_fd);
		if (!runner)
			return err_set(err, ERR_INVALID,
				       "the language of '%s' is not clear: name it with --language (%s)", path, names);
	}
	available = json_get(runner, "available", json_type_boolean);
	if (available && !json_object_get_boolean(available)) {
		const char *install = json_get_string(runner, "install");

		return err_set(err, ERR_UNAVAILABLE, "the interpreter of %s is missing: %s",
			       json_get_string(runner, "name"), install ? install : "install it");
	}
	*ret = runner;
	return 0;
}
