/*
 * wire_table.c - what the messages of the jailer's protocol hold: one bind table a message, and which verb takes what.
 *
 * A message is taken whole or not at all: the verb or event names its table, the table says which members there are and
 * how large they may be, and from them follows how many strings and descriptors must have come next to it. Nothing of
 * it is acted on before all of that is right, so that the peer's mistakes, or its malice, end here.
 */
#include "wire.h"

#include "lib/base/util.h"

#define JAIL_NUMBER_MAX INT32_MAX

static const struct bind file_table[] = {
	{.name = "mode",
	 .type = BIND_INT,
	 .offset = offsetof(struct wire_file, mode),
	 .flags = BIND_REQUIRED,
	 .max = 0777},
	{.name = "mtime_us",
	 .type = BIND_INT,
	 .offset = offsetof(struct wire_file, mtime_us),
	 .flags = BIND_REQUIRED,
	 .min = -LIMITS_MAX * 8,
	 .max = LIMITS_MAX * 8},
	{0},
};

#define MEMBER(key, kind, field, least, most)                                                                          \
	{                                                                                                              \
		.name = key, .type = kind, .offset = offsetof(struct wire_request, field), .flags = BIND_REQUIRED,     \
		.min = least, .max = most                                                                              \
	}
#define HEAD MEMBER("v", BIND_INT, version, WIRE_VERSION, WIRE_VERSION), MEMBER("verb", BIND_STRING, verb_name, 1, 16)
#define JAIL MEMBER("jail", BIND_INT, jail, 0, JAIL_NUMBER_MAX)

static const struct bind plain_table[] = {HEAD, {0}};
static const struct bind jail_table[] = {HEAD, JAIL, {0}};
static const struct bind open_table[] = {
	HEAD,
	JAIL,
	MEMBER("runner", BIND_STRING, runner, 1, 64),
	{.name = "label", .type = BIND_STRING, .offset = offsetof(struct wire_request, label), .max = 72},
	{.name = "network", .type = BIND_BOOL, .offset = offsetof(struct wire_request, network)},
	{.name = "hosts",
	 .type = BIND_STRINGS,
	 .offset = offsetof(struct wire_request, hosts),
	 .min = 1,
	 .max = CONFIG_HOSTS_MAX},
	{.name = "service", .type = BIND_BOOL, .offset = offsetof(struct wire_request, service)},
	{.name = "binds",
	 .type = BIND_STRINGS,
	 .offset = offsetof(struct wire_request, binds),
	 .max = CONFIG_BINDS_MAX},
	{.name = "background", .type = BIND_BOOL, .offset = offsetof(struct wire_request, background)},
	{.name = "live", .type = BIND_BOOL, .offset = offsetof(struct wire_request, live)},
	{.name = "fingerprint", .type = BIND_BOOL, .offset = offsetof(struct wire_request, fingerprint)},
	{.name = "limits",
	 .type = BIND_OBJECT,
	 .offset = offsetof(struct wire_request, limits),
	 .table = jail_limits_table},
	{0},
};
static const struct bind fill_table[] = {
	HEAD,
	JAIL,
	{.name = "files",
	 .type = BIND_OBJECTS,
	 .offset = offsetof(struct wire_request, files),
	 .flags = BIND_REQUIRED,
	 .min = 1,
	 .max = JAIL_BATCH_FILES,
	 .table = file_table,
	 .size = sizeof(struct wire_file)},
	{.name = "code", .type = BIND_BOOL, .offset = offsetof(struct wire_request, code)},
	{0},
};
static const struct bind remove_table[] = {HEAD, JAIL, MEMBER("names", BIND_INT, names, 1, JAIL_BATCH_FILES), {0}};
static const struct bind run_table[] = {
	HEAD,
	JAIL,
	MEMBER("args", BIND_INT, args, 0, JAIL_ARGUMENTS_MAX),
	MEMBER("env", BIND_INT, env, 0, JAIL_ARGUMENTS_MAX),
	{.name = "entry",
	 .type = BIND_STRING,
	 .offset = offsetof(struct wire_request, entry),
	 .min = 1,
	 .max = JAIL_NAME_MAX},
	{.name = "cwd",
	 .type = BIND_STRING,
	 .offset = offsetof(struct wire_request, cwd),
	 .min = 1,
	 .max = JAIL_NAME_MAX},
	MEMBER("stdin", BIND_BOOL, stdin_given, 0, 0),
	MEMBER("stdout", BIND_BOOL, stdout_given, 0, 0),
	MEMBER("stderr", BIND_BOOL, stderr_given, 0, 0),
	{.name = "tools", .type = BIND_BOOL, .offset = offsetof(struct wire_request, tools)},
	{.name = "display", .type = BIND_BOOL, .offset = offsetof(struct wire_request, display)},
	{.name = "read_only", .type = BIND_BOOL, .offset = offsetof(struct wire_request, read_only)},
	{.name = "clock_us",
	 .type = BIND_INT,
	 .offset = offsetof(struct wire_request, clock_us),
	 .min = 1,
	 .max = LIMITS_MAX * 8},
	{0},
};

static const struct bind wait_table[] = {
	HEAD,
	JAIL,
	MEMBER("waits", BIND_BOOL, waits, 0, 0),
	MEMBER("credit_us", BIND_INT, credit_us, 0, LIMITS_MAX),
	{0},
};

#define VERB_ROW(constant, name, table, needs_jail) [WIRE_##constant] = {#name, table, needs_jail},
static const struct {
	const char *name;
	const struct bind *table;
	bool needs_jail;
} verbs[WIRE_VERBS] = {WIRE_VERBS_EACH(VERB_ROW)};

const char *wire_verb_text(enum wire_verb verb)
{
	return verbs[verb].name;
}

bool wire_verb_needs_jail(enum wire_verb verb)
{
	return verbs[verb].needs_jail;
}

struct json_object *wire_head_verb(enum wire_verb verb, int64_t jail)
{
	return jail < 0 ? wire_head("verb", verbs[verb].name) : wire_head_jail("verb", verbs[verb].name, jail);
}

static int verb_parse(const char *name, enum wire_verb *ret, struct err *err)
{
	auto_buf struct buf known = {0};

	for (size_t i = 0; i < WIRE_VERBS; i++)
		if (name && streq(verbs[i].name, name)) {
			*ret = (enum wire_verb)i;
			return 0;
		}
	buf_init(&known, 256);
	for (size_t i = 0; i < WIRE_VERBS; i++)
		buf_printf(&known, "%s%s", i == 0 ? "" : i + 1 < WIRE_VERBS ? ", " : " or ", verbs[i].name);
	return err_member(err, "verb", "must be %.*s", (int)known.length, known.data);
}

int wire_request_parse(const struct wire_message *message, struct wire_request *ret, struct err *err)
{
	struct wire_request request = {.jail = -1};
	int result = verb_parse(json_get_string(message->head, "verb"), &request.verb, err);

	if (result < 0)
		return result;
	result = bind_parse(verbs[request.verb].table, message->head, &request, err);
	if (result < 0)
		return result;
	request.binds_given = json_object_object_get_ex(message->head, "binds", NULL);
	size_t strings = request.files.count + (size_t)request.names + (size_t)request.args + (size_t)request.env;
	size_t fds = request.files.count;
	if (request.verb == WIRE_RUN)
		fds = 1 + (size_t)request.stdin_given + (size_t)request.stdout_given + (size_t)request.stderr_given +
		      (size_t)request.tools;
	if (message->n_strings != strings || message->n_fds != fds)
		result = err_set(err, ERR_INVALID, "%s: carries %zu strings and %zu descriptors, not %zu and %zu",
				 request.verb_name, message->n_strings, message->n_fds, strings, fds);
	if (result < 0)
		wire_request_clear(&request);
	else
		*ret = request;
	return result;
}

void wire_request_clear(struct wire_request *request)
{
	free(request->files.items);
	free(request->hosts.items);
	free(request->binds.items);
	request->files = (struct bind_objects){.items = NULL};
	request->hosts = request->binds = (struct bind_strings){.items = NULL};
}

const char *const wire_change_kinds[] = {"created", "changed", "deleted", "not_kept", NULL};

static const struct bind change_table[] = {
	{.name = "kind",
	 .type = BIND_STRING,
	 .offset = offsetof(struct wire_change, kind),
	 .flags = BIND_REQUIRED,
	 .choices = wire_change_kinds},
	{.name = "mode", .type = BIND_INT, .offset = offsetof(struct wire_change, mode), .max = 07777},
	{.name = "mtime_us",
	 .type = BIND_INT,
	 .offset = offsetof(struct wire_change, mtime_us),
	 .min = INT64_MIN,
	 .max = INT64_MAX},
	{.name = "size", .type = BIND_INT, .offset = offsetof(struct wire_change, size), .max = INT64_MAX},
	{.name = "reason", .type = BIND_STRING, .offset = offsetof(struct wire_change, reason), .max = 128},
	{0},
};

#define EVENT(key, kind, field, most)                                                                                  \
	{                                                                                                              \
		.name = key, .type = kind, .offset = offsetof(struct wire_event, field), .max = most                   \
	}
static const struct bind event_table[] = {
	{.name = "v",
	 .type = BIND_INT,
	 .offset = offsetof(struct wire_event, version),
	 .flags = BIND_REQUIRED,
	 .min = WIRE_VERSION,
	 .max = WIRE_VERSION},
	{.name = "event",
	 .type = BIND_STRING,
	 .offset = offsetof(struct wire_event, event),
	 .flags = BIND_REQUIRED,
	 .min = 1,
	 .max = 16},
	EVENT("jail", BIND_INT, jail, JAIL_NUMBER_MAX),
	EVENT("stdout_bytes", BIND_INT, stdout_bytes, INT64_MAX),
	EVENT("stderr_bytes", BIND_INT, stderr_bytes, INT64_MAX),
	EVENT("result", BIND_ANY, result, 0),
	{.name = "files",
	 .type = BIND_OBJECTS,
	 .offset = offsetof(struct wire_event, files),
	 .max = JAIL_BATCH_FILES,
	 .table = change_table,
	 .size = sizeof(struct wire_change)},
	EVENT("code", BIND_STRING, code, 32),
	EVENT("text", BIND_STRING, text, 2048),
	EVENT("member", BIND_STRING, member, 256),
	{0},
};

int wire_event_parse(const struct wire_message *message, struct wire_event *ret, struct err *err)
{
	struct wire_event event = {.jail = -1};
	int result = bind_parse(event_table, message->head, &event, err);

	if (result < 0)
		return result;
	if (message->n_strings != event.files.count) {
		wire_event_clear(&event);
		return err_set(err, ERR_INVALID, "%s: the number of names does not fit", event.event);
	}
	*ret = event;
	return 0;
}

void wire_event_clear(struct wire_event *event)
{
	free(event->files.items);
	event->files = (struct bind_objects){.items = NULL};
}

enum err_code wire_err_code(const char *name)
{
	for (int code = ERR_INVALID; name && code < ERR_CODES; code++)
		if (streq(err_info((enum err_code)code)->name, name))
			return (enum err_code)code;
	return ERR_INTERNAL;
}
