/* server_card.c - see server_card.h. */
#include "server_card.h"

#include <string.h>

#include "lib/base/host.h"
#include "lib/base/util.h"
#include "mcp_about.h"
#include "revision.h"

#define SCHEMA      "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
#define MEDIA_TYPE  "application/mcp-server-card+json"
#define DESCRIPTION "Runs programs in an isolated sandbox; keeps their files and a record of every run"
#define NAMELESS    "localhost" /* for addresses, which have no name to turn round */

/* "box.example" as "example.box/sallyport". */
static void name_card(const struct config *config, struct json_object *card)
{
	struct host_url url;
	auto_buf struct buf name = {0};

	buf_init(&name, HOST_SIZE + 32);
	if (host_url_parse(config->public_base_url, &url) == 0) {
		char *dot;

		while ((dot = strrchr(url.host, '.'))) {
			buf_printf(&name, "%s.", dot + 1);
			*dot = '\0';
		}
		buf_puts(&name, url.host);
	}
	const char *last = strrchr(name.data, '.');
	const bool number = strspn(last ? last + 1 : name.data, "0123456789") == strlen(last ? last + 1 : name.data);

	if (number || strchr(name.data, ':')) {
		buf_reset(&name);
		buf_puts(&name, NAMELESS);
	}
	buf_puts(&name, "/sallyport");
	json_add_string(card, "name", name.data);
}

/* The header with the token, which a client asks its user for; with OAuth it can sign in instead. */
static struct json_object *authorization(const struct config *config)
{
	struct json_object *headers = json_object_new_array(), *header = json_object_new_object();
	struct json_object *variables = json_object_new_object(), *token = json_object_new_object();
	const bool required = config_oauth(config) == CONFIG_OAUTH_OFF;

	json_add_string(token, "description",
			"A token of this server: its operator makes it with `sallyport token add`");
	json_add_bool(token, "isRequired", required);
	json_add_bool(token, "isSecret", true);
	json_add(variables, "token", token);
	json_add_string(header, "name", "Authorization");
	json_add_string(header, "value", "Bearer {token}");
	json_add_bool(header, "isRequired", required);
	json_add_bool(header, "isSecret", true);
	json_add(header, "variables", variables);
	json_object_array_add(headers, header);
	return headers;
}

static void add_remote(const struct config *config, const char *type, const char *path, bool two_paths,
		       struct json_object *remotes)
{
	struct json_object *remote = json_object_new_object(), *revisions = json_object_new_array();
	auto_free char *url = xasprintf("%s%s", config->public_base_url, path);

	for (const struct mcp_revision *revision = mcp_revisions; revision->name; revision++) {
		if (!two_paths || revision->two_paths)
			json_object_array_add(revisions, json_object_new_string(revision->name));
	}
	json_add_string(remote, "type", type);
	json_add_string(remote, "url", url);
	json_add(remote, "headers", authorization(config));
	json_add(remote, "supportedProtocolVersions", revisions);
	json_object_array_add(remotes, remote);
}

void server_card(struct http_exchange *exchange, const char *method, const char *rest)
{
	const struct config *config = exchange->server->config;
	struct reply *reply = exchange->reply;
	auto_json struct json_object *card = json_object_new_object(), *info = mcp_server_info();
	struct json_object *remotes = json_object_new_array();

	(void)method;
	(void)rest;
	json_add_string(card, "$schema", SCHEMA);
	name_card(config, card);
	json_add_string(card, "version", json_get_string(info, "version"));
	json_add_string(card, "title", json_get_string(info, "title"));
	json_add_string(card, "description", DESCRIPTION);
	add_remote(config, "streamable-http", "/mcp", false, remotes);
	if (config->gateway.http_sse)
		add_remote(config, "sse", "/sse", true, remotes);
	json_add(card, "remotes", remotes);
	reply->status = 200;
	reply_header(reply, "Content-Type", MEDIA_TYPE);
	reply_header(reply, "Cache-Control", "public, max-age=3600");
	reply_header(reply, "Access-Control-Allow-Methods", "GET");
	reply_header(reply, "Access-Control-Allow-Headers", "Content-Type");
	buf_reset(&reply->body);
	json_print(&reply->body, card);
}
