/* guest_file.c - see guest_file.h. */
#include "guest_file.h"

#include "lib/base/embed.h"
#include "lib/base/util.h"

EMBED(guest_call_py, "jail/guest/call.py");
EMBED(guest_csharp_sh, "jail/guest/csharp.sh");
EMBED(guest_java_sh, "jail/guest/java.sh");
EMBED(guest_live_cjs, "jail/guest/live.cjs");
EMBED(guest_live_py, "jail/guest/live.py");
EMBED(guest_show_cjs, "jail/guest/show.cjs");
EMBED(guest_show_py, "jail/guest/show.py");
EMBED(guest_sql_py, "jail/guest/sql.py");
EMBED(guest_tail_cjs, "jail/guest/tail.cjs");

static const struct {
	const char *name, *text, *end;
} files[] = {
	{"call.py", guest_call_py, guest_call_py_end},       {"csharp.sh", guest_csharp_sh, guest_csharp_sh_end},
	{"java.sh", guest_java_sh, guest_java_sh_end},       {"live.cjs", guest_live_cjs, guest_live_cjs_end},
	{"live.py", guest_live_py, guest_live_py_end},       {"show.cjs", guest_show_cjs, guest_show_cjs_end},
	{"show.py", guest_show_py, guest_show_py_end},       {"sql.py", guest_sql_py, guest_sql_py_end},
	{"tail.cjs", guest_tail_cjs, guest_tail_cjs_end},
};

const char *guest_file(const char *name, size_t *ret_length)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (streq(files[i].name, name)) {
			*ret_length = (size_t)(files[i].end - files[i].text);
			return files[i].text;
		}
	return NULL;
}
