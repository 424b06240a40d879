/* admin_assets.c - see admin_assets.h. */
#include "admin_assets.h"

#include <pthread.h>
#include <string.h>

#include "lib/base/embed.h"
#include "lib/base/util.h"
#include "lib/store/db/crypto.h"

EMBED(admin_style_css, "cgi/admin/assets/style.css");
EMBED(admin_page_js, "cgi/admin/assets/page.js");
EMBED(admin_icon_svg, "cgi/admin/assets/icon.svg");

static struct admin_asset assets[ADMIN_ASSETS] = {
	[ADMIN_STYLE] = {"style.css", "text/css; charset=utf-8", admin_style_css, admin_style_css_end, ""},
	[ADMIN_SCRIPT] = {"page.js", "text/javascript; charset=utf-8", admin_page_js, admin_page_js_end, ""},
	[ADMIN_ICON] = {"icon.svg", "image/svg+xml", admin_icon_svg, admin_icon_svg_end, ""},
};

static void make_tags(void)
{
	for (size_t i = 0; i < ADMIN_ASSETS; i++) {
		char sum[SHA256_HEX_SIZE];

		sha256_hex(assets[i].begin, (size_t)(assets[i].end - assets[i].begin), sum);
		snprintf(assets[i].tag, sizeof(assets[i].tag), "%.12s", sum);
	}
}

const struct admin_asset *admin_asset(int which)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_tags);
	return &assets[which];
}

const struct admin_asset *admin_asset_find(const char *name)
{
	for (int i = 0; i < ADMIN_ASSETS; i++) {
		const struct admin_asset *asset = admin_asset(i);
		const size_t length = strlen(asset->tag);

		if (strncmp(name, asset->tag, length) == 0 && name[length] == '-' &&
		    streq(name + length + 1, asset->name))
			return asset;
	}
	return NULL;
}
