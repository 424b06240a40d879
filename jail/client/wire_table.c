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

#define FIELD(of, key, kind, member, least, most)                                                                      \
	.name = key, .type = kind, .offset = offsetof(struct of, member), .min = least, .max = most
#define MUST(of, ...) {FIELD(of, __VA_ARGS__), .flags = BIND_REQUIRED}
#define MAY(of, ...)  {FIELD(of, __VA_ARGS__)}
#define OBJECTS(of, member_table) .table = member_table, .size = sizeof(struct of)

static const struct bind file_table[] = {
	MUST(wire_file, "mode", BIND_INT, mode, 0, 0777),
	MUST(wire_file, "mtime_us", BIND_INT, mtime_us, -LIMITS_MAX * 8, LIMITS_MAX * 8),
	{0},
};

#define HEAD                                                                                                           \
	MUST(wire_request, "v", BIND_INT, version, WIRE_VERSION, WIRE_VERSION),                                        \
		MUST(wire_request, "verb", BIND_STRING, verb_name, 1, 16)
#define JAIL MUST(wire_request, "jail", BIND_INT, jail, 0, JAIL_NUMBER_MAX)

static const struct bind plain_table[] = {HEAD, {0}};
static const struct bind jail_table[] = {HEAD, JAIL, {0}};
static const struct bind runners_table[] = {HEAD, MAY(wire_request, "known", BIND_BOOL, known, 0, 0), {0}};
static const struct bind open_table[] = {
	HEAD,
	JAIL,
	MUST(wire_request, "runner", BIND_STRING, runner, 1, 64),
	MAY(wire_request, "label", BIND_STRING, label, 0, 72),
	MAY(wire_request, "network", BIND_BOOL, network, 0, 0),
	MAY(wire_request, "hosts", BIND_STRINGS, hosts, 1, CONFIG_HOSTS_MAX),
	MAY(wire_request, "service", BIND_BOOL, service, 0, 0),
	MAY(wire_request, "binds", BIND_STRINGS, binds, 0, CONFIG_BINDS_MAX),
	MAY(wire_request, "background", BIND_BOOL, background, 0, 0),
	MAY(wire_request, "live", BIND_BOOL, live, 0, 0),
	MAY(wire_request, "fingerprint", BIND_BOOL, fingerprint, 0, 0),
	{FIELD(wire_request, "limits", BIND_OBJECT, limits, 0, 0), .table = jail_limits_table},
	{0},
};
static const struct bind fill_table[] = {
	HEAD,
	JAIL,
	{FIELD(wire_request, "files", BIND_OBJECTS, files, 1, JAIL_BATCH_FILES),
	 .flags = BIND_REQUIRED,
	 OBJECTS(wire_file, file_table)},
	MAY(wire_request, "code", BIND_BOOL, code, 0, 0),
	{0},
};
static const struct bind remove_table[] = {
	HEAD,
	JAIL,
	MUST(wire_request, "names", BIND_INT, names, 1, JAIL_BATCH_FILES),
	{0},
};
static const struct bind run_table[] = {
	HEAD,
	JAIL,
	MUST(wire_request, "args", BIND_INT, args, 0, JAIL_ARGUMENTS_MAX),
	MUST(wire_request, "env", BIND_INT, env, 0, JAIL_ARGUMENTS_MAX),
	MAY(wire_request, "entry", BIND_STRING, entry, 1, JAIL_NAME_MAX),
	MAY(wire_request, "cwd", BIND_STRING, cwd, 1, JAIL_NAME_MAX),
	MUST(wire_request, "stdin", BIND_BOOL, stdin_given, 0, 0),
	MUST(wire_request, "stdout", BIND_BOOL, stdout_given, 0, 0),
	MUST(wire_request, "stderr", BIND_BOOL, stderr_given, 0, 0),
	MAY(wire_request, "tools", BIND_BOOL, tools, 0, 0),
	MAY(wire_request, "display", BIND_BOOL, display, 0, 0),
	MAY(wire_request, "read_only", BIND_BOOL, read_only, 0, 0),
	MAY(wire_request, "clock_us", BIND_INT, clock_us, 1, LIMITS_MAX * 8),
	MAY(wire_request, "time_us", BIND_INT, wall_us, 1, LIMITS_MAX),
	{0},
};
static const struct bind wait_table[] = {
	HEAD,
	JAIL,
	MUST(wire_request, "waits", BIND_BOOL, waits, 0, 0),
	MUST(wire_request, "credit_us", BIND_INT, credit_us, 0, LIMITS_MAX),
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

int wire_request_parse(const struct wire_message *message, struct wire_request *ret, struct err *err)
{
	const char *name = json_get_string(message->head, "verb");
	struct wire_request request = {.jail = -1};
	auto_buf struct buf known = {0};

	while (request.verb < WIRE_VERBS && !(name && streq(verbs[request.verb].name, name)))
		request.verb++;
	if (request.verb == WIRE_VERBS) {
		buf_init(&known, 256);
		for (size_t i = 0; i < WIRE_VERBS; i++)
			buf_printf(&known, "%s%s", i == 0 ? "" : i + 1 < WIRE_VERBS ? ", " : " or ", verbs[i].name);
		return err_member(err, "verb", "must be %.*s", (int)known.length, known.data);
	}
	int result = bind_parse(verbs[request.verb].table, message->head, &request, err);
	if (result < 0)
		return result;
	request.binds_given = json_object_object_get_ex(message->head, "binds", NULL);
	size_t strings = request.files.count + (size_t)request.names + (size_t)request.args + (size_t)request.env;
	size_t fds = request.files.count;
	if (request.verb == WIRE_RUN)
		fds = 1 + (size_t)request.stdin_given + (size_t)request.stdout_given + (size_t)request.stderr_given +
		      (size_t)request.tools;
	if (message->n_strings == strings && message->n_fds == fds) {
		*ret = request;
		return 0;
	}
	result = err_set(err, ERR_INVALID, "%s: carries %zu strings and %zu descriptors, not %zu and %zu",
			 request.verb_name, message->n_strings, message->n_fds, strings, fds);
	wire_request_clear(&request);
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
	{FIELD(wire_change, "kind", BIND_STRING, kind, 0, 0), .flags = BIND_REQUIRED, .choices = wire_change_kinds},
	MAY(wire_change, "mode", BIND_INT, mode, 0, 07777),
	MAY(wire_change, "mtime_us", BIND_INT, mtime_us, INT64_MIN, INT64_MAX),
	MAY(wire_change, "size", BIND_INT, size, 0, INT64_MAX),
	MAY(wire_change, "reason", BIND_STRING, reason, 0, 128),
	{0},
};
static const struct bind event_table[] = {
	MUST(wire_event, "v", BIND_INT, version, WIRE_VERSION, WIRE_VERSION),
	MUST(wire_event, "event", BIND_STRING, event, 1, 16),
	MAY(wire_event, "jail", BIND_INT, jail, 0, JAIL_NUMBER_MAX),
	MAY(wire_event, "stdout_bytes", BIND_INT, stdout_bytes, 0, INT64_MAX),
	MAY(wire_event, "stderr_bytes", BIND_INT, stderr_bytes, 0, INT64_MAX),
	MAY(wire_event, "result", BIND_ANY, result, 0, 0),
	{FIELD(wire_event, "files", BIND_OBJECTS, files, 0, JAIL_BATCH_FILES), OBJECTS(wire_change, change_table)},
	MAY(wire_event, "code", BIND_STRING, code, 0, 32),
	MAY(wire_event, "text", BIND_STRING, text, 0, 2048),
	MAY(wire_event, "member", BIND_STRING, member, 0, 256),
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
