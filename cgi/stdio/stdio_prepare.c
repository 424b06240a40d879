/* stdio_prepare.c - what a configuration for desktop use may leave out; see stdio_serve.h. */
#include <errno.h>
#include <sys/stat.h>

#include "lib/base/json.h"
#include "lib/base/util.h"
#include "lib/job/workspace.h"
#include "stdio_news.h"
#include "stdio_serve.h"

static int make_folders(char *path, struct err *err)
{
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return err_errno(err, "cannot make the folder %s", path);
		*p = '/';
	}
	return 0;
}

static int choose_data_dir(struct config *config, struct err *err)
{
	const char *base = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
	auto_free char *path = NULL;

	if (config->data_dir[0])
		return 0;
	if (base && base[0] == '/')
		path = xasprintf("%s/sallyport", base);
	else if (home && home[0] == '/')
		path = xasprintf("%s/.local/share/sallyport", home);
	else
		return err_set(
			err, ERR_INVALID,
			"neither XDG_DATA_HOME nor HOME names a folder for the record: set one of them, or data_dir");
	int result = make_folders(path, err);

	if (result < 0)
		return result;
	struct json_object *value = json_object_new_string(path);

	json_add(config->document, "data_dir", value); /* the document owns the struct's strings */
	config->data_dir = json_object_get_string(value);
	return 0;
}

int stdio_prepare(struct config *config, const char *workspace, const struct bind_strings *allow, struct err *err)
{
	int result = choose_data_dir(config, err);

	config->stays = true;
	config->workspace_folder.allow = *allow;
	return result < 0 || !workspace ? result : workspace_choose(workspace, STORE_OWNER_LOCAL, config, err);
}
