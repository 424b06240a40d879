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
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util.h"

#define CONFIG_BYTES_MAX   (1 << 20)
#define ENVIRONMENT_PREFIX "SALLYPORT_"
#define PROGRAM_PARENTS    4 /* a development program is in build/[san/]bin of the checkout */

#define MANY    1000000
#define NAME    "sallyport/sallyport.conf"
#define MACHINE "/etc/" NAME

#define PART(part, name_, type_, min_, max_, text_) FLAGGED(part, name_, type_, min_, max_, text_, 0)
#define FLAGGED(part, name_, type_, min_, max_, text_, flags_)                                                         \
	{                                                                                                              \
		.name = #name_, .type = type_, .flags = flags_,                                                        \
		.offset = offsetof(struct config, part.name_) - offsetof(struct config, part), .min = min_,            \
		.max = max_, .description = text_                                                                      \
	}

static const struct bind gateway_table[] = {
	PART(gateway, socket, BIND_STRING, 0, 107, "unix socket for FastCGI requests"),
	PART(gateway, threads, BIND_INT, 1, 1024,
	     "threads that wait for requests; while runs keep them busy the gateway starts more"),
	PART(gateway, accel_prefix, BIND_STRING, 0, 256,
	     "nginx's internal location for blobs; empty: the gateway sends the bytes"),
	PART(gateway, allowed_origins, BIND_STRINGS, 0, 64,
	     "additional Origin headers to accept; public_base_url's and loopback's are always accepted"),
	PART(gateway, allowed_hosts, BIND_STRINGS, 0, 64,
	     "additional Host headers to accept; public_base_url's and loopback's are always accepted"),
	PART(gateway, trusted_proxies, BIND_STRINGS, 0, 64,
	     "addresses or networks (10.0.0.0/8) of proxies whose X-Forwarded-For names the client"),
	PART(gateway, client_addresses, BIND_STRING, 1, 16,
	     "how much of a client's address is recorded: full, network (/24, /48) or none"),
	PART(gateway, http_sse, BIND_BOOL, 0, 0, "also serve the HTTP+SSE transport of 2024-11-05: /sse and /messages"),
	{0},
};

static const struct bind jailer_table[] = {
	PART(jailer, socket, BIND_STRING, 0, 107,
	     "unix socket of the jailer; empty: each program starts a private one"),
	PART(jailer, program, BIND_STRING, 0, PATH_MAX, "path of sallyport-jailer; empty: next to the running program"),
	PART(jailer, runners_dir, BIND_STRING, 0, PATH_MAX, "folder of the languages' runner files"),
	PART(jailer, modules_dir, BIND_STRING, 0, PATH_MAX, "folder of the runners' npm packages; empty: none"),
	PART(jailer, allowed_users, BIND_STRINGS, 0, 64,
	     "additional users (names or ids) that may connect; root and the jailer's own user always may"),
	PART(jailer, id_base, BIND_INT, 0, UINT32_MAX,
	     "first host id for guests of a jailer that root starts, at least 65536; 0: the built-in range"),
	PART(jailer, id_count, BIND_INT, 0, UINT32_MAX, "number of host ids from id_base on; 0: the built-in range"),
	PART(jailer, cgroup, BIND_STRING, 1, 64, "name of the cgroup subtree"),
	PART(jailer, weaker_limits, BIND_BOOL, 0, 0, "where no cgroup is available, run with process limits only"),
	PART(jailer, jails, BIND_INT, 1, 4096, "concurrent jails"),
	PART(jailer, warm, BIND_STRING, 2, 4,
	     "on: interpreters wait in jails that are made ahead; exec: they do, and programs get new ones; off"),
	PART(jailer, warm_mb, BIND_INT, 1, 1000000, "megabytes for jails in which interpreters wait"),
	PART(jailer, disk_read_mb, BIND_INT, 0, 1000000,
	     "megabytes per second that one jail may read from a disk of the host (needs cgroup v2 with the io controller); 0: "
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
	     "MiB that one owner may store: code, input, output and all versions of files, identical contents counted once"),
	PART(retention, conversation_days, BIND_INT, 1, 36500, "days after which an idle conversation is removed"),
	PART(retention, execution_days, BIND_INT, 0, 36500,
	     "days after which code, input, output and files of a run are erased; 0: never"),
	PART(retention, output_days, BIND_INT, 0, 36500,
	     "days after which the output of a run and the files that it made are erased; 0: never"),
	PART(retention, when_full, BIND_STRING, 1, 16,
	     "at owner_mb: refuse (calls of the owner are refused) or oldest (the content of the oldest runs is erased)"),
	PART(retention, free_mb, BIND_INT, 0, INT64_MAX >> 20,
	     "minimum free space of data_dir's disk in MiB; with less nothing runs"),
	PART(retention, free_inodes, BIND_INT, 0, INT64_MAX >> 20,
	     "minimum free inodes of data_dir's disk; with fewer nothing runs"),
	{0},
};

static const struct bind workspace_table[] = {
	PART(workspace, hold, BIND_STRINGS, 0, 256,
	     "additional names in a workspace that programs must not write: the file is saved as NAME.sallyport"),
	PART(workspace, allow, BIND_STRINGS, 0, 256,
	     "names in a workspace that programs may write although they are on the built-in list"),
	{0},
};

static const struct bind api_table[] = {
	PART(api, enabled, BIND_BOOL, 0, 0, "serve the plain HTTP API, /v1/"),
	PART(api, jwt_key, BIND_STRING, 0, PATH_MAX, "public key of a front end that signs who asks; empty: none"),
	PART(api, jwt_issuer, BIND_STRING, 1, 256, "issuer of these JWTs"),
	PART(api, jwt_audience, BIND_STRING, 1, 256, "audience of these JWTs"),
	PART(api, jwt_owner, BIND_STRING, 1, 11, "beginning of the names of these users' owners"),
	{0},
};

static const struct bind doors_table[] = {
	PART(doors, fusion, BIND_BOOL, 0, 0, "serve the API of SandboxFusion, /fusion/, for graders and trainers"),
	PART(doors, piston, BIND_BOOL, 0, 0, "serve the API of Piston, /piston/api/v2/"),
	PART(doors, places, BIND_INT, 0, 1024,
	     "programs of these APIs at once, the others wait; 0: as many as there are processors"),
	PART(doors, trusted, BIND_STRINGS, 0, 64, "networks that need no token here, as \"10.0.0.0/8 -> OWNER\""),
	{0},
};

static const struct bind files_table[] = {
	PART(files, url_seconds, BIND_INT, 0, 315360000, "seconds after which the address of a file expires; 0: never"),
	{0},
};

static const struct bind metrics_table[] = {
	PART(metrics, enabled, BIND_BOOL, 0, 0, "serve /metrics to this machine and to clients with the token"),
	FLAGGED(metrics, token, BIND_STRING, 0, 256,
		"bearer token for /metrics and /readyz from other machines; empty: none", BIND_SECRET),
	{0},
};

static const struct bind log_table[] = {
	PART(log, format, BIND_STRING, 1, 8, "format of log lines of gateway and jailer: text or json"),
	PART(log, level, BIND_STRING, 1, 8, "minimum level of log lines: debug, info, warn or error"),
	{0},
};

static const struct bind health_table[] = {
	PART(health, ready, BIND_BOOL, 0, 0, "serve /readyz"),
	PART(health, disk_mb, BIND_INT, 0, INT64_MAX >> 20,
	     "minimum free space of data_dir's disk in MiB for /readyz to succeed"),
	{0},
};

static const struct bind admin_table[] = {
	PART(admin, enabled, BIND_BOOL, 0, 0, "serve the admin page below /admin"),
	PART(admin, hours, BIND_INT, 1, 720, "hours after which a session must sign in again"),
	PART(admin, idle_minutes, BIND_INT, 1, 1440,
	     "minutes without a request after which a session must sign in again"),
	PART(admin, signer_figures, BIND_STRING, 0, PATH_MAX,
	     "file of sallyport checkpoint --metrics, from which the page knows how far the audit log is signed"),
	{0},
};

static const struct bind oauth_table[] = {
	PART(oauth, mode, BIND_STRING, 1, 16,
	     "who gives out tokens for OAuth: off (nobody), builtin (this server) or external (oauth.issuer)"),
	PART(oauth, default_scopes, BIND_STRING, 1, 64, "scopes that clients should ask for"),
	PART(oauth, client_metadata, BIND_BOOL, 0, 0, "builtin: clients may be the address of a document"),
	PART(oauth, dynamic_registration, BIND_BOOL, 0, 0, "builtin: let clients register themselves at /register"),
	PART(oauth, known_clients, BIND_BOOL, 0, 0, "builtin: copies of well-known documents where fetching fails"),
	PART(oauth, redirect_hosts, BIND_STRINGS, 0, 64, "builtin: other hosts to which documents may send codes"),
	PART(oauth, private_schemes, BIND_STRINGS, 0, 64, "builtin: redirect addresses of other schemes"),
	PART(oauth, access_seconds, BIND_INT, 1, 86400, "builtin: life of an access token in seconds"),
	PART(oauth, refresh_days, BIND_INT, 0, 3650, "builtin: days of an unused refresh token; 0: none"),
	PART(oauth, grant_days, BIND_INT, 1, 3650, "builtin: days after which a client must ask its user again"),
	PART(oauth, clients_max, BIND_INT, 1, 100000, "builtin: clients that registered themselves, at most"),
	PART(oauth, issuer, BIND_STRING, 0, 1024, "external: authorization server whose tokens count"),
	PART(oauth, jwks_uri, BIND_STRING, 0, 1024, "external: address of the issuer's keys; empty: of its metadata"),
	PART(oauth, audiences, BIND_STRINGS, 0, 64, "external: audiences of tokens that count; empty: that of /mcp"),
	PART(oauth, algorithms, BIND_STRINGS, 0, 16, "external: of signatures; empty: RS256, PS256, ES256, EdDSA"),
	PART(oauth, clients, BIND_STRINGS, 0, 1024, "external: client ids whose tokens count; empty: all"),
	PART(oauth, typ, BIND_STRING, 1, 16, "external: types of JWTs that count: at+jwt or any"),
	PART(oauth, scope_claim, BIND_STRING, 0, 256, "external: claim with the scopes; empty: scope or scp"),
	PART(oauth, scope_map, BIND_STRINGS, 0, 64, "external: scopes of the issuer, as \"THEIRS -> OURS\""),
	PART(oauth, scopes_max, BIND_STRING, 1, 64, "external: scopes that tokens may have at most"),
	PART(oauth, owner, BIND_STRING, 0, 32, "external: owner of everybody"),
	PART(oauth, owners, BIND_STRINGS, 0, 10000, "external: owners of people, as \"CLAIM=VALUE -> OWNER\""),
	PART(oauth, owner_claim, BIND_STRING, 0, 256, "external: claim with the owner's name"),
	PART(oauth, owner_prefix, BIND_STRING, 0, 31, "external: prefix of owners from oauth.owner_claim"),
	PART(oauth, introspection_endpoint, BIND_STRING, 0, 1024,
	     "external: address where the issuer tells whose token it is; empty: only JWTs count"),
	PART(oauth, introspection_client, BIND_STRING, 0, 256, "external: client id for introspection"),
	PART(oauth, introspection_secret_file, BIND_STRING, 0, PATH_MAX, "external: file with that client's secret"),
	PART(oauth, ca_file, BIND_STRING, 0, PATH_MAX,
	     "certificates (PEM) to trust for the issuer and for documents of clients; empty: the system's"),
	{0},
};

static const struct bind network_table[] = {
	PART(network, allow, BIND_STRINGS, 0, CONFIG_HOSTS_MAX,
	     "destinations of programs with network, host:port or *.domain:port; empty: none"),
	FLAGGED(network, proxy, BIND_STRING, 0, 1024,
		"proxy for these connections, http://[user:password@]host:port; empty: connect directly", BIND_SECRET),
	PART(network, proxy_resolves, BIND_BOOL, 0, 0,
	     "send names to the proxy instead of the addresses that were checked"),
	PART(network, connections, BIND_INT, 1, 4096, "concurrent connections of one program; more wait"),
	PART(network, mb, BIND_INT, 0, 1000000,
	     "MB that one program may transfer, both directions together; 0: no limit"),
	{0},
};

static const struct bind upstream_table[] = {
	PART(upstream, file, BIND_STRING, 0, PATH_MAX,
	     "file that lists the MCP servers whose tools programs may call; empty: none"),
	PART(upstream, secrets_dir, BIND_STRING, 0, PATH_MAX,
	     "folder of files with the values of variables in upstream.file; empty: take them from the environment"),
	PART(upstream, binds, BIND_STRINGS, 0, CONFIG_BINDS_MAX, "folders that jailed servers may read"),
	PART(upstream, calls_per_minute, BIND_INT, 0, MANY, "calls that one owner may make per minute; 0: no limit"),
	PART(upstream, result_kb, BIND_INT, 1, 65536, "maximum size of one call's result in KiB"),
	{0},
};

static const struct bind tools_table[] = {
	PART(tools, text, BIND_STRING, 1, 16, "form of run_code's text block: plain or json"),
	PART(tools, links, BIND_BOOL, 0, 0, "also list files as resource links"),
	PART(tools, strict, BIND_BOOL, 0, 0,
	     "refuse arguments that are not exactly what the schema says: texts of values, unknown members"),
	PART(tools, sets, BIND_STRINGS, 0, 8, "additional tool sets: isolator, interpreter, bridge, snippets"),
	PART(tools, bridge_output, BIND_STRING, 1, 16, "form of run_python's text block: compact or toon"),
	PART(tools, snippets_dir, BIND_STRING, 0, PATH_MAX,
	     "folder of programs to import as snippets at the start; empty: none"),
	PART(tools, secrets_dir, BIND_STRING, 0, PATH_MAX,
	     "folder of secret environment variables, one file OWNER/NAME each; empty: none"),
	PART(tools, upstream, BIND_STRING, 1, 16,
	     "who calls the tools of upstream.file's servers: code (programs), direct (models), both"),
	{0},
};

#define GROUP(name_, text_)                                                                                            \
	{                                                                                                              \
		.name = #name_, .type = BIND_OBJECT, .offset = offsetof(struct config, name_), .table = name_##_table, \
		.description = text_                                                                                   \
	}

const struct bind config_table[] = {
	{.name = "profile",
	 .type = BIND_STRING,
	 .offset = offsetof(struct config, profile),
	 .max = 32,
	 .description = "other defaults: grader, for graders and trainers"},
	{.name = "data_dir",
	 .type = BIND_STRING,
	 .offset = offsetof(struct config, data_dir),
	 .max = PATH_MAX,
	 .description = "folder of the database, the blobs and the secret key"},
	{.name = "public_base_url",
	 .type = BIND_STRING,
	 .offset = offsetof(struct config, public_base_url),
	 .max = 1024,
	 .description = "beginning of download URLs, without a slash at the end"},
	GROUP(gateway, "the FastCGI gateway"),
	GROUP(jailer, "the jailer and its clients"),
	GROUP(limits, "limits of runs and requests"),
	GROUP(tools, "how tools answer"),
	GROUP(network, "the network of programs"),
	GROUP(upstream, "MCP servers whose tools programs call"),
	GROUP(retention, "how much is stored, and for how long"),
	GROUP(oauth, "tokens of an authorization server"),
	GROUP(workspace, "the folder of sallyport stdio --workspace"),
	GROUP(api, "the HTTP API for programs that do not speak MCP"),
	GROUP(doors, "the APIs of other sandboxes"),
	GROUP(files, "addresses of files"),
	GROUP(metrics, "metrics for monitoring"),
	GROUP(health, "readiness for load balancers"),
	GROUP(log, "log lines of gateway and jailer"),
	GROUP(admin, "the admin page"),
	{0},
};

static const struct config defaults = {
	.profile = "",
	.data_dir = "",
	.public_base_url = "",
	.gateway = {.socket = "", .threads = 16, .accel_prefix = "", .client_addresses = "full"},
	.jailer = {.socket = "", .program = "", .runners_dir = "", .modules_dir = "", .cgroup = "sallyport",
		   .jails = 64, .warm = "off", .warm_mb = 256, .disk_read_mb = 100},
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
	.upstream =
		{.file = "", .secrets_dir = "", .result_kb = 5120},
	.retention =
		{.owner_mb = 10240, .conversation_days = 30, .when_full = "refuse", .free_mb = 64, .free_inodes = 1000},
	.api = {.jwt_key = "", .jwt_issuer = "librechat", .jwt_audience = "codeapi", .jwt_owner = "chat"},
	.metrics = {.enabled = true, .token = ""},
	.log = {.format = "text", .level = "info"},
	.health = {.ready = true, .disk_mb = 256},
	.admin = {.hours = 12, .idle_minutes = 60, .signer_figures = "/run/sallyport-audit/sallyport-audit.prom"},
	.oauth = {.mode = "off", .default_scopes = "run files", .client_metadata = true, .dynamic_registration = true,
		  .known_clients = true, .access_seconds = 3600, .refresh_days = 30, .grant_days = 180,
		  .clients_max = 500, .issuer = "", .jwks_uri = "", .typ = "at+jwt", .scope_claim = "", .owner = "",
		  .scopes_max = "run files network", .owner_claim = "", .owner_prefix = "", .introspection_client = "",
		  .introspection_endpoint = "", .introspection_secret_file = "", .ca_file = ""},
};

/* Members that hold paths: {group or NULL, member}. */
static const char *const path_members[][2] = {
	{NULL, "data_dir"},        {"gateway", "socket"},       {"jailer", "socket"},      {"jailer", "program"},
	{"jailer", "runners_dir"}, {"jailer", "modules_dir"},   {"tools", "snippets_dir"}, {"tools", "secrets_dir"},
	{"upstream", "file"},      {"upstream", "secrets_dir"}, {"oauth", "ca_file"},
	{"oauth", "introspection_secret_file"}, {"admin", "signer_figures"}, {"api", "jwt_key"},
};

/* Members of earlier versions, with what takes their place. */
static const struct {
	const char *group, *member, *instead;
} removed_members[] = {
#define REMOVED(group, member, instead) {#group, #member, "was removed: " instead}
	{"gateway", "profile",
	 "was removed: only the gateway of `make run PROFILE=conformance` serves the fixtures of the conformance suite"},
	REMOVED(upstream, calls, "nothing read it, use limits.tool_calls"),
	REMOVED(upstream, in_flight, "nothing read it, use limits.tool_calls_at_once"),
	REMOVED(upstream, argument_kb, "nothing read it, use limits.tool_argument_kb"),
	{"tools", "results",
	 "was removed: choose for a token (sallyport token add --results) or in the address (/mcp?results=none)"},
};

/* The environment variable of a member; `group` NULL: a member of the top. The caller's. */
static char *variable_of(const char *group, const char *member)
{
	char *name = group != NULL ? xasprintf(ENVIRONMENT_PREFIX "%s_%s", group, member)
				   : xasprintf(ENVIRONMENT_PREFIX "%s", member);

	for (char *c = name; *c != '\0'; c++)
		*c = (char)toupper((unsigned char)*c);
	return name;
}

struct found {
	const struct bind *bind;
	const char *group; /* NULL: a member of the top */
};

/* The first member whose variable is the same as `variable`, by streq or str_near. */
static bool find_member(const char *variable, bool (*same)(const char *, const char *), struct found *ret)
{
	for (const struct bind *bind = config_table; bind->name != NULL; bind++) {
		const char *group = bind->type == BIND_OBJECT ? bind->name : NULL;

		for (const struct bind *part = group != NULL ? bind->table : bind; part->name != NULL; part++) {
			auto_free char *name = variable_of(group, part->name);

			if (same(variable, name)) {
				*ret = (struct found){part, group};
				return true;
			}
			if (group == NULL)
				break;
		}
	}
	return false;
}

/* The variable's text as a value of the member's type. A text that is not a number or a truth value stays a string: the
 * binding refuses it. A list is "a,b"; the empty text is the empty list. */
static struct json_object *value_of(const struct bind *bind, const char *text)
{
	uint64_t number;
	bool negative = text[0] == '-';

	if (bind->type == BIND_STRINGS) {
		struct json_object *array = json_object_new_array();

		while (*text != '\0') {
			size_t length = strcspn(text, ",");

			json_object_array_add(array, json_object_new_string_len(text, (int)length));
			text += length + (text[length] == ',');
		}
		return array;
	}
	if (bind->type == BIND_INT && parse_u64(text + negative, 0, INT64_MAX, &number) == 0)
		return json_object_new_int64(negative ? -(int64_t)number : (int64_t)number);
	if (bind->type == BIND_BOOL && (streq(text, "true") || streq(text, "1")))
		return json_object_new_boolean(true);
	if (bind->type == BIND_BOOL && (streq(text, "false") || streq(text, "0")))
		return json_object_new_boolean(false);
	return json_object_new_string(text);
}

static void put_member(struct json_object *document, const char *group, const char *member, struct json_object *value)
{
	struct json_object *owner = group != NULL ? json_get(document, group, json_type_object) : document;

	if (owner == NULL) {
		owner = json_object_new_object();
		json_add(document, group, owner);
	}
	json_add(owner, member, value);
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

static int unknown_variable(const char *name, struct err *err)
{
	struct found found;

	for (size_t i = 0; i < ARRAY_SIZE(removed_members); i++) {
		auto_free char *removed = variable_of(removed_members[i].group, removed_members[i].member);

		if (streq(name, removed))
			return err_member(err, name, "%s", removed_members[i].instead);
	}
	if (!find_member(name, str_near, &found))
		return err_member(err, name,
				  "unknown environment variable: no member of the configuration has this name");
	auto_free char *near = variable_of(found.group, found.bind->name);

	return err_member(err, name, "unknown environment variable, did you mean %s?", near);
}

/* `variable`: "NAME=value". */
static int apply_variable(const char *variable, struct json_object *document, struct err *err)
{
	size_t length = strcspn(variable, "=");
	auto_free char *name = xstrndup(variable, length);
	struct found found;

	if (streq(name, "SALLYPORT_CONFIG")) /* config_load reads it */
		return 0;
	if (variable[length] == '\0' || !find_member(name, streq, &found))
		return unknown_variable(name, err);
	auto_json struct json_object *alone = json_object_new_object();

	put_member(alone, found.group, found.bind->name, value_of(found.bind, variable + length + 1));
	if (check_document(alone, err) < 0)
		return err_wrap(err, "environment variable %s", name);
	put_member(document, found.group, found.bind->name, value_of(found.bind, variable + length + 1));
	return 0;
}

static int apply_environment(struct json_object *document, struct err *err)
{
	int result = 0;

	for (char **variable = environ; result == 0 && variable != NULL && *variable != NULL; variable++)
		if (str_starts(*variable, ENVIRONMENT_PREFIX))
			result = apply_variable(*variable, document, err);
	return result;
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

/* The file at `path` as a document, and its folder as an absolute path; both are the caller's. */
static int read_document(const char *path, struct json_object **ret, char **ret_folder, struct err *err)
{
	auto_free char *text = NULL;
	auto_json struct json_object *document = NULL;
	size_t length;
	int result = read_file_at(AT_FDCWD, path, CONFIG_BYTES_MAX, &text, &length, err);

	if (result == -ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND,
				"there is no configuration %s: name another file with --config or in SALLYPORT_CONFIG",
				path);
	if (result == -ERR_SYSTEM && errno == EACCES)
		return err_set(err, ERR_SYSTEM,
				"account %u may not read the configuration %s: give its group read access (chgrp, chmod g+r), or run this as the account of the gateway",
				geteuid(), path);
	if (result < 0)
		return result;
	result = json_parse_commented(text, length, &document, err);
	if (result == 0)
		result = check_document(document, err);
	if (result < 0)
		return err_wrap(err, "%s", path), result;
	const char *slash = strrchr(path, '/');
	auto_free char *folder =
		slash == NULL ? xstrdup(".") : xstrndup(path, (size_t)(slash - path) + (slash == path));

	*ret_folder = realpath(folder, NULL);
	if (*ret_folder == NULL)
		return err_errno(err, "%s", folder);
	*ret = steal(&document);
	return 0;
}

/* The default of runners_dir: installed below share/, or in the checkout that the program was built in. */
static void default_runners(struct json_object *document)
{
	if (json_get_string(json_get(document, "jailer", json_type_object), "runners_dir") != NULL)
		return;
	auto_free char *folder = config_program_dir();
	auto_free char *up = xasprintf("%s/..", folder);
	auto_free char *installed = xasprintf("%s/share/sallyport/runners", up);
	auto_free char *found = access(installed, R_OK) == 0 ? steal(&installed) : NULL;

	for (int i = 0; i < PROGRAM_PARENTS && found == NULL; i++) {
		auto_free char *there = xasprintf("%s/jail/runners", up), *next = xasprintf("%s/..", up);

		if (access(there, R_OK) == 0)
			found = realpath(there, NULL);
		free(up);
		up = steal(&next);
	}
	if (found != NULL)
		put_member(document, "jailer", "runners_dir", json_object_new_string(found));
}

static const struct bind *member_bind(const struct bind *table, const char *name)
{
	for (; table && table->name; table++)
		if (streq(table->name, name))
			return table;
	return NULL;
}

/* What the profile sets and nobody else has set. */
static int apply_profile(struct json_object *document, struct err *err)
{
	const char *name = json_get_string(document, "profile");
	const struct config_preset *preset = name && *name ? config_profile(name) : NULL;

	if (name && *name && !preset)
		return err_member(err, "profile", "must be grader or empty");
	for (; preset && preset->group; preset++) {
		const int64_t value = config_preset_value(preset);
		const struct bind *bind = member_bind(member_bind(config_table, preset->group)->table, preset->member);

		if (!json_object_object_get_ex(json_get(document, preset->group, json_type_object), preset->member,
					       NULL))
			put_member(document, preset->group, preset->member,
				   bind->type == BIND_BOOL ? json_object_new_boolean(value != 0)
							   : json_object_new_int64(value));
	}
	return 0;
}

/* A file that another user could have put there does not count: with sudo, HOME may be another user's. */
static bool is_ours(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode) &&
	       (status.st_uid == geteuid() || status.st_uid == 0) && access(path, R_OK) == 0;
}

char *config_find(void)
{
	const char *folder = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	auto_free char *own = NULL;

	if (folder && folder[0] == '/')
		own = xasprintf("%s/" NAME, folder);
	else if (home && home[0] == '/')
		own = xasprintf("%s/.config/" NAME, home);
	if (own && is_ours(own))
		return steal(&own);
	return is_ours(MACHINE) ? xstrdup(MACHINE) : NULL;
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
		result = read_document(path, &document, &folder, err);
	} else {
		path = NULL;
		document = json_object_new_object();
	}
	if (result == 0 && (result = apply_environment(document, err)) == 0)
		result = apply_profile(document, err);
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

/* `prefix`: of its name, "limits." */
static void show_member(struct json_object *shown, const char *prefix, const struct bind *bind,
			struct json_object *value, config_tag *tag, void *arg)
{
	auto_free char *name = xasprintf("%s%s", prefix, bind->name);
	const char *text = json_object_get_string(value);
	auto_buf struct buf tagged = {0};

	if (!(bind->flags & BIND_SECRET) || !text || !*text) {
		json_add(shown, name, json_object_get(value));
		return;
	}
	buf_init(&tagged, SIZE_MAX / 2);
	tag(arg, text, &tagged);
	json_add_string(shown, name, tagged.data);
}

struct json_object *config_shown(const struct config *config, config_tag *tag, void *arg)
{
	struct json_object *shown = json_object_new_object();

	json_object_object_foreach(config->document, key, value)
	{
		const struct bind *bind = member_bind(config_table, key);
		auto_free char *prefix = xasprintf("%s.", key);

		if (bind && bind->type != BIND_OBJECT)
			show_member(shown, "", bind, value, tag, arg);
		if (!bind || bind->type != BIND_OBJECT || !json_object_is_type(value, json_type_object))
			continue;
		json_object_object_foreach(value, member, part)
		{
			const struct bind *inner = member_bind(bind->table, member);

			if (inner)
				show_member(shown, prefix, inner, part, tag, arg);
		}
	}
	return shown;
}
