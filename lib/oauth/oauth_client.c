/*
 * oauth_client.c - see oauth_client.h.
 *
 * Both kinds of metadata are read by the same rules, but for what a bad address does: in a registration it is an error
 * that its writer can mend; in a document, which is written for many servers, it is passed over.
 *
 * Facts: draft-ietf-oauth-client-id-metadata-document-01, section 4; RFC 7591; the
 * documents of well-known clients as of 2026-10.
 */
#include "oauth_client.h"

#include <string.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"

/* A name that a page can show; *ret "" where there is none. */
static bool take_name(struct json_object *body, char ret[STORE_OAUTH_NAME_MAX + 1])
{
	struct json_object *value = json_member(body, "client_name");
	const char *name = json_get_string(body, "client_name");

	ret[0] = '\0';
	if (value == NULL)
		return true;
	if (name == NULL || strlen(name) > STORE_OAUTH_NAME_MAX)
		return false;
	auto_buf struct buf printable = {0};

	buf_init(&printable, SIZE_MAX / 2);
	utf8_printable(&printable, name, strlen(name));
	snprintf(ret, STORE_OAUTH_NAME_MAX + 1, "%s", name);
	return printable.length == strlen(name);
}

static int bad(const char **ret_error, const char *error, struct err *err, const char *text)
{
	*ret_error = error;
	return err_set(err, ERR_INVALID, "%s", text);
}

/* "" where it is no text, or one with a NUL in it. */
static const char *whole_text(struct json_object *item)
{
	const char *text = json_object_is_type(item, json_type_string) ? json_object_get_string(item) : "";

	return strlen(text) == (size_t)json_object_get_string_len(item) ? text : "";
}

/* May the client name this address? `id` NULL: it registers itself, as an application of this type. */
static bool may_name(const struct config *config, const char *id, const char *type, const char *uri)
{
	if (!oauth_redirect_allowed(config, uri))
		return false;
	if (id != NULL)
		return oauth_redirect_of_document(config, id, uri);
	return type == NULL || !streq(type, "web") || !oauth_redirect_loopback(uri);
}

/* Without `id` each address must be good; of a document those that are not are passed over. */
static int take_redirects(const struct config *config, struct json_object *body, const char *id,
			  struct store_oauth_client *client, struct err *err)
{
	struct json_object *given = json_get(body, "redirect_uris", json_type_array);
	auto_json struct json_object *kept = json_object_new_array();
	const size_t most = id != NULL ? OAUTH_CLIENT_REDIRECTS_DOC : OAUTH_CLIENT_REDIRECTS;
	const char *type = json_get_string(body, "application_type");
	auto_buf struct buf text = {0};

	if (given == NULL || json_object_array_length(given) == 0 || json_object_array_length(given) > most)
		return err_set(err, ERR_INVALID, "redirect_uris must be a list of 1 to %zu addresses", most);
	for (size_t i = 0; i < json_object_array_length(given); i++) {
		struct json_object *item = json_object_array_get_idx(given, i);
		const char *uri = whole_text(item);

		if (may_name(config, id, type, uri))
			json_object_array_add(kept, json_object_new_string(uri));
		else if (id == NULL)
			return err_set(
				err, ERR_INVALID,
				"redirect_uris: each must be an https address, or http on localhost, 127.0.0.1 or "
				"[::1], without a fragment");
	}
	if (json_object_array_length(kept) == 0)
		return err_set(err, ERR_INVALID,
			       "redirect_uris has none on the document's host or on this machine (oauth.redirect_hosts "
			       "allows others)");
	buf_init(&text, SIZE_MAX / 2);
	json_print(&text, kept);
	client->redirects = buf_steal(&text, NULL);
	return 0;
}

int oauth_client_register(const struct config *config, struct json_object *body, struct store_oauth_client *ret,
			  const char **ret_error, struct err *err)
{
	auto_oauth_client struct store_oauth_client client = {.redirects = NULL};
	struct json_object *grants = json_member(body, "grant_types"), *types = json_member(body, "response_types");

	if (!json_object_is_type(body, json_type_object))
		return bad(ret_error, OAUTH_BAD_METADATA, err, "the body must be a JSON object");
	if (!take_name(body, client.name))
		return bad(ret_error, OAUTH_BAD_METADATA, err,
			   "client_name must be a text of at most 200 bytes without control characters");
	if (json_member(body, "software_statement") != NULL)
		return bad(ret_error, OAUTH_BAD_METADATA, err, "software_statement is not supported");
	if ((grants != NULL && !json_object_is_type(grants, json_type_array)) ||
	    (types != NULL && !json_object_is_type(types, json_type_array)))
		return bad(ret_error, OAUTH_BAD_METADATA, err, "grant_types and response_types must be lists");
	if (types != NULL && !json_list_has(types, "code"))
		return bad(ret_error, OAUTH_BAD_METADATA, err, "response_types must have code");
	if (grants != NULL && !json_list_has(grants, "authorization_code"))
		return bad(ret_error, OAUTH_BAD_METADATA, err, "grant_types must have authorization_code");
	client.refreshes = json_list_has(grants, "refresh_token");
	*ret_error = OAUTH_BAD_REDIRECT;
	int result = take_redirects(config, body, NULL, &client, err);

	if (result == 0) {
		*ret = client;
		client.redirects = NULL;
	}
	return result;
}

static int check_document(struct json_object *body, const char *id, struct err *err)
{
	const char *named = json_get_string(body, "client_id"), *method = NULL;

	if (named == NULL || !streq(named, id))
		return err_set(err, ERR_INVALID, "its client_id is not its address, to the last character");
	if (json_member(body, "client_secret") != NULL || json_member(body, "client_secret_expires_at") != NULL)
		return err_set(err, ERR_INVALID, "it has a client_secret, and everybody can read it");
	method = json_get_string(body, "token_endpoint_auth_method");
	if (method != NULL && !streq(method, "none") &&
	    !(streq(method, "private_key_jwt") &&
	      json_list_has(json_get(body, "token_endpoint_auth_methods_supported", json_type_array), "none")))
		return err_set(err, ERR_INVALID, "its token_endpoint_auth_method must be none");
	return 0;
}

int oauth_client_document(const struct config *config, const char *id, const char *text, size_t length,
			  struct store_oauth_client *ret, struct err *err)
{
	auto_oauth_client struct store_oauth_client client = {.redirects = NULL};
	auto_json struct json_object *body = NULL;

	if (json_parse(text, length, &body, NULL) < 0 || !json_object_is_type(body, json_type_object))
		return err_set(err, ERR_INVALID, "it is not a JSON object");
	int result = check_document(body, id, err);

	if (result < 0)
		return result;
	if (!take_name(body, client.name))
		return err_set(err, ERR_INVALID,
			       "its client_name must be a text of at most 200 bytes without control characters");
	struct json_object *grants = json_get(body, "grant_types", json_type_array);

	client.refreshes = json_list_has(grants, "refresh_token");
	if ((result = take_redirects(config, body, id, &client, err)) < 0)
		return result;
	snprintf(client.id, sizeof(client.id), "%s", id);
	*ret = client;
	client.redirects = NULL;
	return 0;
}

bool oauth_client_known(const char *id, struct store_oauth_client *ret)
{
	static const struct {
		const char *id, *name, *redirects;
	} known[] = {
		{"https://claude.ai/oauth/mcp-oauth-client-metadata", "Claude",
		 "[\"https://claude.ai/api/mcp/auth_callback\"]"},
		{"https://claude.ai/oauth/claude-code-client-metadata", "Claude Code",
		 "[\"http://localhost/callback\",\"http://127.0.0.1/callback\"]"},
		{"https://chatgpt.com/oauth/client.json", "ChatGPT",
		 "[\"https://chatgpt.com/connector_platform_oauth_redirect\"]"},
		{"https://chatgpt.com/oauth/codex/client.json", "Codex",
		 "[\"http://127.0.0.1/callback\",\"http://localhost/callback\"]"},
		{"https://vscode.dev/oauth/client-metadata.json", "Visual Studio Code",
		 "[\"http://127.0.0.1:33418/\",\"https://vscode.dev/redirect\"]"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (!streq(known[i].id, id))
			continue;
		*ret = (struct store_oauth_client){.refreshes = true, .redirects = xstrdup(known[i].redirects)};
		snprintf(ret->id, sizeof(ret->id), "%s", id);
		snprintf(ret->name, sizeof(ret->name), "%s", known[i].name);
		return true;
	}
	return false;
}

const char *oauth_client_redirect(const struct store_oauth_client *client, const char *asked,
				  struct json_object **ret_list)
{
	auto_json struct json_object *list = NULL;
	const char *found = NULL;

	if (json_parse(client->redirects, strlen(client->redirects), &list, NULL) < 0 ||
	    !json_object_is_type(list, json_type_array))
		return NULL;
	if (asked == NULL && json_object_array_length(list) == 1)
		found = json_object_get_string(json_object_array_get_idx(list, 0));
	for (size_t i = 0; asked != NULL && found == NULL && i < json_object_array_length(list); i++)
		if (oauth_redirect_matches(json_object_get_string(json_object_array_get_idx(list, i)), asked))
			found = asked;
	*ret_list = steal(&list);
	return found;
}

bool oauth_client_local(const struct store_oauth_client *client)
{
	auto_json struct json_object *list = NULL;

	if (json_parse(client->redirects, strlen(client->redirects), &list, NULL) < 0 ||
	    !json_object_is_type(list, json_type_array))
		return false;
	for (size_t i = 0; i < json_object_array_length(list); i++)
		if (!oauth_redirect_loopback(json_object_get_string(json_object_array_get_idx(list, i))))
			return false;
	return true;
}
