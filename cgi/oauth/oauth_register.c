/* oauth_register.c - see oauth_register.h. */
#include "oauth_register.h"

#include <string.h>

#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/oauth/oauth_client.h"
#include "oauth_reply.h"
#include "oauth_server.h"

#define SECOND       INT64_C(1000000)
#define FULL_SECONDS 3600

/* May this address register one more now? false: the reply says when. */
static bool admit(struct http_exchange *exchange)
{
	struct oauth_server *oauth = exchange->server->oauth;
	char address[STORE_ADDRESS_SIZE];

	oauth_server_address(exchange, address);
	const int64_t own = attempts_wait(&oauth->registered, address), all = attempts_wait(&oauth->all_registered, "");

	if (own > 0 || all > 0) {
		oauth_reply_busy(exchange, 429, MAX(own, all), "too many clients register: try again later");
		return false;
	}
	attempts_count(&oauth->registered, address);
	attempts_count(&oauth->all_registered, "");
	return true;
}

static void reply_client(struct http_exchange *exchange, const struct store_oauth_client *client)
{
	auto_json struct json_object *body = json_object_new_object();
	struct json_object *redirects = NULL, *grants = json_object_new_array(), *types = json_object_new_array();

	json_parse(client->redirects, strlen(client->redirects), &redirects, NULL);
	json_object_array_add(grants, json_object_new_string("authorization_code"));
	if (client->refreshes)
		json_object_array_add(grants, json_object_new_string("refresh_token"));
	json_object_array_add(types, json_object_new_string("code"));
	json_add_string(body, "client_id", client->id);
	json_add_int(body, "client_id_issued_at", client->created_us / SECOND);
	if (client->name[0])
		json_add_string(body, "client_name", client->name);
	json_add(body, "redirect_uris", redirects);
	json_add(body, "grant_types", grants);
	json_add(body, "response_types", types);
	json_add_string(body, "token_endpoint_auth_method", "none");
	reply_header(exchange->reply, "Cache-Control", "no-store");
	reply_json(exchange->reply, 201, body);
}

void oauth_register_post(struct http_exchange *exchange, const char *method, const char *rest)
{
	const struct config *config = exchange->server->config;
	auto_oauth_client struct store_oauth_client client = {.redirects = NULL};
	auto_json struct json_object *given = NULL;
	auto_buf struct buf body = {0};
	struct err err = ERR_INIT;
	const char *error = OAUTH_BAD_METADATA;

	(void)method;
	(void)rest;
	if (!config->oauth.dynamic_registration) {
		reply_refuse(exchange->reply, 404, "clients do not register themselves here");
		return;
	}
	if (!admit(exchange) || oauth_reply_body(exchange, &body) < 0)
		return;
	if (json_parse(body.data, body.length, &given, NULL) < 0) {
		oauth_reply_error(exchange, 400, error, "the body must be a JSON object");
		return;
	}
	if (oauth_client_register(config, given, &client, &error, &err) < 0) {
		oauth_reply_error(exchange, 400, error, err.text);
		return;
	}
	int result = store_oauth_client_register(exchange->server->store, &client, config->oauth.clients_max, &err);

	if (result == -ERR_BUSY)
		oauth_reply_busy(exchange, 429, FULL_SECONDS, "no more clients can be registered here");
	else if (result < 0)
		oauth_reply_fault(exchange, &err);
	else
		reply_client(exchange, &client);
}
