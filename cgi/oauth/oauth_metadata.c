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
	json_object_array_add(servers, json_object_new_string(exchange->server->oauth ? config->public_base_url
										      : config->oauth.issuer));
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

static void add_address(struct json_object *body, const char *name, const struct config *config, const char *path)
{
	auto_free char *address = xasprintf("%s%s", config->public_base_url, path);

	json_add_string(body, name, address);
}

/* What clients take as a promise: "none" must be there, or claude.ai does not use the address of its document as its
 * id; offline_access must be there, or ChatGPT and claude.ai ask for no refresh token. */
void oauth_metadata_server(struct http_exchange *exchange, const char *method, const char *rest)
{
	const struct config *config = exchange->server->config;
	auto_json struct json_object *body = json_object_new_object();
	struct json_object *resources = json_object_new_array();
	auto_free char *resource = xasprintf("%s/mcp", config->public_base_url);
	char scopes[OAUTH_SCOPES_SIZE];

	(void)method;
	(void)rest;
	oauth_who_scopes(config, oauth_who_usual(config), scopes);
	auto_free char *all = xasprintf("%s " OAUTH_OFFLINE, scopes);

	json_add_string(body, "issuer", config->public_base_url);
	add_address(body, "authorization_endpoint", config, "/authorize");
	add_address(body, "token_endpoint", config, "/token");
	if (config->oauth.dynamic_registration)
		add_address(body, "registration_endpoint", config, "/register");
	add_address(body, "revocation_endpoint", config, "/revoke");
	json_add(body, "response_types_supported", words("code"));
	json_add(body, "response_modes_supported", words("query"));
	json_add(body, "grant_types_supported", words("authorization_code refresh_token"));
	json_add(body, "token_endpoint_auth_methods_supported", words("none client_secret_basic client_secret_post"));
	json_add(body, "revocation_endpoint_auth_methods_supported",
		 words("none client_secret_basic client_secret_post"));
	json_add(body, "code_challenge_methods_supported", words("S256"));
	json_add(body, "scopes_supported", words(all));
	json_add_bool(body, "client_id_metadata_document_supported", config->oauth.client_metadata);
	json_add_bool(body, "authorization_response_iss_parameter_supported", true);
	json_object_array_add(resources, json_object_new_string(resource));
	json_add(body, "protected_resources", resources);
	reply_header(exchange->reply, "Cache-Control", "max-age=300");
	reply_json(exchange->reply, 200, body);
}
