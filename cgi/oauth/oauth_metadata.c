/*
 * oauth_metadata.c - see oauth_metadata.h.
 *
 * The document stands at the place with the endpoint's path behind it and at the root, with the same body: clients
 * differ in where they look, and one resource is one audience. Clients take the first authorization server, always.
 */
#include "oauth_metadata.h"

#include <string.h>

#include "lib/base/util.h"
#include "lib/oauth/oauth_who.h"

/* "run files" as an array. */
static struct json_object *words(const char *text)
{
	struct json_object *array = json_object_new_array();

	for (const char *at = text; *(at += strspn(at, " ")) != '\0'; at += strcspn(at, " "))
		json_object_array_add(array, json_object_new_string_len(at, (int)strcspn(at, " ")));
	return array;
}

void oauth_metadata_resource(struct http_exchange *exchange, const char *method, const char *rest)
{
	const struct config *config = exchange->server->config;
	const bool sse = str_ends(exchange->route, "/sse");
	auto_free char *resource = xasprintf("%s/%s", config->public_base_url, sse ? "sse" : "mcp");
	auto_json struct json_object *body = json_object_new_object();
	struct json_object *servers = json_object_new_array(), *methods = json_object_new_array();
	char scopes[OAUTH_SCOPES_SIZE];

	(void)method;
	(void)rest;
	if (sse && !config->gateway.http_sse) {
		reply_refuse(exchange->reply, 404, "the old transport is off (gateway.http_sse)");
		return;
	}
	json_object_array_add(servers, json_object_new_string(config->oauth.issuer));
	json_object_array_add(methods, json_object_new_string("header"));
	oauth_who_scopes(config, oauth_who_usual(config), scopes);
	json_add_string(body, "resource", resource);
	json_add(body, "authorization_servers", servers);
	json_add(body, "scopes_supported", words(scopes));
	json_add(body, "bearer_methods_supported", methods);
	json_add_string(body, "resource_name", "Sallyport");
	reply_header(exchange->reply, "Cache-Control", "max-age=300");
	reply_json(exchange->reply, 200, body);
}
