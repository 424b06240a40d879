/*
 * config.c - see config.h.
 *
 * Everything ends in one JSON document, which one table binds: the file is parsed and checked alone first, so that its
 * errors name the file; then each SALLYPORT_* variable is turned into a value of its member's type, checked alone, so
 * that its error names the variable, and put into the document; then relative paths get the file's folder in front;
 * then the document is bound for good. Strings of the struct point into the document, so nothing else owns memory. What
 * two members must be to each other (a default is not above its cap) is checked last, over the values that count.
 */
#include "config.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "util.h"

#define CONFIG_BYTES_MAX   (1 << 20)
#define ENVIRONMENT_PREFIX "SALLYPORT_"
#define PROGRAM_PARENTS    4 /* a development program is in build/[san/]bin of the checkout */

#define DAY_SECONDS 86400
#define MANY        1000000

#define PART(part, name_, type_, min_, max_, text_)                                                                    \
	{                                                                                                              \
		.name = #name_, .type = type_,                                                                         \
		.offset = offsetof(struct config, part.name_) - offsetof(struct config, part), .min = min_,            \
		.max = max_, .description = text_                                                                      \
	}

static const struct bind gateway_table[] = {
	PART(gateway, socket, BIND_STRING, 0, 107, "unix socket on which the gateway takes FastCGI requests"),
	PART(gateway, threads, BIND_INT, 1, 1024,
	     "threads that wait for requests; more are started while runs keep these busy"),
	PART(gateway, accel_prefix, BIND_STRING, 0, 256,
	     "nginx's internal location for blobs; empty: the gateway sends the bytes itself"),
	PART(gateway, allowed_origins, BIND_STRINGS, 0, 64,
	     "Origin headers to accept besides public_base_url's and loopback's"),
	PART(gateway, allowed_hosts, BIND_STRINGS, 0, 64,
	     "Host headers to accept besides public_base_url's and loopback's"),
	PART(gateway, http_sse, BIND_BOOL, 0, 0, "serve the transport of 2024-11-05, too: /sse and /messages"),
	PART(gateway, profile, BIND_STRING, 1, 16,
	     "production; conformance: the official suite's fixtures, no tokens, loopback only"),
	{0},
};

static const struct bind jailer_table[] = {
	PART(jailer, socket, BIND_STRING, 0, 107,
	     "unix socket of the jailer; empty: each program starts a private one"),
	PART(jailer, program, BIND_STRING, 0, PATH_MAX, "sallyport-jailer; empty: in our own folder"),
	PART(jailer, runners_dir, BIND_STRING, 0, PATH_MAX, "folder of the languages' runner files"),
	PART(jailer, modules_dir, BIND_STRING, 0, PATH_MAX, "folder of the runners' npm packages; empty: none"),
	PART(jailer, allowed_users, BIND_STRINGS, 0, 64,
	     "users (names or ids) that may connect, besides root and the jailer's own"),
	PART(jailer, id_base, BIND_INT, 0, UINT32_MAX,
	     "first host id for guests when root starts the jailer, 65536 or above; 0: built-in"),
	PART(jailer, id_count, BIND_INT, 0, UINT32_MAX, "how many host ids from id_base; 0: built-in"),
	PART(jailer, cgroup, BIND_STRING, 1, 64, "name of the cgroup subtree"),
	PART(jailer, weaker_limits, BIND_BOOL, 0, 0, "run with process limits alone where no cgroup can be had"),
	PART(jailer, jails, BIND_INT, 1, 4096, "concurrent jails"),
	PART(jailer, disk_read_mb, BIND_INT, 0, 1000000,
	     "megabytes a second that one jail reads from a disk of the host, with cgroup v2 and its io controller; 0: "
	     "no limit"),
	{0},
};

static const struct bind limits_table[] = {
#define LIMIT(member, least, most, standard, sentence) PART(limits, member, BIND_INT, least, most, sentence),
#include "limits.def"
	{0},
};

static const struct bind retention_table[] = {
	PART(retention, owner_mb, BIND_INT, 1, INT64_MAX >> 20,
	     "MiB of one owner: code, input, output, all versions of files, each content once"),
	PART(retention, conversation_days, BIND_INT, 1, 36500, "days after which an idle conversation is removed"),
	PART(retention, execution_days, BIND_INT, 0, 36500,
	     "days after which code, input, output and files of a run are erased; 0: never"),
	PART(retention, output_days, BIND_INT, 0, 36500,
	     "days after which the output of a run and the files that it made are erased; 0: never"),
	PART(retention, when_full, BIND_STRING, 1, 16,
	     "refuse: calls of an owner at owner_mb are refused; oldest: the content of the oldest runs is erased"),
	PART(retention, free_mb, BIND_INT, 0, INT64_MAX >> 20, "MiB free on data_dir's disk below which nothing runs"),
	PART(retention, free_inodes, BIND_INT, 0, INT64_MAX >> 20,
	     "inodes free on data_dir's disk below which nothing runs"),
	{0},
};

static const struct bind workspace_table[] = {
	PART(workspace, hold, BIND_STRINGS, 0, 256,
	     "more names in a workspace that are put next to the name that a program wrote, as NAME.sallyport"),
	PART(workspace, allow, BIND_STRINGS, 0, 256,
	     "names in a workspace that programs may write, though they are held"),
	{0},
};

static const struct bind api_table[] = {
	PART(api, enabled, BIND_BOOL, 0, 0, "serve the plain HTTP API, /v1/"),
	{0},
};

static const struct bind files_table[] = {
	PART(files, url_seconds, BIND_INT, 0, 315360000,
	     "seconds after which the address of a file ends; 0: it does not"),
	{0},
};

static const struct bind metrics_table[] = {
	PART(metrics, enabled, BIND_BOOL, 0, 0, "serve /metrics to this machine and to who has the token"),
	PART(metrics, token, BIND_STRING, 0, 256, "bearer token for /metrics and /readyz from elsewhere; empty: none"),
	{0},
};

static const struct bind log_table[] = {
	PART(log, format, BIND_STRING, 1, 8, "of the lines of gateway and jailer: text or json"),
	PART(log, level, BIND_STRING, 1, 8, "the least that they write: debug, info, warn or error"),
	{0},
};

static const struct bind health_table[] = {
	PART(health, ready, BIND_BOOL, 0, 0, "serve /readyz"),
	PART(health, disk_mb, BIND_INT, 0, INT64_MAX >> 20, "MiB that data_dir must have left to be ready"),
	{0},
};

static const struct bind admin_table[] = {
	PART(admin, enabled, BIND_BOOL, 0, 0, "serve the admin page below /admin"),
	PART(admin, hours, BIND_INT, 1, 720, "hours after which one must sign in again"),
	PART(admin, idle_minutes, BIND_INT, 1, 1440, "minutes without a request after which one must sign in again"),
	{0},
};

static const struct bind tools_table[] = {
	PART(tools, text, BIND_STRING, 1, 16, "form of run_code's text block: plain or json"),
	PART(tools, links, BIND_BOOL, 0, 0, "name files as resource links, too"),
	PART(tools, sets, BIND_STRINGS, 0, 8, "more sets of tools: isolator, interpreter, bridge, snippets"),
	PART(tools, bridge_output, BIND_STRING, 1, 16, "form of run_python's text block: compact or toon"),
	PART(tools, snippets_dir, BIND_STRING, 0, PATH_MAX,
	     "folder of programs that are imported as snippets at the start; empty: none"),
	PART(tools, secrets_dir, BIND_STRING, 0, PATH_MAX,
	     "folder of secret environment variables, OWNER/NAME; empty: none"),
	PART(tools, upstream, BIND_STRING, 1, 16,
	     "who calls the tools of upstream.file's servers: code (programs), direct (models), both"),
	{0},
};

#define GROUP(name_, text_)                                                                                            \
	{                                                                                                              \
		.name = #name_, .type = BIND_OBJECT, .offset = offsetof(struct config, name_), .table = name_##_table, \
		.description = text_                                                                                   \
	}

/* In files of their own. */
#define network_table  config_network_table
#define upstream_table config_upstream_table

const struct bind config_table[] = {
	{.name = "data_dir",
	 .type = BIND_STRING,
	 .offset = offsetof(struct config, data_dir),
	 .max = PATH_MAX,
	 .description = "folder of the database, the blobs and the secret key"},
	{.name = "public_base_url",
	 .type = BIND_STRING,
	 .offset = offsetof(struct config, public_base_url),
	 .max = 1024,
	 .description = "what download URLs begin with, no slash at the end"},
	GROUP(gateway, "the FastCGI gateway"),
	GROUP(jailer, "the jailer and its clients"),
	GROUP(limits, "limits of runs and requests"),
	GROUP(tools, "how tools answer"),
	GROUP(network, "the network of programs"),
	GROUP(upstream, "MCP servers whose tools programs call"),
	GROUP(retention, "how much is kept, and for how long"),
	GROUP(workspace, "the folder of sallyport stdio --workspace"),
	GROUP(api, "programs that do not speak MCP"),
	GROUP(files, "addresses of files"),
	GROUP(metrics, "figures for monitoring"),
	GROUP(health, "what load balancers ask"),
	GROUP(log, "the lines of gateway and jailer"),
	GROUP(admin, "the admin page"),
	{0},
};

static const struct config defaults = {
	.data_dir = "",
	.public_base_url = "",
	.gateway = {.socket = "", .threads = 16, .accel_prefix = "", .profile = "production"},
	.jailer = {.socket = "", .program = "", .runners_dir = "", .modules_dir = "", .cgroup = "sallyport",
		   .jails = 64, .disk_read_mb = 100},
	.limits =
		{
#define LIMIT(member, least, most, standard, sentence) .member = standard,
#include "limits.def"
		},
	.tools = {.text = "plain",
		  .bridge_output = "compact",
		  .snippets_dir = "",
		  .secrets_dir = "",
		  .upstream = "code"},
	.network = {.proxy = "", .connections = 256, .mb = 1024},
	.upstream = {.file = "", .secrets_dir = "", .calls = 200, .in_flight = 8, .argument_kb = 1024,
		     .result_kb = 5120},
	.retention =
		{.owner_mb = 10240, .conversation_days = 30, .when_full = "refuse", .free_mb = 64, .free_inodes = 1000},
	.metrics = {.enabled = true, .token = ""},
	.log = {.format = "text", .level = "info"},
	.health = {.ready = true, .disk_mb = 256},
	.admin = {.hours = 12, .idle_minutes = 60},
};

/* Members that hold paths: {group or NULL, member}. */
static const char *const path_members[][2] = {
	{NULL, "data_dir"},        {"gateway", "socket"},     {"jailer", "socket"},
	{"jailer", "program"},     {"jailer", "runners_dir"}, {"jailer", "modules_dir"},
	{"tools", "snippets_dir"}, {"tools", "secrets_dir"},  {"upstream", "file"},      {"upstream", "secrets_dir"},
};

/* Members of earlier versions, with what takes their place. */
static const struct {
	const char *group, *member, *instead;
} removed_members[] = {
	{"tools", "results",
	 "was removed: choose for a token (sallyport token add --results) or in the address (/mcp?results=none)"},
};

/* Variables that are read elsewhere and are no members. */
static const char *const other_variables[] = {"SALLYPORT_CONFIG"};

/* Does the variable's name (behind the prefix) mean this member? */
static bool names_member(const char *variable, size_t length, const char *group, const char *member)
{
	auto_free char *name = group != NULL ? xasprintf("%s_%s", group, member) : xstrdup(member);

	for (char *c = name; *c != '\0'; c++)
		*c = (char)toupper((unsigned char)*c);
	return strlen(name) == length && memcmp(name, variable, length) == 0;
}

struct found {
	const struct bind *bind;
	const char *group; /* NULL: a member of the top */
};

static bool find_member(const char *variable, size_t length, struct found *ret)
{
	for (const struct bind *bind = config_table; bind->name != NULL; bind++) {
		if (bind->type != BIND_OBJECT && names_member(variable, length, NULL, bind->name)) {
			*ret = (struct found){bind, NULL};
			return true;
		}
		for (const struct bind *part = bind->table; part != NULL && part->name != NULL; part++)
			if (names_member(variable, length, bind->name, part->name)) {
				*ret = (struct found){part, bind->name};
				return true;
			}
	}
	return false;
}

/* "a,b" as ["a","b"]; the empty text is the empty array. */
static struct json_object *split_list(const char *text)
{
	struct json_object *array = json_object_new_array();

	while (*text != '\0') {
		size_t length = strcspn(text, ",");

		json_object_array_add(array, json_object_new_string_len(text, (int)length));
		text += length + (text[length] == ',');
	}
	return array;
}

/* The variable's text as a value of the member's type. What is no number or truth value stays a string: the binding
 * refuses it. */
static struct json_object *value_of(const struct bind *bind, const char *text)
{
	uint64_t number;
	bool negative = text[0] == '-';

	if (bind->type == BIND_STRINGS)
		return split_list(text);
	if (bind->type == BIND_INT && parse_u64(text + negative, 0, INT64_MAX, &number) == 0)
		return json_object_new_int64(negative ? -(int64_t)number : (int64_t)number);
	if (bind->type == BIND_BOOL && (streq(text, "true") || streq(text, "1")))
		return json_object_new_boolean(true);
	if (bind->type == BIND_BOOL && (streq(text, "false") || streq(text, "0")))
		return json_object_new_boolean(false);
	return json_object_new_string(text);
}

/* The member of `document` that `found` names becomes value. */
static void put_member(struct json_object *document, const struct found *found, struct json_object *value)
{
	struct json_object *group = document;

	if (found->group != NULL) {
		group = json_get(document, found->group, json_type_object);
		if (group == NULL) {
			group = json_object_new_object();
			json_add(document, found->group, group);
		}
	}
	json_add(group, found->bind->name, value);
}

static int check_document(struct json_object *document, struct err *err)
{
	struct config scratch = defaults;

	for (size_t i = 0; i < ARRAY_SIZE(removed_members); i++) {
		const char *group = removed_members[i].group, *member = removed_members[i].member;
		struct json_object *parent = json_get(document, group, json_type_object);

		if (parent && json_object_object_get_ex(parent, member, NULL)) {
			auto_free char *path = xasprintf("%s.%s", group, member);

			return err_member(err, path, "%s", removed_members[i].instead);
		}
	}
	int result = bind_parse(config_table, document, &scratch, err);

	bind_clear(config_table, &scratch);
	return result;
}

static int unknown_variable(const char *variable, size_t length, struct err *err)
{
	const size_t prefix = strlen(ENVIRONMENT_PREFIX);
	auto_free char *name = xstrndup(variable, length);

	for (size_t i = 0; i < ARRAY_SIZE(removed_members); i++)
		if (names_member(variable + prefix, length - prefix, removed_members[i].group,
				 removed_members[i].member))
			return err_member(err, name, "%s", removed_members[i].instead);

	for (const struct bind *bind = config_table; bind->name != NULL; bind++)
		for (const struct bind *part = bind->type == BIND_OBJECT ? bind->table : bind; part->name != NULL;
		     part++) {
			auto_free char *near = bind->type == BIND_OBJECT
						       ? xasprintf(ENVIRONMENT_PREFIX "%s_%s", bind->name, part->name)
						       : xasprintf(ENVIRONMENT_PREFIX "%s", bind->name);

			for (char *c = near; *c != '\0'; c++)
				*c = (char)toupper((unsigned char)*c);
			if (str_near(name, near))
				return err_member(err, name, "unknown environment variable, did you mean %s?", near);
			if (bind->type != BIND_OBJECT)
				break;
		}
	return err_member(err, name, "unknown environment variable: no member of the configuration has this name");
}

static int apply_variable(const char *variable, struct json_object *document, struct err *err)
{
	const size_t prefix = strlen(ENVIRONMENT_PREFIX);
	size_t length = strcspn(variable, "=");
	struct found found;

	for (size_t i = 0; i < ARRAY_SIZE(other_variables); i++)
		if (strlen(other_variables[i]) == length && memcmp(other_variables[i], variable, length) == 0)
			return 0;
	if (variable[length] == '\0' || !find_member(variable + prefix, length - prefix, &found))
		return unknown_variable(variable, length, err);

	auto_json struct json_object *alone = json_object_new_object();

	put_member(alone, &found, value_of(found.bind, variable + length + 1));
	if (check_document(alone, err) < 0)
		return err_wrap(err, "environment variable %.*s", (int)length, variable);
	put_member(document, &found, value_of(found.bind, variable + length + 1));
	return 0;
}

static int apply_environment(struct json_object *document, struct err *err)
{
	for (char **variable = environ; variable != NULL && *variable != NULL; variable++)
		if (str_starts(*variable, ENVIRONMENT_PREFIX)) {
			int result = apply_variable(*variable, document, err);

			if (result < 0)
				return result;
		}
	return 0;
}

static void resolve_paths(struct json_object *document, const char *folder)
{
	for (size_t i = 0; i < ARRAY_SIZE(path_members); i++) {
		const char *group = path_members[i][0], *member = path_members[i][1];
		struct json_object *owner = group != NULL ? json_get(document, group, json_type_object) : document;
		const char *path = owner != NULL ? json_get_string(owner, member) : NULL;

		if (path == NULL || path[0] == '\0' || path[0] == '/')
			continue;
		auto_free char *full = xasprintf("%s/%s", folder, path);

		json_add_string(owner, member, full);
	}
}

/* The file's folder as an absolute path; the caller's. */
static int folder_of(const char *path, char **ret, struct err *err)
{
	const char *slash = strrchr(path, '/');
	auto_free char *folder =
		slash == NULL ? xstrdup(".") : xstrndup(path, (size_t)(slash - path) + (slash == path));

	*ret = realpath(folder, NULL);
	return *ret != NULL ? 0 : err_errno(err, "%s", folder);
}

static int read_document(const char *path, struct json_object **ret, struct err *err)
{
	auto_free char *text = NULL;
	auto_json struct json_object *document = NULL;
	size_t length;
	int result = read_file_at(AT_FDCWD, path, CONFIG_BYTES_MAX, &text, &length, err);

	if (result < 0)
		return result;
	result = json_parse_commented(text, length, &document, err);
	if (result == 0)
		result = check_document(document, err);
	if (result < 0)
		return err_wrap(err, "%s", path), result;
	*ret = steal(&document);
	return 0;
}

/* Where the runners stand when nobody says it: installed below share/, or in the checkout that the program was built
 * in. */
static char *find_runners(void)
{
	auto_free char *folder = config_program_dir();
	auto_free char *up = xasprintf("%s/..", folder);
	auto_free char *installed = xasprintf("%s/share/sallyport/runners", up);

	if (access(installed, R_OK) == 0)
		return steal(&installed);
	for (int i = 0; i < PROGRAM_PARENTS; i++) {
		auto_free char *there = xasprintf("%s/jail/runners", up), *next = xasprintf("%s/..", up);

		if (access(there, R_OK) == 0)
			return realpath(there, NULL);
		free(up);
		up = steal(&next);
	}
	return NULL;
}

static void default_runners(struct json_object *document)
{
	struct found found = {.group = "jailer"};
	auto_free char *path = NULL;

	for (found.bind = jailer_table; !streq(found.bind->name, "runners_dir"); found.bind++)
		;
	if (json_get_string(json_get(document, "jailer", json_type_object), "runners_dir") != NULL)
		return;
	path = find_runners();
	if (path != NULL)
		put_member(document, &found, json_object_new_string(path));
}

int config_load(const char *path, struct config *ret, struct err *err)
{
	auto_json struct json_object *document = NULL;
	auto_free char *folder = NULL, *found = NULL;
	struct config config = defaults;
	int result = 0;

	if (path == NULL)
		path = getenv("SALLYPORT_CONFIG");
	if (path == NULL)
		path = found = config_find();
	if (path != NULL && path[0] != '\0') {
		result = read_document(path, &document, err);
		if (result == 0)
			result = folder_of(path, &folder, err);
	} else {
		path = NULL;
		document = json_object_new_object();
	}
	if (result == 0)
		result = apply_environment(document, err);
	if (result < 0)
		return result;
	if (folder != NULL)
		resolve_paths(document, folder);
	default_runners(document);
	result = bind_parse(config_table, document, &config, err);
	if (result == 0)
		result = config_check(&config, err);
	if (result < 0) {
		bind_clear(config_table, &config);
		return path != NULL ? (err_wrap(err, "%s", path), result) : result;
	}
	config.path = path != NULL ? xstrdup(path) : NULL;
	config.document = steal(&document);
	*ret = config;
	return 0;
}

void config_clear(struct config *config)
{
	bind_clear(config_table, config);
	json_object_put(config->document);
	free(config->path);
	*config = (struct config){0};
}

char *config_program_dir(void)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (length <= 0)
		return xstrdup("."); /* no /proc: only tests in strange places */
	path[length] = '\0';
	char *slash = strrchr(path, '/');

	if (slash == NULL || slash == path)
		return xstrdup("/");
	*slash = '\0';
	return xstrdup(path);
}
