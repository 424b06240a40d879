/* admin_assets.h - the files in assets/, which are part of the program: style, script, icon. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct admin_asset {
	const char *name, *type;
	const char *begin, *end;
	char tag[13]; /* of its content: stands in its address, so that browsers may keep it for ever */
};
enum { ADMIN_STYLE, ADMIN_SCRIPT, ADMIN_ICON, ADMIN_ASSETS };
const struct admin_asset *admin_asset(int which);
/* By what stands in an address, "TAG-NAME"; NULL: none, or an older version's. */
const struct admin_asset *admin_asset_find(const char *name);
