/*
 * conformance.c - the fixtures' resources, and what makes them part of a gateway; see conformance.h.
 *
 * Like tests/exchanges/recorder.c this is linked into the gateway of the tests (build/bin-recorded) only. Where
 * SP_FIXTURES is in the environment it sets server_fixtures before main.
 */
#include "conformance.h"

#include <stdlib.h>
#include <string.h>

#include "cgi/http/auth.h"
#include "lib/base/util.h"

/* A red dot: 1 × 1 pixel. */
const char conformance_png[] =
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

#define TEMPLATE      "test://template/{id}/data"
#define TEMPLATE_HEAD "test://template/"
#define TEMPLATE_TAIL "/data"

static const struct {
	const char *uri, *name, *description, *media_type, *text, *blob;
} resources[] = {
	{"test://static-text", "Static text", "A text that stays the same", "text/plain",
	 "This is the content of the static text resource.", NULL},
	{"test://static-binary", "Static binary", "An image that stays the same", "image/png", NULL, conformance_png},
	{"test://watched-resource", "Watched", "A resource to subscribe to", "text/plain", "Nothing has changed.",
	 NULL},
};

static int list(struct mcp_call *call, const char *position, struct json_object *ret, struct buf *next, struct err *err)
{
	(void)call;
	(void)position;
	(void)next;
	(void)err;
	for (size_t i = 0; i < ARRAY_SIZE(resources); i++) {
		struct json_object *resource = json_object_new_object();

		json_add_string(resource, "uri", resources[i].uri);
		json_add_string(resource, "name", resources[i].name);
		json_add_string(resource, "description", resources[i].description);
		json_add_string(resource, "mimeType", resources[i].media_type);
		json_object_array_add(ret, resource);
	}
	return 0;
}

static void templates(struct mcp_call *call, struct json_object *ret)
{
	struct json_object *template = json_object_new_object();

	(void)call;
	json_add_string(template, "uriTemplate", TEMPLATE);
	json_add_string(template, "name", "Data");
	json_add_string(template, "description", "A text with the id in it");
	json_add_string(template, "mimeType", "application/json");
	json_object_array_add(ret, template);
}

/* The id in a URI of the template; NULL: it is none. */
static char *template_id(const char *uri)
{
	size_t length = strlen(uri), head = strlen(TEMPLATE_HEAD), tail = strlen(TEMPLATE_TAIL);

	if (!str_starts(uri, TEMPLATE_HEAD) || length <= head + tail || !streq(uri + length - tail, TEMPLATE_TAIL))
		return NULL;
	return xstrndup(uri + head, length - head - tail);
}

static int read_resource(struct mcp_call *call, const char *uri, struct json_object *contents, struct err *err)
{
	auto_free char *id = template_id(uri);
	struct json_object *content = json_object_new_object();

	(void)call;
	json_object_array_add(contents, content);
	json_add_string(content, "uri", uri);
	if (id) {
		auto_free char *text = xasprintf("{\"id\":\"%s\",\"templateTest\":true}", id);

		json_add_string(content, "mimeType", "application/json");
		json_add_string(content, "text", text);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(resources); i++) {
		if (!streq(resources[i].uri, uri))
			continue;
		json_add_string(content, "mimeType", resources[i].media_type);
		json_add_string(content, resources[i].text ? "text" : "blob",
				resources[i].text ? resources[i].text : resources[i].blob);
		return 0;
	}
	return err_set(err, ERR_NOT_FOUND, "no such resource");
}

static int subscribe(struct mcp_call *call, const char *uri, struct err *err)
{
	(void)call;
	return streq(uri, "test://watched-resource")
		       ? 0
		       : err_set(err, ERR_INVALID, "uri: only test://watched-resource changes");
}

static const struct resource_provider provider = {
	.scheme = "test://",
	.list = list,
	.templates = templates,
	.read = read_resource,
	.subscribe = subscribe,
};

/* -------- the link unit ------------------------------------------------------------------------------- */

struct store_token conformance_token;

/* The requests come without a token, so they must not come from elsewhere. What runs needs an owner: nobody ever sees
 * this token's text. */
static int open_to_all(struct server *server, struct err *err)
{
	const struct config *config = server->config;
	const char *url = config->public_base_url;
	char text[STORE_TOKEN_TEXT];

	if (!str_starts(url, "http://127.0.0.1:") && !str_starts(url, "http://localhost:") &&
	    !str_starts(url, "http://[::1]:"))
		return err_member(err, "public_base_url",
				  "must be http://127.0.0.1:PORT: the fixtures ask for no token");
	if (config->gateway.allowed_hosts.count || config->gateway.allowed_origins.count)
		return err_member(err, "gateway",
				  "allowed_hosts and allowed_origins must be empty: the fixtures ask for no token");
	int result =
		store_token_add(server->store, "conformance", "conformance suite", text, &conformance_token, err);

	explicit_bzero(text, sizeof(text));
	return result;
}

/* Everybody on this machine is the one owner. */
static int authenticate(struct http_exchange *exchange)
{
	if (!auth_from_loopback(exchange->request)) {
		reply_refuse(exchange->reply, 403, "the fixtures are on: only this machine is served");
		return -ERR_DENIED;
	}
	exchange->token = conformance_token;
	snprintf(exchange->reply->owner, sizeof(exchange->reply->owner), "%s", exchange->token.owner);
	return 0;
}

static const struct prompt *const prompts[] = {conformance_prompts, NULL};
static const struct resource_provider *const providers[] = {&provider, NULL};
const struct fixtures conformance_fixtures = {
	.open = open_to_all,
	.authenticate = authenticate,
	.tables = {.tools = conformance_tools, .prompts = prompts, .resources = providers},
};

__attribute__((constructor)) static void begin(void)
{
	if (getenv("SP_FIXTURES"))
		server_fixtures = &conformance_fixtures;
}
