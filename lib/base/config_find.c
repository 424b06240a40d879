/* config_find.c - the configuration that is used where none is named: the user's own, else the machine's. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "util.h"

#define NAME    "sallyport/sallyport.conf"
#define MACHINE "/etc/" NAME

/* A file that somebody else could have put there does not count: with sudo, HOME may be another user's. */
static bool is_ours(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode) &&
	       (status.st_uid == geteuid() || status.st_uid == 0) && access(path, R_OK) == 0;
}

static char *of_user(void)
{
	const char *folder = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (folder && folder[0] == '/')
		return xasprintf("%s/" NAME, folder);
	return home && home[0] == '/' ? xasprintf("%s/.config/" NAME, home) : NULL;
}

char *config_find(void)
{
	auto_free char *own = of_user();

	if (own && is_ours(own))
		return steal(&own);
	return is_ours(MACHINE) ? xstrdup(MACHINE) : NULL;
}
