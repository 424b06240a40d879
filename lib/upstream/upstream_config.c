/*
 * upstream_config.c - see upstream_config.h.
 *
 * The file is one JSON document. Each entry goes through the same steps: members of clients' windows are dropped,
 * variables are replaced in place, the table binds it, then what one member must be to another is checked. The first
 * step that fails leaves its sentence in `problem`, and the entry stays in the list, so that people learn why a
 * server is away instead of that it does not exist.
 */
#include "upstream_config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/host.h"
#include "lib/base/json.h"
#include "lib/base/util.h"

#define FILE_MAX (4 << 20)

#define MEMBER(name_, type_, min_, max_, text_)                                                                        \
	{                                                                                                              \
		.name = #name_, .type = type_, .offset = offsetof(struct upstream_server, name_), .min = min_,         \
		.max = max_, .description = text_                                                                      \
	}
#define CHOICE(name_, choices_, text_)                                                                                 \
	{                                                                                                              \
		.name = #name_, .type = BIND_CHOICE, .offset = offsetof(struct upstream_server, name_),                \
		.choices = choices_, .description = text_                                                              \
	}
#define RULE(name_, text_)                                                                                             \
	{                                                                                                              \
		.name = #name_, .type = BIND_STRINGS, .offset = offsetof(struct upstream_rules, name_), .max = 1000,   \
		.description = text_                                                                                   \
	}

static const char *const types[] = {"stdio", "http", "streamable-http", "streamableHttp", NULL};
static const char *const shares[] = {"owner", "run", "all", NULL};
static const char *const datas[] = {"temporary", "keep", NULL};
static const char *const starts[] = {"use", "gateway", NULL};
static const char *const elicitations[] = {"none", "relay", NULL};
static const char *const decisions[] = {"allow", "ask", "deny", NULL};

static const struct bind rules_table[] = {
	RULE(allow, "patterns of tools that may be called"),
	RULE(ask, "patterns of tools for which the user is asked"),
	RULE(deny, "patterns of tools that may not be called; wins over the others"),
	{.name = "default",
	 .type = BIND_CHOICE,
	 .offset = offsetof(struct upstream_rules, otherwise),
	 .choices = decisions,
	 .description = "for tools that no pattern names; unsaid: allow, but ask for those that say they destroy"},
	{0},
};

#define OAUTH(name_, text_)                                                                                            \
	{                                                                                                              \
		.name = #name_, .type = BIND_STRING, .offset = offsetof(struct upstream_oauth, name_), .min = 1,       \
		.max = 2048, .description = text_                                                                      \
	}
static const struct bind oauth_table[] = {
	OAUTH(client_id, "the client's id, where the issuer registers none by itself"),
	OAUTH(client_secret, "its secret"),
	OAUTH(client_metadata_url, "https address of a document that describes the client, for issuers that take such"),
	OAUTH(redirect_uri, "where its answers come back to, http://127.0.0.1:PORT/callback for instance"),
	OAUTH(scopes, "scopes to ask for, with blanks between; default: those that the server names"),
	{0},
};

const struct bind upstream_config_table[] = {
	MEMBER(type, BIND_STRING, 1, 32, "stdio or http; need not be said"),
	MEMBER(command, BIND_STRING, 1, 4096, "program that speaks MCP over its standard input and output"),
	MEMBER(args, BIND_STRINGS, 0, 256, "its arguments"),
	MEMBER(env, BIND_STRING_MAP, 0, 256, "its environment, besides PATH, HOME and LANG"),
	MEMBER(cwd, BIND_STRING, 0, 4096, "its working directory"),
	MEMBER(url, BIND_STRING, 1, 2048, "address of a server over HTTP"),
	MEMBER(headers, BIND_STRING_MAP, 0, 64, "headers of each request to it"),
	MEMBER(description, BIND_STRING, 0, 1024, "what it is for"),
	MEMBER(disabled, BIND_BOOL, 0, 0, "leave it out"),
	MEMBER(jail, BIND_BOOL, 0, 0, "run the program in a jail of its own"),
	MEMBER(network, BIND_STRINGS, 0, 64, "hosts that the program reaches, as in network.allow"),
	MEMBER(binds, BIND_STRINGS, 0, CONFIG_BINDS_MAX, "folders of upstream.binds that it sees; default: all"),
	CHOICE(data, datas, "keep: files below /data are there again when the program is started anew"),
	MEMBER(memory_mb, BIND_INT, 16, 1000000, "memory of the program"),
	{.name = "tools",
	 .type = BIND_OBJECT,
	 .offset = offsetof(struct upstream_server, tools),
	 .table = rules_table,
	 .description = "which tools may be called"},
	MEMBER(idempotent, BIND_STRINGS, 0, 1000, "patterns of tools that are called again when an answer was lost"),
	MEMBER(roots, BIND_STRINGS, 0, 64, "roots to name to the server"),
	MEMBER(timeout_seconds, BIND_INT, 1, 300, "time for one call"),
	MEMBER(start_seconds, BIND_INT, 1, 300, "time to start and connect"),
	MEMBER(idle_seconds, BIND_INT, 1, 86400, "without calls for so long it is stopped"),
	MEMBER(instances, BIND_INT, 1, 16, "processes side by side, for each owner"),
	{.name = "private",
	 .type = BIND_BOOL,
	 .offset = offsetof(struct upstream_server, is_private),
	 .description = "url: the address may be one that is not public"},
	CHOICE(start, starts, "when it is started: at the first use, or with the gateway"),
	CHOICE(share, shares, "whose process or session it is: each owner's, each run's, or all's"),
	MEMBER(pin, BIND_BOOL, 0, 0, "refuse tools whose definition changed until an operator accepts them"),
	MEMBER(trust_annotations, BIND_BOOL, 0, 0, "a tool that says it only reads may be called"),
	{.name = "oauth",
	 .type = BIND_OBJECT,
	 .offset = offsetof(struct upstream_server, oauth),
	 .table = oauth_table,
	 .description = "url: how to sign in, by sallyport upstream login"},
	CHOICE(elicitation, elicitations, "relay: its questions go to upstream_on_ask; the gateway has none"),
	{0},
};

static const struct upstream_server defaults = {
	.jail = true,
	.memory_mb = 512,
	.tools = {.otherwise = UPSTREAM_UNSAID},
	.timeout_seconds = 60,
	.start_seconds = 30,
	.idle_seconds = 300,
	.instances = 1,
};

/* What only concerns a client's window. */
static const char *const passed_over[] = {"autoApprove", "alwaysAllow", "icon",       "gallery",
					  "version",     "timeout",     "displayName"};

static void add_warning(struct upstream_file *file, const char *format, const char *name, const char *member)
{
	struct bind_strings *list = &file->warnings;

	list->items = xrealloc(list->items, list->count + 1, sizeof(*list->items));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	list->items[list->count++] = xasprintf(format, name, member);
#pragma GCC diagnostic pop
}

/* http(s)://host[:port][/path], no user, no fragment. */
static int check_url(const char *url, struct err *err)
{
	const char *host = strstr(url, "://");

	if (!str_starts(url, "http://") && !str_starts(url, "https://"))
		return err_member(err, "url", "must begin with http:// or https://");
	host += strlen("://");
	if (host[strcspn(host, "/?#@")] == '@')
		return err_member(err, "url", "must not have a user: put credentials into headers");
	if (strpbrk(url, " \t\r\n\"<>#\\") != NULL || host[0] == '\0' || host[0] == '/')
		return err_member(err, "url", "must be scheme, host and path");
	return 0;
}

static int check_headers(const struct bind_map *headers, struct err *err)
{
	for (size_t i = 0; i < headers->count; i++) {
		const char *name = headers->keys[i];

		for (const char *c = name; *c != '\0'; c++)
			if (!isalnum((unsigned char)*c) && strchr("!#$%&'*+-.^_`|~", *c) == NULL)
				return err_member(err, "headers", "\"%s\" is not the name of a header", name);
		if (name[0] == '\0' || strpbrk(headers->values[i], "\r\n") != NULL)
			return err_member(err, "headers", "the value of \"%s\" must be one line", name);
		if (!strcasecmp(name, "host") || !strcasecmp(name, "content-length") ||
		    !strcasecmp(name, "transfer-encoding") || str_starts(name, "Mcp-"))
			return err_member(err, "headers", "\"%s\" is set by the client itself", name);
	}
	return 0;
}

static int check_oauth(const struct upstream_server *server, struct err *err)
{
	const struct upstream_oauth *oauth = &server->oauth;
	const bool named = oauth->client_id != NULL || oauth->client_metadata_url != NULL || oauth->scopes != NULL;
	struct host_url url;

	if (server->url == NULL && (named || oauth->redirect_uri != NULL))
		return err_member(err, "oauth", "goes with a url");
	if (oauth->client_secret != NULL && oauth->client_id == NULL)
		return err_member(err, "oauth.client_secret", "goes with client_id");
	if (oauth->client_metadata_url != NULL && !str_starts(oauth->client_metadata_url, "https://"))
		return err_member(err, "oauth.client_metadata_url", "must begin with https://");
	if (oauth->redirect_uri != NULL && (host_url_parse(oauth->redirect_uri, &url) < 0 || !url.secure))
		return err_member(err, "oauth.redirect_uri",
				  "must be an address of https, or of http on this computer (127.0.0.1 or localhost)");
	return 0;
}

/* What starts other programs, or downloads them at each start. */
static int check_command(const struct upstream_server *server, struct err *err)
{
	static const char *const starters[] = {"npx", "uvx", "docker", "podman", "pipx", "bunx"};
	const char *slash = strrchr(server->command, '/');

	for (size_t i = 0; i < ARRAY_SIZE(starters); i++)
		if (streq(slash != NULL ? slash + 1 : server->command, starters[i]))
			return err_member(
				err, "command",
				"%s cannot work in a jail: install the server into a folder of upstream.binds and "
				"name its program (node, python3 or its path), or say \"jail\": false",
				starters[i]);
	if (server->cwd != NULL && server->cwd[0] != '/')
		return err_member(err, "cwd", "must be an absolute path, as the jail has it");
	return 0;
}

/* What only a program in a jail has. */
static int check_jail(const struct upstream_server *server, const struct config *config, struct err *err)
{
	bool jailed = server->command != NULL && server->jail;

	if (server->names_binds && !jailed)
		return err_member(err, "binds", "goes with a command in a jail");
	for (size_t i = 0; i < server->binds.count; i++)
		if (!bind_strings_has(&config->upstream.binds, server->binds.items[i]))
			return err_member(err, "binds", "%.200s is not one of upstream.binds in the configuration",
					  server->binds.items[i]);
	if (server->data != UPSTREAM_DATA_KEEP)
		return 0;
	if (!jailed)
		return err_member(err, "data", "\"keep\" goes with a command in a jail");
	if (server->share == UPSTREAM_SHARE_RUN || server->instances > 1)
		return err_member(err, "data",
				  "\"keep\" goes with one process at a time: neither with \"share\": \"run\" nor with "
				  "several instances");
	if (config->data_dir[0] == '\0')
		return err_member(err, "data", "\"keep\" needs data_dir in the configuration");
	return 0;
}

static int check_program(const struct upstream_server *server, struct err *err)
{
	struct config_host host;

	if (server->command != NULL && server->jail && check_command(server, err) < 0)
		return -ERR_INVALID;

	for (size_t i = 0; i < server->network.count; i++)
		if (config_host_parse(server->network.items[i], &host, NULL) < 0 || host.below || !server->jail)
			return err_member(err, "network", "\"%.80s\" must be HOST:PORT, and the server in a jail",
					  server->network.items[i]);
	for (size_t i = 0; i < server->env.count; i++)
		if (server->env.keys[i][0] == '\0' || strchr(server->env.keys[i], '=') != NULL)
			return err_member(err, "env", "\"%s\" is not the name of a variable", server->env.keys[i]);
	return 0;
}

/* What members must be to each other. */
static int check_entry(const struct upstream_server *server, const struct config *config, struct err *err)
{
	bool known = server->type == NULL;

	for (size_t i = 0; server->type != NULL && types[i] != NULL; i++)
		known |= streq(types[i], server->type);
	if (!known)
		return err_member(err, "type", "\"%s\" is not spoken: use stdio or http", server->type);
	if ((server->command != NULL) == (server->url != NULL))
		return err_member(err, "command", "there must be either command or url");
	if (server->type != NULL && streq(server->type, "stdio") != (server->command != NULL))
		return err_member(err, "type", "\"%s\" does not go with %s", server->type,
				  server->command != NULL ? "command" : "url");
	if (server->url != NULL && check_url(server->url, err) < 0)
		return -ERR_INVALID;
	if (server->start == UPSTREAM_START_GATEWAY && server->share != UPSTREAM_SHARE_ALL)
		return err_member(err, "start",
				  "\"gateway\" goes with \"share\": \"all\": else nobody is there to start it for");
	if (check_headers(&server->headers, err) < 0 || check_oauth(server, err) < 0)
		return -ERR_INVALID;
	int result = check_program(server, err);

	return result < 0 ? result : check_jail(server, config, err);
}

static char *identity_of(const char *name, struct json_object *entry)
{
	static const char *const members[] = {"url", "command", "args"};
	auto_json struct json_object *parts = json_object_new_array();
	auto_buf struct buf out;
	struct json_object *value;

	buf_init(&out, FILE_MAX);
	json_object_array_add(parts, json_object_new_string(name));
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if (json_object_object_get_ex(entry, members[i], &value))
			json_object_array_add(parts, json_object_get(value));
	json_print(&out, parts);
	return buf_steal(&out, NULL);
}

static int bind_entry(struct upstream_server *server, const struct config *config, struct err *err)
{
	struct upstream_secrets secrets = {0};
	int result;

	if (!json_object_is_type(server->entry, json_type_object))
		return err_member(err, "", "must be an object");
	server->identity = identity_of(server->name, server->entry);
	server->names_binds = json_object_object_get_ex(server->entry, "binds", NULL);
	result = upstream_expand(server->entry, config->upstream.secrets_dir, &secrets, err);
	if (result == 0)
		result = bind_parse(upstream_config_table, server->entry, server, err);
	if (result == 0)
		result = check_entry(server, config, err);
	/* The texts that may not come back: headers with a scheme ("Bearer abc") also without it. */
	for (size_t i = 0; i < server->headers.count; i++) {
		const char *blank = strrchr(server->headers.values[i], ' ');

		upstream_expand_keep(&secrets, server->headers.values[i]);
		if (blank != NULL)
			upstream_expand_keep(&secrets, blank + 1);
	}
	for (size_t i = 0; i < server->env.count; i++)
		upstream_expand_keep(&secrets, server->env.values[i]);
	if (server->oauth.client_secret != NULL)
		upstream_expand_keep(&secrets, server->oauth.client_secret);
	server->secrets = (struct bind_strings){(const char **)(void *)secrets.items, secrets.count};
	return result;
}

/* Names must be text that a program and a person can write. */
static int check_name(const char *name, struct err *err)
{
	size_t length = strlen(name);

	if (length == 0 || length > UPSTREAM_NAME_MAX)
		return err_set(err, ERR_INVALID, "mcpServers: the name \"%.64s\" must have 1 to %d bytes", name,
			       UPSTREAM_NAME_MAX);
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)name[i] <= ' ' || strchr("\"\\,/*", name[i]) != NULL || name[i] == 0x7f)
			return err_set(err, ERR_INVALID,
				       "mcpServers: the name \"%.64s\" must have no blanks and none of \" \\ , / *",
				       name);
	return 0;
}

static int add_entry(struct upstream_file *file, const struct config *config, const char *name,
		     struct json_object *entry, struct err *err)
{
	struct upstream_server *server = &file->servers[file->count];
	struct err problem = ERR_INIT;
	int result = check_name(name, err);

	if (result < 0)
		return result;
	*server = defaults;
	server->name = name;
	server->entry = entry;
	upstream_name_alias(name, server->alias);
	if (upstream_name_reserved(server->alias))
		return err_set(err, ERR_INVALID,
			       "mcpServers.%s: `%s` is a word of the module `tools`: give the server another name",
			       name, server->alias);
	for (size_t i = 0; i < file->count; i++)
		if (!strcasecmp(file->servers[i].alias, server->alias))
			return err_set(err, ERR_CONFLICT,
				       "mcpServers.%s and mcpServers.%s are both `%s` in programs: rename one of them",
				       file->servers[i].name, name, server->alias);
	file->count++;
	for (size_t i = 0; json_object_is_type(entry, json_type_object) && i < ARRAY_SIZE(passed_over); i++)
		if (json_object_object_get_ex(entry, passed_over[i], NULL)) {
			add_warning(file, "mcpServers.%s.%s: means nothing here", name, passed_over[i]);
			json_object_object_del(entry, passed_over[i]);
		}
	if (bind_entry(server, config, &problem) < 0)
		server->problem = xasprintf("mcpServers.%s%s%s", name, &"."[problem.text[0] == ':'], problem.text);
	else if (server->disabled)
		server->problem = xasprintf("mcpServers.%s.disabled: is true", name);
	size_t own = strlen(config->public_base_url);

	if (server->url != NULL && own > 0 && str_starts(server->url, config->public_base_url) &&
	    (server->url[own] == '\0' || server->url[own] == '/'))
		return err_set(err, ERR_INVALID, "mcpServers.%s.url: is this gateway itself", name);
	return 0;
}

/* Who reads the file: the gateway, or a command that became its account; the caller's. */
static char *reader(void)
{
	const struct passwd *account = getpwuid(geteuid());

	return account ? xstrdup(account->pw_name) : xasprintf("%u", geteuid());
}

static int read_file(struct upstream_file *file, const char *path, struct json_object **ret_servers, struct err *err)
{
	auto_free char *text = NULL, *who = reader();
	size_t length;
	struct stat status;
	int result = read_file_at(AT_FDCWD, path, FILE_MAX, &text, &length, err);

	if (result == -ERR_SYSTEM && errno == EACCES)
		return err_set(err, ERR_SYSTEM, "the account %s may not read it: chown %s %s", who, who, path);
	if (result < 0)
		return result;
	auto_free char *remedy = xasprintf("chown %s and chmod 600", who);
	if (stat(path, &status) == 0 && (status.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)) != 0)
		add_warning(file, "%s: everybody can read it, or others can write it: %s", path,
			    status.st_uid == geteuid() ? "chmod 600" : remedy);
	result = json_parse_commented(text, length, &file->document, err);
	if (result < 0)
		return result;
	if (!json_object_is_type(file->document, json_type_object))
		return err_set(err, ERR_INVALID, "must be an object with the member mcpServers");
	*ret_servers = json_get(file->document, "mcpServers", json_type_object);
	if (*ret_servers == NULL)
		*ret_servers = json_get(file->document, "servers", json_type_object);
	if (*ret_servers == NULL)
		return err_member(err, "mcpServers", "must be there, an object of servers");
	if (json_object_object_length(*ret_servers) > UPSTREAM_SERVERS_MAX)
		return err_member(err, "mcpServers", "has more than %d servers", UPSTREAM_SERVERS_MAX);
	return 0;
}

int upstream_config_load(const struct config *config, struct upstream_file *ret, struct err *err)
{
	struct upstream_file file = {0};
	struct json_object *servers = NULL;
	int result = read_file(&file, config->upstream.file, &servers, err);

	if (result == 0) {
		file.servers = xcalloc((size_t)json_object_object_length(servers) + 1, sizeof(*file.servers));
		json_object_object_foreach(servers, name, entry)
		{
			result = add_entry(&file, config, name, entry, err);
			if (result < 0)
				break;
		}
	}
	if (result < 0) {
		upstream_config_clear(&file);
		err_wrap(err, "upstream.file %s", config->upstream.file);
		return result;
	}
	*ret = file;
	return 0;
}

static void free_strings(struct bind_strings *strings)
{
	for (size_t i = 0; i < strings->count; i++)
		free(unconst(strings->items[i]));
	free(strings->items);
	*strings = (struct bind_strings){0};
}

void upstream_config_clear(struct upstream_file *file)
{
	for (size_t i = 0; i < file->count; i++) {
		struct upstream_server *server = &file->servers[i];

		free_strings(&server->secrets);
		free(server->problem);
		free(server->identity);
		bind_clear(upstream_config_table, server);
	}
	free(file->servers);
	free_strings(&file->warnings);
	json_put_pointer(&file->document);
	*file = (struct upstream_file){0};
}
